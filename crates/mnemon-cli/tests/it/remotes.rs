//! Memories and knowledge that other services keep, as the configuration names them.

use mnemon_testkit::fakes::{DOUBLE_KEY, Endpoint, MemoryDouble, MemoryService, Move, Treatment};
use serde_json::{Value, json};

use crate::json::schema;
use crate::sandbox::{Ran, Sandbox};

/// Names the variable whose key a check sends.
const KEY_ENV: &str = "--key-env=MNEMON_LONG_TERM_KEY";

/// A program whose long-term memory is this double, with the user ann.
fn sandbox(double: &MemoryDouble) -> Sandbox {
    Sandbox::new()
        .with("MNEMON_LONG_TERM_URL", &double.url())
        .with("MNEMON_LONG_TERM_KEY", DOUBLE_KEY)
}

fn chat(sandbox: &Sandbox, args: &[&str]) -> Ran {
    sandbox.run(&[&["chat"], args, &["--user", "ann"]].concat())
}

/// The last message as a model gets it, and the notices of the answer.
fn prepared(sandbox: &Sandbox, session: &str) -> (String, String) {
    let run = chat(sandbox, &["prepare", session, "--mode", "static", "--json"]);
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    let last = answer["messages"].as_array().unwrap().last();
    (last.unwrap().to_string(), answer["notices"].to_string())
}

/// A recording that fails waits in the outbox, and upkeep sends it once.
fn sends_again(service: MemoryService) {
    let double = MemoryDouble::start(service);
    let sandbox = sandbox(&double);
    chat(&sandbox, &["append", "monday", "I am allergic to peanuts."]).ok();
    double.misbehave(&[Treatment::Status(503)]);
    let recorded = chat(&sandbox, &["record", "monday"]);
    assert_eq!(recorded.code, 0, "{service:?}: {recorded:?}");
    assert!(recorded.err.contains("wait in the outbox"), "{recorded:?}");
    let stats = sandbox.run(&["stats", "--json"]).json();
    assert_eq!(stats["outbox"]["waiting"], 1, "{stats}");
    let stats = sandbox.run(&["stats"]).ok();
    let outbox = "outbox         1 recording, 0 of them given up";
    assert!(stats.contains(outbox), "{stats}");
    let upkeep = sandbox.run(&["upkeep"]).ok();
    let sent = "1 recordings sent to the long-term memory";
    assert!(upkeep.contains(sent), "{service:?}: {upkeep}");
    let texts = double.memories().into_iter().map(|(_, text)| text);
    assert_eq!(texts.collect::<Vec<_>>(), ["I am allergic to peanuts."]);
    let stats = sandbox.run(&["stats", "--json"]).json();
    assert!(stats["outbox"].is_null(), "{stats}");
    let shown = sandbox.run(&["config", "--json"]).ok();
    assert!(!shown.contains(DOUBLE_KEY), "{shown}");
    assert_eq!(double.refused(), Vec::<String>::new());
}

