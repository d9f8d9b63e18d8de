//! Taking in files and folders, with the program as users run it.

use std::fs;

use serde_json::Value;

use crate::sandbox::Sandbox;

/// A folder of three documents and some things that are none.
fn folder() -> Sandbox {
    let sandbox = Sandbox::new();
    for folder in ["docs", "docs/src"] {
        fs::create_dir(sandbox.path(folder)).unwrap();
    }
    let part = |name: &str, word: &str| {
        format!(
            "## {name}\n\n{}\n\n",
            format!("The {word} is here. ").repeat(20)
        )
    };
    let guide = format!(
        "# Kettles\n\n{}{}",
        part("Descaling", "vinegar"),
        part("Repair", "fuse")
    );
    sandbox.file("docs/guide.md", guide);
    sandbox.file(
        "docs/page.html",
        "<title>Tea</title><h2>Milk</h2><p>Never with milk.</p><script>x</script>",
    );
    sandbox.file(
        "docs/src/boil.py",
        "def boil(kettle):\n    return kettle.heat()\n",
    );
    sandbox.file("docs/photo.png", b"\x89PNG\0");
    sandbox.file("docs/blob.txt", b"a\0b");
    sandbox.file("docs/empty.md", "");
    sandbox
}

/// Chunks that hold the words.
fn search(sandbox: &Sandbox, query: &str) -> Vec<Value> {
    let args = [
        "search", query, "--kind", "chunk", "--recipe", "words", "--json",
    ];
    let found = sandbox.run(&args).json();
    found["hits"].as_array().unwrap().clone()
}

fn ingest(sandbox: &Sandbox, args: &[&str]) -> Value {
    let args: Vec<&str> = [&["ingest", "--json"], args].concat();
    sandbox.run(&args).json()
}

fn counts(told: &Value) -> [u64; 6] {
    [
        "added",
        "replaced",
        "unchanged",
        "pruned",
        "skipped",
        "failed",
    ]
    .map(|name| told[name].as_u64().unwrap())
}

#[test]
fn a_folder_is_taken_in_and_found_again() {
    let sandbox = folder();
    let out = sandbox.run(&["ingest", "docs"]).ok();
    insta::assert_snapshot!(sandbox.redact(&out));
    let hits = search(&sandbox, "descaling");
    assert_eq!(hits[0]["record"]["summary"], "Kettles › Descaling");
    let path = sandbox.path("docs/guide.md").canonicalize().unwrap();
    assert_eq!(hits[0]["record"]["source"], path.display().to_string());
    assert_eq!(
        search(&sandbox, "never with milk")[0]["record"]["summary"],
        "Tea › Milk"
    );
    assert_eq!(
        search(&sandbox, "boil")[0]["record"]["metadata"]["language"],
        "python"
    );
    let shown = sandbox.run(&["search", "vinegar", "--kind", "chunk"]).ok();
    assert!(
        shown.contains("docs/guide.md › Kettles › Descaling\n"),
        "{shown}"
    );
}

#[test]
fn taking_it_in_again_replaces_what_changed() {
    let sandbox = folder();
    assert_eq!(counts(&ingest(&sandbox, &["docs"])), [3, 0, 0, 0, 3, 0]);
    let state = sandbox.state();
    assert_eq!(counts(&ingest(&sandbox, &["docs"])), [0, 0, 3, 0, 3, 0]);
    assert_eq!(sandbox.state(), state, "nothing is written");

    let guide = fs::read_to_string(sandbox.path("docs/guide.md")).unwrap();
    sandbox.file("docs/guide.md", guide.replace("fuse", "switch"));
    let told = ingest(&sandbox, &["docs"]);
    assert_eq!(counts(&told), [0, 1, 2, 0, 3, 0]);
    assert_eq!(
        told["chunks"],
        serde_json::json!({"added": 1, "kept": 1, "removed": 1})
    );
    assert!(search(&sandbox, "fuse").is_empty());
    assert_eq!(search(&sandbox, "switch").len(), 1);

    let undo = told["commit"].as_u64().unwrap().to_string();
    sandbox.run(&["undo", &undo]).ok();
    assert_eq!(search(&sandbox, "fuse").len(), 1);
    assert!(search(&sandbox, "switch").is_empty());
    assert_eq!(
        counts(&ingest(&sandbox, &["docs"])),
        [0, 1, 2, 0, 3, 0],
        "the file still differs"
    );
}

