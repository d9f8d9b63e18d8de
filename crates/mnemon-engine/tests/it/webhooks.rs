//! Webhooks: in order, at least once, with retries, dead letters and a lease.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::FutureExt;
use mnemon_core::ram::Ram;
use mnemon_core::webhook::{Delivery, NotDelivered, WebhookSender};
use mnemon_core::{Changes, Ctx, Filter, Ids, Invalid, Kind, Policy, Right, Store, Tenant, Viewer};
use mnemon_engine::access::Keys;
use mnemon_engine::webhooks::{
    ATTEMPTS, DEAD_LETTERS, FIRST_WAIT_MS, MOST_WAIT_MS, MOST_WEBHOOKS, NewWebhook, Webhook,
    Webhooks,
};
use mnemon_engine::{Draft, Memory};
use serde_json::Value;

use crate::{ctx, wait};

const SECRET: &str = "hunter2-hunter2-hunter2";

/// A receiver that answers as scripted, and well afterwards.
#[derive(Default)]
struct Receiver {
    failures: Mutex<VecDeque<bool>>,
    /// The ids of all attempts.
    attempts: Mutex<Vec<String>>,
    arrived: Mutex<Vec<(String, String, Value)>>,
}

impl Receiver {
    fn fail(&self, times: usize) {
        self.failures.lock().unwrap().extend(vec![true; times]);
    }

    /// The numbers of the changes of each delivery that arrived since the last call.
    fn arrived(&self) -> Vec<Vec<u64>> {
        let arrived = std::mem::take(&mut *self.arrived.lock().unwrap());
        let seqs = |body: &Value| {
            let changes = body["changes"].as_array().unwrap();
            changes.iter().map(|c| c["seq"].as_u64().unwrap()).collect()
        };
        arrived.iter().map(|(_, _, body)| seqs(body)).collect()
    }
}

#[async_trait]
impl WebhookSender for Receiver {
    fn check(&self, url: &str) -> Result<(), Invalid> {
        match url.starts_with("https://") {
            true => Ok(()),
            false => Err(Invalid::new("url", "must begin with https://")),
        }
    }

    async fn send(&self, delivery: &Delivery<'_>) -> Result<(), NotDelivered> {
        assert_eq!(delivery.secret, SECRET);
        self.attempts.lock().unwrap().push(delivery.id.to_owned());
        if self.failures.lock().unwrap().pop_front().unwrap_or(false) {
            return Err(NotDelivered("the receiver answered 500".to_owned()));
        }
        let body = serde_json::from_slice(delivery.body).unwrap();
        let row = (delivery.url.to_owned(), delivery.id.to_owned(), body);
        self.arrived.lock().unwrap().push(row);
        Ok(())
    }
}

struct World {
    store: Arc<Ram>,
    memory: Memory,
    receiver: Arc<Receiver>,
    webhooks: Webhooks,
}

fn world() -> World {
    let store = Arc::new(Ram::new());
    let memory = Memory::builder(store.clone(), Ids::new(7)).build();
    let receiver = Arc::new(Receiver::default());
    let webhooks = Webhooks::new(memory.records(), receiver.clone(), "one");
    World {
        store,
        memory,
        receiver,
        webhooks,
    }
}

impl World {
    fn add(&self, user: Option<&str>, content: &str) -> mnemon_core::Id {
        let mut draft = Draft {
            kind: Some(Kind::Fact),
            ..Draft::note(content)
        };
        draft.owner.user = user.map(str::to_owned);
        let added = wait(self.memory.records().add(&ctx(), vec![draft], None)).unwrap();
        added.items[0].id.clone()
    }

    fn create(&self, filter: Filter) -> Webhook {
        wait(
            self.webhooks
                .create(&ctx(), new("https://hook.test/", filter)),
        )
        .unwrap()
    }

    fn list(&self) -> Vec<Webhook> {
        wait(self.webhooks.list(&ctx())).unwrap()
    }

