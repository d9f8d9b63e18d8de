//! Reading: one statement each, so that everything comes from one moment.

use std::collections::HashMap;

use mnemon_core::{
    Audience, Cause, Change, Changes, Filter, Grant, Group, Id, Order, Page, Record, Right, Scan,
    SessionCount, SessionWindow, StoreError, Tally, Viewer,
};
use tokio_postgres::Row;

use super::errors::Failure;
use super::pool::{Call, Lease};
use super::view::{bound, count, number, texts, time, word};
use crate::store::corrupt;

/// The number of the tenant whose name is $1; NULL if it never wrote.
pub(super) const OWN: &str = "(SELECT num FROM mnemon.tenants WHERE name = $1)";

/// A statement about the grant's tenant, whose name is $1.
pub(super) fn call(grant: &Grant, sql: impl Into<String>) -> Result<Call, Failure> {
    grant.require(Right::Read).map_err(StoreError::from)?;
    Ok(Call::about(grant.tenant(), sql))
}

/// The record in a row's document.
pub(super) fn record(place: &str, doc: &str) -> Result<Record, Failure> {
    let parsed = serde_json::from_str(doc);
    parsed.map_err(|error| corrupt(place, format!("a record cannot be read: {error}")).into())
}

/// The records of rows that begin with `doc`.
pub(super) fn records(place: &str, rows: &[Row]) -> Result<Vec<Record>, Failure> {
    let docs = rows.iter();
    docs.map(|row| record(place, row.try_get(0)?)).collect()
}

pub(super) async fn get(
    lease: &mut Lease,
    grant: &Grant,
    ids: &[Id],
) -> Result<Vec<Option<Record>>, Failure> {
    if ids.len() > grant.limits().page {
        return Err(StoreError::TooLarge {
            what: "ids in one get",
            count: ids.len(),
            most: grant.limits().page,
        }
        .into());
    }
    let sql = format!(
        "SELECT doc FROM mnemon.records WHERE tenant = {OWN} AND id = ANY($2)
         AND (expires IS NULL OR expires >= $3)"
    );
    let call = call(grant, sql)?;
    let call = call.with(texts(ids)).with(grant.now().millis());
    let rows = lease.all(call).await?;
    let found = records(lease.place(), &rows)?;
    let found: HashMap<Id, Record> = found.into_iter().map(|it| (it.id.clone(), it)).collect();
    Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
}

pub(super) async fn ids_with_prefix(
    lease: &mut Lease,
    grant: &Grant,
    prefix: &str,
    limit: usize,
) -> Result<Vec<Id>, Failure> {
    let sql = format!(
        "SELECT id FROM mnemon.records WHERE tenant = {OWN} AND id >= $2 AND id < $3
         AND (expires IS NULL OR expires >= $4) ORDER BY id LIMIT $5"
    );
    // Ids are printable ASCII, so this comes after all that begin with the prefix.
    let end = format!("{prefix}\u{7f}");
    let call = call(grant, sql)?.with(prefix.to_owned()).with(end);
    let rows = lease.all(call.with(grant.now().millis()).with(count(limit)));
    rows.await?.iter().map(|row| word(row, 0)).collect()
}

/// The part of a filter that indexes and columns can decide, appended to a statement whose $1 is the
/// tenant's name. `r` is the table of records.
pub(super) fn add_conditions(call: &mut Call, grant: &Grant, filter: &Filter) {
    call.push(&format!("r.tenant = {OWN}"));
    call.and(
        "(r.expires IS NULL OR r.expires >= ?)",
        grant.now().millis(),
    );
    if !filter.derived_from.is_empty() {
        let derived = format!(
            "r.id IN (SELECT derived FROM mnemon.links WHERE tenant = {OWN} AND source = ANY(?))"
        );
        call.and(&derived, texts(&filter.derived_from));
    }
    let owner = &filter.owner;
    for (column, name) in [
        ("user_id", &owner.user),
        ("agent_id", &owner.agent),
        ("session_id", &owner.session),
    ] {
        if let Some(name) = name {
            call.and(&format!("r.{column} = ?"), name.clone());
        }
    }
    add_viewer(call, &filter.viewer);
    let scopes: Vec<&str> = filter.scopes.iter().map(|word| word.as_str()).collect();
    let kinds: Vec<&str> = filter.kinds.iter().map(|word| word.as_str()).collect();
    let namespaces = filter.namespaces.iter().map(|word| word.as_str());
    if !kinds.is_empty() {
        // The counts say at once what a walk through a long session would find in the end.
        let there = format!(
            "EXISTS (SELECT 1 FROM mnemon.tally
                WHERE tenant = {OWN} AND count > 0 AND kind = ANY(?))"
        );
        call.and(&there, kinds.clone());
    }
    for (column, words) in [
        ("scope", scopes),
        // An expression keeps the planner from the index on kinds, where others are better.
        ("kind || ''", kinds),
        ("namespace", namespaces.collect()),
    ] {
        if !words.is_empty() {
            call.and(&format!("r.{column} = ANY(?)"), words);
        }
    }
    if let Some(since) = filter.since {
        call.and("r.created >= ?", since.millis());
    }
    if let Some(until) = filter.until {
        call.and("r.created < ?", until.millis());
    }
}

