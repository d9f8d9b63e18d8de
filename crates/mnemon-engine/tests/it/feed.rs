//! The change feed: pages for a viewer and a filter, and waking up after a commit.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use mnemon_core::ram::Ram;
use mnemon_core::{ErrorKind, Filter, Ids, Kind, Viewer};
use mnemon_engine::feed::FeedPage;
use mnemon_engine::{Draft, Memory};

use crate::{ctx, memory, wait};

fn draft(user: Option<&str>, kind: Kind, content: &str) -> Draft {
    let mut draft = Draft {
        kind: Some(kind),
        ..Draft::note(content)
    };
    draft.owner.user = user.map(str::to_owned);
    draft
}

fn add(memory: &Memory, draft: Draft) -> mnemon_core::Id {
    let added = wait(memory.records().add(&ctx(), vec![draft], None)).unwrap();
    added.items[0].id.clone()
}

fn next(memory: &Memory, filter: &Filter, after: u64, limit: usize) -> FeedPage {
    wait(memory.records().feed().next(&ctx(), filter, after, limit)).unwrap()
}

/// Everything after a number, with a page per call.
fn all(memory: &Memory, filter: &Filter, limit: usize) -> (Vec<(u64, String)>, u64) {
    let (mut found, mut reached) = (Vec::new(), 0);
    loop {
        let page = next(memory, filter, reached, limit);
        assert!(page.changes.len() <= limit);
        assert!(page.reached >= reached);
        let row = |c: &mnemon_core::Change| (c.seq, c.cause.to_string());
        found.extend(page.changes.iter().map(row));
        reached = page.reached;
        if !page.more {
            return (found, reached);
        }
    }
}

#[test]
fn a_page_is_bounded_by_bytes_and_the_next_one_continues() {
    let memory = memory();
    let content = "x".repeat(400_000);
    for _ in 0..7 {
        add(&memory, draft(None, Kind::Fact, &content));
    }
    let everything = Filter::all_of_tenant();
    let page = next(&memory, &everything, 0, 100);
    // The third change passes one mebibyte.
    assert_eq!((page.changes.len(), page.reached, page.more), (3, 3, true));
    let (found, reached) = all(&memory, &everything, 100);
    let numbers: Vec<u64> = found.iter().map(|(seq, _)| *seq).collect();
    assert_eq!((numbers, reached), (vec![1, 2, 3, 4, 5, 6, 7], 7));
    // Changes that the listener may not see count as well, and are passed.
    let bob = Filter {
        kinds: vec![Kind::Decision],
        ..everything
    };
    assert_eq!(all(&memory, &bob, 100), (Vec::new(), 7));
}

