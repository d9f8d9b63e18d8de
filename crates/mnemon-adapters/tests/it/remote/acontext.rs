//! Acontext: sessions, and skills that a user's learning space has learnt.

use mnemon_core::ErrorKind;
use mnemon_core::longterm::RemoteCheck;
use mnemon_testkit::fakes::{DOUBLE_KEY, MemoryDouble, MemoryService, Treatment};
use serde_json::json;

use super::{PATIENT, ask, ctx, open, record, remote};

#[tokio::test]
async fn skills_are_learnt_from_and_shown_to_their_user_only() {
    let double = MemoryDouble::start(MemoryService::Acontext);
    let remote = remote(&double);
    assert_eq!(ask(&remote, "default", "ann").await, "", "before");
    // The second recording finds the session, the space and the learning.
    record(&remote, "ann", &["I like tea"]).await.unwrap();
    record(&remote, "ann", &["with milk"]).await.unwrap();
    let found = ask(&remote, "default", "ann").await;
    assert!(found.starts_with("learnt-0: "), "{found}");
    assert!(found.ends_with("I like tea\nwith milk"), "{found}");
    assert_eq!(ask(&remote, "default", "bob").await, "");
    assert_eq!(ask(&remote, "acme", "ann").await, "");
    record(&remote, "bob", &["I like juice"]).await.unwrap();
    let found = ask(&remote, "default", "bob").await;
    assert!(
        found.contains("juice") && !found.contains("milk"),
        "{found}"
    );
    let report = remote.check(&ctx("default")).await.unwrap();
    let expected = ["record", "retrieve", "search", "skills"];
    assert_eq!(report.capabilities, expected);
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn a_space_that_the_url_names_is_read_by_all_and_learns_nothing() {
    let double = MemoryDouble::start(MemoryService::Acontext);
    let tea = double.add_space("brew-tea", "Use when a user wants tea", "1. Boil water.");
    let at = |space: &str| {
        let url = format!("{}?space={space}", double.url());
        open(&url, Some(DOUBLE_KEY), PATIENT)
    };
    let shared = at(&tea);
    record(&shared, "ann", &["my secret tea"]).await.unwrap();
    assert_eq!(double.memories().len(), 1, "sessions are stored");
    for user in ["ann", "bob"] {
        let found = ask(&shared, "default", user).await;
        let expected = "brew-tea: Use when a user wants tea\n1. Boil water.";
        assert_eq!(found, expected, "{user}");
    }
    let report = shared.check(&ctx("default")).await.unwrap();
    assert!(report.remarks[0].contains("1 skills"), "{report:?}");
    // No word of the question is in its name or description.
    let other = at(&double.add_space("deploy", "Release a program", "1. Build."));
    assert_eq!(ask(&other, "default", "ann").await, "");
    // A skill without instructions has its description.
    let bare = at(&double.add_space("tea", "Hot drink", ""));
    assert_eq!(ask(&bare, "default", "ann").await, "tea: Hot drink");
    let missing = at("00000000-0000-4000-8000-000000000099");
    let error = missing.check(&ctx("default")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("not found"), "{error}");
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn a_code_in_the_envelope_counts_like_a_status() {
    let double = MemoryDouble::start(MemoryService::Acontext);
    for (code, kind) in [
        (400, ErrorKind::Invalid),
        (401, ErrorKind::Denied),
        (429, ErrorKind::TooOften),
        (500, ErrorKind::Unavailable),
    ] {
        let body = json!({"code": code, "msg": "on demand", "data": null});
        double.misbehave(&[Treatment::Answer(body)]);
        let error = record(&remote(&double), "ann", &["I like tea"]).await;
        assert_eq!(error.unwrap_err().kind(), kind, "{code}");
    }
    let known = json!({"code": 409, "msg": "exists", "data": null});
    let session = remote(&double);
    record(&session, "ann", &["I like tea"]).await.unwrap();
    double.misbehave(&[Treatment::Answer(known)]);
    record(&session, "ann", &["I like milk"]).await.unwrap();
    assert_eq!(double.memories().len(), 2);
}

#[tokio::test]
async fn ids_that_are_not_uuids_are_not_used_in_paths() {
    let double = MemoryDouble::start(MemoryService::Acontext);
    let page = json!({"items": [{"id": "../session"}], "has_more": false});
    let body = json!({"code": 0, "data": page});
    double.misbehave(&[Treatment::Good, Treatment::Good, Treatment::Answer(body)]);
    let error = record(&remote(&double), "ann", &["I like tea"]).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Foreign);
}
