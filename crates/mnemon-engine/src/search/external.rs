//! Knowledge that others keep, searched besides the store and merged by the same ranking.
//!
//! The texts that the sources find are put into a store in memory that lives as long as the search,
//! and are searched there like records. Scores are calibrated, so they are comparable with those of
//! our own records.

use std::sync::Arc;

use futures::future::join_all;
use mnemon_core::external::{ExternalHit, ExternalSource};
use mnemon_core::ram::Ram;
use mnemon_core::{
    Backend, Ctx, Expect, Filter, Kind, Namespace, Origin, Owner, Policy, Scope, Time, Viewer,
    limits,
};
use serde_json::{Map, Value};

use crate::records::naming::fixed_id;
use crate::records::{Draft, Error, Records, Retention};
use crate::search::{Hit, Query};

/// Hits that each source is asked for, and the most of all sources that are ranked.
const ASKED: usize = 50;
const RANKED: usize = 200;
/// Bytes of an external text that are ranked and shown.
const TEXT_BYTES: usize = 32 * 1024;
/// The metadata field with the name of a text in its source.
const EXTERNAL_ID: &str = "external_id";
const TITLE: &str = "title";

/// What the texts of a source of this scope count as.
fn kind_in(scope: Scope) -> Kind {
    match scope {
        Scope::Procedural => Kind::Skill,
        _ => Kind::Document,
    }
}

/// The sources of a memory.
#[derive(Clone, Copy)]
pub(crate) struct External<'a> {
    pub(crate) sources: &'a [Arc<dyn ExternalSource>],
}

impl External<'_> {
    /// The sources in which this search may find something.
    fn meant(&self, ctx: &Ctx, filter: &Filter) -> Vec<&dyn ExternalSource> {
        if !is_plain(filter) {
            return Vec::new();
        }
        let is_meant = |source: &&dyn ExternalSource| {
            let (scope, kind) = (source.scope(), kind_in(source.scope()));
            let is_in_scope = filter.scopes.is_empty() || filter.scopes.contains(&scope);
            let is_of_kind = filter.kinds.is_empty() || filter.kinds.contains(&kind);
            is_in_scope && is_of_kind && source.serves(ctx)
        };
        let sources = self.sources.iter().map(|source| source.as_ref());
        sources.filter(is_meant).collect()
    }

    /// What the sources know about the query, ranked like records and marked with the source's name.
    /// A source that fails or is too slow is left out, with a notice.
    pub(crate) async fn search(&self, records: &Records, ctx: &Ctx, query: &Query) -> Vec<Hit> {
        let sources = self.meant(ctx, &query.filter);
        if sources.is_empty() || query.text.trim().is_empty() {
            return Vec::new();
        }
        match ranked(&sources, records, ctx, query).await {
            Ok(hits) => hits,
            Err(error) => {
                let what = format!("External knowledge was not searched: {error}.");
                ctx.notices.add(what);
                Vec::new()
            }
        }
    }
}

/// Whether a text of others can match: it has no tags, and belongs to no session, agent or flow.
fn is_plain(filter: &Filter) -> bool {
    let spaces = &filter.namespaces;
    let spaces = spaces.is_empty() || spaces.contains(&Namespace::LongTerm);
    let Owner {
        user: _,
        agent,
        session,
        flow,
        node,
    } = &filter.owner;
    let is_free = [agent, session, flow, node]
        .iter()
        .all(|name| name.is_none());
    spaces
        && is_free
        && filter.tags.is_empty()
        && filter.source.is_none()
        && filter.metadata.is_none()
        && filter.derived_from.is_empty()
}

