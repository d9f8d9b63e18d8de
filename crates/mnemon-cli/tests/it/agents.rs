//! `mnemon agent` and `mnemon team` on real files, with real processes.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::sandbox::Sandbox;

const MEMORY: &str = ".microai/agents/coder/memory";

fn desk() -> Sandbox {
    let desk = Sandbox::new();
    desk.run(&["agent", "new", "coder", "--description", "Writes the code"])
        .ok();
    desk
}

fn read(desk: &Sandbox, path: &str) -> String {
    fs::read_to_string(desk.path(path)).unwrap()
}

fn write(desk: &Sandbox, path: &str, text: impl AsRef<[u8]>) {
    let path: PathBuf = desk.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn decide(desk: &Sandbox, title: &str) {
    desk.run(&[
        "agent",
        "decide",
        "coder",
        title,
        "--decision",
        "so",
        "--context",
        "here",
        "--reason",
        "because",
        "--date",
        "2025-12-31",
    ])
    .ok();
}

/// A desk on which work has begun.
fn at_work() -> Sandbox {
    let desk = desk();
    let tasks = ["--task", "Fix the race", "--blocker", "No access"];
    let state = ["--state", "Build", "Failing", "since noon"];
    desk.run(&[&["agent", "context", "coder"], &tasks[..], &state].concat())
        .ok();
    decide(&desk, "Use channels");
    desk
}

#[test]
fn an_activation_is_printed_as_it_is_told() {
    let desk = at_work();
    let told = desk.run(&["agent", "activate", "coder"]);
    assert_eq!(told.code, 0);
    let begins = "## Agent Memory | Memory của Agent\n\n### Current Context | Context hiện tại\n\n# Current Context\n";
    assert!(told.out.starts_with(begins), "{}", told.out);
    assert!(told.out.contains("- [ ] Fix the race\n"));
    assert!(told.out.contains("| Build | Failing | since noon |"));
    let ends = "\n\n---\n\n# coder\n\nWrites the code\n";
    assert!(told.out.ends_with(ends), "{}", told.out);
    let noted: Vec<&str> = told.err.lines().collect();
    assert_eq!(noted.len(), 4, "{noted:?}");
    assert!(noted[1].starts_with("note: decisions: "), "{noted:?}");
    assert!(noted[1].ends_with(" tokens, 1 entries"), "{noted:?}");
    assert!(noted[3].starts_with("note: together: "), "{noted:?}");
    let json = desk.run(&["agent", "activate", "coder", "--json"]).json();
    assert_eq!(json["prompt"], told.out.as_str());
}

#[test]
fn a_session_ends_in_all_its_files() {
    let desk = at_work();
    let code = format!("@{}", desk.file("code.go", "select {}\n"));
    let learn = [
        "agent",
        "learn",
        "coder",
        "Cancel",
        "--pattern",
        "Use select",
    ];
    let example = ["--code", &code, "--language", "go", "--why", "it ends"];
    desk.run(&[&learn[..], &example].concat()).ok();
    let learnt = read(&desk, &format!("{MEMORY}/learnings.md"));
    assert!(learnt.contains("```go\nselect {}\n```\n"), "{learnt}");
    let session = r#"{"context": {"done": ["race"], "resolved": ["No access"], "next": ["Rest"]},
        "decisions": [{"title": "Use Redis", "decision": "Sessions in Redis"}],
        "archive": {"summary": "The race is fixed."}}"#;
    let end = ["agent", "end", "coder", "--data", "-"];
    let ended = desk.pipe(session.as_bytes(), &end).ok();
    assert_eq!(ended.lines().count(), 3, "{ended}");
    let context = read(&desk, &format!("{MEMORY}/context.md"));
    assert!(context.contains("- [x] Fix the race") && context.contains("1. Rest"));
    assert!(!context.contains("No access"));
    assert_eq!(desk.run(&["agent", "context", "coder"]).ok(), context);
    let warnings = desk.run(&["agent", "lint", "coder"]).ok();
    assert!(warnings.contains("decisions.md:"), "{warnings}");
    let archived = desk.run(&["agent", "archive", "coder"]).ok();
    assert_eq!(archived, "there was nothing to do\n");
}

