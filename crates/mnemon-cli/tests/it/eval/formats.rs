//! BEAM, BEIR and JSON lines, with data made up here.

use std::fs;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn message(id: Value, role: &str, content: &str) -> Value {
    json!({"id": id, "role": role, "content": content})
}

fn chat() -> Value {
    let mut first = message(
        json!(1),
        "user",
        "I keep bees behind the old barn. ->-> 1,1",
    );
    first["time_anchor"] = json!("March-15-2024");
    json!([
        {"batch_number": 1, "turns": [
            [first, message(json!(2), "assistant", "Bees are lovely; how many hives are there?")],
            [message(json!("3"), "user", "There are seven hives now.")],
        ]},
        {"batch_number": 2, "time_anchor": null, "turns": [
            [message(json!(4), "user", "My sister bakes rye bread on Sundays."),
             message(json!(5), "assistant", "Rye bread keeps for a week.")],
        ]},
    ])
}

fn probes() -> Value {
    json!({
        "abstention": [{"question": "What colour is my car?"}],
        "information_extraction": [
            {"question": "How many hives do I have?", "source_chat_ids": [[3], "1"]},
            {"question": "What does my sister bake?", "source_chat_ids": {"first": [4]}},
        ],
        "temporal_reasoning": [{"question": "When did I speak?", "source_chat_ids": [99]}],
    })
}

fn write_chat(sandbox: &Sandbox, folder: &str, chat: &Value, probes: &Value) -> String {
    let folder = sandbox.path(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("chat.json"), chat.to_string()).unwrap();
    fs::write(folder.join("probing_questions.json"), probes.to_string()).unwrap();
    folder.display().to_string()
}

fn hybrid(sandbox: &Sandbox, format: &str, data: &str, more: &[&str]) -> Value {
    let mut args = vec![
        "eval", format, "--data", data, "--recipe", "hybrid", "--json",
    ];
    args.extend(more);
    sandbox.run(&args).json()
}

