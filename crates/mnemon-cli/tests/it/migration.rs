//! `mnemon migrate`: a copy has everything that its source has, wherever the copy was interrupted.

mod kills;

use std::sync::Arc;

use mnemon_core::{
    Batch, Ctx, Embedding, Grant, IdempotencyKey, Op, Policy, Record, Replica, Right, Tenant, Time,
    embed::ModelId,
};
use mnemon_engine::Migration;
use mnemon_testkit::observe;

use crate::sandbox::Sandbox;
use crate::server::many::Database;

const START: i64 = 1_700_000_000_000;
const DAY_MS: i64 = 86_400_000;

fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

/// The same numbers in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Random writes of one tenant, whose time passes.
struct Life {
    store: Arc<dyn Replica>,
    tenant: Tenant,
    draw: Draw,
    now: i64,
    written: u64,
}

impl Life {
    fn grant(&self) -> Grant {
        let now = Time::from_millis(self.now).unwrap();
        let policy = Policy {
            history_days: Some(20),
            ..Policy::default()
        };
        let ctx = Ctx::new(self.tenant.clone(), "test", now);
        policy.check(&ctx, Right::Purge).unwrap()
    }

    fn note(&mut self) -> Record {
        let id = format!("n{}", self.draw.below(40));
        let now = Time::from_millis(self.now).unwrap();
        let ctx = Ctx::new(self.tenant.clone(), "test", now);
        self.written += 1;
        let text = format!("Ann wrote line {} about tea", self.written);
        let mut note = Record::note(id.parse().unwrap(), &ctx, text);
        if self.draw.below(4) == 0 {
            let days = i64::try_from(1 + self.draw.below(9)).unwrap();
            note.expires = Some(now.plus_days(days));
        }
        if self.draw.below(3) == 0 {
            note.derived_from = vec![format!("n{}", 40 + self.draw.below(3)).parse().unwrap()];
        }
        note
    }

    async fn step(&mut self) {
        self.now += i64::try_from(self.draw.below(100_000)).unwrap();
        let id = format!("n{}", self.draw.below(43)).parse().unwrap();
        let mut batch = match self.draw.below(20) {
            0 => Batch::of(Op::Purge { id }),
            1..=3 => Batch::of(Op::delete(id)),
            4 => {
                self.now += DAY_MS;
                let done = self.store.upkeep(&self.grant(), 100).await;
                done.unwrap();
                return;
            }
            _ => (0..1 + self.draw.below(3))
                .map(|_| Op::put(self.note()))
                .collect::<Vec<_>>()
                .into(),
        };
        if self.draw.below(5) == 0 {
            let name = format!("key {}", self.now);
            let digest = "d".to_owned();
            batch.key = Some(IdempotencyKey { name, digest });
        }
        let receipt = self.store.apply(&self.grant(), batch).await.unwrap();
        if self.draw.below(3) == 0
            && let Some(item) = receipt.items.first()
        {
            self.embed(&item.id).await;
        }
    }

    /// Gives a record a vector without a change of it.
    async fn embed(&mut self, id: &mnemon_core::Id) {
        let found = self
            .store
            .get(&self.grant(), std::slice::from_ref(id))
            .await;
        let Some(record) = found.unwrap().remove(0) else {
            return;
        };
        let model = ModelId {
            name: "test".to_owned(),
            dimension: 8,
        };
        let mut vector = vec![0.1; 8];
        vector[usize::try_from(self.draw.below(8)).unwrap()] = 0.9;
        let vectors = vec![(record.seq, Embedding { model, vector })];
        self.store.embed(&self.grant(), vectors).await.unwrap();
    }
}

fn tenant(name: &str) -> Tenant {
    let nanos = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    format!("{name}-{}-{nanos}", std::process::id())
        .parse()
        .unwrap()
}

