//! Each failure of a service has its kind, and shows no key.

use std::time::Duration;

use mnemon_core::ErrorKind;
use mnemon_core::longterm::{LongTerm, LongTermError, RemoteCheck};
use mnemon_testkit::fakes::{DOUBLE_KEY, MemoryDouble, MemoryService, RETRY_AFTER_S, Treatment};

use super::{PATIENT, ctx, open, owner, record, remote, said};

/// Short, since the double never answers.
const SHORT: Duration = Duration::from_millis(300);

const FAILURES: [(Treatment, ErrorKind); 8] = [
    (Treatment::Hang, ErrorKind::Unavailable),
    (Treatment::Status(500), ErrorKind::Unavailable),
    (Treatment::Cut, ErrorKind::Unavailable),
    (Treatment::Status(429), ErrorKind::TooOften),
    (Treatment::Status(302), ErrorKind::Invalid),
    (Treatment::Status(403), ErrorKind::Denied),
    (Treatment::Truncated, ErrorKind::Foreign),
    (Treatment::WrongTypes, ErrorKind::Foreign),
];

fn timeout_of(treatment: &Treatment) -> Duration {
    match treatment {
        Treatment::Hang => SHORT,
        _ => PATIENT,
    }
}

fn is_of_kind(error: &LongTermError, kind: ErrorKind, what: &str) {
    assert_eq!(error.kind(), kind, "{what}: {error}");
    assert!(
        !format!("{error} {error:?}").contains(DOUBLE_KEY),
        "{error}"
    );
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn of_a_retrieval() {
    for service in MemoryService::ALL {
        let double = MemoryDouble::start(service);
        record(&remote(&double), "ann", &["I like tea"])
            .await
            .unwrap();
        for (treatment, kind) in FAILURES {
            double.misbehave(std::slice::from_ref(&treatment));
            let remote = open(&double.url(), Some(DOUBLE_KEY), timeout_of(&treatment));
            let (ctx, ann) = (ctx("default"), owner("ann"));
            let found = remote.retrieve(&ctx, &ann, &said("tea?")).await;
            let error = found.unwrap_err();
            is_of_kind(&error, kind, &format!("{service:?}, {treatment:?}"));
            if kind == ErrorKind::TooOften {
                let wait = format!("try again in {RETRY_AFTER_S} s");
                assert!(error.to_string().contains(&wait), "{error}");
            }
        }
    }
}

/// Requests of a recording before the one that hands messages over, if the conversation is known.
fn requests_before(service: MemoryService) -> usize {
    match service {
        // The session, which exists.
        MemoryService::Acontext => 1,
        _ => 0,
    }
}

#[tokio::test]
async fn of_a_recording() {
    for service in MemoryService::ALL {
        let double = MemoryDouble::start(service);
        record(&remote(&double), "ann", &["I like tea"])
            .await
            .unwrap();
        for (treatment, kind) in FAILURES {
            // Some services answer recordings with next to nothing, so that no type can be wrong.
            if treatment == Treatment::WrongTypes {
                continue;
            }
            let mut treatments = vec![Treatment::Good; requests_before(service)];
            treatments.push(treatment.clone());
            double.misbehave(&treatments);
            let remote = open(&double.url(), Some(DOUBLE_KEY), timeout_of(&treatment));
            let error = record(&remote, "ann", &["I like milk"]).await.unwrap_err();
            is_of_kind(&error, kind, &format!("{service:?}, {treatment:?}"));
        }
        assert_eq!(double.refused(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn of_a_key_and_of_an_absent_server() {
    for service in MemoryService::ALL {
        let double = MemoryDouble::start(service);
        let wrong = open(&double.url(), Some("other-key"), PATIENT);
        let error = wrong.check(&ctx("default")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{service:?}");
        let none = open(&double.url(), None, PATIENT);
        let error = record(&none, "ann", &["I like tea"]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{service:?}");
        double.misbehave(&[Treatment::WrongTypes]);
        let error = remote(&double).check(&ctx("default")).await.unwrap_err();
        is_of_kind(&error, ErrorKind::Foreign, "check");
        let absent = remote(&double);
        drop(double);
        let error = absent.check(&ctx("default")).await.unwrap_err();
        is_of_kind(&error, ErrorKind::Unavailable, "absent");
    }
}
