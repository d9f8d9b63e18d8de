//! Notes at a long-term memory of another service. The store keeps every note; the service gets a
//! copy of each new one, and searches of notes ask it, too.
//!
//! A mark in the store says which texts at the service are copies of our notes. So a note is not shown
//! twice, and a note that was deleted here is not shown by its copy. A fact that the service made from
//! a note has another text, and is shown.

use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::external::{ExternalHit, ExternalSource};
use mnemon_core::longterm::{LongTerm, LongTermError};
use mnemon_core::{Ctx, Expect, Id, Message, Owner, Role};
use serde_json::Value;

use super::outbox::Outbox;
use super::own::failed;
use super::remote::silent;
use crate::records::naming::fixed_id;
use crate::records::undo::as_index;
use crate::records::{Draft, Error, Records};

/// The name by which texts of the service are marked.
const NAME: &str = "long_term";
/// Texts that the service is asked for.
const FOUND: usize = 10;
/// How long marks stay, which is longer than the notes: 200 years.
const MARK_MS: i64 = 200 * 365 * 24 * 60 * 60 * 1000;

pub(crate) struct NoteCopies {
    records: Records,
    remote: Arc<dyn LongTerm>,
}

impl NoteCopies {
    pub(crate) fn new(records: Records, remote: Arc<dyn LongTerm>) -> Self {
        Self { records, remote }
    }

    /// Hands a note over that was stored. If the service does not take it, it waits in the outbox.
    pub(crate) async fn hand_over(
        &self,
        ctx: &Ctx,
        id: &Id,
        owner: &Owner,
        content: &str,
    ) -> Result<(), Error> {
        let mark = self.mark(owner.user.as_deref(), content);
        // Not of the session, which may be deleted before the note is.
        let of_user = Owner::of(owner.user.as_deref(), None);
        let mark = Draft {
            expires: Some(ctx.now.plus_millis(MARK_MS)),
            ..silent(mark, &of_user, Value::String(id.to_string()))
        };
        let put = vec![(mark, Expect::Anything)];
        self.records.put_screened(&as_index(ctx), put, None).await?;
        let message = Message::text(id.as_str(), Role::User, content);
        let sent = self
            .remote
            .record(ctx, owner, std::slice::from_ref(&message));
        let Err(why) = sent.await else {
            return Ok(());
        };
        let outbox = Outbox::new(&self.records, self.remote.as_ref());
        let copy_of = vec![id.clone()];
        match outbox.add(ctx, owner, vec![message], copy_of, why).await {
            Err(LongTermError::Store(error)) => Err(error.into()),
            // A full outbox was noticed. The note itself is in the store.
            _ => Ok(()),
        }
    }

    /// The id of the mark of a text.
    fn mark(&self, user: Option<&str>, text: &str) -> Id {
        let words: Vec<&str> = text.split_whitespace().collect();
        let names = [Some(self.remote.service()), user, Some(&words.join(" "))];
        fixed_id("remote-note", &names)
    }
}

#[async_trait]
impl ExternalSource for NoteCopies {
    fn name(&self) -> &str {
        NAME
    }

    fn serves(&self, _: &Ctx) -> bool {
        true
    }

    async fn find(
        &self,
        ctx: &Ctx,
        user: Option<&str>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let owner = Owner::of(user, None);
        let limit = limit.min(FOUND);
        let found = self.remote.find(ctx, &owner, query, limit).await?;
        let marks: Vec<Id> = found.iter().map(|hit| self.mark(user, &hit.text)).collect();
        let marks = self.records.get_all(ctx, &marks).await.map_err(failed)?;
        let others = found.into_iter().zip(marks);
        let others = others.filter_map(|(hit, mark)| mark.is_none().then_some(hit));
        Ok(others.collect())
    }
}
