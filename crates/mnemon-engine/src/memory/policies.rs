//! What each flow and each agent reads and writes, and how much.

mod rates;

use std::fmt;

use mnemon_core::learn::LearnSettings;
use mnemon_core::{Invalid, Limits, Scope, limits};
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use rates::{Buckets, Rates};

/// What a flow reads and writes, and how much. See [`Policies`] for how it comes about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryPolicy {
    pub use_dialog: bool,
    pub use_state: bool,
    pub use_semantic: bool,
    pub use_procedural: bool,
    pub use_profile: bool,
    pub use_experience: bool,
    /// Whether experience is written.
    pub write_experience: bool,
    /// Turns of the conversation.
    pub max_dialog_turns: usize,
    /// Documents found.
    pub max_docs: usize,
    /// Skills found.
    pub max_skills: usize,
    /// Failures, and successful traces, shown.
    pub max_steps: usize,
    /// Entries of each scope, whatever they are.
    pub max_items: PerScope,
    /// Tokens of each scope, estimated.
    pub max_tokens: PerScope,
    /// Writes to each scope by one agent in one flow.
    pub writes_per_minute: PerScope,
    /// Whether skills and rules are learnt from its steps.
    pub learn: bool,
    /// Whether a person must approve what was learnt. This and the following count for everybody:
    /// only what is said about everybody is looked at.
    pub learn_approval: bool,
    /// Successful runs from which on a skill is proposed, and active.
    pub learn_candidate_runs: usize,
    pub learn_active_runs: usize,
    /// Of a hundred successful runs so many must have followed a skill.
    pub learn_support: usize,
    /// Of a hundred runs that followed it so many must have succeeded.
    pub learn_confidence: usize,
    /// What the complexity rule must yield.
    pub learn_complexity: usize,
    /// How long a trace must be silent before it counts as ended.
    pub learn_settle_minutes: usize,
}

impl Default for MemoryPolicy {
    fn default() -> Self {
        Self {
            use_dialog: true,
            use_state: true,
            use_semantic: true,
            use_procedural: true,
            use_profile: true,
            use_experience: true,
            write_experience: true,
            max_dialog_turns: 20,
            max_docs: 5,
            max_skills: 3,
            max_steps: 10,
            max_items: PerScope::default(),
            max_tokens: PerScope::default(),
            writes_per_minute: PerScope::default(),
            learn: true,
            learn_approval: false,
            learn_candidate_runs: 5,
            learn_active_runs: 10,
            learn_support: 40,
            learn_confidence: 60,
            learn_complexity: 2,
            learn_settle_minutes: 30,
        }
    }
}

/// A number for each scope; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PerScope {
    pub dialog: Option<u64>,
    pub state: Option<u64>,
    pub semantic: Option<u64>,
    pub procedural: Option<u64>,
    pub profile: Option<u64>,
    pub experience: Option<u64>,
}

impl PerScope {
    /// The number for this scope.
    pub fn of(&self, scope: Scope) -> Option<u64> {
        let mut copy = *self;
        *copy.of_mut(scope)
    }

    fn of_mut(&mut self, scope: Scope) -> &mut Option<u64> {
        match scope {
            Scope::Dialog => &mut self.dialog,
            Scope::State => &mut self.state,
            Scope::Semantic => &mut self.semantic,
            Scope::Procedural => &mut self.procedural,
            Scope::Profile => &mut self.profile,
            Scope::Experience => &mut self.experience,
        }
    }
}

/// The word for "no limit", since TOML has no null.
const NONE: &str = "none";

