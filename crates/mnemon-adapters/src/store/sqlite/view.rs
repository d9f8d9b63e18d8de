//! Loads what a group of batches needs to know about a tenant.

use mnemon_core::commit::{KeptReceipt, Needs, Presence, Slot, View, Worth};
use mnemon_core::{Id, Kind, Namespace, StoreError, Time};
use rusqlite::types::FromSql;
use rusqlite::{OptionalExtension, Row, params};

use super::errors::{At, Query};
use super::tables::{SqlTables, at_hand, count, seq, time, word};
use crate::store::corrupt;

/// A record that may have to go.
pub(super) struct Listed {
    pub(super) id: Id,
    pub(super) slot: Slot,
    worth: Worth,
}

impl Listed {
    const COLUMNS: &str = "key, version, scope, kind, namespace, expires, id, importance, created";

    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let slot = slot(row)?;
        Ok(Self {
            id: word(row, 6)?,
            slot,
            worth: Worth::new(slot.namespace, row.get(7)?, time(row, 8)?, slot.seq),
        })
    }
}

fn slot(row: &Row<'_>) -> rusqlite::Result<Slot> {
    let expires = row.get::<_, Option<i64>>(5)?;
    Ok(Slot {
        seq: seq(row.get(0)?),
        version: row.get::<_, i64>(1)?.cast_unsigned(),
        scope: word(row, 2)?,
        kind: word(row, 3)?,
        namespace: word(row, 4)?,
        expires: expires.map(|ms| Time::EPOCH.plus_millis(ms)),
    })
}

impl SqlTables<'_, '_> {
    pub(super) fn view(&mut self, needs: &Needs<'_>) -> Result<View, StoreError> {
        let mut view = View {
            last_seq: self.state.last_seq,
            clock: self.state.clock,
            ..View::default()
        };
        for id in &needs.ids {
            self.show(id, &mut view)?;
        }
        for key in &needs.keys {
            if let Some(kept) = self.receipt(key)? {
                view.receipts.insert((*key).to_owned(), kept);
            }
        }
        for id in view.follow(needs, |id| self.derived(id))? {
            self.show(&id, &mut view)?;
        }
        self.show_next_to_go(needs, &mut view)?;
        Ok(view)
    }

    fn show(&mut self, id: &Id, view: &mut View) -> Result<(), StoreError> {
        // Asked for every row: of an id that comes after all others there is nothing to look for.
        if self.is_new(id)? {
            return Ok(());
        }
        let presence = match self.slot(id)? {
            Some(slot) => Presence::Current(slot),
            None => match self.buried_version(id)? {
                0 => return Ok(()),
                version => Presence::Deleted(version),
            },
        };
        view.records.insert(id.clone(), presence);
        Ok(())
    }

    /// Expired records, and notes where a cap may be passed.
    fn show_next_to_go(&mut self, needs: &Needs<'_>, view: &mut View) -> Result<(), StoreError> {
        let mut over = Vec::new();
        for grown in &needs.grown {
            let count = self.notes(grown.namespace)?;
            view.notes.insert(grown.namespace, count);
            over.push((grown.namespace, grown.most_over(count)));
        }
        let sum = over.iter().map(|(_, over)| over).sum();
        let most = needs.most_changed(view.records.len(), sum);
        let mut expired = self.expired(needs.now, most)?;
        let mut weakest = Vec::new();
        for (namespace, over) in over {
            if over > 0 {
                if !expired.is_empty() {
                    expired.extend(self.expired_notes(namespace, needs.now, most)?);
                }
                weakest.extend(self.weakest(namespace, most)?);
            }
        }
        for Listed { id, slot, .. } in expired {
            let expires = slot.expires.unwrap_or(needs.now);
            view.expired.insert((expires, id.clone()));
            view.records.insert(id, Presence::Current(slot));
        }
        for Listed { id, slot, worth } in weakest {
            view.weakest.insert((worth, id.clone()));
            view.records.insert(id, Presence::Current(slot));
        }
        Ok(())
    }

