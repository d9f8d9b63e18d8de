//! The reference's image as a log keeps it: what it says of its commits must rebuild it, and
//! taking back a refused batch must be the same as never having begun it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use mnemon_core::ram::{Effect, Image, Past};
use mnemon_core::{
    Batch, Capabilities, Change, Changes, Grant, Id, Match, Page, Probe, Receipt, Record, Right,
    Scan, Store, StoreError, Tally, Tenant, Upkept,
};
use mnemon_testkit::{Fixture, oracle};

/// What one tenant's files would hold: what the last compaction wrote, and the log since.
#[derive(Default)]
struct Log {
    seq: u64,
    compacted: Vec<Effect>,
    history: Vec<Past>,
    effects: Vec<Effect>,
}

impl Log {
    fn image(&self) -> Image {
        let mut image = Image::default();
        let play = |image: &mut Image, effects: &[Effect]| {
            for effect in effects.iter().cloned() {
                image.play(effect);
            }
        };
        play(&mut image, &self.compacted);
        // Twice: a history that was read already is left as it is.
        for past in self.history.iter().chain(&self.history).cloned() {
            image.restore_past(past);
        }
        play(&mut image, &self.effects);
        image.skip_to(self.seq);
        image
    }

    fn compacted(image: &Image) -> Self {
        let mut compacted = image.current_effects();
        compacted.extend(image.receipt_effects());
        Self {
            seq: image.last_seq(),
            compacted,
            history: image.past().cloned().collect(),
            effects: Vec::new(),
        }
    }
}

#[derive(Default)]
struct Replayed {
    logs: Mutex<HashMap<Tenant, (Log, Image)>>,
}

impl Replayed {
    fn with<T>(&self, grant: &Grant, work: impl FnOnce(&mut Log, &mut Image) -> T) -> T {
        let mut logs = self.logs.lock().unwrap();
        let (log, image) = logs.entry(grant.tenant().clone()).or_default();
        work(log, image)
    }
}

#[async_trait]
impl Store for Replayed {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "replayed",
            durable: false,
            shared: false,
            words: false,
            meaning: false,
        }
    }

    async fn apply(&self, grant: &Grant, batch: Batch) -> Result<Receipt, StoreError> {
        self.with(grant, |log, image| {
            // The plain way to take back a refused batch, in place of the image's own.
            let mut draft = image.clone();
            let (receipt, effects) = draft.commit(grant, batch)?;
            log.effects.extend(effects);
            log.seq = draft.last_seq();
            *image = draft;
            Ok(receipt)
        })
    }

    async fn get(&self, grant: &Grant, ids: &[Id]) -> Result<Vec<Option<Record>>, StoreError> {
        self.with(grant, |_, image| image.get(grant, ids))
    }

    async fn scan(&self, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
        Ok(self.with(grant, |_, image| image.scan(grant, scan)))
    }

    async fn find(&self, _: &Grant, _: &Probe) -> Result<Vec<Match>, StoreError> {
        Err(StoreError::Unsupported {
            backend: "replayed",
            what: "search",
        })
    }

    async fn changes(&self, grant: &Grant, changes: &Changes) -> Result<Vec<Change>, StoreError> {
        Ok(self.with(grant, |_, image| image.changes(grant, changes)))
    }

    async fn tally(&self, grant: &Grant) -> Result<Tally, StoreError> {
        Ok(self.with(grant, |_, image| image.tally(grant)))
    }

    async fn upkeep(&self, grant: &Grant, limit: usize) -> Result<Upkept, StoreError> {
        grant.require(Right::Write)?;
        Ok(self.with(grant, |log, image| {
            let (done, _) = image.upkeep(grant, limit);
            *log = Log::compacted(image);
            done
        }))
    }
}

#[derive(Default)]
struct Place(Arc<Replayed>);

#[async_trait]
impl Fixture for Place {
    async fn open(&self) -> Arc<dyn Store> {
        for (log, image) in self.0.logs.lock().unwrap().values_mut() {
            *image = log.image();
        }
        self.0.clone()
    }
}

mnemon_testkit::conformance!(replayed, Place::default());

#[test]
fn agrees_with_ram() {
    oracle::check_against_ram(Place::default, 256);
}