    /// Sent, failed and given up at this moment.
    fn deliver(&self, at_ms: i64) -> [u64; 3] {
        let done = wait(self.webhooks.deliver_due(&later(at_ms), 100)).unwrap();
        assert!(!done.more);
        [done.sent, done.failed, done.dead]
    }
}

fn later(ms: i64) -> Ctx {
    Ctx {
        now: ctx().now.plus_millis(ms),
        ..ctx()
    }
}

fn new(url: &str, filter: Filter) -> NewWebhook {
    NewWebhook {
        url: url.to_owned(),
        secret: SECRET.to_owned(),
        filter,
    }
}

#[test]
fn changes_after_the_creation_are_sent_in_order_and_once() {
    let world = world();
    world.add(None, "before");
    let webhook = world.create(Filter::seen_by(Viewer::user("ann")));
    assert_eq!((webhook.reached, world.deliver(0)), (1, [0, 0, 0]));
    world.add(Some("ann"), "tea");
    world.add(Some("bob"), "coffee");
    world.add(None, "everyone");
    assert_eq!(world.deliver(1), [1, 0, 0]);
    let arrived = world.receiver.arrived.lock().unwrap().clone();
    let (url, id, body) = &arrived[0];
    assert_eq!(url, "https://hook.test/");
    assert_eq!(id, &format!("{}-1-4", webhook.id));
    assert_eq!((&body["after"], &body["reached"]), (&1.into(), &4.into()));
    assert_eq!(body["tenant"], ctx().tenant.as_str());
    assert_eq!(body["changes"][0]["after"]["content"], "tea");
    assert_eq!(world.receiver.arrived(), [[2, 4]]);
    // Changes that are not meant are neither sent nor read again, nor written down one by one.
    world.add(Some("bob"), "more coffee");
    assert_eq!(world.deliver(2), [0, 0, 0]);
    assert_eq!(world.list()[0].reached, 4);
    assert_eq!(world.deliver(3), [0, 0, 0]);
    world.add(Some("ann"), "more tea");
    // Another process goes on at once where this one stopped.
    let other = Webhooks::new(world.memory.records(), world.receiver.clone(), "two");
    let done = wait(other.deliver_due(&later(4), 9)).unwrap();
    assert_eq!((done.sent, world.receiver.arrived()), (1, vec![vec![6]]));
    assert_eq!(world.deliver(5), [0, 0, 0]);
}

/// A receiver that never answers.
struct Silent;

#[async_trait]
impl WebhookSender for Silent {
    fn check(&self, _: &str) -> Result<(), Invalid> {
        Ok(())
    }

    async fn send(&self, _: &Delivery<'_>) -> Result<(), NotDelivered> {
        std::future::pending().await
    }
}

#[test]
fn a_process_that_dies_while_it_sends_leaves_its_lease_and_its_range() {
    take_over(false);
    take_over(true);
}

fn take_over(is_claimed: bool) {
    let world = world();
    let webhook = world.create(Filter::seen_by(Viewer::user("ann")));
    world.add(Some("bob"), "coffee");
    let dies = Webhooks::new(world.memory.records(), Arc::new(Silent), "two");
    // Only the other process knows that it has passed the first change.
    wait(dies.deliver_due(&later(0), 9)).unwrap();
    world.add(Some("ann"), "tea");
    let ctx = later(0);
    assert!(dies.deliver_due(&ctx, 9).now_or_never().is_none());
    world.add(Some("ann"), "more tea");
    assert_eq!(world.deliver(1), [0, 0, 0], "the other one may be sending");
    if is_claimed {
        // The claim of the other one has ended, as the store says.
        let ours = wait(world.webhooks.by_tenant(&ctx)).unwrap().remove(0);
        let done = wait(world.webhooks.deliver(&later(2), ours, 9, true)).unwrap();
        assert_eq!((done.sent, done.more), (2, false));
    } else {
        assert_eq!(world.deliver(10 * 60_000), [2, 0, 0]);
    }
    let ids = [(1, 2), (2, 3)].map(|(after, end)| format!("{}-{after}-{end}", webhook.id));
    assert_eq!(*world.receiver.attempts.lock().unwrap(), ids);
    assert_eq!(world.receiver.arrived(), [[2], [3]]);
}