/// A retrieval that fails finds nothing, with a notice; the conversation is prepared all the same.
fn goes_on_without(service: MemoryService) {
    let double = MemoryDouble::start(service);
    let sandbox = sandbox(&double);
    chat(&sandbox, &["append", "monday", "I am allergic to peanuts."]).ok();
    chat(&sandbox, &["record", "monday"]).ok();
    chat(&sandbox, &["append", "friday", "Which snacks may I eat?"]).ok();
    double.misbehave(&[Treatment::Status(500)]);
    let (message, notices) = prepared(&sandbox, "friday");
    assert!(message.contains("snacks"), "{message}");
    assert!(!message.contains("allergic"), "{message}");
    let notice = "Nothing was retrieved from long-term memory";
    assert!(notices.contains(notice), "{service:?}: {notices}");
    let (message, notices) = prepared(&sandbox, "friday");
    assert!(message.contains("allergic"), "{service:?}: {message}");
    assert!(!notices.contains(notice), "{notices}");
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[test]
fn a_recording_that_a_service_did_not_take_is_sent_by_upkeep() {
    MemoryService::ALL.into_iter().for_each(sends_again);
}

#[test]
fn a_retrieval_that_fails_is_empty_with_a_notice() {
    MemoryService::ALL.into_iter().for_each(goes_on_without);
}

#[test]
fn a_check_shows_the_capabilities_of_each_service() {
    for service in MemoryService::ALL {
        let double = MemoryDouble::start(service);
        let sandbox = Sandbox::new().with("MNEMON_LONG_TERM_KEY", DOUBLE_KEY);
        let url = double.url();
        let check = ["remote", "check", &url, KEY_ENV, "--json"];
        let report = sandbox.run(&check).json();
        let wrong = schema().check("remote check", &report);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let capabilities = report["capabilities"].as_array().unwrap();
        assert!(capabilities.contains(&json!("retrieve")), "{report}");
        let configured = sandbox.with("MNEMON_LONG_TERM_URL", &url);
        let text = configured.run(&["remote", "check"]).ok();
        assert!(text.contains("capabilities   record, retrieve"), "{text}");
        assert!(double.memories().is_empty(), "nothing is changed");
        assert_eq!(double.refused(), Vec::<String>::new());
    }
}

#[test]
fn a_check_that_fails_names_the_reason_and_a_remedy() {
    let double = MemoryDouble::start(MemoryService::Zep);
    let url = double.url();
    let check = |key: &str, url: &str| {
        let sandbox = Sandbox::new().with("MNEMON_LONG_TERM_KEY", key);
        sandbox.run(&["remote", "check", url, KEY_ENV]).failed()
    };
    let (code, error) = check("wrong-key", &url);
    assert_eq!(code, 5, "{error}");
    assert!(error.contains("MNEMON_LONG_TERM_KEY"), "{error}");
    assert!(!error.contains("wrong-key"), "{error}");
    double.misbehave(&[Treatment::Truncated]);
    let (code, error) = check(DOUBLE_KEY, &url);
    assert!(
        code != 0 && error.contains("is not JSON"),
        "{code}: {error}"
    );
    double.misbehave(&[Treatment::Status(429)]);
    let (code, error) = check(DOUBLE_KEY, &url);
    assert!(code == 14 && error.contains("in 7 s"), "{code}: {error}");
    let (code, error) = check(DOUBLE_KEY, "zap+https://host");
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("zep+https://HOST"), "{error}");
    let (code, error) = Sandbox::new().run(&["remote", "check"]).failed();
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("long_term.url"), "{error}");
    drop(double);
    let (code, error) = check(DOUBLE_KEY, &url);
    assert_eq!(code, 13, "{error}");
    assert!(error.contains("cannot be reached"), "{error}");
}

#[test]
fn a_check_of_a_knowledge_base_sends_no_key_of_another_service() {
    let answer = json!({"results": []}).to_string();
    let endpoint = Endpoint::start(vec![Move::status(200, &answer)]);
    let url = format!("kb+{}/find", endpoint.url());
    let sandbox = Sandbox::new().with("MNEMON_LONG_TERM_KEY", DOUBLE_KEY);
    sandbox.run(&["remote", "check", &url]).ok();
    let sandbox = sandbox.with("MNEMON_WIKI_KEY", "k-7");
    sandbox.config(format!(
        "[external.wiki]\nurl = \"{url}\"\nkey_env = \"MNEMON_WIKI_KEY\"\n"
    ));
    sandbox.run(&["remote", "check", &url]).ok();
    let seen = endpoint.seen();
    let heads: Vec<String> = seen.iter().map(|one| one.head.to_lowercase()).collect();
    assert!(!heads[0].contains("authorization"), "{}", heads[0]);
    assert!(
        heads[1].contains("authorization: bearer k-7"),
        "{}",
        heads[1]
    );
}

#[test]
fn a_check_sends_the_key_only_to_the_address_that_is_configured() {
    let double = MemoryDouble::start(MemoryService::Mem0Oss);
    let (url, other) = (double.url(), "mem0-oss+http://127.0.0.1:1");
    let sandbox = Sandbox::new().with("MNEMON_LONG_TERM_KEY", DOUBLE_KEY);
    let elsewhere = sandbox.with("MNEMON_LONG_TERM_URL", other);
    let (code, error) = elsewhere.run(&["remote", "check", &url]).failed();
    assert_eq!(code, 5, "the double got no key: {error}");
    elsewhere.run(&["remote", "check", &url, KEY_ENV]).ok();
    let here = elsewhere.with("MNEMON_LONG_TERM_URL", &url);
    here.run(&["remote", "check", &url]).ok();
    let zep = "zep+https://zep.example";
    let (code, error) = here.run(&["remote", "check", zep]).failed();
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("--key-env: this service needs a key"),
        "{error}"
    );
    let unset = ["remote", "check", zep, "--key-env", "NO_SUCH_KEY"];
    let (code, error) = here.run(&unset).failed();
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("`NO_SUCH_KEY` is not set"), "{error}");
}