async fn ranked(
    sources: &[&dyn ExternalSource],
    records: &Records,
    ctx: &Ctx,
    query: &Query,
) -> Result<Vec<Hit>, Error> {
    let user = asker(&query.filter);
    let asked = sources.iter().map(|source| async {
        let found = source.find(ctx, user.as_deref(), &query.text, ASKED).await;
        (*source, found)
    });
    let mut drafts = Vec::new();
    for (source, found) in join_all(asked).await {
        match found {
            Ok(found) => drafts.extend(found.into_iter().map(|hit| draft(source, hit))),
            Err(error) => ctx.notices.add(format!(
                "The external source `{}` was not searched: {error}.",
                source.name()
            )),
        }
    }
    drafts.retain(|(draft, _)| draft.check(ctx).is_ok());
    drafts.truncate(RANKED);
    if drafts.is_empty() {
        return Ok(Vec::new());
    }
    let shelf = shelf(records);
    let own = Ctx::new(ctx.tenant.clone(), ctx.actor.clone(), ctx.now);
    let mut seen = std::collections::HashSet::new();
    drafts.retain(|(draft, _)| seen.insert(draft.id.clone()));
    for part in drafts.chunks(shelf.limits().commit_ops.max(1)) {
        shelf.put_screened(&own, part.to_vec(), None).await?;
    }
    let hits = shelf.search(&own, &shelf_query(query)).await?;
    Ok(hits.into_iter().map(marked).collect())
}

fn draft(source: &dyn ExternalSource, hit: ExternalHit) -> (Draft, Expect) {
    let (name, scope) = (source.name(), source.scope());
    let id = fixed_id("external", &[Some(name), Some(&hit.id)]);
    let mut metadata = Map::new();
    metadata.insert(
        EXTERNAL_ID.to_owned(),
        cut(&hit.id, limits::ID_CHARS).into(),
    );
    if let Some(title) = &hit.title {
        let title = cut(title, limits::SOURCE_CHARS);
        metadata.insert(TITLE.to_owned(), title.into());
    }
    let draft = Draft {
        id: Some(id),
        content: cut(&hit.text, TEXT_BYTES),
        scope: Some(scope),
        kind: Some(kind_in(scope)),
        namespace: Some(Namespace::LongTerm),
        origin: Some(Origin::File),
        source: hit.source.map(|source| cut(&source, limits::SOURCE_CHARS)),
        // A text without a time counts as old.
        created: Some(hit.created.unwrap_or(Time::EPOCH)),
        metadata: with_name(metadata, name),
        ..Draft::default()
    };
    (draft, Expect::Anything)
}

/// The metadata field with the name of the source, until the hit is marked.
const SOURCE: &str = "external_source";

fn with_name(mut metadata: Map<String, Value>, name: &str) -> Map<String, Value> {
    metadata.insert(SOURCE.to_owned(), name.into());
    metadata
}

fn marked(mut hit: Hit) -> Hit {
    let name = hit.record.metadata.remove(SOURCE);
    hit.external = name.and_then(|name| name.as_str().map(str::to_owned));
    hit
}

/// The user whose memory a service is asked for.
fn asker(filter: &Filter) -> Option<String> {
    let viewer = match &filter.viewer {
        Viewer::Person { user, .. } => user.clone(),
        Viewer::Tenant => None,
    };
    filter.owner.user.clone().or(viewer)
}

/// A store in memory with our own embedders and limits.
fn shelf(records: &Records) -> Records {
    let backend: Backend = Arc::new(Ram::new()).into();
    Records {
        store: backend.store.clone(),
        index: backend.index.clone(),
        backends: vec![backend].into(),
        policy: Policy {
            limits: records.policy.limits,
            ..Policy::default()
        },
        retention: Retention {
            short_term_days: None,
            long_term_days: None,
        },
        reranker: None,
        recalled: Arc::default(),
        readings: Arc::default(),
        signal: Arc::default(),
        ..records.clone()
    }
}

/// The same query over all texts of the sources, which belong to no user and have no tags.
fn shelf_query(query: &Query) -> Query {
    Query {
        filter: Filter {
            since: query.filter.since,
            until: query.filter.until,
            ..Filter::all_of_tenant()
        },
        ..query.clone()
    }
}

fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    text.get(..end).unwrap_or_default().to_owned()
}

/// Both lists in one order, the best first; equals keep our own before external ones.
pub(crate) fn merge(mut own: Vec<Hit>, external: Vec<Hit>, limit: usize) -> Vec<Hit> {
    if external.is_empty() {
        return own;
    }
    own.extend(external);
    own.sort_by(|one, other| other.score.total_cmp(&one.score));
    own.truncate(limit);
    own
}
