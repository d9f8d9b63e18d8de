//! After a purge no byte of the session is left: in the store, its logs, pages, states, snapshots and
//! temporary files. What cannot be erased is listed, and the answer does not say "purged".

use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;

pub(crate) const NEEDLE: &str = "zebraneedle";

/// The files of the folder that hold the needle, in whatever form.
pub(crate) fn holding(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let mut windows = bytes.windows(NEEDLE.len());
            if windows.any(|window| window == NEEDLE.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// A sandbox on this store, with small windows, so that lines and pages are made.
fn sandbox(store: &str) -> Sandbox {
    let sandbox = Sandbox::new().with("MNEMON_STORE", store);
    sandbox.file(
        "mnemon.toml",
        "[memory]\nhot_window_size = 20\nmax_tokens = 200\n",
    );
    std::fs::create_dir(sandbox.path("project")).unwrap();
    sandbox
}

fn run(sandbox: &Sandbox, args: &[&str]) -> String {
    sandbox.run(args).ok()
}

fn chat(sandbox: &Sandbox, files: &[&str]) -> String {
    let said = format!("{NEEDLE} was said");
    let append = ["chat", "append", "s1", &said, "--user", "ann", "--json"];
    let done = sandbox.run(&[&append, files].concat()).json();
    done["items"][0]["id"].as_str().unwrap().to_owned()
}

/// A conversation with pages.
fn pages(sandbox: &Sandbox) {
    for n in 0..16 {
        let line = format!("{NEEDLE} number {n} is a line about tea and honey");
        let append = [
            "chat",
            "append",
            "s1",
            &line,
            "--user",
            "ann",
            "--max-token",
            "200",
        ];
        run(sandbox, &[&append, FILES].concat());
    }
    assert!(
        sandbox
            .path("project/.airsspec/knowledge/library/history-001.md")
            .exists()
    );
}

fn save(sandbox: &Sandbox, place: &[&str]) {
    let state = format!("{{\"a\":{{\"x\":\"{NEEDLE}\"}}}}");
    let save = [&["session", "save", "s1"], place].concat();
    sandbox.pipe(state.as_bytes(), &save).ok();
    run(
        sandbox,
        &[&["session", "snapshot", "s1", "lab"], place].concat(),
    );
}

const PURGE: &[&str] = &["chat", "delete", "s1", "--user", "ann", "--purge", "--yes"];
const FORGET: &[&str] = &["chat", "delete", "s1", "--user", "ann", "--yes"];
const FILES: &[&str] = &["--files", "project"];
const FOLDER: &[&str] = &["--folder", "saved"];

const UNFINISHED: &str = ".0123456789abcdef.mnemon-unfinished";

type Fill = fn(&Sandbox);

/// The forms in which a session leaves text, and what its purge has to be given.
const FORMS: &[(&str, Fill, &[&str])] = &[
    ("chat", |s| drop(chat(s, &[])), &[]),
    ("chat with files", |s| drop(chat(s, FILES)), FILES),
    ("chat with pages", pages, FILES),
    ("saved and kept", |s| save(s, &["--user", "ann"]), &[]),
    ("saved by nobody", |s| save(s, &[]), &[]),
    ("saved in a folder", |s| save(s, FOLDER), FOLDER),
    (
        "derived",
        |s| {
            let source = chat(s, &[]);
            run(s, &["add", NEEDLE, "--derived-from", &source]);
            run(s, &["note", "add", "a note", "--user", "ann"]);
        },
        &[],
    ),
    (
        "forgotten one by one",
        |s| {
            let id = chat(s, &[]);
            run(s, &["forget", &id]);
        },
        &[],
    ),
    (
        "forgotten before with files",
        |s| {
            pages(s);
            run(s, &[FORGET, FILES].concat());
        },
        FILES,
    ),
    (
        "forgotten before and saved",
        |s| {
            save(s, &["--user", "ann"]);
            run(
                s,
                &["session", "delete", "s1@lab", "--user", "ann", "--yes"],
            );
            run(s, FORGET);
        },
        &[],
    ),
    (
        "left by killed writers",
        |s| {
            save(s, FOLDER);
            s.file(&format!("saved/{UNFINISHED}"), NEEDLE);
        },
        FOLDER,
    ),
    (
        "left by killed writers in a project",
        |s| {
            chat(s, FILES);
            let folder = "project/.airsspec/contexts/agent";
            s.file(&format!("{folder}/{UNFINISHED}"), NEEDLE);
        },
        FILES,
    ),
];

#[test]
fn a_purge_leaves_no_byte_of_the_session_in_any_form() {
    for store in ["sqlite:store/m.db", "jsonl:store"] {
        for (form, fill, place) in FORMS {
            let sandbox = sandbox(store);
            fill(&sandbox);
            assert!(!holding(sandbox.folder()).is_empty(), "{form}");
            let purged = sandbox.run(&[PURGE, place, &["--json"]].concat()).json();
            assert_eq!(purged["status"], "purged", "{store}, {form}: {purged}");
            let left = holding(sandbox.folder());
            assert!(left.is_empty(), "{store}, {form}: {left:?}");
            let (code, again) = sandbox.run(&[PURGE, place].concat()).failed();
            assert_eq!(code, 3, "{store}, {form}: {again}");
        }
    }
}

#[test]
fn a_purge_by_id_or_by_session_reaches_what_was_forgotten_earlier() {
    for store in ["sqlite:store/m.db", "jsonl:store"] {
        let sandbox = sandbox(store);
        let id = chat(&sandbox, &[]);
        run(&sandbox, &["forget", &id]);
        let purged = sandbox.run(&["forget", &id, "--purge", "--yes"]);
        assert_eq!(purged.out, format!("purged {id}\n"));
        assert!(holding(sandbox.folder()).is_empty());
        let id = chat(&sandbox, &[]);
        run(&sandbox, &["forget", &id]);
        let by_session = ["forget", "--session", "s1", "--purge"];
        let (_, asked) = sandbox.run(&by_session).failed();
        assert!(
            asked.contains("0 records and 1 forgotten earlier"),
            "{asked}"
        );
        let purged = sandbox.run(&[&by_session[..], &["--yes"]].concat()).ok();
        assert_eq!(purged, format!("purged {id}\n"));
        assert!(holding(sandbox.folder()).is_empty());
    }
}

#[test]
fn the_log_of_a_deleted_conversation_is_listed_until_it_is_purged() {
    let sandbox = sandbox("sqlite:store/m.db");
    chat(&sandbox, FILES);
    let forget = [FORGET, FILES].concat();
    let forgotten = run(&sandbox, &forget);
    assert!(
        forgotten.contains("project/.airsspec/contexts/agent/s1.jsonl (the session was forgotten"),
        "{forgotten}"
    );
    let (code, again) = sandbox.run(&forget).failed();
    assert!(code == 3 && again.contains("nor any other"), "{again}");
    let purged = run(&sandbox, &[PURGE, FILES].concat());
    assert!(purged.starts_with("purged: "), "{purged}");
    assert!(holding(sandbox.folder()).is_empty());
    // A log that the store has not read is deleted as one that it has.
    let folder = "project/.airsspec/contexts/agent";
    std::fs::create_dir_all(sandbox.path(folder)).unwrap();
    let line = "{\"type\":\"user\",\"content\":\"hay\"}\n";
    sandbox.file(&format!("{folder}/s2.jsonl"), line);
    run(
        &sandbox,
        &[&["chat", "delete", "s2", "--yes"], FILES].concat(),
    );
    let shown = sandbox.run(&[&["chat", "show", "s2"], FILES].concat());
    assert_eq!(shown.failed().0, 3);
}

#[test]
fn a_conversation_is_deleted_without_those_of_the_same_name_in_projects() {
    for delete in [FORGET, PURGE] {
        let sandbox = sandbox("sqlite:store/m.db");
        chat(&sandbox, FILES);
        let root = sandbox.path("project").canonicalize().unwrap();
        let root = root.display();
        let (code, said) = sandbox.run(delete).failed();
        let nearest = format!("the nearest: `s1` in project project (pass --files {root})");
        assert!(code == 3 && said.contains(&nearest), "{said}");
        // Before it asks.
        let (code, said) = sandbox.run(&delete[..delete.len() - 1]).failed();
        assert!(code == 3 && said.contains(&nearest), "{said}");
        chat(&sandbox, &[]);
        let gone = run(&sandbox, delete);
        let also = format!("also in project project ({root}): delete it with --files {root}\n");
        assert!(gone.contains(&also), "{gone}");
        assert_eq!(sandbox.run(delete).failed().0, 3);
        let tail = ["chat", "tail", "s1", "--user", "ann"];
        let there = run(&sandbox, &[&tail, FILES].concat());
        assert!(there.contains(NEEDLE), "{there}");
        chat(&sandbox, &[]);
        let gone = run(&sandbox, &[delete, FILES].concat());
        assert!(!gone.contains("also in"), "{gone}");
        assert!(run(&sandbox, &tail).contains(NEEDLE));
        let (code, said) = sandbox.run(&[&tail, FILES].concat()).failed();
        let nearest = "the nearest: `s1` in no project (leave out --files)";
        assert!(code == 3 && said.contains(nearest), "{said}");
    }
}

#[test]
fn purging_the_lines_of_a_log_by_session_lists_the_log_and_indexes_none_again() {
    let sandbox = sandbox("sqlite:store/m.db");
    pages(&sandbox);
    let listed = sandbox
        .run(&["list", "--kind", "message", "--limit", "1", "--json"])
        .json();
    let session = listed["records"][0]["owner"]["session"]
        .as_str()
        .unwrap()
        .to_owned();
    let purged = sandbox.run(&["forget", "--session", &session, "--purge", "--yes"]);
    assert_eq!(purged.code, 5, "{}", purged.err);
    assert!(
        purged
            .out
            .contains("not erased: .airsspec/contexts/agent/s1.jsonl"),
        "{}",
        purged.out
    );
    for n in 0..6 {
        run(
            &sandbox,
            &[
                "chat",
                "append",
                "s1",
                &format!("hay {n}"),
                "--user",
                "ann",
                "--files",
                "project",
            ],
        );
    }
    let found = run(
        &sandbox,
        &[
            "search",
            "number 3 line about tea and honey",
            "--session",
            &session,
        ],
    );
    assert!(!found.contains(NEEDLE), "{found}");
}

#[test]
fn another_users_session_of_the_same_name_is_left_alone() {
    let sandbox = sandbox("sqlite:store/m.db");
    chat(&sandbox, FILES);
    run(
        &sandbox,
        &[
            "chat", "append", "s1", "bob too", "--user", "bob", "--files", "project",
        ],
    );
    let purged = sandbox.run(&[PURGE, FILES, &["--json"]].concat());
    assert_eq!(purged.code, 5);
    assert!(purged.out.contains("\"partly-purged\""), "{}", purged.out);
    assert!(
        purged.out.contains("another user has a session"),
        "{}",
        purged.out
    );
    let bobs = ["chat", "tail", "s1", "--user", "bob", "--files", "project"];
    assert!(run(&sandbox, &bobs).contains("bob too"));
    assert!(
        sandbox
            .path("project/.airsspec/contexts/agent/s1.jsonl")
            .exists()
    );
    let log = std::fs::read_to_string(sandbox.path("project/.airsspec/contexts/agent/s1.jsonl"));
    assert!(log.unwrap().contains(NEEDLE), "it is bob's, too");
}

#[test]
fn an_undo_brings_back_a_cascade_larger_than_a_batch() {
    let sandbox = Sandbox::new().with("MNEMON_EMBEDDER", "none");
    sandbox.note("source", "x");
    let drafts: String = (0..12_000)
        .map(|n| format!("{{\"content\":\"note {n}\",\"derived_from\":[\"source\"]}}\n"))
        .collect();
    sandbox.pipe(drafts.as_bytes(), &["add", "--jsonl"]).ok();
    let gone = sandbox.run(&["forget", "source", "--json"]).json();
    let commit = gone["commit"].to_string();
    let count = || sandbox.run(&["stats", "--json"]).json()["records"].as_u64();
    assert_eq!(count(), Some(0));
    let undone = run(&sandbox, &["undo", &commit]);
    assert!(undone.contains("(12001 records)"), "{undone}");
    assert_eq!(count(), Some(12_001));
}

#[test]
fn a_killed_export_is_swept_by_the_next_one_after_a_day() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    let left = ".0123456789abcdef.mnemon-export";
    sandbox.file(left, NEEDLE);
    run(&sandbox, &["export", "first.jsonl"]);
    assert!(sandbox.path(left).exists(), "it may be under way");
    let day = std::time::Duration::from_secs(25 * 60 * 60);
    let file = std::fs::File::options()
        .write(true)
        .open(sandbox.path(left));
    let then = std::time::SystemTime::now() - day;
    file.unwrap().set_modified(then).unwrap();
    run(&sandbox, &["export", "second.jsonl"]);
    assert!(!sandbox.path(left).exists());
}

#[test]
fn copies_that_a_restore_kept_are_listed() {
    let sandbox = sandbox("sqlite:m.db");
    run(&sandbox, &["add", NEEDLE, "--id", "n"]);
    run(&sandbox, &["backup", "b.db"]);
    run(&sandbox, &["restore", "b.db", "--yes"]);
    std::fs::remove_file(sandbox.path("b.db")).unwrap();
    let (code, said) = sandbox.run(&["forget", "n", "--purge", "--yes"]).failed();
    assert_eq!(code, 5, "{said}");
    let held = holding(sandbox.folder());
    assert_eq!(held, [sandbox.path("m.db.before-restore")]);
    std::fs::remove_file(&held[0]).unwrap();
    run(&sandbox, &["add", NEEDLE, "--id", "n"]);
    let again = sandbox
        .command()
        .args(["forget", "n", "--purge", "--yes"])
        .output();
    assert!(again.unwrap().status.success());
}

/// A store that came with a clone may name any folder as one of its sessions'.
#[test]
fn a_store_of_a_clone_erases_no_files_outside_it() {
    let sandbox = Sandbox::new();
    let inside = |folder: &str, args: &[&str]| {
        let mut command = sandbox.command();
        command.current_dir(sandbox.path(folder)).args(args);
        command.output().unwrap()
    };
    for folder in ["clone", "victim"] {
        std::fs::create_dir(sandbox.path(folder)).unwrap();
    }
    let victim = sandbox.path("victim").display().to_string();
    assert!(inside("clone", &["init"]).status.success());
    inside("clone", &["chat", "append", "s1", "x", "--files", &victim]);
    std::fs::remove_dir_all(sandbox.path("victim/.airsspec")).unwrap();
    inside("victim", &["chat", "append", "s1", NEEDLE, "--files", "."]);
    let purge = ["chat", "delete", "s1", "--purge", "--yes"];
    let done = inside("clone", &purge);
    assert_eq!(holding(&sandbox.path("victim")).len(), 1, "{done:?}");
    // Whoever means it names the folder.
    inside("clone", &[&purge[..], &["--files", &victim]].concat());
    assert!(holding(&sandbox.path("victim")).is_empty());
}
