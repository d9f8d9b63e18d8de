//! Remote memories, against strict doubles of their APIs.

mod acontext;
mod failures;
mod live;
mod mem0;
mod reme;
mod zep;

use std::time::Duration;

use mnemon_adapters::llm::Secret;
use mnemon_adapters::remote::{Remote, RemoteConfig};
use mnemon_core::longterm::{LongTerm, LongTermError, RemoteCheck};
use mnemon_core::{Ctx, Message, Owner, Role, Tenant, Time};
use mnemon_testkit::fakes::{DOUBLE_KEY, MemoryDouble, MemoryService};

/// Long enough for a loaded machine.
const PATIENT: Duration = Duration::from_secs(300);

fn ctx(tenant: &str) -> Ctx {
    let tenant: Tenant = tenant.parse().unwrap();
    Ctx::new(tenant, "test", Time::EPOCH)
}

fn open(url: &str, key: Option<&str>, timeout: Duration) -> Remote {
    Remote::open(RemoteConfig {
        url: url.to_owned(),
        key: key.map(Secret::new),
        timeout,
    })
    .unwrap()
}

/// The memory in a double.
fn remote(double: &MemoryDouble) -> Remote {
    open(&double.url(), Some(DOUBLE_KEY), PATIENT)
}

fn said(text: &str) -> Message {
    Message::text("m", Role::User, text)
}

fn owner(user: &str) -> Owner {
    Owner::of(Some(user), None)
}

async fn record(remote: &Remote, user: &str, texts: &[&str]) -> Result<(), LongTermError> {
    let messages: Vec<Message> = texts.iter().map(|text| said(text)).collect();
    remote
        .record(&ctx("default"), &owner(user), &messages)
        .await
}

async fn ask(remote: &Remote, tenant: &str, user: &str) -> String {
    let (ctx, owner) = (ctx(tenant), owner(user));
    let found = remote.retrieve(&ctx, &owner, &said("tea?")).await;
    found.unwrap()
}

/// Messages come back to the user who said them, and to nobody else.
async fn keeps_users_apart(service: MemoryService) {
    let double = MemoryDouble::start(service);
    let remote = remote(&double);
    assert_eq!(ask(&remote, "default", "ann").await, "", "before");
    let messages = [
        said("I like tea"),
        Message::text("s", Role::System, "be brief"),
        Message::text("a", Role::Assistant, "Noted"),
    ];
    let default = ctx("default");
    remote
        .record(&default, &owner("ann"), &messages)
        .await
        .unwrap();
    remote
        .record(&ctx("acme"), &owner("ann"), &[said("I like milk")])
        .await
        .unwrap();
    assert_eq!(ask(&remote, "default", "ann").await, "I like tea\nNoted");
    assert_eq!(ask(&remote, "default", "bob").await, "");
    assert_eq!(ask(&remote, "acme", "ann").await, "I like milk");
    assert_eq!(double.memories().len(), 3, "system messages stay here");
    let report = remote.check(&default).await.unwrap();
    assert_eq!(report.capabilities, ["record", "retrieve", "search"]);
    assert!(report.service.contains("127.0.0.1"), "{report:?}");
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn mem0_keeps_users_apart() {
    keeps_users_apart(MemoryService::Mem0).await;
}

#[tokio::test]
async fn mem0_v1_keeps_users_apart() {
    keeps_users_apart(MemoryService::Mem0V1).await;
}

#[tokio::test]
async fn self_hosted_mem0_keeps_users_apart() {
    keeps_users_apart(MemoryService::Mem0Oss).await;
}

#[tokio::test]
async fn zep_keeps_users_apart() {
    keeps_users_apart(MemoryService::Zep).await;
}

#[tokio::test]
async fn reme_keeps_users_apart() {
    keeps_users_apart(MemoryService::Reme).await;
}
