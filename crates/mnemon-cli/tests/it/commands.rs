//! Every command does what it says.

use crate::sandbox::{CREATED, Sandbox};

#[test]
fn what_is_added_is_listed_and_shown() {
    let sandbox = Sandbox::new();
    let mut args = vec![
        "add",
        "Ann",
        "prefers",
        "tea",
        "--id",
        "tea",
        "--created",
        CREATED,
    ];
    args.extend([
        "--user",
        "ann",
        "--agent",
        "planner",
        "--session",
        "s1",
        "--flow",
        "f",
    ]);
    args.extend([
        "--node",
        "n",
        "--tag",
        "drinks",
        "--tag",
        "nước uống",
        "--importance",
        "0.8",
    ]);
    args.extend([
        "--kind",
        "fact",
        "--scope",
        "profile",
        "--namespace",
        "short-term",
    ]);
    args.extend([
        "--source",
        "chat",
        "--summary",
        "tea",
        "--expires",
        "2096-01-31",
    ]);
    args.extend(["--metadata", "cup=large", "--meta-json", r#"{"sugar":0}"#]);
    let added = sandbox.run(&args).ok();
    let listed = sandbox.run(&["list"]).ok();
    let shown = sandbox.run(&["get", "tea"]).ok();
    let json = sandbox.run(&["get", "tea", "--json"]).ok();
    insta::assert_snapshot!(sandbox.redact(&format!("{added}\n{listed}\n{shown}\n{json}")));
}

#[test]
fn listing_cuts_to_the_width_and_cleans_what_it_prints() {
    let sandbox = Sandbox::new().with("COLUMNS", "60");
    sandbox.note("a", "記憶は大切です。忘れないでください。お願いします。");
    sandbox.note("b", "Trời hôm nay đẹp quá, chúng ta đi dạo ngoài phố đi");
    sandbox.note("c", "line one\nline two \u{1b}[31mred\u{1b}[0m");
    insta::assert_snapshot!(sandbox.run(&["list", "--order", "oldest"]).ok());
}

#[test]
fn lists_go_page_by_page() {
    let sandbox = Sandbox::new();
    let drafts: String = (0..25)
        .map(|n| format!("{{\"content\":\"note {n}\",\"id\":\"n{n}\"}}\n"))
        .collect();
    sandbox.pipe(drafts.as_bytes(), &["add", "--jsonl"]).ok();
    for order in ["newest", "oldest", "written"] {
        let mut seen = Vec::new();
        let mut after = Vec::new();
        loop {
            let mut args = vec!["list", "--json", "--limit", "10", "--order", order];
            args.extend(after.iter().map(String::as_str));
            let page = sandbox.run(&args).json();
            let records = page["records"].as_array().unwrap();
            seen.extend(records.iter().map(|record| record["id"].to_string()));
            match page["next"].as_str() {
                Some(next) => after = vec!["--after".to_owned(), next.to_owned()],
                None => break,
            }
        }
        assert_eq!(seen.len(), 25, "{order}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 25, "{order}");
    }
    let text = sandbox.run(&["list", "--limit", "10"]).ok();
    assert!(text.contains("There is more: --after "), "{text}");
}

#[test]
fn filters_choose() {
    let sandbox = Sandbox::new();
    let add = |args: &[&str]| sandbox.run(&[&["add"], args].concat()).ok();
    add(&[
        "a",
        "--id",
        "a",
        "--user",
        "ann",
        "--tag",
        "Red",
        "--created",
        "2026-01-01",
    ]);
    add(&[
        "b",
        "--id",
        "b",
        "--user",
        "bob",
        "--kind",
        "fact",
        "--created",
        "3d",
    ]);
    add(&[
        "c",
        "--id",
        "c",
        "--session",
        "s",
        "--namespace",
        "short-term",
        "--source",
        "web",
    ]);
    let ids = |args: &[&str]| {
        let page = sandbox.run(&[&["list", "--json"], args].concat()).json();
        let records = page["records"].as_array().unwrap();
        let ids = records.iter().map(|record| record["id"].as_str().unwrap());
        ids.collect::<String>()
    };
    assert_eq!(ids(&[]), "cba");
    assert_eq!(ids(&["--user", "ann"]), "ca");
    assert_eq!(ids(&["--user", "ann", "--own"]), "a");
    assert_eq!(ids(&["--tag", "red"]), "a");
    assert_eq!(ids(&["--kind", "fact", "--kind", "note"]), "cba");
    assert_eq!(ids(&["--namespace", "short-term"]), "c");
    assert_eq!(ids(&["--source", "web"]), "c");
    assert_eq!(ids(&["--since", "7d"]), "cb");
    assert_eq!(ids(&["--since", "7d", "--until", "1d"]), "b");
    assert_eq!(ids(&["--until", "2026-01-02"]), "a");
    assert_eq!(ids(&["--user", "nobody"]), "c");
    let own = ["list", "--user", "nobody", "--own"];
    assert_eq!(sandbox.run(&own).ok(), "nothing\n");
}

#[test]
fn content_comes_from_arguments_stdin_or_a_file() {
    let sandbox = Sandbox::new();
    let content = |id: &str| {
        let found = sandbox.run(&["get", id, "--json"]).json();
        found["records"][0].clone()
    };
    sandbox
        .pipe("từ ống\r\n".as_bytes(), &["add", "--id", "piped"])
        .ok();
    assert_eq!(content("piped")["content"], "từ ống");
    sandbox
        .pipe(b"two\nlines\n\n", &["add", "-", "--id", "dash"])
        .ok();
    assert_eq!(content("dash")["content"], "two\nlines\n");
    let file = sandbox.file("note.md", "# Title\n");
    sandbox.run(&["add", "--file", &file, "--id", "file"]).ok();
    let record = content("file");
    assert_eq!(record["content"], "# Title\n");
    assert_eq!(
        (&record["origin"], &record["source"]),
        (&"file".into(), &file.into())
    );
}

#[test]
fn a_time_to_live_is_kept() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["add", "stays", "--id", "stays", "--ttl", "12h"])
        .ok();
    // Last: a write erases what has expired, and a slow machine needs a second for one.
    sandbox
        .run(&["add", "soon gone", "--id", "soon", "--ttl", "1s"])
        .ok();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(sandbox.run(&["get", "soon"]).code, 3);
    let stats = sandbox.run(&["stats", "--json"]).json();
    assert_eq!(
        (&stats["records"], &stats["expired"]),
        (&1.into(), &1.into())
    );
    let upkept = sandbox.run(&["upkeep"]).ok();
    assert_eq!(upkept, "1 expired records erased\nnothing more to do\n");
    let upkept = sandbox.run(&["upkeep", "--limit", "5", "--json"]).json();
    assert_eq!(
        (&upkept["expired"], &upkept["more"]),
        (&0.into(), &false.into())
    );
}

#[test]
fn a_retry_under_a_key_stores_once() {
    let sandbox = Sandbox::new();
    let add = || {
        sandbox
            .run(&["add", "once", "--key", "k1", "--json"])
            .json()
    };
    assert_eq!(add(), add());
    assert_eq!(sandbox.run(&["stats", "--json"]).json()["records"], 1);
    let (code, message) = sandbox.run(&["add", "twice", "--key", "k1"]).failed();
    assert_eq!(code, 4, "{message}");
    assert!(message.contains("`k1` was already used"), "{message}");
}

#[test]
fn statistics_say_how_much_there_is() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "one");
    sandbox
        .run(&["add", "two", "--kind", "message", "--session", "s"])
        .ok();
    sandbox.run(&["forget", "a"]).ok();
    insta::assert_snapshot!(sandbox.redact(&sandbox.run(&["stats"]).ok()));
    insta::assert_snapshot!(sandbox.run(&["stats", "--json"]).ok());
}