#[test]
fn a_search_asks_external_knowledge_bases_of_the_configuration() {
    let answer = json!({"results": [{"id": "1", "text": "The harbour opens late on Sundays."}]});
    let endpoint = Endpoint::start(vec![Move::status(200, &answer.to_string())]);
    let sandbox = Sandbox::new().with("MNEMON_WIKI_KEY", "k-7");
    sandbox.config(format!(
        "[external.wiki]\nurl = \"kb+{}/find\"\nkey_env = \"MNEMON_WIKI_KEY\"\n\
         timeout_ms = 30000\n",
        endpoint.url()
    ));
    sandbox.note("own", "The harbour opens at nine.");
    let found = sandbox.run(&["search", "harbour opens", "--json"]).json();
    assert!(schema().check("search", &found).is_empty(), "{found}");
    let hits = found["hits"].as_array().unwrap();
    let sources: Vec<&str> = hits
        .iter()
        .map(|hit| hit["external"].as_str().unwrap_or("own"))
        .collect();
    assert_eq!(sources.len(), 2, "{found}");
    assert!(sources.contains(&"wiki") && sources.contains(&"own"));
    let text = sandbox.run(&["search", "harbour opens"]).ok();
    assert!(text.contains("from wiki"), "{text}");
    let head = &endpoint.seen()[0].head;
    assert!(head.to_lowercase().contains("authorization: bearer k-7"));
    let shown = sandbox.run(&["config", "--json"]).ok();
    assert!(shown.contains("external.wiki.url"), "{shown}");
    assert!(!shown.contains("k-7"), "{shown}");
}

/// A program that knows one skill and reads others from a learning space of this double.
fn with_skills(double: &MemoryDouble, space: &str) -> Sandbox {
    let sandbox = Sandbox::new().with("MNEMON_SKILLS_KEY", DOUBLE_KEY);
    sandbox.config(format!(
        "[external.skills]\nurl = \"{}?space={space}\"\nscope = \"procedural\"\n\
         key_env = \"MNEMON_SKILLS_KEY\"\ntimeout_ms = 30000\n",
        double.url()
    ));
    let own = json!([{"use_when": "A guest wants coffee or tea",
        "tool_sops": [{"tool": "machine", "action": "press the button"}], "shared": true}]);
    sandbox.file("own.json", own.to_string());
    sandbox.run(&["skill", "import", "own.json"]).ok();
    sandbox
}

#[test]
fn skills_of_a_learning_space_are_found_with_our_own_and_marked() {
    let double = MemoryDouble::start(MemoryService::Acontext);
    let text = "---\nname: brew-tea\n---\n1. Boil water.\n2. Wait.";
    let space = double.add_space("brew-tea", "Use when a guest wants tea", text);
    let sandbox = with_skills(&double, &space);
    let search = ["skill", "search", "a guest wants tea"];
    let found = sandbox.run(&[&search[..], &["--json"]].concat()).json();
    assert!(schema().check("skill search", &found).is_empty(), "{found}");
    let skills = found["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 2, "{found}");
    let external = skills.iter().find(|skill| skill["external"] == "skills");
    let external = external.unwrap();
    assert_eq!(external["use_when"], "brew-tea: Use when a guest wants tea");
    assert_eq!(external["instructions"], "1. Boil water.\n2. Wait.");
    let shown = sandbox.run(&search).ok();
    let expected = "(from skills)\n  1. Boil water.\n  2. Wait.\n";
    assert!(shown.contains(expected), "{shown}");
    let who = [
        "--user",
        "ann",
        "--session",
        "s",
        "--agent",
        "a",
        "--query",
        "wants tea",
    ];
    let read = ["read", "--scope", "procedural"];
    let read = sandbox.run(&[&read[..], &who].concat()).ok();
    assert!(
        read.contains("Boil water") && read.contains("press the button"),
        "{read}"
    );
    let context = sandbox.run(&[&["context"], &who[..]].concat()).ok();
    assert!(
        context.contains("(from the external source skills)"),
        "{context}"
    );
    assert!(context.contains("Boil water"), "{context}");
    // Documents are not asked for in a source of skills.
    let documents = sandbox
        .run(&["search", "tea", "--scope", "semantic", "--json"])
        .json();
    assert_eq!(
        documents["hits"].as_array().unwrap().len(),
        0,
        "{documents}"
    );
    assert_eq!(double.refused(), Vec::<String>::new());
}

#[test]
fn a_learning_space_that_fails_is_left_out_with_a_notice() {
    let double = MemoryDouble::start(MemoryService::Acontext);
    let space = double.add_space("brew-tea", "Use when a guest wants tea", "1. Boil water.");
    let sandbox = with_skills(&double, &space);
    for treatment in [
        Treatment::Status(500),
        Treatment::Truncated,
        Treatment::WrongTypes,
    ] {
        double.misbehave(std::slice::from_ref(&treatment));
        let search = ["skill", "search", "a guest wants tea", "--json"];
        let found = sandbox.run(&search).json();
        assert_eq!(found["skills"].as_array().unwrap().len(), 1, "{found}");
        let notices = found["notices"].to_string();
        let expected = "The external source `skills` was not searched";
        assert!(notices.contains(expected), "{treatment:?}: {found}");
    }
}
