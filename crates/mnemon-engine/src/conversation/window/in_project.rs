//! A conversation in a project: its log is the source of truth, and the records a copy of it.

use mnemon_core::{
    Ctx, ErrorKind, Fate, Id, Invalid, Message, Outcome, Receipt, Record, Right, StoreError,
};
use serde::Deserialize;
use serde_json::Value;

use super::Window;
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
                let what = format!("What was added to the log is not shown: {error}.");
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
        let unwritten = vec![(self.line_id(ctx, key, 0), Unwritten::Line(said))];
        let receipt = self.append_lines(ctx, &unwritten, key).await?;
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
        let mut unwritten = Vec::with_capacity(messages.len());
        for (number, message) in messages.into_iter().enumerate() {
            let id = self.line_id(ctx, key, number);
            let record: Id = id.parse()?;
            let mut draft = message_draft(ctx, &self.owner, record, message, Some(ctx.now))?;
            self.records.safety.screen(&mut draft, &mut taken)?;
            draft.check(ctx)?;
            unwritten.push((id, Unwritten::Message(kept(&draft)?)));
        }
        let receipt = self.append_lines(ctx, &unwritten, key).await?;
        ctx.notices.extend(taken.sentences());
        Ok(receipt)
    }

    /// The id of a line: drawn, or made of the key, so that a retry has the same.
    fn line_id(&self, ctx: &Ctx, key: Option<&str>, number: usize) -> String {
        let Some(key) = key else {
            return self.records.ids.next(ctx.now).to_string();
        };
        let names = [key, &number.to_string()];
        self.fixed_for("keyed-line", &names).to_string()
    }

    /// Writes what is not there yet under its id to the log, and lets the store catch up.
    async fn append_lines(
        &self,
        ctx: &Ctx,
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
        if let Some(key) = key {
            self.records.safety.check_identifier("key", key)?;
            copy.catch_up(ctx).await?;
            there = self.records.get_all(ctx, &ids).await?;
            check_same(key, &there, unwritten)?;
        }
        let purged = copy.purged_at(ctx).await;
        let purged = purged.unwrap_or_else(|error| {
            let what = format!("The store did not say whether the session was purged: {error}.");
            ctx.notices.add(what);
            None
        });
        if let Err(error) = copy.mark_root(ctx).await {
            ctx.notices.add(format!(
                "The store does not know yet where the log is, so a purge would miss it; the next \
                 line tries again: {error}."
            ));
        }
        let writer = Writer {
            at: after_purge(ctx.now, purged),
        };
        let mut bytes = Vec::new();
        let missing = unwritten.iter().zip(&there);
        for ((id, what), _) in missing.filter(|(_, there)| there.is_none()) {
            bytes.extend(match what {
                Unwritten::Message(message) => writer.lines(message, id)?,
                Unwritten::Line(said) => writer.line(said, id)?,
            });
        }
        let mut commit = None;
        if !bytes.is_empty() {
            let path = log_path(copy.session);
            copy.project.log.append(&path, &bytes).await?;
            match copy.catch_up(ctx).await {
                Ok(done) => {
                    commit = done.commit;
                    // A piece with each append, so that a conversation that is never shown is
                    // found by searches in the end. Nothing is lost if it fails.
                    if done.backlog_bytes > 0 {
                        copy.backlog_step(&as_index(ctx)).await.ok();
                    }
                }
                Err(error) => ctx.notices.add(format!(
                    "The message is in the log; the store gets it when the conversation is opened \
                     next: {error}."
                )),
            }
        }
        let fate = Fate::Stored { version: 1 };
        let items = ids.into_iter().map(|id| Outcome {
            id,
            fate: fate.clone(),
        });
        Ok(Receipt {
            commit,
            items: items.collect(),
            ..Receipt::default()
        })
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
        matches!((there, said), (Some(there), Unwritten::Message(said))
            if (there.role, &there.content) != (said.role, &said.content))
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