/// Records that the viewer may see: by their owner, or by an audience of their own.
fn add_viewer(call: &mut Call, viewer: &Viewer) {
    let Some(mut audiences) = viewer.audiences() else {
        return;
    };
    let user = audiences.iter().find_map(Audience::user).map(str::to_owned);
    audiences.push(Audience::Everyone);
    let audiences: Vec<String> = audiences.iter().map(ToString::to_string).collect();
    let listed = format!("${}", call.next() + 1);
    let seen = format!(
        "(r.audience IS NULL AND (r.user_id IS NULL OR r.user_id = ?) OR r.audience = ANY({listed}))"
    );
    call.and(&seen, user);
    call.add(audiences);
}

/// Whether the columns decide the whole filter.
fn is_decided_by_columns(filter: &Filter) -> bool {
    let Filter {
        owner,
        tags,
        source,
        metadata,
        ..
    } = filter;
    tags.is_empty()
        && source.is_none()
        && metadata.is_none()
        && owner.flow.is_none()
        && owner.node.is_none()
}

/// The statement of a scan, without its limit.
fn select_scan(grant: &Grant, scan: &Scan) -> Result<Call, Failure> {
    let mut select = call(grant, "SELECT r.doc FROM mnemon.records r WHERE ")?;
    add_conditions(&mut select, grant, &scan.filter);
    let Filter { owner, kinds, .. } = &scan.filter;
    if let [kind] = kinds.as_slice()
        && owner.is_empty()
        && scan.filter.derived_from.is_empty()
        && scan.order != Order::Written
    {
        // The index on kinds has the order of such a list.
        select.and("r.kind = ?", kind.as_str());
    }
    if let Some(after) = scan.after {
        let seq = bound(after.seq);
        match scan.order {
            Order::Written => select.and("r.seq > ?", seq),
            order => {
                let beyond = if order == Order::Newest { "<" } else { ">" };
                let place = format!("${}", select.next() + 1);
                let condition = format!("(r.created, r.seq) {beyond} (?, {place})");
                select.and(&condition, after.key);
                select.add(seq);
            }
        }
    }
    select.push(match scan.order {
        Order::Newest => " ORDER BY r.created DESC, r.seq DESC",
        Order::Oldest => " ORDER BY r.created, r.seq",
        Order::Written => " ORDER BY r.seq",
    });
    Ok(select)
}

/// The statement with a limit.
fn limited(mut select: Call, limit: usize) -> Call {
    select.push(&format!(" LIMIT ${}", select.next()));
    select.with(count(limit))
}

pub(super) async fn scan(lease: &mut Lease, grant: &Grant, scan: &Scan) -> Result<Page, Failure> {
    let limit = scan.limit.min(grant.limits().page);
    let select = select_scan(grant, scan)?;
    let mut found = Vec::new();
    if is_decided_by_columns(&scan.filter) {
        let rows = lease.all(limited(select, limit.saturating_add(1))).await?;
        found = records(lease.place(), &rows)?;
        found.retain(|record| scan.filter.matches(record));
    } else {
        let place = lease.place().to_owned();
        lease
            .until(&select, |row| {
                let record = record(&place, row.try_get(0)?)?;
                if scan.filter.matches(&record) {
                    found.push(record);
                }
                Ok(found.len() > limit)
            })
            .await?;
    }
    Ok(Page::cut(found, limit, scan.order))
}

