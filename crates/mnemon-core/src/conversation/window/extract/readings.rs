//! Messages that were read already, so that a growing conversation is not read anew at each fold.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Reading;
use crate::model::{Id, Message, Record, Tenant, limits};

/// Readings of messages by their records. A record that was changed is read again.
#[derive(Debug, Default)]
pub struct Readings(Mutex<ByRecord>);

type ByRecord = HashMap<(Tenant, Id), (u64, Arc<Reading>)>;

impl Readings {
    /// The reading of a message's record, and how to get the message if it was not read yet.
    pub fn of(&self, record: &Record, message: impl FnOnce(&Record) -> Message) -> Arc<Reading> {
        let key = (record.tenant.clone(), record.id.clone());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, reading)) = known.get(&key)
            && *version == record.version
        {
            return reading.clone();
        }
        if known.len() >= 2 * limits::WINDOW_ORIGINALS {
            known.clear();
        }
        let reading = Arc::new(Reading::of(&message(record)));
        known.insert(key, (record.version, reading.clone()));
        reading
    }

    /// Forgets all of them, as a purge demands.
    pub fn clear(&self) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clear();
    }
}
