//! Writes the rows of a plan: a few statements, however many rows there are.

use std::collections::HashMap;

use mnemon_core::embed::ModelId;
use mnemon_core::index::Doc;
use mnemon_core::{Clock, Id, Record, StoreError, Time};

use super::index::{Columns as IndexColumns, near};
use super::pool::Call;
use super::replica;
use super::rows::{CurrentRow, PastRow, ReceiptRow, Rows};
use super::view::{Locked, count, texts};

/// The numbers of models that vectors of a group were made by.
pub(super) type Models = HashMap<ModelId, i64>;

/// The tenant's row after the transaction.
pub(super) struct After {
    pub(super) last_seq: u64,
    pub(super) clock: Clock,
    /// How many removals are logged.
    pub(super) removal_log: usize,
    /// The group that this is, by which its outcome can be asked for.
    pub(super) token: Option<i64>,
    /// Whether vectors are written for pgvector, too.
    pub(super) with_near: bool,
}

/// Changes for which the groups of a tenant are kept.
pub(super) const GROUPS_KEPT: u64 = 100_000;
/// Older groups are dropped once in so many changes.
const GROUPS_DROPPED: u64 = 1024;

/// The statements that write the rows, to be run in this order. Rows of a table leave before others
/// enter, as an id is unique.
pub(super) fn statements(
    locked: &Locked,
    rows: Rows,
    models: &Models,
    after: &After,
) -> Result<Vec<Call>, StoreError> {
    let tenant = locked.tenant;
    let left = rows.left();
    let mut calls = replica::drop_copied(tenant, &rows.dropped, &rows.dropped_keys);
    calls.extend(leave(tenant, &rows, &left));
    calls.extend(relink(tenant, &rows.links));
    let removed = locked.removed + count(left.len());
    if !left.is_empty() {
        calls.extend(log_removals(locked, left, after.removal_log));
    }
    calls.extend(log_group(locked, after));
    let records: i64 = rows.grown.values().sum();
    calls.extend(tally(tenant, &rows));
    calls.push(
        Call::new(
            "UPDATE mnemon.tenants SET last_seq = $2, clock_trusted = $3, clock_suspect = $4,
                history = history + $5, records = records + $6, removed = $7 WHERE num = $1",
        )
        .with(tenant)
        .with(after.last_seq.cast_signed())
        .with(after.clock.trusted.map(Time::millis))
        .with(after.clock.suspect.map(Time::millis))
        .with(rows.history_grown)
        .with(records)
        .with(removed),
    );
    if !rows.past.is_empty() {
        calls.push(insert_past(tenant, rows.past.into_values())?);
    }
    if !rows.current.is_empty() {
        let rows = rows.current.into_values();
        let (current, search) = insert_current(tenant, rows, models, after.with_near)?;
        calls.extend([current, search]);
    }
    if !rows.receipts.is_empty() {
        calls.push(insert_receipts(tenant, &rows.receipts)?);
    }
    Ok(calls)
}

