//! Messages that a service did not take, kept in our own store until it does.
//!
//! An entry is a record of its owner, written before the caller is answered: it survives the process
//! and goes with its owner. The state of the queue is one record: after a failure of the service all
//! entries wait, each time twice as long. An entry that the service rejects waits by itself, and is
//! given up after [`ATTEMPTS`]; it stays in the outbox and is counted. Delivery is at least once.
//!
//! The engine has no timer: upkeep calls [`Outbox::deliver`].

use std::collections::BTreeMap;

use mnemon_core::longterm::{LongTerm, LongTermError};
use mnemon_core::{
    Batch, Ctx, Expect, Id, Invalid, Message, Op, Owner, Record, Right, StoreError, Time,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::own::failed;
use super::remote::silent;
use crate::records::naming::fixed_id;
use crate::records::undo::as_index;
use crate::records::{Draft, Error, Records};

/// How the ids of entries begin; the rest is in the order of time.
const ENTRY: &str = "remote-outbox-";
/// Entries of a tenant. When there are more, the call fails and says why.
const MOST_WAITING: usize = 10_000;
/// Deliveries of an entry that the service rejects, after the recording itself.
pub const ATTEMPTS: u32 = 8;
/// The wait after the first failure; it doubles up to [`MOST_WAIT_MS`].
pub const FIRST_WAIT_MS: i64 = 10_000;
pub const MOST_WAIT_MS: i64 = 3_600_000;
/// Entries that one call sends at most, and how long no other process sends meanwhile.
const SLICE: usize = 20;
const LEASE_MS: i64 = 600_000;
/// Bytes of an error message that are kept.
const ERROR_BYTES: usize = 300;

/// Messages that wait for a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    service: String,
    messages: Vec<Message>,
}

/// How the queue of a tenant is doing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Queue {
    failures: u32,
    next_attempt: Option<Time>,
    last_error: Option<String>,
    lease_until: Option<Time>,
    rejected: BTreeMap<Id, Rejection>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Rejection {
    attempts: u32,
    next_attempt: Option<Time>,
}

/// How many messages wait, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutboxState {
    /// Recordings that wait, those that were given up included.
    pub waiting: u64,
    /// Recordings that the service rejected too often; they are not sent again.
    pub given_up: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What one call of [`Outbox::deliver`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutboxDelivery {
    pub sent: u64,
    /// Entries that are due and were not tried in this call.
    pub more: bool,
}

/// The outbox of the tenant that a call is about.
pub(crate) struct Outbox<'a> {
    records: &'a Records,
    remote: &'a dyn LongTerm,
}

impl<'a> Outbox<'a> {
    pub(super) fn new(records: &'a Records, remote: &'a dyn LongTerm) -> Self {
        Self { records, remote }
    }

    /// Keeps what the service did not take, and says so. It goes with the records of the store that
    /// it is a copy of.
    pub(super) async fn add(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        messages: Vec<Message>,
        copy_of: Vec<Id>,
        why: LongTermError,
    ) -> Result<(), LongTermError> {
        let added = self.insert(ctx, owner, messages, copy_of);
        let added = added.await.map_err(failed)?;
        if !added {
            ctx.notices.add(format!(
                "The outbox holds {MOST_WAITING} recordings, the most it may; the messages were \
                 not kept."
            ));
            return Err(why);
        }
        ctx.notices.add(format!(
            "The messages wait in the outbox, and `mnemon upkeep` sends them again: {why}."
        ));
        Ok(())
    }

    async fn insert(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        messages: Vec<Message>,
        copy_of: Vec<Id>,
    ) -> Result<bool, Error> {
        if entries(self.records, ctx, MOST_WAITING).await?.len() >= MOST_WAITING {
            return Ok(false);
        }
        let entry = Entry {
            service: self.remote.service().to_owned(),
            messages,
        };
        let id: Id = format!("{ENTRY}{}", self.records.ids.next(ctx.now)).parse()?;
        let draft = Draft {
            derived_from: copy_of,
            ..silent(id, owner, json(&entry)?)
        };
        let put = vec![(draft, Expect::Absent)];
        self.records.put_screened(&as_index(ctx), put, None).await?;
        Ok(true)
    }

    /// Sends what is due, oldest first, at most so many recordings.
    pub(crate) async fn deliver(&self, ctx: &Ctx, limit: usize) -> Result<OutboxDelivery, Error> {
        let ids = entries(self.records, ctx, MOST_WAITING).await?;
        if ids.is_empty() {
            return Ok(OutboxDelivery::default());
        }
        let (mut queue, version) = load(self.records, ctx).await?;
        let waits = |until: Option<Time>| until.is_some_and(|until| until > ctx.now);
        if waits(queue.next_attempt) || waits(queue.lease_until) {
            return Ok(OutboxDelivery::default());
        }
        queue.lease_until = Some(ctx.now.plus_millis(LEASE_MS));
        queue.rejected.retain(|id, _| ids.contains(id));
        if !self.save(ctx, &queue, version).await? {
            return Ok(OutboxDelivery::default());
        }
        let due = |id: &&Id| {
            queue
                .rejected
                .get(*id)
                .is_none_or(|one| one.is_due(ctx.now))
        };
        let due: Vec<Id> = ids.iter().filter(due).cloned().collect();
        let slice = due.get(..due.len().min(limit).min(SLICE)).unwrap_or(&due);
        let mut delivery = OutboxDelivery {
            sent: 0,
            more: due.len() > slice.len(),
        };
        let done = self.send_all(ctx, slice, &mut queue, &mut delivery).await;
        queue.lease_until = None;
        // The lease made the next version.
        let (_, version) = load(self.records, ctx).await?;
        self.save(ctx, &queue, version).await?;
        done.map(|()| delivery)
    }

