//! Tenants never meet, in files neither: sessions in a folder, agents' Markdown, frozen logs.

use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;

/// What only the tenant `aa` knows.
pub(crate) const SECRET: &str = "zanzibar";

/// Everything that goes into files, written by this tenant.
pub(crate) fn write(sandbox: &Sandbox, tenant: &str) {
    let run = |args: &[&str]| {
        let ran = sandbox.run(&[args, &["--tenant", tenant]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    };
    let state = format!("{{\"memory\": {{\"text\": \"{SECRET}\"}}}}");
    let saved = [
        "session", "save", "s1", "--folder", "states", "--tenant", tenant,
    ];
    sandbox.pipe(state.as_bytes(), &saved).ok();
    run(&["agent", "new", "coder", "--description", SECRET]);
    let decide = ["agent", "decide", "coder", "Sail", "--decision", SECRET];
    run(&decide);
    run(&["chat", "append", "t1", SECRET, "--files", "."]);
}

/// Every file below the folder, except those of stores.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with(".mnemon") || path.ends_with(".local") => {}
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn a_tenants_files_are_read_by_nobody_else() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init"]).ok();
    write(&sandbox, "aa");
    let own = sandbox.run(&["search", SECRET, "--tenant", "aa"]);
    assert!(own.out.contains(SECRET), "{}", own.out);
    for tenant in ["bb", "default"] {
        for (args, code) in [
            (&["session", "load", "s1", "--folder", "states"][..], 3),
            (&["session", "list", "--folder", "states"], 0),
            (&["agent", "list"], 0),
            (&["agent", "activate", "coder"], 3),
            (&["chat", "show", "t1", "--files", "."], 3),
            (&["chat", "query", SECRET, "--files", "."], 0),
            (&["search", SECRET], 0),
            (
                &[
                    "context",
                    "--user",
                    "u",
                    "--session",
                    "t1",
                    "--query",
                    SECRET,
                ],
                0,
            ),
            (&["list"], 0),
        ] {
            let ran = sandbox.run(&[args, &["--tenant", tenant, "--json"]].concat());
            let all = format!("{}{}", ran.out, ran.err);
            assert_eq!(ran.code, code, "{tenant} {args:?}: {all}");
            // What was asked for may be said again.
            let asked = format!("\"query\":\"{SECRET}\"");
            let told = all.replace(' ', "").replace(&asked, "");
            assert!(!told.contains(SECRET), "{tenant} {args:?}: {all}");
            assert!(
                !all.contains("coder") || code == 3,
                "{tenant} {args:?}: {all}"
            );
        }
    }
}

#[test]
fn the_default_tenants_files_lie_where_the_formats_say() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init"]).ok();
    let paths = |sandbox: &Sandbox| -> Vec<String> {
        let all = files(sandbox.folder());
        let below = all
            .iter()
            .map(|path| path.strip_prefix(sandbox.folder()).unwrap());
        let mut below: Vec<String> = below.map(|path| path.display().to_string()).collect();
        below.sort();
        below
    };
    write(&sandbox, "default");
    let own = paths(&sandbox);
    for expected in [
        "states/s1.json",
        ".microai/agents/coder/memory/decisions.md",
        ".airsspec/contexts/agent/t1.jsonl",
    ] {
        assert!(own.contains(&expected.to_owned()), "{expected}: {own:?}");
    }
    assert!(!own.iter().any(|path| path.contains("tenants")), "{own:?}");
    // Another tenant writes the same files, each into its own folders.
    write(&sandbox, "aa");
    let new = paths(&sandbox);
    let others: Vec<&String> = new.iter().filter(|path| !own.contains(path)).collect();
    assert!(
        others.iter().all(|path| path.contains("tenants/aa/")),
        "{others:?}"
    );
    let without = others.iter().map(|path| path.replace("tenants/aa/", ""));
    let mut without: Vec<String> = without.collect();
    without.sort();
    assert_eq!(without, own);
}
