//! Random operations on a store and on the reference store, compared after every step.

mod steps;

use mnemon_core::{
    Backend, Batch, Changes, Grant, Id, Limits, Op, Receipt, Record, Right, Store, StoreError,
    Time, Upkept, ram::Ram,
};
use proptest::prelude::ProptestConfig;
use proptest::test_runner::{TestCaseError, TestRunner};

use crate::make::{Caller, at, id, key, limits, with_limits};
use crate::observe::{changes_all, observe};
use crate::{Fixture, block_on};
pub use steps::{Expected, Move, Step, TENANTS, plan};

/// So small that pages end in the middle of things.
const PAGE: usize = 3;

/// Runs `cases` random plans on a fresh store each, and on [`Ram`]. Panics with the shortest plan
/// on which the two disagree. `PROPTEST_RNG_SEED` repeats a run. Half of the plans run under
/// [`Limits::TINY`].
pub fn check_against_ram<F: Fixture>(fresh: impl Fn() -> F, cases: u32) {
    for limits in [&Limits::DEFAULT, &Limits::TINY] {
        with_limits(limits, || check_plans(&fresh, cases.div_ceil(2)));
    }
}

fn check_plans<F: Fixture>(fresh: &impl Fn() -> F, cases: u32) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&plan(), |steps| {
        block_on(check(&fresh(), &steps)).map_err(TestCaseError::fail)
    });
    if let Err(error) = outcome {
        panic!("the store disagrees with ram: {error}");
    }
}

/// Runs one plan; says where the two stores disagree first.
pub async fn check<F: Fixture>(fixture: &F, steps: &[Step]) -> Result<(), String> {
    let mut pair = Pair {
        fixture,
        backend: Some(fixture.open().await),
        ram: Ram::new(),
        now: at(0),
    };
    for (n, step) in steps.iter().enumerate() {
        pair.step(step)
            .await
            .map_err(|what| format!("step {n} {step:?}: {what}"))?;
    }
    for tenant in 0..TENANTS.len() {
        pair.compare(tenant).await?;
    }
    Ok(())
}

/// The store under test beside the reference, at one moment.
struct Pair<'a, F> {
    fixture: &'a F,
    backend: Option<Backend>,
    ram: Ram,
    now: Time,
}

/// What the caller of a refused operation is told.
fn told(error: &StoreError) -> String {
    format!("{:?}: {error}", error.kind())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, theirs: &T, ours: &T) -> Result<(), String> {
    if theirs == ours {
        return Ok(());
    }
    Err(format!("{what}\n  store: {theirs:?}\n    ram: {ours:?}"))
}