/// Copies a tenant to and fro while it is written; both stores show the same in the end.
fn copy_while_it_changes(from: &str, to: &str, seed: u64) {
    wait(async {
        let source = mnemon_adapters::open_replica(from).unwrap();
        let target = mnemon_adapters::open_replica(to).unwrap();
        let mut life = Life {
            store: Arc::clone(&source),
            tenant: tenant("copy"),
            draw: Draw(seed),
            now: START,
            written: 0,
        };
        let ctx = Ctx::new(Tenant::default(), "test", Time::from_millis(START).unwrap());
        let migration = Migration::new(Arc::clone(&source), Arc::clone(&target), ctx);
        for round in 0..12 {
            for _ in 0..25 {
                life.step().await;
            }
            match round % 3 {
                0 => drop(migration.catch_up(&life.tenant, &|_| ()).await.unwrap()),
                1 => drop(migration.verify(&life.tenant, &|_| ()).await.unwrap()),
                _ => {}
            }
        }
        let sums = migration.verify(&life.tenant, &|_| ()).await.unwrap();
        assert!(sums.records > 5 && sums.versions > 5, "{sums:?}");
        let states = migration.check(Some(&life.tenant)).await.unwrap();
        assert_eq!(states[0].seq, states[0].copied_to);
        let grant = life.grant();
        let ours = observe(&*source, &grant, 50).await.unwrap();
        let theirs = observe(&*target, &grant, 50).await.unwrap();
        assert_eq!(ours.tally, theirs.tally, "{from} {to} {seed}");
        assert_eq!(ours.feed, theirs.feed, "{from} {to} {seed}");
        assert_eq!(ours.written, theirs.written);
        assert_eq!(ours.changes, theirs.changes);
        // Both go on alike.
        let mut other = Life {
            store: Arc::clone(&target),
            tenant: life.tenant.clone(),
            draw: Draw(life.draw.0),
            ..life
        };
        life.store = source;
        for _ in 0..20 {
            life.step().await;
            other.step().await;
        }
        let grant = life.grant();
        let ours = observe(&*life.store, &grant, 50).await.unwrap();
        let theirs = observe(&*other.store, &grant, 50).await.unwrap();
        assert_eq!(ours.tally, theirs.tally);
        assert_eq!(ours.feed, theirs.feed);
    });
}

fn sqlite(sandbox: &Sandbox, name: &str) -> String {
    format!("sqlite:{}", sandbox.path(name).display())
}

fn jsonl(sandbox: &Sandbox, name: &str) -> String {
    format!("jsonl:{}", sandbox.path(name).display())
}

/// The server that `./scripts/test` starts; none without it.
fn database() -> Option<String> {
    let url = std::env::var("TEST_DATABASE_URL").ok();
    url.filter(|_| cfg!(feature = "postgres"))
}

#[test]
fn files_and_logs_are_copied_both_ways_while_they_change() {
    for seed in 1..5 {
        let sandbox = Sandbox::new();
        let (file, log) = (sqlite(&sandbox, "a.db"), jsonl(&sandbox, "a"));
        copy_while_it_changes(&file, &log, seed);
        copy_while_it_changes(&jsonl(&sandbox, "b"), &sqlite(&sandbox, "b.db"), seed);
        copy_while_it_changes(&file, &sqlite(&sandbox, "c.db"), seed);
    }
}

#[test]
fn databases_are_copied_both_ways_while_they_change() {
    let Some(url) = database() else {
        return;
    };
    for seed in 1..4 {
        let sandbox = Sandbox::new();
        copy_while_it_changes(&sqlite(&sandbox, "a.db"), &url, seed);
        copy_while_it_changes(&url, &sqlite(&sandbox, "b.db"), seed);
        copy_while_it_changes(&url, &jsonl(&sandbox, "b"), seed);
    }
}

/// A store with history, a forgotten and a purged record, and keys.
fn fill(sandbox: &Sandbox, store: &str, args: &[&str]) {
    let run = |words: &[&str]| {
        let all = [words, &["--store", store], args].concat();
        sandbox.run(&all).ok()
    };
    run(&["add", "Ann prefers tea", "--id", "a", "--key", "k1"]);
    run(&[
        "add",
        "buy tea on Friday",
        "--id",
        "b",
        "--derived-from",
        "a",
    ]);
    run(&["update", "a", "Ann prefers coffee"]);
    run(&["add", "Bob likes jazz", "--id", "c"]);
    run(&["add", "a secret plan", "--id", "d"]);
    run(&["forget", "d", "--purge", "--yes"]);
    run(&["forget", "c"]);
}

/// The commands that are compared before and after.
fn seen(sandbox: &Sandbox, store: &str, args: &[&str]) -> String {
    let run = |words: &[&str]| {
        sandbox
            .run(&[words, &["--store", store], args].concat())
            .ok()
    };
    let mut all = String::new();
    for words in [
        &["export"] as &[&str],
        &["history", "--json", "--limit", "99"],
        &["search", "what does Ann drink", "--json"],
    ] {
        all += &run(words);
    }
    all
}

