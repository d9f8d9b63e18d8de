//! The library as its users see it.

use mnemon::{ErrorKind, Kind, Mnemon, NewDocument, NewRecord, Role, Search, Time};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::test]
async fn records_survive_the_handle_that_wrote_them() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("memory.db");
    let added = Mnemon::open(&path)?
        .user("ann")
        .add("Ann prefers tea")
        .await?;
    let memory = Mnemon::open(&path)?;
    let record = memory.get(&added.ids[0]).await?.unwrap();
    assert_eq!(record.content, "Ann prefers tea");
    assert_eq!(record.user.as_deref(), Some("ann"));
    assert_eq!(memory.count().await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_user_reads_shared_records_and_changes_only_own_ones() -> Outcome {
    let memory = Mnemon::in_memory()?;
    let (ann, bob) = (memory.user("ann"), memory.user("bob"));
    let shared = memory.add("The kettle is in the kitchen").await?.ids[0].clone();
    let own = ann.add("Ann hides the kettle key under the mat").await?.ids[0].clone();

    assert_eq!(ann.search("where is the kettle").await?.len(), 2);
    let seen = bob.search("where is the kettle").await?;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].record.id, shared);
    assert!(bob.get(&own).await?.is_none());
    assert_eq!(bob.list(10).await?.len(), 1);

    for id in [&own, &shared] {
        let refused = bob.forget(id).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused}");
        assert!(bob.update(id, "changed").await.is_err());
    }
    assert_eq!(ann.get(&own).await?.unwrap().version, 1);
    ann.update(&own, "Ann hides the key in the teapot").await?;
    assert_eq!(ann.get(&own).await?.unwrap().version, 2);
    Ok(())
}

#[tokio::test]
async fn tenants_share_a_file_and_nothing_else() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("memory.db");
    let one = Mnemon::options().tenant("one").open(&path)?;
    let other = Mnemon::options().tenant("other").open(&path)?;
    let id = one.add("The door code is on the board").await?.ids[0].clone();
    assert!(other.get(&id).await?.is_none());
    assert!(other.search("door code").await?.is_empty());
    assert!(Mnemon::options().tenant("../up").open(&path).is_err());
    Ok(())
}

#[tokio::test]
async fn a_key_makes_a_retry_harmless_and_a_batch_is_one_commit() -> Outcome {
    let memory = Mnemon::in_memory()?;
    let record = || NewRecord::from("Invoice 7 is paid").key("request-7");
    let (first, second) = (memory.add(record()).await?, memory.add(record()).await?);
    assert_eq!(first.ids, second.ids);
    assert_eq!(memory.count().await?, 1);

    let both = ["one", "two"].map(NewRecord::from);
    let receipt = memory.add_all(both, None).await?;
    assert_eq!(memory.count().await?, 3);
    memory.undo(receipt.commit.unwrap()).await?;
    assert_eq!(memory.count().await?, 1);
    assert_eq!(memory.history(10).await?.len(), 5);
    Ok(())
}

#[tokio::test]
async fn records_expire_by_the_clock_that_was_given() -> Outcome {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    let now = Arc::new(AtomicI64::new(1_700_000_000_000));
    let clock = {
        let now = now.clone();
        move || Time::from_millis(now.load(Ordering::Relaxed)).unwrap()
    };
    let memory = Mnemon::options().clock(clock.clone()).open_url("ram:")?;
    let soon = NewRecord::from("A parcel arrives today").expires(clock().plus_days(1));
    memory.add(soon).await?;
    assert_eq!(memory.list(10).await?.len(), 1);
    now.fetch_add(2 * 86_400_000, Ordering::Relaxed);
    assert!(memory.list(10).await?.is_empty());
    memory.upkeep().await?;
    Ok(())
}

#[tokio::test]
async fn documents_are_found_by_their_chunks_and_replaced_by_name() -> Outcome {
    let memory = Mnemon::in_memory()?;
    let text = "# Kettle\n\nDescale the kettle with vinegar every month.\n";
    memory
        .add_document(NewDocument::new("kettle.md", text))
        .await?;
    let search = || Search::from("how do I descale the kettle").kind(Kind::Chunk);
    assert!(
        memory.search(search()).await?[0]
            .record
            .content
            .contains("vinegar")
    );
    let text = "# Kettle\n\nDescale the kettle with citric acid.\n";
    memory
        .add_document(NewDocument::new("kettle.md", text))
        .await?;
    let hits = memory.search(search()).await?;
    assert!(hits[0].record.content.contains("citric"));
    assert!(
        hits.iter()
            .all(|hit| !hit.record.content.contains("vinegar"))
    );
    Ok(())
}

#[tokio::test]
async fn a_conversation_is_private_and_can_be_deleted() -> Outcome {
    let memory = Mnemon::in_memory()?;
    let chat = memory.user("ann").conversation("s1");
    chat.append(Role::User, "Which train goes to Hanoi?")
        .await?;
    chat.append(Role::Assistant, "The one at nine.").await?;
    assert_eq!(chat.tail(1).await?[0].text_content(), "The one at nine.");
    assert!(
        memory
            .user("bob")
            .conversation("s1")
            .window()
            .await?
            .is_empty()
    );
    let context = memory.user("ann").context("s1", "train", 300).await?;
    assert!(context.text.contains("Hanoi") && context.tokens <= 300);
    assert!(chat.delete(false).await? >= 2);
    assert!(chat.window().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_secret_that_was_removed_is_noticed() -> Outcome {
    let memory = Mnemon::in_memory()?;
    let secret = ["gh", "p_", "0123456789abcdefghijklmnopqrstuvwxyzAB"].concat();
    let id = memory.add(format!("The token is {secret}")).await?.ids[0].clone();
    assert!(!memory.get(&id).await?.unwrap().content.contains(&secret));
    assert!(!memory.take_notices().is_empty());
    assert!(memory.take_notices().is_empty());
    Ok(())
}
