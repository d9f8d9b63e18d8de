//! Forget records, by id or by what they are like.

use mnemon_core::{Changes, Ctx, Filter, HiddenScan, Id, Invalid, Receipt, Scan, Viewer, limits};
use mnemon_engine::{Memory, NotErased, Purged};
use serde::{Deserialize, Serialize};

use super::{get, list};
use crate::Error;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// These records; or
    pub ids: Vec<Id>,
    /// those that the filter means. A filter that means everything is refused.
    pub filter: Option<Filter>,
    /// Erase them and their history permanently, instead of keeping them for undo.
    pub purge: bool,
    /// Makes a retry harmless.
    pub key: Option<String>,
    /// The version that the one record must still have. A purge cannot ask for it.
    pub version: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    #[serde(flatten)]
    pub receipt: Receipt,
    /// Whether the filter means more records than one commit may take; ask again for the rest.
    pub more: bool,
    /// After a purge: logs and pages that still hold the text of records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<NotErased>,
}

/// Everything goes in one commit, so that one undo brings it back.
pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    if !request.purge {
        let records = memory.records();
        records.check_no_file_entries(ctx, &request.ids).await?;
    }
    if request.key.is_none() {
        check_there(memory, ctx, &request).await?;
    }
    let (ids, more) = match (request.ids, request.filter) {
        (ids, None) if !ids.is_empty() => (ids, false),
        (ids, Some(filter)) if ids.is_empty() && !filter.is_empty() => {
            if let (true, Some(session)) = (request.purge, whole_session(&filter)) {
                // Otherwise the next line that is appended to its log would index others again.
                memory.mark_session_purged(ctx, session).await?;
            }
            select(memory, ctx, filter, request.purge).await?
        }
        _ => {
            let what = "are missing: name the records, or select them with filters";
            return Err(Invalid::new("ids", what).into());
        }
    };
    let key = request.key.as_deref();
    let records = memory.records();
    let forgotten = |receipt| Purged {
        receipt,
        left: Vec::new(),
    };
    let Purged { receipt, left } = match (request.version, ids.as_slice()) {
        _ if request.purge => memory.purge_records(ctx, &ids, key).await?,
        (Some(version), [id]) => forgotten(records.forget_version(ctx, id, version, key).await?),
        _ => forgotten(records.forget(ctx, &ids, key).await?),
    };
    Ok(Response {
        receipt,
        more,
        left,
    })
}

/// An id without a record is a typing error, so nothing is removed. A purge also means records that
/// were forgotten earlier. A retry under a key may find all of them gone.
async fn check_there(memory: &Memory, ctx: &Ctx, request: &Request) -> Result<(), Error> {
    let ids = request.ids.clone();
    let mut missing = get::run(memory, ctx, &Viewer::Tenant, ids).await?.missing;
    if request.purge {
        let mut unknown = Vec::new();
        for id in missing {
            let changes = Changes {
                id: Some(id.clone()),
                ..Changes::all_of_tenant(1)
            };
            if memory.records().history(ctx, &changes).await?.is_empty() {
                unknown.push(id);
            }
        }
        missing = unknown;
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::Missing(missing)),
    }
}

/// The session, if the filter means all of it.
fn whole_session(filter: &Filter) -> Option<&str> {
    let session = filter.owner.session.as_deref()?;
    let mut only = Filter::all_of_tenant();
    only.owner.session = Some(session.to_owned());
    (*filter == only).then_some(session)
}

/// As many as one commit may take, and whether there are more. A purge also means records that were
/// forgotten earlier or have expired.
async fn select(
    memory: &Memory,
    ctx: &Ctx,
    filter: Filter,
    purge: bool,
) -> Result<(Vec<Id>, bool), Error> {
    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let page = Scan {
            after,
            ..Scan::new(filter.clone(), limits::PAGE)
        };
        let page = list::run(memory, ctx, page).await?;
        // Entries of agents' files are removed in the files; the index would hide them only until
        // the next change.
        let records = page.records.into_iter();
        let records = records.filter(|record| purge || !record.is_of_agent_file());
        ids.extend(records.map(|record| record.id));
        after = page.next;
        if ids.len() + limits::PAGE > limits::BATCH_OPS {
            return Ok((ids, after.is_some() || purge));
        }
        if after.is_none() {
            break;
        }
    }
    let more = purge && add_hidden(memory, ctx, filter, &mut ids).await?;
    Ok((ids, more))
}

/// Adds records that were forgotten earlier or have expired; whether there are more than fit.
async fn add_hidden(
    memory: &Memory,
    ctx: &Ctx,
    filter: Filter,
    ids: &mut Vec<Id>,
) -> Result<bool, Error> {
    let mut scan = HiddenScan::new(filter);
    loop {
        let page = memory.records().hidden(ctx, &scan).await?;
        scan.after = page.last().map(|last| last.record.id.clone());
        let has_more = page.len() == scan.limit;
        // One that matches only in an older version is another record by now.
        let gone = page.into_iter().filter(|hidden| !hidden.is_live);
        ids.extend(gone.map(|hidden| hidden.record.id));
        if !has_more || ids.len() + limits::PAGE > limits::BATCH_OPS {
            return Ok(has_more);
        }
    }
}
