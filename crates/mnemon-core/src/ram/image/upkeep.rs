//! Housekeeping of an image: what has expired, old versions, old receipts.

use super::Image;
use crate::commit::Effect;
use crate::model::{Grant, Id, Time, limits};
use crate::ports::Upkept;

impl Image {
    /// A slice of housekeeping, and what it did, for a log. In the order that
    /// [`Store::upkeep`](crate::ports::Store::upkeep) says.
    pub fn upkeep(&mut self, grant: &Grant, limit: usize) -> (Upkept, Vec<Effect>) {
        let before = self.clock;
        let after = before.observe(grant.now(), grant.accepts_clock());
        let (done, effects) = match before.days_ahead(grant) {
            Some(days) => (Upkept::held_back(days), Vec::new()),
            None => self.clear_away(grant, limit),
        };
        self.trim_removals(grant);
        if !effects.is_empty() || after.is_worth_keeping_after(before) {
            self.clock = after;
        }
        (done, effects)
    }

    fn clear_away(&mut self, grant: &Grant, limit: usize) -> (Upkept, Vec<Effect>) {
        let now = grant.now();
        let mut done = Upkept::default();
        let mut effects = Vec::new();
        let mut left = limit;
        let due = self.expired(now).take(left).map(|(_, id)| id.clone());
        for id in due.collect::<Vec<_>>() {
            self.erase(&id);
            effects.push(Effect::Erase { id, purged: None });
            done.expired += 1;
            left -= 1;
        }
        let mut seqs = Vec::new();
        while left > 0
            && let Some((seq, id)) = self.first_expired_past(now)
        {
            if self.was_deleted_and_expired(&id, now) {
                self.erase(&id);
                effects.push(Effect::Erase { id, purged: None });
            } else {
                self.drop_past(seq);
                seqs.push(seq);
            }
            done.expired += 1;
            left -= 1;
        }
        if let Some(until) = grant.history_until() {
            let old: Vec<u64> = self.replaced_before(until).take(left).collect();
            done.history = old.len() as u64;
            left -= old.len();
            seqs.extend(old);
        }
        let keys = self.receipts_before(oldest_receipt(now), left);
        done.receipts = keys.len() as u64;
        left -= keys.len();
        if !seqs.is_empty() || !keys.is_empty() {
            let effect = Effect::Drop { seqs, keys };
            self.play(effect.clone());
            effects.push(effect);
        }
        done.more = left == 0 && self.is_upkeep_due(grant);
        (done, effects)
    }

    fn is_upkeep_due(&self, grant: &Grant) -> bool {
        let now = grant.now();
        let old = |until| self.replaced_before(until).next().is_some();
        self.expired(now).next().is_some()
            || self.first_expired_past(now).is_some()
            || grant.history_until().is_some_and(old)
            || !self.receipts_before(oldest_receipt(now), 1).is_empty()
    }

    /// The past change that expired first, and its record.
    fn first_expired_past(&self, now: Time) -> Option<(u64, Id)> {
        let (expires, seq) = self.past_by_expiry.first()?;
        let past = self.past.get(seq)?;
        (*expires < now).then(|| (*seq, past.id.clone()))
    }

    /// Whether the record's newest change is a deletion, and what was deleted has expired.
    fn was_deleted_and_expired(&self, id: &Id, now: Time) -> bool {
        let newest = self.past_of.get(id).and_then(|seqs| seqs.last());
        let newest = newest.and_then(|seq| self.past.get(seq));
        !self.rows.contains_key(id)
            && newest.is_some_and(|past| past.record.is_none() && !past.is_live(now))
    }

    /// The keys of receipts kept since before then, oldest first.
    fn receipts_before(&self, oldest: Time, count: usize) -> Vec<String> {
        let kept = self.receipts.values().filter(|kept| kept.at < oldest);
        let mut stale: Vec<(Time, &str)> =
            kept.map(|kept| (kept.at, kept.key.name.as_str())).collect();
        stale.sort_unstable();
        let keys = stale.into_iter().take(count);
        keys.map(|(_, key)| key.to_owned()).collect()
    }

    /// Past changes that had been followed by another one of the same record before `until`,
    /// or that deleted it before then.
    fn replaced_before(&self, until: Time) -> impl Iterator<Item = u64> {
        self.past
            .values()
            .filter(move |past| {
                // A record that is written after its purge has nothing to do with the tombstone.
                let next = match past.is_purge() {
                    true => None,
                    false => self.next_of(&past.id, past.entry.seq),
                };
                next.unwrap_or(past.entry.at) < until
            })
            .map(|past| past.entry.seq)
    }

    /// When the record was changed next after this change.
    fn next_of(&self, id: &Id, seq: u64) -> Option<Time> {
        let later = self.past_of.get(id)?.range(seq + 1..).next();
        match later {
            Some(later) => self.past.get(later).map(|past| past.entry.at),
            None => self.rows.get(id).map(|row| row.entry.at),
        }
    }
}

/// Receipts from before then are kept no longer.
fn oldest_receipt(now: Time) -> Time {
    now.plus_days(-limits::RECEIPT_DAYS)
}
