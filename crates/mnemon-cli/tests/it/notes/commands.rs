//! `mnemon note` as people use it.

use crate::bad_input::expect;
use crate::sandbox::Sandbox;

#[test]
fn a_note_is_kept_found_and_forgotten() {
    let sandbox = Sandbox::new();
    let note = |args: &[&str]| sandbox.run(&[&["note"], args].concat());
    let mut seen = String::new();
    let mut show = |args: &[&str]| {
        let out = note(args).ok();
        seen += &format!(
            "$ mnemon note {}\n{}\n",
            args.join(" "),
            sandbox.redact(&out)
        );
        out
    };
    let tea = [
        "add",
        "Ann prefers tea",
        "--tag",
        "Drinks",
        "--importance",
        "0.8",
    ];
    let added = show(&tea);
    let id = added.split(' ').nth(1).unwrap().to_owned();
    show(&["add", "Ann prefers tea"]);
    show(&[
        "add",
        "--namespace",
        "long-term",
        "The office closes at six",
    ]);
    show(&["search", "tea", "--recipe", "formula"]);
    show(&["search", &id, "--content"]);
    show(&["list"]);
    show(&["list", "--namespace", "long-term"]);
    show(&["get", &id]);
    show(&["get", &id, "--content"]);
    show(&["stats"]);
    show(&["search", "zzz"]);
    show(&["delete", &id]);
    show(&["clear", "all", "--dry-run"]);
    show(&["clear", "all", "--yes"]);
    show(&["list"]);
    show(&["cleanup"]);
    insta::assert_snapshot!(seen);
    expect(note(&["delete", &id]), 3, &["there is no record"]);
    sandbox.run(&["undo"]).ok();
    assert!(note(&["list"]).ok().contains("The office closes at six"));
}

#[test]
fn programs_get_json() {
    let sandbox = Sandbox::new();
    let json = |args: &[&str]| sandbox.run(&[&["note", "--json"], args].concat()).json();
    let added = json(&["add", "API response", "--metadata", "k=v"]);
    assert_eq!(added["content_length"], 12);
    let id = added["id"].as_str().unwrap();
    let found = json(&["search", "API", "--recipe", "formula", "--content"]);
    let score = found["hits"][0]["score"].as_f64().unwrap();
    assert!((0.7499..=0.75).contains(&score), "{score}");
    assert_eq!(found["hits"][0]["content_preview"], "API response");
    let miss = json(&["search", "nothing of it"]);
    assert_eq!(miss, serde_json::json!({"hits": []}));
    assert_eq!(json(&["get", id, "--content"])["content"], "API response");
    let stats = serde_json::json!({"total": 1, "short_term": 1, "long_term": 0});
    assert_eq!(json(&["stats"]), stats);
    assert_eq!(
        json(&["delete", id]),
        serde_json::json!({"deleted": true, "id": id})
    );
}

#[test]
fn a_long_note_answers_in_a_few_lines() {
    let sandbox = Sandbox::new();
    let long = "word ".repeat(20_000);
    let added = sandbox
        .pipe(long.as_bytes(), &["note", "add", "--json"])
        .ok();
    assert!(added.len() < 2048, "{}", added.len());
    let id = serde_json::from_str::<serde_json::Value>(&added).unwrap()["id"].clone();
    let get = [
        "note",
        "get",
        id.as_str().unwrap(),
        "--content",
        "--length",
        "100",
    ];
    let got = sandbox.run(&get).ok();
    assert!(got.ends_with("There is more: --offset 100\n"), "{got}");
}

#[test]
fn secrets_are_taken_out_or_refused() {
    let secret = format!("gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3", "p");
    let text = format!("deploy with {secret}");
    let sandbox = Sandbox::new();
    let added = sandbox.run(&["note", "add", &text]);
    assert!(
        added
            .err
            .starts_with("note: A secret was found and taken out"),
        "{}",
        added.err
    );
    let fact = sandbox.run(&["add", &text, "--kind", "fact"]);
    assert_eq!(fact.code, 0);
    assert!(
        fact.err
            .contains("taken out before it was stored: repository token"),
        "{}",
        fact.err
    );
    let all = sandbox.state();
    assert!(!all.contains("a8Kd03") && all.contains("[secret removed: repository token]"));
    let strict = Sandbox::new().with("MNEMON_SECRETS", "refuse");
    for args in [["note", "add", text.as_str()].as_slice(), &["add", &text]] {
        expect(
            strict.run(args),
            2,
            &["holds a secret in line 1 (repository token)"],
        );
    }
    assert_eq!(strict.run(&["list"]).ok(), "nothing\n");
    let open = Sandbox::new().with("MNEMON_SECRETS", "allow");
    open.run(&["note", "add", &text]).ok();
    assert!(open.state().contains(&secret));
}

