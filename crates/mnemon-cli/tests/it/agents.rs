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
    let begins = "## Agent Memory\n\n### Current Context\n\n# Current Context\n";
    assert!(told.out.starts_with(begins), "{}", told.out);
    assert!(told.out.contains("- [ ] Fix the race\n"));
    assert!(told.out.contains("| Build | Failing | since noon |"));
    let ends = "\n\n---\n\n# coder\n\nWrites the code\n";
    assert!(told.out.ends_with(ends), "{}", told.out);
    let noted: Vec<&str> = told.err.lines().collect();
    assert_eq!(noted.len(), 4, "{noted:?}");
    assert!(noted[1].starts_with("note: decisions: "), "{noted:?}");
    assert!(noted[1].ends_with(" tokens, 1 entry"), "{noted:?}");
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
        "archive": {"summary": "@ada fixed the race."}}"#;
    let end = ["agent", "end", "coder", "--data", "-"];
    let ended = desk.pipe(session.as_bytes(), &end).ok();
    let changes = "ticked: Fix the race\nremoved blocker: No access\nset next steps: 1\nwrote ";
    assert!(ended.starts_with(changes), "{ended}");
    assert_eq!(ended.lines().count(), 6, "{ended}");
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

#[test]
fn an_archived_session_has_the_date_of_its_file() {
    let desk = desk();
    let path = format!("{MEMORY}/sessions/2020-05-05.md");
    write(
        &desk,
        &path,
        "# Session: 2020-05-05\n\nThe walrus was fed.\n",
    );
    let search = |words: &[&str]| desk.run(&[&["search", "walrus", "--json"], words].concat());
    let found = search(&[]).json();
    let created = found["hits"][0]["record"]["created"].as_str().unwrap();
    assert!(created.starts_with("2020-05-05T00:00:00"), "{found}");
    let recent = search(&["--since", "30d"]).ok();
    assert!(!recent.contains("walrus was fed"), "{recent}");
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
        let more = ["--deliverable", "a patch", "--file", "a.rs", "the leak"];
        desk.run(&[&who[..], &what, &more].concat())
    };
    let (code, error) = hand("nobody").failed();
    assert_eq!(code, 3, "{error}");
    let why = "`nobody` is not a member of core; known: ada-lead, linus";
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
    let line = "BLOCKER-001: No access (owner nobody yet, 0 min";
    assert!(status.contains(line), "{status}");
    let resolve = ["--resolve", "BLOCKER-001", "--resolution", "Got it"];
    let gone = desk.run(&[&["team", "block", "core"], &resolve[..]].concat());
    assert_eq!(gone.ok(), "resolved BLOCKER-001\n");
    let status = desk.run(&["team", "status", "core"]).ok();
    assert!(
        status.ends_with("no open handoffs, no blockers\n"),
        "{status}"
    );
}

#[test]
fn a_rewrite_is_merged_with_what_a_person_wrote() {
    let desk = desk();
    let path = format!("{MEMORY}/context.md");
    let base = read(&desk, &path);
    let base_file = desk.file("base.md", &base);
    let mine = base.replace("## Notes\n", "## Notes\n\n- mine\n");
    write(
        &desk,
        &path,
        base.replace("## Blockers\n", "## Blockers\n\n- a person's\n"),
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
        let said = "has 104857600 bytes, at most 8388608 are read";
        assert!(error.contains(said), "{error}");
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
    let said =
        "dicisions: is not a known field; the fields are: agent, --create, --context, --decisions";
    assert!(error.contains(said), "{error}");
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
        assert!(!error.contains("notes.root"), "{error}");
    }
    assert_eq!(
        fs::read_to_string(outside.path("context.md")).unwrap(),
        "secret words"
    );
    assert_eq!(fs::read_dir(outside.folder()).unwrap().count(), 1);
}