/// Rows that leave their tables.
fn leave(tenant: i64, rows: &Rows, left: &[i64]) -> Vec<Call> {
    let mut calls = Vec::new();
    if !rows.returned.is_empty() {
        let ids = texts(rows.returned.keys());
        let times: Vec<i64> = rows.returned.values().map(|at| at.millis()).collect();
        let sql = "UPDATE mnemon.history h SET replaced = r.at
             FROM unnest($2::text[], $3::bigint[]) AS r(id, at)
             WHERE h.tenant = $1 AND h.seq = (SELECT seq FROM mnemon.history
                WHERE tenant = $1 AND id = r.id ORDER BY seq DESC LIMIT 1)";
        calls.push(Call::new(sql).with(tenant).with(ids).with(times));
    }
    if !rows.erased.is_empty() {
        let sql = "WITH gone AS (DELETE FROM mnemon.history
                WHERE tenant = $1 AND id = ANY($2) AND version > 0 RETURNING 1)
             UPDATE mnemon.tenants SET history = history - (SELECT count(*) FROM gone)
             WHERE num = $1";
        calls.push(Call::new(sql).with(tenant).with(texts(&rows.erased)));
    }
    if !rows.retired.is_empty() {
        let seqs: Vec<i64> = rows.retired.keys().map(|seq| seq.cast_signed()).collect();
        let times: Vec<i64> = rows.retired.values().map(|at| at.millis()).collect();
        let sql = "WITH moved AS (DELETE FROM mnemon.records r
                USING unnest($2::bigint[], $3::bigint[]) AS m(seq, replaced)
                WHERE r.tenant = $1 AND r.seq = m.seq RETURNING r.*, m.replaced)
             INSERT INTO mnemon.history (tenant, seq, id, version, commit_seq, at, actor, cause,
                replaced, scope, kind, user_id, agent_id, session_id, expires, doc)
             SELECT tenant, seq, id, version, commit_seq, at, actor, cause,
                replaced, scope, kind, user_id, agent_id, session_id, expires, doc FROM moved";
        calls.push(Call::new(sql).with(tenant).with(seqs).with(times));
    }
    if !rows.removed.is_empty() {
        let seqs: Vec<i64> = rows.removed.iter().map(|seq| seq.cast_signed()).collect();
        let sql = "DELETE FROM mnemon.records WHERE tenant = $1 AND seq = ANY($2)";
        calls.push(Call::new(sql).with(tenant).with(seqs));
    }
    if !left.is_empty() {
        let sql = "DELETE FROM mnemon.search WHERE tenant = $1 AND seq = ANY($2)";
        calls.push(Call::new(sql).with(tenant).with(left.to_vec()));
    }
    calls
}

/// Replaces what records are derived from. A skill names hundreds of runs and gets a few new ones
/// at a time: only links that differ are written.
fn relink(tenant: i64, links: &std::collections::BTreeMap<Id, Vec<Id>>) -> Vec<Call> {
    if links.is_empty() {
        return Vec::new();
    }
    let (mut sources, mut derived) = (Vec::new(), Vec::new());
    for (id, from) in links {
        for source in from {
            sources.push(source.as_str().to_owned());
            derived.push(id.as_str().to_owned());
        }
    }
    let gone = "DELETE FROM mnemon.links l WHERE l.tenant = $1 AND l.derived = ANY($2)
         AND NOT EXISTS (SELECT 1 FROM unnest($3::text[], $4::text[]) AS n(source, derived)
            WHERE n.source = l.source AND n.derived = l.derived)";
    let mut calls = vec![
        Call::new(gone)
            .with(tenant)
            .with(texts(links.keys()))
            .with(sources.clone())
            .with(derived.clone()),
    ];
    if !sources.is_empty() {
        let new = "INSERT INTO mnemon.links (tenant, source, derived)
             SELECT $1, source, derived FROM unnest($2::text[], $3::text[]) AS n(source, derived)
             ON CONFLICT DO NOTHING";
        calls.push(Call::new(new).with(tenant).with(sources).with(derived));
    }
    calls
}

/// Logs the records that left, and drops the oldest entries of the log.
fn log_removals(locked: &Locked, left: Vec<i64>, most: usize) -> [Call; 2] {
    let newest = locked.removed + count(left.len());
    let log = "INSERT INTO mnemon.removals (tenant, number, seq)
         SELECT $1, $2 + place, seq FROM unnest($3::bigint[]) WITH ORDINALITY AS l(seq, place)";
    let drop = "DELETE FROM mnemon.removals WHERE tenant = $1 AND number <= $2";
    [
        Call::new(log)
            .with(locked.tenant)
            .with(locked.removed)
            .with(left),
        Call::new(drop)
            .with(locked.tenant)
            .with(newest - count(most.max(1))),
    ]
}

