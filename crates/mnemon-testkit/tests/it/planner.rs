//! Properties of the planner, over random worlds from fixed seeds.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic; clippy allows it in test functions only, not in their helpers"
)]

use mnemon_core::commit::{Grown, Needs, Plan, Request, View, needs, plan};
use mnemon_core::limits::Limits;
use mnemon_core::ram::Image;
use mnemon_core::{
    Batch, Caps, Ctx, Expect, Grant, Id, IdempotencyKey, Kind, Namespace, Op, Policy, Receipt,
    Record, Right, StoreError, Tenant, Time,
};

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
const DAY_MS: u64 = 86_400_000;
const WORLDS: u64 = 600;

/// Random numbers (xorshift), the same for the same seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn maybe<T>(&mut self, percent: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(percent).then(|| make(self))
    }

    fn name(&mut self) -> Id {
        id(NAMES[self.below(NAMES.len() as u64) as usize])
    }
}

fn id(name: &str) -> Id {
    name.parse().unwrap()
}

fn grant(now_ms: u64, caps: Caps, limits: &'static Limits) -> Grant {
    let policy = Policy {
        caps,
        limits,
        ..Policy::default()
    };
    let now = Time::from_millis(1_700_000_000_000 + now_ms as i64).unwrap();
    let ctx = Ctx::new(Tenant::default(), "test", now);
    policy.check(&ctx, Right::Purge).unwrap()
}

fn plain(limits: &'static Limits) -> Grant {
    grant(0, Caps::default(), limits)
}

fn record(grant: &Grant, id: Id, kind: Kind) -> Record {
    let ctx = Ctx::new(Tenant::default(), "test", grant.now());
    Record::new(id, &ctx, kind, "text")
}

fn draw_record(draw: &mut Draw, grant: &Grant) -> Record {
    let id = draw.name();
    let kind = match draw.chance(75) {
        true => Kind::Note,
        false => Kind::Fact,
    };
    let mut record = record(grant, id, kind);
    record.namespace = Namespace::ALL[draw.below(2) as usize];
    record.importance = draw.below(3) as f64 / 2.0;
    record.created = grant.now().plus_millis(-(draw.below(3) as i64));
    // Some have expired when they are written.
    let life = draw.maybe(50, |draw| draw.below(12) as i64 - 3);
    record.expires = life.map(|ms| grant.now().plus_millis(ms));
    for _ in 0..draw.below(3) {
        let source = draw.name();
        if source != record.id && !record.derived_from.contains(&source) {
            record.derived_from.push(source);
        }
    }
    record
}

fn draw_op(draw: &mut Draw, grant: &Grant) -> Op {
    let expect = match draw.below(12) {
        0 => Expect::Absent,
        1 => Expect::Version(1 + draw.below(4)),
        _ => Expect::Anything,
    };
    match draw.below(10) {
        0..=6 => Op::put_if(draw_record(draw, grant), expect),
        7 | 8 => Op::Delete {
            id: draw.name(),
            expect,
        },
        _ => Op::Purge { id: draw.name() },
    }
}

fn draw_request(draw: &mut Draw, now: &mut u64, limits: &'static Limits) -> Request {
    *now += match draw.below(30) {
        0 => 40 * DAY_MS,
        1 => DAY_MS,
        _ => draw.below(6),
    };
    let caps = Caps {
        short_term: draw.maybe(40, |draw| draw.below(4)),
        long_term: draw.maybe(40, |draw| draw.below(4)),
    };
    let grant = grant(*now, caps, limits);
    let batch = Batch {
        ops: (0..draw.below(6)).map(|_| draw_op(draw, &grant)).collect(),
        key: draw.maybe(25, |draw| IdempotencyKey {
            name: format!("k{}", draw.below(3)),
            digest: draw.below(2).to_string(),
        }),
        continues: draw.maybe(15, |draw| 1 + draw.below(20)),
        undoes: draw.maybe(10, |draw| 1 + draw.below(9)),
        ..Batch::default()
    };
    Request::new(&grant, batch).unwrap()
}

