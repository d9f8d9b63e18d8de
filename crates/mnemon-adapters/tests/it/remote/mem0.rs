//! Mem0 alone: the names of agents, long conversations and additions that fail at once.

use mnemon_core::longterm::LongTerm;
use mnemon_core::{ErrorKind, Owner};
use mnemon_testkit::fakes::{MemoryDouble, MemoryService, Treatment};
use serde_json::json;

use super::{ctx, record, remote, said};

const GENERATIONS: [MemoryService; 3] = [
    MemoryService::Mem0,
    MemoryService::Mem0V1,
    MemoryService::Mem0Oss,
];

#[tokio::test]
async fn agents_and_sessions_are_named_in_fields_that_the_service_knows() {
    for service in GENERATIONS {
        let double = MemoryDouble::start(service);
        let remote = remote(&double);
        let owner = Owner {
            agent: Some("cook".to_owned()),
            session: Some("monday".to_owned()),
            ..super::owner("ann")
        };
        let default = ctx("default");
        let tea = [said("I like tea")];
        remote.record(&default, &owner, &tea).await.unwrap();
        let found = remote.retrieve(&default, &owner, &said("tea?")).await;
        assert_eq!(found.unwrap(), "I like tea", "{service:?}");
        assert_eq!(double.refused(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn long_conversations_go_in_parts() {
    for service in GENERATIONS {
        let double = MemoryDouble::start(service);
        let texts: Vec<String> = (0..250).map(|n| format!("text {n}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        // The third part fails, so the whole recording does, and is sent again as a whole.
        double.misbehave(&[Treatment::Good, Treatment::Good, Treatment::Status(500)]);
        let failed = record(&remote(&double), "ann", &texts).await;
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Unavailable);
        record(&remote(&double), "ann", &texts).await.unwrap();
        assert_eq!(double.memories().len(), 200 + 250, "{service:?}");
    }
}

#[tokio::test]
async fn an_addition_that_failed_at_once_is_an_error() {
    for (service, body) in [
        (
            MemoryService::Mem0,
            json!({"status": "FAILED", "message": "no credit"}),
        ),
        (
            MemoryService::Mem0V1,
            json!([{"status": "FAILED", "message": "no credit"}]),
        ),
    ] {
        let double = MemoryDouble::start(service);
        double.misbehave(&[Treatment::Answer(body)]);
        let error = record(&remote(&double), "ann", &["I like tea"]).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("no credit"), "{error}");
    }
}