impl<F: Fixture> Pair<'_, F> {
    fn store(&self) -> &dyn Store {
        &*self.backend.as_ref().unwrap().store
    }

    fn caller(&self, tenant: usize) -> Caller {
        Caller::default().on(TENANTS[tenant]).at(self.now)
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Pass { ms } => {
                self.now = self.now.plus_millis(*ms);
                self.compare(0).await?;
                self.compare(1).await
            }
            Step::Reopen => {
                drop(self.backend.take());
                self.backend = Some(self.fixture.open().await);
                self.compare(0).await?;
                self.compare(1).await
            }
            Step::Upkeep {
                tenant,
                limit,
                history_days,
                accept_clock,
            } => {
                let grant = self.keeper(*tenant, *history_days);
                match accept_clock {
                    true => self.upkeep(*tenant, grant.accept_clock(), *limit).await,
                    false => self.upkeep(*tenant, grant, *limit).await,
                }
            }
            Step::Apply { tenant, .. } => {
                self.apply(step, *tenant).await?;
                self.compare(*tenant).await
            }
        }
    }

    fn keeper(&self, tenant: usize, history_days: Option<i64>) -> Grant {
        let caller = self.caller(tenant);
        let caller = match history_days {
            Some(days) => caller.keeping_history(days),
            None => caller,
        };
        caller.grant(Right::Write)
    }

    async fn upkeep(&self, tenant: usize, grant: Grant, limit: usize) -> Result<(), String> {
        let theirs = self.store().upkeep(&grant, limit).await;
        let ours = self.ram.upkeep(&grant, limit).await;
        // Whether it was compacted is the store's own.
        let common = |done: Upkept| Upkept {
            compacted: false,
            ..done
        };
        let theirs = theirs.map(common).map_err(|error| told(&error));
        let ours = ours.map(common).map_err(|error| told(&error));
        same("upkeep", &theirs, &ours)?;
        self.compare(tenant).await
    }

    async fn apply(&self, step: &Step, tenant: usize) -> Result<(), String> {
        let Step::Apply {
            moves,
            retried,
            caps,
            may_purge,
            undoes,
            continues,
            ..
        } = step
        else {
            return Ok(());
        };
        let right = if *may_purge {
            Right::Purge
        } else {
            Right::Write
        };
        let caller = self.caller(tenant).capped(caps.0, caps.1);
        let grant = caller.grant(right);
        let mut ops = Vec::new();
        for wanted in moves {
            ops.push(self.op(wanted, &grant).await);
        }
        let batch = Batch {
            ops,
            key: retried.and_then(|(name, intent)| key(&format!("k{name}"), &intent.to_string())),
            undoes: *undoes,
            continues: *continues,
            ..Batch::default()
        };
        let theirs = self.store().apply(&grant, batch.clone()).await;
        let ours = self.ram.apply(&grant, batch).await;
        let told = |result: Result<Receipt, StoreError>| result.map_err(|error| told(&error));
        same("receipt", &told(theirs), &told(ours))
    }

    async fn op(&self, wanted: &Move, grant: &Grant) -> Op {
        match wanted {
            Move::Put(record, expected) => {
                let record = Record {
                    tenant: grant.tenant().clone(),
                    expires: record.expires.map(|ttl| self.now.plus_millis(ttl.millis())),
                    ..(**record).clone()
                };
                let expect = self.expect(&record.id, *expected, grant).await;
                Op::put_if(record, expect)
            }
            Move::Delete(id, expected) => Op::Delete {
                id: id.clone(),
                expect: self.expect(id, *expected, grant).await,
            },
            Move::Purge(id) => Op::Purge { id: id.clone() },
        }
    }

    async fn expect(&self, id: &Id, expected: Expected, grant: &Grant) -> mnemon_core::Expect {
        use mnemon_core::Expect;
        match expected {
            Expected::Anything => Expect::Anything,
            Expected::Absent => Expect::Absent,
            Expected::Version(version) => Expect::Version(version),
            Expected::AsItIs => {
                let found = self.ram.get(grant, std::slice::from_ref(id)).await.unwrap();
                let current = found.into_iter().flatten().next();
                current.map_or(Expect::Absent, |record| Expect::Version(record.version))
            }
        }
    }

    /// Everything a tenant sees is the same in both.
    async fn compare(&self, tenant: usize) -> Result<(), String> {
        let grant = self.caller(tenant).grant(Right::Read);
        let theirs = observe(self.store(), &grant, PAGE).await;
        let ours = observe(&self.ram, &grant, PAGE).await;
        let (theirs, ours) = (theirs.map_err(|e| told(&e))?, ours.map_err(|e| told(&e))?);
        same("tally", &theirs.tally, &ours.tally)?;
        same("records", &theirs.written, &ours.written)?;
        same("newest", &theirs.newest, &ours.newest)?;
        same("oldest", &theirs.oldest, &ours.oldest)?;
        same("changes", &theirs.changes, &ours.changes)?;
        same("feed", &theirs.feed, &ours.feed)?;
        let ids: Vec<Id> = steps::NAMES.iter().map(|name| id(name)).collect();
        for ids in ids.chunks(limits().page) {
            let theirs = self.store().get(&grant, ids).await;
            let ours = self.ram.get(&grant, ids).await;
            same(
                "get",
                &theirs.map_err(|e| told(&e)),
                &ours.map_err(|e| told(&e)),
            )?;
        }
        self.compare_history(&grant, ids).await
    }

    /// The history of each record, of the newest commits, and of the oldest, which are continued.
    async fn compare_history(&self, grant: &Grant, ids: Vec<Id>) -> Result<(), String> {
        let newest = self.ram.tally(grant).await.unwrap().seq;
        let of_ids = ids.into_iter().map(|id| (Some(id), None));
        let commits = (1..9).chain(newest.saturating_sub(3).max(9)..=newest);
        let of_commits = commits.map(|commit| (None, Some(commit)));
        for (id, commit) in of_ids.chain(of_commits) {
            let wanted = Changes {
                id,
                commit,
                ..Changes::all_of_tenant(0)
            };
            let theirs = changes_all(self.store(), grant, &wanted, PAGE).await;
            let ours = changes_all(&self.ram, grant, &wanted, PAGE).await;
            let what = format!("changes of {wanted:?}");
            same(
                &what,
                &theirs.map_err(|e| told(&e)),
                &ours.map_err(|e| told(&e)),
            )?;
        }
        Ok(())
    }
}