#[test]
fn search_finds_entries_and_edits_by_hand() {
    let desk = desk();
    decide(&desk, "Use zebras for transport");
    let found = desk.run(&["search", "zebras transport", "--json"]).ok();
    assert!(
        found.contains(
            ".microai/agents/coder/memory/decisions.md#2025-12-31: Use zebras for transport"
        ),
        "{found}"
    );
    let path = format!("{MEMORY}/decisions.md");
    write(
        &desk,
        &path,
        read(&desk, &path).replace("zebras", "camels and horses"),
    );
    // A context is put together from what the files say now, too.
    let asked = ["context", "--user", "ann", "--session", "s1"];
    let asked = [&asked[..], &["--query", "camels for transport"]].concat();
    let context = desk.run(&asked).ok();
    assert!(context.contains("camels and horses"), "{context}");
    let found = desk.run(&["search", "camels transport", "--json"]).ok();
    assert!(
        found.contains("camels and horses") && !found.contains("zebras"),
        "{found}"
    );
    fs::remove_file(desk.path(&path)).unwrap();
    assert!(
        !desk
            .run(&["search", "camels transport", "--json"])
            .ok()
            .contains("camels and horses")
    );
    // Learnings are for those who ask.
    desk.run(&[
        "agent",
        "learn",
        "coder",
        "Shutdown",
        "--pattern",
        "Bound the wait",
    ])
    .ok();
    assert!(
        desk.run(&[
            "search",
            "shutdown wait",
            "--kind",
            "learning",
            "--agent",
            "coder"
        ])
        .ok()
        .contains("Bound the wait")
    );
}

fn team() -> Sandbox {
    let desk = Sandbox::new();
    for member in ["ada-lead", "linus"] {
        let path = format!(".microai/teams/core/{member}/agent.md");
        let text = format!("---\nname: {member}\n---\nYou are {member}.\n");
        write(&desk, &path, text);
    }
    desk
}

#[test]
fn a_team_hands_work_on() {
    let desk = team();
    let listed = desk.run(&["team", "list"]).ok();
    assert!(
        listed.contains("core  ada-lead  ada-lead linus"),
        "{listed}"
    );
    let hand = |to: &str| {
        let who = ["team", "handoff", "core", "--from", "ada-lead", "--to", to];
        let what = ["--task", "Fix it", "--context", "It leaks"];
        let more = ["--deliverable", "a patch", "--file", "a.rs=the leak"];
        desk.run(&[&who[..], &what, &more].concat())
    };
    let (code, error) = hand("nobody").failed();
    assert_eq!(code, 3, "{error}");
    let why = "`nobody` is not a member of core; there is: ada-lead, linus";
    assert!(error.contains(why), "{error}");
    assert!(!desk.path(".microai/teams/core/team-memory").exists());
    assert!(hand("linus").ok().starts_with("⏳ Pending"));
    let told = desk.run(&["team", "activate", "core", "linus"]).out;
    assert!(told.starts_with("## Pending Handoffs\n\n## 20"), "{told}");
    assert!(told.ends_with("\n\n---\n\nYou are linus.\n"), "{told}");
    let taken = desk.run(&["team", "accept", "core", "linus"]).ok();
    assert!(taken.starts_with("🔄 In Progress"), "{taken}");
    let finish = ["team", "complete", "core", "linus", "--result", "It holds"];
    assert!(desk.run(&finish).ok().starts_with("✅ Complete"));
    let found = desk
        .run(&["search", "leaks patch", "--kind", "handoff"])
        .ok();
    assert!(found.contains("It leaks"), "{found}");
}

