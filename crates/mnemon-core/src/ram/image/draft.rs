//! A batch under way on an image: the moves that the rules of a commit ask for, each with its way
//! back.

use super::{Effect, Image, Past, Row, WayBack};
use crate::commit::{Entry, KeptReceipt, Slot, Tables};
use crate::{Clock, Id, IdempotencyKey, Kind, Namespace, Receipt, Record, StoreError, Time};

/// A batch that runs on the image and can be taken back.
pub(super) struct Draft<'a> {
    pub(super) image: &'a mut Image,
    pub(super) effects: Vec<Effect>,
    pub(super) way_back: WayBack,
}

/// How to take one move back.
#[derive(Debug)]
pub(super) enum Step {
    /// Take the record out, and bring back the version it replaced.
    Written { id: Id, replaced: bool },
    /// Bring the deleted record back.
    Buried(Id),
    /// Put back all that was erased.
    Erased {
        row: Option<Box<Row>>,
        past: Vec<Past>,
    },
    /// Forget the receipt.
    Receipt(String),
    /// Count from here.
    Seq(u64),
    /// Know this of the clock.
    Clock(Clock),
}

impl Draft<'_> {
    fn remember(&mut self, step: Step) {
        let seq = self.image.last_seq;
        self.way_back.0.push(Step::Seq(seq));
        self.way_back.0.push(step);
    }
}

impl Tables for Draft<'_> {
    fn slot(&mut self, id: &Id) -> Result<Option<Slot>, StoreError> {
        Ok(self.image.slot(id))
    }

    fn buried_version(&mut self, id: &Id) -> Result<u64, StoreError> {
        Ok(self.image.buried_version(id))
    }

    fn last_seq(&mut self) -> Result<u64, StoreError> {
        Ok(self.image.last_seq)
    }

    fn write(
        &mut self,
        entry: &Entry,
        record: Record,
        _replaced: Option<Slot>,
    ) -> Result<(), StoreError> {
        self.remember(Step::Written {
            id: record.id.clone(),
            replaced: self.image.rows.contains_key(&record.id),
        });
        self.effects.push(Effect::Write {
            entry: entry.clone(),
            record: Box::new(record.clone()),
        });
        self.image.write(entry.clone(), record);
        Ok(())
    }

    fn bury(&mut self, entry: &Entry, id: &Id, _slot: Slot) -> Result<(), StoreError> {
        if self.image.rows.contains_key(id) {
            self.remember(Step::Buried(id.clone()));
        }
        self.effects.push(Effect::Bury {
            entry: entry.clone(),
            id: id.clone(),
        });
        self.image.bury(entry.clone(), id);
        Ok(())
    }

    fn erase(&mut self, id: &Id) -> Result<bool, StoreError> {
        let image = &*self.image;
        let row = image.rows.get(id).cloned().map(Box::new);
        let seqs = image.past_of.get(id).into_iter().flatten();
        let past = seqs.filter_map(|seq| image.past.get(seq).cloned());
        let past = past.collect();
        self.remember(Step::Erased { row, past });
        self.effects.push(Effect::Erase { id: id.clone() });
        Ok(self.image.erase(id))
    }

    fn derived(&mut self, id: &Id) -> Result<Vec<Id>, StoreError> {
        let derived = self.image.derived.get(id);
        Ok(derived.into_iter().flatten().cloned().collect())
    }

    fn notes(&mut self, namespace: Namespace) -> Result<u64, StoreError> {
        let notes = self.image.groups.iter();
        Ok(notes
            .filter(|((_, kind, space), _)| *kind == Kind::Note && *space == namespace)
            .map(|(_, count)| count)
            .sum())
    }

    fn weakest(&mut self, namespace: Namespace, count: usize) -> Result<Vec<Id>, StoreError> {
        let image = &*self.image;
        let first = (namespace, 0, Time::EPOCH.plus_millis(i64::MIN), 0);
        Ok(image
            .by_worth
            .range(first..)
            .take_while(|(space, ..)| *space == namespace)
            .take(count)
            .filter_map(|(.., seq)| image.by_seq.get(seq).cloned())
            .collect())
    }

    fn expired(&mut self, now: Time, count: usize) -> Result<Vec<Id>, StoreError> {
        Ok(self.image.expired_ids(now, count))
    }

    fn clock(&mut self) -> Result<Clock, StoreError> {
        Ok(self.image.clock)
    }

    fn keep_clock(&mut self, clock: Clock) -> Result<(), StoreError> {
        self.way_back.0.push(Step::Clock(self.image.clock));
        self.image.clock = clock;
        Ok(())
    }

    fn receipt(&mut self, key: &str) -> Result<Option<KeptReceipt>, StoreError> {
        let kept = self.image.receipts.get(key);
        Ok(kept.map(|kept| KeptReceipt {
            digest: kept.key.digest.clone(),
            receipt: kept.receipt.clone(),
        }))
    }

    fn keep_receipt(
        &mut self,
        key: &IdempotencyKey,
        at: Time,
        receipt: &Receipt,
    ) -> Result<(), StoreError> {
        self.way_back.0.push(Step::Receipt(key.name.clone()));
        let effect = Effect::Receipt {
            key: key.clone(),
            at,
            receipt: receipt.clone(),
        };
        self.effects.push(effect.clone());
        self.image.play(effect);
        Ok(())
    }
}
