//! What a command had to do without is printed beside its answer.

use crate::sandbox::Sandbox;

/// Nothing listens on port 1.
pub(crate) const DEAD: &str = "openai:m@http://127.0.0.1:1/v1";

pub(crate) const WRITTEN: &str = "Records were written without a vector";
pub(crate) const SEARCHED: &str = "The search went without an embedder";

#[test]
fn the_command_line_says_that_the_embedder_did_not_answer() {
    for store in ["sqlite:m.db", "jsonl:notes"] {
        let sandbox = Sandbox::new()
            .with("MNEMON_EMBEDDER", DEAD)
            .with("MNEMON_STORE", store);
        // In plain text a notice is a line on stderr; in JSON it is a field of the answer.
        let added = sandbox.run(&["add", "the red bicycle", "--id", "a"]);
        assert_eq!(
            (added.code, added.out.as_str()),
            (0, "stored a (commit 1)\n")
        );
        assert!(
            added.err.starts_with(&format!("note: {WRITTEN}")),
            "{store}: {}",
            added.err
        );
        assert_eq!(added.err.lines().count(), 1, "{}", added.err);
        let found = sandbox.run(&["search", "two wheels"]);
        assert_eq!((found.code, found.out.as_str()), (0, "nothing known; --min-score 0 shows the nearest records\n"));
        assert!(
            found.err.starts_with(&format!("note: {SEARCHED}")),
            "{}",
            found.err
        );
        for (args, begins) in [
            (&["add", "a bell", "--json"][..], WRITTEN),
            (&["note", "add", "a lamp", "--json"], WRITTEN),
            (&["search", "bicycle", "--json"], SEARCHED),
            (&["note", "search", "lamp", "--json"], SEARCHED),
            (
                &[
                    "context",
                    "--user",
                    "u",
                    "--session",
                    "s",
                    "--query",
                    "lamp",
                    "--json",
                ],
                SEARCHED,
            ),
        ] {
            let answer = sandbox.run(args).json();
            let notices = answer["notices"].as_array().unwrap();
            assert_eq!(notices.len(), 1, "{args:?}: {notices:?}");
            assert!(
                notices[0].as_str().unwrap().starts_with(begins),
                "{notices:?}"
            );
        }
    }
    // What an export prints is records, and nothing else.
    let sandbox = Sandbox::new().with("MNEMON_EMBEDDER", DEAD);
    sandbox.run(&["add", "the red bicycle"]);
    assert!(!sandbox.run(&["export", "--json"]).ok().contains("notices"));
    let kept = sandbox.run(&["upkeep"]);
    assert_eq!(kept.code, 0, "{}", kept.err);
    assert!(
        kept.err
            .starts_with("note: Records without a vector were not embedded")
    );
}

#[test]
fn a_healthy_command_prints_no_notice() {
    for embedder in ["builtin", "none"] {
        let sandbox = Sandbox::new().with("MNEMON_EMBEDDER", embedder);
        sandbox.run(&["add", "the red bicycle"]).ok();
        sandbox.run(&["search", "bicycle"]).ok();
        sandbox.run(&["upkeep"]).ok();
        for args in [
            &["add", "a bell", "--json"][..],
            &["search", "bell", "--json"],
        ] {
            assert!(sandbox.run(args).json().get("notices").is_none());
        }
    }
}