#[test]
fn a_team_is_blocked_and_goes_on() {
    let desk = team();
    let block = ["team", "block", "core", "No access", "--by", "linus"];
    assert_eq!(desk.run(&block).ok(), "wrote BLOCKER-001\n");
    let status = desk.run(&["team", "status", "core"]).ok();
    let line = "BLOCKER-001: No access (owner nobody yet, 0 h ";
    assert!(status.contains(line), "{status}");
    let resolve = ["--resolve", "BLOCKER-001", "--resolution", "Got it"];
    let gone = desk.run(&[&["team", "block", "core"], &resolve[..]].concat());
    assert_eq!(gone.ok(), "resolved BLOCKER-001\n");
    let status = desk.run(&["team", "status", "core"]).ok();
    assert!(
        status.ends_with("nothing waits and nothing is blocked\n"),
        "{status}"
    );
}

#[test]
fn a_rewrite_is_merged_with_what_a_person_wrote() {
    let desk = desk();
    let path = format!("{MEMORY}/context.md");
    let base = read(&desk, &path);
    let base_file = desk.file("base.md", &base);
    let mine = base.replace("## Notes | Ghi chú\n", "## Notes | Ghi chú\n\n- mine\n");
    write(
        &desk,
        &path,
        base.replace(
            "## Blockers | Điểm nghẽn\n",
            "## Blockers | Điểm nghẽn\n\n- a person's\n",
        ),
    );
    let base_file = format!("@{base_file}");
    desk.pipe(
        mine.as_bytes(),
        &[
            "agent",
            "context",
            "coder",
            "--rewrite",
            "-",
            "--base",
            &base_file,
        ],
    )
    .ok();
    let text = read(&desk, &path);
    assert!(
        text.contains("- a person's\n") && text.contains("- mine"),
        "{text}"
    );
}