/// The records with their sessions around them, in two round trips.
pub(super) async fn neighbours(
    lease: &mut Lease,
    grant: &Grant,
    ids: &[Id],
    reach: usize,
) -> Result<Vec<Option<SessionWindow>>, Failure> {
    let found = get(lease, grant, ids).await?;
    let reach = reach.min(grant.limits().page);
    let mut calls = Vec::new();
    for record in found.iter().flatten() {
        for order in [Order::Newest, Order::Oldest] {
            if let Some(scan) = SessionWindow::scan_beside(record, order, reach) {
                calls.push(limited(select_scan(grant, &scan)?, reach));
            }
        }
    }
    let mut answers = lease.pipeline(None, &calls, None).await?.into_iter();
    let mut windows = Vec::with_capacity(found.len());
    for record in found {
        windows.push(match record {
            None => None,
            Some(record) if record.owner.session.is_none() => {
                Some(SessionWindow::of(record, Vec::new(), Vec::new()))
            }
            Some(record) => {
                let before = records(lease.place(), &answers.next().unwrap_or_default())?;
                let after = records(lease.place(), &answers.next().unwrap_or_default())?;
                Some(SessionWindow::of(record, before, after))
            }
        });
    }
    Ok(windows)
}

/// Counts the records of each session without reading them. `None` if the filter needs
/// whole records.
pub(super) async fn sessions(
    lease: &mut Lease,
    grant: &Grant,
    filter: &Filter,
) -> Result<Option<Vec<SessionCount>>, Failure> {
    if !is_decided_by_columns(filter) {
        return Ok(None);
    }
    let sql =
        "SELECT r.user_id, r.session_id, count(*), max(r.created) FROM mnemon.records r WHERE ";
    let mut select = call(grant, sql)?;
    add_conditions(&mut select, grant, filter);
    select.push(&format!(
        " AND r.session_id IS NOT NULL GROUP BY r.user_id, r.session_id
         ORDER BY 4 DESC, r.user_id NULLS FIRST, r.session_id LIMIT {}",
        grant.limits().sessions
    ));
    let rows = lease.all(select).await?;
    let sessions = rows.iter().map(|row| {
        Ok(SessionCount {
            user: row.try_get(0)?,
            session: row.try_get(1)?,
            records: number(row, 2)?,
            last: time(row, 3)?,
        })
    });
    sessions.collect::<Result<_, Failure>>().map(Some)
}

const CHANGE: &str = "seq, id, version, commit_seq, at, actor, cause, doc";

fn change(place: &str, row: &Row) -> Result<Change, Failure> {
    let doc = |column: usize| -> Result<Option<Record>, Failure> {
        let doc: Option<&str> = row.try_get(column)?;
        doc.map(|doc| record(place, doc)).transpose()
    };
    let version = number(row, 2)?;
    Ok(Change {
        seq: number(row, 0)?,
        id: word(row, 1)?,
        version,
        commit: number(row, 3)?,
        at: time(row, 4)?,
        actor: row.try_get(5)?,
        cause: word::<Cause>(row, 6)?,
        after: doc(7)?,
        before_known: version == 1 || row.try_get::<_, Option<i64>>(8)?.is_some(),
        before: doc(9)?,
    })
}

/// The column of [`select_changes`] with the number of changes before those beyond `bytes` are cut.
const FOUND: usize = 10;

