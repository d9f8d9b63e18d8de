//! Memories and knowledge that other services keep, as the configuration names them.

use mnemon_testkit::fakes::{Endpoint, MEM0_KEY, Mem0Double, Mem0Mischief, Move};
use serde_json::json;

use crate::sandbox::Sandbox;

#[test]
fn a_remote_long_term_memory_is_used_and_its_outbox_sent_by_upkeep() {
    let double = Mem0Double::start();
    let url = format!("mem0+http://{}", double.host());
    let sandbox = Sandbox::new()
        .with("MNEMON_LONG_TERM_URL", &url)
        .with("MNEMON_LONG_TERM_KEY", MEM0_KEY);
    let chat = |args: &[&str]| sandbox.run(&[&["chat"], args, &["--user", "ann"]].concat());
    chat(&["append", "monday", "I am allergic to peanuts."]).ok();
    double.misbehave(&[Mem0Mischief::Status(503)]);
    let recorded = chat(&["record", "monday"]);
    assert_eq!(recorded.code, 0, "{recorded:?}");
    let notice = "wait in the outbox";
    assert!(recorded.err.contains(notice), "{recorded:?}");
    let stats = sandbox.run(&["stats", "--json"]).json();
    assert_eq!(stats["outbox"]["waiting"], 1, "{stats}");
    let stats = sandbox.run(&["stats"]).ok();
    let outbox = "outbox         1 recording, 0 of them given up";
    assert!(stats.contains(outbox), "{stats}");
    let upkeep = sandbox.run(&["upkeep"]).ok();
    let sent = "1 recordings sent to the long-term memory";
    assert!(upkeep.contains(sent), "{upkeep}");
    let known = ("ann".to_owned(), "I am allergic to peanuts.".to_owned());
    assert_eq!(double.memories(), [known]);
    let stats = sandbox.run(&["stats", "--json"]).json();
    assert!(stats["outbox"].is_null(), "{stats}");
    chat(&["append", "friday", "Which snacks may I eat?"]).ok();
    let prepared = chat(&["prepare", "friday", "--mode", "static", "--json"]).json();
    let last = prepared["messages"].as_array().unwrap().last().unwrap();
    assert!(last.to_string().contains("allergic"), "{last}");
    assert_eq!(double.refused(), Vec::<String>::new());
    let shown = sandbox.run(&["config", "--json"]).ok();
    assert!(!shown.contains(MEM0_KEY), "{shown}");
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