    fn is_new(&mut self, id: &Id) -> Result<bool, StoreError> {
        if let Some(newest) = &self.state.newest {
            return Ok(id.as_str() > newest.as_str());
        }
        let sql = "SELECT max(coalesce((SELECT max(id) FROM records WHERE tenant = ?1), ''),
            coalesce((SELECT max(id) FROM history WHERE tenant = ?1), ''))";
        let newest: String = self.one(sql, params![self.tenant])?;
        let new = id.as_str() > newest.as_str();
        self.state.newest = Some(newest);
        Ok(new)
    }

    fn slot(&mut self, id: &Id) -> Result<Option<Slot>, StoreError> {
        let sql = "SELECT key, version, scope, kind, namespace, expires
                 FROM records WHERE tenant = ?1 AND id = ?2";
        at_hand(&mut self.hot.slot, self.connection, sql)
            .and_then(|select| {
                let row = select.query_row(params![self.tenant, id.as_str()], slot);
                row.optional()
            })
            .at(self.place)
    }

    fn buried_version(&self, id: &Id) -> Result<u64, StoreError> {
        // While nothing was ever replaced or deleted there is nothing to look for.
        if self.state.history + self.state.history_grown == 0 {
            return Ok(0);
        }
        let sql = "SELECT version FROM history WHERE tenant = ?1 AND id = ?2
             ORDER BY key DESC LIMIT 1";
        let version: i64 = self.one(sql, params![self.tenant, id.as_str()])?;
        Ok(version.cast_unsigned())
    }

    /// The first column of the first row; the default value if there is no row.
    pub(super) fn one<T: FromSql + Default>(
        &self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<T, StoreError> {
        let found = self.connection.first(sql, values, |row| row.get(0));
        Ok(found.at(self.place)?.unwrap_or_default())
    }

    fn derived(&self, id: &Id) -> Result<Vec<Id>, StoreError> {
        self.ids(
            "SELECT derived FROM links WHERE tenant = ?1 AND source = ?2 ORDER BY derived",
            params![self.tenant, id.as_str()],
        )
    }

    fn notes(&self, namespace: Namespace) -> Result<u64, StoreError> {
        let sql = "SELECT coalesce(sum(count), 0) FROM tally
             WHERE tenant = ?1 AND kind = 'note' AND namespace = ?2";
        let before: i64 = self.one(sql, params![self.tenant, namespace.as_str()])?;
        let grown: i64 = self
            .state
            .grown
            .iter()
            .filter(|((_, kind, space), _)| *kind == Kind::Note && *space == namespace)
            .map(|(_, grown)| grown)
            .sum();
        Ok(u64::try_from(before + grown).unwrap_or(0))
    }

    fn listed(
        &self,
        condition: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<Listed>, StoreError> {
        let columns = Listed::COLUMNS;
        let sql = format!("SELECT {columns} FROM records WHERE tenant = ?1 AND {condition}");
        self.connection.all(&sql, values, Listed::of).at(self.place)
    }

    /// Records that expired before `now`: by expiry, then id.
    pub(super) fn expired(&mut self, now: Time, most: usize) -> Result<Vec<Listed>, StoreError> {
        // Every group asks; groups that share a transaction need not look again.
        let soonest = match self.state.soonest_expiry {
            Some(known) => known,
            None => self.soonest_expiry()?,
        };
        self.state.soonest_expiry = Some(soonest);
        if soonest >= now.millis() {
            return Ok(Vec::new());
        }
        self.state.soonest_expiry = None;
        self.listed(
            "expires < ?2 ORDER BY expires, id LIMIT ?3",
            params![self.tenant, now.millis(), count(most)],
        )
    }

    fn expired_notes(
        &self,
        namespace: Namespace,
        now: Time,
        most: usize,
    ) -> Result<Vec<Listed>, StoreError> {
        let (tenant, namespace, now) = (self.tenant, namespace.as_str(), now.millis());
        self.listed(
            "expires < ?2 AND kind = 'note' AND namespace = ?3 ORDER BY expires, id LIMIT ?4",
            params![tenant, now, namespace, count(most)],
        )
    }

    /// The notes to go first.
    fn weakest(&self, namespace: Namespace, most: usize) -> Result<Vec<Listed>, StoreError> {
        self.listed(
            "namespace = ?2 AND kind = 'note' ORDER BY importance, created, key LIMIT ?3",
            params![self.tenant, namespace.as_str(), count(most)],
        )
    }

    /// When the next record expires; the end of time if none does.
    fn soonest_expiry(&self) -> Result<i64, StoreError> {
        let sql = "SELECT coalesce(min(expires), ?2) FROM records
             WHERE tenant = ?1 AND expires IS NOT NULL";
        self.one(sql, params![self.tenant, i64::MAX])
    }

    fn receipt(&self, key: &str) -> Result<Option<KeptReceipt>, StoreError> {
        let sql = "SELECT digest, receipt FROM receipts WHERE tenant = ?1 AND key = ?2";
        let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?));
        let kept = self
            .connection
            .first(sql, params![self.tenant, key], columns);
        kept.at(self.place)?
            .map(|(digest, text)| {
                let receipt = serde_json::from_str(&text).map_err(|error| {
                    let what = format!("the receipt of key `{key}` cannot be read: {error}");
                    corrupt(self.place, what)
                })?;
                Ok(KeptReceipt { digest, receipt })
            })
            .transpose()
    }
}
