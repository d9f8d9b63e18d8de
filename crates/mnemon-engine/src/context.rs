//! What goes into the prompt: everything a node needs to know, within its tokens.

mod materials;

use std::collections::BTreeMap;

use mnemon_core::budget::{Budget, Compiled, Counter, Form, Section, Share, compile};
use mnemon_core::{Ctx, Invalid, Scope, limits};
use serde::{Deserialize, Serialize};

use crate::memory::reading::Answer;
use crate::memory::{Memory, MemoryItem, MemoryPolicy, MemoryQuery};
use crate::records::Error;

/// The scopes that a context is made of.
const SCOPES: [Scope; 5] = [
    Scope::Profile,
    Scope::Dialog,
    Scope::Procedural,
    Scope::State,
    Scope::Semantic,
];

/// Of a hundred tokens, how many a section is sure of when nobody says.
const FLOORS: [(Section, usize); 5] = [
    (Section::Summary, 10),
    (Section::Skills, 10),
    (Section::Turns, 25),
    (Section::Facts, 10),
    (Section::Documents, 20),
];

/// What a prompt is to know, and how much of it there may be.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextQuery {
    /// Who asks, in which session, about what. Its scopes do not matter: a context has its own.
    pub about: MemoryQuery,
    /// Never exceeded.
    pub tokens: usize,
    pub form: Form,
    /// Tokens that a section is sure of, instead of the usual floor.
    pub floors: BTreeMap<Section, usize>,
    /// Tokens that a section may have; where the policy has a lower cap, that holds.
    pub ceilings: BTreeMap<Section, usize>,
    /// Whether the text ends with what was left out, where there is room.
    pub also_known: bool,
}

impl ContextQuery {
    /// So many tokens about this, in Markdown.
    pub fn new(about: MemoryQuery, tokens: usize) -> Self {
        Self {
            about,
            tokens,
            form: Form::Markdown,
            floors: BTreeMap::new(),
            ceilings: BTreeMap::new(),
            also_known: true,
        }
    }

    /// The budget under this policy.
    fn budget(&self, policy: &MemoryPolicy) -> Budget {
        let sections = Section::ALL.iter();
        let shares = sections.map(|section| (*section, self.share(*section, policy)));
        Budget {
            tokens: self.tokens,
            shares: shares.collect(),
            also_known: self.also_known,
        }
    }

    fn share(&self, section: Section, policy: &MemoryPolicy) -> Share {
        let cap = policy.max_tokens.of(scope_of(section));
        let cap = cap.map(|cap| usize::try_from(cap).unwrap_or(usize::MAX));
        let given = self.ceilings.get(&section).copied();
        let ceiling = cap.into_iter().chain(given).min();
        let usual = FLOORS.iter().find(|(named, _)| *named == section);
        let usual = usual.map_or(0, |(_, percent)| self.tokens * percent / 100);
        let usual = usual.min(ceiling.unwrap_or(usize::MAX));
        Share {
            floor: self.floors.get(&section).copied().unwrap_or(usual),
            ceiling,
        }
    }
}

/// The scope whose cap holds for a section.
fn scope_of(section: Section) -> Scope {
    match section {
        Section::Profile => Scope::Profile,
        Section::Summary | Section::Turns => Scope::Dialog,
        Section::Skills => Scope::Procedural,
        Section::State => Scope::State,
        Section::Facts | Section::Documents => Scope::Semantic,
    }
}

/// A compiled context, and which scopes said nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Context {
    #[serde(flatten)]
    pub compiled: Compiled,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<Silent>,
}

/// A scope that said nothing, and why: the policy, no query to search by, or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silent {
    pub scope: Scope,
    pub why: String,
}

impl Memory {
    /// What the prompt is to know, in no more tokens than asked for. A scope that the policy
    /// switches off, or that fails, is missing from it and named beside it.
    pub async fn context(
        &self,
        ctx: &Ctx,
        query: &ContextQuery,
        counter: &dyn Counter,
    ) -> Result<Context, Error> {
        let about = &query.about;
        let policy = self
            .policies()
            .of(about.flow_id.as_deref(), Some(&about.agent_id));
        let budget = query.budget(&policy);
        // Before anything is read.
        budget.check()?;
        check_query(about)?;
        let asked = MemoryQuery {
            scopes: SCOPES.to_vec(),
            ..about.clone()
        };
        let items = self.read(ctx, &asked).await?;
        let materials = materials::of(&items, about);
        let compiled = compile(&materials, &budget, query.form, counter)?;
        Ok(Context {
            compiled,
            silent: items.iter().filter_map(silent).collect(),
        })
    }
}

fn check_query(about: &MemoryQuery) -> Result<(), Invalid> {
    let bytes = about.query.as_ref().map_or(0, String::len);
    let most = limits::QUERY_BYTES;
    if bytes > most {
        let what = format!("has {bytes} bytes, at most {most} are allowed");
        return Err(Invalid::new("query", what));
    }
    Ok(())
}

fn silent(item: &MemoryItem) -> Option<Silent> {
    let why = match &item.answer {
        Answer::Payload(_) => return None,
        Answer::LeftOut(reason) => reason.clone(),
        Answer::Error(failure) => failure.message.clone(),
    };
    Some(Silent {
        scope: item.scope,
        why,
    })
}
