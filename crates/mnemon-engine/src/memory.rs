//! The memory: one door to six scopes, each on a store of its own or all on one.

pub(crate) mod hooks;
pub(crate) mod notes_config;
pub(crate) mod payload;
pub(crate) mod policies;
pub(crate) mod reading;
pub(crate) mod scopes;
pub(crate) mod searching;
pub(crate) mod writing;

pub use hooks::{Node, NodeOutcome, Ran};
pub use payload::{Payload, StatePayload};
pub use policies::{Applied, MemoryPolicy, PerScope, Policies, Whom};
pub use reading::{Answer, Failure, MemoryItem, MemoryQuery};
pub use scopes::{
    Content, Dialog, DialogContext, Ended, Experience, FlowState, FoundDocument, FoundRule,
    FoundSkill, Knowledge, LIMIT_STEPS, LIMIT_TURNS, LoggedStep, Place, Procedural, Profile, Said,
    SalientFact, Semantic, SessionSummary, Sop, State, Step, TOP_DOCS, TOP_SKILLS, Task, TaskList,
    TaskStatus, TaskStep, ToldEvidence, ToolSop, Trace, Turn, UserProfile, Utterance,
};
pub(crate) use searching::is_made_id;
pub use writing::MemoryWriteEvent;

use std::sync::Arc;

use mnemon_core::embed::Embedder;
use mnemon_core::external::ExternalSource;
use mnemon_core::llm::Llm;
use mnemon_core::longterm::LongTerm;
use mnemon_core::rerank::Reranker;
use mnemon_core::{Backend, Ids, Policy, Scope};

use crate::memory::notes_config::{NoteFiles, NotesConfig};
use crate::records::{Records, Retention, Safety};
use crate::search::external::External;
pub(crate) use policies::Buckets;
use policies::Rates;

/// What an agent talks to. It knows which store keeps which scope.
pub struct Memory {
    records: Arc<Records>,
    /// One for each scope, in the order of [`Scope::ALL`]; scopes on the same store share one.
    scopes: Vec<Arc<Records>>,
    pub(crate) policies: Policies,
    pub(crate) rates: Rates,
    llm: Option<Arc<dyn Llm>>,
    /// A service that keeps long-term memory instead of this engine.
    pub(crate) long_term: Option<Arc<dyn LongTerm>>,
    /// Knowledge that others keep, searched besides our own.
    external: Vec<Arc<dyn ExternalSource>>,
    pub(crate) notes: NotesConfig,
    /// Where the content of a note may be read from.
    pub(crate) note_files: Option<NoteFiles>,
}

/// Puts a [`Memory`] together.
pub struct Builder {
    backend: Backend,
    ids: Arc<Ids>,
    policy: Policy,
    retention: Retention,
    embedders: Vec<Arc<dyn Embedder>>,
    reranker: Option<Arc<dyn Reranker>>,
    /// Scopes that have a store of their own.
    apart: Vec<(Scope, Backend)>,
    policies: Policies,
    llm: Option<Arc<dyn Llm>>,
    long_term: Option<Arc<dyn LongTerm>>,
    external: Vec<Arc<dyn ExternalSource>>,
    notes: NotesConfig,
    note_files: Option<NoteFiles>,
    safety: Safety,
    project: Option<String>,
}

impl Builder {
    /// The model that writes summaries. Everything works without one.
    #[must_use]
    pub fn llm(mut self, llm: Arc<dyn Llm>) -> Self {
        self.llm = Some(llm);
        self
    }

    /// A service that keeps long-term memory instead of this engine.
    #[must_use]
    pub fn long_term(mut self, remote: Arc<dyn LongTerm>) -> Self {
        self.long_term = Some(remote);
        self
    }

    /// Knowledge that others keep, which searches ask besides our own. Given several times, all
    /// are asked.
    #[must_use]
    pub fn external(mut self, source: Arc<dyn ExternalSource>) -> Self {
        self.external.push(source);
        self
    }

