//! `mnemon trust`, as users meet it.

use crate::sandbox::Sandbox;

const RISKY: &str = "tenant = \"team\"\n[notes]\ntop_k = 3\nroot = \"docs\"\n";

fn tenant(sandbox: &Sandbox) -> String {
    let shown = sandbox.run(&["config", "--json"]).json();
    let rows = shown["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == "tenant").unwrap();
    row["value"].as_str().unwrap().to_owned()
}

#[test]
fn a_file_counts_once_it_is_trusted_and_until_it_changes() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("mnemon.toml", RISKY);
    let ran = sandbox.run(&["list"]);
    assert!(
        ran.err.contains("ignored: tenant, notes.root.") && ran.err.contains("mnemon trust"),
        "{}",
        ran.err
    );
    let shown = sandbox.run(&["config"]).ok();
    for said in ["are ignored", "chooses whose memory", "chooses which files"] {
        assert!(shown.contains(said), "{shown}");
    }
    let ignored = sandbox.run(&["config", "--json"]).json()["ignored"].clone();
    assert_eq!(ignored.as_array().unwrap().len(), 2);
    assert_eq!(ignored[1]["key"], "notes.root");
    assert_eq!(ignored[1]["line"], 4);

    let (code, said) = sandbox.run(&["trust"]).failed();
    assert!(code == 2 && said.contains("--yes"), "{said}");
    let looked = sandbox.run(&["trust", "--dry-run"]).ok();
    assert!(looked.contains("nothing was changed"), "{looked}");
    assert_eq!(tenant(&sandbox), "default");
    let trusted = sandbox.run(&["trust", "mnemon.toml", "--yes"]).ok();
    insta::assert_snapshot!(sandbox.redact(&trusted));
    assert_eq!(tenant(&sandbox), "team");
    sandbox.run(&["list"]).ok();
    let listed = sandbox.run(&["trust", "--list"]).ok();
    assert!(
        listed.contains(&file) && listed.contains("trusted"),
        "{listed}"
    );

    sandbox.file("mnemon.toml", RISKY.replace("docs", "/"));
    assert_eq!(tenant(&sandbox), "default");
    let ran = sandbox.run(&["list"]);
    assert!(
        ran.err.contains("has changed since it was trusted"),
        "{}",
        ran.err
    );
    let listed = sandbox.run(&["trust", "--list"]).ok();
    assert!(listed.contains("changed, so not trusted"), "{listed}");
    let again = sandbox.run(&["trust", "--yes"]).ok();
    for line in ["- root = \"docs\"", "+ root = \"/\""] {
        assert!(again.contains(line), "{again}");
    }
    assert_eq!(tenant(&sandbox), "team");
    let removed = sandbox.run(&["trust", "--remove"]).ok();
    assert!(removed.contains("no longer trusted"), "{removed}");
    assert_eq!(tenant(&sandbox), "default");
    assert_eq!(
        sandbox.run(&["trust", "--list"]).ok(),
        "no file is trusted\n"
    );
}

#[test]
fn trust_is_for_one_file_at_one_place() {
    let sandbox = Sandbox::new();
    sandbox.file("mnemon.toml", RISKY);
    sandbox.run(&["trust", "--yes", "--json"]).json();
    assert_eq!(tenant(&sandbox), "team");
    std::fs::create_dir(sandbox.path("copy")).unwrap();
    sandbox.file("copy/mnemon.toml", RISKY);
    let output = sandbox
        .command()
        .current_dir(sandbox.path("copy"))
        .args(["list"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is not trusted"), "{said}");
}

#[cfg(unix)]
#[test]
fn the_list_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    sandbox.file("mnemon.toml", RISKY);
    sandbox.run(&["trust", "--yes"]).ok();
    let list = sandbox.path(".config/mnemon/trusted.json");
    let mode = std::fs::metadata(&list).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A list that cannot be read trusts nothing, and is not written over.
    std::fs::write(&list, "{").unwrap();
    assert_eq!(sandbox.run(&["trust", "--list"]).failed().0, 2);
    assert_eq!(sandbox.run(&["trust", "--yes"]).failed().0, 2);
    let ran = sandbox.run(&["list"]);
    assert!(ran.err.contains("no file is trusted"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&list).unwrap(), "{");
}

#[test]
fn what_a_file_says_cannot_drive_the_terminal_or_show_a_password() {
    let sandbox = Sandbox::new();
    let text = "actor = \"\\u001b[2J\"\nembedder = \"openai:m@http://u\u{3a}PA55@127.0.0.1:9\"\n";
    sandbox.file("mnemon.toml", text);
    for args in [
        &["trust", "--dry-run"][..],
        &["trust", "--dry-run", "--json"],
        &["config"],
        &["config", "--json"],
        &["--config", "mnemon.toml", "config"],
    ] {
        let ran = sandbox.run(args);
        let said = ran.out + &ran.err;
        assert!(!said.contains('\u{1b}') && !said.contains("PA55"), "{said}");
    }
}

#[test]
fn a_setting_that_is_never_allowed_is_not_offered() {
    let sandbox = Sandbox::new();
    let text = "onnxruntime = \"/theirs.so\"\nembedder = \"none\"\n";
    let file = sandbox.file("mnemon.toml", text);
    let told = sandbox.run(&["trust", &file, "--yes"]);
    assert_eq!(told.code, 0, "{}", told.err);
    let said = "sets onnxruntime, which has no effect: only your own mnemon.toml may set it";
    assert!(told.out.contains(said), "{}", told.out);
    assert_eq!(told.out.matches("onnxruntime").count(), 1, "{}", told.out);
    assert!(told.out.contains("embedder"), "{}", told.out);
    let json = sandbox.run(&["trust", &file, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["without_effect"], serde_json::json!(["onnxruntime"]));
    assert_eq!(json["settings"].as_array().unwrap().len(), 1);
}