#[test]
fn a_folder_of_many_files_is_one_undo() {
    let sandbox = Sandbox::new();
    sandbox.run(&["add", "a note"]).ok();
    fs::create_dir(sandbox.path("many")).unwrap();
    for number in 0..600 {
        let text = format!("# File {number}\n\nAbout the number {number}.\n");
        sandbox.file(&format!("many/{number}.md"), text);
    }
    let told = ingest(&sandbox, &["many"]);
    assert_eq!(counts(&told), [600, 0, 0, 0, 0, 0]);
    let records = || sandbox.run(&["stats", "--json"]).json()["records"].clone();
    assert_eq!(records(), 1201);
    let undone = sandbox.run(&["undo"]).ok();
    assert!(undone.contains("(1200 records)"), "{undone}");
    assert_eq!(records(), 1);
    let commit = told["commit"].as_u64().unwrap().to_string();
    let again = sandbox.run(&["undo", &commit]).ok();
    assert!(again.contains("was already undone by commit"), "{again}");
    sandbox.run(&["undo"]).ok();
    assert_eq!(records(), 1201, "the undo is undone");
}

#[test]
fn a_file_that_is_rewritten_as_it_was_is_unchanged() {
    let sandbox = folder();
    ingest(&sandbox, &["docs"]);
    let guide = fs::read(sandbox.path("docs/guide.md")).unwrap();
    sandbox.file("docs/guide.md", guide);
    assert_eq!(counts(&ingest(&sandbox, &["docs"])), [0, 0, 3, 0, 3, 0]);
}

#[test]
fn documents_whose_files_are_gone_are_pruned_when_asked() {
    let sandbox = folder();
    ingest(&sandbox, &["docs"]);
    ingest(&sandbox, &["docs", "--user", "ann"]);
    sandbox
        .run(&["add", "a note", "--source", "docs/guide.md"])
        .ok();
    fs::remove_file(sandbox.path("docs/guide.md")).unwrap();
    assert_eq!(counts(&ingest(&sandbox, &["docs"])), [0, 0, 2, 0, 3, 0]);
    assert_eq!(search(&sandbox, "vinegar").len(), 2);
    let dry = ingest(&sandbox, &["docs", "--prune", "--dry-run"]);
    assert_eq!(counts(&dry), [0, 0, 2, 1, 3, 0]);
    assert_eq!(search(&sandbox, "vinegar").len(), 2);

    let told = ingest(&sandbox, &["docs", "--prune"]);
    assert_eq!(counts(&told), [0, 0, 2, 1, 3, 0]);
    assert_eq!(told["chunks"]["removed"], 2);
    let left = search(&sandbox, "vinegar");
    assert_eq!(left.len(), 1, "another owner's document stays");
    assert_eq!(left[0]["record"]["owner"]["user"], "ann");
    let undo = told["commit"].as_u64().unwrap().to_string();
    sandbox.run(&["undo", &undo]).ok();
    assert_eq!(search(&sandbox, "vinegar").len(), 2);
}

#[test]
fn a_file_that_is_named_like_a_secret_is_not_pruned() {
    let sandbox = folder();
    let name = format!("docs/gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3.md", "p");
    sandbox.file(&name, "words under an odd name");
    let there =
        |told: &str| search(&sandbox, "odd name").len() == 1 && told.contains("\"pruned\":0");
    for _ in 0..2 {
        let ran = sandbox.run(&["--json", "ingest", "docs", "--prune"]);
        assert!(ran.code == 0 && there(&ran.out), "{}", ran.out);
    }
}

#[test]
fn pruning_one_folder_leaves_the_others() {
    let sandbox = folder();
    fs::create_dir(sandbox.path("docs-old")).unwrap();
    sandbox.file("docs-old/a.md", "old words");
    ingest(&sandbox, &["docs", "docs-old"]);
    fs::remove_file(sandbox.path("docs-old/a.md")).unwrap();
    assert_eq!(ingest(&sandbox, &["docs", "--prune"])["pruned"], 0);
    assert_eq!(search(&sandbox, "old words").len(), 1);
}

#[test]
fn a_dry_run_changes_nothing() {
    let sandbox = folder();
    let out = sandbox
        .run(&["ingest", "docs", "--dry-run", "--exclude", "src/"])
        .ok();
    insta::assert_snapshot!(sandbox.redact(&out));
    assert_eq!(sandbox.run(&["list"]).ok().trim(), "nothing");
}

