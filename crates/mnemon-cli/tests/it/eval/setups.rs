//! Stores, filters, copies and comparisons.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Two conversations that talk about the same things.
fn twins() -> String {
    let sample = |name: &str, speaker: &str, pets: &[&str]| {
        let turn = |(n, pet): (usize, &&str)| {
            json!({"dia_id": format!("D1:{}", n + 1), "speaker": speaker,
                   "text": format!("We bought a {pet} at the market today.")})
        };
        let asked = |(n, pet): (usize, &&str)| {
            json!({"question": format!("Who bought a {pet}?"), "category": 4,
                   "answer": speaker, "evidence": [format!("D1:{}", n + 1)]})
        };
        json!({
            "sample_id": name,
            "conversation": {
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": pets.iter().enumerate().map(turn).collect::<Vec<_>>(),
            },
            "qa": pets.iter().enumerate().map(asked).collect::<Vec<_>>(),
        })
    };
    let pets = [
        "goat", "parrot", "tortoise", "hamster", "donkey", "canary", "lizard",
    ];
    json!([sample("one", "Ann", &pets), sample("two", "Bob", &pets)]).to_string()
}

fn hybrid(sandbox: &Sandbox, more: &[&str]) -> Value {
    let data = sandbox.file("twins.json", twins());
    let mut args = vec![
        "eval", "locomo", "--data", &data, "--recipe", "hybrid", "--json",
    ];
    args.extend(more);
    sandbox.run(&args).json()
}

fn mean(run: &Value, measure: &str) -> f64 {
    run["rows"][0][measure].as_f64().unwrap()
}

#[test]
fn a_user_filter_separates_conversations_in_one_store() {
    let sandbox = Sandbox::new();
    let separate = hybrid(&sandbox, &[]);
    assert_eq!(mean(&separate, "ndcg_10"), 100.0, "{separate}");
    let together = hybrid(&sandbox, &["--stores", "one"]);
    assert!(mean(&together, "ndcg_10") < 90.0, "{together}");
    assert_eq!(together["stores"], "one");
    let filtered = hybrid(&sandbox, &["--stores", "one", "--filter", "user"]);
    assert_eq!(mean(&filtered, "ndcg_10"), 100.0, "{filtered}");
    let first = hybrid(&sandbox, &["--limit-conversations", "1"]);
    assert_eq!(first["rows"][0]["questions"], 7);
}

#[test]
fn copies_are_stored_and_count_once() {
    let sandbox = Sandbox::new();
    let once = hybrid(&sandbox, &[]);
    for style in ["exact", "words"] {
        let thrice = hybrid(&sandbox, &["--copies", "3", "--copy-style", style]);
        assert_eq!(thrice["records"], once["records"]);
        assert_eq!(
            (&thrice["copies"], &thrice["copy_style"]),
            (&json!(3), &json!(style))
        );
        assert!(mean(&thrice, "recall_20") <= 100.0);
        assert_eq!(mean(&thrice, "recall_5"), 100.0, "{style}: {thrice}");
    }
    let (code, message) = sandbox
        .run(&["eval", "locomo", "--data", "x", "--copies", "0"])
        .failed();
    assert_eq!(code, 2, "{message}");
}

#[test]
fn two_runs_are_compared_question_by_question() {
    let sandbox = Sandbox::new();
    let out = sandbox.path("old.json").display().to_string();
    hybrid(&sandbox, &["--stores", "one", "--out", &out]);
    let run = hybrid(&sandbox, &["--compare", &out]);
    let all = &run["comparison"]["rows"][0];
    assert_eq!(all["category"], "all");
    assert_eq!(all["questions"], 14);
    let gain = all["ndcg_10"].as_f64().unwrap();
    assert!(gain > 10.0, "{all}");
    assert!(all["interval_95"]["ndcg_10"][0].as_f64().unwrap() <= gain);
    assert_eq!(all["worse"], 0);
    assert_eq!(run["comparison"]["unpaired"], 0);

    let data = sandbox.path("twins.json").display().to_string();
    let args = [
        "eval",
        "locomo",
        "--data",
        &data,
        "--recipe",
        "words",
        "--compare",
        &out,
    ];
    insta::assert_snapshot!(sandbox.run(&args).ok());
}

#[test]
fn a_run_over_other_questions_is_refused() {
    let sandbox = Sandbox::new();
    let data = sandbox.file("twins.json", twins());
    let other = sandbox.file("other.json", json!({"questions": []}).to_string());
    let compare = |path: &str| {
        let args = [
            "eval",
            "locomo",
            "--data",
            &data,
            "--recipe",
            "words",
            "--compare",
            path,
        ];
        sandbox.run(&args).failed()
    };
    let (code, message) = compare(&other);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("other.json has no questions"), "{message}");
    let strange = json!({"questions": [{
        "recipe": "words", "id": "elsewhere:1", "recall_5": 1.0, "recall_10": 1.0,
        "recall_20": 1.0, "ndcg_10": 1.0,
    }]});
    let (_, message) = compare(&sandbox.file("strange.json", strange.to_string()));
    assert!(message.contains("no question in common"), "{message}");
}

/// Recall at 10 of the words with and without the last of these steps, always without the others:
/// the question has no other clue.
fn worth_of(steps: [&str; 2], question: &str, answer: &str) -> (f64, f64) {
    let sandbox = Sandbox::new();
    let lines = [
        json!({"id": "a", "content": answer}),
        json!({"id": "b", "content": "The printer is out of toner."}),
        json!({"question": question, "expected": ["a"]}),
    ];
    let data = sandbox.file("own.jsonl", lines.map(|line| line.to_string()).join("\n"));
    let run = |without: &[&str]| {
        let mut args = vec![
            "eval", "jsonl", "--data", &data, "--recipe", "words", "--json",
        ];
        args.extend(without.iter().flat_map(|step| ["--without", step]));
        sandbox.run(&args).json()
    };
    let [other, step] = steps;
    let (with, without) = (run(&[other]), run(&[other, step]));
    assert_eq!(without["steps"][step.replace('-', "_")], false);
    (mean(&with, "recall_10"), mean(&without, "recall_10"))
}

#[test]
fn steps_that_find_other_words_can_be_left_out() {
    let irregular = worth_of(
        ["similar-words", "irregular-forms"],
        "Who wrote?",
        "Ann wants to write.",
    );
    assert_eq!(irregular, (100.0, 0.0));
    let similar = worth_of(
        ["irregular-forms", "similar-words"],
        "Any dog?",
        "Our puppy chewed the sofa.",
    );
    assert_eq!(similar, (100.0, 0.0));
}