/// One page of changes, of which the viewer may not see all, in the order asked. Changes that follow
/// documents of [`Changes::bytes`] are left out: a document is never smaller than its weight.
fn select_changes(grant: &Grant, wanted: &Changes, limit: usize) -> Result<Call, Failure> {
    let mut inner = call(grant, "")?
        .with(grant.now().millis())
        .with(count(limit))
        .with(count(wanted.bytes));
    inner.push(&format!(
        "tenant = {OWN} AND (expires IS NULL OR expires >= $2)"
    ));
    match wanted.after {
        Some(after) => inner.and("seq > ?", bound(after)),
        None => inner.push(" AND cause <> 'purged'"),
    }
    if let Some(commit) = wanted.commit {
        // Changes of others may stand between those of one commit.
        inner.and("commit_seq = ?", bound(commit));
        inner.and("seq >= ?", bound(commit));
    }
    if let Some(before) = wanted.before {
        inner.and("seq < ?", bound(before));
    }
    if let Some(id) = &wanted.id {
        inner.and("id = ?", id.as_str().to_owned());
    }
    let order = match wanted.after {
        Some(_) => "seq ASC",
        None => "seq DESC",
    };
    Ok(inner.wrap(|conditions| {
        format!(
            "SELECT * FROM (SELECT c.*, b.version, b.doc, count(*) OVER () AS found,
                sum(coalesce(octet_length(c.doc), 0) + coalesce(octet_length(b.doc), 0)) OVER (
                    ORDER BY c.{order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earlier
             FROM (
                (SELECT {CHANGE} FROM mnemon.records WHERE {conditions} ORDER BY {order} LIMIT $3)
                UNION ALL
                (SELECT {CHANGE} FROM mnemon.history WHERE {conditions} ORDER BY {order} LIMIT $3)
                ORDER BY {order} LIMIT $3
             ) c
             LEFT JOIN LATERAL (SELECT version, expires, doc FROM mnemon.history h
                WHERE h.tenant = {OWN} AND h.id = c.id AND h.seq < c.seq
                ORDER BY h.seq DESC LIMIT 1) b
                ON b.version = c.version - 1 AND (b.expires IS NULL OR b.expires >= $2)
             ) p WHERE coalesce(earlier, 0) < $4 ORDER BY {order}"
        )
    }))
}

pub(super) async fn changes(
    lease: &mut Lease,
    grant: &Grant,
    wanted: &Changes,
) -> Result<Vec<Change>, Failure> {
    let limit = wanted.limit.min(grant.limits().changes);
    let mut from = wanted.clone();
    let (mut found, mut weight) = (Vec::new(), 0);
    while found.len() < limit && weight < wanted.bytes {
        let rows = lease.all(select_changes(grant, &from, limit)?).await?;
        let first = rows.first();
        let has_found = first.map_or(Ok(0), |row| number(row, FOUND))?;
        let is_last = has_found < limit as u64 && rows.len() as u64 == has_found;
        for row in &rows {
            let change = change(lease.place(), row)?;
            match from.after.is_some() {
                true => from.after = Some(change.seq),
                false => from.before = Some(change.seq),
            }
            let has_room = found.len() < limit && weight < wanted.bytes;
            if wanted.shows(&change) && has_room {
                weight += change.weight();
                found.push(change);
            }
        }
        if is_last {
            break;
        }
    }
    Ok(found)
}

pub(super) async fn newest_change(lease: &mut Lease, grant: &Grant) -> Result<u64, Failure> {
    let sql = "SELECT last_seq FROM mnemon.tenants WHERE name = $1";
    let rows = lease.all(call(grant, sql)?).await?;
    rows.first().map_or(Ok(0), |row| number(row, 0))
}

pub(super) async fn tally(lease: &mut Lease, grant: &Grant) -> Result<Tally, Failure> {
    // One statement, so that counts and numbers are of one moment.
    let sql = "SELECT t.history, t.last_seq,
            (SELECT count(*) FROM mnemon.records WHERE tenant = t.num AND expires < $2),
            g.scope, g.kind, g.namespace, g.count
         FROM mnemon.tenants t LEFT JOIN mnemon.tally g ON g.tenant = t.num AND g.count > 0
         WHERE t.name = $1";
    let rows = lease
        .all(call(grant, sql)?.with(grant.now().millis()))
        .await?;
    let mut tally = Tally::default();
    for row in &rows {
        tally.history = number(row, 0)?;
        tally.seq = number(row, 1)?;
        tally.expired = number(row, 2)?;
        if row.try_get::<_, Option<&str>>(3)?.is_some() {
            tally.groups.push(Group {
                scope: word(row, 3)?,
                kind: word(row, 4)?,
                namespace: word(row, 5)?,
                count: number(row, 6)?,
            });
        }
    }
    tally.groups.sort();
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use mnemon_core::{Ctx, Kind, Owner, Policy, Tenant, Time};

    use super::*;

    #[test]
    fn only_lists_that_have_the_order_of_the_index_on_kinds_enter_it() {
        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
        let grant = Policy::default().check(&ctx, Right::Read).unwrap();
        let enters = |kinds: &[Kind], session: Option<&str>, order| {
            let mut filter = Filter::all_of_tenant();
            filter.kinds = kinds.to_vec();
            filter.owner = Owner {
                session: session.map(str::to_owned),
                ..Owner::default()
            };
            let scan = Scan {
                order,
                ..Scan::new(filter, 5)
            };
            let mut enters = false;
            let _ = select_scan(&grant, &scan).unwrap().wrap(|sql| {
                enters = sql.contains("r.kind = $");
                sql.to_owned()
            });
            enters
        };
        assert!(enters(&[Kind::Skill], None, Order::Newest));
        assert!(!enters(&[Kind::Skill], Some("s"), Order::Newest));
        assert!(!enters(&[Kind::Skill], None, Order::Written));
        assert!(!enters(&[Kind::Skill, Kind::Rule], None, Order::Newest));
    }
}