/// Arguments of `mnemon note`, the exit code, and words of the error.
type Mistake<'a> = (&'a [&'a str], i32, &'a str);

fn try_all(sandbox: &Sandbox, mistakes: &[Mistake<'_>]) {
    let before = sandbox.state();
    for (args, code, words) in mistakes {
        let ran = sandbox.run(&[&["note"], *args].concat());
        expect(ran, *code, &[words]);
    }
    assert_eq!(sandbox.state(), before);
}

#[test]
fn bad_input_is_told_and_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.run(&["note", "add", "Ann prefers tea"]).ok();
    sandbox.file("latin1.txt", b"caf\xe9");
    sandbox.file("large.txt", vec![b'x'; 11 * 1024 * 1024]);
    let cases: &[Mistake<'_>] = &[
        (&["add", ""], 2, "content: is empty"),
        (&["add"], 2, "content: is empty"),
        (
            &["add", "x", "--file", "a.md"],
            2,
            "content: is given together with --file",
        ),
        (&["add", "--tga", "x", "y"], 2, "there is no such option"),
        (&["add", "y", "--tga", "x"], 2, "unexpected argument"),
        (&["get", "x", "--offset", "-1"], 2, "--offset: `-1` is not"),
        (
            &["search", "x", "--limit", "many"],
            2,
            "--limit: `many` is not",
        ),
        (
            &["add", "--file", "../a.md"],
            2,
            "`../a.md` is not a path below the root",
        ),
        (
            &["add", "--file", "/etc/hostname"],
            2,
            "--file: `/etc/hostname` is not a path below",
        ),
        (&["add", "--file", "nowhere.md"], 3, "there is no file"),
        (&["add", "--file", "latin1.txt"], 2, "is not UTF-8"),
        (&["add", "--file", "large.txt"], 6, "at most 10485760"),
        (
            &["add", "x", "--namespace", "middle-term"],
            2,
            "short-term, long-term",
        ),
        (
            &["add", "x", "--importance", "11"],
            2,
            "--importance: is 11; from 0 to 10",
        ),
        (
            &["add", "x", "--importance", "much"],
            2,
            "--importance: `much` is not a number",
        ),
        (&["add", "x", "--tag", "two words"], 2, "without spaces"),
    ];
    try_all(&sandbox, cases);
}

#[test]
fn wrong_questions_are_told() {
    let sandbox = Sandbox::new();
    sandbox.run(&["note", "add", "Ann prefers tea"]).ok();
    let long = "x".repeat(1001);
    let cases: &[Mistake<'_>] = &[
        (&["search", ""], 2, "query: is empty"),
        (&["search", &long], 2, "at most 1000"),
        (
            &["search", "tea", "--min-score", "2"],
            2,
            "--min-score: is 2; from 0 to 1",
        ),
        (
            &["search", "tea", "--namespace", "x"],
            2,
            "short-term, long-term",
        ),
        (
            &["get", "0123456789abcdef"],
            3,
            "there is no record 0123456789abcdef",
        ),
        (&["delete", "0123456789abcdef"], 3, "there is no record"),
        (&["list", "--after", "x"], 2, "is not a cursor"),
        (&["clear", "middle-term", "--yes"], 2, "short-term"),
    ];
    try_all(&sandbox, cases);
    let megabyte = "x".repeat(1_000_000);
    let ran = sandbox.pipe(megabyte.as_bytes(), &["note", "search", "-"]);
    expect(ran, 2, &["has 1000000 characters; at most 1000"]);
}

#[test]
fn the_documents_own_configuration_is_used() {
    let sandbox = Sandbox::new();
    let config = sandbox.file(
        "memory.json",
        r#"{"storage":{"defaultBackend":"jsonl","directory":".notes"},
            "namespaces":{"short-term":{"maxEntries":2}},
            "retrieval":{"topK":1},"output":{"includeContentByDefault":true}}"#,
    );
    let note = |args: &[&str]| sandbox.run(&[&["--config", &config, "note"], args].concat());
    for n in 0..3 {
        let added = note(&["add", &format!("tea number {n}")]);
        let full = "note: 1 note was evicted, the least important first, as short-term is full.\n";
        assert_eq!(added.err, if n < 2 { "" } else { full });
    }
    let stats = note(&["stats", "--json"]).json();
    assert_eq!(stats["short_term"], 2);
    let found = note(&["search", "tea", "--json"]).json();
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.len() == 1 && hits[0]["content_preview"].is_string());
    assert!(sandbox.path(".notes/memory.jsonl").is_file());
}