/// Notes that the group was committed, and drops old notes.
fn log_group(locked: &Locked, after: &After) -> Vec<Call> {
    let Some(token) = after.token else {
        return Vec::new();
    };
    let note = "INSERT INTO mnemon.groups (tenant, seq, token) VALUES ($1, $2, $3)";
    let note = Call::new(note).with(locked.tenant);
    let mut calls = vec![note.with(after.last_seq.cast_signed()).with(token)];
    if after.last_seq / GROUPS_DROPPED != locked.last_seq / GROUPS_DROPPED {
        let sql = "DELETE FROM mnemon.groups WHERE tenant = $1 AND seq < $2";
        let oldest = after.last_seq.saturating_sub(GROUPS_KEPT);
        let drop = Call::new(sql).with(locked.tenant);
        calls.push(drop.with(oldest.cast_signed()));
    }
    calls
}

fn tally(tenant: i64, rows: &Rows) -> Option<Call> {
    let grown = rows.grown.iter().filter(|(_, grown)| **grown != 0);
    let (mut scopes, mut kinds, mut namespaces) = (Vec::new(), Vec::new(), Vec::new());
    let mut counts = Vec::new();
    for ((scope, kind, namespace), grown) in grown {
        scopes.push(scope.as_str());
        kinds.push(kind.as_str());
        namespaces.push(namespace.as_str());
        counts.push(*grown);
    }
    let sql = "INSERT INTO mnemon.tally AS t (tenant, scope, kind, namespace, count)
         SELECT $1, scope, kind, namespace, count
         FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[])
            AS g(scope, kind, namespace, count)
         ON CONFLICT (tenant, scope, kind, namespace) DO UPDATE SET count = t.count + excluded.count";
    (!counts.is_empty()).then(|| {
        Call::new(sql)
            .with(tenant)
            .with(scopes)
            .with(kinds)
            .with(namespaces)
            .with(counts)
    })
}

fn json(record: &Record) -> Result<String, StoreError> {
    serde_json::to_string(record).map_err(|error| StoreError::Internal(error.to_string()))
}

/// Columns of many rows, each as a list.
#[derive(Default)]
struct Columns {
    seq: Vec<i64>,
    id: Vec<String>,
    version: Vec<i64>,
    commit_seq: Vec<i64>,
    at: Vec<i64>,
    actor: Vec<String>,
    cause: Vec<String>,
    scope: Vec<Option<&'static str>>,
    kind: Vec<Option<&'static str>>,
    user: Vec<Option<String>>,
    agent: Vec<Option<String>>,
    session: Vec<Option<String>>,
    expires: Vec<Option<i64>>,
    doc: Vec<Option<String>>,
}

impl Columns {
    fn push(
        &mut self,
        entry: mnemon_core::commit::Entry,
        id: &Id,
        version: u64,
        expires: Option<Time>,
        record: Option<&Record>,
    ) -> Result<(), StoreError> {
        self.seq.push(entry.seq.cast_signed());
        self.id.push(id.as_str().to_owned());
        self.version.push(version.cast_signed());
        self.commit_seq.push(entry.commit.cast_signed());
        self.at.push(entry.at.millis());
        self.actor.push(entry.actor);
        self.cause.push(entry.cause.to_string());
        self.scope.push(record.map(|record| record.scope.as_str()));
        self.kind.push(record.map(|record| record.kind.as_str()));
        let owner = record
            .map(|record| record.owner.clone())
            .unwrap_or_default();
        self.user.push(owner.user);
        self.agent.push(owner.agent);
        self.session.push(owner.session);
        self.expires.push(expires.map(Time::millis));
        self.doc.push(record.map(json).transpose()?);
        Ok(())
    }

    /// The columns as the values from $2 on.
    fn with(self, call: Call) -> Call {
        call.with(self.seq)
            .with(self.id)
            .with(self.version)
            .with(self.commit_seq)
            .with(self.at)
            .with(self.actor)
            .with(self.cause)
            .with(self.scope)
            .with(self.kind)
            .with(self.user)
            .with(self.agent)
            .with(self.session)
            .with(self.expires)
            .with(self.doc)
    }
}

