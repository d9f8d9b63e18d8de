//! Questions that a language model answers and judges. The model follows a script.

use mnemon_testkit::fakes::{Endpoint, Move};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const LINES: &str = concat!(
    r#"{"id":"a","content":"I keep the ladder in the shed.","role":"user","created":"2026-01-31"}"#,
    "\n",
    r#"{"id":"b","content":"The kettle of the office is broken.","speaker":"Bob","created":"2026-02-01"}"#,
    "\n",
    r#"{"question":"Where is my ladder?","expected":["a"],"answer":"in the shed"}"#,
    "\n",
    r#"{"question":"What is broken?","expected":["b"],"answer":"the kettle","asked":"2026-03-01"}"#,
    "\n",
    r#"{"question":"Who has no answer?","expected":["b"]}"#,
    "\n",
);

fn configured(moves: Vec<Move>) -> (Sandbox, Endpoint, String) {
    let endpoint = Endpoint::start(moves);
    let sandbox = Sandbox::new();
    let url = endpoint.url();
    sandbox.config(format!(
        "[llm]\nprovider = \"openai\"\nurl = \"{url}/v1\"\nmodel = \"tiny\"\nattempts = 1\n"
    ));
    let data = sandbox.file("home.jsonl", LINES);
    (sandbox, endpoint, data)
}

const ARGS: [&str; 5] = ["--recipe", "hybrid", "--answer", "--context-tokens", "200"];

fn run(sandbox: &Sandbox, data: &str, more: &[&str]) -> Value {
    let args = [
        &["eval", "jsonl", "--data", data, "--json"][..],
        &ARGS,
        more,
    ]
    .concat();
    sandbox.run(&args).json()
}

fn script() -> Vec<Move> {
    let says = [
        "In the shed.",
        r#"{"right": true}"#,
        "I do not know.",
        r#"{"right": false}"#,
    ];
    says.map(Move::say).to_vec()
}

#[test]
fn answers_come_from_a_context_and_are_judged() {
    let (sandbox, endpoint, data) = configured(script());
    let prices = ["--input-price", "1", "--output-price", "2"];
    let run = run(&sandbox, &data, &prices);
    let all = &run["rows"][0];
    assert_eq!(
        (&all["questions"], &all["right"]),
        (&json!(3), &json!(50.0))
    );
    let first = &run["questions"][0];
    assert_eq!(
        (&first["answer"], &first["right"]),
        (&json!("In the shed."), &json!(true))
    );
    let report = &run["answering"];
    assert_eq!(
        (&report["judged"], &report["failed"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(report["answer_tokens"], json!({"input": 22, "output": 14}));
    assert_eq!(report["judge_tokens"], json!({"input": 22, "output": 14}));
    // 44 tokens in at 1 for a million, 28 out at 2.
    assert!((report["cost"].as_f64().unwrap() - 0.0001).abs() < 1e-12);

    let seen = endpoint.seen();
    assert_eq!(
        seen.len(),
        4,
        "a question without a reference answer is not asked"
    );
    let said = |n: usize| seen[n].body["messages"].to_string();
    assert!(
        said(0).contains("2026-01-31, user: I keep the ladder in the shed."),
        "{}",
        said(0)
    );
    assert!(said(0).contains("Question: Where is my ladder?"));
    assert!(said(0).contains("Today is 2026-02-02."), "{}", said(0));
    assert!(
        said(1).contains("Reference answer: in the shed"),
        "{}",
        said(1)
    );
    assert!(said(1).contains("Answer: In the shed."));
    assert!(
        said(2).contains("2026-02-01, Bob: The kettle"),
        "{}",
        said(2)
    );
    assert!(said(2).contains("Today is 2026-03-01."));
}

#[test]
fn the_report_is_printed() {
    let (sandbox, _endpoint, data) = configured(script());
    let args = [&["eval", "jsonl", "--data", &data][..], &ARGS].concat();
    insta::assert_snapshot!(sandbox.run(&args).ok());
    let usage = sandbox.run(&["llm", "usage"]).ok();
    assert!(usage.contains("eval"), "{usage}");
}

#[test]
fn the_context_keeps_to_its_tokens() {
    let (sandbox, endpoint, data) = configured(script());
    let args = ["eval", "jsonl", "--data", &data, "--recipe", "hybrid"];
    sandbox
        .run(&[&args[..], &["--answer", "--context-tokens", "60"]].concat())
        .ok();
    let first = endpoint.seen()[0].body["messages"].to_string();
    assert!(
        first.contains("ladder in the shed") && !first.contains("kettle"),
        "{first}"
    );
}

#[test]
fn an_unusable_judgement_does_not_end_the_run() {
    let says = [
        "In the shed.",
        "Surely!",
        "Surely!",
        "The kettle.",
        r#"{"right": true}"#,
    ];
    let (sandbox, _endpoint, data) = configured(says.map(Move::say).to_vec());
    let run = run(&sandbox, &data, &[]);
    assert_eq!(
        (&run["answering"]["judged"], &run["answering"]["failed"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(run["rows"][0]["right"], 100.0);
    assert_eq!(run["questions"][0]["answer"], "In the shed.");
    assert_eq!(run["questions"][0].get("right"), None);
    assert_eq!(run["answering"].get("cost"), None);
}

#[test]
fn answers_need_a_model_and_references() {
    let sandbox = Sandbox::new();
    let data = sandbox.file("home.jsonl", LINES);
    let eval = |data: &str, more: &[&str]| {
        let args = [&["eval", "jsonl", "--data", data][..], more].concat();
        sandbox.run(&args).failed()
    };
    let (code, message) = eval(&data, &["--answer"]);
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("no language model is configured"),
        "{message}"
    );
    let bare = sandbox.file("bare.jsonl", LINES.replace("\"answer\"", "\"category\""));
    let (code, message) = eval(&bare, &["--answer"]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("has no reference answers"), "{message}");
    for wrong in [
        &["--context-tokens", "9"][..],
        &["--answer", "--context-tokens", "0"],
    ] {
        let (code, message) = eval(&data, wrong);
        assert_eq!(code, 2, "{message}");
    }

    let (sandbox, _endpoint, data) = configured(vec![Move::status(500, "{}")]);
    let args = [&["eval", "jsonl", "--data", &data][..], &ARGS].concat();
    let (code, message) = sandbox.run(&args).failed();
    assert_ne!(code, 2, "{message}");
    assert!(message.contains("tiny"), "{message}");
}