#[track_caller]
fn refused(sandbox: &Sandbox, args: &[&str], parts: &[&str]) {
    let (code, message) = sandbox.run(&[&["eval"], args].concat()).failed();
    assert_eq!(code, 2, "{message}");
    for part in parts {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

#[test]
fn beam_is_read_as_published() {
    let sandbox = Sandbox::new();
    let chat_folder = write_chat(&sandbox, "chats/100K/2", &chat(), &probes());
    let run = hybrid(&sandbox, "beam", &chat_folder, &[]);
    assert_eq!((&run["records"], &run["left_out"]), (&json!(5), &json!(1)));
    assert_eq!(run["rows"][0]["questions"], 2);
    assert_eq!(run["rows"][0]["recall_5"], 100.0);
    assert_eq!(run["rows"][1]["category"], "information extraction");
    assert_eq!(run["questions"][0]["id"], "2:information_extraction:0");

    // The questions of the published data are in a folder.
    let other = sandbox.path("chats/100K/10");
    write_chat(&sandbox, "chats/100K/10", &chat(), &probes());
    fs::create_dir(other.join("probing_questions")).unwrap();
    let name = "probing_questions.json";
    fs::rename(other.join(name), other.join("probing_questions").join(name)).unwrap();
    // A chat's own folders are not chats.
    write_chat(&sandbox, "chats/100K/10/plan-1", &chat(), &probes());
    let all = sandbox.path("chats").display().to_string();
    let run = hybrid(&sandbox, "beam", &all, &[]);
    assert_eq!(run["conversations"], 2);
    let ids = run["questions"].as_array().unwrap().iter();
    let ids: Vec<&str> = ids.map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids[0], "100K/2:information_extraction:0");
    assert_eq!(ids[2], "100K/10:information_extraction:0");
}

#[test]
fn the_recall_of_beam_is_capped() {
    let sandbox = Sandbox::new();
    let said = |n: usize| message(json!(n), "user", &format!("Walk {n} to the lighthouse."));
    let chat = json!([{"batch_number": 1, "turns": [(0..30).map(said).collect::<Vec<_>>()]}]);
    let ids: Vec<usize> = (0..30).collect();
    let probe = json!({"question": "Which walks to the lighthouse?", "source_chat_ids": ids});
    let folder = write_chat(&sandbox, "one", &chat, &json!({"summarization": [probe]}));
    let run = hybrid(&sandbox, "beam", &folder, &[]);
    assert_eq!(run["rows"][0]["recall_5"], 100.0, "{run}");
    assert_eq!(run["rows"][0]["ndcg_10"], 100.0);
}

#[test]
fn a_malformed_chat_is_named_with_its_place() {
    let sandbox = Sandbox::new();
    let mut bad = chat();
    bad[1]["turns"][0][1]["content"] = json!(null);
    let folder = write_chat(&sandbox, "bad", &bad, &probes());
    let place = "bad/chat.json batch 2, 1, 2: the message has no `content`";
    refused(&sandbox, &["beam", "--data", &folder], &[place]);

    let folder = write_chat(
        &sandbox,
        "odd",
        &chat(),
        &json!({"summarization": [{"text": 1}]}),
    );
    let place = "odd/probing_questions.json is not BEAM's questions";
    refused(&sandbox, &["beam", "--data", &folder], &[place, "line 1"]);

    fs::create_dir_all(sandbox.path("empty/inside")).unwrap();
    let empty = sandbox.path("empty").display().to_string();
    refused(
        &sandbox,
        &["beam", "--data", &empty],
        &["empty has no chat"],
    );
    let (code, message) = sandbox.run(&["eval", "beam", "--data", "nowhere"]).failed();
    assert_eq!(code, 3, "{message}");
}

fn write_beir(sandbox: &Sandbox, qrels: &str) -> String {
    let folder = sandbox.path("beir");
    fs::create_dir_all(folder.join("qrels")).unwrap();
    let corpus = concat!(
        "{\"_id\":\"d 1\",\"title\":\"Tides\",\"text\":\"The moon lifts the sea twice a day.\"}\n",
        "{\"_id\":\"d2\",\"title\":\"\",\"text\":\"Basalt is a dark volcanic rock.\"}\n\n",
        "{\"_id\":\"đ3\",\"text\":\"Owls hunt mice at night.\",\"metadata\":{}}\n",
    );
    let queries = concat!(
        "{\"_id\":\"q1\",\"text\":\"What causes tides of the sea?\"}\n",
        "{\"_id\":\"q2\",\"text\":\"Which birds hunt mice?\"}\n",
        "{\"_id\":\"q3\",\"text\":\"not judged\"}\n",
    );
    fs::write(folder.join("corpus.jsonl"), corpus).unwrap();
    fs::write(folder.join("queries.jsonl"), queries).unwrap();
    fs::write(folder.join("qrels/test.tsv"), qrels).unwrap();
    folder.display().to_string()
}

#[test]
fn beir_folders_are_measured() {
    let sandbox = Sandbox::new();
    let qrels = "query-id\tcorpus-id\tscore\nq1\td 1\t2\nq1\td2\t0\nq2\tđ3\t1\n";
    let folder = write_beir(&sandbox, qrels);
    let run = hybrid(&sandbox, "beir", &folder, &[]);
    assert_eq!(run["rows"].as_array().unwrap().len(), 1);
    assert_eq!(run["rows"][0]["questions"], 2);
    assert_eq!(run["rows"][0]["ndcg_10"], 100.0, "{run}");
    let trec = write_beir(&sandbox, "q1 0 d2\n".replace(' ', "\t").as_str());
    refused(&sandbox, &["beir", "--data", &trec], &["no judgements"]);
    let trec = write_beir(&sandbox, "q1\t0\td2\t1\n");
    assert_eq!(
        hybrid(&sandbox, "beir", &trec, &[])["rows"][0]["questions"],
        1
    );
}

#[test]
fn malformed_beir_files_are_named_with_the_line() {
    let sandbox = Sandbox::new();
    let folder = write_beir(&sandbox, "query-id\tcorpus-id\tscore\nq1\td2\thigh\n");
    let args = ["beir", "--data", &folder];
    refused(
        &sandbox,
        &args,
        &["qrels/test.tsv, line 2: `high` is not a score"],
    );
    write_beir(&sandbox, "q1\td2\tinf\n");
    refused(&sandbox, &args, &["line 1: `inf` is not a score"]);
    write_beir(&sandbox, "q1 d2 1\n");
    refused(&sandbox, &args, &["qrels/test.tsv, line 1", "tabs"]);
    let (code, message) = sandbox
        .run(&["eval", "beir", "--data", &folder, "--split", "dev"])
        .failed();
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("dev.tsv cannot be read"), "{message}");
    let corpus = sandbox.path("beir/corpus.jsonl");
    fs::write(
        &corpus,
        "{\"_id\":\"a\",\"text\":\"x\"}\n{\"_id\":\"a\",\"text\":\"y\"}\n",
    )
    .unwrap();
    refused(
        &sandbox,
        &args,
        &["corpus.jsonl, line 2", "another document `a`"],
    );
    fs::write(&corpus, "{\"_id\":\"a\"}\n").unwrap();
    refused(
        &sandbox,
        &args,
        &["corpus.jsonl, line 1", "missing field `text`"],
    );
}

const LINES: &str = concat!(
    r#"{"question":"Where do I keep the ladder?","expected":["a"],"category":"home","asked":"2026-03-01"}"#,
    "\n",
    r#"{"id":"a","content":"I keep the ladder in the shed.","role":"user","session":"s","created":"2026-01-31","user":"ann"}"#,
    "\n",
    r#"{"id":2,"content":"I keep the ladder in the attic.","speaker":"Bob","user":"bob"}"#,
    "\n\n",
    r#"{"question":"Where does Bob keep the ladder?","expected":[2],"category":"home","user":"bob"}"#,
    "\n",
);

