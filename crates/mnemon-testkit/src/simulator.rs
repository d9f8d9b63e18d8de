//! A seeded simulation of several actors on one store, with faults, crashes and stated properties.
//!
//! One seed decides everything: which operations the actors start, in which order their store
//! calls happen, which calls fail before or after they took effect, when time passes, when an
//! actor gives up and when the process crashes. Store calls of different operations interleave;
//! each call by itself is atomic. After every step the store is compared with a [`Model`], and
//! every operation states what must be true when it ends.
//!
//! [`Sim`] is the shared state, [`Gate`] the store as the actors see it, [`World`] brings the
//! operations, [`StoreActors`] are the operations of the port itself, and [`planted`] are stores
//! with known defects, which the simulation has to find.

mod check;
mod gate;
mod model;
mod random;
mod scheduler;
mod store_actors;
mod unreliable;

pub mod planted;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};

use mnemon_core::{Limits, Time};

pub use check::UNIQUE;
pub use gate::Gate;
pub use model::{Model, Read};
pub use random::Random;
pub use scheduler::{Failure, Operation, Plan, World, run, sweep};
pub use store_actors::StoreActors;
pub use unreliable::{UnreliableEmbedder, UnreliableLlm};

use crate::make::at;

/// Which operation of an actor, by the order in which they began.
pub type OperationId = u64;

/// The state that the scheduler, the actors and the store's gate share.
#[derive(Clone)]
pub struct Sim(Arc<Mutex<State>>);

/// What the simulation knows.
pub struct State {
    pub random: Random,
    pub model: Model,
    pub now: Time,
    pub limits: &'static Limits,
    /// How many of a thousand calls of a port fail.
    faults: u64,
    /// The operation whose future is being polled.
    running: OperationId,
    /// Whether an operation stopped before a store call, so that another one may go on.
    paused: bool,
    /// Whether a store call is under way. No other one begins until it has ended.
    in_call: bool,
    /// Operations that met an injected fault.
    struck: HashSet<OperationId>,
    /// Operations whose embedder failed or answered nonsense.
    without_vectors: HashSet<OperationId>,
    /// The first property that did not hold.
    violation: Option<String>,
}

/// How an injected fault shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails before it takes effect.
    Before,
    /// The call takes effect and its answer is lost.
    After,
}

impl Sim {
    /// The state at the beginning of a run.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: Random::new(plan.seed),
            model: Model::default(),
            now: at(0),
            limits: plan.limits,
            faults: plan.faults,
            running: 0,
            paused: false,
            in_call: false,
            struck: HashSet::new(),
            without_vectors: HashSet::new(),
            violation: None,
        })))
    }

    /// The state. Never held across an await.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The moment of the simulated clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.lock().now
    }

    /// The operation that is running.
    #[must_use]
    pub fn running(&self) -> OperationId {
        self.lock().running
    }

    /// Whether the embedder failed in the operation.
    #[must_use]
    pub fn has_embedder_failed(&self, operation: OperationId) -> bool {
        self.lock().without_vectors.contains(&operation)
    }

    /// Whether an injected fault hit the operation.
    #[must_use]
    pub fn was_struck(&self, operation: OperationId) -> bool {
        self.lock().struck.contains(&operation)
    }
}

impl State {
    /// Whether, and how, the next call of a port fails.
    pub fn draw_fault(&mut self) -> Option<Fault> {
        if self.random.below(1000) >= self.faults {
            return None;
        }
        self.struck.insert(self.running);
        Some(match self.random.chance(50) {
            true => Fault::Before,
            false => Fault::After,
        })
    }

    fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }
}
