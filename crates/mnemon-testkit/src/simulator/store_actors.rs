//! Actors that use the port itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use mnemon_core::{
    Backend, Batch, Caps, Ctx, ErrorKind, Expect, Filter, Grant, Id, IdempotencyKey, Kind,
    Namespace, Op, Order, Owner, Policy, Record, Right, Scan, Store, StoreError, Tenant,
};

use super::check::UNIQUE;
use super::{Operation, Random, Sim, World};

const TENANTS: [&str; 2] = ["acme", "default"];
const USERS: [Option<&str>; 3] = [None, Some("ann"), Some("bob")];
const NAMES: u64 = 14;

/// Random batches and reads on few ids, with short lives, small caps and reused keys.
#[derive(Default)]
pub struct StoreActors {
    store: Option<Arc<dyn Store>>,
    /// Batches that were sent under a key, for retries.
    sent: Vec<(usize, Batch)>,
    words: u64,
}

impl World for StoreActors {
    fn close(&mut self) {
        self.store = None;
    }

    fn open(&mut self, _: &Sim, backend: Backend) {
        self.store = Some(backend.store);
    }

    fn next(&mut self, sim: &Sim) -> Operation {
        let mut state = sim.lock();
        let mut random = state.random.clone();
        let tenant = random.index(TENANTS.len());
        let caps = (random.chance(20), random.below(6));
        let policy = Policy {
            limits: state.limits,
            caps: Caps {
                short_term: Some(caps.1).filter(|_| caps.0),
                long_term: Some(caps.1 + 2).filter(|_| caps.0),
            },
            ..Policy::default()
        };
        let tenant_name: Tenant = TENANTS[tenant].parse().unwrap();
        let ctx = Ctx::new(tenant_name, "simulator", state.now);
        let grant = policy.check(&ctx, Right::Purge).unwrap();
        let choice = random.below(100);
        let store = self.store.clone().unwrap();
        let operation = match choice {
            0..60 => {
                let batch = self.batch(&mut random, &ctx, tenant, sim_versions(&state, &ctx));
                apply(sim, store, grant, batch)
            }
            60..66 => upkeep(sim, store, grant, &mut random),
            66..84 => list(sim, store, grant, &mut random),
            _ => get(sim, store, grant, &mut random),
        };
        state.random = random;
        operation
    }
}

/// The live versions, to write the right preconditions most of the time.
fn sim_versions(state: &super::State, ctx: &Ctx) -> Vec<(Id, u64)> {
    let live = state.model.live(&ctx.tenant, ctx.now);
    live.map(|record| (record.id.clone(), record.version))
        .collect()
}

impl StoreActors {
    fn batch(
        &mut self,
        random: &mut Random,
        ctx: &Ctx,
        tenant: usize,
        live: Vec<(Id, u64)>,
    ) -> Batch {
        let retries: Vec<&(usize, Batch)> =
            self.sent.iter().filter(|(t, _)| *t == tenant).collect();
        if random.chance(15)
            && let Some((_, batch)) = random.pick(&retries)
        {
            return batch.clone();
        }
        let count = 1 + random.below(4);
        let ops = (0..count).map(|_| self.op(random, ctx, &live));
        let mut ops: Vec<Op> = ops.collect();
        // Which of two removals took a record along is not told by the receipt, so that the model
        // could not say what must be left.
        let mut removals = 0;
        ops.retain(|op| {
            removals += usize::from(!matches!(op, Op::Put { .. }));
            removals < 2 || matches!(op, Op::Put { .. })
        });
        let mut batch = Batch::from(ops);
        // Only a receipt with a commit number tells a replay from a second application.
        let writes = batch.ops.iter().any(|op| matches!(op, Op::Put { .. }));
        if random.chance(25) && writes {
            batch.key = Some(IdempotencyKey {
                name: format!("k{}", self.sent.len()),
                digest: "intent".to_owned(),
            });
            self.sent.push((tenant, batch.clone()));
        }
        batch
    }

    fn op(&mut self, random: &mut Random, ctx: &Ctx, live: &[(Id, u64)]) -> Op {
        let id: Id = name(random);
        let current = live.iter().find(|(known, _)| *known == id);
        let expect = match random.below(10) {
            0..5 => Expect::Anything,
            5..9 => current.map_or(Expect::Absent, |(_, version)| Expect::Version(*version)),
            _ => Expect::Version(1 + random.below(4)),
        };
        match random.below(20) {
            0..14 => Op::put_if(self.record(random, ctx, id), expect),
            14..18 => Op::Delete { id, expect },
            _ => Op::Purge { id },
        }
    }

