//! Housekeeping: what has expired, histories that are old enough, receipts nobody will ask for.

use std::collections::HashSet;

use mnemon_core::{Grant, Id, StoreError, Time, Upkept, limits};
use rusqlite::{Row, params};

use super::errors::{At, Query};
use super::tables::{SqlTables, count, word};

impl SqlTables<'_, '_> {
    /// A slice of housekeeping, in the order that `Store::upkeep` says.
    pub(super) fn upkeep(&mut self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        let before = self.state.clock;
        let after = before.observe(grant.now(), grant.accepts_clock());
        let done = match before.days_ahead(grant) {
            Some(days) => Upkept::held_back(days),
            None => self.clear_away(grant, limit)?,
        };
        let changed = done.expired + done.history + done.receipts > 0;
        if changed || after.is_worth_keeping_after(before) {
            self.state.clock = after;
        }
        Ok(done)
    }

    fn clear_away(&mut self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        let now = grant.now();
        let mut done = Upkept::default();
        let mut left = limit;
        for expired in self.expired(now, left)? {
            self.erase(&expired.id, Some(expired.slot))?;
            done.expired += 1;
            left -= 1;
        }
        let erased = self.erase_expired_past(now, left)?;
        done.expired += erased as u64;
        left -= erased;
        if let Some(until) = grant.history_until() {
            let dropped = self.drop_history(until, left)?;
            done.history = dropped as u64;
            left -= dropped;
        }
        let oldest = now.plus_days(-limits::RECEIPT_DAYS);
        let dropped = self.run(
            "DELETE FROM receipts WHERE tenant = ?1 AND key IN (SELECT key FROM receipts
             WHERE tenant = ?1 AND at < ?2 ORDER BY at, key LIMIT ?3)",
            params![self.tenant, oldest.millis(), count(left)],
        )?;
        done.receipts = dropped as u64;
        left -= dropped;
        done.more = left == 0 && self.is_upkeep_due(grant)?;
        Ok(done)
    }

    fn is_upkeep_due(&self, grant: &Grant) -> Result<bool, StoreError> {
        let now = grant.now();
        self.one(
            "SELECT EXISTS (SELECT 1 FROM records WHERE tenant = ?1 AND expires < ?2)
                OR EXISTS (SELECT 1 FROM history WHERE tenant = ?1 AND expires < ?2)
                OR EXISTS (SELECT 1 FROM history WHERE tenant = ?1 AND replaced < ?3)
                OR EXISTS (SELECT 1 FROM receipts WHERE tenant = ?1 AND at < ?4)",
            params![
                self.tenant,
                now.millis(),
                grant.history_until().map(Time::millis),
                now.plus_days(-limits::RECEIPT_DAYS).millis(),
            ],
        )
    }

    /// Erases what has expired in the history; answers how many pieces it came to. A record that
    /// was deleted last, and of which the deleted version has expired, goes whole.
    fn erase_expired_past(&mut self, now: Time, most: usize) -> Result<usize, StoreError> {
        let mut done = 0;
        while done < most {
            let due = self.expired_past(now, (most - done).min(limits::PAGE))?;
            if due.is_empty() {
                break;
            }
            let mut erased = HashSet::new();
            for (key, id) in due {
                if erased.contains(&id) {
                    continue;
                }
                if self.was_deleted_and_expired(&id, now)? {
                    self.erase(&id, None)?;
                    erased.insert(id);
                } else {
                    self.drop_past(key, &id)?;
                }
                done += 1;
            }
        }
        Ok(done)
    }

    /// Drops one change. The one before it is followed by what followed this one.
    pub(super) fn drop_past(&mut self, key: i64, id: &Id) -> Result<(), StoreError> {
        self.run(
            "UPDATE history SET (replaced, replaced_sum) =
                (SELECT replaced, replaced_sum FROM history WHERE key = ?3)
             WHERE version > 0 AND key =
                (SELECT max(key) FROM history WHERE tenant = ?1 AND id = ?2 AND key < ?3)",
            params![self.tenant, id.as_str(), key],
        )?;
        let dropped = self.run("DELETE FROM history WHERE key = ?1", params![key])?;
        self.state.history_grown -= count(dropped);
        self.unlink_if_gone(id)
    }

    fn expired_past(&self, now: Time, most: usize) -> Result<Vec<(i64, Id)>, StoreError> {
        let sql = "SELECT key, id FROM history WHERE tenant = ?1 AND expires < ?2
             ORDER BY expires, key LIMIT ?3";
        let values = params![self.tenant, now.millis(), count(most)];
        let due = |row: &Row<'_>| Ok((row.get(0)?, word(row, 1)?));
        self.connection.all(sql, values, due).at(self.place)
    }

    fn was_deleted_and_expired(&self, id: &Id, now: Time) -> Result<bool, StoreError> {
        self.one(
            "SELECT NOT EXISTS (SELECT 1 FROM records WHERE tenant = ?1 AND id = ?2)
                AND coalesce((SELECT doc IS NULL AND expires < ?3 FROM history
                    WHERE tenant = ?1 AND id = ?2 ORDER BY key DESC LIMIT 1), 0)",
            params![self.tenant, id.as_str(), now.millis()],
        )
    }

    /// Drops changes that were followed by another one before `until`.
    fn drop_history(&mut self, until: Time, most: usize) -> Result<usize, StoreError> {
        let due =
            "SELECT key FROM history WHERE tenant = ?1 AND replaced < ?2 ORDER BY key LIMIT ?3";
        let (tenant, until, most) = (self.tenant, until.millis(), count(most));
        let values = params![tenant, until, most];
        let sql = format!("SELECT DISTINCT id FROM history WHERE key IN ({due})");
        let touched = self.ids(&sql, values)?;
        // Tombstones of purges are not counted as history.
        let sql = format!("SELECT count(*) FROM history WHERE version = 0 AND key IN ({due})");
        let tombstones: i64 = self.one(&sql, values)?;
        let sql = format!("DELETE FROM history WHERE key IN ({due})");
        let dropped = self.run(&sql, values)?;
        self.state.history_grown -= count(dropped) - tombstones;
        for id in touched {
            self.unlink_if_gone(&id)?;
        }
        Ok(dropped)
    }

    /// A record of which no version is left was derived from nothing any more.
    fn unlink_if_gone(&self, id: &Id) -> Result<(), StoreError> {
        self.run(
            "DELETE FROM links WHERE tenant = ?1 AND derived = ?2
             AND NOT EXISTS (SELECT 1 FROM records WHERE tenant = ?1 AND id = ?2)
             AND NOT EXISTS (SELECT 1 FROM history
                WHERE tenant = ?1 AND id = ?2 AND doc IS NOT NULL)",
            params![self.tenant, id.as_str()],
        )
        .map(drop)
    }
}
