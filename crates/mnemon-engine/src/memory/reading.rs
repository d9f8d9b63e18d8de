//! Before a node runs: what does it need to know?

use futures::future::join_all;
use mnemon_core::{Ctx, ErrorKind, Expr, Filter, Invalid, Owner, Scope, Viewer, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::memory::scopes::Place;
use crate::memory::{Memory, MemoryPolicy, Payload, StatePayload};
use crate::records::Error;
use crate::records::naming::{check_name, check_task_type};

/// What a node asks before it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryQuery {
    pub user_id: String,
    pub session_id: String,
    pub agent_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Which kinds of memory.
    pub scopes: Vec<Scope>,
    /// What semantic and procedural memory are searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The type of task, for skills and experience.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<String>,
    /// `filters`: what the metadata of documents must be. Other members are the caller's own.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl MemoryQuery {
    /// A question of this agent about this session.
    pub fn new(
        user: impl Into<String>,
        session: impl Into<String>,
        agent: impl Into<String>,
        scopes: &[Scope],
    ) -> Self {
        Self {
            user_id: user.into(),
            session_id: session.into(),
            agent_id: agent.into(),
            flow_id: None,
            node_id: None,
            scopes: scopes.to_vec(),
            query: None,
            task_type: None,
            extra: Map::new(),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let names = [&self.user_id, &self.session_id, &self.agent_id];
        check_caller(names, [&self.flow_id, &self.node_id])?;
        check_task_type(self.task_type.as_deref())?;
        if self.scopes.is_empty() {
            let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
            let what = format!("is empty; name at least one of: {}", known.join(", "));
            return Err(Invalid::new("scopes", what));
        }
        self.filters().map(drop)
    }

    fn filters(&self) -> Result<Filter, Invalid> {
        let Some(filters) = self.extra.get("filters") else {
            return Ok(Filter::seen_by(self.viewer()));
        };
        let metadata = Expr::try_from(filters.clone())
            .map_err(|invalid| Invalid::new(format!("extra.{}", invalid.field), invalid.what))?;
        Ok(Filter {
            metadata: Some(metadata),
            ..Filter::seen_by(self.viewer())
        })
    }

    /// The user at the agent: who sees what is read.
    pub fn viewer(&self) -> Viewer {
        Viewer::person(Some(self.user_id.clone()), Some(self.agent_id.clone()))
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place {
            user: &self.user_id,
            session: &self.session_id,
            flow: self.flow_id.as_deref(),
            agent: Some(&self.agent_id),
        }
    }

    /// The query, unless it is blank.
    fn words(&self) -> Option<&str> {
        self.query.as_deref().filter(|text| !text.trim().is_empty())
    }
}

/// Who asks or tells: user, session and agent must be named; flow and node may be.
pub(crate) fn check_caller(
    [user, session, agent]: [&String; 3],
    [flow, node]: [&Option<String>; 2],
) -> Result<(), Invalid> {
    let must = [
        ("user_id", user),
        ("session_id", session),
        ("agent_id", agent),
    ];
    for (field, name) in must {
        check_name(field, name, limits::NAME_CHARS)?;
    }
    for (field, name) in [("flow_id", flow), ("node_id", node)] {
        if let Some(name) = name {
            check_name(field, name, limits::NAME_CHARS)?;
        }
    }
    Ok(())
}

/// What one scope answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryItem {
    pub scope: Scope,
    #[serde(flatten)]
    pub answer: Answer,
    /// Entries that the policy's caps had no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a scope has to say, or why it says nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Payload(Payload),
    /// The reason: the policy, or nothing to search by.
    LeftOut(String),
    /// This scope failed; the others did not.
    Error(Failure),
}

/// What went wrong in one scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: ErrorKind,
    pub message: String,
}

impl MemoryItem {
    /// What the scope has to say, if it has.
    pub fn payload(&self) -> Option<&Payload> {
        match &self.answer {
            Answer::Payload(payload) => Some(payload),
            Answer::LeftOut(_) | Answer::Error(_) => None,
        }
    }
}

/// When a scope's turn to start comes: what takes longest first. A single record may be read on
/// the spot, so it comes before those that a thread is woken for and that nobody waits for then.
fn started(scope: Scope) -> u8 {
    match scope {
        Scope::Semantic => 0,
        Scope::Procedural => 1,
        Scope::State | Scope::Profile => 2,
        Scope::Dialog => 3,
        Scope::Experience => 4,
    }
}

impl Memory {
    /// What a node needs to know. The scopes are read at the same time; one that fails carries its
    /// error and does not touch the others. One item for each scope, in the order asked.
    pub async fn read(&self, ctx: &Ctx, query: &MemoryQuery) -> Result<Vec<MemoryItem>, Error> {
        query.check()?;
        let flow = query.flow_id.as_deref();
        let policy = self.policies.of(flow, Some(&query.agent_id));
        let mut scopes: Vec<Scope> = Vec::new();
        for scope in &query.scopes {
            if !scopes.contains(scope) {
                scopes.push(*scope);
            }
        }
        // Those that take longest start first, so that none of them is left over at the end.
        let mut order: Vec<usize> = (0..scopes.len()).collect();
        order.sort_by_key(|at| scopes.get(*at).copied().map(started));
        let reads = order.into_iter().filter_map(|at| {
            let scope = *scopes.get(at)?;
            let read = self.read_scope(ctx, query, &policy, scope);
            Some(async move { (at, read.await) })
        });
        let mut items = join_all(reads).await;
        items.sort_by_key(|(at, _)| *at);
        Ok(items.into_iter().map(|(_, item)| item).collect())
    }

