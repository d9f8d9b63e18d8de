//! The memory as one user sees it.

use mnemon_core::budget::{Bound, Form};
use mnemon_core::{Audience, Filter, Scope, Viewer};
use mnemon_engine::{ContextQuery, MemoryQuery};

use crate::{
    Context, Conversation, Error, Hit, Id, Mnemon, NewDocument, NewRecord, Receipt, Record, Search,
};

/// The memory as one user sees it: the user's own records, and those that are shared. It writes and
/// deletes only the user's own.
#[derive(Clone)]
pub struct User {
    memory: Mnemon,
    name: String,
}

impl User {
    pub(crate) fn new(memory: Mnemon, name: String) -> Self {
        Self { memory, name }
    }

    /// Stores a record of this user, which other users do not see.
    pub async fn add(&self, record: impl Into<NewRecord>) -> Result<Receipt, Error> {
        let mut record = record.into();
        record.draft.owner.user = Some(self.name.clone());
        self.memory.add(record).await
    }

    /// Takes in a document of this user, or replaces the user's document of the same name.
    pub async fn add_document(&self, mut document: NewDocument) -> Result<Id, Error> {
        document.0.owner.user = Some(self.name.clone());
        self.memory.add_document(document).await
    }

    /// The record of this id, if the user may see it.
    pub async fn get(&self, id: &Id) -> Result<Option<Record>, Error> {
        let record = self.memory.seen_by(&self.viewer(), id).await?;
        Ok(record.map(Record::from))
    }

    /// Replaces the content of one of the user's records. Its history keeps the version before.
    pub async fn update(&self, id: &Id, content: impl Into<String>) -> Result<Receipt, Error> {
        self.own(id).await?;
        let viewer = self.viewer();
        self.memory.replace(&viewer, id, content.into()).await
    }

    /// The records that answer the question best, the best first. The list is empty if nothing
    /// relevant is known.
    pub async fn search(&self, search: impl Into<Search>) -> Result<Vec<Hit>, Error> {
        self.memory.search_as(search.into(), self.viewer()).await
    }

    /// The newest records that the user may see.
    pub async fn list(&self, limit: usize) -> Result<Vec<Record>, Error> {
        let filter = Filter::seen_by(self.viewer());
        self.memory.list_as(filter, limit).await
    }

    /// Deletes one of the user's records, and the records that were derived only from it.
    /// [`Mnemon::undo`] brings them back.
    pub async fn forget(&self, id: &Id) -> Result<Receipt, Error> {
        self.own(id).await?;
        self.memory.forget(id).await
    }

    /// The user's conversation of this name. It begins with its first message.
    pub fn conversation(&self, session: impl Into<String>) -> Conversation {
        Conversation::new(self.memory.clone(), self.name.clone(), session.into())
    }

    /// The text that a prompt needs before a model answers `query` in this session: the profile, the
    /// recent messages, facts, documents and skills, in at most so many tokens.
    pub async fn context(
        &self,
        session: &str,
        query: impl Into<String>,
        tokens: usize,
    ) -> Result<Context, Error> {
        let about = MemoryQuery {
            query: Some(query.into()),
            ..MemoryQuery::new(&self.name, session, AGENT, Scope::ALL)
        };
        let query = ContextQuery {
            form: Form::Markdown,
            ..ContextQuery::new(about, tokens)
        };
        let (memory, ctx) = (self.memory.engine(), self.memory.ctx());
        let context = memory.context(&ctx, &query, &Bound).await?;
        for silent in &context.silent {
            ctx.notices.add(format!("{}: {}", silent.scope, silent.why));
        }
        Ok(Context {
            text: context.compiled.text,
            tokens: context.compiled.tokens,
        })
    }

    fn viewer(&self) -> Viewer {
        Viewer::user(&self.name)
    }

    /// Whether the record belongs to the user. One that the user may only read, or not
    /// even see, is not found.
    async fn own(&self, id: &Id) -> Result<(), Error> {
        let record = self.memory.seen_by(&self.viewer(), id).await?;
        let own = Audience::of_user(Some(&self.name));
        match record.is_some_and(|record| record.audience() == own) {
            true => Ok(()),
            false => Err(mnemon_engine::Error::NoRecord(id.clone()).into()),
        }
    }
}

/// The agent whose policy holds for a context: the general one.
const AGENT: &str = "library";