#[test]
fn many_processes_and_a_person_lose_nothing() {
    let desk = desk();
    let path = format!("{MEMORY}/decisions.md");
    let full = std::env::var_os("MNEMON_TEST_FULL").is_some();
    let (writers, each) = (4, if full { 100 } else { 20 });
    let done = AtomicBool::new(false);
    let hand = std::thread::scope(|scope| {
        let agents: Vec<_> = (0..writers)
            .map(|writer| {
                let desk = &desk;
                scope.spawn(move || {
                    (0..each).for_each(|n| decide(desk, &format!("decision {writer}-{n}")))
                })
            })
            .collect();
        let (desk, done) = (&desk, &done);
        let rewriter = scope.spawn(move || {
            let mut rounds = 0;
            while !done.load(Ordering::SeqCst) {
                desk.run(&[
                    "agent",
                    "context",
                    "coder",
                    "--note",
                    &format!("round {rounds}"),
                ])
                .ok();
                rounds += 1;
            }
            rounds
        });
        // A person adds lines to a file of their own choice, as an editor does: read, change,
        // write beside it, move into place.
        let person = scope.spawn(move || {
            let mut lines = 0;
            while !done.load(Ordering::SeqCst) {
                let text = read(desk, &format!("{MEMORY}/learnings.md"));
                let beside = desk.path("editing.md");
                fs::write(&beside, format!("{text}by hand {lines}\n")).unwrap();
                fs::rename(&beside, desk.path(&format!("{MEMORY}/learnings.md"))).unwrap();
                lines += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            lines
        });
        agents.into_iter().for_each(|agent| agent.join().unwrap());
        done.store(true, Ordering::SeqCst);
        (rewriter.join().unwrap(), person.join().unwrap())
    });
    let text = read(&desk, &path);
    for writer in 0..writers {
        for n in 0..each {
            let heading = format!("## 2025-12-31: decision {writer}-{n}\n");
            assert_eq!(text.matches(&heading).count(), 1, "{heading}");
        }
    }
    let context = read(&desk, &format!("{MEMORY}/context.md"));
    assert!(
        (0..hand.0).all(|n| context.contains(&format!("- round {n}\n"))
            || context.ends_with(&format!("- round {n}")))
    );
    let learnings = read(&desk, &format!("{MEMORY}/learnings.md"));
    assert!((0..hand.1).all(|n| learnings.contains(&format!("by hand {n}\n"))));
}

#[test]
fn bad_files_are_named_and_left_alone() {
    let desk = desk();
    let path = format!("{MEMORY}/decisions.md");
    write(&desk, &path, b"caf\xe9");
    let (code, error) = desk.run(&["agent", "activate", "coder"]).failed();
    assert_eq!(code, 9, "{error}");
    assert!(
        error.contains("decisions.md: is not UTF-8 text (byte 3)"),
        "{error}"
    );
    let file = fs::File::create(desk.path(&path)).unwrap();
    file.set_len(100 * 1024 * 1024).unwrap();
    for args in [
        &["agent", "activate", "coder"][..],
        &["agent", "decide", "coder", "x", "--decision", "y"],
    ] {
        let (code, error) = desk.run(args).failed();
        assert_eq!(code, 6, "{error}");
        assert!(error.contains("has 104857600 bytes"), "{error}");
    }
    assert_eq!(
        fs::metadata(desk.path(&path)).unwrap().len(),
        100 * 1024 * 1024
    );
    fs::remove_file(desk.path(&path)).unwrap();
    fs::remove_dir_all(desk.path(MEMORY)).unwrap();
    write(&desk, MEMORY, "a file");
    for args in [
        &["agent", "activate", "coder"][..],
        &["agent", "decide", "coder", "x", "--decision", "y"],
    ] {
        let (_, error) = desk.run(args).failed();
        assert!(
            error.contains("memory: is a file and should be a folder"),
            "{error}"
        );
    }
    assert_eq!(read(&desk, MEMORY), "a file");
    for name in ["../x", "/etc", "a\tb", "nul", "memory", ""] {
        let (code, error) = desk
            .run(&["agent", "decide", name, "x", "--decision", "y"])
            .failed();
        assert_eq!(code, 2, "{name}: {error}");
    }
    let (code, error) = desk.run(&["agent", "list", "--root", "/"]).failed();
    assert_eq!(code, 2, "{error}");
    let (code, error) = desk
        .run(&["agent", "end", "coder", "--data", "{\"dicisions\": []}"])
        .failed();
    assert_eq!(code, 2);
    assert!(error.contains("unknown field `dicisions`"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_root_is_not_followed() {
    let desk = desk();
    let outside = Sandbox::new();
    fs::write(outside.path("context.md"), "secret words").unwrap();
    fs::remove_dir_all(desk.path(MEMORY)).unwrap();
    std::os::unix::fs::symlink(outside.folder(), desk.path(MEMORY)).unwrap();
    for args in [
        &["agent", "activate", "coder"][..],
        &["agent", "decide", "coder", "x", "--decision", "y"],
        &["agent", "context", "coder", "--note", "n"],
    ] {
        let (code, error) = desk.run(args).failed();
        assert_eq!(code, 2, "{error}");
        assert!(
            error.contains("leads out of the root") && !error.contains("secret"),
            "{error}"
        );
    }
    assert_eq!(
        fs::read_to_string(outside.path("context.md")).unwrap(),
        "secret words"
    );
    assert_eq!(fs::read_dir(outside.folder()).unwrap().count(), 1);
}

#[test]
fn an_agent_that_was_not_there_is_made_and_told() {
    let sandbox = Sandbox::new();
    let agent = |words: &[&str]| sandbox.run(&[&["agent"], words].concat());
    agent(&["new", "coder", "--description", "Writes code"]).ok();
    let ran = agent(&["decide", "codr", "Tea", "--decision", "We take tea"]);
    assert_eq!(ran.code, 0);
    assert!(
        ran.err.contains("no agent `codr` before") && ran.err.contains("coder"),
        "{}",
        ran.err
    );
    agent(&["decide", "coder", "Tea", "--decision", "We take tea"]).ok();
    agent(&["decide", "codr", "Milk", "--decision", "And milk"]).ok();
}
