//! A live service, if `MNEMON_TEST_REMOTE_URL` names one; `MNEMON_TEST_REMOTE_KEY` holds its key.

use mnemon_core::longterm::{LongTerm, RemoteCheck};

use super::{PATIENT, ctx, open, owner, record, said};

/// The user whose memory the test writes.
const USER: &str = "mnemon-live-test";

#[tokio::test]
async fn a_live_service_takes_messages_and_answers() {
    let Ok(url) = std::env::var("MNEMON_TEST_REMOTE_URL") else {
        eprintln!("SKIPPED: MNEMON_TEST_REMOTE_URL names no live service");
        return;
    };
    let key = std::env::var("MNEMON_TEST_REMOTE_KEY").ok();
    let remote = open(&url, key.as_deref(), PATIENT);
    let report = remote.check(&ctx("default")).await.unwrap();
    assert!(report.capabilities.contains(&"record".to_owned()));
    record(&remote, USER, &["I like tea"]).await.unwrap();
    // Services extract facts later, so the answer may be empty.
    let (ctx, user) = (ctx("default"), owner(USER));
    remote.retrieve(&ctx, &user, &said("tea?")).await.unwrap();
}
