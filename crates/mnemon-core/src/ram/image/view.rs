//! What a group of batches needs to know about an image.

use super::Image;
use crate::commit::{KeptReceipt, Needs, Presence, View, Worth};
use crate::model::{Id, Kind, Namespace, Time};

impl Image {
    /// Everything that the group needs.
    pub fn view(&self, needs: &Needs<'_>) -> View {
        let mut view = View {
            last_seq: self.last_seq,
            clock: self.clock,
            ..View::default()
        };
        for id in &needs.ids {
            self.show(id, &mut view);
        }
        for key in &needs.keys {
            if let Some(kept) = self.receipts.get(*key) {
                let (digest, receipt) = (kept.key.digest.clone(), kept.receipt.clone());
                let kept = KeptReceipt { digest, receipt };
                view.receipts.insert((*key).to_owned(), kept);
            }
        }
        let derived = |id: &Id| {
            let derived = self.derived.get(id);
            Ok(derived.into_iter().flatten().cloned().collect())
        };
        // Reading a map does not fail.
        for id in view.follow(needs, derived).unwrap_or_default() {
            self.show(&id, &mut view);
        }
        self.show_next_to_go(needs, &mut view);
        view
    }

    fn show(&self, id: &Id, view: &mut View) {
        let presence = match self.slot(id) {
            Some(slot) => Presence::Current(slot),
            None => match self.buried_version(id) {
                0 => return,
                version => Presence::Deleted(version),
            },
        };
        view.records.insert(id.clone(), presence);
    }

    /// Expired records, and notes where a cap may be passed.
    fn show_next_to_go(&self, needs: &Needs<'_>, view: &mut View) {
        let mut over = Vec::new();
        for grown in &needs.grown {
            let count = self.notes(grown.namespace);
            view.notes.insert(grown.namespace, count);
            over.push((grown.namespace, grown.most_over(count)));
        }
        let sum = over.iter().map(|(_, over)| over).sum();
        let most = needs.most_changed(view.records.len(), sum);
        let mut expired: Vec<&(Time, Id)> = self.expired(needs.now).take(most).collect();
        let mut weakest = Vec::new();
        for (namespace, over) in over {
            if over > 0 {
                let is_note = |(_, id): &&(Time, Id)| {
                    let row = self.rows.get(id).map(|row| &row.record);
                    row.is_some_and(|it| it.kind == Kind::Note && it.namespace == namespace)
                };
                expired.extend(self.expired(needs.now).filter(is_note).take(most));
                weakest.extend(self.weakest(namespace).take(most));
            }
        }
        view.expired.extend(expired.into_iter().cloned());
        view.weakest.extend(weakest);
        let ids = view.expired.iter().map(|(_, id)| id);
        let ids: Vec<Id> = ids
            .chain(view.weakest.iter().map(|(_, id)| id))
            .cloned()
            .collect();
        for id in &ids {
            self.show(id, view);
        }
    }

    /// How many notes there are.
    fn notes(&self, namespace: Namespace) -> u64 {
        let groups = self.groups.iter();
        groups
            .filter(|((_, kind, space), _)| *kind == Kind::Note && *space == namespace)
            .map(|(_, count)| count)
            .sum()
    }

    /// The notes to go first.
    fn weakest(&self, namespace: Namespace) -> impl Iterator<Item = (Worth, Id)> {
        self.by_worth
            .range(Worth::least(namespace)..)
            .take_while(move |worth| worth.namespace == namespace)
            .filter_map(|worth| Some((*worth, self.by_seq.get(&worth.seq)?.clone())))
    }
}