#[test]
fn own_questions_are_measured() {
    let sandbox = Sandbox::new();
    let one = sandbox.file("all.jsonl", LINES);
    let run = hybrid(&sandbox, "jsonl", &one, &["--filter", "user"]);
    assert_eq!(run["records"], 2);
    assert_eq!(run["rows"][0]["ndcg_10"], 100.0, "{run}");
    // Records do not expire, however late a question is asked.
    let late = sandbox.file("late.jsonl", LINES.replace("2026-03-01", "2060-03-01"));
    let run_late = hybrid(&sandbox, "jsonl", &late, &["--filter", "user"]);
    assert_eq!(run_late["rows"], run["rows"]);
    let (asked, records): (Vec<&str>, Vec<&str>) =
        LINES.lines().partition(|line| line.contains("question"));
    let records = sandbox.file("records.jsonl", records.join("\n"));
    let asked = sandbox.file("asked.jsonl", asked.join("\n"));
    let split = hybrid(
        &sandbox,
        "jsonl",
        &records,
        &["--questions", &asked, "--filter", "user"],
    );
    assert_eq!(split["questions"], run["questions"]);
}

#[test]
fn categories_cannot_steer_the_terminal() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("own.jsonl");
    let record = json!({"id": "a", "content": "tea"});
    let question = json!({"question": "tea?", "expected": ["a"], "category": "c\u{1b}[31m"});
    fs::write(&file, format!("{record}\n{question}\n")).unwrap();
    let shown = sandbox.run(&["eval", "jsonl", "--data", &file.display().to_string()]);
    let shown = shown.ok();
    assert!(
        !shown.contains('\u{1b}') && shown.contains("[31m"),
        "{shown}"
    );
}

/// Reading a pipe would wait for its writer.
#[test]
fn data_is_read_from_files_only() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("folder");
    fs::create_dir(&folder).unwrap();
    let folder = folder.display().to_string();
    refused(&sandbox, &["jsonl", "--data", &folder], &["is not a file"]);
}

#[test]
fn malformed_lines_are_named() {
    let sandbox = Sandbox::new();
    let cases = [
        ("{\n", "line 1: EOF"),
        ("{\"id\":\"a\"}\n", "line 1: missing field `content`"),
        (
            "\n{\"id\":\"a\",\"content\":\" \"}\n",
            "line 2: content: is empty",
        ),
        ("{\"id\":[],\"content\":\"x\"}\n", "line 1: id: is neither"),
        (
            "{\"id\":\"a\",\"content\":\"x\",\"speeker\":\"Ann\"}\n",
            "unknown field `speeker`",
        ),
        (
            "{\"id\":\"a\",\"content\":\"x\",\"created\":\"soon\"}\n",
            "line 1: created: `soon` is not a time",
        ),
        (
            "{\"id\":\"a\",\"content\":\"x\"}\n{\"id\":\"a\",\"content\":\"y\"}\n",
            "line 2: id: there is another record `a`",
        ),
        (
            "{\"id\":\"a\",\"content\":\"x\"}\n\
             {\"id\":\"q\",\"question\":\"x\",\"expected\":[\"a\"]}\n\
             {\"id\":\"q\",\"question\":\"y\",\"expected\":[\"a\"]}\n",
            "line 3: id: there is another question `q`",
        ),
        (
            "{\"question\":\"x\",\"expected\":[\"b\"]}\n",
            "line 1: expected: there is no record `b`",
        ),
        (
            "{\"question\":\"x\",\"expected\":[]}\n",
            "has no question that names a record",
        ),
        ("{\"id\":\"a\",\"content\":\"x\"}\n", "has no question"),
    ];
    for (text, part) in cases {
        let path = sandbox.file("bad.jsonl", text);
        refused(&sandbox, &["jsonl", "--data", &path], &["bad.jsonl", part]);
    }
}

#[test]
fn questions_that_no_record_answers_are_left_out() {
    let sandbox = Sandbox::new();
    let lines = [
        json!({"id": "a", "content": "The ladder is in the shed."}),
        json!({"question": "Where is the ladder?", "expected": ["a"]}),
        json!({"question": "Where is the piano?", "expected": []}),
    ];
    let data = sandbox.file("own.jsonl", lines.map(|line| line.to_string()).join("\n"));
    let run = sandbox
        .run(&["eval", "jsonl", "--data", &data, "--json"])
        .json();
    assert_eq!(
        (&run["left_out"], &run["rows"][0]["questions"]),
        (&json!(1), &json!(1))
    );
}