#[test]
fn owner_and_tags_are_carried_and_a_change_of_tags_relabels() {
    let sandbox = folder();
    ingest(
        &sandbox,
        &["docs/guide.md", "--user", "ann", "--tag", "manual"],
    );
    let hit = &search(&sandbox, "vinegar")[0]["record"];
    assert_eq!(hit["owner"]["user"], "ann");
    assert_eq!(hit["tags"], serde_json::json!(["manual"]));
    let told = ingest(
        &sandbox,
        &["docs/guide.md", "--user", "ann", "--tag", "old"],
    );
    assert_eq!(counts(&told), [0, 1, 0, 0, 0, 0]);
    assert_eq!(
        search(&sandbox, "vinegar")[0]["record"]["tags"],
        serde_json::json!(["old"])
    );
}

#[test]
fn what_is_named_and_cannot_be_taken_in_is_an_error() {
    let sandbox = folder();
    sandbox.file("huge.txt", vec![b'x'; 50 * 1024 * 1024]);
    sandbox.file("latin.txt", b"caf\xe9");
    sandbox.file(
        "crumbs.md",
        (0..10_000)
            .map(|n| format!("# {n}\n\n{}\n\n", "x".repeat(300)))
            .collect::<String>(),
    );
    let failed = |path: &str| {
        let (code, said) = sandbox.run(&["ingest", path]).failed();
        (code, sandbox.redact(&said))
    };
    let (code, said) = failed("huge.txt");
    assert_eq!(code, 6);
    assert!(
        said.contains("huge.txt was not ingested: it has 52428800 bytes, at most 10485760"),
        "{said}"
    );
    let (code, said) = failed("crumbs.md");
    assert_eq!(code, 6);
    assert!(said.contains("10000 chunks, at most 9998"), "{said}");
    for (path, what) in [
        ("docs/blob.txt", "it is a binary file: it holds NUL bytes"),
        ("latin.txt", "it is a binary file: it is not UTF-8"),
        ("docs/empty.md", "it is empty"),
    ] {
        let (code, said) = failed(path);
        assert_eq!(code, 2, "{said}");
        assert!(
            said.contains(&format!("{path} was not ingested: {what}")),
            "{said}"
        );
    }
    let (code, said) = failed("nowhere");
    assert_eq!(code, 3);
    assert!(said.contains("there is no such file or folder"), "{said}");
    assert_eq!(sandbox.run(&["list"]).ok().trim(), "nothing");
    assert_eq!(sandbox.run(&["ingest"]).failed().0, 2);
    assert_eq!(
        sandbox
            .run(&["ingest", "docs", "--exclude", "a["])
            .failed()
            .0,
        2
    );
}

#[test]
fn the_rest_gets_in_beside_what_cannot() {
    let sandbox = folder();
    sandbox.file(
        "docs/crumbs.md",
        (0..10_000)
            .map(|n| format!("# {n}\n\n{}\n\n", "x".repeat(300)))
            .collect::<String>(),
    );
    let ran = sandbox.run(&["ingest", "nowhere", "docs", "docs/blob.txt", "--json"]);
    assert_ne!(ran.code, 0);
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(counts(&told), [3, 0, 0, 0, 2, 3]);
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("nowhere was not ingested") && message.contains("nor was another path"),
        "{message}"
    );
    assert_eq!(search(&sandbox, "vinegar").len(), 1);
}

#[cfg(unix)]
#[test]
fn links_and_unreadable_files_are_told_and_harmless() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let sandbox = folder();
    symlink(sandbox.path("docs"), sandbox.path("docs/src/loop")).unwrap();
    let locked = sandbox.file("docs/locked.md", "secret");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    let told = ingest(&sandbox, &["docs"]);
    let reason = |name: &str| {
        let files = told["files"].as_array().unwrap();
        let file = files
            .iter()
            .find(|file| file["path"].as_str().unwrap().ends_with(name));
        file.map_or(Value::Null, |file| file["reason"].clone())
    };
    assert!(reason("loop").as_str().unwrap().contains("symbolic link"));
    // One who may read everything reads this, too.
    if fs::read(&locked).is_err() {
        assert!(
            reason("locked.md")
                .as_str()
                .unwrap()
                .contains("cannot be read"),
            "{told}"
        );
        assert_eq!(sandbox.run(&["ingest", &locked]).failed().0, 5);
    }
    assert_eq!(search(&sandbox, "vinegar").len(), 1);
}

#[test]
fn it_works_on_every_store() {
    for store in ["jsonl:store", "sqlite:store.db"] {
        let sandbox = folder().with("MNEMON_STORE", store);
        assert_eq!(ingest(&sandbox, &["docs"])["added"], 3, "{store}");
        assert_eq!(ingest(&sandbox, &["docs"])["unchanged"], 3, "{store}");
        assert_eq!(search(&sandbox, "vinegar").len(), 1, "{store}");
    }
}
