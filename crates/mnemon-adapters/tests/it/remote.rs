//! Remote memories, against a strict double of their API.

use std::time::Duration;

use mnemon_adapters::llm::Secret;
use mnemon_adapters::remote::{Remote, RemoteConfig};
use mnemon_core::longterm::{LongTerm, LongTermError, RemoteCheck};
use mnemon_core::{Ctx, ErrorKind, Message, Owner, Role, Tenant, Time};
use mnemon_testkit::fakes::{MEM0_KEY, Mem0Double, Mem0Mischief};

fn ctx(tenant: &str) -> Ctx {
    let tenant: Tenant = tenant.parse().unwrap();
    Ctx::new(tenant, "test", Time::EPOCH)
}

fn remote(host: &str, key: &str, timeout: Duration) -> Remote {
    Remote::open(RemoteConfig {
        url: format!("mem0+http://{host}"),
        key: Some(Secret::new(key)),
        timeout,
    })
    .unwrap()
}

/// Long enough for a loaded machine.
const PATIENT: Duration = Duration::from_secs(300);

fn said(text: &str) -> Message {
    Message::text("m", Role::User, text)
}

#[tokio::test]
async fn mem0_takes_messages_and_gives_them_to_their_user_only() {
    let double = Mem0Double::start();
    let remote = remote(&double.host(), MEM0_KEY, PATIENT);
    let (ann, bob) = (Owner::of(Some("ann"), None), Owner::of(Some("bob"), None));
    let messages = [
        said("I like tea"),
        Message::text("s", Role::System, "be brief"),
    ];
    remote
        .record(&ctx("default"), &ann, &messages)
        .await
        .unwrap();
    let known = vec![("ann".to_owned(), "I like tea".to_owned())];
    assert_eq!(double.memories(), known, "system messages stay here");
    let ask = async |tenant: &str, owner: &Owner| {
        remote
            .retrieve(&ctx(tenant), owner, &said("tea?"))
            .await
            .unwrap()
    };
    assert_eq!(ask("default", &ann).await, "I like tea");
    assert_eq!(ask("default", &bob).await, "");
    assert_eq!(ask("acme", &ann).await, "", "another tenant's ann");
    assert_eq!(double.refused(), Vec::<String>::new());
    let report = remote.check(&ctx("default")).await.unwrap();
    assert_eq!(report.capabilities, ["record", "retrieve", "search"]);
}

#[tokio::test]
async fn each_failure_of_mem0_has_its_kind_and_shows_no_key() {
    let double = Mem0Double::start();
    let short = Duration::from_millis(300);
    for (mischief, timeout, kind) in [
        (Mem0Mischief::Hang, short, ErrorKind::Unavailable),
        (Mem0Mischief::Status(500), PATIENT, ErrorKind::Unavailable),
        (Mem0Mischief::Status(429), PATIENT, ErrorKind::TooOften),
        (Mem0Mischief::Status(302), PATIENT, ErrorKind::Invalid),
        (Mem0Mischief::Status(403), PATIENT, ErrorKind::Denied),
        (Mem0Mischief::Truncated, PATIENT, ErrorKind::Foreign),
        (Mem0Mischief::WrongTypes, PATIENT, ErrorKind::Foreign),
    ] {
        double.misbehave(std::slice::from_ref(&mischief));
        let remote = remote(&double.host(), MEM0_KEY, timeout);
        let owner = Owner::of(Some("ann"), None);
        let found = remote
            .retrieve(&ctx("default"), &owner, &said("tea?"))
            .await;
        let error: LongTermError = found.unwrap_err();
        assert_eq!(error.kind(), kind, "{mischief:?}: {error}");
        assert!(!format!("{error} {error:?}").contains(MEM0_KEY), "{error}");
    }
    let wrong = remote(&double.host(), "other-key", PATIENT);
    let error = wrong.check(&ctx("default")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    let host = double.host();
    drop(double);
    let absent = remote(&host, MEM0_KEY, PATIENT);
    let error = absent.check(&ctx("default")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}
