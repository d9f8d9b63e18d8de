//! What is known.

use futures::future::join;
use mnemon_core::{
    Ctx, Filter, Id, IdempotencyKey, Invalid, Kind, Origin, Owner, Receipt, Scope, Time,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::documents::{Document, DocumentReceipt};
use crate::records::{Draft, Error, Records};
use crate::search::external::{External, merge};
use crate::search::{Hit, Query};

/// How many documents are found when nobody says.
pub const TOP_DOCS: usize = 5;

/// The knowledge of a memory.
#[derive(Clone, Copy)]
pub struct Semantic<'a> {
    pub(crate) records: &'a Records,
    pub(crate) external: External<'a>,
}

/// Something to be known, as the caller says it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knowledge {
    pub content: String,
    /// `note` (the usual), `fact`, `document` or `decision`.
    #[serde(default)]
    pub kind: Option<Kind>,
    #[serde(default)]
    pub summary: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub source: Option<String>,
    #[serde(default)]
    pub importance: Option<f64>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    #[serde(default)]
    pub derived_from: Vec<Id>,
    /// For every user of the tenant; otherwise only for the one who is named.
    #[serde(default)]
    pub shared: bool,
}

/// Something known that answers a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundDocument {
    pub id: Id,
    pub score: f64,
    pub kind: Kind,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Text from a file is marked: it was written by whoever may write that file.
    #[serde(default = "not_from_file", skip_serializing_if = "is_not_from_file")]
    pub origin: Origin,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub created: Time,
    /// The external source that has it; such a text is not a record of this store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

fn not_from_file() -> Origin {
    Origin::User
}

fn is_not_from_file(origin: &Origin) -> bool {
    *origin != Origin::File
}

impl From<Hit> for FoundDocument {
    fn from(hit: Hit) -> Self {
        let record = hit.record;
        Self {
            id: record.id,
            score: hit.score,
            kind: record.kind,
            content: record.content,
            summary: record.summary,
            source: record.source,
            origin: record.origin,
            tags: record.tags,
            created: record.created,
            external: hit.external,
            metadata: record.metadata,
        }
    }
}

impl Semantic<'_> {
    /// What answers the query best.
    pub async fn search(
        &self,
        ctx: &Ctx,
        query: &str,
        filters: Filter,
        top_k: usize,
    ) -> Result<Vec<FoundDocument>, Error> {
        let filter = Filter {
            scopes: vec![Scope::Semantic],
            ..filters
        };
        let query = Query {
            limit: top_k,
            ..Query::new(query, filter)
        };
        let external = self.external.search(self.records, ctx, &query);
        let (own, external) = join(self.records.search(ctx, &query), external).await;
        let hits = merge(own?, external, top_k);
        Ok(hits.into_iter().map(FoundDocument::from).collect())
    }

    /// Takes in documents, cut into chunks that are found by themselves. One that was there before
    /// is replaced; what it still says is neither written nor embedded again.
    pub async fn add_documents(
        &self,
        ctx: &Ctx,
        documents: Vec<Document>,
    ) -> Result<Vec<DocumentReceipt>, Error> {
        self.records.add_documents(ctx, documents).await
    }

    /// Remembers something. It belongs to no session, so it outlives the one it came from.
    pub async fn remember(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        knowledge: Knowledge,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let kind = knowledge.kind.unwrap_or(Kind::Note);
        if !matches!(
            kind,
            Kind::Note | Kind::Fact | Kind::Document | Kind::Decision
        ) {
            let what = format!("`{kind}` is not one of: note, fact, document, decision");
            return Err(Invalid::new("kind", what).into());
        }
        let draft = Draft {
            content: knowledge.content,
            owner: unbound(owner, knowledge.shared),
            scope: Some(Scope::Semantic),
            kind: Some(kind),
            summary: knowledge.summary,
            tags: knowledge.tags,
            source: knowledge.source,
            importance: knowledge.importance,
            metadata: knowledge.metadata,
            derived_from: knowledge.derived_from,
            ..Draft::default()
        };
        self.records.add_with_key(ctx, vec![draft], key).await
    }
}

/// The owner of what outlives its session: without the session, and without the user if everybody
/// may see it.
pub(super) fn unbound(owner: &Owner, shared: bool) -> Owner {
    Owner {
        user: owner.user.clone().filter(|_| !shared),
        session: None,
        ..owner.clone()
    }
}