#[test]
fn an_unknown_agent_is_an_error_unless_it_is_to_be_made() {
    let desk = desk();
    for words in [
        &["decide", "codr", "Tea", "--decision", "We take tea"][..],
        &["learn", "codr", "Tea", "--pattern", "Boil it"],
        &["context", "codr", "--task", "x"],
        &[
            "end",
            "codr",
            "--data",
            "{\"context\": {\"tasks\": [\"x\"]}}",
        ],
        &["activate", "codr"],
        &["lint", "codr"],
    ] {
        let (code, error) = desk.run(&[&["agent"], words].concat()).failed();
        assert_eq!(code, 3, "{words:?}: {error}");
        let said = "there is no agent `codr`; did you mean `coder`?";
        assert!(error.contains(said), "{words:?}: {error}");
    }
    assert!(!desk.path(".microai/agents/codr").exists());
    let create = [
        "agent",
        "decide",
        "codr",
        "Tea",
        "--decision",
        "x",
        "--create",
    ];
    let made = desk.run(&create);
    assert_eq!(
        (made.code, made.err.as_str()),
        (0, "note: made the agent `codr`\n")
    );
    desk.run(&create).ok();
}

#[test]
fn a_change_says_what_was_changed() {
    let desk = desk();
    let context = |words: &[&str]| desk.run(&[&["agent", "context", "coder"], words].concat());
    assert_eq!(
        context(&["--task", "Fix the race", "--state", "Build", "Failing"]).ok(),
        "added task: Fix the race\nset state: Build: Failing\n"
    );
    assert_eq!(context(&["--done", "race"]).ok(), "ticked: Fix the race\n");
    // A list is the usual content of a section.
    context(&["--section", "Notes", "- only this", "--note", "-5 ms"]).ok();
    let text = context(&[]).ok();
    assert!(
        text.contains("## Notes\n\n- only this\n- -5 ms\n"),
        "{text}"
    );
    let (code, error) = desk
        .run(&["agent", "end", "coder", "--data", "{\"context\": \"text\"}"])
        .failed();
    let said = "--context: `text` is not an object";
    assert!(code == 2 && error.contains(said), "{error}");
    let (_, error) = desk
        .run(&["agent", "end", "coder", "--data", "[]"])
        .failed();
    assert!(error.contains("is not a JSON object"), "{error}");
    let (_, error) = desk.run(&["agent", "end", "coder"]).failed();
    assert!(error.contains("--context: is missing: give"), "{error}");
}

