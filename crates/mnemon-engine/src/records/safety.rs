//! What is kept out of the memory: secrets, and what came from the memory itself.
//!
//! Every text that comes from outside is looked through once, at the door that it comes in by:
//! [`Records::put`](crate::records::Records::put), and the few doors that write files. What is stored after
//! that is never changed.

use mnemon_core::secrets::{self, Secret, SecretPolicy};
use mnemon_core::{Id, Invalid, Kind, Origin, Record, recall_marks};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::records::Draft;

/// How a memory guards what is written, whichever way it comes in.
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

/// What was taken out of what is written.
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
    /// Takes out what came from the memory itself, if this is said to be remembered. What is left
    /// may be empty.
    pub(crate) fn unecho(draft: &mut Draft, taken: &mut TakenOut) {
        if is_said(draft.kind)
            && let Some(stripped) = recall_marks::strip(&draft.content)
        {
            draft.content = stripped.rest;
            taken.ids = stripped.ids;
            taken.recalled = true;
        }
    }

    /// Whether the draft would be written; the error says why not. A door that reads many drafts
    /// asks this of each of them before it writes the first.
    pub fn check(self, draft: &Draft) -> Result<(), Invalid> {
        match self.secrets {
            SecretPolicy::Refuse => self.screen(&mut draft.clone(), &mut TakenOut::default()),
            SecretPolicy::Mask => self.check_ids(draft),
            SecretPolicy::Allow => Ok(()),
        }
    }

    fn check_ids(self, draft: &Draft) -> Result<(), Invalid> {
        if let Some(id) = &draft.id {
            self.check_identifier("id", id.as_str())?;
        }
        // Derived records link to what is stored already.
        if draft.origin == Some(Origin::Derived) {
            return Ok(());
        }
        let mut links = draft.derived_from.iter();
        links.try_for_each(|id| self.check_identifier("derived_from", id.as_str()))
    }

    /// Refuses an id or an idempotency key that holds a secret, unless secrets are allowed: a
    /// masked one would name something else.
    pub(crate) fn check_identifier(self, field: &str, name: &str) -> Result<(), Invalid> {
        if self.secrets == SecretPolicy::Allow {
            return Ok(());
        }
        match secrets::find_in_identifier(name) {
            None => Ok(()),
            Some(secret) => Err(Invalid::new(
                field,
                format!("holds a secret ({}); choose another name", secret.kind),
            )),
        }
    }

    /// Takes the secrets out of a draft, or refuses it.
    pub(crate) fn screen(self, draft: &mut Draft, taken: &mut TakenOut) -> Result<(), Invalid> {
        self.check_ids(draft)?;
        let derived = draft.origin == Some(Origin::Derived);
        let mut fields = Fields {
            content: &mut draft.content,
            summary: &mut draft.summary,
            source: &mut draft.source,
            tags: &mut draft.tags,
            metadata: &mut draft.metadata,
            body: &mut draft.body,
        };
        self.for_origin(derived).clean_all(&mut fields, taken)
    }

    /// The same for a record.
    pub(crate) fn screen_record(
        self,
        record: &mut Record,
        taken: &mut TakenOut,
    ) -> Result<(), Invalid> {
        let derived = record.origin == Origin::Derived;
        let mut fields = Fields {
            content: &mut record.content,
            summary: &mut record.summary,
            source: &mut record.source,
            tags: &mut record.tags,
            metadata: &mut record.metadata,
            body: &mut record.body,
        };
        self.for_origin(derived).clean_all(&mut fields, taken)
    }

    /// What we make ourselves from what is stored is never refused: it may be older than the
    /// policy, and nobody is there who could say it otherwise.
    fn for_origin(self, derived: bool) -> Self {
        match derived {
            true => self.never_refusing(),
            false => self,
        }
    }

    /// The same, but masking where it would refuse.
    pub(crate) fn never_refusing(self) -> Self {
        match self.secrets {
            SecretPolicy::Refuse => Self {
                secrets: SecretPolicy::Mask,
            },
            _ => self,
        }
    }

    /// A text that goes to a file.
    pub(crate) fn clean_text(
        self,
        field: &str,
        text: &str,
        taken: &mut TakenOut,
    ) -> Result<String, Invalid> {
        let mut text = text.to_owned();
        self.clean(field, &mut text, taken)?;
        Ok(text)
    }

    /// A text that takes the place of `base`: what was there already is nothing new.
    pub(crate) fn clean_change(
        self,
        field: &str,
        text: &str,
        base: &str,
        taken: &mut TakenOut,
    ) -> Result<String, Invalid> {
        if self.secrets == SecretPolicy::Allow {
            return Ok(text.to_owned());
        }
        let mut found = secrets::find(text);
        found.retain(|secret| {
            let secret = text.get(secret.start..secret.end);
            secret.is_some_and(|secret| !base.contains(secret))
        });
        match found.first() {
            Some(first) if self.secrets == SecretPolicy::Refuse => {
                Err(refusal(field, text, first, found.len()))
            }
            _ => {
                taken.found(&found);
                Ok(secrets::mask(text, &found))
            }
        }
    }

    /// Anything that has a form in JSON and goes to a file. What holds no secret comes back as it
    /// is.
    pub(crate) fn clean_value<T>(
        self,
        field: &str,
        value: &T,
        taken: &mut TakenOut,
    ) -> Result<T, Invalid>
    where
        T: Serialize + DeserializeOwned + Clone,
    {
        let unreadable = |error: serde_json::Error| Invalid::new(field, error.to_string());
        let mut json = serde_json::to_value(value).map_err(unreadable)?;
        let mut own = TakenOut::default();
        self.clean_json(field, &mut json, &mut own)?;
        if own.secrets.is_empty() {
            return Ok(value.clone());
        }
        taken.name(&own.secrets);
        serde_json::from_value(json).map_err(unreadable)
    }

    fn clean_all(self, fields: &mut Fields<'_>, taken: &mut TakenOut) -> Result<(), Invalid> {
        if self.secrets == SecretPolicy::Allow {
            return Ok(());
        }
        self.clean("content", fields.content, taken)?;
        for (field, text) in [
            ("summary", &mut *fields.summary),
            ("source", &mut *fields.source),
        ] {
            if let Some(text) = text {
                self.clean(field, text, taken)?;
            }
        }
        self.clean_tags(fields.tags, taken)?;
        self.clean_map("metadata", fields.metadata, taken)?;
        if let Some(body) = fields.body {
            self.clean_json("body", body, taken)?;
        }
        Ok(())
    }

    /// A tag has no room for a sentence: one that holds a secret becomes a short mark.
    fn clean_tags(self, tags: &mut Vec<String>, taken: &mut TakenOut) -> Result<(), Invalid> {
        let before = tags.len();
        let mut kept: Vec<String> = Vec::with_capacity(before);
        for mut tag in std::mem::take(tags) {
            let mut own = TakenOut::default();
            self.clean("tags", &mut tag, &mut own)?;
            if own.secrets.is_empty() {
                kept.push(tag);
            } else {
                taken.name(&own.secrets);
                kept.push(REMOVED_TAG.to_owned());
            }
        }
        let mut marked = false;
        kept.retain(|tag| tag != REMOVED_TAG || !std::mem::replace(&mut marked, true));
        *tags = kept;
        Ok(())
    }

    fn clean(self, field: &str, text: &mut String, taken: &mut TakenOut) -> Result<(), Invalid> {
        self.clean_named(field, None, text, taken)
    }

    /// Texts in JSON, and what their names say: `{"api_key": "…"}`.
    fn clean_json(
        self,
        field: &str,
        value: &mut Value,
        taken: &mut TakenOut,
    ) -> Result<(), Invalid> {
        if self.secrets == SecretPolicy::Allow {
            return Ok(());
        }
        // An explicit stack: deep input must not overflow ours.
        let mut open: Vec<(Option<String>, &mut Value)> = vec![(None, value)];
        while let Some((name, value)) = open.pop() {
            match value {
                Value::String(text) => self.clean_named(field, name.as_deref(), text, taken)?,
                Value::Number(number) if number.as_u64().is_some_and(|it| it >= CARD_FROM) => {
                    let mut text = number.to_string();
                    let is_id = name.is_some_and(|name| name.to_ascii_lowercase().ends_with("id"));
                    if !is_id {
                        self.clean(field, &mut text, taken)?;
                    }
                    if text != number.to_string() {
                        *value = Value::String(text);
                    }
                }
                Value::Array(items) => {
                    open.extend(items.iter_mut().map(|item| (name.clone(), item)));
                }
                Value::Object(map) => {
                    self.clean_names(field, map, taken)?;
                    let members = map.iter_mut();
                    open.extend(members.map(|(name, item)| (Some(name.clone()), item)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn clean_map(
        self,
        field: &str,
        map: &mut Map<String, Value>,
        taken: &mut TakenOut,
    ) -> Result<(), Invalid> {
        if map.is_empty() {
            return Ok(());
        }
        let mut value = Value::Object(std::mem::take(map));
        self.clean_json(field, &mut value, taken)?;
        if let Value::Object(clean) = value {
            *map = clean;
        }
        Ok(())
    }

    /// Names of members that are themselves secrets.
    fn clean_names(
        self,
        field: &str,
        map: &mut Map<String, Value>,
        taken: &mut TakenOut,
    ) -> Result<(), Invalid> {
        let holds = |name: &String| !secrets::find(name).is_empty();
        let wrong: Vec<String> = map.keys().filter(|name| holds(name)).cloned().collect();
        for name in wrong {
            let clean = self.clean_text(field, &name, taken)?;
            let Some(value) = map.remove(&name) else {
                continue;
            };
            // Two names may have become the same.
            let mut free = clean.clone();
            let mut number = 1;
            while map.contains_key(&free) {
                number += 1;
                free = format!("{clean} {number}");
            }
            map.insert(free, value);
        }
        Ok(())
    }

    fn clean_named(
        self,
        field: &str,
        name: Option<&str>,
        text: &mut String,
        taken: &mut TakenOut,
    ) -> Result<(), Invalid> {
        if self.secrets == SecretPolicy::Allow {
            return Ok(());
        }
        let found = match name {
            Some(name) => secrets::find_under(name, text),
            None => secrets::find(text),
        };
        let Some(first) = found.first() else {
            return Ok(());
        };
        if self.secrets == SecretPolicy::Refuse {
            return Err(refusal(field, text, first, found.len()));
        }
        *text = secrets::mask(text, &found);
        taken.found(&found);
        Ok(())
    }
}

/// The smallest number that may be a payment card's.
const CARD_FROM: u64 = 1_000_000_000_000;

/// What stands in the place of a tag that was a secret.
const REMOVED_TAG: &str = "secret-removed";

/// All of a record that somebody else has worded.
struct Fields<'a> {
    content: &'a mut String,
    summary: &'a mut Option<String>,
    source: &'a mut Option<String>,
    tags: &'a mut Vec<String>,
    metadata: &'a mut Map<String, Value>,
    body: &'a mut Option<Value>,
}

impl TakenOut {
    fn found(&mut self, found: &[Secret]) {
        let kinds: Vec<&'static str> = found.iter().map(|secret| secret.kind).collect();
        self.name(&kinds);
    }

    fn name(&mut self, found: &[&'static str]) {
        for what in found {
            if !self.secrets.contains(what) {
                self.secrets.push(what);
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
                "Text recalled from memory was omitted; only what is new was stored.".to_owned(),
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
    let kind = first.kind;
    Invalid::new(
        field,
        format!(
            "holds a secret in line {line} ({kind}){more}; take it out, or name where it is kept \
             instead"
        ),
    )
}

/// Whether such a record says what somebody wants to be remembered, so that it may be an echo.
pub(crate) fn is_said(kind: Option<Kind>) -> bool {
    matches!(
        kind.unwrap_or(Kind::Note),
        Kind::Note | Kind::Fact | Kind::Decision | Kind::Learning | Kind::Rule | Kind::Skill
    )
}
