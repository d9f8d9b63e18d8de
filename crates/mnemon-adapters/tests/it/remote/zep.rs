//! Zep alone: its limits, and users and threads that are made when they are needed.

use mnemon_core::longterm::LongTerm;
use mnemon_core::{ErrorKind, Owner};
use mnemon_testkit::fakes::{FORMERLY, MemoryDouble, MemoryService, Treatment};

use super::{ask, ctx, record, remote, said};

#[tokio::test]
async fn long_messages_queries_and_lists_are_divided() {
    let double = MemoryDouble::start(MemoryService::Zep);
    let remote = remote(&double);
    let long = "ü".repeat(6_000);
    let texts: Vec<String> = (0..70).map(|n| format!("text {n}")).collect();
    let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    texts.push(&long);
    record(&remote, "ann", &texts).await.unwrap();
    let kept: Vec<String> = double
        .memories()
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(kept.len(), 73);
    assert_eq!(kept[70..].concat(), long);
    let (ctx, ann) = (ctx("default"), super::owner("ann"));
    let found = remote.retrieve(&ctx, &ann, &said(&long)).await;
    assert_eq!(found.unwrap().lines().count(), 5);
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn conversations_are_threads_of_one_user() {
    let double = MemoryDouble::start(MemoryService::Zep);
    let remote = remote(&double);
    let message = said("I like tea");
    for session in ["monday", "friday"] {
        let owner = Owner {
            session: Some(session.to_owned()),
            ..super::owner("ann")
        };
        let message = std::slice::from_ref(&message);
        remote
            .record(&ctx("default"), &owner, message)
            .await
            .unwrap();
    }
    assert_eq!(
        ask(&remote, "default", "ann").await,
        "I like tea\nI like tea"
    );
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn facts_that_ended_are_left_out() {
    let double = MemoryDouble::start(MemoryService::Zep);
    let remote = remote(&double);
    let former = format!("{FORMERLY}drinks coffee");
    record(&remote, "ann", &[&former, "drinks tea"])
        .await
        .unwrap();
    assert_eq!(ask(&remote, "default", "ann").await, "drinks tea");
}

#[tokio::test]
async fn a_recording_that_failed_half_way_can_be_repeated() {
    let double = MemoryDouble::start(MemoryService::Zep);
    let remote = remote(&double);
    // The requests are: messages (404), user, thread, messages.
    for good in 1..=3 {
        let mut treatments = vec![Treatment::Good; good];
        treatments.push(Treatment::Status(500));
        double.misbehave(&treatments);
        let error = record(&remote, "ann", &["I like tea"]).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unavailable, "{good}");
    }
    record(&remote, "ann", &["I like tea"]).await.unwrap();
    assert_eq!(ask(&remote, "default", "ann").await, "I like tea");
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn a_thread_that_is_not_kept_is_reported() {
    let double = MemoryDouble::start(MemoryService::Zep);
    let missing = Treatment::Status(404);
    double.misbehave(&[missing.clone(), Treatment::Good, Treatment::Good, missing]);
    let error = record(&remote(&double), "ann", &["I like tea"]).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("no thread"), "{error}");
}
