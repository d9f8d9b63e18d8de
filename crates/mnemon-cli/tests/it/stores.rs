//! The command line over every store that keeps something: the list is the adapters' own, so a new
//! store is tried as soon as it is known.

use mnemon_operations::wiring::SCHEMES;

use crate::sandbox::Sandbox;

/// A URL of each known form, in the sandbox's folder.
fn urls() -> Vec<String> {
    let forms = SCHEMES.iter().map(|(form, _)| *form);
    forms
        .filter(|form| form.ends_with("PATH") || form.ends_with("DIR"))
        .map(|form| form.replace("PATH", "store").replace("DIR", "store"))
        .collect()
}

#[test]
fn a_memory_lives_its_life() {
    assert!(!urls().is_empty());
    for url in urls() {
        live(&Sandbox::new().with("MNEMON_STORE", &url), &url);
    }
}

fn live(sandbox: &Sandbox, url: &str) {
    sandbox.note("a", "Ann prefers tea");
    let child = ["add", "buy tea", "--id", "b", "--derived-from", "a"];
    sandbox.run(&child).ok();
    let exported = sandbox.run(&["export"]).ok();
    assert_eq!(exported.lines().count(), 2, "{url}");

    sandbox.run(&["forget", "a"]).ok();
    assert_eq!(sandbox.run(&["list"]).ok(), "nothing\n", "{url}");
    sandbox.run(&["undo"]).ok();
    let listed = sandbox.run(&["list", "--json"]).json();
    assert_eq!(listed["records"].as_array().unwrap().len(), 2, "{url}");

    let purged = sandbox.run(&["forget", "a", "--purge", "--yes", "--json"]);
    assert_eq!(purged.code, 0, "{url}: {}", purged.err);
    assert_eq!(sandbox.run(&["history"]).ok(), "nothing\n", "{url}");
    sandbox.pipe(exported.as_bytes(), &["import", "-"]).ok();
    let stats = sandbox.run(&["stats", "--json"]).json();
    assert_eq!(stats["records"], 2, "{url}");
    sandbox.run(&["upkeep"]).ok();
    sandbox.run(&["doctor"]).ok();
}

/// On the server that `./scripts/test` starts; without one this does nothing.
#[cfg(feature = "postgres")]
#[test]
fn a_memory_lives_its_life_in_a_database_and_shows_no_password() {
    let Ok(url) = std::env::var("TEST_DATABASE_URL") else {
        return;
    };
    let (start, host) = url.rsplit_once('@').unwrap();
    let (_, password) = start.rsplit_once(':').unwrap();
    let tenant = format!("t{}", std::process::id());
    let sandbox = Sandbox::new().with("MNEMON_TENANT", &tenant);
    let sandbox = sandbox.with("MNEMON_STORE", &url);
    live(&sandbox, host);
    let found = sandbox.run(&["search", "what does Ann drink"]).ok();
    assert!(found.contains("Ann prefers tea"), "{found}");
    for args in [
        &["stats", "--verbose"] as &[&str],
        &["config"],
        &["doctor"],
        &["backup", "b.db"],
        &[
            "list",
            "--store",
            &format!("postgres://ann:{password}@{host}"),
        ],
        &[
            "list",
            "--store",
            &format!("postgres://ann:{password}@nowhere.invalid/d"),
        ],
        &[
            "list",
            "--store",
            &format!("postgre://ann:{password}@{host}"),
        ],
    ] {
        let said = sandbox.run(args);
        let shown = format!("{}{}", said.out, said.err);
        assert!(
            !shown.is_empty() && !shown.contains(password),
            "{args:?}: {shown}"
        );
    }
}

#[test]
fn what_one_store_exports_another_imports_alike() {
    let first = Sandbox::new();
    first.note("a", "記憶");
    first.note("b", "trí nhớ");
    let lines = first.run(&["export"]).ok();
    for url in urls() {
        let sandbox = Sandbox::new().with("MNEMON_STORE", &url);
        sandbox.pipe(lines.as_bytes(), &["import", "-"]).ok();
        assert_eq!(sandbox.run(&["export"]).ok(), lines, "{url}");
    }
}
