//! Forks, snapshots, states and the frozen log: what was said is never changed.

use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{ErrorKind, Filter, Ids, Kind, Limits, Message, Policy, Record, Role, Scan};
use mnemon_engine::session::{JsonSessions, Session, StateModule};
use mnemon_engine::{InMemory, Memory, Window, WindowState};
use mnemon_testkit::fakes::FilesInRam;
use mnemon_testkit::faults::{Fault, Flaky};
use mnemon_testkit::talks::{Talk, seeds};
use serde_json::json;

use super::{assert_said, expanded, memory, say, small};
use crate::{ctx, wait};

fn window<'a>(memory: &'a Memory, session: &str) -> Window<'a> {
    let window = memory.window("ann", session).unwrap();
    window.settings(small()).unwrap()
}

/// A conversation that was compressed along the way.
fn talked(memory: &Memory, seed: u64) -> Vec<Message> {
    let window = window(memory, "s1");
    let mut talk = Talk::new(seed, 800);
    let mut said = Vec::new();
    while said.len() < 40 {
        for message in talk.round() {
            wait(window.add_message(&ctx(), message.clone())).unwrap();
            said.push(message);
        }
        wait(window.compress_if_needed(&ctx())).unwrap();
    }
    said
}

fn messages(window: &Window<'_>) -> Vec<Message> {
    wait(window.get_messages(&ctx())).unwrap()
}

/// The texts, with what differs between a window and its copy taken out.
fn texts(window: &Window<'_>) -> Vec<String> {
    let shown = wait(window.show(&ctx())).unwrap();
    let texts = shown.messages.into_iter().map(|seen| {
        let json = serde_json::to_string(&seen.message).unwrap();
        let json = match &seen.uuid {
            Some(uuid) => json.replace(uuid, "uuid"),
            None => json,
        };
        format!("{:?} {} {} {json}", seen.as_, seen.covers, seen.tokens)
    });
    texts.collect()
}

#[test]
fn a_fork_looks_the_same_and_goes_its_own_way() {
    for seed in seeds(20, 200) {
        let memory = memory();
        let said = talked(&memory, seed);
        let (one, two) = (window(&memory, "s1"), window(&memory, "s2"));
        assert_eq!(wait(one.fork(&ctx(), "s2")).unwrap(), said.len());
        assert_eq!(texts(&one), texts(&two), "seed {seed}");
        assert_said(&expanded(&two, messages(&two)), &said, seed);
        let all = wait(two.tail(&ctx(), None, 1000)).unwrap().0;
        assert_eq!(all, said);
        // A copy of a copy is no worse.
        wait(two.fork(&ctx(), "s3")).unwrap();
        assert_eq!(texts(&two), texts(&window(&memory, "s3")), "seed {seed}");
        let before = texts(&one);
        wait(two.add_message(&ctx(), say(Role::User, "only here"))).unwrap();
        wait(two.compress(&ctx())).unwrap();
        assert_eq!(texts(&one), before, "seed {seed}");
        let last = messages(&two).pop().unwrap();
        assert_eq!(last.text_content(), "only here");
    }
}

/// A fork that fails at any call is completed by repeating it; nothing is there twice.
#[test]
fn an_interrupted_fork_is_completed_when_it_is_repeated() {
    let mut partial = 0;
    for call in 0.. {
        let store = Arc::new(Flaky::new(Ram::new(), 0, 0));
        let policy = Policy {
            limits: &Limits::TINY,
            ..Policy::default()
        };
        let builder = Memory::builder(store.clone(), Ids::new(7));
        let memory = builder.policy(policy).build();
        let said: Vec<Message> = (0..11)
            .map(|n| say(Role::User, &format!("message {n}")))
            .collect();
        let one = memory.window("ann", "s1").unwrap();
        for message in &said {
            wait(one.add_message(&ctx(), message.clone())).unwrap();
        }
        let two = memory.window("ann", "s2").unwrap();
        store.arm(call, Fault::Before);
        let done = wait(one.fork(&ctx(), "s2"));
        let was_due = store.disarm();
        let begun = messages(&two).len();
        partial += usize::from(done.is_err() && (1..11).contains(&begun));
        if done.is_err() {
            // Another conversation may not be forked to the same name meanwhile.
            let other = memory.window("ann", "other").unwrap();
            wait(other.add_message(&ctx(), say(Role::User, "x"))).unwrap();
            if begun > 0 {
                assert!(wait(other.fork(&ctx(), "s2")).is_err(), "call {call}");
            }
            assert_eq!(wait(one.fork(&ctx(), "s2")).unwrap(), said.len());
        }
        let texts = |window: &Window<'_>| -> Vec<String> {
            messages(window).iter().map(Message::text_content).collect()
        };
        assert_eq!(texts(&two), texts(&one), "call {call}");
        assert!(wait(one.fork(&ctx(), "s2")).is_err(), "it is complete");
        if was_due {
            assert!(done.is_ok());
            break;
        }
    }
    assert!(partial > 1, "{partial} forks were cut in the middle");
}