#[test]
fn changes_do_not_join_a_delivery_that_was_attempted() {
    let world = world();
    let webhook = world.create(Filter::all_of_tenant());
    let purged = world.add(None, "tea");
    world.receiver.fail(2);
    assert_eq!(world.deliver(0), [0, 1, 0]);
    world.add(None, "coffee");
    assert_eq!(world.deliver(FIRST_WAIT_MS), [0, 1, 0]);
    assert_eq!(world.deliver(3 * FIRST_WAIT_MS), [2, 0, 0]);
    let id = |range: &str| format!("{}-{range}", webhook.id);
    let first = id("0-1");
    let attempts = [first.clone(), first.clone(), first, id("1-2")];
    assert_eq!(*world.receiver.attempts.lock().unwrap(), attempts);
    assert_eq!(world.receiver.arrived(), [[1], [2]]);
    // A delivery of which nothing is left passes its failures to no other one.
    let purged_too = world.add(None, "water");
    world.receiver.fail(1);
    let now = 10 * FIRST_WAIT_MS;
    assert_eq!(world.deliver(now), [0, 1, 0]);
    let ids = [purged, purged_too];
    wait(world.memory.records().purge(&ctx(), &ids, None)).unwrap();
    world.receiver.fail(1);
    assert_eq!(world.deliver(now + FIRST_WAIT_MS), [0, 1, 0]);
    let shown = &world.list()[0];
    assert_eq!((shown.failures, shown.reached), (1, 3));
    assert_eq!(world.deliver(now + 2 * FIRST_WAIT_MS), [1, 0, 0]);
    assert_eq!(world.receiver.arrived(), [[4, 5]]);
}

#[test]
fn a_redelivery_that_arrives_ends_the_wait() {
    let world = world();
    let webhook = world.create(Filter::all_of_tenant());
    world.add(None, "tea");
    world.receiver.fail(ATTEMPTS as usize + 1);
    let mut now = 0;
    for _ in 0..ATTEMPTS {
        world.deliver(now);
        now += MOST_WAIT_MS;
    }
    world.add(None, "coffee");
    assert_eq!(world.deliver(now), [0, 1, 0]);
    assert_eq!(world.deliver(now + 1), [0, 0, 0]);
    let again = wait(world.webhooks.redeliver(&later(now + 2), &webhook.id, 1));
    again.unwrap().unwrap();
    assert_eq!(world.deliver(now + 3), [1, 0, 0]);
    assert_eq!(world.receiver.arrived(), [[1], [2]]);
    // The redelivery is another attempt of the same delivery.
    let attempts = world.receiver.attempts.lock().unwrap().clone();
    let again = attempts.iter().filter(|id| *id == &attempts[0]).count();
    assert_eq!(again, ATTEMPTS as usize + 1);
}

#[test]
fn large_pages_are_sent_in_parts_within_the_budget() {
    let world = world();
    world.create(Filter::all_of_tenant());
    for number in 0..250 {
        world.add(None, &format!("fact {number}"));
    }
    let done = wait(world.webhooks.deliver_due(&later(0), 2)).unwrap();
    assert_eq!((done.sent, done.more), (2, true));
    assert_eq!(world.deliver(1), [1, 0, 0]);
    let sizes: Vec<usize> = world.receiver.arrived().iter().map(Vec::len).collect();
    assert_eq!(sizes, [100, 100, 50]);
    let large = "x".repeat(200_000);
    for number in 0..12 {
        world.add(None, &format!("{number} {large}"));
    }
    world.deliver(2);
    let arrived = world.receiver.arrived();
    assert!(arrived.len() > 1 && arrived.iter().all(|page| page.len() < 6));
    assert_eq!(arrived.concat(), (251..=262).collect::<Vec<u64>>());
}

