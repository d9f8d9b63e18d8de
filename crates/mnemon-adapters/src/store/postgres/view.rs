//! Loads the view that a group of batches needs, usually in one round trip.

use std::collections::HashMap;
use std::str::FromStr;

use mnemon_core::commit::{KeptReceipt, Needs, Presence, Slot, View, Worth};
use mnemon_core::{Clock, Id, Namespace, StoreError, Time};
use tokio_postgres::Row;

use super::errors::Failure;
use super::pool::{Call, Lease};
use crate::store::corrupt;

/// A tenant whose row this transaction has locked, so that no other transaction writes for it.
#[derive(Debug, Clone)]
pub(super) struct Locked {
    pub(super) tenant: i64,
    pub(super) last_seq: u64,
    pub(super) embedded: i64,
    pub(super) removed: i64,
    pub(super) clock: Clock,
}

impl Locked {
    /// Waits until no other transaction writes for the tenant.
    pub(super) fn call(tenant: i64) -> Call {
        let sql = "SELECT num, last_seq, embedded, removed, clock_trusted, clock_suspect
             FROM mnemon.tenants WHERE num = $1 FOR UPDATE";
        Call::new(sql).with(tenant)
    }

    /// Begins a transaction in which only this process writes for the tenant.
    pub(super) async fn begin(lease: &mut Lease, tenant: i64) -> Result<Self, Failure> {
        let calls = [Self::call(tenant)];
        let answers = lease.pipeline(Some("BEGIN"), &calls, None).await?;
        Self::of(answers.first().map_or(&[], Vec::as_slice))
    }

    pub(super) fn of(rows: &[Row]) -> Result<Self, Failure> {
        let lost = || StoreError::Internal("the tenant's row is gone".to_owned());
        let row = rows.first().ok_or_else(lost)?;
        Ok(Self {
            tenant: row.try_get(0)?,
            last_seq: number(row, 1)?,
            embedded: row.try_get(2)?,
            removed: row.try_get(3)?,
            clock: Clock {
                trusted: maybe_time(row, 4)?,
                suspect: maybe_time(row, 5)?,
            },
        })
    }
}

/// A number that is never negative.
pub(super) fn number(row: &Row, column: usize) -> Result<u64, Failure> {
    Ok(row.try_get::<_, i64>(column)?.cast_unsigned())
}

pub(super) fn time(row: &Row, column: usize) -> Result<Time, Failure> {
    Ok(Time::EPOCH.plus_millis(row.try_get(column)?))
}

pub(super) fn maybe_time(row: &Row, column: usize) -> Result<Option<Time>, Failure> {
    let millis: Option<i64> = row.try_get(column)?;
    Ok(millis.map(|millis| Time::EPOCH.plus_millis(millis)))
}

/// A word of one of our enums, or an id.
pub(super) fn word<T>(row: &Row, column: usize) -> Result<T, Failure>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let text: &str = row.try_get(column)?;
    let parsed = text.parse();
    parsed.map_err(|error: T::Err| corrupt("a row of the database", error.to_string()).into())
}

/// A list of ids as a value.
pub(super) fn texts<'a>(ids: impl IntoIterator<Item = &'a Id>) -> Vec<String> {
    ids.into_iter().map(|id| id.as_str().to_owned()).collect()
}

/// The columns of a slot, of the table `r`.
const SLOT: &str = "r.seq, r.version, r.scope, r.kind, r.namespace, r.expires";

fn slot(row: &Row, first: usize) -> Result<Slot, Failure> {
    Ok(Slot {
        seq: number(row, first)?,
        version: number(row, first + 1)?,
        scope: word(row, first + 2)?,
        kind: word(row, first + 3)?,
        namespace: word(row, first + 4)?,
        expires: maybe_time(row, first + 5)?,
    })
}

/// A record that may have to go.
pub(super) struct Listed {
    pub(super) id: Id,
    pub(super) slot: Slot,
    worth: Worth,
}

impl Listed {
    fn of(row: &Row) -> Result<Self, Failure> {
        let slot = slot(row, 0)?;
        Ok(Self {
            id: word(row, 6)?,
            worth: Worth::new(slot.namespace, row.try_get(7)?, time(row, 8)?, slot.seq),
            slot,
        })
    }
}

/// Records that expired before `now`: by expiry, then id.
pub(super) fn expired(tenant: i64, now: Time, most: usize) -> Call {
    listed("r.expires < $2 ORDER BY r.expires, r.id LIMIT $3")
        .with(tenant)
        .with(now.millis())
        .with(count(most))
}

fn expired_notes(tenant: i64, namespace: Namespace, now: Time, most: usize) -> Call {
    let condition = "r.expires < $2 AND r.kind = 'note' AND r.namespace = $3
         ORDER BY r.expires, r.id LIMIT $4";
    listed(condition)
        .with(tenant)
        .with(now.millis())
        .with(namespace.as_str())
        .with(count(most))
}