/// Where in a policy a value stands.
enum Slot<'a> {
    Switch(&'a mut bool),
    Count(&'a mut usize, usize),
    Limit(&'a mut Option<u64>),
}

impl MemoryPolicy {
    /// Every key, as it is written in a file.
    pub fn keys() -> Vec<String> {
        let per_scope = ["max_items", "max_tokens", "writes_per_minute"];
        let per_scope = per_scope.iter().flat_map(|name| {
            let scopes = Scope::ALL.iter();
            scopes.map(move |scope| format!("{name}.{scope}"))
        });
        let mut policy = Self::default();
        let plain = policy.slots().map(|(name, _)| name.to_owned());
        plain.into_iter().chain(per_scope).collect()
    }

    /// Whether what a scope holds is read.
    pub fn reads(&self, scope: Scope) -> bool {
        match scope {
            Scope::Dialog => self.use_dialog,
            Scope::State => self.use_state,
            Scope::Semantic => self.use_semantic,
            Scope::Procedural => self.use_procedural,
            Scope::Profile => self.use_profile,
            Scope::Experience => self.use_experience,
        }
    }

    fn slot(&mut self, key: &str) -> Option<Slot<'_>> {
        if let Some((name, scope)) = key.split_once('.') {
            let scope: Scope = scope.parse().ok()?;
            let limits = match name {
                "max_items" => &mut self.max_items,
                "max_tokens" => &mut self.max_tokens,
                "writes_per_minute" => &mut self.writes_per_minute,
                _ => return None,
            };
            return Some(Slot::Limit(limits.of_mut(scope)));
        }
        let mut slots = self.slots().into_iter();
        slots.find(|(name, _)| *name == key).map(|(_, slot)| slot)
    }

    /// Every key that is not for a scope.
    fn slots(&mut self) -> [(&'static str, Slot<'_>); 19] {
        use Slot::{Count, Switch};
        let most = &Limits::DEFAULT;
        [
            ("use_dialog", Switch(&mut self.use_dialog)),
            ("use_state", Switch(&mut self.use_state)),
            ("use_semantic", Switch(&mut self.use_semantic)),
            ("use_procedural", Switch(&mut self.use_procedural)),
            ("use_profile", Switch(&mut self.use_profile)),
            ("use_experience", Switch(&mut self.use_experience)),
            ("write_experience", Switch(&mut self.write_experience)),
            (
                "max_dialog_turns",
                Count(&mut self.max_dialog_turns, most.turns),
            ),
            ("max_docs", Count(&mut self.max_docs, most.hits)),
            ("max_skills", Count(&mut self.max_skills, most.hits)),
            ("max_steps", Count(&mut self.max_steps, most.steps)),
            ("learn", Switch(&mut self.learn)),
            ("learn_approval", Switch(&mut self.learn_approval)),
            (
                "learn_candidate_runs",
                Count(&mut self.learn_candidate_runs, limits::LEARN_RUNS),
            ),
            (
                "learn_active_runs",
                Count(&mut self.learn_active_runs, limits::LEARN_RUNS),
            ),
            ("learn_support", Count(&mut self.learn_support, 100)),
            ("learn_confidence", Count(&mut self.learn_confidence, 100)),
            ("learn_complexity", Count(&mut self.learn_complexity, 6)),
            (
                "learn_settle_minutes",
                Count(&mut self.learn_settle_minutes, 7 * 24 * 60),
            ),
        ]
    }

    /// The value of a key, for people and programs; `None` for a key that there is not.
    pub fn get(&self, key: &str) -> Option<Value> {
        Some(match self.clone().slot(key)? {
            Slot::Switch(value) => json!(*value),
            Slot::Count(value, _) => json!(*value),
            Slot::Limit(value) => json!(*value),
        })
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), Invalid> {
        let wrong = |what: String| Err(Invalid::new(key, what));
        let shown = text.escape_debug();
        match self.slot(key) {
            None => {
                let known = Self::keys().join(", ");
                wrong(format!("is not a key of a policy; the keys are: {known}"))
            }
            Some(Slot::Switch(value)) => match text.parse() {
                Ok(given) => {
                    *value = given;
                    Ok(())
                }
                Err(_) => wrong(format!("`{shown}` is neither true nor false")),
            },
            Some(Slot::Count(value, most)) => match text.parse() {
                Ok(given) if given <= most => {
                    *value = given;
                    Ok(())
                }
                _ => wrong(format!("`{shown}` is not a number from 0 to {most}")),
            },
            Some(Slot::Limit(value)) => match text.parse() {
                Ok(given) => {
                    *value = Some(given);
                    Ok(())
                }
                Err(_) if text == NONE => {
                    *value = None;
                    Ok(())
                }
                Err(_) => wrong(format!(
                    "`{shown}` is not a number, 0 or more, or \"{NONE}\" for no limit"
                )),
            },
        }
    }
}

/// Whom a part of the policies is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Whom {
    pub flow: Option<String>,
    pub agent: Option<String>,
}

impl Whom {
    /// Everybody.
    pub fn all() -> Self {
        Self::default()
    }

    /// Every agent in this flow.
    pub fn flow(flow: impl Into<String>) -> Self {
        Self {
            flow: Some(flow.into()),
            agent: None,
        }
    }

    /// This agent in every flow.
    pub fn agent(agent: impl Into<String>) -> Self {
        Self {
            flow: None,
            agent: Some(agent.into()),
        }
    }

