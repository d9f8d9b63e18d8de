//! Sessions: one body of tests for every place where they may lie.

mod folder;
mod shapes;

use std::sync::Arc;

use mnemon_core::{ErrorKind, Invalid};
use mnemon_engine::session::{
    FolderSessions, JsonSessions, Session, SessionId, Sessions, StateModule, fork, restore,
    snapshot,
};
use mnemon_testkit::fakes::FilesInRam;
use serde_json::{Value, json};

use crate::{ctx, memory, wait};

/// A part of an agent that counts.
pub(crate) struct Counter {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
}

pub(crate) fn counter(name: &'static str, count: u64) -> Counter {
    Counter { name, count }
}

impl StateModule for Counter {
    fn component(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[&str] {
        &["OldCounter"]
    }

    fn save_state(&self) -> Result<Value, Invalid> {
        Ok(json!({ "count": self.count }))
    }

    fn load_state(&mut self, state: &Value) -> Result<(), Invalid> {
        let count = state.get("count").and_then(Value::as_u64);
        self.count = count.ok_or_else(|| Invalid::new("count", "is not a number"))?;
        Ok(())
    }
}

pub(crate) fn sid(text: &str) -> SessionId {
    text.parse().unwrap()
}

/// Runs the body on every sort of place.
fn everywhere(body: impl Fn(&dyn Sessions)) {
    let memory = memory();
    let files = Arc::new(FilesInRam::default());
    body(&memory.sessions(Some("ann")).unwrap());
    body(&memory.sessions(None).unwrap());
    body(&JsonSessions::new(files.clone(), "json"));
    body(&JsonSessions::new(Arc::new(FilesInRam::default()), ""));
    body(&FolderSessions::new(files.clone(), files, "folders"));
    let files = Arc::new(FilesInRam::default());
    body(&FolderSessions::new(files.clone(), files, ""));
}

fn saved(place: &dyn Sessions, id: &str) -> Value {
    let (state, _) = wait(place.load(&ctx(), &sid(id))).unwrap().unwrap();
    Value::Object(state.components)
}

fn save(place: &dyn Sessions, id: &str, name: &'static str, count: u64) {
    let mut one = counter(name, count);
    let session = Session::new(sid(id), place).with(&mut one).unwrap();
    wait(session.save(&ctx())).unwrap();
}

#[test]
fn what_was_saved_comes_back() {
    everywhere(|place| {
        let (mut one, mut two) = (counter("one", 1), counter("two", 2));
        let mut session = Session::new(sid("user 123"), place);
        session = session.with(&mut one).unwrap().with(&mut two).unwrap();
        assert!(!wait(session.exists(&ctx())).unwrap());
        assert!(!wait(session.load_if_exists(&ctx())).unwrap());
        assert!(!wait(session.save_if_exists(&ctx())).unwrap());
        assert!(!wait(session.exists(&ctx())).unwrap(), "still nothing");
        wait(session.save(&ctx())).unwrap();
        assert!(wait(session.save_if_exists(&ctx())).unwrap());

        let (mut one, mut two) = (counter("one", 0), counter("two", 0));
        let mut session = Session::new(sid("user 123"), place);
        session = session.with(&mut one).unwrap().with(&mut two).unwrap();
        wait(session.load_or_fail(&ctx())).unwrap();
        drop(session);
        assert_eq!((one.count, two.count), (1, 2));

        assert_eq!(wait(place.list(&ctx())).unwrap(), ["user 123"]);
        let info = wait(place.info(&ctx(), &sid("user 123"))).unwrap().unwrap();
        assert_eq!(
            (info.session_id.as_str(), info.component_count),
            ("user 123", 2)
        );
        assert!(info.size > 0);
        let gone = Session::new(sid("user 123"), place);
        assert!(wait(gone.delete_if_exists(&ctx())).unwrap());
        assert!(!wait(gone.delete_if_exists(&ctx())).unwrap());
        let error = wait(gone.delete_or_fail(&ctx())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(wait(place.list(&ctx())).unwrap().is_empty());
    });
}

#[test]
fn a_session_that_is_not_there_is_named() {
    everywhere(|place| {
        let error = wait(Session::new(sid("s9"), place).load_or_fail(&ctx())).unwrap_err();
        assert_eq!(error.to_string(), "there is no saved session s9");
        let error = wait(fork(place, &ctx(), &sid("s9"), &sid("s1"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_module_without_a_state_is_an_error_unless_it_is_optional() {
    everywhere(|place| {
        save(place, "s", "one", 1);
        let (mut one, mut new) = (counter("one", 7), counter("new", 8));
        let mut session = Session::new(sid("s"), place);
        session = session.with(&mut one).unwrap().with(&mut new).unwrap();
        let error = wait(session.load_if_exists(&ctx())).unwrap_err();
        drop(session);
        let text = error.to_string();
        assert_eq!(text, "session s has no state of `new`; it has one");
        assert_eq!((one.count, new.count), (7, 8), "nothing was loaded");
        assert_eq!(saved(place, "s"), json!({"one": {"count": 1}}), "nor saved");

        let mut session = Session::new(sid("s"), place).with(&mut one).unwrap();
        session = session.with_optional(&mut new).unwrap();
        wait(session.load_or_fail(&ctx())).unwrap();
        drop(session);
        assert_eq!((one.count, new.count), (1, 8));
    });
}

#[test]
fn when_one_module_refuses_its_state_none_is_changed() {
    everywhere(|place| {
        let (mut state, _) = {
            save(place, "s", "one", 1);
            wait(place.load(&ctx(), &sid("s"))).unwrap().unwrap()
        };
        let (_, mark) = wait(place.load(&ctx(), &sid("s"))).unwrap().unwrap();
        state
            .components
            .insert("two".to_owned(), json!({"count": "x"}));
        wait(place.save(&ctx(), &state, Some(&mark))).unwrap();
        let before = saved(place, "s");
        let (mut one, mut two) = (counter("one", 7), counter("two", 8));
        let mut session = Session::new(sid("s"), place);
        session = session.with(&mut one).unwrap().with(&mut two).unwrap();
        let error = wait(session.load_or_fail(&ctx())).unwrap_err();
        drop(session);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("`two` in session s"), "{error}");
        assert_eq!((one.count, two.count), (7, 8));
        assert_eq!(saved(place, "s"), before);
    });
}

#[test]
fn what_others_saved_stays_beside_it() {
    everywhere(|place| {
        save(place, "s", "one", 1);
        save(place, "s", "two", 2);
        save(place, "s", "one", 3);
        let both = json!({"one": {"count": 3}, "two": {"count": 2}});
        assert_eq!(saved(place, "s"), both);
    });
}

#[test]
fn a_save_over_what_was_not_seen_is_a_conflict() {
    everywhere(|place| {
        save(place, "s", "one", 1);
        let (state, mark) = wait(place.load(&ctx(), &sid("s"))).unwrap().unwrap();
        save(place, "s", "one", 2);
        for seen in [Some(&mark), None] {
            let error = wait(place.save(&ctx(), &state, seen)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        }
        assert_eq!(saved(place, "s"), json!({"one": {"count": 2}}));
    });
}

#[test]
fn a_fork_goes_its_own_way() {
    everywhere(|place| {
        save(place, "s", "one", 1);
        wait(fork(place, &ctx(), &sid("s"), &sid("t"))).unwrap();
        save(place, "t", "one", 2);
        assert_eq!(saved(place, "s"), json!({"one": {"count": 1}}));
        assert_eq!(saved(place, "t"), json!({"one": {"count": 2}}));
        let error = wait(fork(place, &ctx(), &sid("s"), &sid("t"))).unwrap_err();
        assert!(error.to_string().contains("session t already"), "{error}");
        assert_eq!(saved(place, "t"), json!({"one": {"count": 2}}));
        let (state, _) = wait(place.load(&ctx(), &sid("t"))).unwrap().unwrap();
        assert_eq!(state.extra["forkOf"], json!("s"));
    });
}

#[test]
fn a_snapshot_is_gone_back_to_whole() {
    everywhere(|place| {
        save(place, "s", "one", 1);
        let taken = wait(snapshot(place, &ctx(), &sid("s"), "before")).unwrap();
        assert_eq!(taken.as_str(), "s@before");
        save(place, "s", "one", 2);
        save(place, "s", "two", 2);
        for _ in 0..2 {
            wait(restore(place, &ctx(), &sid("s"), "before")).unwrap();
            assert_eq!(saved(place, "s"), json!({"one": {"count": 1}}));
        }
        let again = wait(snapshot(place, &ctx(), &sid("s"), "before")).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Conflict);
        let none = wait(restore(place, &ctx(), &sid("s"), "never")).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NotFound);
        // A session that only looks like a snapshot is none.
        save(place, "s@looks", "one", 9);
        assert!(wait(restore(place, &ctx(), &sid("s"), "looks")).is_err());
        assert_eq!(saved(place, "s"), json!({"one": {"count": 1}}));
    });
}

#[test]
fn two_modules_of_one_name_are_refused() {
    everywhere(|place| {
        let (mut one, mut two) = (counter("one", 1), counter("one", 2));
        let session = Session::new(sid("s"), place).with(&mut one).unwrap();
        let error = session.with(&mut two).err().unwrap();
        assert!(error.to_string().contains("twice"), "{error}");
        for bad in ["", "a/b", ".."] {
            let mut one = counter(bad, 1);
            assert!(
                Session::new(sid("s"), place).with(&mut one).is_err(),
                "{bad}"
            );
        }
    });
}

#[test]
fn a_saved_session_in_a_store_has_a_history_and_is_its_users() {
    let memory = memory();
    let ann = memory.sessions(Some("ann")).unwrap();
    save(&ann, "s", "one", 1);
    save(&ann, "s", "one", 2);
    assert!(wait(ann.delete(&ctx(), &sid("s"))).unwrap());
    let changes = mnemon_core::Changes {
        limit: 1,
        ..mnemon_core::Changes::all_of_tenant(0)
    };
    let newest = wait(memory.records().history(&ctx(), &changes));
    let newest = newest.unwrap()[0].commit;
    wait(memory.records().undo(&ctx(), newest)).unwrap();
    assert_eq!(saved(&ann, "s"), json!({"one": {"count": 2}}));
    for other in [Some("bob"), None] {
        let place = memory.sessions(other).unwrap();
        assert!(wait(place.list(&ctx())).unwrap().is_empty());
        assert!(wait(place.load(&ctx(), &sid("s"))).unwrap().is_none());
    }
    let gone = wait(memory.delete_session(&ctx(), "ann", "s", false)).unwrap();
    assert_eq!(gone.records, 1, "forgetting the session takes it along");
}

/// A masked name would be another session's, and an error must not repeat it.
#[test]
fn a_name_that_holds_a_secret_is_refused() {
    let token = format!("gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3", "p");
    everywhere(|place| {
        let state = mnemon_engine::session::SessionState::new(sid(&token));
        let error = wait(place.save(&ctx(), &state, None)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!error.to_string().contains("a8Kd03"), "{error}");
        assert!(wait(place.list(&ctx())).unwrap().is_empty());
    });
}