#[test]
fn tenants_do_not_see_each_other() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["add", "secret", "--id", "x", "--tenant", "a"])
        .ok();
    assert_eq!(sandbox.run(&["get", "x", "--tenant", "b"]).code, 3);
    assert_eq!(sandbox.run(&["list", "--tenant", "b"]).ok(), "nothing\n");
    assert_eq!(sandbox.run(&["get", "x", "--tenant", "a"]).code, 0);
}

#[test]
fn the_found_are_shown_even_when_one_is_missing() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "here");
    let ran = sandbox.run(&["get", "a", "nope", "--json"]);
    assert_eq!(ran.code, 3);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found["records"][0]["content"], "here");
    assert_eq!(found["missing"][0], "nope");
    let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(error["error"]["kind"], "not-found");
}

#[test]
fn the_doctor_finds_a_healthy_store_healthy_and_mends_another() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:m.db");
    sandbox.note("a", "one");
    let clean = sandbox.run(&["doctor", "--json"]).json();
    assert_eq!(clean["clean"], true);

    let file = rusqlite::Connection::open(sandbox.path("m.db")).unwrap();
    file.execute("UPDATE tally SET count = 7", []).unwrap();
    drop(file);
    let ill = sandbox.run(&["doctor"]);
    assert_eq!(ill.code, 9, "{}", ill.err);
    assert!(ill.out.contains("count the records again"), "{}", ill.out);
    let refused = sandbox.run(&["doctor", "--repair"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("--yes"), "{}", refused.err);
    let mended = sandbox.run(&["doctor", "--repair", "--yes"]).ok();
    assert!(
        mended.contains("done: counted the records again"),
        "{mended}"
    );
    assert_eq!(sandbox.run(&["doctor"]).code, 0);
    assert_eq!(sandbox.run(&["doctor", "--repair"]).code, 0);
}

#[test]
fn the_demo_tells_a_story_and_cleans_up() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().display().to_string();
    let sandbox = Sandbox::new().with("TMPDIR", &temporary);
    let told = sandbox.run(&["demo"]).ok();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(sandbox.folder()).unwrap().count(), 0);
    let steps: Vec<&str> = told
        .lines()
        .filter(|line| {
            line.split('.')
                .next()
                .is_some_and(|n| n.parse::<u32>().is_ok())
        })
        .map(|line| line.split(" in /").next().unwrap())
        .collect();
    insta::assert_snapshot!(steps.join("\n"));
    assert!(!told.contains("WRONG"), "{told}");
}

#[test]
fn completions_are_made_for_every_shell() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = sandbox.run(&["completions", shell]).ok();
        assert!(script.contains("forget"), "{shell}");
    }
}

#[test]
fn a_ram_store_lives_as_long_as_the_command() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "ram:");
    sandbox.note("a", "gone at once");
    assert_eq!(sandbox.run(&["list"]).ok(), "nothing\n");
    assert_eq!(sandbox.run(&["doctor"]).code, 0);
    assert_eq!(std::fs::read_dir(sandbox.folder()).unwrap().count(), 0);
}