    /// Who may do what, and how much is kept.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// The model that places records by their meaning. Given several times, the first places new
    /// records; the others find what they placed before the model was changed.
    #[must_use]
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedders.push(embedder);
        self
    }

    /// A model that reads what a search has found once more, together with the question.
    #[must_use]
    pub fn reranker(mut self, reranker: Arc<dyn Reranker>) -> Self {
        self.reranker = Some(reranker);
        self
    }

    /// How long records are kept.
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// What each flow and each agent reads and writes, and how much.
    #[must_use]
    pub fn policies(mut self, policies: Policies) -> Self {
        self.policies = policies;
        self
    }

    /// How notes are kept, found and told.
    #[must_use]
    pub fn notes(mut self, notes: NotesConfig) -> Self {
        self.notes = notes;
        self
    }

    /// What is kept out of what is written.
    #[must_use]
    pub fn safety(mut self, safety: Safety) -> Self {
        self.safety = safety;
        self
    }

    /// The project that searches are made in, named as for [`AgentFiles`](crate::agentfiles): they
    /// find no entries of other projects' files.
    #[must_use]
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Where the content of a note may be read from, by a path below its root.
    #[must_use]
    pub fn note_files(mut self, files: NoteFiles) -> Self {
        self.note_files = Some(files);
        self
    }

    /// Keeps one scope on a store of its own.
    #[must_use]
    pub fn scope(mut self, scope: Scope, backend: impl Into<Backend>) -> Self {
        self.apart.push((scope, backend.into()));
        self
    }

    /// Keeps what was said on a store of its own.
    #[must_use]
    pub fn dialog(self, backend: impl Into<Backend>) -> Self {
        self.scope(Scope::Dialog, backend)
    }

    /// Keeps states and tasks on a store of their own.
    #[must_use]
    pub fn state(self, backend: impl Into<Backend>) -> Self {
        self.scope(Scope::State, backend)
    }

    /// Keeps what is known on a store of its own.
    #[must_use]
    pub fn semantic(self, backend: impl Into<Backend>) -> Self {
        self.scope(Scope::Semantic, backend)
    }

    /// Keeps skills on a store of their own.
    #[must_use]
    pub fn procedural(self, backend: impl Into<Backend>) -> Self {
        self.scope(Scope::Procedural, backend)
    }

    /// Keeps profiles on a store of their own.
    #[must_use]
    pub fn profile(self, backend: impl Into<Backend>) -> Self {
        self.scope(Scope::Profile, backend)
    }

    /// Keeps what was tried on a store of its own.
    #[must_use]
    pub fn experience(self, backend: impl Into<Backend>) -> Self {
        self.scope(Scope::Experience, backend)
    }

    pub fn build(self) -> Memory {
        let backend_of = |scope: &Scope| {
            let own = self.apart.iter().rev().find(|(apart, _)| apart == scope);
            own.map_or(&self.backend, |(_, backend)| backend)
        };
        let mut backends = vec![self.backend.clone()];
        for backend in Scope::ALL.iter().map(backend_of) {
            if !backends
                .iter()
                .any(|known| Arc::ptr_eq(&known.store, &backend.store))
            {
                backends.push(backend.clone());
            }
        }
        let records = Arc::new(self.over(backends.into()));
        let all: Vec<Arc<Records>> = records.on_all_stores().into_iter().map(Arc::new).collect();
        let scopes = Scope::ALL.iter().map(|scope| {
            let backend = backend_of(scope);
            let known = all
                .iter()
                .find(|one| Arc::ptr_eq(&one.store, &backend.store));
            known.unwrap_or(&records).clone()
        });
        Memory {
            scopes: scopes.collect(),
            records,
            policies: self.policies.clone(),
            rates: Rates::default(),
            llm: self.llm.clone(),
            long_term: self.long_term.clone(),
            external: self.external.clone(),
            notes: self.notes.clone(),
            note_files: self.note_files.clone(),
        }
    }

    fn over(&self, backends: Arc<[Backend]>) -> Records {
        Records {
            store: self.backend.store.clone(),
            index: self.backend.index.clone(),
            backends,
            policy: self.policy.clone(),
            embedders: self.embedders.clone(),
            reranker: self.reranker.clone(),
            ids: self.ids.clone(),
            retention: self.retention,
            safety: self.safety,
            project_tag: self
                .project
                .as_deref()
                .map(crate::records::project::project_tag),
            recalled: Arc::default(),
            readings: Arc::default(),
            signal: Arc::default(),
        }
    }
}

impl Memory {
    /// A memory over this store, with fresh ids from there. Every scope is kept on it unless the
    /// builder is told otherwise.
    pub fn builder(backend: impl Into<Backend>, ids: Ids) -> Builder {
        Builder {
            backend: backend.into(),
            ids: Arc::new(ids),
            policy: Policy::default(),
            retention: Retention::default(),
            embedders: Vec::new(),
            reranker: None,
            apart: Vec::new(),
            policies: Policies::default(),
            llm: None,
            long_term: None,
            external: Vec::new(),
            notes: NotesConfig::default(),
            note_files: None,
            safety: Safety::default(),
            project: None,
        }
    }

    /// The records of the store that was given first.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The records of the store that keeps this scope.
    pub fn records_of(&self, scope: Scope) -> &Records {
        self.scopes.get(scope as usize).unwrap_or(&self.records)
    }

    /// What each flow and each agent reads and writes.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// The language model, if there is one.
    pub fn llm(&self) -> Option<&Arc<dyn Llm>> {
        self.llm.as_ref()
    }

    /// Knowledge that others keep.
    pub(crate) fn external_knowledge(&self) -> External<'_> {
        External {
            sources: &self.external,
        }
    }

    /// What was said.
    pub fn dialog(&self) -> Dialog<'_> {
        Dialog {
            records: self.records_of(Scope::Dialog),
        }
    }

    /// Where flows and tasks stand.
    pub fn state(&self) -> State<'_> {
        State {
            records: self.records_of(Scope::State),
        }
    }

    /// What is known.
    pub fn semantic(&self) -> Semantic<'_> {
        Semantic {
            records: self.records_of(Scope::Semantic),
            external: self.external_knowledge(),
        }
    }

    /// How things are done.
    pub fn procedural(&self) -> Procedural<'_> {
        Procedural {
            records: self.records_of(Scope::Procedural),
            external: self.external_knowledge(),
        }
    }

    /// Who somebody is and what they like.
    pub fn profile(&self) -> Profile<'_> {
        Profile {
            records: self.records_of(Scope::Profile),
        }
    }

    /// What was tried, and how it went.
    pub fn experience(&self) -> Experience<'_> {
        Experience {
            records: self.records_of(Scope::Experience),
        }
    }
}