#[test]
fn a_listener_gets_what_it_may_see_and_passes_the_rest() {
    let memory = memory();
    let tea = add(&memory, draft(Some("ann"), Kind::Fact, "Ann drinks tea"));
    add(&memory, draft(Some("bob"), Kind::Fact, "Bob drinks coffee"));
    add(&memory, draft(None, Kind::Fact, "The office is in Hanoi"));
    let plan = add(
        &memory,
        draft(Some("ann"), Kind::Decision, "Ann moves to Hue"),
    );
    let records = memory.records();
    wait(records.forget(&ctx(), std::slice::from_ref(&tea), None)).unwrap();
    let written = "written".to_owned();
    let forgotten = "forgotten".to_owned();
    let ann = Filter::seen_by(Viewer::user("ann"));
    let bob = Filter::seen_by(Viewer::user("bob"));
    for limit in [1, 2, 3, 100] {
        let everything = all(&memory, &Filter::all_of_tenant(), limit);
        let numbers: Vec<u64> = everything.0.iter().map(|(seq, _)| *seq).collect();
        assert_eq!((numbers, everything.1), (vec![1, 2, 3, 4, 5], 5));
        let expected = [(1, &written), (3, &written), (4, &written), (5, &forgotten)];
        let expected = expected.map(|(seq, cause)| (seq, cause.clone()));
        assert_eq!(all(&memory, &ann, limit), (expected.to_vec(), 5));
        let expected = vec![(2, written.clone()), (3, written.clone())];
        assert_eq!(all(&memory, &bob, limit), (expected, 5));
        let mut decisions = ann.clone();
        decisions.kinds = vec![Kind::Decision];
        assert_eq!(
            all(&memory, &decisions, limit),
            (vec![(4, written.clone())], 5)
        );
        let mut of_bob = Filter::all_of_tenant();
        of_bob.owner.user = Some("bob".to_owned());
        assert_eq!(
            all(&memory, &of_bob, limit),
            (vec![(2, written.clone())], 5)
        );
    }
    // A purge is an id, for those who may see the whole tenant and perhaps hold a copy.
    let purged = std::slice::from_ref(&plan);
    wait(records.purge(&ctx(), purged, None)).unwrap();
    let page = next(&memory, &Filter::all_of_tenant(), 5, 9);
    assert_eq!((page.reached, page.more, page.changes.len()), (6, false, 1));
    let purge = serde_json::to_value(&page.changes[0]).unwrap();
    assert_eq!(
        (&purge["cause"], &purge["id"]),
        (&"purged".into(), &plan.as_str().into())
    );
    assert_eq!(
        (&purge["before"], &purge["after"]),
        (&().into(), &().into())
    );
    assert_eq!(
        all(&memory, &ann, 2).0,
        [(1, written.clone()), (3, written), (5, forgotten)]
    );
    // Undo takes back the newest commit that can be taken back, which is not the purge.
    let newest = wait(records.last_commit(&ctx(), None)).unwrap();
    assert_eq!(newest, Some(5));
    assert!(wait(records.undo(&ctx(), 6)).is_err());
}

#[test]
fn a_record_that_is_given_to_another_user_goes_for_the_first() {
    let memory = memory();
    let id = add(
        &memory,
        draft(Some("ann"), Kind::Fact, "the key is under the mat"),
    );
    let mut record = wait(memory.records().find(&ctx(), &id)).unwrap().unwrap();
    record.owner.user = Some("bob".to_owned());
    wait(memory.records().update(&ctx(), record)).unwrap();
    let shown = |user: &str| {
        let page = next(&memory, &Filter::seen_by(Viewer::user(user)), 1, 9);
        let change = page.changes.into_iter().next().unwrap();
        let owner = |record: Option<mnemon_core::Record>| record.and_then(|it| it.owner.user);
        (
            owner(change.before),
            change.before_known,
            owner(change.after),
        )
    };
    assert_eq!(shown("ann"), (Some("ann".to_owned()), true, None));
    assert_eq!(shown("bob"), (None, false, Some("bob".to_owned())));
    let other = next(&memory, &Filter::seen_by(Viewer::user("eve")), 0, 9);
    assert_eq!((other.changes.len(), other.reached), (0, 2));
}

#[test]
fn a_number_that_no_change_has_is_refused() {
    let memory = memory();
    add(&memory, Draft::note("one"));
    let feed = memory.records().feed();
    let page = wait(feed.next(&ctx(), &Filter::all_of_tenant(), 1, 9)).unwrap();
    assert_eq!((page.changes.len(), page.reached, page.more), (0, 1, false));
    let error = wait(feed.next(&ctx(), &Filter::all_of_tenant(), 2, 9)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("continue from 1"), "{error}");
}

#[test]
fn a_commit_of_this_process_wakes_and_one_of_another_is_counted() {
    let store = Arc::new(Ram::new());
    let ours = Memory::builder(store.clone(), Ids::new(1)).build();
    let theirs = Memory::builder(store, Ids::new(2)).build();
    let (feed, tenant) = (ours.records().feed(), ctx().tenant);
    let seen = feed.commits(&tenant);
    let mut next = Box::pin(feed.next_commit(&tenant, seen));
    let mut cx = Context::from_waker(Waker::noop());
    add(&theirs, Draft::note("from elsewhere"));
    assert_eq!(next.as_mut().poll(&mut cx), Poll::Pending);
    assert_eq!(wait(feed.newest(&ctx())).unwrap(), 1);
    add(&ours, Draft::note("from here"));
    assert_eq!(next.as_mut().poll(&mut cx), Poll::Ready(seen + 1));
    assert_eq!(wait(feed.newest(&ctx())).unwrap(), 2);
}
