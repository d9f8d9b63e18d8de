//! Measuring how well the right records are found.

mod answers;
mod formats;
mod setups;

use serde_json::json;

use crate::sandbox::Sandbox;

/// A conversation in the form of LoCoMo, made up here.
pub(crate) fn data() -> String {
    let turn = |id: &str, speaker: &str, text: &str| json!({"dia_id": id, "speaker": speaker, "text": text});
    let mut picture = turn("D2:1", "Bob", "Look what I found!");
    picture["blip_caption"] = json!("a photo of a red kite on the beach");
    json!([{
        "sample_id": "made-up",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn("D1:1", "Ann", "My sister moved to Lisbon last week."),
                turn("D1:2", "Bob", "I adopted a puppy called Rex."),
            ],
            "session_2_date_time": "12:09 am on 13 September, 2023",
            "session_2": [picture],
        },
        "qa": [
            {"question": "Where did Ann's sister move?", "category": 4, "evidence": ["D1:1"]},
            {"question": "What pet does Bob have?", "category": 1, "evidence": ["D1:02; D9:9"]},
            {"question": "Who flew a kite?", "category": 2, "evidence": ["D2:1"]},
            {"question": "What is Bob's car?", "category": 5, "evidence": ["D1:2"]},
            {"question": "No evidence?", "category": 4, "evidence": ["D"]},
        ],
    }])
    .to_string()
}

#[test]
fn the_measures_are_told_and_written() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("data.json", data());
    let out = sandbox.path("out.json").display().to_string();
    let told = sandbox
        .run(&[
            "eval", "locomo", "--data", &path, "--recipe", "hybrid", "--out", &out,
        ])
        .ok();
    insta::assert_snapshot!(told);
    let written = std::fs::read_to_string(&out).unwrap();
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["records"], 3);
    assert_eq!(written["rows"][0]["questions"], 3);
    assert_eq!(written["rows"][0]["recall_5"], 100.0);
    assert_eq!(
        written["rows"][0]["interval_95"]["recall_5"],
        json!([100.0, 100.0])
    );
    assert_eq!(written["left_out"], 1);
    let first = &written["questions"][0];
    assert_eq!(first["id"], "made-up:0");
    assert_eq!(
        (&first["recall_10"], &first["rank"]),
        (&json!(1.0), &json!(1))
    );
    let json = sandbox
        .run(&["eval", "locomo", "--data", &path, "--json"])
        .json();
    assert_eq!(json["rows"].as_array().unwrap().len(), 12);
    assert!(!sandbox.path(".local").exists(), "no store is made");
}

#[test]
fn data_of_another_kind_is_refused() {
    let sandbox = Sandbox::new();
    let eval = |path: &str| sandbox.run(&["eval", "locomo", "--data", path]).failed();
    assert_eq!(eval("nowhere.json").0, 3);
    let (code, message) = eval(&sandbox.file("a.json", "[{}]"));
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("a.json is not LoCoMo's JSON"), "{message}");
    let undated = data().replace("1:56 pm on 8 May, 2023", "some day");
    let (code, message) = eval(&sandbox.file("b.json", undated));
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("b.json sample 0: session_1_date_time"),
        "{message}"
    );
}
