//! Catching up: the lines that were added to a log since it was last read become messages.

use std::collections::HashSet;

use mnemon_core::{Changes, Ctx, Id, Invalid, Owner, StoreError, Time, limits};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::line::{Calls, Logged, Reader};
use super::{log_path, read};
use crate::conversation::project::Project;
use crate::conversation::session::SessionId;
use crate::memory::scopes::message_draft;
use crate::records::draft::to_json;
use crate::records::naming::fixed_id;
use crate::records::session_marks::session_of_user;
use crate::records::{Draft, Error, Records};

/// If more bytes than this were added, the last lines are read first and the others later. Reading
/// 1 MiB of short lines took 1.3 s in a debug build, its end 0.1 s.
const TAIL_FIRST: u64 = 128 * 1024;
/// Ranges that may be left for later at the same time.
const MOST_RANGES: usize = 16;
/// How often another process may move the watermark while this one makes no progress.
const TRIES: usize = 1000;
/// Lines that say the same at the same time and are told apart wherever they stand.
const SAME: usize = 8;
/// Skipped lines that are named; more are counted.
const NAMED: usize = 20;

/// How far a log was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Watermark {
    /// The next byte that was not read.
    next: u64,
    /// What stands before it, so that another log in its place is noticed.
    fingerprint: String,
    /// When the last message was said, in milliseconds.
    last: Option<i64>,
    calls: Calls,
    /// Ranges that were left for later.
    backlog: Vec<Part>,
    /// Up to here the log is one that took the place of another: its lines may be known.
    #[serde(default)]
    anew: u64,
}

impl Watermark {
    fn backlog_bytes(&self) -> u64 {
        let left = self.backlog.iter().map(|part| part.end - part.start);
        left.sum()
    }
}

/// A range of a log that is to be read: up to its end, or lines that are older than others that
/// were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Part {
    start: u64,
    end: u64,
    /// When the message before the range was said.
    last: Option<i64>,
    /// All its messages are told to be said before this; none if it ends with the log.
    before: Option<i64>,
    calls: Calls,
}

/// The messages of a log in a store.
pub(crate) struct LogCopy<'a> {
    pub(crate) records: &'a Records,
    /// The user, and the session with its project.
    pub(crate) owner: Owner,
    pub(crate) project: &'a Project,
    pub(crate) session: &'a SessionId,
}

/// What catching up did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// Messages that were added.
    pub messages: usize,
    /// Bytes of older lines that are left to be read.
    pub backlog_bytes: u64,
    pub(crate) commit: Option<u64>,
}

/// What was read of a part.
struct Converted {
    drafts: Vec<Draft>,
    consumed: u64,
    calls: Calls,
    last: Option<i64>,
}

