//! Housekeeping: expired records and history, history past its time, old receipts, and vectors that are
//! not yet in the column for pgvector.

use std::collections::HashSet;

use mnemon_core::{Grant, Id, Time, Upkept, limits};

use super::apply::{self, After, Models};
use super::errors::Failure;
use super::index::near;
use super::pool::{Call, Lease};
use super::rows::Rows;
use super::view::{self, Locked, count, number, word};

/// Statements that are sent at once.
const TOGETHER: usize = 64;

/// One slice of housekeeping in its transaction.
struct Slice<'a> {
    lease: &'a mut Lease,
    locked: Locked,
    grant: &'a Grant,
    /// Whether the table has the column for pgvector.
    has_near: bool,
}

/// A slice of housekeeping, in the order that `Store::upkeep` says.
pub(super) async fn upkeep(
    lease: &mut Lease,
    tenant: i64,
    grant: &Grant,
    limit: usize,
    has_near: bool,
) -> Result<Upkept, Failure> {
    let locked = Locked::begin(lease, tenant).await?;
    let before = locked.clock;
    let after = before.observe(grant.now(), grant.accepts_clock());
    let mut slice = Slice {
        lease,
        locked,
        grant,
        has_near,
    };
    let done = match before.days_ahead(grant) {
        Some(days) => Upkept::held_back(days),
        None => slice.clear_away(limit).await?,
    };
    let changed = done.expired + done.history + done.receipts > 0;
    if changed || after.is_worth_keeping_after(before) {
        let sql = "UPDATE mnemon.tenants SET clock_trusted = $2, clock_suspect = $3 WHERE num = $1";
        let save = Call::new(sql)
            .with(tenant)
            .with(after.trusted.map(Time::millis))
            .with(after.suspect.map(Time::millis));
        slice.lease.all(save).await?;
    }
    slice.lease.end("COMMIT").await?;
    Ok(done)
}

