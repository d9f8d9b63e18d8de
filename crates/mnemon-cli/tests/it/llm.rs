//! A configured language model, as users meet it.

use mnemon_testkit::fakes::{Endpoint, Move};
use serde_json::Value;

use crate::sandbox::Sandbox;

const KEY: &str = "sk-nobody-must-see-this";

fn configured(sandbox: &Sandbox, endpoint: &Endpoint, more: &str) {
    let url = endpoint.url();
    let text = format!(
        "[llm]\nprovider = \"openai\"\nurl = \"{url}/v1\"\nmodel = \"tiny\"\nattempts = 1\n{more}\n\
         [window]\nmsg_threshold = 8\nlast_keep = 2\n"
    );
    sandbox.config(text);
}

/// Seven messages that are due to be compressed with the eighth.
fn talk(sandbox: &Sandbox) -> Value {
    for n in 0..8 {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let said = format!("We decided to take number {n} of the long list of things to be done.");
        let args = [
            "chat",
            "append",
            "s1",
            &said,
            "--role",
            role,
            "--leave-window",
        ];
        sandbox.run(&args).ok();
    }
    sandbox
        .run(&["chat", "compress", "s1", "--wait", "--json"])
        .json()
}

fn summariser(done: &Value) -> (&str, &str) {
    let metadata = &done["events"][0]["metadata"];
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    (text("summariser"), text("refused"))
}

#[test]
fn a_model_writes_the_summaries_of_a_conversation() {
    let endpoint = Endpoint::start(vec![Move::say("They decided on several things.")]);
    let sandbox = Sandbox::new().with("MNEMON_LLM_KEY", KEY);
    configured(&sandbox, &endpoint, "");
    let done = talk(&sandbox);
    assert_eq!(summariser(&done), ("tiny", ""), "{done}");
    let shown = sandbox.run(&["chat", "show", "s1", "--json"]).ok();
    assert!(shown.contains("They decided on several things"), "{shown}");
    let seen = endpoint.seen();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].head.contains(KEY));
    let usage = sandbox.run(&["llm", "usage"]).ok();
    assert!(
        usage.contains("default") && usage.contains("window"),
        "{usage}"
    );
    let account = sandbox.run(&["llm", "usage", "--json"]).json()["accounts"][0].clone();
    assert_eq!(
        (account["calls"].as_u64(), account["input_tokens"].as_u64()),
        (Some(1), Some(11))
    );
    let files = std::fs::read_dir(sandbox.path(".local/share/mnemon")).unwrap();
    for file in files {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY));
    }
}

#[test]
fn no_append_waits_for_the_model_and_upkeep_asks_it_later() {
    let endpoint = Endpoint::start(vec![Move::say("They decided on several things.")]);
    let sandbox = Sandbox::new();
    configured(&sandbox, &endpoint, "");
    let mut said = String::new();
    for n in 0..8 {
        let text = format!("We decided to take number {n} of the long list of things to be done.");
        said = sandbox.run(&["chat", "append", "s1", &text]).ok();
    }
    assert!(
        said.contains("summary: extractive, model pending"),
        "{said}"
    );
    assert!(endpoint.seen().is_empty(), "an append asked the model");
    let before = sandbox.run(&["chat", "show", "s1", "--json"]).json();
    let kept = sandbox.run(&["upkeep"]).ok();
    assert!(
        kept.contains("1 summaries written by the language model"),
        "{kept}"
    );
    let after = sandbox.run(&["chat", "show", "s1", "--json"]).json();
    assert_eq!(before["messages"][0]["uuid"], after["messages"][0]["uuid"]);
    assert_eq!(after["messages"][0]["folded"]["summariser"], "tiny");
    let text = after["messages"][0]["message"]["content"][0]["text"].to_string();
    assert!(text.contains("They decided on several things."), "{text}");
    let events = sandbox.run(&["chat", "events", "s1"]).ok();
    assert!(events.contains("summary: tiny"), "{events}");
}

#[test]
fn without_a_usable_answer_the_summary_is_made_without_it() {
    let long = "words without end ".repeat(1000);
    for (bad, why) in [
        (Move::say(" "), "empty"),
        (Move::say(&long), "characters"),
        (Move::status(500, "on fire"), "on fire"),
        (Move::Half, "connection failed"),
    ] {
        let endpoint = Endpoint::start(vec![bad]);
        let sandbox = Sandbox::new();
        configured(&sandbox, &endpoint, "");
        let done = talk(&sandbox);
        let (by, refused) = summariser(&done);
        assert!(by.starts_with("extractive"), "{by}");
        assert!(refused.contains(why), "{refused}");
        let shown = sandbox.run(&["chat", "show", "s1", "--json"]).ok();
        assert!(
            shown.contains("- user: We decided to take number"),
            "{shown}"
        );
    }
}