    async fn send_all(
        &self,
        ctx: &Ctx,
        ids: &[Id],
        queue: &mut Queue,
        delivery: &mut OutboxDelivery,
    ) -> Result<(), Error> {
        for record in self.records.get_all(ctx, ids).await?.into_iter().flatten() {
            let Some(entry) = entry_of(&record).filter(|one| self.is_meant(one)) else {
                continue;
            };
            let sent = self
                .remote
                .record(ctx, &record.owner, &entry.messages)
                .await;
            match sent {
                Ok(()) => {
                    self.remove(ctx, &record.id).await?;
                    queue.succeeded(&record.id);
                    delivery.sent += 1;
                }
                Err(error) if error.is_of_service() => {
                    queue.failed(ctx.now, &error);
                    delivery.more = false;
                    return Ok(());
                }
                Err(error) => queue.rejected(&record.id, ctx.now, &error),
            }
        }
        Ok(())
    }

    /// Messages for another service are not for this one.
    fn is_meant(&self, entry: &Entry) -> bool {
        entry.service == self.remote.service()
    }

    async fn remove(&self, ctx: &Ctx, id: &Id) -> Result<(), Error> {
        let ctx = as_index(ctx);
        let grant = self.records.policy.check(&ctx, Right::Write)?;
        let batch = Batch::of(Op::delete(id.clone()));
        self.records.apply(&ctx, &grant, batch).await.map(drop)
    }

    /// Writes the state down; `false` if another process has done so meanwhile.
    async fn save(&self, ctx: &Ctx, queue: &Queue, expect: Expect) -> Result<bool, Error> {
        let draft = silent(queue_id(), &Owner::default(), json(queue)?);
        let put = vec![(draft, expect)];
        match self.records.put_screened(&as_index(ctx), put, None).await {
            Err(Error::Store(StoreError::Conflict { .. })) => Ok(false),
            done => done.map(|_| true),
        }
    }
}

/// How many recordings of the tenant wait.
pub(super) async fn state(records: &Records, ctx: &Ctx) -> Result<OutboxState, Error> {
    let waiting = entries(records, ctx, MOST_WAITING).await?;
    if waiting.is_empty() {
        return Ok(OutboxState::default());
    }
    let (queue, _) = load(records, ctx).await?;
    let given_up = queue.rejected.iter();
    let given_up = given_up.filter(|(id, one)| one.is_given_up() && waiting.contains(id));
    Ok(OutboxState {
        waiting: waiting.len() as u64,
        given_up: given_up.count() as u64,
        next_attempt: queue.next_attempt,
        last_error: queue.last_error,
    })
}

async fn entries(records: &Records, ctx: &Ctx, most: usize) -> Result<Vec<Id>, Error> {
    let grant = records.policy.check(ctx, Right::Read)?;
    Ok(records.store.ids_with_prefix(&grant, ENTRY, most).await?)
}

async fn load(records: &Records, ctx: &Ctx) -> Result<(Queue, Expect), Error> {
    let Some(record) = records.find(ctx, &queue_id()).await? else {
        return Ok((Queue::default(), Expect::Absent));
    };
    let body = record.body.unwrap_or_default();
    // A state that cannot be read is begun anew: it only delays.
    let queue = serde_json::from_value(body).unwrap_or_default();
    Ok((queue, Expect::Version(record.version)))
}

fn queue_id() -> Id {
    fixed_id("remote-outbox-queue", &[])
}

fn entry_of(record: &Record) -> Option<Entry> {
    serde_json::from_value(record.body.clone()?).ok()
}

fn json(value: &impl Serialize) -> Result<Value, Error> {
    let value = serde_json::to_value(value);
    value.map_err(|error| Invalid::new("messages", error.to_string()).into())
}

impl Rejection {
    fn is_given_up(&self) -> bool {
        self.attempts >= ATTEMPTS
    }

    fn is_due(&self, now: Time) -> bool {
        !self.is_given_up() && self.next_attempt.is_none_or(|at| at <= now)
    }
}

impl Queue {
    fn succeeded(&mut self, id: &Id) {
        self.rejected.remove(id);
        (self.failures, self.next_attempt, self.last_error) = (0, None, None);
    }

    fn failed(&mut self, now: Time, error: &LongTermError) {
        self.failures += 1;
        let asked = match error {
            LongTermError::TooOften { wait, .. } => wait.map(|wait| wait.as_millis()),
            _ => None,
        };
        let asked = asked.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(0);
        let wait = wait_ms(self.failures).max(asked.min(MOST_WAIT_MS));
        self.next_attempt = Some(now.plus_millis(wait));
        self.last_error = Some(shortened(error));
    }

    fn rejected(&mut self, id: &Id, now: Time, error: &LongTermError) {
        let one = self.rejected.entry(id.clone()).or_default();
        one.attempts += 1;
        one.next_attempt = Some(now.plus_millis(wait_ms(one.attempts)));
        self.last_error = Some(shortened(error));
    }
}

fn shortened(error: &LongTermError) -> String {
    let mut text = error.to_string();
    text.truncate(text.floor_char_boundary(ERROR_BYTES));
    text
}

/// How long to wait after this number of failures.
fn wait_ms(failures: u32) -> i64 {
    let doublings = failures.saturating_sub(1).min(20);
    let wait = FIRST_WAIT_MS.saturating_mul(1 << doublings);
    wait.min(MOST_WAIT_MS)
}
