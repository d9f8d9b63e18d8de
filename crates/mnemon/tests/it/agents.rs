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

#[test]
fn a_session_from_activation_to_end() {
    let desk = desk();
    desk.run(&[
        "agent",
        "context",
        "coder",
        "--task",
        "Fix the race",
        "--blocker",
        "No access",
        "--state",
        "Build",
        "Failing",
        "since noon",
    ])
    .ok();
    decide(&desk, "Use channels");
    let code = desk.file("code.go", "select {}\n");
    desk.run(&[
        "agent",
        "learn",
        "coder",
        "Cancel",
        "--pattern",
        "Use select",
        "--code",
        &format!("@{code}"),
        "--language",
        "go",
        "--why",
        "it ends",
    ])
    .ok();
    let told = desk.run(&["agent", "activate", "coder"]);
    assert_eq!(told.code, 0);
    assert!(told.out.starts_with("## Agent Memory | Memory của Agent\n\n### Current Context | Context hiện tại\n\n# Current Context\n"), "{}", told.out);
    assert!(
        told.out.contains("- [ ] Fix the race\n")
            && told.out.contains("| Build | Failing | since noon |")
    );
    assert!(
        told.out
            .ends_with("\n\n---\n\n# coder\n\nWrites the code\n"),
        "{}",
        told.out
    );
    let noted: Vec<&str> = told.err.lines().collect();
    assert_eq!(noted.len(), 4, "{noted:?}");
    assert!(
        noted[1].starts_with("note: decisions: ")
            && noted[1].ends_with(" tokens, 1 entries")
            && noted[3].starts_with("note: together: "),
        "{noted:?}"
    );
    let session = r#"{"context": {"done": ["race"], "resolved": ["No access"], "next": ["Rest"]},
        "decisions": [{"title": "Use Redis", "decision": "Sessions in Redis"}],
        "archive": {"summary": "The race is fixed."}}"#;
    let ended = desk
        .pipe(
            session.as_bytes(),
            &["agent", "end", "coder", "--data", "-"],
        )
        .ok();
    assert_eq!(ended.lines().count(), 3, "{ended}");
    let context = read(&desk, &format!("{MEMORY}/context.md"));
    assert!(
        context.contains("- [x] Fix the race")
            && context.contains("1. Rest")
            && !context.contains("No access")
    );
    assert_eq!(desk.run(&["agent", "context", "coder"]).ok(), context);
    assert!(
        desk.run(&["agent", "lint", "coder"])
            .ok()
            .contains("decisions.md:")
    );
    assert_eq!(
        desk.run(&["agent", "archive", "coder"]).ok(),
        "there was nothing to do\n"
    );
    let report = desk.run(&["agent", "compliance", ".microai"]).ok();
    assert_eq!(report.lines().count(), 9, "{report}");
    assert!(
        report.lines().all(|line| line.starts_with("pass")),
        "{report}"
    );
    assert_eq!(
        desk.run(&["agent", "list", "--json"]).json()["agents"][0]["name"],
        "coder"
    );
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

#[test]
fn a_team_hands_work_on() {
    let desk = Sandbox::new();
    for member in ["ada-lead", "linus"] {
        write(
            &desk,
            &format!(".microai/teams/core/{member}/agent.md"),
            format!("---\nname: {member}\n---\nYou are {member}.\n"),
        );
    }
    assert!(
        desk.run(&["team", "list"])
            .ok()
            .contains("core  ada-lead  ada-lead linus")
    );
    let handoff = [
        "team",
        "handoff",
        "core",
        "--from",
        "ada-lead",
        "--task",
        "Fix it",
        "--context",
        "It leaks",
        "--deliverable",
        "a patch",
        "--file",
        "a.rs=the leak",
    ];
    let (code, error) = desk
        .run(&[&handoff[..], &["--to", "nobody"]].concat())
        .failed();
    assert_eq!(code, 3, "{error}");
    assert!(
        error.contains("`nobody` is not a member of core; there is: ada-lead, linus"),
        "{error}"
    );
    assert!(!desk.path(".microai/teams/core/team-memory").exists());
    desk.run(&[&handoff[..], &["--to", "linus"]].concat()).ok();
    let told = desk.run(&["team", "activate", "core", "linus"]).out;
    assert!(
        told.starts_with("## Pending Handoffs\n\n## 20")
            && told.ends_with("\n\n---\n\nYou are linus.\n"),
        "{told}"
    );
    assert!(
        desk.run(&["team", "accept", "core", "linus"])
            .ok()
            .starts_with("🔄 In Progress")
    );
    assert!(
        desk.run(&["team", "complete", "core", "linus", "--result", "It holds"])
            .ok()
            .starts_with("✅ Complete")
    );
    assert_eq!(
        desk.run(&["team", "block", "core", "No access", "--by", "linus"])
            .ok(),
        "wrote BLOCKER-001\n"
    );
    assert!(
        desk.run(&["team", "status", "core"])
            .ok()
            .contains("BLOCKER-001: No access (owner nobody yet, 0 h 0 min; escalation: none)")
    );
    assert_eq!(
        desk.run(&[
            "team",
            "block",
            "core",
            "--resolve",
            "BLOCKER-001",
            "--resolution",
            "Got it"
        ])
        .ok(),
        "resolved BLOCKER-001\n"
    );
    assert!(
        desk.run(&["team", "status", "core"])
            .ok()
            .ends_with("nothing waits and nothing is blocked\n")
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
