//! The tiers of a session, in files and in the store, as users meet them.

use crate::sandbox::Sandbox;

const PLACES: [&[&str]; 2] = [&["--files", "project"], &[]];

fn run(sandbox: &Sandbox, args: &[&str], place: &[&str]) -> String {
    sandbox.run(&[&["tiers"], args, place].concat()).ok()
}

#[test]
fn lines_are_kept_shown_summed_up_and_found() {
    for place in PLACES {
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path("project")).unwrap();
        sandbox.config("[memory]\nhot_window_size = 6\nmax_tokens = 100\n");
        let first = run(&sandbox, &["append", "s1", "Plan the walnut cake"], place);
        assert_eq!(first, "appended at 0; 1 line in view\n");
        let action = [
            "append",
            "s1",
            "--type",
            "action",
            "--tool",
            "bake",
            "{\"hot\":180}",
        ];
        run(&sandbox, &action, place);
        run(
            &sandbox,
            &["append", "s1", "--type", "observation", "it is done"],
            place,
        );
        let shown = run(&sandbox, &["boot", "s1"], place);
        assert!(
            shown.starts_with(
                "User: Plan the walnut cake\nAction: bake {\"hot\":180}\nObservation: it is done\n"
            ),
            "{shown}"
        );
        let small = run(&sandbox, &["compress", "s1"], place);
        assert!(small.contains("small enough"), "{small}");
        let empty = [&["tiers", "append", "s1", ""], place].concat();
        let (code, error) = sandbox.run(&empty).failed();
        assert!(code == 2 && error.contains("content: is empty"), "{error}");
        for n in 0..6 {
            let line = format!("We decided that guest number {n} gets tea with milk and honey");
            run(
                &sandbox,
                &["append", "s1", "--type", "thought", &line],
                place,
            );
        }
        assert!(run(&sandbox, &["boot", "s1"], place).contains("due to be compressed"));
        let done = run(&sandbox, &["compress", "s1"], place);
        assert!(done.starts_with("history-001.md: 3 lines, "), "{done}");
        // The window may need another page, but never one of lines that have one.
        let again = run(&sandbox, &["compress", "s1"], place);
        assert!(again.starts_with("history-002.md: 1 line, "), "{again}");
        for _ in 0..2 {
            let done = run(&sandbox, &["compress", "s1"], place);
            assert!(done.contains("nothing was compressed"), "{done}");
        }
        let found = run(&sandbox, &["query", "walnut", "cake"], place);
        assert!(found.contains("Plan the walnut cake"), "{found}");
        let found = run(&sandbox, &["query", "History 001", "--limit", "9"], place);
        assert!(found.contains("history-001.md: "), "{found}");
        let page = sandbox.path("project/.airsspec/knowledge/library/history-001.md");
        assert_eq!(page.exists(), !place.is_empty());
    }
}

#[test]
fn a_log_with_damage_says_what_was_skipped() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("p/.airsspec/contexts/agent")).unwrap();
    sandbox.file(
        "p/.airsspec/contexts/agent/s1.jsonl",
        "{\"type\":\"user\",\"content\":\"one\"}\r\nnonsense\n{\"type\":\"user\",\"content\":\"tw",
    );
    let ran = sandbox.run(&["tiers", "boot", "s1", "--files", "p"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.starts_with("User: one\n"), "{}", ran.out);
    assert!(
        ran.err.contains("was cut off while it was written"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("it is not a JSON object"), "{}", ran.err);
    let json = sandbox
        .run(&["tiers", "boot", "s1", "--files", "p", "--json"])
        .json();
    assert_eq!(
        (json["skipped"].as_u64(), json["lines"][0]["at"].as_u64()),
        (Some(2), Some(0))
    );
}

#[test]
fn the_projects_own_settings_go_before_ours() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("p/.airsspec")).unwrap();
    sandbox.config("[memory]\nhot_window_size = 3\nmax_tokens = 10\n");
    sandbox.file(
        "p/.airsspec/airsspec.toml",
        "[memory]\nhot_window_size = 2\n",
    );
    for n in 0..4 {
        run(
            &sandbox,
            &["append", "s1", &format!("line {n}")],
            &["--files", "p"],
        );
        run(&sandbox, &["append", "s1", &format!("line {n}")], &[]);
    }
    let lines = |place: &[&str]| {
        let args = [&["tiers", "boot", "s1", "--json"], place].concat();
        let boot = sandbox.run(&args).json();
        (
            boot["lines"].as_array().unwrap().len(),
            boot["is_over"].as_bool().unwrap(),
        )
    };
    assert_eq!(
        lines(&["--files", "p"]),
        (2, true),
        "what it does not say is ours"
    );
    assert_eq!(lines(&[]), (3, true));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let sandbox = Sandbox::new();
    for (args, why) in [
        (&["append", "../s1", "x"][..], "session"),
        (&["append", "s1", "--type", "action", "{}"], "--tool"),
        (
            &[
                "append", "s1", "--type", "action", "--tool", "t", "not json",
            ],
            "must be JSON",
        ),
        (&["query", " "], "is empty"),
        (&["query", "x", "--limit", "0"], "between 1 and"),
    ] {
        let (code, error) = sandbox.run(&[&["tiers"], args].concat()).failed();
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(why), "{args:?}: {error}");
    }
}

#[test]
fn a_conversation_can_be_frozen_in_files_too() {
    let sandbox = Sandbox::new();
    let append = [
        "chat",
        "append",
        "s1",
        "Where is the tea house?",
        "--files",
        "p",
    ];
    sandbox.run(&append).ok();
    let shown = run(&sandbox, &["boot", "s1"], &["--files", "p"]);
    assert!(
        shown.starts_with("User: Where is the tea house?\n"),
        "{shown}"
    );
}
