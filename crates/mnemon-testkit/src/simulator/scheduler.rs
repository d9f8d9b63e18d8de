//! Who goes on next, when time passes, and when the process crashes.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use mnemon_core::{Backend, Limits, Tenant};

use super::{Gate, OperationId, Random, Sim, check};
use crate::Fixture;

/// Operations that are under way at the same time, at the most.
const CONCURRENT: usize = 4;
/// Every so many steps all that a tenant sees is compared with the model.
const CHECK_EVERY: u64 = 3;
/// How many of the last events a failure tells.
const TOLD_EVENTS: usize = 25;

/// What one run does.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub steps: u64,
    pub limits: &'static Limits,
    /// How many of a thousand calls of a port fail.
    pub faults: u64,
}

/// What an actor does: a description, and the work, which ends with the property that did not hold.
pub struct Operation {
    pub name: String,
    pub work: Pin<Box<dyn Future<Output = Result<(), String>>>>,
}

/// Actors, and what they do.
pub trait World {
    /// The process ends: every handle on the store is dropped.
    fn close(&mut self);

    /// The process begins, for the first time or after a crash: it knows nothing of before.
    fn open(&mut self, sim: &Sim, backend: Backend);

    /// What some actor does next.
    fn next(&mut self, sim: &Sim) -> Operation;
}

/// A property that did not hold.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub step: u64,
    pub what: String,
    pub events: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "  {event}")?;
        }
        write!(f, "step {} of seed {}: {}", self.step, self.seed, self.what)
    }
}

/// An operation under way.
struct Running {
    id: OperationId,
    operation: Operation,
}

struct Scheduler<'a, W> {
    sim: Sim,
    fixture: &'a dyn Fixture,
    wrap: &'a dyn Fn(Backend) -> Backend,
    world: &'a mut W,
    /// The store without gate; `None` only while it is reopened.
    backend: Option<Backend>,
    running: Vec<Running>,
    begun: OperationId,
    /// Decides what is checked, apart from what decides what happens.
    checks: Random,
    events: VecDeque<String>,
}

/// Runs the world on a store opened at this place; `wrap` may put a defect around it.
pub async fn run<W: World>(
    plan: &Plan,
    fixture: &dyn Fixture,
    wrap: &dyn Fn(Backend) -> Backend,
    world: &mut W,
) -> Result<(), Failure> {
    let mut scheduler = Scheduler {
        sim: Sim::new(plan),
        fixture,
        wrap,
        world,
        backend: None,
        running: Vec::new(),
        begun: 0,
        checks: Random::new(!plan.seed),
        events: VecDeque::new(),
    };
    let fail = |step, what, events: &VecDeque<String>| Failure {
        seed: plan.seed,
        step,
        what,
        events: events.iter().cloned().collect(),
    };
    scheduler.open().await;
    for step in 1..=plan.steps {
        let done = scheduler.step(step).await;
        done.map_err(|what| fail(step, what, &scheduler.events))?;
    }
    Ok(())
}