#[test]
fn a_failure_is_tried_again_and_then_becomes_a_dead_letter() {
    let world = world();
    let webhook = world.create(Filter::all_of_tenant());
    let purged = world.add(None, "tea");
    world.receiver.fail(ATTEMPTS as usize);
    let (mut now, mut wait_ms) = (0, FIRST_WAIT_MS);
    for attempt in 1..ATTEMPTS {
        assert_eq!(world.deliver(now), [0, 1, 0]);
        let shown = &world.list()[0];
        assert_eq!((shown.failures, shown.reached), (attempt, 0));
        assert_eq!(
            shown.last_error.as_deref(),
            Some("the receiver answered 500")
        );
        assert_eq!(shown.next_attempt, Some(later(now + wait_ms).now));
        assert_eq!(world.deliver(now + wait_ms - 1), [0, 0, 0], "too early");
        now += wait_ms;
        wait_ms = (2 * wait_ms).min(MOST_WAIT_MS);
    }
    assert_eq!(world.deliver(now), [0, 1, 1]);
    let shown = &world.list()[0];
    assert_eq!(
        (shown.failures, shown.reached, shown.dead_letters.len()),
        (0, 1, 1)
    );
    let letter = &shown.dead_letters[0];
    assert_eq!(
        (letter.after, letter.reached, letter.attempts),
        (0, 1, ATTEMPTS)
    );
    assert_eq!(shown.next_attempt, None);
    // Later changes are sent all the same, and at once.
    let kept = world.add(None, "coffee");
    assert_eq!(world.deliver(now), [1, 0, 0]);
    assert_eq!(world.receiver.arrived(), [[2]]);
    // A redelivery shows the changes as they are now.
    world.receiver.fail(1);
    let again = |number| wait(world.webhooks.redeliver(&later(now), &webhook.id, number));
    again(letter.number).unwrap().unwrap_err();
    assert_eq!(world.list()[0].dead_letters.len(), 1);
    wait(world.memory.records().purge(&ctx(), &[purged], None)).unwrap();
    again(letter.number).unwrap().unwrap();
    assert!(
        world.receiver.arrived().is_empty(),
        "nothing is left to send"
    );
    assert!(world.list()[0].dead_letters.is_empty());
    assert!(again(letter.number).is_err());
    drop(kept);
}

#[test]
fn dead_letters_are_bounded() {
    let world = world();
    world.create(Filter::all_of_tenant());
    world.receiver.fail(10_000);
    let mut now = 0;
    for _ in 0..(DEAD_LETTERS + 3) {
        world.add(None, "tea");
        for _ in 0..ATTEMPTS {
            now += MOST_WAIT_MS + 1;
            world.deliver(now);
        }
    }
    let shown = &world.list()[0];
    assert_eq!(
        (shown.dead_letters.len(), shown.dropped_letters),
        (DEAD_LETTERS, 3)
    );
    assert_eq!(shown.dead_letters[0].number, 4);
    // So is what the attempts leave in the history of the system tenant, which keeps a day of it.
    let grant = Policy::default().check_system(&later(now), Right::Read);
    let left = wait(world.store.tally(&grant.unwrap())).unwrap().history;
    assert!((1..400).contains(&left), "{left} old versions");
}

#[test]
fn a_webhook_belongs_to_its_tenant_and_leaves_no_secret() {
    let world = world();
    let webhook = world.create(Filter::all_of_tenant());
    let elsewhere = Ctx {
        tenant: "elsewhere".parse().unwrap(),
        ..ctx()
    };
    assert!(wait(world.webhooks.list(&elsewhere)).unwrap().is_empty());
    assert!(!wait(world.webhooks.delete(&elsewhere, &webhook.id)).unwrap());
    let missing = wait(world.webhooks.redeliver(&elsewhere, &webhook.id, 1));
    assert!(missing.is_err());
    let shown = format!(
        "{:?} {}",
        world.list(),
        serde_json::to_string(&world.list()).unwrap()
    );
    assert!(!shown.contains(SECRET), "{shown}");
    // Another process over the same store finds it.
    let other = Memory::builder(world.store.clone(), Ids::new(8)).build();
    let other = Webhooks::new(other.records(), world.receiver.clone(), "two");
    assert_eq!(wait(other.list(&ctx())).unwrap(), world.list());
    assert!(wait(world.webhooks.delete(&ctx(), &webhook.id)).unwrap());
    assert!(!wait(world.webhooks.delete(&ctx(), &webhook.id)).unwrap());
    let grant = Policy::default().check_system(&ctx(), Right::Read).unwrap();
    let left = wait(world.store.changes(&grant, &Changes::feed(0, 99)));
    let left = serde_json::to_string(&left.unwrap()).unwrap();
    assert!(!left.contains(SECRET), "{left}");
}