/// A world after some batches, and a group of batches for it.
fn draw_world(seed: u64) -> (Image, Vec<Request>) {
    let draw = &mut Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let limits = match seed % 2 {
        0 => &Limits::TINY,
        _ => &Limits::DEFAULT,
    };
    let mut now = 0;
    let mut image = Image::default();
    for _ in 0..draw.below(12) {
        let request = draw_request(draw, &mut now, limits);
        let plan = image.plan(vec![request]);
        image.apply(plan);
    }
    let group = (0..1 + draw.below(6)).map(|_| draw_request(draw, &mut now, limits));
    let group = group.collect();
    (image, group)
}

fn told<T: std::fmt::Debug>(outcomes: &[Result<T, StoreError>]) -> Vec<String> {
    outcomes.iter().map(|it| format!("{it:?}")).collect()
}

#[test]
fn a_group_does_what_its_batches_do_one_by_one() {
    let (mut failed, mut done) = (0, 0);
    for seed in 0..WORLDS {
        let (mut together, group) = draw_world(seed);
        let mut alone = together.clone();
        let mut answers = Vec::new();
        for request in group.clone() {
            let plan = alone.plan(vec![request]);
            answers.append(&mut alone.apply(plan));
        }
        let plan = together.plan(group);
        let in_group = together.apply(plan);
        assert_eq!(told(&in_group), told(&answers), "seed {seed}");
        assert_eq!(together, alone, "seed {seed}");
        failed += answers.iter().filter(|answer| answer.is_err()).count();
        done += answers.iter().filter(|answer| answer.is_ok()).count();
    }
    assert!(failed > 80 && done > 800, "{failed} failed, {done} done");
}

#[test]
fn a_batch_that_fails_changes_nothing_for_the_others() {
    for seed in 0..WORLDS {
        let (image, group) = draw_world(seed);
        let all = image.plan(group.clone());
        let fits = all.outcomes.iter().map(Result::is_ok);
        let fitting = group.into_iter().zip(fits).filter(|(_, fits)| *fits);
        let without = image.plan(fitting.map(|(request, _)| request).collect());
        let done: Vec<_> = all.outcomes.into_iter().filter(Result::is_ok).collect();
        assert_eq!(told(&done), told(&without.outcomes), "seed {seed}");
        let numbers = (all.last_seq, all.clock);
        assert_eq!(numbers, (without.last_seq, without.clock), "seed {seed}");
    }
}

#[test]
fn what_a_group_needs_is_enough() {
    let names = NAMES.map(id);
    let everything = Needs {
        ids: names.iter().collect(),
        keys: vec!["k0", "k1", "k2"],
        roots: names.iter().collect(),
        most_derived: usize::MAX / 2,
        grown: Vec::from_iter(Namespace::ALL.iter().map(|namespace| Grown {
            namespace: *namespace,
            puts: 1000,
            cap: 0,
        })),
        now: Time::from_millis(4_000_000_000_000).unwrap(),
        erased: 1000,
        erased_when_over: 1000,
    };
    for seed in 0..WORLDS {
        let (image, group) = draw_world(seed);
        let full = plan(image.view(&everything), group.clone());
        let needed = plan(image.view(&needs(&group)), group);
        assert_eq!(told(&needed.outcomes), told(&full.outcomes), "seed {seed}");
        let numbers = (needed.last_seq, needed.clock);
        assert_eq!(numbers, (full.last_seq, full.clock), "seed {seed}");
    }
}

/// A backend that counts its round trips.
#[derive(Default)]
struct Remote {
    image: Image,
    loads: usize,
    writes: usize,
}

impl Remote {
    fn load(&mut self, needs: &Needs<'_>) -> View {
        self.loads += 1;
        self.image.view(needs)
    }