fn moves_as_it_is(sandbox: &Sandbox, stores: &[&str], args: &[&str]) {
    fill(sandbox, stores[0], args);
    let before = seen(sandbox, stores[0], args);
    let mut lines = Vec::new();
    for pair in stores.windows(2) {
        let args = [&["migrate", "--from", pair[0], "--to", pair[1]], args].concat();
        let said = sandbox.run(&args).ok();
        let verified = said.lines().find(|line| line.starts_with("verified: "));
        lines.push(verified.unwrap().to_owned());
        assert!(said.contains("caught up to change 7"), "{said}");
    }
    assert!(
        lines
            .iter()
            .all(|line| line.contains("2 records, 4 past versions, 1 receipt"))
    );
    let last = stores.last().unwrap();
    let run = |words: &[&str]| {
        sandbox
            .run(&[words, &["--store", last], args].concat())
            .ok()
    };
    if stores.iter().any(|store| store.starts_with("jsonl:")) {
        // A log keeps no vectors.
        run(&["reembed"]);
    }
    assert_eq!(seen(sandbox, last, args), before);
    // The same key stores nothing, and what was forgotten comes back.
    run(&["add", "Ann prefers tea", "--id", "a", "--key", "k1"]);
    run(&["undo"]);
    assert!(run(&["list"]).contains("Bob likes jazz"));
}

#[test]
fn history_keys_and_search_are_the_same_afterwards() {
    let sandbox = Sandbox::new();
    moves_as_it_is(
        &sandbox,
        &["sqlite:a.db", "jsonl:j", "sqlite:b.db", "sqlite:c.db"],
        &[],
    );
}

#[test]
fn history_keys_and_search_are_the_same_in_a_database() {
    let Some(url) = database() else {
        return;
    };
    let (sandbox, tenant) = (Sandbox::new(), tenant("cli"));
    let stores = ["sqlite:a.db", &url, "sqlite:b.db"];
    moves_as_it_is(&sandbox, &stores, &["--tenant", tenant.as_str()]);
}

#[test]
fn a_target_with_other_data_and_a_missing_source_are_refused() {
    let sandbox = Sandbox::new();
    fill(&sandbox, "sqlite:a.db", &[]);
    sandbox
        .run(&["add", "other", "--store", "sqlite:b.db"])
        .ok();
    let migrate = |from: &str, to: &str| {
        let refused = sandbox.run(&["migrate", "--from", from, "--to", to]);
        refused.failed()
    };
    let before = seen(&sandbox, "sqlite:b.db", &[]);
    let (code, error) = migrate("sqlite:a.db", "sqlite:b.db");
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("--to: the target already holds other data"),
        "{error}"
    );
    assert_eq!(seen(&sandbox, "sqlite:b.db", &[]), before);
    let (_, error) = migrate("sqlite:a.db", "sqlite:./a.db");
    assert!(error.contains("is the source itself"), "{error}");
    let (code, error) = migrate("sqlite:typo.db", "jsonl:j");
    assert_eq!(code, 3, "{error}");
    let planned = [
        "migrate",
        "--from",
        "sqlite:a.db",
        "--to",
        "jsonl:j",
        "--dry-run",
    ];
    assert!(sandbox.run(&planned).ok().contains("would copy 7 changes"));
    assert!(!sandbox.path("j").exists() && !sandbox.path("typo.db").exists());
    // A newer format is not touched.
    let newer = rusqlite::Connection::open(sandbox.path("b.db")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    let (_, error) = migrate("sqlite:b.db", "jsonl:j");
    assert!(error.contains("newer version"), "{error}");
}

#[test]
fn a_database_without_a_store_is_refused_as_source() {
    let Some(database) = Database::fresh() else {
        return;
    };
    let (sandbox, url) = (Sandbox::new(), database.url());
    let args = ["migrate", "--from", &url, "--to", "sqlite:a.db"];
    let (code, error) = sandbox.run(&args).failed();
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("--from") && error.contains("does not contain a store"),
        "{error}"
    );
    assert!(!sandbox.path("a.db").exists());
}

#[test]
fn a_tenant_joins_a_store_that_others_use() {
    let sandbox = Sandbox::new();
    fill(&sandbox, "sqlite:a.db", &["--tenant", "acme"]);
    fill(&sandbox, "sqlite:b.db", &["--tenant", "other"]);
    let all = ["migrate", "--from", "sqlite:a.db", "--to", "sqlite:b.db"];
    let (_, error) = sandbox.run(&all).failed();
    assert!(error.contains("--tenant"), "{error}");
    sandbox
        .run(&[&all[..], &["--tenant", "acme"]].concat())
        .ok();
    let (ours, theirs) = ("sqlite:a.db", "sqlite:b.db");
    let args = ["--tenant", "acme"];
    assert_eq!(seen(&sandbox, ours, &args), seen(&sandbox, theirs, &args));
}
