//! A conversation in a project: its log is the source of truth, and the records a copy of it.

use std::ops::Range;

use mnemon_core::{
    Ctx, ErrorKind, Fate, Id, Invalid, Message, Outcome, Receipt, Record, Right, StoreError, Time,
};
use serde::Deserialize;
use serde_json::Value;

use super::{Window, already_there};
use crate::conversation::log::{CaughtUp, LogCopy, Said, Writer, after_purge, log_path};
use crate::conversation::project::{Project, session_in};
use crate::memory::scopes::{message_draft, message_of};
use crate::records::safety::TakenOut;
use crate::records::undo::as_index;
use crate::records::{Draft, Error};

/// What is to be written to a log under one id.
enum Unwritten {
    Message(Message),
    Line(Said),
}

impl<'a> Window<'a> {
    /// The session of this name in a project, whose log lies in the project's files.
    pub fn in_project(mut self, project: &'a Project) -> Result<Self, Error> {
        let name = self.owner.session.as_deref().unwrap_or_default();
        let session = name.parse()?;
        self.owner.session = Some(session_in(project.root(), name)?);
        self.project = Some((project, session));
        Ok(self)
    }

    fn log_copy(&self) -> Option<LogCopy<'_>> {
        let (project, session) = self.project.as_ref()?;
        Some(LogCopy {
            records: self.records,
            owner: self.session(),
            project,
            session,
        })
    }

    /// Reads what was added to the log of a project since it was last read, and the pages of its
    /// library: the last messages first. [`Window::import_backlog`] reads the others.
    pub async fn catch_up(&self, ctx: &Ctx) -> Result<CaughtUp, Error> {
        let Some(copy) = self.log_copy() else {
            return Ok(CaughtUp::default());
        };
        let marks = self.records;
        copy.project.index_library(self.library, marks, ctx).await;
        match copy.catch_up(&as_index(ctx)).await {
            Err(error) if error.kind() == ErrorKind::Denied => {
                let what = format!("Lines added to the log are not shown: {error}.");
                ctx.notices.add(what);
                Ok(CaughtUp::default())
            }
            done => done,
        }
    }

    /// Reads the older lines that [`Window::catch_up`] left, and tells after each piece how many
    /// bytes are left. It can be interrupted, and goes on where it was.
    pub async fn import_backlog(
        &self,
        ctx: &Ctx,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<(), Error> {
        let Some(copy) = self.log_copy() else {
            return Ok(());
        };
        let ctx = &as_index(ctx);
        loop {
            let left = copy.backlog_step(ctx).await?;
            progress(left);
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Adds a line of the log's own format to a project's conversation.
    pub async fn append_line(
        &self,
        ctx: &Ctx,
        said: &Said,
        key: Option<&str>,
    ) -> Result<Receipt, Error> {
        said.check()?;
        let mut taken = TakenOut::default();
        let said = self.records.safety.clean_value("line", said, &mut taken)?;
        let at = self.line_time(ctx).await;
        let unwritten = vec![(self.line_id(at, key, 0), Unwritten::Line(said))];
        let receipt = self.append_lines(ctx, at, &unwritten, key).await?;
        ctx.notices.extend(taken.sentences());
        Ok(receipt)
    }

    /// Writes messages to the log, and then to the store.
    pub(super) async fn append_to_log(
        &self,
        ctx: &Ctx,
        messages: Vec<Message>,
        key: Option<&str>,
    ) -> Result<Receipt, Error> {
        let mut taken = TakenOut::default();
        let at = self.line_time(ctx).await;
        let mut unwritten = Vec::with_capacity(messages.len());
        for (number, message) in messages.into_iter().enumerate() {
            let id = self.line_id(at, key, number);
            let record: Id = id.parse()?;
            let mut draft = message_draft(ctx, &self.owner, record, message, Some(ctx.now))?;
            self.records.safety.screen(&mut draft, &mut taken)?;
            draft.check(ctx)?;
            unwritten.push((id, Unwritten::Message(kept(&draft)?)));
        }
        let receipt = self.append_lines(ctx, at, &unwritten, key).await?;
        ctx.notices.extend(taken.sentences());
        Ok(receipt)
    }

    /// The time of a line that is written now: later than the last purge.
    async fn line_time(&self, ctx: &Ctx) -> Time {
        let Some(copy) = self.log_copy() else {
            return ctx.now;
        };
        let purged = copy.purged_at(ctx).await.unwrap_or_else(|error| {
            let what =
                format!("The store could not report whether the session was purged: {error}.");
            ctx.notices.add(what);
            None
        });
        after_purge(ctx.now, purged)
    }

    /// The id of a line: drawn, or made of the key, so that a retry has the same.
    fn line_id(&self, at: Time, key: Option<&str>, number: usize) -> String {
        let Some(key) = key else {
            return self.records.ids.next(at).to_string();
        };
        let names = [key, &number.to_string()];
        self.fixed_for("keyed-line", &names).to_string()
    }

    /// Writes what is not there yet under its id to the log, and lets the store catch up.
    async fn append_lines(
        &self,
        ctx: &Ctx,
        at: Time,
        unwritten: &[(String, Unwritten)],
        key: Option<&str>,
    ) -> Result<Receipt, Error> {
        let Some(copy) = self.log_copy() else {
            return Err(Invalid::new("files", "is missing; a line needs a project's log").into());
        };
        self.records.policy.check(ctx, Right::Write)?;
        let ids = unwritten.iter().map(|(id, _)| copy.message_id(id));
        let ids: Vec<Id> = ids.collect();
        let mut there: Vec<Option<Record>> = vec![None; ids.len()];
        // What others wrote is no part of the caller's commit.
        let others = copy.catch_up(&as_index(ctx)).await;
        if let Some(key) = key {
            others?;
            there = self.under_key(ctx, &copy, key, &ids).await?;
            check_same(key, &there, unwritten)?;
        }
        if let Err(error) = copy.mark_root(ctx).await {
            ctx.notices.add(format!(
                "The store does not know yet where the log is, so a purge would miss it; the next \
                 line tries again: {error}."
            ));
        }
        let writer = Writer { at };
        let mut bytes = Vec::new();
        let missing = unwritten.iter().zip(&there);
        for ((id, what), _) in missing.filter(|(_, there)| there.is_none()) {
            bytes.extend(match what {
                Unwritten::Message(message) => writer.lines(message, id)?,
                Unwritten::Line(said) => writer.line(said, id)?,
            });
        }
        let known: Vec<bool> = there.iter().map(Option::is_some).collect();
        let (mut commit, mut is_copied) = (None, false);
        if !bytes.is_empty() {
            let path = log_path(copy.session);
            let end = copy.project.log.append(&path, &bytes).await?;
            let own = end.saturating_sub(bytes.len() as u64)..end;
            let done = self.copy_own(ctx, &copy, own).await;
            let copied = match done {
                Ok(done) => self
                    .records
                    .get_all(ctx, &ids)
                    .await
                    .map(|there| (done, there)),
                Err(error) => Err(error),
            };
            match copied {
                Ok(done) => ((commit, there), is_copied) = (done, true),
                Err(error) => ctx.notices.add(format!(
                    "The message is in the log; the store gets it when the conversation is opened \
                     next: {error}."
                )),
            }
        }
        let items = ids.into_iter().zip(there).zip(known);
        let items = items.map(|((id, there), is_known)| {
            let fate = match is_known {
                true => already_there(&id),
                false => fate_of(there.as_ref(), is_copied),
            };
            Outcome { id, fate }
        });
        Ok(Receipt {
            commit,
            items: items.collect(),
            ..Receipt::default()
        })
    }

    /// What is in the log under the ids of a key.
    async fn under_key(
        &self,
        ctx: &Ctx,
        copy: &LogCopy<'_>,
        key: &str,
        ids: &[Id],
    ) -> Result<Vec<Option<Record>>, Error> {
        self.records.safety.check_identifier("key", key)?;
        let there = self.records.get_all(ctx, ids).await?;
        if there.iter().all(Option::is_some) {
            return Ok(there);
        }
        // It may be among the lines that were left for later.
        while copy.backlog_step(&as_index(ctx)).await? > 0 {}
        let there = self.records.get_all(ctx, ids).await?;
        let missing = ids.iter().zip(&there).filter(|(_, there)| there.is_none());
        let missing: Vec<Id> = missing.map(|(id, _)| id.clone()).collect();
        let count = missing.len();
        if copy.readable(ctx, missing, true).await?.len() == count {
            return Ok(there);
        }
        let what = "belongs to a message that was forgotten or undone; choose a new key";
        Err(Invalid::new("key", what).into())
    }

    /// Copies the lines that were just written from the log to the store: only they are in the
    /// commit that is returned.
    async fn copy_own(
        &self,
        ctx: &Ctx,
        copy: &LogCopy<'_>,
        own: Range<u64>,
    ) -> Result<Option<u64>, Error> {
        let side = as_index(ctx);
        copy.catch_up_to(&side, own.start).await?;
        let done = copy.catch_up_to(ctx, own.end).await?;
        // A piece with each append, so that a conversation that is never shown is found by
        // searches in the end. Nothing is lost if it fails.
        if done.backlog_bytes > 0 {
            copy.backlog_step(&side).await.ok();
        }
        Ok(done.commit)
    }
}

/// That what is there under a key is what is said now.
fn check_same(
    key: &str,
    there: &[Option<Record>],
    unwritten: &[(String, Unwritten)],
) -> Result<(), StoreError> {
    let mut pairs = there.iter().zip(unwritten);
    let differs = pairs.any(|(there, (_, said))| {
        let there = there.as_ref().map(message_of);
        there.is_some_and(|there| match said {
            Unwritten::Message(said) => (there.role, &there.content) != (said.role, &said.content),
            Unwritten::Line(said) => !said.is_said_by(&there),
        })
    });
    match differs {
        true => Err(StoreError::KeyReused {
            key: key.to_owned(),
        }),
        false => Ok(()),
    }
}

/// The message that a draft keeps.
fn kept(draft: &Draft) -> Result<Message, Invalid> {
    let body = draft.body.as_ref().unwrap_or(&Value::Null);
    Message::deserialize(body).map_err(|error| Invalid::new("message", error.to_string()))
}

/// What became of a message that was written to the log, once the store has copied the log.
fn fate_of(there: Option<&Record>, is_copied: bool) -> Fate {
    match there {
        Some(record) => Fate::Stored {
            version: record.version,
        },
        None if is_copied => Fate::Rejected {
            why: "it is in the log, but the store rejects it".to_owned(),
        },
        None => Fate::Stored { version: 1 },
    }
}