#[test]
fn a_member_and_its_team_are_written_by_name() {
    let desk = Sandbox::new();
    let made = desk.run(&["team", "new", "core", "--lead", "ada", "--member", "linus"]);
    assert!(
        made.ok()
            .contains("created .microai/teams/core/ada/agent.md\n")
    );
    let member = ["agent", "decide", "core/linus", "Use C", "--decision", "C"];
    let wrote = desk.run(&member).ok();
    assert_eq!(
        wrote,
        "wrote .microai/teams/core/linus/memory/decisions.md\n"
    );
    desk.run(&["agent", "context", "core/linus", "--task", "Port it"])
        .ok();
    desk.run(&["team", "context", "core", "--task", "Ship it"])
        .ok();
    let decide = [
        "team",
        "decide",
        "core",
        "Use SQLite",
        "--decision",
        "One file",
    ];
    desk.run(&[&decide[..], &["--approved-by", "ada"]].concat())
        .ok();
    let told = desk.run(&["agent", "activate", "core/linus"]).out;
    for part in ["Ship it", "One file", "Port it", "Member of the team core"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(told, desk.run(&["team", "activate", "core", "linus"]).out);
    let listed = desk.run(&["agent", "list"]).ok();
    assert!(
        listed.contains("core/ada") && listed.contains("core/linus"),
        "{listed}"
    );
    let found = desk
        .run(&["search", "SQLite file", "--kind", "decision", "--json"])
        .json();
    let id = found["hits"][0]["record"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let edited = desk.run(&[
        "team",
        "edit",
        "core",
        &id,
        "--set",
        "Reasoning",
        "- It is small",
    ]);
    assert!(edited.ok().starts_with("changed 20"));
    let removed = desk.run(&["agent", "remove", "core/linus", "Use C"]).ok();
    assert!(
        removed.contains("removed 20") && removed.contains("**Decision**:\nC\n"),
        "{removed}"
    );
    let (code, _) = desk
        .run(&["agent", "remove", "core/linus", "Use C"])
        .failed();
    assert_eq!(code, 3);
    let text = read(&desk, ".microai/teams/core/team-memory/decisions.md");
    assert!(text.contains("**Reasoning**:\n- It is small\n"), "{text}");
}

#[test]
fn the_language_of_new_files_is_a_setting() {
    let desk = Sandbox::new();
    desk.config("agent_language = \"bilingual\"\n");
    desk.run(&["agent", "new", "coder", "--description", "x"])
        .ok();
    let context = read(&desk, &format!("{MEMORY}/context.md"));
    assert!(
        context.contains("## Active Focus | Đang tập trung\n"),
        "{context}"
    );
    desk.config("agent_language = \"fr\"\n");
    let (code, error) = desk.run(&["agent", "list"]).failed();
    assert!(code == 2 && error.contains("en, vi, bilingual"), "{error}");
}

#[test]
fn lint_checks_all_agents_and_fails_on_conflicts() {
    let desk = team();
    desk.run(&["agent", "new", "coder", "--description", "x"])
        .ok();
    assert_eq!(
        desk.run(&["agent", "lint", "--strict"]).ok(),
        "no warnings\n"
    );
    desk.run(&["agent", "context", "coder", "--task", "Do stuff"])
        .ok();
    let warned = desk.run(&["agent", "lint"]).ok();
    assert!(
        warned.contains("context.md:") && warned.contains("`stuff` is vague"),
        "{warned}"
    );
    let strict = desk.run(&["agent", "lint", "--strict", "--json"]);
    assert_eq!(strict.code, 9, "{}", strict.err);
    assert!(
        strict.err.contains("the check found 1 warning"),
        "{}",
        strict.err
    );
    assert!(strict.out.starts_with("{\"warnings\":["), "{}", strict.out);
    let path = ".microai/teams/core/team-memory/blockers.md";
    write(
        &desk,
        path,
        "# B\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> feat\n",
    );
    let failed = desk.run(&["agent", "lint"]);
    assert_eq!(failed.code, 9);
    assert!(
        failed.out.contains(&format!("{path}:2: conflict: ")),
        "{}",
        failed.out
    );
    let told = desk.run(&["team", "activate", "core", "linus"]);
    assert!(told.err.contains(path) && told.code == 0, "{}", told.err);
}

#[test]
fn errors_name_the_option_that_is_wrong() {
    let desk = team();
    desk.run(&["agent", "new", "coder", "--description", "x"])
        .ok();
    let block = ["team", "block", "core"];
    let learn = ["agent", "learn", "coder", "T"];
    let context = ["agent", "context", "coder"];
    for (command, words, said) in [
        (
            &block[..],
            &[][..],
            "title: is missing: A new blocker; or give --resolve",
        ),
        (&block, &["No access"], "--by: is missing"),
        (&block, &["--resolve", "1"], "--resolution: is missing"),
        (
            &block,
            &["x", "--by", "linus", "--resolve", "1", "--resolution", "y"],
            "title: is given together with --resolve",
        ),
        (&learn, &["--why", "x"], "--pattern: is missing"),
        (
            &learn,
            &["--pattern", "x", "--language", "go"],
            "--code: is missing",
        ),
        (&context, &["--rewrite", "x"], "--base: is missing"),
        (
            &context,
            &["--note", "--task"],
            "'--note <TEXT>': is an option",
        ),
        (
            &["agent", "decide", "coder", "T"],
            &["--decision", "x", "--reason", "a\nb"],
            "--reason: ",
        ),
    ] {
        let (code, error) = desk.run(&[command, words].concat()).failed();
        assert_eq!(code, 2, "{words:?}: {error}");
        assert!(error.contains(said), "{words:?}: {error}");
    }
    let rows = ["--state", "Build", "Passing", "--state", "Docs", "Missing"];
    let changed = desk.run(&[&context[..], &rows].concat()).ok();
    assert_eq!(
        changed,
        "set state: Build: Passing\nset state: Docs: Missing\n"
    );
}

#[test]
fn one_bad_file_does_not_hide_the_others() {
    let desk = team();
    desk.run(&["agent", "new", "coder", "--description", "x"])
        .ok();
    let bad = [
        ".microai/teams/core/linus/agent.md",
        ".microai/agents/zoe/agent.md",
        ".microai/agents/coder/memory/learnings.md",
    ];
    for path in bad {
        write(&desk, path, b"caf\xe9");
    }
    let said = "linus/agent.md: is not UTF-8 text (byte 3)";
    for (words, others) in [
        (["agent", "list"], &["coder", "core/ada-lead", "zoe"][..]),
        (["team", "list"], &["ada-lead linus"]),
    ] {
        let listed = desk.run(&words);
        assert_eq!(listed.code, 0, "{words:?}: {}", listed.err);
        assert!(listed.err.contains(said), "{words:?}: {}", listed.err);
        for other in others {
            assert!(listed.out.contains(other), "{words:?}: {}", listed.out);
        }
    }
    let json = desk.run(&["team", "list", "--json"]).json();
    assert_eq!(json["teams"][0]["problems"][0]["file"], bad[0], "{json}");
    let told = desk.run(&["team", "activate", "core", "ada-lead"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let linted = desk.run(&["agent", "lint"]);
    assert_eq!(linted.code, 9, "{}", linted.err);
    for path in bad {
        let line = format!("{path}:1: unreadable: is not UTF-8 text (byte 3)");
        assert!(linted.out.contains(&line), "{line}: {}", linted.out);
    }
}

#[test]
fn a_text_with_a_rule_stays_one_entry() {
    let desk = desk();
    let path = format!("{MEMORY}/decisions.md");
    let text = "One\n\n---\n\nTwo\n\n```yaml\na: 1\n---\nb: 2\n```";
    let logged = ["agent", "decide", "coder", "Rules", "--decision", text];
    desk.run(&logged).ok();
    decide(&desk, "After");
    // Other readers split the file at `---`.
    let entries = |desk: &Sandbox| read(desk, &path).split("\n---\n").count();
    assert_eq!(entries(&desk), 4, "{}", read(&desk, &path));
    let told = desk.run(&["agent", "activate", "coder"]).out;
    assert!(told.contains("One\n\n***\n\nTwo\n"), "{told}");
    // A person may have written one.
    write(&desk, &path, read(&desk, &path).replace("***", "---"));
    let set = [
        "agent", "edit", "coder", "Rules", "--set", "Decision", "Three",
    ];
    desk.run(&set).ok();
    let log = read(&desk, &path);
    assert!(log.contains("**Decision**:\nThree\n\n---\n"), "{log}");
    assert!(!log.contains("Two") && log.contains("After"), "{log}");
    write(&desk, &path, log.replace("Three", "Three\n\n---\n\nFour"));
    let removed = desk.run(&["agent", "remove", "coder", "Rules"]).ok();
    assert!(removed.contains("Four"), "{removed}");
    let log = read(&desk, &path);
    assert!(!log.contains("Four") && log.contains("After"), "{log}");
}

#[test]
fn a_team_does_not_silently_keep_its_lead() {
    let desk = Sandbox::new();
    let new = |words: &[&str]| desk.run(&[&["team", "new", "core"], words].concat());
    new(&["--lead", "ada", "--member", "linus"]).ok();
    let (code, error) = new(&["--lead", "linus", "--member", "ken"]).failed();
    assert_eq!(code, 2, "{error}");
    let said = "--lead: `linus` cannot lead core: `ada` does";
    assert!(error.contains(said), "{error}");
    assert!(!desk.path(".microai/teams/core/ken").exists());
    new(&["--lead", "ada", "--member", "ken"]).ok();
    let other = |words: &[&str]| desk.run(&[&["team", "new", "web"], words].concat());
    other(&["--member", "tim"]).ok();
    let (_, error) = other(&["--lead", "tim"]).failed();
    let said = "set is_lead: true in .microai/teams/web/tim/agent.md";
    assert!(error.contains(said), "{error}");
    other(&["--lead", "eva"]).ok();
}

#[test]
fn entries_of_files_are_not_forgotten_in_the_index() {
    let desk = desk();
    desk.run(&["init"]).ok();
    decide(&desk, "Use zebras for transport");
    desk.run(&["add", "--kind", "decision", "We drink tea"])
        .ok();
    let hit = |desk: &Sandbox| {
        let found = desk.run(&["search", "zebras transport", "--json"]).json();
        found["hits"][0]["record"]["id"].as_str().map(str::to_owned)
    };
    let id = hit(&desk).unwrap();
    let (code, error) = desk.run(&["forget", &id, "--yes"]).failed();
    assert_eq!(code, 2, "{error}");
    let said = "is an entry of an agent's file; remove it with `mnemon agent remove`";
    assert!(error.contains(said), "{error}");
    // A filter leaves them out.
    desk.run(&["forget", "--kind", "decision", "--yes"]).ok();
    assert_eq!(hit(&desk), Some(id.clone()));
    let tea = desk.run(&["search", "drink tea", "--json"]).ok();
    assert!(!tea.contains("We drink tea"), "{tea}");
    // An undo of the commit that indexed them is made good by the next search.
    desk.run(&["undo", "--record", &id]).ok();
    assert_eq!(hit(&desk), Some(id));
}

/// Runs a command in a folder below the sandbox.
fn run_in(desk: &Sandbox, folder: &str, args: &[&str]) -> (i32, String) {
    let mut command = desk.command();
    command.current_dir(desk.path(folder)).args(args);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

#[test]
fn the_files_are_found_from_a_folder_below() {
    let desk = Sandbox::new();
    fs::create_dir_all(desk.path("shop/src/deep")).unwrap();
    let new = ["agent", "new", "coder", "--description", "x"];
    assert_eq!(run_in(&desk, "shop", &new).0, 0);
    let decide = ["agent", "decide", "coder", "Tea", "--decision", "tea"];
    let (code, said) = run_in(&desk, "shop/src/deep", &decide);
    assert_eq!(code, 0, "{said}");
    assert!(read(&desk, "shop/.microai/agents/coder/memory/decisions.md").contains("Tea"));
    assert!(!desk.path("shop/src/deep/.microai").exists());
    // A folder below that is a project of its own has its own agents.
    fs::create_dir_all(desk.path("shop/src/.git")).unwrap();
    let (code, said) = run_in(&desk, "shop/src/deep", &decide);
    assert_eq!(code, 3, "{said}");
    // The user's own folder belongs to no project.
    fs::create_dir_all(desk.path("other")).unwrap();
    assert_eq!(run_in(&desk, ".", &new).0, 0);
    assert_eq!(
        run_in(&desk, "other", &["agent", "list"]).1.lines().count(),
        1
    );
    let (code, said) = run_in(&desk, "other", &decide);
    assert_eq!(code, 3, "{said}");
}

#[cfg(unix)]
#[test]
fn a_folder_above_that_leads_elsewhere_is_not_used() {
    let desk = Sandbox::new();
    let outside = self::desk();
    fs::create_dir_all(desk.path("shop/src")).unwrap();
    std::os::unix::fs::symlink(outside.path(".microai"), desk.path("shop/.microai")).unwrap();
    let (code, said) = run_in(&desk, "shop/src", &["agent", "activate", "coder"]);
    assert_eq!(code, 3, "{said}");
}

/// The examples in the help of a command, and of its subcommands.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
    let commands = lines.filter(|line| line.contains("mnemon ") || line.starts_with("mkdir "));
    commands.map(str::to_owned).collect()
}

#[cfg(unix)]
#[test]
fn examples_run_as_they_are_written() {
    let all = mnemon_cli::cli::command();
    for name in ["agent", "team", "completions", "man", "demo"] {
        let command = all.find_subcommand(name).unwrap();
        let below = command.get_subcommands().map(examples);
        for lines in [examples(command)].into_iter().chain(below) {
            run_script(&lines.join("\n"));
        }
    }
}

#[cfg(unix)]
#[test]
fn the_steps_of_the_agents_page_run_as_they_are_written() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agent-files.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh\n").skip(1);
    let blocks: Vec<&str> = blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 2, "{blocks:?}");
    run_script(&blocks.join("\n"));
}

/// Runs lines of a shell in an empty folder, without a terminal; each must succeed.
#[cfg(unix)]
fn run_script(lines: &str) {
    let desk = Sandbox::new();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_mnemon"));
    let folder = program.parent().unwrap().display();
    let output = std::process::Command::new("sh")
        .args(["-e", "-c", lines])
        .current_dir(desk.folder())
        .env_clear()
        .env("HOME", desk.folder())
        .env("PATH", format!("{folder}:/usr/bin:/bin"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{lines}\n{said}");
}
