//! Lines of a log and the messages that they are.

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::window::is_paired;
use mnemon_core::{Block, ErrorKind, Fate, Media, Message, Role};
use mnemon_engine::{LogLine, Window};
use mnemon_testkit::fakes::FilesInRam;
use serde_json::{Map, Value, json};

use super::{LOG, hot, project, read, shown, user, window};
use crate::{ctx, memory, wait};

#[test]
fn lines_are_written_as_the_document_says_and_come_back() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files, hot(9)));
    let window = window(&memory, &project);
    for line in [
        json!({"type": "user", "content": "Hi"}),
        json!({"type": "thought", "content": "hm"}),
        json!({"type": "action", "tool": "write_file", "params": {"path": "x"}}),
        json!({"type": "observation", "result": "done"}),
    ] {
        let line: LogLine = serde_json::from_value(line).unwrap();
        wait(window.append_line(&ctx(), &line, None)).unwrap();
    }
    let log = read(&files, LOG);
    let lines: Vec<&str> = log.lines().collect();
    let ts = "\"ts\":\"2023-11-14T22:13:20.000Z\",\"id\":";
    assert!(lines[0].starts_with(&format!("{{\"type\":\"user\",\"content\":\"Hi\",{ts}")));
    assert!(lines[2].starts_with(&format!(
        "{{\"type\":\"action\",\"tool\":\"write_file\",\"params\":{{\"path\":\"x\"}},{ts}"
    )));
    let members: Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!(
        members.as_object().unwrap().len(),
        5,
        "a plain line stays plain"
    );
    let messages = wait(window.get_messages(&ctx())).unwrap();
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [Role::User, Role::Assistant, Role::Assistant, Role::Tool]
    );
    assert!(is_paired(&messages));
    let Block::ToolResult { name, output, .. } = &messages[3].content[0] else {
        panic!("{messages:?}");
    };
    assert_eq!(name, "write_file");
    assert_eq!(output, &[text("done")]);
    // What a search finds a call and its result by.
    let found = super::found(&memory, "ann", "write_file");
    assert_eq!(
        found[..2]
            .iter()
            .filter(|text| text.contains("write_file"))
            .count(),
        2
    );
}

fn text(text: &str) -> Block {
    Block::Text {
        text: text.to_owned(),
    }
}

fn every_sort() -> Vec<Message> {
    let image = Block::Image {
        source: Media::Base64 {
            media_type: "image/png".to_owned(),
            data: "AA==".to_owned(),
        },
        extra: Map::new(),
    };
    let call = Block::ToolUse {
        id: "c1".to_owned(),
        name: "ls".to_owned(),
        input: Map::from_iter([("path".to_owned(), json!("/"))]),
        content: None,
        metadata: Map::new(),
    };
    let result = |output: Vec<Block>| Block::ToolResult {
        id: "c1".to_owned(),
        name: "ls".to_owned(),
        output,
        metadata: Map::new(),
    };
    let thinking = Block::Thinking {
        thinking: "hm".to_owned(),
        metadata: Map::from_iter([("signature".to_owned(), json!("s"))]),
    };
    let of = |role: Role, content: Vec<Block>| Message {
        content,
        ..Message::text("", role, "")
    };
    vec![
        Message::text("", Role::System, "Be brief"),
        Message::text("mine", Role::User, "What \"is\" there?\nLook."),
        of(
            Role::Assistant,
            vec![thinking, text("I look"), call.clone()],
        ),
        of(Role::Tool, vec![result(vec![text("a.txt")])]),
        of(Role::Assistant, vec![text("same"), text("same"), call]),
        of(Role::Tool, vec![result(vec![text("a"), image.clone()])]),
        of(Role::User, vec![text("and this?"), image]),
        Message {
            name: Some("planner".to_owned()),
            metadata: Map::from_iter([("k".to_owned(), json!([1, {"a": null}]))]),
            timestamp: Some("2024-01-15 10:30:00.123".to_owned()),
            ..Message::text("", Role::Assistant, "ok")
        },
        of(Role::Assistant, Vec::new()),
    ]
}