#[test]
fn a_note_that_was_not_stored_is_an_error() {
    let sandbox = Sandbox::new();
    let config = sandbox.file(
        "memory.json",
        r#"{"storage":{"defaultBackend":"jsonl","directory":".notes"},
            "namespaces":{"short-term":{"maxEntries":1}}}"#,
    );
    let note = |args: &[&str]| sandbox.run(&[&["--config", &config, "note"], args].concat());
    note(&["add", "tea", "--importance", "0.9"]).ok();
    for json in [&[][..], &["--json"]] {
        let ran = note(&[&["add", "milk", "--importance", "0.1"], json].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(
            ran.err.contains("Not stored: short-term is full"),
            "{}",
            ran.err
        );
    }
    assert_eq!(
        note(&["clear", "long-term", "--dry-run"]).ok(),
        "would forget 0 notes\n"
    );
    assert_eq!(
        note(&["clear", "all", "--dry-run"]).ok(),
        "would forget 1 note\n"
    );
    assert_eq!(note(&["stats", "--json"]).json()["total"], 1);
}

#[test]
fn a_store_in_memory_says_that_nothing_lasts() {
    let sandbox = Sandbox::new();
    let config = sandbox.file(
        "memory.json",
        r#"{"storage":{"defaultBackend":"inmemory"}}"#,
    );
    let ran = sandbox.run(&["--config", &config, "note", "add", "tea"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("gone when the program ends"),
        "{}",
        ran.err
    );
    sandbox.run(&["--store", "ram:", "note", "add", "tea"]).ok();
}

/// Parts of the names of files whose tests hold secrets or passwords on purpose.
const WITH_SECRETS: [&str; 8] = [
    "postgres",
    "adapters/src/open",
    "secret",
    "safety",
    "config/address",
    "config/embedder",
    "config/tests",
    "it/trust",
];

/// Our own sources and documents hold no secrets: what is found there was found by mistake.
#[test]
fn our_own_sources_are_taken_for_no_secret() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut open = ["crates", "docs", "Cargo.lock", "README.md"]
        .map(|it| root.join(it))
        .to_vec();
    let (mut lines, mut found) = (0, Vec::new());
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
            continue;
        }
        let plain = path
            .extension()
            .is_some_and(|end| end == "rs" || end == "md" || end == "toml" || end == "lock");
        let name = path.strip_prefix(&root).unwrap_or(&path);
        let name = name.display().to_string();
        if !plain || WITH_SECRETS.iter().any(|part| name.contains(part)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        lines += text.lines().count();
        let secrets = mnemon_core::secrets::find(&text);
        found.extend(secrets.iter().map(|secret| {
            let at = secret.start.saturating_sub(30);
            format!("{name}: {} in …{:?}", secret.kind, text.get(at..secret.end))
        }));
    }
    assert!(lines > 50_000, "only {lines} lines were read");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn limits_of_a_search_are_told() {
    let sandbox = Sandbox::new();
    for limit in ["0", "101"] {
        let (code, error) = sandbox
            .run(&["note", "search", "tea", "--limit", limit])
            .failed();
        assert_eq!(code, 2);
        assert!(error.contains("from 1 to 100 is allowed"), "{error}");
    }
}

#[test]
fn text_may_begin_with_a_dash() {
    let sandbox = Sandbox::new();
    let added = |args: &[&str]| {
        let args = [&["note", "add", "--json"], args].concat();
        let added = sandbox.run(&args).json();
        added["summary"].as_str().unwrap().to_owned()
    };
    assert_eq!(added(&["- buy milk", "--tag", "x"]), "- buy milk");
    assert_eq!(added(&["--tag", "x", "- buy", "tea"]), "- buy tea");
    assert_eq!(added(&["-5 degrees"]), "-5 degrees");
    assert_eq!(added(&["--", "--verbose", "is loud"]), "--verbose is loud");
    assert_eq!(added(&["the", "--", "-x"]), "the -x");
}