impl<W: World> Scheduler<'_, W> {
    async fn open(&mut self) {
        self.running.clear();
        self.world.close();
        drop(self.backend.take());
        let backend = (self.wrap)(self.fixture.open().await);
        let gate = Gate::new(backend.clone(), &self.sim);
        self.world.open(&self.sim, Arc::new(gate).into());
        self.backend = Some(backend);
    }

    async fn step(&mut self, step: u64) -> Result<(), String> {
        let choice = self.sim.lock().random.below(1000);
        match choice {
            0..3 => self.crash(step).await,
            3..8 => self.cancel(step),
            8..40 if self.running.is_empty() => self.pass_time(step),
            _ => self.advance(step).await?,
        }
        let violation = self.sim.lock().violation.take();
        if let Some(what) = violation {
            return Err(what);
        }
        match step.is_multiple_of(CHECK_EVERY) || choice < 8 {
            true => self.check().await,
            false => Ok(()),
        }
    }

    fn event(&mut self, step: u64, what: impl fmt::Display) {
        if self.events.len() == TOLD_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(format!("{step}: {what}"));
    }

    async fn crash(&mut self, step: u64) {
        self.event(step, "crash");
        self.open().await;
    }

    /// An actor gives up: its operation stops where it is.
    fn cancel(&mut self, step: u64) {
        if self.running.is_empty() {
            return;
        }
        let index = self.sim.lock().random.index(self.running.len());
        let stopped = self.running.swap_remove(index);
        self.event(step, format_args!("{} cancelled", stopped.id));
    }

    fn pass_time(&mut self, step: u64) {
        let ms = {
            let mut state = self.sim.lock();
            let ms = match state.random.below(20) {
                0 => 40 * 86_400_000,
                1 => 86_400_000,
                2..6 => 3_600_000,
                _ => 1 + i64::try_from(state.random.below(2000)).unwrap(),
            };
            state.now = state.now.plus_millis(ms);
            ms
        };
        self.event(step, format_args!("{ms} ms pass"));
    }

    /// Lets one operation go on until its next store call, or to its end.
    async fn advance(&mut self, step: u64) -> Result<(), String> {
        let (begins, index) = {
            let random = &mut self.sim.lock().random;
            let count = self.running.len();
            let begins = count == 0 || (count < CONCURRENT && random.chance(30));
            (begins, if begins { count } else { random.index(count) })
        };
        if begins {
            let operation = self.world.next(&self.sim);
            self.begun += 1;
            let begun = self.begun;
            self.event(step, format_args!("{begun} begins: {}", operation.name));
            self.running.push(Running {
                id: self.begun,
                operation,
            });
        }
        let Some(running) = self.running.get_mut(index) else {
            return Ok(());
        };
        let id = running.id;
        self.sim.lock().running = id;
        let Some(outcome) = poll_once(&self.sim, &mut running.operation.work).await else {
            return Ok(());
        };
        let ended = self.running.swap_remove(index);
        self.event(step, format_args!("{id} ends"));
        outcome.map_err(|what| format!("{}: {what}", ended.operation.name))
    }

    async fn check(&mut self) -> Result<(), String> {
        let tenants: Vec<Tenant> = self.sim.lock().model.tenants().cloned().collect();
        let (Some(backend), Some(tenant)) = (&self.backend, self.checks.pick(&tenants)) else {
            return Ok(());
        };
        check::check_tenant(&self.sim, backend, tenant, &mut self.checks).await
    }
}

/// Polls the work until it ends or stops before its next store call. While a store call waits for
/// a disk or a thread, nothing else happens: the order of calls depends on the seed alone.
async fn poll_once<T>(sim: &Sim, work: &mut Pin<Box<dyn Future<Output = T>>>) -> Option<T> {
    poll_fn(|cx| {
        sim.lock().paused = false;
        match work.as_mut().poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => {
                let state = sim.lock();
                match state.paused && !state.in_call {
                    true => Poll::Ready(None),
                    false => Poll::Pending,
                }
            }
        }
    })
    .await
}

/// Runs an episode for each seed and both [`Limits`], and panics at the first failure with a
/// command that repeats it. `SIM_SEED` and `SIM_STEPS` choose one episode; without them seeds
/// follow from `PROPTEST_RNG_SEED`, as for the other tests with drawn input.
pub fn sweep<F: Fixture, W: World>(
    test: &str,
    episodes: u64,
    steps: u64,
    fresh: impl Fn() -> F,
    world: impl Fn(&Plan) -> W,
) {
    let read = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let chosen = read("SIM_SEED");
    let first = chosen.or(read("PROPTEST_RNG_SEED")).unwrap_or(1);
    let episodes = chosen.map_or(read("SIM_EPISODES").unwrap_or(episodes), |_| 1);
    let steps = read("SIM_STEPS").unwrap_or(steps);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for seed in first..first + episodes {
        for (name, limits) in [("default", &Limits::DEFAULT), ("tiny", &Limits::TINY)] {
            let plan = Plan {
                seed,
                steps,
                limits,
                faults: 30,
            };
            let outcome =
                runtime.block_on(run(&plan, &fresh(), &|backend| backend, &mut world(&plan)));
            if let Err(failure) = outcome {
                let (seed, step) = (failure.seed, failure.step);
                panic!(
                    "{failure}\n  with {name} limits. To repeat it:\n    \
                     SIM_SEED={seed} SIM_STEPS={step} cargo test {test}"
                );
            }
        }
    }
}
