//! The port to knowledge that others keep: read only, found by searching.

use async_trait::async_trait;

use crate::model::{Ctx, Scope, Time};
use crate::ports::longterm::LongTermError;

/// A text that an external source found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExternalHit {
    /// Its name in the source.
    pub id: String,
    /// A skill says in its first line when it is of use; its instructions are below.
    pub text: String,
    pub title: Option<String>,
    /// Where a reader finds it: a URL or a path.
    pub source: Option<String>,
    pub created: Option<Time>,
}

/// Knowledge outside this memory. It is asked with a time limit of its own and never written to.
#[async_trait]
pub trait ExternalSource: Send + Sync {
    /// Its name in the configuration, by which hits are marked.
    fn name(&self) -> &str;

    /// The scope whose searches ask it: semantic for documents, procedural for skills.
    fn scope(&self) -> Scope {
        Scope::Semantic
    }

    /// Whether searches of this tenant may ask it.
    fn serves(&self, ctx: &Ctx) -> bool;

    /// The texts that answer the query best, at most `limit`.
    async fn find(
        &self,
        ctx: &Ctx,
        user: Option<&str>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError>;
}