impl Slice<'_> {
    async fn clear_away(&mut self, limit: usize) -> Result<Upkept, Failure> {
        let (tenant, now) = (self.locked.tenant, self.grant.now());
        let mut done = Upkept::default();
        let mut left = limit;
        let expired = self.lease.all(view::expired(tenant, now, left)).await?;
        let expired = view::list(&expired)?;
        let mut rows = Rows::default();
        for listed in &expired {
            rows.erase(&listed.id, Some(listed.slot));
        }
        self.write(rows).await?;
        done.expired += expired.len() as u64;
        left -= expired.len();
        let erased = self.erase_expired_past(left).await?;
        done.expired += erased as u64;
        left -= erased;
        if let Some(until) = self.grant.history_until() {
            let dropped = self.drop_history(until, left).await?;
            done.history = dropped as u64;
            left -= dropped;
        }
        let dropped = self.drop_receipts(left).await?;
        done.receipts = dropped as u64;
        left -= dropped;
        if self.has_near {
            left -= near::fill(self.lease, tenant, left).await?;
        }
        done.more = left == 0 && self.is_due().await?;
        Ok(done)
    }

    /// Writes rows that leave; the tenant's numbers stay as they are.
    async fn write(&mut self, rows: Rows) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        let removed = count(rows.left().len());
        let after = After {
            last_seq: self.locked.last_seq,
            clock: self.locked.clock,
            removal_log: self.grant.limits().removal_log,
            token: None,
            with_near: false,
        };
        let calls = apply::statements(&self.locked, rows, &Models::new(), &after)?;
        self.lease.pipeline(None, &calls, None).await?;
        self.locked.removed += removed;
        Ok(())
    }

    /// Erases expired rows of the history; returns how many pieces it came to. A record that
    /// was deleted last, and of which the deleted version has expired, goes whole.
    async fn erase_expired_past(&mut self, most: usize) -> Result<usize, Failure> {
        let mut done = 0;
        while done < most {
            let due = self.expired_past((most - done).min(limits::PAGE)).await?;
            if due.is_empty() {
                break;
            }
            let mut erased: HashSet<Id> = HashSet::new();
            let (mut rows, mut dropped) = (Rows::default(), Vec::new());
            for (seq, id, whole) in due {
                if erased.contains(&id) {
                    continue;
                }
                match whole {
                    true => {
                        rows.erase(&id, None);
                        erased.insert(id);
                    }
                    false => dropped.push((seq, id)),
                }
                done += 1;
            }
            self.write(rows).await?;
            self.drop_past(&dropped).await?;
        }
        Ok(done)
    }

    /// Expired changes, each with whether its record was deleted and has expired as a whole.
    async fn expired_past(&mut self, most: usize) -> Result<Vec<(u64, Id, bool)>, Failure> {
        let sql = "SELECT h.seq, h.id,
                NOT EXISTS (SELECT 1 FROM mnemon.records r WHERE r.tenant = $1 AND r.id = h.id)
                AND coalesce((SELECT n.doc IS NULL AND n.expires < $2 FROM mnemon.history n
                    WHERE n.tenant = $1 AND n.id = h.id ORDER BY n.seq DESC LIMIT 1), false)
             FROM mnemon.history h WHERE h.tenant = $1 AND h.expires < $2
             ORDER BY h.expires, h.seq LIMIT $3";
        let call = Call::new(sql)
            .with(self.locked.tenant)
            .with(self.grant.now().millis())
            .with(count(most));
        let rows = self.lease.all(call).await?;
        let due = rows.iter();
        due.map(|row| Ok((number(row, 0)?, word(row, 1)?, row.try_get(2)?)))
            .collect()
    }

    /// Drops changes. The one before each is followed by what followed it.
    async fn drop_past(&mut self, dropped: &[(u64, Id)]) -> Result<(), Failure> {
        let tenant = self.locked.tenant;
        let follow = "UPDATE mnemon.history SET replaced =
                (SELECT replaced FROM mnemon.history WHERE tenant = $1 AND seq = $3)
             WHERE tenant = $1 AND version > 0 AND seq = (SELECT seq FROM mnemon.history
                WHERE tenant = $1 AND id = $2 AND seq < $3 ORDER BY seq DESC LIMIT 1)";
        let delete = "DELETE FROM mnemon.history WHERE tenant = $1 AND seq = $2";
        for some in dropped.chunks(TOGETHER) {
            let calls: Vec<Call> = some
                .iter()
                .flat_map(|(seq, id)| {
                    let seq = seq.cast_signed();
                    let follow = Call::new(follow).with(tenant);
                    [
                        follow.with(id.as_str().to_owned()).with(seq),
                        Call::new(delete).with(tenant).with(seq),
                    ]
                })
                .collect();
            self.lease.pipeline(None, &calls, None).await?;
        }
        let ids: HashSet<&Id> = dropped.iter().map(|(_, id)| id).collect();
        let ids: Vec<Id> = ids.into_iter().cloned().collect();
        self.after_drop(dropped.len(), &ids).await
    }

    /// Counts rows that left the history. A record of which no version is left is derived from
    /// nothing any more.
    async fn after_drop(&mut self, dropped: usize, ids: &[Id]) -> Result<(), Failure> {
        if ids.is_empty() {
            return Ok(());
        }
        let tenant = self.locked.tenant;
        let unlink = "DELETE FROM mnemon.links l WHERE l.tenant = $1 AND l.derived = ANY($2)
             AND NOT EXISTS (SELECT 1 FROM mnemon.records WHERE tenant = $1 AND id = l.derived)
             AND NOT EXISTS (SELECT 1 FROM mnemon.history
                WHERE tenant = $1 AND id = l.derived AND doc IS NOT NULL)";
        let uncount = "UPDATE mnemon.tenants SET history = history - $2 WHERE num = $1";
        let calls = [
            Call::new(unlink).with(tenant).with(view::texts(ids)),
            Call::new(uncount).with(tenant).with(count(dropped)),
        ];
        self.lease.pipeline(None, &calls, None).await?;
        Ok(())
    }

    /// Drops changes that were followed by another one before `until`.
    async fn drop_history(&mut self, until: Time, most: usize) -> Result<usize, Failure> {
        let sql = "WITH due AS (SELECT seq FROM mnemon.history WHERE tenant = $1 AND replaced < $2
                ORDER BY seq LIMIT $3)
             DELETE FROM mnemon.history h USING due WHERE h.tenant = $1 AND h.seq = due.seq
             RETURNING h.id, h.version";
        let call = Call::new(sql)
            .with(self.locked.tenant)
            .with(until.millis())
            .with(count(most));
        let rows = self.lease.all(call).await?;
        let mut ids: HashSet<Id> = HashSet::new();
        let mut counted = 0;
        for row in &rows {
            ids.insert(word(row, 0)?);
            // Tombstones of purges are not counted as history.
            counted += usize::from(number(row, 1)? > 0);
        }
        let ids: Vec<Id> = ids.into_iter().collect();
        self.after_drop(counted, &ids).await?;
        Ok(rows.len())
    }

    async fn drop_receipts(&mut self, most: usize) -> Result<usize, Failure> {
        let sql = "DELETE FROM mnemon.receipts WHERE tenant = $1 AND key IN
                (SELECT key FROM mnemon.receipts WHERE tenant = $1 AND at < $2
                    ORDER BY at, key LIMIT $3) RETURNING 1";
        let call = Call::new(sql)
            .with(self.locked.tenant)
            .with(self.oldest_receipt())
            .with(count(most));
        Ok(self.lease.all(call).await?.len())
    }

    fn oldest_receipt(&self) -> i64 {
        self.grant.now().plus_days(-limits::RECEIPT_DAYS).millis()
    }

    async fn is_due(&mut self) -> Result<bool, Failure> {
        let sql = "SELECT EXISTS (SELECT 1 FROM mnemon.records WHERE tenant = $1 AND expires < $2)
                OR EXISTS (SELECT 1 FROM mnemon.history WHERE tenant = $1 AND expires < $2)
                OR EXISTS (SELECT 1 FROM mnemon.history WHERE tenant = $1 AND replaced < $3)
                OR EXISTS (SELECT 1 FROM mnemon.receipts WHERE tenant = $1 AND at < $4)";
        let call = Call::new(sql)
            .with(self.locked.tenant)
            .with(self.grant.now().millis())
            .with(self.grant.history_until().map(Time::millis))
            .with(self.oldest_receipt());
        if self.lease.one(call).await?.try_get(0)? {
            return Ok(true);
        }
        let lacking = near::is_lacking_of(self.locked.tenant);
        Ok(self.has_near && self.lease.one(lacking).await?.try_get(0)?)
    }
}
