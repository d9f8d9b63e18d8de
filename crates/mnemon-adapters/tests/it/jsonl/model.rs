//! Random operations: the log, closed and opened at random, agrees with the store in memory.

use mnemon_core::ram::Ram;
use mnemon_core::{Caps, Expect, Kind, Namespace};
use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Apply {
        ops: Vec<Move>,
        key: Option<u8>,
    },
    Upkeep {
        limit: usize,
    },
    Wait {
        days: i64,
    },
    Reopen,
    Compact,
    /// The other handle goes on.
    Switch,
}

#[derive(Debug, Clone)]
enum Move {
    Put {
        name: u8,
        kind: Kind,
        days: Option<i64>,
        source: Option<u8>,
        expect: Option<u64>,
        importance: f64,
    },
    Delete(u8),
    Purge(u8),
}

fn a_move() -> impl Strategy<Value = Move> {
    let kind = prop_oneof![3 => Just(Kind::Note), 1 => Just(Kind::Message)];
    let days = prop_oneof![2 => Just(None), 1 => (0..4_i64).prop_map(Some)];
    let source = prop_oneof![2 => Just(None), 1 => (0..8_u8).prop_map(Some)];
    let expect = prop_oneof![9 => Just(None), 1 => (0..3_u64).prop_map(Some)];
    let put = (0..8_u8, kind, days, source, expect, 0.0..=1.0_f64);
    prop_oneof![
        6 => put.prop_map(|(name, kind, days, source, expect, importance)| Move::Put {
            name, kind, days, source, expect, importance
        }),
        2 => (0..8_u8).prop_map(Move::Delete),
        1 => (0..8_u8).prop_map(Move::Purge),
    ]
}

fn a_step() -> impl Strategy<Value = Step> {
    let key = prop_oneof![2 => Just(None), 1 => (0..4_u8).prop_map(Some)];
    let ops = prop::collection::vec(a_move(), 1..4);
    prop_oneof![
        10 => (ops, key).prop_map(|(ops, key)| Step::Apply { ops, key }),
        1 => (1..6_usize).prop_map(|limit| Step::Upkeep { limit }),
        1 => (-30..80_i64).prop_map(|days| Step::Wait { days }),
        2 => Just(Step::Reopen),
        1 => Just(Step::Compact),
        2 => Just(Step::Switch),
    ]
}

struct Pair {
    dir: tempfile::TempDir,
    ours: Jsonl,
    other: Jsonl,
    oracle: Ram,
    now: Time,
}

impl Pair {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            ours: open(dir.path()),
            other: open(dir.path()),
            dir,
            oracle: Ram::new(),
            now: now(),
        }
    }

    fn grant(&self) -> Grant {
        let policy = Policy {
            caps: Caps {
                short_term: None,
                long_term: Some(4),
            },
            history_days: Some(20),
            ..Policy::default()
        };
        let ctx = Ctx::new(Tenant::default(), "model", self.now);
        policy.check(&ctx, Right::Purge).unwrap()
    }

    fn op(&self, step: &Move) -> Op {
        let name = |n: &u8| id(&format!("n{n}"));
        match step {
            Move::Put {
                name: n,
                kind,
                days,
                source,
                expect,
                importance,
            } => {
                let ctx = Ctx::new(Tenant::default(), "model", self.now);
                let text = format!("text of {n} at {importance}");
                let mut record = Record::new(name(n), &ctx, *kind, text);
                record.importance = *importance;
                record.expires = days.map(|days| self.now.plus_days(days));
                record.derived_from = source.iter().filter(|s| *s != n).map(name).collect();
                record.body = (importance > &0.5).then(|| serde_json::json!([importance]));
                record.namespace = match n % 2 {
                    0 => Namespace::LongTerm,
                    _ => Namespace::ShortTerm,
                };
                let expect = match expect {
                    None => Expect::Anything,
                    Some(0) => Expect::Absent,
                    Some(version) => Expect::Version(*version),
                };
                Op::put_if(record, expect)
            }
            Move::Delete(n) => Op::delete(name(n)),
            Move::Purge(n) => Op::Purge { id: name(n) },
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Apply { ops, key } => {
                let ops: Vec<Op> = ops.iter().map(|step| self.op(step)).collect();
                let key = key.map(|key| keyed(&format!("k{key}")));
                let batch = Batch::from(ops).with_key(key);
                let ours = wait(self.ours.apply(&self.grant(), batch.clone()));
                let theirs = wait(self.oracle.apply(&self.grant(), batch));
                match (ours, theirs) {
                    (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs),
                    (Err(ours), Err(theirs)) => {
                        assert_eq!(ours.to_string(), theirs.to_string());
                    }
                    (ours, theirs) => panic!("{ours:?}, but {theirs:?}"),
                }
            }
            Step::Upkeep { limit } => self.upkeep(*limit),
            Step::Wait { days } => self.now = self.now.plus_days(*days),
            Step::Reopen => self.ours = open(self.dir.path()),
            Step::Compact => self.ours.compact(&Tenant::default()).unwrap(),
            Step::Switch => std::mem::swap(&mut self.ours, &mut self.other),
        }
        self.agree(&self.ours);
    }

    /// Which receipts go first is left to the store, so only whole rounds are compared.
    fn upkeep(&mut self, limit: usize) {
        let grant = self.grant();
        let mut sums = [[0; 3]; 2];
        let [ours, theirs] = &mut sums;
        for (store, sum) in [(&self.ours as &dyn Store, ours), (&self.oracle, theirs)] {
            loop {
                let done = wait(store.upkeep(&grant, limit)).unwrap();
                for (sum, done) in sum
                    .iter_mut()
                    .zip([done.expired, done.history, done.receipts])
                {
                    *sum += done;
                }
                if !done.more {
                    break;
                }
            }
        }
        assert_eq!(sums[0], sums[1]);
    }

    fn agree(&self, ours: &Jsonl) {
        let grant = self.grant();
        for order in [Order::Newest, Order::Written] {
            let scan = Scan {
                order,
                ..Scan::new(Filter::all_of_tenant(), 1000)
            };
            assert_eq!(
                wait(ours.scan(&grant, &scan)).unwrap(),
                wait(self.oracle.scan(&grant, &scan)).unwrap()
            );
        }
        for changes in [Changes::all_of_tenant(1000), Changes::feed(0, 1000)] {
            assert_eq!(
                wait(ours.changes(&grant, &changes)).unwrap(),
                wait(self.oracle.changes(&grant, &changes)).unwrap()
            );
        }
        assert_eq!(
            wait(ours.tally(&grant)).unwrap(),
            wait(self.oracle.tally(&grant)).unwrap()
        );
        assert_eq!(ours.notices(), Default::default());
    }
}

/// Each case waits for the disk many times; PROPTEST_CASES asks for more.
fn cases() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    config.failure_persistence = None;
    config.cases = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config.cases,
        None => 32,
    };
    config
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn agrees_with_the_store_in_memory(steps in prop::collection::vec(a_step(), 1..40)) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.step(step);
        }
        pair.agree(&open(pair.dir.path()));
        pair.ours.compact(&Tenant::default()).unwrap();
        pair.agree(&pair.other);
        pair.agree(&open(pair.dir.path()));
    }
}