#[test]
fn snapshots_are_listed_and_deleted() {
    let memory = memory();
    talked(&memory, 3);
    let one = window(&memory, "s1");
    let shown = messages(&one).len();
    wait(one.snapshot(&ctx(), "v1")).unwrap();
    wait(one.snapshot(&ctx(), "v2")).unwrap();
    let labels = || {
        let found = wait(one.snapshots(&ctx())).unwrap();
        assert!(found.iter().all(|snapshot| snapshot.messages == shown));
        let labels = found.into_iter().map(|snapshot| snapshot.label);
        labels.collect::<Vec<_>>()
    };
    assert_eq!(labels(), ["v2", "v1"]);
    assert!(wait(one.delete_snapshot(&ctx(), "v1")).unwrap());
    assert!(!wait(one.delete_snapshot(&ctx(), "v1")).unwrap());
    assert_eq!(labels(), ["v2"]);
    assert_eq!(wait(one.restore(&ctx(), "v1")).unwrap(), None);
    wait(one.snapshot(&ctx(), "v1")).unwrap();
}

#[test]
fn what_was_replaced_is_reloaded_by_its_user_without_the_session() {
    let memory = memory();
    talked(&memory, 3);
    let shown = wait(window(&memory, "s1").show(&ctx())).unwrap();
    let uuid = shown.messages.iter().find_map(|seen| seen.uuid.clone());
    let uuid = uuid.unwrap();
    let own = wait(memory.reload(&ctx(), "ann", &uuid)).unwrap();
    assert_eq!(
        own,
        wait(window(&memory, "s1").reload(&ctx(), &uuid)).unwrap()
    );
    assert!(own.is_some());
    assert_eq!(wait(memory.reload(&ctx(), "bob", &uuid)).unwrap(), None);
    let other = window(&memory, "s2");
    assert_eq!(wait(other.reload(&ctx(), &uuid)).unwrap(), None);
}