impl LogCopy<'_> {
    fn path(&self) -> String {
        log_path(self.session)
    }

    /// The record of the message with this id in the log.
    pub(crate) fn message_id(&self, line_id: &str) -> Id {
        let names = [
            self.owner.user.as_deref(),
            self.owner.session.as_deref(),
            Some(line_id),
        ];
        fixed_id("logged-message", &names)
    }

    /// When the session was last purged, for everybody or by this user: lines that are not younger
    /// are not read.
    pub(crate) async fn purged_at(&self, ctx: &Ctx) -> Result<Option<Time>, Error> {
        let session = self.owner.session.as_deref().unwrap_or_default();
        let by_user = session_of_user(session, self.owner.user.as_deref().unwrap_or_default());
        let by_user = self.records.purged_at(ctx, &by_user).await?;
        Ok(self.records.purged_at(ctx, session).await?.max(by_user))
    }

    /// Notes where the log lies, so that a purge finds it.
    pub(crate) async fn mark_root(&self, ctx: &Ctx) -> Result<(), Error> {
        let (session, root) = (self.session.as_str(), self.project.root());
        self.records.mark_root(ctx, session, root).await
    }

    /// Reads what was added to the log, up to its last whole line. Older lines of a long log are
    /// left as a backlog.
    pub(crate) async fn catch_up(&self, ctx: &Ctx) -> Result<CaughtUp, Error> {
        self.read_new(ctx, None).await
    }

    /// Reads what was added to the log before this place, one line after the other.
    pub(crate) async fn catch_up_to(&self, ctx: &Ctx, to: u64) -> Result<CaughtUp, Error> {
        self.read_new(ctx, Some(to)).await
    }

    async fn read_new(&self, ctx: &Ctx, to: Option<u64>) -> Result<CaughtUp, Error> {
        let (path, log) = (self.path(), &*self.project.log);
        let purged = self.purged_at(ctx).await?;
        let mut done = CaughtUp::default();
        let mut tries = 0;
        loop {
            let (version, mut mark) = self.watermark(ctx).await?;
            let Some(end) = read::length(log, &path).await? else {
                return Ok(done);
            };
            if mark.next > 0
                && (end < mark.next
                    || read::fingerprint(log, &path, mark.next).await? != mark.fingerprint)
            {
                let last = mark.last;
                mark = Watermark {
                    last,
                    anew: end,
                    ..Watermark::default()
                };
                ctx.notices.add(format!(
                    "{path} is a different log: it is read again from the start."
                ));
            }
            done.backlog_bytes = mark.backlog_bytes();
            let end = to.map_or(end, |to| to.min(end));
            if mark.next >= end {
                return Ok(done);
            }
            if version.is_none() {
                self.mark_root(ctx).await?;
            }
            let (mut part, left) = self.next_part(&mark, end, to.is_none()).await?;
            // So that there is a time for the lines in between.
            part.last = part.last.map(|last| last + i64::from(left.is_some()));
            let is_again = part.start < mark.anew;
            let read = self.convert(ctx, &part, purged, is_again).await?;
            if read.consumed == mark.next {
                if to.is_some() {
                    return Ok(done);
                }
                ctx.notices.add(format!(
                    "The last line of {path} has no end yet; it is read when it has."
                ));
                return Ok(done);
            }
            (mark.last, mark.calls) = (read.last, read.calls);
            if let Some(left) = left {
                let before = Some(first_time(&read.drafts).unwrap_or(ctx.now.millis()));
                mark.last = mark.last.max(before);
                mark.backlog.push(Part { before, ..left });
            }
            mark.next = read.consumed;
            mark.fingerprint = read::fingerprint(log, &path, mark.next).await?;
            match self
                .import(ctx, version, &mark, (read.drafts, is_again), &mut done)
                .await
            {
                Err(Error::Store(StoreError::Conflict { .. })) if tries < TRIES => tries += 1,
                imported => {
                    imported?;
                    tries = 0;
                }
            }
        }
    }

    /// What is read next, and which older lines are left for later.
    async fn next_part(
        &self,
        mark: &Watermark,
        end: u64,
        may_leave: bool,
    ) -> Result<(Part, Option<Part>), Error> {
        let mut part = Part {
            start: mark.next,
            end,
            last: mark.last,
            before: None,
            calls: mark.calls.clone(),
        };
        if !may_leave || end - mark.next <= TAIL_FIRST || mark.backlog.len() >= MOST_RANGES {
            return Ok((part, None));
        }
        let wanted = self.project.config().hot_window_size;
        let (log, path) = (&*self.project.log, self.path());
        part.start = read::tail_start(log, &path, mark.next, end, wanted).await?;
        if part.start == mark.next {
            return Ok((part, None));
        }
        let left = Part {
            start: mark.next,
            end: part.start,
            calls: std::mem::take(&mut part.calls),
            ..part
        };
        Ok((part, Some(left)))
    }

    /// Reads one piece of the backlog, the newest lines first; how many bytes are left.
    pub(crate) async fn backlog_step(&self, ctx: &Ctx) -> Result<u64, Error> {
        let purged = self.purged_at(ctx).await?;
        for _ in 0..TRIES {
            let (version, mut mark) = self.watermark(ctx).await?;
            let anew = mark.anew;
            let Some(backlog) = mark.backlog.last_mut() else {
                return Ok(0);
            };
            let part = backlog.clone();
            let is_again = part.start < anew;
            let read = self.convert(ctx, &part, purged, is_again).await?;
            // Nothing is there if the log became shorter: the next catching up notices.
            backlog.start = match read.consumed > part.start {
                true => read.consumed,
                false => backlog.end,
            };
            (backlog.last, backlog.calls) = (read.last, read.calls);
            if backlog.start >= backlog.end {
                mark.backlog.pop();
            }
            let left = mark.backlog_bytes();
            let mut done = CaughtUp::default();
            match self
                .import(ctx, version, &mark, (read.drafts, is_again), &mut done)
                .await
            {
                Err(Error::Store(StoreError::Conflict { .. })) => {}
                imported => return imported.map(|()| left),
            }
        }
        Err(self.contended())
    }

    fn contended(&self) -> Error {
        StoreError::Conflict {
            id: self.mark_id(),
            expected: "the watermark of the log as it was read".to_owned(),
            current: None,
        }
        .into()
    }

    /// Makes drafts of the lines of a part.
    async fn convert(
        &self,
        ctx: &Ctx,
        part: &Part,
        purged: Option<Time>,
        is_again: bool,
    ) -> Result<Converted, Error> {
        let mut reader = Reader::after(part.calls.clone());
        match self.read_part(part, purged, &mut reader).await? {
            false => reader.leave(),
            true if part.before.is_none() => reader.finish(),
            true => reader.close(),
        }
        let mut last = part.last;
        let messages = std::mem::take(&mut reader.messages);
        let ids = self.ids(ctx, &messages, is_again).await?;
        let mut drafts = Vec::with_capacity(messages.len());
        for (logged, id) in messages.into_iter().zip(ids) {
            let created = created(logged.time, last, part.before, ctx.now)?;
            let offset = logged.at.start;
            let draft = self.draft(ctx, id, logged, created)?;
            match draft.check(ctx) {
                Ok(()) => {
                    last = Some(created.millis());
                    drafts.push(draft);
                }
                Err(why) => reader.skip_at(offset, &why.to_string()),
            }
        }
        self.report(ctx, &reader);
        Ok(Converted {
            drafts,
            consumed: reader.consumed.max(part.start),
            calls: reader.calls,
            last,
        })
    }

    /// Reads about as many lines as one commit takes, and on until the message is whole that the
    /// first of them began. Whether the message under way has all lines that there are.
    async fn read_part(
        &self,
        part: &Part,
        purged: Option<Time>,
        reader: &mut Reader,
    ) -> Result<bool, Error> {
        let (log, path) = (&*self.project.log, self.path());
        let most = self.records.limits().commit_ops.saturating_sub(1).max(1);
        let mut at = part.start;
        loop {
            let lines = read::forward(log, &path, at, part.end, most).await?;
            if lines.is_empty() {
                return Ok(true);
            }
            let is_first = at == part.start;
            if !is_first && reader.consumed > 0 {
                return Ok(false);
            }
            for line in lines {
                if !is_first && !reader.is_open() {
                    return Ok(true);
                }
                at = line.end;
                reader.take(line, purged);
                if !is_first && reader.consumed > 0 {
                    return Ok(false);
                }
            }
            // A message that goes on and on is longer than a record may be.
            if at - part.start > limits::FILE_BYTES as u64 {
                reader.close();
            }
            if !reader.is_open() {
                return Ok(true);
            }
        }
    }

    fn report(&self, ctx: &Ctx, reader: &Reader) {
        let path = self.path();
        for line in reader.skipped.iter().take(NAMED) {
            let (offset, why) = (line.offset, &line.why);
            ctx.notices.add(format!(
                "The line at byte {offset} of {path} was skipped: {why}."
            ));
        }
        let more = reader.skipped.len().saturating_sub(NAMED);
        if more > 0 {
            ctx.notices
                .add(format!("{more} more lines of {path} were skipped."));
        }
        if reader.orphans > 0 {
            let count = reader.orphans;
            ctx.notices.add(format!(
                "{count} observations of {path} follow no action; they were kept as text."
            ));
        }
    }

    /// The ids of the messages. Lines without an id of ours have one of what they say, so that they
    /// are known again when they stand elsewhere, and of their place if they tell no time.
    async fn ids(&self, ctx: &Ctx, messages: &[Logged], is_again: bool) -> Result<Vec<Id>, Error> {
        let id = |logged: &Logged, number: usize| match (&logged.id, logged.time) {
            (Some(id), _) => self.message_id(id),
            (None, Some(_)) if number < SAME => {
                self.message_id(&format!("{}#{number}", logged.digest))
            }
            _ => self.message_id(&format!("{}:{}", logged.at.start, logged.digest)),
        };
        let mut ids: Vec<Id> = messages.iter().map(|logged| id(logged, 0)).collect();
        let there = self.records.get_all(ctx, &ids).await?;
        let mut taken: HashSet<Id> = HashSet::new();
        for ((logged, own), there) in messages.iter().zip(&mut ids).zip(there) {
            if logged.id.is_some() {
                continue;
            }
            // The same was said before; when it is read again, that is this very line.
            let mut is_taken = there.is_some() && !is_again || taken.contains(own);
            let mut number = 0;
            while is_taken && number < SAME {
                number += 1;
                *own = id(logged, number);
                let is_there = !is_again && self.records.find(ctx, own).await?.is_some();
                is_taken = is_there || taken.contains(own);
            }
            taken.insert(own.clone());
        }
        Ok(ids)
    }

    fn draft(&self, ctx: &Ctx, id: Id, logged: Logged, created: Time) -> Result<Draft, Invalid> {
        let at = logged.at;
        let mut message = logged.message;
        message.timestamp.get_or_insert_with(|| created.to_string());
        let mut draft = message_draft(ctx, &self.owner, id, message, Some(created))?;
        draft.source = Some(self.path());
        draft
            .metadata
            .insert("log".to_owned(), json!([at.start, at.end]));
        Ok(draft)
    }

    /// Which of these messages, which are not there, may be written: not those that were purged, and
    /// of those that may have been there not those that were forgotten or undone.
    pub(crate) async fn readable(
        &self,
        ctx: &Ctx,
        missing: Vec<Id>,
        is_again: bool,
    ) -> Result<HashSet<Id>, Error> {
        let allowed = self.records.not_purged(ctx, &missing).await?;
        let allowed = missing
            .into_iter()
            .zip(allowed)
            .filter(|(_, allowed)| *allowed);
        let mut readable: HashSet<Id> = allowed.map(|(id, _)| id).collect();
        if is_again {
            for id in readable.clone() {
                let newest = Changes {
                    id: Some(id.clone()),
                    ..Changes::all_of_tenant(1)
                };
                let changes = self.records.history(ctx, &newest).await?;
                if changes.first().is_some_and(|change| change.after.is_none()) {
                    readable.remove(&id);
                }
            }
        }
        Ok(readable)
    }

    /// Writes the messages that are not there yet and moves the watermark, in one commit.
    async fn import(
        &self,
        ctx: &Ctx,
        version: Option<u64>,
        mark: &Watermark,
        read: (Vec<Draft>, bool),
        done: &mut CaughtUp,
    ) -> Result<(), Error> {
        let (drafts, is_again) = read;
        let ids: Vec<Id> = drafts.iter().filter_map(|draft| draft.id.clone()).collect();
        let there = self.records.get_all(ctx, &ids).await?;
        let missing = ids
            .into_iter()
            .zip(there)
            .filter(|(_, there)| there.is_none());
        let missing: Vec<Id> = missing.map(|(id, _)| id).collect();
        let mut new = self.readable(ctx, missing, is_again).await?;
        let is_new = |draft: &Draft| draft.id.as_ref().is_some_and(|id| new.remove(id));
        let new: Vec<Draft> = drafts.into_iter().filter(is_new).collect();
        let count = new.len();
        let body = to_json("watermark", mark)?;
        let put = self
            .records
            .put_with_log_mark(ctx, new, &self.owner, body, version);
        let receipt = put.await?;
        done.messages += count;
        done.commit = done.commit.or(receipt.commit);
        done.backlog_bytes = mark.backlog_bytes();
        Ok(())
    }

    fn mark_id(&self) -> Id {
        crate::records::session_marks::log_mark_id(&self.owner)
    }

    async fn watermark(&self, ctx: &Ctx) -> Result<(Option<u64>, Watermark), Error> {
        let Some(record) = self.records.find(ctx, &self.mark_id()).await? else {
            return Ok((None, Watermark::default()));
        };
        let mark = Watermark::deserialize(record.body.as_ref().unwrap_or(&json!({})))
            .map_err(|error| Invalid::new("watermark", error.to_string()))?;
        Ok((Some(record.version), mark))
    }
}

/// When the first of the messages was said.
fn first_time(drafts: &[Draft]) -> Option<i64> {
    Some(drafts.first()?.created?.millis())
}

/// When a message was said, so that the order of messages is that of the log: not before the one
/// before it, and before those that were read earlier although they stand later.
fn created(
    told: Option<Time>,
    last: Option<i64>,
    before: Option<i64>,
    now: Time,
) -> Result<Time, Invalid> {
    let most = before.map_or(now.millis(), |before| before - 1);
    let told = told.map(Time::millis).or(last).unwrap_or(most);
    let at = told.min(most).max(last.unwrap_or(told.min(most)));
    Time::from_millis(before.map_or(at, |before| at.min(before - 1)))
}
