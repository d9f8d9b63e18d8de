//! ReMe alone: names of workspaces, the one user of 0.4, flows that fail, and servers of the other kind.

use mnemon_core::ErrorKind;
use mnemon_core::longterm::{LongTerm, RemoteCheck};
use mnemon_testkit::fakes::{DOUBLE_KEY, MemoryDouble, MemoryService, ONE_USER, Treatment};
use serde_json::json;

use super::{PATIENT, ask, ctx, open, owner, record, remote, said};

#[tokio::test]
async fn workspaces_have_plain_names_that_no_two_users_share() {
    let double = MemoryDouble::start(MemoryService::Reme);
    let remote = remote(&double);
    let long = "x".repeat(64);
    let users = ["ann", "ann b", "ann/b", "Ünal", "..", long.as_str()];
    for user in users {
        record(&remote, user, &[user]).await.unwrap();
    }
    for user in users {
        assert_eq!(ask(&remote, "default", user).await, user);
    }
    let memories = double.memories();
    assert_eq!(memories[0].0, "ann");
    // The name of another user's workspace does not lead there.
    let digest = memories[1].0.clone();
    assert!(digest.starts_with("mnemon_"), "{digest}");
    assert_eq!(ask(&remote, "default", &digest).await, "");
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn jobs_keep_the_one_user_that_the_url_names() {
    let double = MemoryDouble::start(MemoryService::RemeJobs);
    let jobs = remote(&double);
    assert_eq!(ask(&jobs, "default", ONE_USER).await, "");
    record(&jobs, ONE_USER, &["I like tea"]).await.unwrap();
    assert_eq!(ask(&jobs, "default", ONE_USER).await, "I like tea");
    let report = jobs.check(&ctx("default")).await.unwrap();
    assert_eq!(
        (report.protocol.as_str(), report.remarks.len()),
        ("ReMe 0.4", 0)
    );
    for (tenant, user) in [("default", "bob"), ("acme", ONE_USER)] {
        let found = jobs
            .retrieve(&ctx(tenant), &owner(user), &said("tea?"))
            .await;
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Invalid, "{user}");
    }
    let error = record(&jobs, "bob", &["I like milk"]).await.unwrap_err();
    assert!(error.to_string().contains("?user=NAME"), "{error}");
    let url = double.url().replace("?user=ann", "");
    let unnamed = open(&url, Some(DOUBLE_KEY), PATIENT);
    let error = record(&unnamed, ONE_USER, &["x"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let report = unnamed.check(&ctx("default")).await.unwrap();
    assert!(report.remarks[0].contains("?user=NAME"), "{report:?}");
    assert_eq!(double.memories().len(), 1);
}

#[tokio::test]
async fn a_flow_that_did_not_succeed_is_an_error() {
    for service in [MemoryService::Reme, MemoryService::RemeJobs] {
        let double = MemoryDouble::start(service);
        let failed = json!({"answer": "no model\ntrace", "success": false, "metadata": {}});
        double.misbehave(&[Treatment::Answer(failed)]);
        let error = record(&remote(&double), ONE_USER, &["I like tea"]).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(
            text.contains("no model") && !text.contains("trace"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn an_answer_without_a_list_is_one_text() {
    for service in [MemoryService::Reme, MemoryService::RemeJobs] {
        let double = MemoryDouble::start(service);
        let answer = json!({"answer": "Ann likes tea.", "success": true, "metadata": {}});
        double.misbehave(&[Treatment::Answer(answer)]);
        let found = ask(&remote(&double), "default", ONE_USER).await;
        assert_eq!(found, "Ann likes tea.");
    }
}

#[tokio::test]
async fn the_check_notices_a_server_of_the_other_generation() {
    let double = MemoryDouble::start(MemoryService::RemeJobs);
    let url = double
        .url()
        .replace("reme-jobs+", "reme+")
        .replace("?user=ann", "");
    let remote = open(&url, Some(DOUBLE_KEY), PATIENT);
    let error = remote.check(&ctx("default")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Foreign);
    assert!(
        error.to_string().contains("summary_personal_memory"),
        "{error}"
    );
}