    fn write(&mut self, plan: Plan) -> Vec<Result<Receipt, StoreError>> {
        self.writes += 1;
        self.image.apply(plan)
    }

    fn apply(&mut self, group: Vec<Request>) -> Vec<Result<Receipt, StoreError>> {
        let view = self.load(&needs(&group));
        self.write(plan(view, group))
    }
}

#[test]
fn a_group_costs_one_read_and_one_write() {
    let grant = plain(&Limits::DEFAULT);
    let mut remote = Remote::default();
    let many: Vec<Op> = (0..1000)
        .map(|n| {
            let mut record = record(&grant, id(&format!("n{n}")), Kind::Fact);
            record.derived_from = vec![id(&format!("n{}", n / 2))];
            record.derived_from.retain(|source| *source != record.id);
            Op::put(record)
        })
        .collect();
    let batches = [
        Batch::from(many),
        Batch::of(Op::delete(id("n3"))),
        Batch::of(Op::append(record(&grant, id("n0"), Kind::Fact))),
        Batch::of(Op::Purge { id: id("n0") }),
    ];
    let group = batches.map(|batch| Request::new(&grant, batch).unwrap());
    let answers = remote.apply(group.into());
    assert_eq!((remote.loads, remote.writes), (1, 1));
    let cascaded = |at: usize| answers[at].as_ref().unwrap().cascaded.len();
    assert_eq!((cascaded(1), cascaded(3)), (486, 999));
    assert!(answers[2].is_err(), "n0 is there");
    assert!(remote.image.is_empty());
}

fn family(grant: &Grant, count: usize) -> Vec<Request> {
    let children = (0..count).map(|n| {
        let mut child = record(grant, id(&format!("child-{n}")), Kind::Fact);
        child.derived_from = vec![id("root")];
        child
    });
    let root = record(grant, id("root"), Kind::Fact);
    let ops: Vec<Op> = std::iter::once(root).chain(children).map(Op::put).collect();
    let batches = ops.chunks(grant.limits().batch_ops);
    batches
        .map(|ops| Request::new(grant, Batch::from(ops.to_vec())).unwrap())
        .collect()
}

#[test]
fn a_deletion_takes_at_most_so_many_along() {
    let grant = plain(&Limits::TINY);
    let most = grant.limits().cascade;
    for count in [most, most + 1, 2 * most, 2 * most + 1, 3 * most] {
        let mut image = Image::default();
        let plan = image.plan(family(&grant, count));
        image.apply(plan);
        let delete = Batch::of(Op::delete(id("root")));
        let deleted = image.commit(&grant, delete.clone());
        match deleted {
            Ok(receipt) => assert_eq!((receipt.cascaded.len(), count), (most, most)),
            Err(StoreError::TooLarge { count: found, .. }) => assert!(count > most && found > most),
            Err(error) => panic!("{error}"),
        }
        // Within the group that writes them it is the same.
        let mut group = family(&grant, count);
        group.push(Request::new(&grant, delete).unwrap());
        let last = Image::default().plan(group).outcomes.pop().unwrap();
        assert_eq!(last.is_ok(), count <= most, "{count}");
    }
}

#[test]
fn only_a_commit_that_has_begun_can_be_continued() {
    let grant = plain(&Limits::DEFAULT);
    let mut image = Image::default();
    let mut put = |name: &str, continues| {
        let op = Op::put(record(&grant, id(name), Kind::Fact));
        let batch = Batch {
            continues,
            ..Batch::of(op)
        };
        image.commit(&grant, batch).map(|receipt| receipt.commit)
    };
    assert!(put("a", Some(1)).is_err(), "there is no commit yet");
    assert_eq!(put("a", None).unwrap(), Some(1));
    assert_eq!(put("b", None).unwrap(), Some(2));
    assert_eq!(put("c", Some(1)).unwrap(), Some(1));
    assert!(put("d", Some(4)).is_err());
    assert!(put("d", Some(0)).is_err());
}
