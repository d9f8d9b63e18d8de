//! Random plans: few ids, few keys, little room and short lives, so that things collide.

use mnemon_core::{Id, Kind, Namespace, Record, Time};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::make::{Remade, at, fact, id, note};

/// The tenants that share the store.
pub const TENANTS: [&str; 2] = ["acme", "default"];

/// All ids there are.
pub(super) const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Those who speak in some of the records.
pub(super) const SPEAKERS: [&str; 3] = ["Ann", "Ann Lee", "Bob"];

const DAY_MS: i64 = 86_400_000;

/// What expires does so within this time, replaced and deleted versions as well.
const LIFE_MS: i64 = 10;

/// One thing that happens.
#[derive(Debug, Clone)]
pub enum Step {
    /// A batch is applied.
    Apply {
        tenant: usize,
        moves: Vec<Move>,
        /// The idempotency key's name and intent.
        retried: Option<(u8, u8)>,
        /// Most short-term and long-term notes.
        caps: (Option<u64>, Option<u64>),
        may_purge: bool,
        undoes: Option<u64>,
        continues: Option<u64>,
    },
    /// Time passes.
    Pass { ms: i64 },
    /// A slice of housekeeping.
    Upkeep {
        tenant: usize,
        limit: usize,
        history_days: Option<i64>,
        /// Whether the caller vouches for the clock.
        accept_clock: bool,
    },
    /// The store is closed and opened again.
    Reopen,
}

/// One operation; `expires` counts from the moment it happens.
#[derive(Debug, Clone)]
pub enum Move {
    Put(Box<Record>, Expected),
    Delete(Id, Expected),
    Purge(Id),
}

/// What the caller believes is there.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    Anything,
    Absent,
    /// What is there at the beginning of the batch.
    AsItIs,
    Version(u64),
}

/// A plan of random steps.
pub fn plan() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => apply(),
        2 => passing(),
        2 => upkeep(),
        1 => Just(Step::Reopen),
    ];
    vec(step, 1..24)
}

fn apply() -> impl Strategy<Value = Step> {
    let cap = || option::weighted(0.3, 0_u64..4);
    (
        0..TENANTS.len(),
        vec(one_move(), 0..5),
        option::weighted(0.3, (0_u8..3, 0_u8..2)),
        (cap(), cap()),
        prop::bool::weighted(0.9),
        option::weighted(0.1, 1_u64..9),
        option::weighted(0.15, 0_u64..20),
    )
        .prop_map(
            |(tenant, moves, retried, caps, may_purge, undoes, continues)| Step::Apply {
                tenant,
                moves,
                retried,
                caps,
                may_purge,
                undoes,
                continues,
            },
        )
}

fn passing() -> impl Strategy<Value = Step> {
    let ms = prop_oneof![
        4 => 1_i64..8,
        2 => Just(LIFE_MS),
        1 => Just(DAY_MS),
        1 => Just(40 * DAY_MS),
        // The clock is put back.
        1 => Just(-40 * DAY_MS),
    ];
    ms.prop_map(|ms| Step::Pass { ms })
}

fn upkeep() -> impl Strategy<Value = Step> {
    let limit = prop_oneof![0_usize..4, Just(1000)];
    let accept_clock = prop::bool::weighted(0.3);
    (0..TENANTS.len(), limit, option::of(0_i64..3), accept_clock).prop_map(
        |(tenant, limit, history_days, accept_clock)| Step::Upkeep {
            tenant,
            limit,
            history_days,
            accept_clock,
        },
    )
}

fn one_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        6 => (record(), expected()).prop_map(|(record, e)| Move::Put(Box::new(record), e)),
        2 => (name(), expected()).prop_map(|(name, e)| Move::Delete(id(name), e)),
        1 => name().prop_map(|name| Move::Purge(id(name))),
    ]
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn expected() -> impl Strategy<Value = Expected> {
    prop_oneof![
        8 => Just(Expected::Anything),
        4 => Just(Expected::AsItIs),
        1 => Just(Expected::Absent),
        1 => (1_u64..6).prop_map(Expected::Version),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    (
        name(),
        prop_oneof![3 => Just(Kind::Note), 1 => Just(Kind::Fact)],
        prop::sample::select(Namespace::ALL),
        vec(name(), 0..3),
        option::weighted(0.4, 0..LIFE_MS),
        (0_i64..3, 0_u8..3, 0_u8..50),
    )
        .prop_map(
            |(name, kind, namespace, sources, ttl, (age, worth, text))| {
                let base = match kind {
                    Kind::Fact => fact(name),
                    _ => note(name),
                };
                // A record that names itself is left in now and then: a batch that fails half-way.
                let sources: Vec<&str> = sources
                    .into_iter()
                    .filter(|source| *source != name || text == 0)
                    .collect();
                let mut record = Record {
                    namespace,
                    expires: ttl.map(|ms| Time::EPOCH.plus_millis(ms)),
                    ..base.saying(&format!("text {text}"))
                };
                if let Some(speaker) = SPEAKERS.get(usize::from(text) % 5) {
                    let speaker = (*speaker).into();
                    record.metadata.insert("speaker".to_owned(), speaker);
                }
                record
                    .made_from(&sources)
                    .worth(f64::from(worth) / 2.0)
                    .created(at(-age))
            },
        )
}