/// The notes to go first.
fn weakest(tenant: i64, namespace: Namespace, most: usize) -> Call {
    let condition = "r.namespace = $2 AND r.kind = 'note'
         ORDER BY r.importance, r.created, r.seq LIMIT $3";
    listed(condition)
        .with(tenant)
        .with(namespace.as_str())
        .with(count(most))
}

fn listed(condition: &str) -> Call {
    Call::new(format!(
        "SELECT {SLOT}, r.id, r.importance, r.created FROM mnemon.records r
         WHERE r.tenant = $1 AND {condition}"
    ))
}

pub(super) fn list(rows: &[Row]) -> Result<Vec<Listed>, Failure> {
    rows.iter().map(Listed::of).collect()
}

/// A caller's number as a value. A number that no row can have becomes the largest one.
pub(super) fn bound(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Begins a transaction, locks the tenant and loads the view.
pub(super) async fn load(
    lease: &mut Lease,
    tenant: i64,
    needs: &Needs<'_>,
) -> Result<(Locked, View), Failure> {
    let mut calls = vec![Locked::call(tenant)];
    calls.extend(presences(tenant, &texts(needs.ids.iter().copied())));
    calls.push(receipts(tenant, needs));
    calls.push(
        Call::new(
            "SELECT namespace, sum(count)::bigint FROM mnemon.tally
             WHERE tenant = $1 AND kind = 'note' GROUP BY namespace",
        )
        .with(tenant),
    );
    calls.push(
        Call::new(
            "SELECT expires FROM mnemon.records WHERE tenant = $1 AND expires IS NOT NULL
             ORDER BY expires LIMIT 1",
        )
        .with(tenant),
    );
    if !needs.roots.is_empty() {
        calls.push(closure(tenant, needs));
    }
    let answers = lease.pipeline(Some("BEGIN"), &calls, None).await?;
    let mut answers = answers.into_iter();
    let mut next = || answers.next().unwrap_or_default();
    let locked = Locked::of(&next())?;
    let mut view = View {
        last_seq: locked.last_seq,
        clock: locked.clock,
        ..View::default()
    };
    show(&mut view, &next(), &next())?;
    keep_receipts(lease.place(), &mut view, &next())?;
    let (notes, soonest, reached) = (next(), next(), next());
    follow(lease, tenant, needs, &mut view, &reached).await?;
    let soonest = soonest.first().map(|row| time(row, 0)).transpose()?;
    let has_expired = soonest.is_some_and(|soonest| soonest < needs.now);
    show_next_to_go(lease, tenant, needs, &mut view, &notes, has_expired).await?;
    Ok((locked, view))
}

/// Current versions of these ids, and the newest rows of their history.
fn presences(tenant: i64, ids: &[String]) -> [Call; 2] {
    let current =
        format!("SELECT r.id, {SLOT} FROM mnemon.records r WHERE r.tenant = $1 AND r.id = ANY($2)");
    // One index lookup per id, however long its history is.
    let past = "SELECT i.id, h.version FROM unnest($2::text[]) AS i(id),
            LATERAL (SELECT version FROM mnemon.history
                WHERE tenant = $1 AND id = i.id ORDER BY seq DESC LIMIT 1) h";
    let of = |sql: String| Call::new(sql).with(tenant).with(ids.to_vec());
    [of(current), of(past.to_owned())]
}

fn show(view: &mut View, current: &[Row], past: &[Row]) -> Result<(), Failure> {
    for row in past {
        let version = number(row, 1)?;
        if version > 0 {
            view.records
                .insert(word(row, 0)?, Presence::Deleted(version));
        }
    }
    for row in current {
        view.records
            .insert(word(row, 0)?, Presence::Current(slot(row, 1)?));
    }
    Ok(())
}

fn receipts(tenant: i64, needs: &Needs<'_>) -> Call {
    let keys: Vec<String> = needs.keys.iter().map(|key| (*key).to_owned()).collect();
    let sql = "SELECT key, digest, receipt FROM mnemon.receipts
         WHERE tenant = $1 AND key = ANY($2)";
    Call::new(sql).with(tenant).with(keys)
}

fn keep_receipts(place: &str, view: &mut View, rows: &[Row]) -> Result<(), Failure> {
    for row in rows {
        let key: String = row.try_get(0)?;
        let kept = KeptReceipt {
            digest: row.try_get(1)?,
            receipt: read_receipt(place, &key, row.try_get(2)?)?,
        };
        view.receipts.insert(key, kept);
    }
    Ok(())
}

fn read_receipt(place: &str, key: &str, text: &str) -> Result<mnemon_core::Receipt, StoreError> {
    serde_json::from_str(text).map_err(|error| {
        let what = format!("the receipt of key `{key}` cannot be read: {error}");
        corrupt(place, what)
    })
}

/// How many links the closure of the roots may have to be loaded by one query.
fn most_links(needs: &Needs<'_>) -> usize {
    let most = needs.roots.len().saturating_mul(needs.most_derived);
    most.saturating_mul(2).saturating_add(1)
}

/// All links that are reached from the roots. Evaluation stops at the limit.
fn closure(tenant: i64, needs: &Needs<'_>) -> Call {
    let sql = r#"WITH RECURSIVE reached (id) AS (
            SELECT unnest($2::text[]) COLLATE "C"
            UNION
            SELECT l.derived FROM reached JOIN mnemon.links l ON l.tenant = $1 AND l.source = reached.id
        )
        SELECT l.source, l.derived FROM reached
            JOIN mnemon.links l ON l.tenant = $1 AND l.source = reached.id
        LIMIT $3"#;
    Call::new(sql)
        .with(tenant)
        .with(texts(needs.roots.iter().copied()))
        .with(count(most_links(needs)))
}