#[test]
fn nothing_of_a_message_is_lost_in_the_log() {
    let files = Arc::new(FilesInRam::default());
    let project = project(&files, hot(99));
    let writer = memory();
    for message in every_sort() {
        wait(window(&writer, &project).add_message(&ctx(), message)).unwrap();
    }
    // Another store has nothing but the log.
    let reader = memory();
    let reader = window(&reader, &project);
    wait(reader.catch_up(&ctx())).unwrap();
    let read = wait(reader.get_messages(&ctx())).unwrap();
    let written = wait(window(&writer, &project).get_messages(&ctx())).unwrap();
    assert_eq!(read, written);
    for (read, said) in read.iter().zip(every_sort()) {
        assert_eq!((read.role, &read.content), (said.role, &said.content));
        assert_eq!((&read.name, &read.metadata), (&said.name, &said.metadata));
        assert!(said.id.is_empty() || said.id == read.id);
        assert!(said.timestamp.is_none() || said.timestamp == read.timestamp);
    }
}

#[test]
fn logs_of_other_tools_and_of_earlier_versions_are_read() {
    let files = Arc::new(FilesInRam::default());
    let lines = [
        r#"{"type":"action","tool":"a","params":{"x":1}}"#,
        r#"{"type":"action","tool":"b","params":"plain"}"#,
        r#"{"type":"observation","result":"of a"}"#,
        r#"{"type":"observation","result":{"of":"b"}}"#,
        r#"{"type":"observation","result":"of nothing"}"#,
        r#"{"type":"plan","steps":3}"#,
        r#"{"type":"user","content":"one","id":"7"}"#,
        r#"{"type":"user","content":"two","id":"7"}"#,
        // A message of two blocks, as earlier versions wrote it.
        r#"{"type":"thought","content":"I look","ts":"2024-07-12T07:19:50.528Z","id":"0190a5d0-0000-7000-8000-000000000001"}"#,
        r#"{"type":"action","tool":"ls","params":{},"ts":"2024-07-12T07:19:50.528Z","id":"0190a5d0-0000-7000-8000-000000000001"}"#,
    ];
    wait(files.write(LOG, (lines.join("\n") + "\n").as_bytes(), None)).unwrap();
    let (memory, project) = (memory(), project(&files, hot(30)));
    let window = window(&memory, &project);
    let ctx = ctx();
    wait(window.catch_up(&ctx)).unwrap();
    let notices = ctx.notices.take();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(notices[0].contains("1 observations") && notices[0].contains("follow no action"));
    let messages = wait(window.get_messages(&ctx)).unwrap();
    assert_eq!(messages.len(), 9, "{messages:?}");
    assert!(is_paired(&messages));
    assert_eq!(messages[4].text_content(), "Observation: of nothing");
    assert_eq!(messages[5].text_content(), r#"{"steps":3,"type":"plan"}"#);
    assert_eq!(messages[8].content.len(), 2);
    assert_eq!(shown(&window).len(), 9);
}

fn of_blocks(texts: impl IntoIterator<Item = String>) -> Message {
    Message {
        content: texts.into_iter().map(|said| text(&said)).collect(),
        ..user("")
    }
}

/// What each block of each message says.
fn blocks(window: &Window<'_>) -> Vec<Vec<String>> {
    let messages = wait(window.get_messages(&ctx())).unwrap();
    let texts = |message: &Message| -> Vec<String> {
        let texts = message.content.iter().map(|block| match block {
            Block::Text { text } => text.clone(),
            other => panic!("{other:?}"),
        });
        texts.collect()
    };
    messages.iter().map(texts).collect()
}

#[test]
fn a_message_of_many_or_long_blocks_stays_whole() {
    let long: Vec<String> = (0..3).map(|n| n.to_string().repeat(200_000)).collect();
    let many: Vec<String> = (0..1200).map(|n| format!("block {n}")).collect();
    let short = vec!["short".to_owned()];
    let files = Arc::new(FilesInRam::default());
    let project = project(&files, hot(99));
    let writer = memory();
    let all = [&short, &long, &short, &many, &many, &long];
    for texts in all {
        wait(window(&writer, &project).add_message(&ctx(), of_blocks(texts.clone()))).unwrap();
    }
    let reader = memory();
    let reader = window(&reader, &project);
    wait(reader.catch_up(&ctx())).unwrap();
    wait(reader.import_backlog(&ctx(), &mut |_| {})).unwrap();
    for window in [&reader, &window(&writer, &project)] {
        let read = blocks(window);
        let counts: Vec<usize> = read.iter().map(Vec::len).collect();
        assert_eq!(counts, [1, 3, 1, 1200, 1200, 3]);
        assert!(read.iter().eq(all));
    }
}

#[test]
fn a_message_that_was_written_in_part_is_written_again() {
    let three = ["one", "two", "three"].map(str::to_owned);
    let say = |window: &Window<'_>| {
        let messages = vec![of_blocks(three.clone())];
        wait(window.add_messages(&ctx(), messages, Some("k"))).unwrap();
    };
    let whole = Arc::new(FilesInRam::default());
    say(&window(&memory(), &project(&whole, hot(9))));
    let log = read(&whole, LOG);
    let ends: Vec<usize> = log.match_indices('\n').map(|(at, _)| at + 1).collect();
    for cut in [ends[0], ends[0] + 9, ends[1], ends[1] + 9] {
        let files = Arc::new(FilesInRam::default());
        wait(files.write(LOG, &log.as_bytes()[..cut], None)).unwrap();
        let (memory, project) = (memory(), project(&files, hot(9)));
        let window = window(&memory, &project);
        wait(window.catch_up(&ctx())).unwrap();
        assert!(blocks(&window).is_empty(), "it is not whole");
        say(&window);
        assert_eq!(blocks(&window), [&three], "cut at {cut}");
        // A process that comes later reads the same.
        let later = crate::memory();
        let later = super::window(&later, &project);
        wait(later.catch_up(&ctx())).unwrap();
        assert_eq!(blocks(&later), [&three], "cut at {cut}");
    }
    // If another message comes first, nothing that was written is lost.
    let files = Arc::new(FilesInRam::default());
    wait(files.write(LOG, &log.as_bytes()[..ends[1]], None)).unwrap();
    let (memory, project) = (memory(), project(&files, hot(9)));
    let window = window(&memory, &project);
    wait(window.add_message(&ctx(), user("other"))).unwrap();
    say(&window);
    let parts: [&[String]; 3] = [&three[..2], &["other".to_owned()], &three];
    assert_eq!(blocks(&window), parts);
}

