//! A webhook as two records of the system tenant.

use std::fmt;
use std::sync::atomic::Ordering;

use mnemon_core::{
    Batch, Ctx, Expect, Filter, Id, Invalid, Kind, Op, Origin, Policy, Record, Right, StoreError,
    Tenant, Time,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{DEAD_LETTERS, MOST_IN_ALL, Webhook, Webhooks};
use crate::records::Error;

const DEFINITION: &str = "webhook-";
const PROGRESS: &str = "webhook-progress-";
const TAG: &str = "webhook";
/// Days for which old versions of the system tenant's records are kept.
const HISTORY_DAYS: i64 = 1;
/// Old versions are dropped after so many writes of progress, and so many at once.
const TIDY_EVERY: u64 = 100;
const TIDIED: usize = 1_000;

/// A secret that cannot be printed by accident.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new(secret: String) -> Self {
        Self(secret)
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a webhook sends what. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Definition {
    pub(super) tenant: Tenant,
    pub(super) url: String,
    pub(super) secret: Secret,
    pub(super) filter: Filter,
    pub(super) created: Time,
}

/// How far a webhook has come. A record of its own, so that the history of its versions does not
/// repeat the secret.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    pub(super) reached: u64,
    pub(super) failures: u32,
    pub(super) next_attempt: Option<Time>,
    pub(super) last_error: Option<String>,
    pub(super) dead_letters: Vec<DeadLetter>,
    pub(super) dropped_letters: u64,
    pub(super) last_letter: u64,
    /// The last change of a delivery that has begun and not ended: its attempts send the changes
    /// after `reached` up to this one.
    pub(super) range_end: Option<u64>,
    pub(super) lease: Option<Lease>,
}

/// Which process sends, and until when no other one may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    pub(super) holder: String,
    pub(super) until: Time,
}

/// A delivery that was given up: the changes after one number, up to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub number: u64,
    pub after: u64,
    pub reached: u64,
    pub at: Time,
    pub attempts: u32,
    pub error: String,
}

impl Progress {
    /// Ends the delivery that has begun, if any: the next one has the changes after `reached`.
    pub(super) fn go_on(&mut self, reached: u64) {
        (self.reached, self.range_end) = (reached, None);
        (self.failures, self.next_attempt) = (0, None);
    }

    /// Gives up a delivery. The oldest letter goes when there are too many.
    pub(super) fn give_up(&mut self, letter: DeadLetter) {
        self.last_letter = letter.number;
        self.dead_letters.push(letter);
        let over = self.dead_letters.len().saturating_sub(DEAD_LETTERS);
        self.dead_letters.drain(..over);
        self.dropped_letters += over as u64;
    }
}

/// A webhook as it is kept.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) id: Id,
    progress_id: Id,
    /// The version of its progress; 0 before it is written.
    version: u64,
    pub(super) definition: Definition,
    pub(super) progress: Progress,
}

impl Stored {
    pub(super) fn new(
        name: &Id,
        definition: Definition,
        progress: Progress,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            id: format!("{DEFINITION}{name}").parse()?,
            progress_id: format!("{PROGRESS}{name}").parse()?,
            version: 0,
            definition,
            progress,
        })
    }

    pub(super) fn shown(&self) -> Webhook {
        let (definition, progress) = (self.definition.clone(), self.progress.clone());
        Webhook {
            id: self.id.clone(),
            tenant: definition.tenant,
            url: definition.url,
            filter: definition.filter,
            created: definition.created,
            reached: progress.reached,
            failures: progress.failures,
            next_attempt: progress.next_attempt,
            last_error: progress.last_error,
            dead_letters: progress.dead_letters,
            dropped_letters: progress.dropped_letters,
        }
    }
}

impl Webhooks {
    /// The same call on the system tenant, as a commit of its own.
    fn system(ctx: &Ctx) -> Ctx {
        Ctx {
            tenant: Tenant::system(),
            group: None,
            ..ctx.clone()
        }
    }

    /// All webhooks, oldest first.
    pub(super) async fn stored(&self, ctx: &Ctx) -> Result<Vec<Stored>, Error> {
        let system = Self::system(ctx);
        let grant = self.records.policy.check_system(&system, Right::Read)?;
        // Progress records share the beginning of the id.
        let ids = self
            .records
            .store
            .ids_with_prefix(&grant, DEFINITION, 2 * MOST_IN_ALL)
            .await?;
        let is_definition = |id: &Id| !id.as_str().starts_with(PROGRESS);
        let ids: Vec<Id> = ids.into_iter().filter(is_definition).collect();
        self.load(ctx, &ids).await
    }

