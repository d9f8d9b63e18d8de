//! Users, agents and tenants that use one memory at the same time, through faults and crashes.
//!
//! The testkit's simulator schedules them and compares the store with its model after every step.
//! Here stands what the verbs of the engine promise beyond that. Planted defects of the store show
//! that the promises are looked at.

mod actor;
mod records;
mod scopes;

use std::sync::Arc;

use mnemon_core::{Backend, Caps, Ctx, Ids, Limits, Policy};
use mnemon_engine::{Draft, Memory};
use mnemon_testkit::simulator::planted::{Defect, Planted};
use mnemon_testkit::simulator::{
    Operation, Plan, Random, Sim, UNIQUE, UnreliableEmbedder, UnreliableLlm, World, run, sweep,
};
use mnemon_testkit::{InRam, block_on};

use actor::Actor;

const TENANTS: [&str; 2] = ["acme", "default"];
const USERS: [&str; 2] = ["ann", "bob"];
const SESSIONS: [&str; 2] = ["s1", "s2"];

/// Everybody who uses the memory.
#[derive(Default)]
struct Engine {
    memory: Option<Arc<Memory>>,
    /// Words so far: each is used once.
    words: u64,
    /// Drafts that were added under a key, for retries.
    sent: Vec<Sent>,
    processes: u64,
}

/// An addition that may be repeated.
#[derive(Clone)]
struct Sent {
    tenant: &'static str,
    key: String,
    drafts: Vec<Draft>,
}

impl World for Engine {
    fn close(&mut self) {
        self.memory = None;
    }

    fn open(&mut self, sim: &Sim, backend: Backend) {
        self.processes += 1;
        // Some processes keep few notes.
        let cap = self.processes.is_multiple_of(2).then_some(8);
        let policy = Policy {
            limits: sim.lock().limits,
            caps: Caps {
                short_term: cap,
                long_term: None,
            },
            ..Policy::default()
        };
        let memory = Memory::builder(backend, Ids::new(self.processes))
            .policy(policy)
            .embedder(Arc::new(UnreliableEmbedder::new(sim, 8)))
            .llm(Arc::new(UnreliableLlm(sim.clone())))
            .build();
        self.memory = Some(Arc::new(memory));
    }

    fn next(&mut self, sim: &Sim) -> Operation {
        let mut random = Random::new(sim.lock().random.number());
        let tenant = TENANTS[random.index(TENANTS.len())];
        let user = USERS[random.index(USERS.len())];
        let ctx = Ctx::new(tenant.parse().unwrap(), user, sim.now());
        let actor = Actor {
            sim: sim.clone(),
            memory: self.memory.clone().unwrap(),
            ctx,
            user,
            session: SESSIONS[random.index(SESSIONS.len())],
        };
        let (name, work) = self.operation(actor, &mut random);
        Operation {
            name: format!("{user} of {tenant}: {name}"),
            work,
        }
    }
}

type Work = std::pin::Pin<Box<dyn Future<Output = Result<(), String>>>>;

impl Engine {
    /// A word that no other text has.
    fn word(&mut self) -> String {
        self.words += 1;
        format!("{UNIQUE}{}", self.words)
    }

    fn operation(&mut self, actor: Actor, random: &mut Random) -> (String, Work) {
        // A world that grows without end slows the simulation down and collides less.
        if actor.live().len() > 40 && random.chance(30) {
            return records::purge(actor, random, 6);
        }
        match random.below(100) {
            0..16 => self.add(actor, random),
            16..21 => self.retry(actor, random),
            21..27 => records::update(actor, random, self.word()),
            27..32 => records::forget(actor, random),
            32..35 => records::purge(actor, random, 1),
            35..41 => records::undo(actor, random),
            41..50 => records::search(actor, random),
            50..54 => records::list(actor, random),
            54..57 => records::get(actor, random),
            57..59 => records::history(actor, random),
            59..63 => records::upkeep(actor, random),
            63..82 => scopes::write(actor, random, self.word()),
            82..87 => scopes::read(actor, random),
            87..90 => scopes::note(actor, random, self.word()),
            90..92 => scopes::search_notes(actor, random),
            92..95 => scopes::window(actor, self.word()),
            95..97 => scopes::learn(actor, random),
            _ => scopes::forget_session(actor, random),
        }
    }

    fn add(&mut self, actor: Actor, random: &mut Random) -> (String, Work) {
        let count = match random.below(20) {
            0 => 13,
            _ => 1 + random.below(3),
        };
        let drafts = (0..count).map(|_| actor.draft(random, self.word()));
        let drafts: Vec<Draft> = drafts.collect();
        let key = random.chance(40).then(|| format!("k{}", self.words));
        if let Some(key) = &key {
            self.sent.push(Sent {
                tenant: actor.tenant(),
                key: key.clone(),
                drafts: drafts.clone(),
            });
        }
        records::add(actor, drafts, key)
    }

    fn retry(&mut self, actor: Actor, random: &mut Random) -> (String, Work) {
        let known: Vec<Sent> = self
            .sent
            .iter()
            .filter(|s| s.tenant == actor.tenant())
            .cloned()
            .collect();
        match random.pick(&known) {
            Some(sent) => records::add(actor, sent.drafts.clone(), Some(sent.key.clone())),
            None => self.add(actor, random),
        }
    }
}

#[test]
fn the_engine_keeps_its_promises() {
    sweep(
        "-p mnemon-engine --test it -- simulator",
        6,
        1000,
        InRam::default,
        |_| Engine::default(),
    );
}

/// All planted defects are found through the verbs of the engine, too.
#[test]
fn planted_defects_are_found() {
    for defect in Defect::ALL {
        let limits = [&Limits::DEFAULT, &Limits::TINY];
        let found = (1..40).find_map(|seed| {
            let mut runs = limits.iter().map(|limits| {
                let plan = Plan {
                    seed,
                    steps: 1500,
                    limits,
                    faults: 30,
                };
                let plant = |backend| Backend::from(Arc::new(Planted::new(backend, defect)));
                block_on(run(
                    &plan,
                    &InRam::default(),
                    &plant,
                    &mut Engine::default(),
                ))
            });
            runs.find_map(Result::err)
        });
        let failure = found.unwrap_or_else(|| panic!("{defect:?} was not found"));
        let what = failure.what.lines().next().unwrap_or_default();
        println!(
            "{defect:?}: {what} (seed {}, step {})",
            failure.seed, failure.step
        );
    }
}