    fn record(&mut self, random: &mut Random, ctx: &Ctx, id: Id) -> Record {
        self.words += 1;
        let kind = [Kind::Note, Kind::Note, Kind::Fact][random.index(3)];
        let sources: BTreeSet<Id> = (0..random.below(3)).map(|_| name(random)).collect();
        let lives = i64::try_from(1 + random.below(3000)).unwrap();
        Record {
            owner: Owner {
                user: USERS[random.index(USERS.len())].map(str::to_owned),
                ..Owner::default()
            },
            namespace: Namespace::ALL[random.index(Namespace::ALL.len())],
            importance: random.below(4) as f64 / 4.0,
            expires: random.chance(25).then(|| ctx.now.plus_millis(lives)),
            derived_from: sources.into_iter().filter(|source| *source != id).collect(),
            ..Record::new(id, ctx, kind, format!("{UNIQUE}{} tea", self.words))
        }
    }
}

fn name(random: &mut Random) -> Id {
    format!("r{}", random.below(NAMES)).parse().unwrap()
}

/// Only an injected fault makes a store unavailable; nothing makes it inconsistent.
fn explain(sim: &Sim, error: &StoreError) -> Result<(), String> {
    let is_injected = sim.was_struck(sim.running());
    match error.kind() {
        ErrorKind::Unavailable if is_injected => Ok(()),
        // The model has judged why it was refused.
        ErrorKind::Conflict | ErrorKind::TooLarge | ErrorKind::Invalid => Ok(()),
        _ => Err(format!("failed without reason: {error}")),
    }
}

fn apply(sim: &Sim, store: Arc<dyn Store>, grant: Grant, batch: Batch) -> Operation {
    let sim = sim.clone();
    let ops = batch.ops.iter().map(|op| match op {
        Op::Put { record, .. } => format!("put {}", record.id),
        Op::Delete { id, .. } => format!("delete {id}"),
        Op::Purge { id } => format!("purge {id}"),
    });
    let ops: Vec<String> = ops.collect();
    let key = batch.key.as_ref().map_or("", |key| &key.name);
    Operation {
        name: format!("{}: apply {} {key}", grant.tenant(), ops.join(", ")),
        work: Box::pin(async move {
            match store.apply(&grant, batch).await {
                Ok(_) => Ok(()),
                Err(error) => explain(&sim, &error),
            }
        }),
    }
}

fn upkeep(sim: &Sim, store: Arc<dyn Store>, grant: Grant, random: &mut Random) -> Operation {
    let sim = sim.clone();
    let limit = random.index(5);
    Operation {
        name: format!("{}: upkeep of {limit}", grant.tenant()),
        work: Box::pin(async move {
            match store.upkeep(&grant, limit).await {
                Ok(_) => Ok(()),
                Err(error) => explain(&sim, &error),
            }
        }),
    }
}

fn get(sim: &Sim, store: Arc<dyn Store>, grant: Grant, random: &mut Random) -> Operation {
    let sim = sim.clone();
    let ids: Vec<Id> = (0..3).map(|_| name(random)).collect();
    Operation {
        name: format!("{}: get {ids:?}", grant.tenant()),
        work: Box::pin(async move {
            let since = sim.lock().model.begin();
            let found = match store.get(&grant, &ids).await {
                Ok(found) => found,
                Err(error) => return explain(&sim, &error),
            };
            let state = sim.lock();
            let mut shown = found.iter().flatten();
            shown.try_for_each(|record| {
                state
                    .model
                    .check_shown(since, grant.tenant(), grant.now(), record)
            })
        }),
    }
}

fn list(sim: &Sim, store: Arc<dyn Store>, grant: Grant, random: &mut Random) -> Operation {
    let sim = sim.clone();
    let user = USERS[random.index(USERS.len())];
    let mut scan = Scan {
        filter: Filter {
            owner: Owner {
                user: user.map(str::to_owned),
                ..Owner::default()
            },
            ..Filter::all_of_tenant()
        },
        order: Order::Newest,
        after: None,
        limit: grant.limits().page,
    };
    Operation {
        name: format!("{}: list of {user:?}", grant.tenant()),
        work: Box::pin(async move {
            let since = sim.lock().model.begin();
            let mut shown = BTreeSet::new();
            loop {
                let page = match store.scan(&grant, &scan).await {
                    Ok(page) => page,
                    Err(error) => return explain(&sim, &error),
                };
                let state = sim.lock();
                for record in page.records {
                    state
                        .model
                        .check_shown(since, grant.tenant(), grant.now(), &record)?;
                    if !scan.filter.matches(&record) {
                        return Err(format!("{} was shown to another user", record.id));
                    }
                    shown.insert(record.id);
                }
                match page.next {
                    Some(next) => scan.after = Some(next),
                    None => break,
                }
            }
            let state = sim.lock();
            let is_meant = |record: &Record| scan.filter.matches(record);
            state
                .model
                .check_complete(since, grant.tenant(), grant.now(), is_meant, &shown)
        }),
    }
}