#[test]
fn a_fork_needs_a_place_where_nothing_was_said() {
    let memory = memory();
    talked(&memory, 1);
    let other = window(&memory, "s2");
    wait(other.add_message(&ctx(), say(Role::User, "mine"))).unwrap();
    let error = wait(window(&memory, "s1").fork(&ctx(), "s2")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(messages(&other).len(), 1);
    assert!(wait(window(&memory, "s1").fork(&ctx(), "../s2")).is_err());
}

#[test]
fn a_snapshot_is_gone_back_to_and_what_was_said_since_is_kept() {
    let memory = memory();
    let said = talked(&memory, 3);
    let one = window(&memory, "s1");
    let before = messages(&one);
    assert_eq!(wait(one.snapshot(&ctx(), "v1")).unwrap(), before.len());
    let again = wait(one.snapshot(&ctx(), "v1")).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    for n in 0..30 {
        wait(one.add_message(&ctx(), say(Role::User, &format!("later {n}")))).unwrap();
        wait(one.compress_if_needed(&ctx())).unwrap();
    }
    assert_ne!(messages(&one), before);
    assert_eq!(wait(one.restore(&ctx(), "other")).unwrap(), None);
    assert_eq!(wait(one.restore(&ctx(), "v1")).unwrap(), Some(before.len()));
    assert_eq!(messages(&one), before);
    assert_eq!(expanded(&one, messages(&one)), said);
    let (all, _) = wait(one.original(&ctx(), None, 1000)).unwrap();
    assert_eq!(all.len(), said.len() + 30, "nothing that was said is lost");
    wait(one.add_message(&ctx(), say(Role::User, "and on"))).unwrap();
    assert_eq!(messages(&one).len(), before.len() + 1);
}

#[test]
fn a_window_is_saved_with_a_session_and_taken_over_elsewhere() {
    let (here, there) = (memory(), memory());
    let said = talked(&here, 5);
    let one = window(&here, "s1");
    let files = JsonSessions::new(Arc::new(FilesInRam::default()), "");
    let mut state = wait(one.state(&ctx())).unwrap();
    assert_eq!(state.original, said);
    let session = || Session::new("s1".parse().unwrap(), &files);
    wait(session().with(&mut state).unwrap().save(&ctx())).unwrap();
    let mut loaded = WindowState::default();
    wait(session().with(&mut loaded).unwrap().load_or_fail(&ctx())).unwrap();
    assert_eq!(loaded, state);
    let two = window(&there, "s9");
    assert_eq!(wait(two.take_over(&ctx(), &loaded)).unwrap(), said.len());
    assert_eq!(texts(&two), texts(&one));
    assert_eq!(expanded(&two, messages(&two)), said);
    assert!(loaded.load_state(&json!([])).is_err());
    assert!(
        loaded
            .load_state(&json!({"originalMemoryStorage": 3}))
            .is_err()
    );
    assert_eq!(loaded, state, "on an error it stays as it was");
}

#[test]
fn a_state_that_makes_no_sense_does_no_harm() {
    let reference = |uuid: &str| {
        let mut message = say(
            Role::Assistant,
            &format!("<!-- CONTEXT_OFFLOAD: uuid={uuid} -->"),
        );
        let meta = json!({ "offloaduuid": uuid });
        message.metadata.insert("_compress_meta".to_owned(), meta);
        message
    };
    let state = WindowState {
        original: vec![Message::text("m1", Role::User, "hello")],
        // One that goes round in circles, one that names nothing, one that nobody said.
        working: vec![
            reference("a"),
            reference("none"),
            Message::text("x", Role::User, "?"),
        ],
        offloads: [
            ("a".to_owned(), vec![reference("b")]),
            ("b".to_owned(), vec![reference("a")]),
        ]
        .into_iter()
        .collect(),
        events: Vec::new(),
    };
    let memory = memory();
    let one = window(&memory, "s1");
    assert_eq!(wait(one.take_over(&ctx(), &state)).unwrap(), 1);
    assert!(messages(&one).is_empty());
    let (all, _) = wait(one.original(&ctx(), None, 10)).unwrap();
    assert_eq!(all[0].text_content(), "hello");
}

#[test]
fn a_window_in_memory_is_a_state_module() {
    let mut one = InMemory::default();
    one.add_message(Message::text("m1", Role::User, "hello"));
    let saved = one.save_state().unwrap();
    let mut two = InMemory::default();
    two.load_state(&saved).unwrap();
    assert_eq!(one, two);
    two.load_state(&json!({ "messages": [] })).unwrap();
    assert!(two.get_messages().is_empty());
    assert!(two.load_state(&json!(3)).is_err());
    assert_eq!(
        (one.component(), two.save_state().unwrap()),
        ("memory_messages", json!([]))
    );
}

fn originals(memory: &Memory) -> Vec<Record> {
    let filter = Filter {
        kinds: vec![Kind::Message],
        ..Filter::all_of_tenant()
    };
    let page = wait(memory.records().list(&ctx(), &Scan::new(filter, 1000))).unwrap();
    page.records
}

#[test]
fn originals_are_only_added_to() {
    let memory = memory();
    talked(&memory, 7);
    let before = originals(&memory);
    assert!(before.iter().all(|record| record.version == 1));
    let one = window(&memory, "s1");
    wait(one.snapshot(&ctx(), "v1")).unwrap();
    while !wait(one.compress(&ctx())).unwrap().is_empty() {}
    wait(one.delete_message(&ctx(), 0)).unwrap();
    wait(one.restore(&ctx(), "v1")).unwrap();
    wait(one.clear(&ctx())).unwrap();
    assert!(messages(&one).is_empty());
    assert_eq!(originals(&memory), before);
}