    async fn read_scope(
        &self,
        ctx: &Ctx,
        query: &MemoryQuery,
        policy: &MemoryPolicy,
        scope: Scope,
    ) -> MemoryItem {
        let left_out = |reason: String| MemoryItem {
            scope,
            answer: Answer::LeftOut(reason),
            dropped: 0,
        };
        if !policy.reads(scope) {
            return left_out(format!("the policy says use_{scope} = false"));
        }
        let asked = match scope {
            Scope::Dialog => self.read_dialog(ctx, query, policy).await,
            Scope::State => self.read_state(ctx, query).await,
            Scope::Semantic => self.read_semantic(ctx, query, policy).await,
            Scope::Procedural => self.read_procedural(ctx, query, policy).await,
            Scope::Profile => self.read_profile(ctx, query).await,
            Scope::Experience => self.read_experience(ctx, query, policy).await,
        };
        match asked {
            Ok(Some(mut payload)) => MemoryItem {
                scope,
                dropped: payload.fit(scope, policy),
                answer: Answer::Payload(payload),
            },
            Ok(None) if scope == Scope::Procedural => {
                left_out("there is neither a query nor a task_type to search by".to_owned())
            }
            Ok(None) => left_out("there is no query to search by".to_owned()),
            Err(error) => MemoryItem {
                scope,
                answer: Answer::Error(Failure {
                    kind: error.kind(),
                    message: error.to_string(),
                }),
                dropped: 0,
            },
        }
    }

    async fn read_dialog(
        &self,
        ctx: &Ctx,
        query: &MemoryQuery,
        policy: &MemoryPolicy,
    ) -> Result<Option<Payload>, Error> {
        let (user, session) = (&query.user_id, &query.session_id);
        let turns = policy.max_dialog_turns;
        let (dialog, viewer) = (self.dialog(), query.viewer());
        let context = dialog.get_context(ctx, &viewer, user, session, turns);
        Ok(Some(Payload::Dialog(context.await?)))
    }

    async fn read_state(&self, ctx: &Ctx, query: &MemoryQuery) -> Result<Option<Payload>, Error> {
        let (state, place) = (self.state(), query.place());
        let (saved, tasks) =
            futures::join!(state.get_state(ctx, place), state.get_tasks(ctx, place));
        Ok(Some(Payload::State(StatePayload::new(saved?, tasks?))))
    }

    async fn read_semantic(
        &self,
        ctx: &Ctx,
        query: &MemoryQuery,
        policy: &MemoryPolicy,
    ) -> Result<Option<Payload>, Error> {
        let Some(words) = query.words() else {
            return Ok(None);
        };
        let (filters, most) = (query.filters()?, policy.max_docs);
        if most == 0 {
            return Ok(Some(Payload::Semantic { docs: Vec::new() }));
        }
        let docs = self.semantic().search(ctx, words, filters, most).await?;
        Ok(Some(Payload::Semantic { docs }))
    }

    async fn read_procedural(
        &self,
        ctx: &Ctx,
        query: &MemoryQuery,
        policy: &MemoryPolicy,
    ) -> Result<Option<Payload>, Error> {
        let (task_type, most) = (query.task_type.as_deref(), policy.max_skills);
        if query.words().is_none() && task_type.is_none() {
            return Ok(None);
        }
        if most == 0 {
            let (skills, rules) = (Vec::new(), Vec::new());
            return Ok(Some(Payload::Procedural { skills, rules }));
        }
        let (viewer, words) = (query.viewer(), query.words().unwrap_or_default());
        let known = self.procedural();
        let rules = async {
            match task_type {
                Some(name) => known.rules_for(ctx, &viewer, name, most).await,
                None => Ok(Vec::new()),
            }
        };
        let skills = known.search_skills(ctx, &viewer, task_type, words, most);
        let (skills, rules) = futures::join!(skills, rules);
        Ok(Some(Payload::Procedural {
            skills: skills?,
            rules: rules?,
        }))
    }

    async fn read_profile(&self, ctx: &Ctx, query: &MemoryQuery) -> Result<Option<Payload>, Error> {
        let (viewer, user) = (query.viewer(), &query.user_id);
        let found = self.profile().get_profile(ctx, &viewer, user).await?;
        let (profile, version) = match found {
            Some(found) => (found.profile, found.version),
            None => (Map::new(), 0),
        };
        Ok(Some(Payload::Profile { profile, version }))
    }

    async fn read_experience(
        &self,
        ctx: &Ctx,
        query: &MemoryQuery,
        policy: &MemoryPolicy,
    ) -> Result<Option<Payload>, Error> {
        // Others' inputs and outputs are not for this user's prompt.
        let owner = Owner::of(Some(&query.user_id), None);
        let (known, viewer, most) = (self.experience(), query.viewer(), policy.max_steps);
        let task_type = query.task_type.as_deref();
        let (failures, cancelled, traces) = futures::join!(
            known.get_failures(ctx, &viewer, &owner, task_type, most),
            known.get_cancelled(ctx, &viewer, &owner, task_type, most),
            known.get_successful_traces(ctx, &viewer, &owner, task_type, most),
        );
        Ok(Some(Payload::Experience {
            failures: failures?,
            cancelled: cancelled?,
            traces: traces?,
        }))
    }
}
