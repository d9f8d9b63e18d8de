//! Who acts, and what is checked of every answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use mnemon_core::{Ctx, ErrorKind, Id, Kind, Namespace, Owner, Record};
use mnemon_engine::{Draft, Error, Memory};
use mnemon_testkit::simulator::{Random, Read, Sim, UNIQUE};

use super::TENANTS;

/// A user of a tenant in a session, at the moment at which an operation begins.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) sim: Sim,
    pub(super) memory: Arc<Memory>,
    pub(super) ctx: Ctx,
    pub(super) user: &'static str,
    pub(super) session: &'static str,
}

impl Actor {
    pub(super) fn tenant(&self) -> &'static str {
        let name = self.ctx.tenant.as_str();
        TENANTS.into_iter().find(|tenant| *tenant == name).unwrap()
    }

    /// Marks the beginning of an operation.
    pub(super) fn begin(&self) -> Read {
        self.sim.lock().model.begin()
    }

    /// The records of the tenant that are live.
    pub(super) fn live(&self) -> Vec<Record> {
        let state = self.sim.lock();
        state
            .model
            .live(&self.ctx.tenant, self.ctx.now)
            .cloned()
            .collect()
    }

    /// The record as the model has it.
    pub(super) fn model_get(&self, id: &Id) -> Option<Record> {
        let state = self.sim.lock();
        state.model.get(&self.ctx.tenant, id, self.ctx.now).cloned()
    }

    pub(super) fn was_touched(&self, id: &Id, since: Read) -> bool {
        self.sim
            .lock()
            .model
            .was_touched(&self.ctx.tenant, id, since)
    }

    /// The id of a live record of the tenant.
    pub(super) fn some_id(&self, random: &mut Random) -> Option<Id> {
        let live = self.live();
        random.pick(&live).map(|record| record.id.clone())
    }

    /// Ids of live records of the tenant, sometimes one that is not there.
    pub(super) fn some_ids(&self, random: &mut Random, most: u64) -> Vec<Id> {
        let count = 1 + random.below(most);
        let ids = (0..count).filter_map(|_| self.some_id(random));
        ids.collect::<BTreeSet<Id>>().into_iter().collect()
    }

    /// Something to remember that begins with this word.
    pub(super) fn draft(&self, random: &mut Random, word: String) -> Draft {
        let sources = match random.below(4) {
            0 => self.some_ids(random, 2),
            _ => Vec::new(),
        };
        let lives_ms = i64::try_from(1 + random.below(5000)).unwrap();
        Draft {
            owner: Owner {
                user: random.chance(70).then(|| self.user.to_owned()),
                session: random.chance(20).then(|| self.session.to_owned()),
                ..Owner::default()
            },
            kind: Some([Kind::Note, Kind::Fact, Kind::Decision][random.index(3)]),
            namespace: Some(Namespace::ALL[random.index(2)]),
            importance: Some(random.below(5) as f64 / 4.0),
            expires: random
                .chance(15)
                .then(|| self.ctx.now.plus_millis(lives_ms)),
            derived_from: sources,
            ..Draft::note(format!("{word} drinks green tea"))
        }
    }

    /// Only an injected fault, or a reason that the operation names, makes a call fail.
    pub(super) fn explain(&self, error: &Error, expected: &[ErrorKind]) -> Result<(), String> {
        let kind = error.kind();
        let is_injected = self.sim.was_struck(self.sim.running());
        let is_outside = matches!(kind, ErrorKind::Unavailable) || matches!(error, Error::Embed(_));
        match (is_injected && is_outside) || expected.contains(&kind) {
            true => Ok(()),
            false => Err(format!("failed without reason ({kind:?}): {error}")),
        }
    }

    /// An embedder that failed is named in the notices of the call, which went on without it.
    pub(super) fn check_embedder_notice(&self) -> Result<(), String> {
        let is_missing = self.ctx.notices.list().is_empty();
        match self.sim.has_embedder_failed(self.sim.running()) && is_missing {
            true => Err("the embedder failed and no notice says so".to_owned()),
            false => Ok(()),
        }
    }

    /// Whether the answer may contain the record.
    pub(super) fn check_shown(&self, since: Read, record: &Record) -> Result<(), String> {
        let state = self.sim.lock();
        let (tenant, now) = (&self.ctx.tenant, self.ctx.now);
        state.model.check_shown(since, tenant, now, record)
    }

    /// Every word in an answer stands in a live record that this user may see.
    pub(super) fn check_words(
        &self,
        since: Read,
        answer: &impl serde::Serialize,
    ) -> Result<(), String> {
        let text = serde_json::to_string(answer).unwrap();
        let state = self.sim.lock();
        let records = state.model.live(&self.ctx.tenant, self.ctx.now);
        let records: Vec<(String, Option<String>)> = records
            .map(|record| {
                let text = serde_json::to_string(record).unwrap();
                (text, record.owner.user.clone())
            })
            .collect();
        for word in words(&text) {
            let mut owners = records.iter().filter(|(text, _)| has_word(text, &word));
            let is_own =
                |user: &Option<String>| user.as_deref().is_none_or(|user| user == self.user);
            if owners.clone().any(|(_, user)| is_own(user)) {
                continue;
            }
            if owners.next().is_some() {
                return Err(format!("{word} of another user was shown to {}", self.user));
            }
            if !state.model.has_changed(since) {
                return Err(format!("{word} was shown and stands in no live record"));
            }
        }
        Ok(())
    }
}

/// The words of a text that only one record has.
fn words(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    let unique = parts.filter(|part| {
        let number = part.strip_prefix(UNIQUE);
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    });
    unique.map(str::to_owned).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| part == word)
}
