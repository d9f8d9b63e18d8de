//! What is kept out of the memory: secrets, and what came from the memory itself.

use mnemon_core::secrets::{self, Secret, SecretPolicy};
use mnemon_core::{Id, Invalid, Kind, recalled};
use serde_json::Value;

use crate::Draft;

/// How a memory guards what is written. It is for what people and models say to be remembered;
/// conversations, documents and states are kept as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Safety {
    pub secrets: SecretPolicy,
}

impl Default for Safety {
    /// Masking: what was worth noting is noted, and the secret is in no store, log or backup. A
    /// refusal would lose the note, or have a model try until it gets through.
    fn default() -> Self {
        Self {
            secrets: SecretPolicy::Mask,
        }
    }
}

/// What was taken out of a draft.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TakenOut {
    /// What the secrets were, each sort once.
    pub(crate) secrets: Vec<&'static str>,
    /// Whether something was recalled text.
    pub(crate) recalled: bool,
    /// The records that it named.
    pub(crate) ids: Vec<Id>,
}

impl Safety {
    /// Takes out what may not be written, or refuses the draft. What is left may be empty.
    pub(crate) fn screen(self, draft: &mut Draft) -> Result<TakenOut, Invalid> {
        let mut taken = TakenOut::default();
        if let Some(stripped) = recalled::strip(&draft.content) {
            draft.content = stripped.rest;
            taken.ids = stripped.ids;
            taken.recalled = true;
        }
        if self.secrets == SecretPolicy::Allow {
            return Ok(taken);
        }
        self.clean("content", &mut draft.content, &mut taken)?;
        if let Some(summary) = &mut draft.summary {
            self.clean("summary", summary, &mut taken)?;
        }
        if let Some(source) = &mut draft.source {
            self.clean("source", source, &mut taken)?;
        }
        for (name, value) in &mut draft.metadata {
            self.clean_json(name, value, &mut taken)?;
        }
        Ok(taken)
    }

    fn clean(self, field: &str, text: &mut String, taken: &mut TakenOut) -> Result<(), Invalid> {
        let found = secrets::find(text);
        let Some(first) = found.first() else {
            return Ok(());
        };
        if self.secrets == SecretPolicy::Refuse {
            return Err(refusal(field, text, first, found.len()));
        }
        *text = secrets::mask(text, &found);
        taken.name(&found);
        Ok(())
    }

    /// Texts in metadata, and what its names say: `{"api_key": "…"}`.
    fn clean_json(
        self,
        name: &str,
        value: &mut Value,
        taken: &mut TakenOut,
    ) -> Result<(), Invalid> {
        // An explicit stack: deep input must not overflow ours.
        let mut open = vec![(name.to_owned(), value)];
        while let Some((name, value)) = open.pop() {
            match value {
                Value::String(text) => self.clean_named(&name, text, taken)?,
                Value::Array(items) => {
                    open.extend(items.iter_mut().map(|item| (name.clone(), item)));
                }
                Value::Object(map) => {
                    open.extend(map.iter_mut().map(|(name, item)| (name.clone(), item)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn clean_named(
        self,
        name: &str,
        text: &mut String,
        taken: &mut TakenOut,
    ) -> Result<(), Invalid> {
        let said = format!("{name}=");
        let mut whole = format!("{said}{text}");
        let before = taken.secrets.len();
        self.clean("metadata", &mut whole, taken)?;
        if taken.secrets.len() > before || !whole.ends_with(text.as_str()) {
            *text = whole.strip_prefix(&said).unwrap_or(&whole).to_owned();
        }
        Ok(())
    }
}

impl TakenOut {
    fn name(&mut self, found: &[Secret]) {
        for secret in found {
            if !self.secrets.contains(&secret.what) {
                self.secrets.push(secret.what);
            }
        }
    }

    /// What was taken out, in sentences.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let mut told = Vec::new();
        if !self.secrets.is_empty() {
            let what = self.secrets.join(", ");
            told.push(format!(
                "A secret was found and taken out before it was stored: {what}."
            ));
        }
        if self.recalled {
            told.push(
                "What came from memory was left out; only what is new was stored.".to_owned(),
            );
        }
        told
    }
}

fn refusal(field: &str, text: &str, first: &Secret, count: usize) -> Invalid {
    let before = text.get(..first.start).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let more = match count {
        1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    let what = first.what;
    Invalid::new(
        field,
        format!(
            "holds a secret in line {line} ({what}){more}; take it out, or name where it is kept \
             instead"
        ),
    )
}

/// Kinds that say what somebody wants to be remembered.
pub(crate) fn is_guarded(kind: Option<Kind>) -> bool {
    matches!(
        kind.unwrap_or(Kind::Note),
        Kind::Note | Kind::Fact | Kind::Decision | Kind::Learning | Kind::Rule | Kind::Skill
    )
}