#[test]
fn what_cannot_be_a_webhook_is_refused() {
    let world = world();
    let all = Filter::all_of_tenant;
    let create = |ctx: &Ctx, new: NewWebhook| wait(world.webhooks.create(ctx, new));
    create(&ctx(), new("http://hook.test/", all())).unwrap_err();
    create(&ctx(), new(&format!("https://{}", "x".repeat(3000)), all())).unwrap_err();
    let short = NewWebhook {
        secret: "short".to_owned(),
        ..new("https://hook.test/", all())
    };
    create(&ctx(), short).unwrap_err();
    let system = Ctx {
        tenant: Tenant::system(),
        ..ctx()
    };
    create(&system, new("https://hook.test/", all())).unwrap_err();
    for _ in 0..MOST_WEBHOOKS {
        world.create(all());
    }
    let error = create(&ctx(), new("https://hook.test/", all())).unwrap_err();
    assert!(error.to_string().contains("delete one first"), "{error}");
}

#[test]
fn webhooks_and_keys_share_a_tenant_and_not_each_other() {
    let world = world();
    world.create(Filter::all_of_tenant());
    let keys = Keys::new(world.memory.records());
    assert!(wait(keys.list(&ctx(), None)).unwrap().is_empty());
    let all = wait(world.webhooks.by_tenant(&ctx())).unwrap();
    let tenants: Vec<_> = all.into_iter().map(|one| one.tenant).collect();
    assert_eq!(tenants, [ctx().tenant]);
}

/// A receiver that answers no delivery of one tenant.
#[derive(Default)]
struct SilentFor(Receiver);

#[async_trait]
impl WebhookSender for SilentFor {
    fn check(&self, url: &str) -> Result<(), Invalid> {
        self.0.check(url)
    }

    async fn send(&self, delivery: &Delivery<'_>) -> Result<(), NotDelivered> {
        match delivery.url.contains("slow") {
            true => std::future::pending().await,
            false => self.0.send(delivery).await,
        }
    }
}

#[test]
fn slow_webhooks_of_one_tenant_do_not_delay_another_one() {
    let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7)).build();
    let receiver = Arc::new(SilentFor::default());
    let webhooks = Webhooks::new(memory.records(), receiver.clone(), "one");
    let of = |tenant: &str| Ctx {
        tenant: tenant.parse().unwrap(),
        ..ctx()
    };
    // The slow tenant comes first, and has as many webhooks as it may.
    let all = std::iter::repeat_n("a", MOST_WEBHOOKS).chain(["b"]);
    for tenant in all {
        let url = match tenant {
            "a" => "https://slow.test/",
            _ => "https://hook.test/",
        };
        let filter = Filter::all_of_tenant();
        wait(webhooks.create(&of(tenant), new(url, filter))).unwrap();
    }
    for tenant in ["a", "b"] {
        let fact = Draft {
            kind: Some(Kind::Fact),
            ..Draft::note("tea")
        };
        wait(memory.records().add(&of(tenant), vec![fact], None)).unwrap();
    }
    let ctx = later(0);
    assert!(webhooks.deliver_due(&ctx, 100).now_or_never().is_none());
    assert_eq!(receiver.0.arrived(), [[1]]);
}