    /// The webhooks with these ids, as far as they exist.
    pub(super) async fn load(&self, ctx: &Ctx, ids: &[Id]) -> Result<Vec<Stored>, Error> {
        let system = Self::system(ctx);
        let names = ids
            .iter()
            .filter_map(|id| id.as_str().strip_prefix(DEFINITION));
        let progress: Vec<Id> = names
            .map(|name| format!("{PROGRESS}{name}").parse())
            .collect::<Result<_, Invalid>>()?;
        if progress.len() != ids.len() {
            return Ok(Vec::new());
        }
        let grant = self.records.policy.check_system(&system, Right::Read)?;
        let definitions = self.records.get_granted(&grant, ids).await?;
        let states = self.records.get_granted(&grant, &progress).await?;
        let pairs = definitions.into_iter().zip(states);
        pairs
            .filter_map(|(definition, progress)| Some((definition?, progress?)))
            .map(|(definition, progress)| {
                Ok(Stored {
                    version: progress.version,
                    progress_id: progress.id.clone(),
                    progress: read(&progress)?,
                    definition: read(&definition)?,
                    id: definition.id,
                })
            })
            .collect()
    }

    pub(super) async fn insert(&self, ctx: &Ctx, stored: &Stored) -> Result<(), Error> {
        let definition = record(ctx, &stored.id, &stored.definition)?;
        let progress = record(ctx, &stored.progress_id, &stored.progress)?;
        let ops = vec![Op::append(definition), Op::append(progress)];
        self.write(ctx, Right::Write, ops).await
    }

    pub(super) async fn erase(&self, ctx: &Ctx, stored: &Stored) -> Result<(), Error> {
        let ids = [&stored.id, &stored.progress_id].map(Id::clone);
        let ops = ids.map(|id| Op::Purge { id }).to_vec();
        self.write(ctx, Right::Purge, ops).await
    }

    /// Writes the progress down; `false` if another process has written it meanwhile, or the
    /// webhook was deleted.
    pub(super) async fn save(&self, ctx: &Ctx, stored: &mut Stored) -> Result<bool, Error> {
        let progress = record(ctx, &stored.progress_id, &stored.progress)?;
        let op = Op::put_if(progress, Expect::Version(stored.version));
        match self.write(ctx, Right::Write, vec![op]).await {
            Ok(()) => {
                stored.version += 1;
                if self.saves.fetch_add(1, Ordering::Relaxed) % TIDY_EVERY == TIDY_EVERY - 1 {
                    self.tidy(ctx).await?;
                }
                Ok(true)
            }
            Err(Error::Store(StoreError::Conflict { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Drops old versions of the system tenant's records, whatever the policy keeps of others:
    /// every delivery leaves one.
    async fn tidy(&self, ctx: &Ctx) -> Result<(), Error> {
        let policy = Policy {
            history_days: Some(HISTORY_DAYS),
            ..self.records.policy.clone()
        };
        let grant = policy.check_system(&Self::system(ctx), Right::Write)?;
        self.records.store.upkeep(&grant, TIDIED).await?;
        Ok(())
    }

    /// Neither screened for secrets nor embedded: nobody searches these records.
    async fn write(&self, ctx: &Ctx, right: Right, ops: Vec<Op>) -> Result<(), Error> {
        let grant = self
            .records
            .policy
            .check_system(&Self::system(ctx), right)?;
        self.records.commit(&grant, Batch::from(ops)).await?;
        Ok(())
    }
}

/// A record of the system tenant, which does not expire whatever the retention says.
fn record(ctx: &Ctx, id: &Id, body: &impl Serialize) -> Result<Record, Error> {
    let body = serde_json::to_value(body)
        .map_err(|error| StoreError::Internal(format!("a webhook cannot be written: {error}")))?;
    Ok(Record {
        body: Some(body),
        tags: vec![TAG.to_owned()],
        origin: Origin::Derived,
        ..Record::new(id.clone(), &Webhooks::system(ctx), Kind::State, "")
    })
}

fn read<T: DeserializeOwned>(record: &Record) -> Result<T, Error> {
    let body = record.body.clone().unwrap_or_default();
    serde_json::from_value(body).map_err(|error| {
        let what = format!("record {} is not a webhook: {error}", record.id);
        StoreError::Internal(what).into()
    })
}
