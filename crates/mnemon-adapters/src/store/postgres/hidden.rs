//! Records that a scan does not show: deleted, expired, or changed since.

use std::collections::BTreeMap;

use mnemon_core::{Grant, Hidden, HiddenScan, Id, Record};

use super::errors::Failure;
use super::pool::{Call, Lease};
use super::reads::{OWN, call, record};
use super::view::{count, texts, word};

pub(super) async fn hidden(
    lease: &mut Lease,
    grant: &Grant,
    scan: &HiddenScan,
) -> Result<Vec<Hidden>, Failure> {
    let limit = scan.limit.min(grant.limits().page);
    let mut found = Vec::new();
    let mut after = scan.after.clone();
    lease.keep_to(grant.tenant());
    // One snapshot, so that candidates and their versions come from the same moment.
    lease
        .begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    while found.len() < limit {
        let rows = lease
            .all(candidates(grant, scan, after.as_ref(), limit)?)
            .await?;
        let ids = rows.iter().map(|row| word(row, 0));
        let ids = ids.collect::<Result<Vec<Id>, Failure>>()?;
        let mut versions = versions(lease, grant, &ids).await?;
        for id in &ids {
            let (of_id, is_live) = versions.remove(id).unwrap_or_default();
            if found.len() < limit {
                found.extend(Hidden::of(&scan.filter, of_id, is_live));
            }
        }
        if ids.len() < limit {
            break;
        }
        after = ids.last().cloned();
    }
    lease.end("ROLLBACK").await?;
    Ok(found)
}

/// The next ids that may be meant, in order: more than the filter means, never fewer.
fn candidates(
    grant: &Grant,
    scan: &HiddenScan,
    after: Option<&Id>,
    limit: usize,
) -> Result<Call, Failure> {
    let filter = &scan.filter;
    let start = call(grant, "")?.with(after.map_or("", Id::as_str).to_owned());
    let mut inner = start.with(count(limit));
    if !filter.derived_from.is_empty() {
        inner.push(&format!("tenant = {OWN} AND derived > $2"));
        inner.and("source = ANY(?)", texts(&filter.derived_from));
        return Ok(inner.wrap(|conditions| {
            format!(
                "SELECT DISTINCT derived FROM mnemon.links WHERE {conditions}
                 ORDER BY derived LIMIT $3"
            )
        }));
    }
    inner.push(&format!("tenant = {OWN} AND id > $2 AND doc IS NOT NULL"));
    let owner = &filter.owner;
    for (column, name) in [
        ("user_id", &owner.user),
        ("agent_id", &owner.agent),
        ("session_id", &owner.session),
    ] {
        if let Some(name) = name {
            inner.and(&format!("{column} = ?"), name.clone());
        }
    }
    let scopes: Vec<&str> = filter.scopes.iter().map(|word| word.as_str()).collect();
    let kinds: Vec<&str> = filter.kinds.iter().map(|word| word.as_str()).collect();
    for (column, words) in [("scope", scopes), ("kind", kinds)] {
        if !words.is_empty() {
            inner.and(&format!("{column} = ANY(?)"), words);
        }
    }
    let now = inner.next();
    let inner = inner.with(grant.now().millis());
    Ok(inner.wrap(|conditions| {
        format!(
            "SELECT id FROM (
                (SELECT DISTINCT id FROM mnemon.history WHERE {conditions} ORDER BY id LIMIT $3)
                UNION
                (SELECT id FROM mnemon.records WHERE tenant = {OWN} AND id > $2 AND expires < ${now}
                    ORDER BY id LIMIT $3)
             ) c ORDER BY id LIMIT $3"
        )
    }))
}

/// The versions of these records that have content, the newest first, and whether the first of them
/// is current and has not expired.
async fn versions(
    lease: &mut Lease,
    grant: &Grant,
    ids: &[Id],
) -> Result<BTreeMap<Id, (Vec<Record>, bool)>, Failure> {
    let sql = format!(
        "SELECT seq, doc, true FROM mnemon.records WHERE tenant = {OWN} AND id = ANY($2)
         UNION ALL
         SELECT seq, doc, false FROM mnemon.history
            WHERE tenant = {OWN} AND id = ANY($2) AND doc IS NOT NULL
         ORDER BY 1 DESC"
    );
    let rows = lease.all(call(grant, sql)?.with(texts(ids))).await?;
    let mut found: BTreeMap<Id, (Vec<Record>, bool)> = BTreeMap::new();
    for row in &rows {
        let version = record(lease.place(), row.try_get(1)?)?;
        let is_current: bool = row.try_get(2)?;
        let (versions, is_live) = found.entry(version.id.clone()).or_default();
        *is_live |= is_current && version.is_live(grant.now());
        versions.push(version);
    }
    Ok(found)
}
