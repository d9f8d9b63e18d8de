//! From a [`Config`] to a memory: the only place that names both the engine and the adapters, and
//! the only one that asks the clock and the operating system's dice.

use mnemon_core::{Ctx, Ids, StoreError, Time};
use mnemon_engine::{Memory, Retention};

use crate::Error;
use crate::config::Config;

pub use mnemon_adapters::{Examination, Finding, SCHEMES};

/// A memory, and what was noticed while its store was opened.
pub struct Wired {
    pub memory: Memory,
    /// Sentences for people.
    pub notices: Vec<String>,
}

/// Opens the store, making it if it is not there, and puts a memory on top.
pub fn open(config: &Config) -> Result<Wired, Error> {
    let opened = mnemon_adapters::open(&config.store.value)?;
    let retention = Retention {
        short_term_days: config.short_term.ttl_days.value,
        long_term_days: config.long_term.ttl_days.value,
    };
    let memory = Memory::builder(opened.store, Ids::new(seed()))
        .policy(config.policy())
        .retention(retention)
        .build();
    Ok(Wired {
        memory,
        notices: opened.notices,
    })
}

/// The circumstances of a call that is made now.
pub fn stamp(config: &Config) -> Result<Ctx, Error> {
    let now = Time::from_millis(jiff::Timestamp::now().as_millisecond())?;
    let tenant = config.tenant.value.clone();
    Ok(Ctx::new(tenant, config.actor.value.clone(), now))
}

/// Looks at the store from outside, without opening it for use.
pub fn examine(config: &Config) -> Result<Examination, StoreError> {
    mnemon_adapters::examine(&config.store.value)
}

/// Does what the findings proposed, and says what it did.
pub fn repair(config: &Config) -> Result<Vec<String>, StoreError> {
    mnemon_adapters::repair(&config.store.value)
}

/// Two processes must not make the same ids, even when they start in the same moment.
fn seed() -> u64 {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    // The bits that say "version 4" are the same in all of them, but sit in different places.
    high ^ low.rotate_left(32)
}