#[test]
fn a_budget_is_kept_over_several_runs() {
    let endpoint = Endpoint::start(vec![Move::say("Paris")]);
    let sandbox = Sandbox::new();
    configured(&sandbox, &endpoint, "tokens_per_day = 400");
    let mut answered = 0;
    let told = loop {
        let ran = sandbox.run(&["llm", "check"]);
        if ran.code != 0 {
            break ran.failed();
        }
        assert_eq!(ran.ok(), "tiny: Paris\n11 tokens in, 7 tokens out\n");
        answered += 1;
    };
    assert_eq!(told.0, 14, "{}", told.1);
    for said in ["nothing was sent", "midnight", "`[llm]`"] {
        assert!(told.1.contains(said), "{}", told.1);
    }
    assert_eq!(endpoint.seen().len(), answered);
    assert!(answered >= 1);
}

#[test]
fn the_doctor_looks_at_the_configuration_and_asks_nobody() {
    let endpoint = Endpoint::start(vec![Move::say("yes")]);
    let sandbox = Sandbox::new().with("MNEMON_LLM_KEY", KEY);
    configured(&sandbox, &endpoint, "");
    sandbox.note("a", "tea");
    let ran = sandbox.run(&["doctor"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("llm") && ran.out.contains("tiny at http://127.0.0.1"),
        "{}",
        ran.out
    );
    assert!(endpoint.seen().is_empty());
    let config = sandbox.run(&["config", "--json"]).ok() + &sandbox.run(&["config"]).ok();
    assert!(!config.contains(KEY) && config.contains("llm.model"));

    let missing = "provider = \"anthropic\"\nmodel = \"m\"\nkey_file = \"no.key\"";
    for (text, why) in [
        ("provider = \"openai\"", "llm.model names no model"),
        (
            "provider = \"anthropic\"\nmodel = \"m\"\nkey_env = \"OTHER\"",
            "set the variable OTHER",
        ),
        (missing, "no.key cannot be read"),
        (
            "provider = \"openai\"\nmodel = \"m\"\nurl = \"http://example.org/v1\"",
            "unencrypted",
        ),
        (
            "provider = \"openai\"\nmodel = \"m\"\ncost_per_day = 1.5",
            "needs llm.input_price",
        ),
    ] {
        let sandbox = match text == missing {
            true => Sandbox::new(),
            false => Sandbox::new().with("MNEMON_LLM_KEY", KEY),
        };
        sandbox.config(format!("[llm]\n{text}\n"));
        // The model is done without; what was asked for is done.
        let ran = sandbox.run(&["add", "tea"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(
            ran.err.contains("the language model is not used"),
            "{}",
            ran.err
        );
        let ran = sandbox.run(&["doctor"]);
        assert_eq!(ran.code, 9);
        assert!(ran.out.contains(why), "{text}: {}", ran.out);
        assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY));
    }
}

#[test]
fn a_wrong_setting_is_named_with_its_line() {
    for (text, why) in [
        ("[llm]\nprovider = \"other\"", "write `openai`"),
        ("[llm]\nurl = \"ftp://x\"", "is not an http"),
        (
            "[llm]\nurl = \"https://me:key@x\"",
            "must not contain a user name",
        ),
        ("[llm]\ntimeout_s = 0", "between 1 and 3600"),
        ("[llm]\ncost_per_day = -1", "is not an amount"),
        ("[llm]\nkey = \"x\"", "`llm.key` is not a setting"),
        (
            "[window]\nlast_keep = 500\nmsg_threshold = 100",
            "must be less than msg_threshold",
        ),
        ("[window]\ntoken_ratio = \"much\"", "is not a number"),
        ("[memory]\nchunk_size = 1", "between 2 and 1000"),
        ("[memory]\nhot_window_size = 2.5", "invalid type"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.config(text);
        let (code, error) = sandbox.run(&["list"]).failed();
        assert_eq!(code, 2);
        assert!(
            error.contains("mnemon.toml:2") && error.contains(why),
            "{text}: {error}"
        );
    }
}

#[test]
fn no_model_is_no_secret() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.run(&["llm", "usage"]).ok(),
        "the language model was not used\n"
    );
    let (code, error) = sandbox.run(&["llm", "check"]).failed();
    assert_eq!(code, 2);
    assert!(error.contains("no language model is configured"), "{error}");
}