#[test]
fn a_key_stands_for_one_line() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files, hot(9)));
    let window = window(&memory, &project);
    let lines = [
        json!({"type": "user", "content": "Hi"}),
        json!({"type": "thought", "content": "Hi"}),
        json!({"type": "observation", "result": {"of": "nothing"}}),
        json!({"type": "action", "tool": "ls", "params": {"path": "x"}}),
        json!({"type": "observation", "result": "done"}),
        json!({"type": "action", "tool": "ls", "params": "x"}),
    ];
    let say = |line: &Value, key: &str| {
        let line: LogLine = serde_json::from_value(line.clone()).unwrap();
        wait(window.append_line(&ctx(), &line, Some(key)))
    };
    for (key, line) in lines.iter().enumerate() {
        let first = say(line, &key.to_string()).unwrap();
        let again = say(line, &key.to_string()).unwrap();
        let id = first.items[0].id.clone();
        assert_eq!(again.items[0].id, id);
        assert_eq!(again.items[0].fate, Fate::Duplicate { of: id });
    }
    for (key, _) in lines.iter().enumerate() {
        for (other, line) in lines.iter().enumerate().filter(|(other, _)| *other != key) {
            let error = say(line, &key.to_string()).expect_err(&format!("{key} {other}"));
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        }
    }
    assert_eq!(read(&files, LOG).lines().count(), lines.len());
}

#[test]
fn lines_of_other_tools_under_one_uuid_are_messages_of_their_own() {
    let mut log = String::new();
    for id in [
        "5f0c1f5e-7a53-4c0e-9d55-0d2d3ff7a001",
        "018bcfe5-6800-7000-8000-000000000001",
    ] {
        for text in ["a", "b", "c"] {
            let ts = format!("2023-11-15T00:00:0{}.000Z", text.len());
            let said = json!({"type": "user", "content": text, "ts": ts, "id": id});
            log.push_str(&format!("{said}\n"));
        }
        let said = json!({"type": "user", "content": "no time", "id": id});
        log.push_str(&format!(
            "{said}\n{{\"type\":\"user\",\"content\":\"x\"}}\n{said}\n"
        ));
    }
    let files = Arc::new(FilesInRam::default());
    wait(files.write(LOG, log.as_bytes(), None)).unwrap();
    let (memory, project) = (memory(), project(&files, hot(30)));
    let texts = ["a", "b", "c", "no time", "x", "no time"];
    assert_eq!(shown(&window(&memory, &project)), [texts, texts].concat());
}