    /// This agent in this flow.
    pub fn both(flow: impl Into<String>, agent: impl Into<String>) -> Self {
        Self {
            flow: Some(flow.into()),
            agent: Some(agent.into()),
        }
    }

    fn means(&self, flow: Option<&str>, agent: Option<&str>) -> bool {
        let fits = |wanted: &Option<String>, given: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == given
        };
        fits(&self.flow, flow) && fits(&self.agent, agent)
    }

    /// The greater, the more specific.
    fn weight(&self) -> u8 {
        u8::from(self.flow.is_some()) + 2 * u8::from(self.agent.is_some())
    }
}

impl fmt::Display for Whom {
    /// As the table is called in `mnemon.toml`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.flow, &self.agent) {
            (None, None) => f.write_str("policy.default"),
            (Some(flow), None) => write!(f, "policy.{flow}"),
            (None, Some(agent)) => write!(f, "policy.agents.{agent}"),
            (Some(flow), Some(agent)) => write!(f, "policy.{flow}.agents.{agent}"),
        }
    }
}

/// What was said about policies, by whom it is for. For a call, what is said about everybody
/// counts least, then about its flow, then about its agent, and most what is said about its agent
/// in its flow; each key for itself.
///
/// ```
/// use mnemon_engine::{Policies, Whom};
/// let mut policies = Policies::default();
/// policies.set(Whom::flow("smart_buyer"), "max_docs", "8")?;
/// policies.set(Whom::agent("planner"), "max_skills", "5")?;
/// let policy = policies.of(Some("smart_buyer"), Some("planner"));
/// assert_eq!((policy.max_docs, policy.max_skills, policy.max_dialog_turns), (8, 5, 20));
/// # Ok::<(), mnemon_core::Invalid>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policies {
    /// The least specific first; among equals in the order they were said.
    said: Vec<(Whom, String, String)>,
}

/// One value of a policy that applies, and who said so.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    pub key: String,
    pub value: Value,
    /// `None`: nobody did, it is the built-in default.
    pub from: Option<Whom>,
}

impl Policies {
    /// Says something about a key, like a line in the file does: `max_docs`, `8`. What is not a
    /// key or not a value for it is refused.
    pub fn set(&mut self, whom: Whom, key: &str, value: &str) -> Result<(), Invalid> {
        MemoryPolicy::default().set(key, value)?;
        let at = self
            .said
            .partition_point(|(known, ..)| known.weight() <= whom.weight());
        self.said
            .insert(at, (whom, key.to_owned(), value.to_owned()));
        Ok(())
    }

    /// The policy for a call from this flow and agent. One that was never spoken of gets the
    /// default.
    pub fn of(&self, flow: Option<&str>, agent: Option<&str>) -> MemoryPolicy {
        let mut policy = MemoryPolicy::default();
        for (whom, key, value) in &self.said {
            if whom.means(flow, agent) {
                // It was checked when it was said.
                let _ = policy.set(key, value);
            }
        }
        policy
    }

    /// What is asked of evidence before something is learnt from it: as it is said about
    /// everybody, since one type of task is done in many flows.
    pub fn learning(&self) -> LearnSettings {
        let policy = self.of(None, None);
        LearnSettings {
            candidate_runs: policy.learn_candidate_runs,
            active_runs: policy.learn_active_runs,
            support: policy.learn_support as f64 / 100.0,
            confidence: policy.learn_confidence as f64 / 100.0,
            complexity: u32::try_from(policy.learn_complexity).unwrap_or(u32::MAX),
            approval: policy.learn_approval,
            settle_ms: i64::try_from(policy.learn_settle_minutes).unwrap_or(0) * 60_000,
        }
    }

    /// The same, with who said what.
    pub fn explain(&self, flow: Option<&str>, agent: Option<&str>) -> Vec<Applied> {
        let policy = self.of(flow, agent);
        let keys = MemoryPolicy::keys().into_iter();
        keys.map(|key| {
            let mut said = self.said.iter().rev();
            let last = said.find(|(whom, known, _)| *known == key && whom.means(flow, agent));
            Applied {
                value: policy.get(&key).unwrap_or_default(),
                from: last.map(|(whom, ..)| whom.clone()),
                key,
            }
        })
        .collect()
    }

    /// Everything that was said, in the order in which it counts.
    pub fn said(&self) -> impl Iterator<Item = (&Whom, &str, &str)> {
        let said = self.said.iter();
        said.map(|(whom, key, value)| (whom, key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests;
