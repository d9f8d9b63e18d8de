//! A long-term memory at another service. A service that fails costs what it would have found, and
//! delays what it would have taken in; neither fails the call.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::longterm::{LongTerm, LongTermError};
use mnemon_core::{Ctx, Expect, Id, Kind, Message, Origin, Owner, Record, Scope, StoreError};
use serde_json::Value;

use super::outbox::Outbox;
use super::own::{failed, is_worth_it};
use crate::memory::Memory;
use crate::records::naming::fixed_id;
use crate::records::safety::TakenOut;
use crate::records::undo::as_index;
use crate::records::{Draft, Error, Records};

/// Messages of one owner that are known to have been handed over, and hexadecimal digits of each.
const SENT: usize = 512;
const DIGITS: usize = 8;

/// A service, with an outbox in our own store for what it did not take.
pub(super) struct RemoteLongTerm {
    remote: Arc<dyn LongTerm>,
    memory: Arc<Memory>,
}

impl RemoteLongTerm {
    pub(super) fn new(remote: Arc<dyn LongTerm>, memory: Arc<Memory>) -> Self {
        Self { remote, memory }
    }

    fn records(&self) -> &Records {
        self.memory.records_of(Scope::Semantic)
    }

    /// The messages as they may leave this machine: worth recording, and without secrets.
    fn cleaned(&self, ctx: &Ctx, messages: &[Message]) -> Result<Vec<Message>, Error> {
        let wanted = messages.iter().filter(|message| is_worth_it(message));
        let wanted: Vec<Message> = wanted.cloned().collect();
        let mut taken = TakenOut::default();
        let safety = self.records().safety;
        let cleaned = safety.clean_value("messages", &wanted, &mut taken)?;
        ctx.notices.extend(taken.sentences());
        Ok(cleaned)
    }
}

#[async_trait]
impl LongTerm for RemoteLongTerm {
    /// The whole conversation may come again with every reply: each message is handed over once.
    async fn record(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        messages: &[Message],
    ) -> Result<(), LongTermError> {
        let mut messages = self.cleaned(ctx, messages).map_err(failed)?;
        let sent = Sent::load(self.records(), ctx, owner, self.remote.service());
        let mut sent = sent.await.map_err(failed)?;
        messages.retain(|message| sent.add(message));
        if messages.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.remote.record(ctx, owner, &messages).await {
            let outbox = Outbox::new(self.records(), self.remote.as_ref());
            outbox.add(ctx, owner, messages, Vec::new(), error).await?;
        }
        sent.save(self.records(), ctx, owner).await.map_err(failed)
    }

    async fn retrieve(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        message: &Message,
    ) -> Result<String, LongTermError> {
        match self.remote.retrieve(ctx, owner, message).await {
            Ok(known) => Ok(known),
            Err(error) => {
                let what = format!("Nothing was retrieved from long-term memory: {error}.");
                ctx.notices.add(what);
                Ok(String::new())
            }
        }
    }

    fn service(&self) -> &str {
        self.remote.service()
    }
}

/// Which messages of an owner were handed over, the latest last: digests one after the other.
struct Sent {
    id: Id,
    expect: Expect,
    digests: Vec<String>,
    known: HashSet<String>,
}

impl Sent {
    async fn load(
        records: &Records,
        ctx: &Ctx,
        owner: &Owner,
        service: &str,
    ) -> Result<Self, Error> {
        let names = [
            Some(service),
            owner.user.as_deref(),
            owner.agent.as_deref(),
            owner.session.as_deref(),
        ];
        let id = fixed_id("remote-sent", &names);
        let there = records.find(ctx, &id).await?;
        let expect = there
            .as_ref()
            .map_or(Expect::Absent, |record| Expect::Version(record.version));
        let digests = there.as_ref().map(digests_of).unwrap_or_default();
        Ok(Self {
            id,
            expect,
            known: digests.iter().cloned().collect(),
            digests,
        })
    }

    /// Whether the message was not handed over before.
    fn add(&mut self, message: &Message) -> bool {
        let text = message.text_content();
        let names = [
            Some(message.id.as_str()),
            Some(message.role.word()),
            Some(text.as_str()),
        ];
        let digest = fixed_id("remote-message", &names).to_string();
        let digits = digest.chars().filter(char::is_ascii_hexdigit);
        let digest: String = digits.take(DIGITS).collect();
        let is_new = self.known.insert(digest.clone());
        // A message that comes again is kept among the latest.
        self.digests.retain(|known| *known != digest);
        self.digests.push(digest);
        is_new
    }

    /// Writes it down. Another process that did so meanwhile costs a repetition at worst.
    async fn save(mut self, records: &Records, ctx: &Ctx, owner: &Owner) -> Result<(), Error> {
        let over = self.digests.len().saturating_sub(SENT);
        self.digests.drain(..over);
        let draft = silent(self.id, owner, Value::String(self.digests.concat()));
        match records
            .put_screened(&as_index(ctx), vec![(draft, self.expect)], None)
            .await
        {
            Err(Error::Store(StoreError::Conflict { .. })) => Ok(()),
            done => done.map(drop),
        }
    }
}

fn digests_of(record: &Record) -> Vec<String> {
    let text = record.body.as_ref().and_then(Value::as_str);
    let digits: Vec<char> = text.unwrap_or_default().chars().collect();
    digits
        .chunks(DIGITS)
        .map(|one| one.iter().collect())
        .collect()
}

/// A record of our own: it has no words, so no search and no list shows it. It belongs to the owner,
/// so that it goes with them.
pub(super) fn silent(id: Id, owner: &Owner, body: Value) -> Draft {
    Draft {
        id: Some(id),
        owner: owner.clone(),
        scope: Some(Scope::State),
        kind: Some(Kind::Session),
        origin: Some(Origin::Derived),
        body: Some(body),
        ..Draft::default()
    }
}