fn insert_past(tenant: i64, rows: impl Iterator<Item = PastRow>) -> Result<Call, StoreError> {
    let mut columns = Columns::default();
    let mut replaced = Vec::new();
    for row in rows {
        replaced.push(row.replaced.millis());
        columns.push(
            row.entry,
            &row.id,
            row.version,
            row.expires,
            row.record.as_deref(),
        )?;
    }
    let sql = "INSERT INTO mnemon.history (tenant, seq, id, version, commit_seq, at, actor, cause,
            scope, kind, user_id, agent_id, session_id, expires, doc, replaced)
         SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[],
            $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
            $12::text[], $13::text[], $14::bigint[], $15::text[], $16::bigint[])";
    Ok(columns.with(Call::new(sql).with(tenant)).with(replaced))
}

/// Current versions, and what they are found by.
fn insert_current(
    tenant: i64,
    rows: impl Iterator<Item = CurrentRow>,
    models: &Models,
    with_near: bool,
) -> Result<(Call, Call), StoreError> {
    let mut columns = Columns::default();
    let mut index = IndexColumns::default();
    let (mut namespace, mut audience) = (Vec::new(), Vec::new());
    let (mut importance, mut created) = (Vec::new(), Vec::new());
    let (mut terms, mut speaker, mut tags) = (Vec::new(), Vec::new(), Vec::new());
    let (mut model, mut scale, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    for CurrentRow {
        entry,
        record,
        found_by,
    } in rows
    {
        namespace.push(record.namespace.as_str());
        audience.push(record.audience.as_ref().map(ToString::to_string));
        importance.push(record.importance);
        created.push(record.created.millis());
        let doc = Doc::of(&record);
        speaker.push(doc.speaker.map(str::to_owned));
        tags.push((!doc.tags.is_empty()).then(|| doc.tags.join("\n")));
        index.push(tenant, &record, &found_by);
        terms.push(found_by.terms);
        let vector = found_by.vector;
        model.push(
            vector
                .as_ref()
                .and_then(|it| models.get(&it.model).copied()),
        );
        scale.push(vector.as_ref().map(|it| it.vector.scale));
        codes.push(vector.map(|it| it.vector.to_bytes()));
        columns.push(
            entry,
            &record.id,
            record.version,
            record.expires,
            Some(&record),
        )?;
    }
    let search = Call::new(near::insert(with_near))
        .with(tenant)
        .with(columns.seq.clone())
        .with(terms)
        .with(speaker)
        .with(tags)
        .with(model)
        .with(scale)
        .with(codes)
        .with(created.clone())
        .with(columns.expires.clone());
    let search = index.with(search, with_near);
    let insert =
        "INSERT INTO mnemon.records (tenant, seq, id, version, commit_seq, at, actor, cause,
            scope, kind, user_id, agent_id, session_id, expires, doc, namespace, audience,
            importance, created)
         SELECT $1, unnest($2::bigint[]), unnest($3::text[]), unnest($4::bigint[]),
            unnest($5::bigint[]), unnest($6::bigint[]), unnest($7::text[]), unnest($8::text[]),
            unnest($9::text[]), unnest($10::text[]), unnest($11::text[]), unnest($12::text[]),
            unnest($13::text[]), unnest($14::bigint[]), unnest($15::text[]), unnest($16::text[]),
            unnest($17::text[]), unnest($18::double precision[]), unnest($19::bigint[])";
    let current = columns
        .with(Call::new(insert).with(tenant))
        .with(namespace)
        .with(audience)
        .with(importance)
        .with(created);
    Ok((current, search))
}

fn insert_receipts(tenant: i64, rows: &[ReceiptRow]) -> Result<Call, StoreError> {
    let (mut keys, mut digests) = (Vec::new(), Vec::new());
    let (mut times, mut receipts) = (Vec::new(), Vec::new());
    for ReceiptRow { key, at, receipt } in rows {
        keys.push(key.name.clone());
        digests.push(key.digest.clone());
        times.push(at.millis());
        let text = serde_json::to_string(receipt);
        receipts.push(text.map_err(|error| StoreError::Internal(error.to_string()))?);
    }
    let sql = "INSERT INTO mnemon.receipts (tenant, key, digest, at, receipt)
         SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::text[])";
    let call = Call::new(sql).with(tenant).with(keys).with(digests);
    Ok(call.with(times).with(receipts))
}