/// Follows the links from the roots, and loads the records that are met.
async fn follow(
    lease: &mut Lease,
    tenant: i64,
    needs: &Needs<'_>,
    view: &mut View,
    reached: &[Row],
) -> Result<(), Failure> {
    if needs.roots.is_empty() {
        return Ok(());
    }
    let mut known: HashMap<Id, Vec<Id>> = HashMap::new();
    let is_complete = reached.len() < most_links(needs);
    if is_complete {
        add_links(&mut known, reached)?;
    }
    let met = loop {
        // Ids whose links are not loaded yet; with a complete closure there are none.
        let mut missing: Vec<Id> = Vec::new();
        let mut attempt = view.clone();
        let met = attempt.follow(needs, |id| {
            let links = known.get(id).cloned();
            Ok(links.unwrap_or_else(|| {
                missing.push(id.clone());
                Vec::new()
            }))
        })?;
        if is_complete || missing.is_empty() {
            *view = attempt;
            break met;
        }
        let more = lease
            .all(links(tenant, &missing, most_links(needs)))
            .await?;
        for id in missing {
            known.entry(id).or_default();
        }
        add_links(&mut known, &more)?;
    };
    if met.is_empty() {
        return Ok(());
    }
    let calls = presences(tenant, &texts(&met));
    let mut answers = lease.pipeline(None, &calls, None).await?.into_iter();
    let mut next = || answers.next().unwrap_or_default();
    show(view, &next(), &next())
}

/// The links of these sources, each at most so many.
fn links(tenant: i64, sources: &[Id], most: usize) -> Call {
    let sql = "SELECT s.id, l.derived FROM unnest($2::text[]) AS s(id),
        LATERAL (SELECT derived FROM mnemon.links
            WHERE tenant = $1 AND source = s.id ORDER BY derived LIMIT $3) l";
    Call::new(sql)
        .with(tenant)
        .with(texts(sources))
        .with(count(most))
}

fn add_links(known: &mut HashMap<Id, Vec<Id>>, rows: &[Row]) -> Result<(), Failure> {
    for row in rows {
        let derived = known.entry(word(row, 0)?).or_default();
        derived.push(word(row, 1)?);
    }
    for derived in known.values_mut() {
        derived.sort();
    }
    Ok(())
}

/// Expired records, and notes where a cap may be passed.
async fn show_next_to_go(
    lease: &mut Lease,
    tenant: i64,
    needs: &Needs<'_>,
    view: &mut View,
    notes: &[Row],
    has_expired: bool,
) -> Result<(), Failure> {
    let mut counts = HashMap::new();
    for row in notes {
        counts.insert(word::<Namespace>(row, 0)?, number(row, 1)?);
    }
    let mut over = Vec::new();
    for grown in &needs.grown {
        let count = counts.get(&grown.namespace).copied().unwrap_or(0);
        view.notes.insert(grown.namespace, count);
        over.push((grown.namespace, grown.most_over(count)));
    }
    over.retain(|(_, over)| *over > 0);
    if over.is_empty() && !has_expired {
        return Ok(());
    }
    let sum = over.iter().map(|(_, over)| over).sum();
    let most = needs.most_changed(view.records.len(), sum);
    let mut calls = Vec::new();
    for (namespace, _) in &over {
        calls.push(weakest(tenant, *namespace, most));
    }
    if has_expired {
        calls.push(expired(tenant, needs.now, most));
        for (namespace, _) in &over {
            calls.push(expired_notes(tenant, *namespace, needs.now, most));
        }
    }
    let answers = lease.pipeline(None, &calls, None).await?;
    for (number, rows) in answers.iter().enumerate() {
        for Listed { id, slot, worth } in list(rows)? {
            match number < over.len() {
                true => drop(view.weakest.insert((worth, id.clone()))),
                false => {
                    let expires = slot.expires.unwrap_or(needs.now);
                    view.expired.insert((expires, id.clone()));
                }
            }
            view.records.insert(id, Presence::Current(slot));
        }
    }
    Ok(())
}
