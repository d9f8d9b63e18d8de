//! Compression in a project: pages, and links to them.

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::window::is_paired;
use mnemon_core::{Block, Message, Role};
use mnemon_engine::{Memory, Project, ProjectConfig, SeenAs};
use mnemon_testkit::fakes::{FilesInRam, Scripted};
use serde_json::Map;

use super::{LIBRARY, LOG, append, found, project, read, said, shown, user, window};
use crate::{ctx, memory, wait};

fn small() -> ProjectConfig {
    ProjectConfig {
        max_tokens: 500,
        ..ProjectConfig::default()
    }
}

/// 28 lines of about 30 tokens each, as the findings have it.
fn full(files: &Arc<FilesInRam>) -> (Memory, Project) {
    let (memory, project) = (memory(), project(files, small()));
    for n in 0..28 {
        let text = format!(
            "We decided that module {n} uses port {} of the machine in Berlin",
            8000 + n
        );
        append(&window(&memory, &project), &text);
    }
    (memory, project)
}

#[test]
fn a_compression_survives_a_restart_and_the_window_stays_below_its_limit() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = full(&files);
    let one = window(&memory, &project);
    let before = wait(one.show(&ctx())).unwrap();
    assert!(before.due && before.tokens > 400, "{}", before.tokens);
    let events = wait(one.compress(&ctx())).unwrap();
    assert!(!events.is_empty());
    // Another process, and again.
    let again = window(&memory, &project);
    let texts = shown(&again);
    assert_eq!(texts[0], "[History Link: history-001.md]");
    assert!(texts.last().unwrap().contains("module 27"));
    let after = wait(again.show(&ctx())).unwrap();
    assert!(!after.due && after.tokens <= 400, "{}", after.tokens);
    assert_eq!(after.messages[0].as_, SeenAs::Summarised);
    assert!(
        wait(again.compress(&ctx())).unwrap().is_empty(),
        "there is nothing to do"
    );
    assert!(wait(again.preview(&ctx())).unwrap().is_empty());
    let uuid = after.messages[0].uuid.clone().unwrap();
    let folded = wait(again.reload(&ctx(), &uuid)).unwrap().unwrap();
    assert_eq!(folded.len() as u64, after.messages[0].covers);
    assert!(folded[0].text_content().contains("module 0"));
    assert_eq!(read(&files, LOG).lines().count(), 28, "the log is whole");
    assert_eq!(said(&again).len(), 28);
    append(&again, "one more");
    assert_eq!(shown(&again)[0], "[History Link: history-001.md]");
    // The whole window is there: links and messages stand for everything.
    let shown = wait(again.show(&ctx())).unwrap();
    assert_eq!(
        shown.messages.iter().map(|seen| seen.covers).sum::<u64>(),
        29
    );
}

#[test]
fn a_page_says_what_it_covers_and_what_was_decided() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = full(&files);
    wait(window(&memory, &project).compress(&ctx())).unwrap();
    let page = read(&files, &format!("{LIBRARY}/history-001.md"));
    assert!(
        page.starts_with("---\nversion: 1\nstatus: final\nauthor: mnemon\ncreated_at: "),
        "{page}"
    );
    let shown = wait(window(&memory, &project).show(&ctx())).unwrap();
    let covers = shown.messages[0].covers;
    for needed in [
        "\nsession: \"s1\"\n",
        "\nthrough: ",
        "\nbytes: 0-",
        &format!("\nlines: {covers}\n"),
        "\nfrom: 2023-11-14T22:13:20.000Z\nto: 2023-11-14T22:13:20.000Z\n",
        &format!(
            "\nreload: {}\n---\n",
            shown.messages[0].uuid.as_ref().unwrap()
        ),
        "# History 001",
    ] {
        assert!(page.contains(needed), "{needed} in {page}");
    }
    assert!(!page.contains("- - "), "{page}");
    for n in 0..covers {
        assert!(
            page.contains(&format!("module {n} uses port {}", 8000 + n)),
            "{n}: {page}"
        );
    }
    let pages: Vec<String> = found(&memory, "ann", "History 001");
    assert!(
        pages.iter().any(|text| text.starts_with("---\nversion")),
        "it is indexed"
    );
}

#[test]
fn pages_are_numbered_on_and_one_that_no_window_links_to_is_removed() {
    let files = Arc::new(FilesInRam::default());
    wait(files.write(&format!("{LIBRARY}/history-007.md"), b"# old", None)).unwrap();
    let (memory, project) = full(&files);
    let window = window(&memory, &project);
    for round in 0..12 {
        wait(window.compress_if_needed(&ctx())).unwrap();
        let shown = wait(window.show(&ctx())).unwrap();
        assert!(!shown.due, "round {round}");
        let links = shown
            .messages
            .iter()
            .filter(|seen| seen.uuid.is_some())
            .count();
        assert!((1..=8).contains(&links), "{links} links");
        for n in 0..9 {
            append(
                &window,
                &format!("{round} {n}: some more words to fill the window with text"),
            );
        }
    }
    let pages = wait(files.list(LIBRARY)).unwrap();
    assert_eq!(pages[1].path, format!("{LIBRARY}/history-008.md"));
    assert_eq!(said(&window).len(), 28 + 12 * 9);
}

#[test]
fn calls_and_results_stay_together() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files, small()));
    let window = window(&memory, &project);
    append(&window, "Please look at all of it");
    for n in 0..12 {
        let id = format!("c{n}");
        let call = Message {
            content: vec![Block::ToolUse {
                id: id.clone(),
                name: "look".to_owned(),
                input: Map::new(),
                content: None,
                metadata: Map::new(),
            }],
            ..Message::text("", Role::Assistant, "")
        };
        let result = Message {
            content: vec![Block::ToolResult {
                id,
                name: "look".to_owned(),
                output: vec![Block::Text {
                    text: "there is something to be seen here ".repeat(3 + n % 4),
                }],
                metadata: Map::new(),
            }],
            ..Message::text("", Role::Tool, "")
        };
        for message in [call, result] {
            wait(window.add_message(&ctx(), message)).unwrap();
            wait(window.compress_if_needed(&ctx())).unwrap();
            let shown = wait(window.show(&ctx())).unwrap();
            let messages: Vec<Message> = shown
                .messages
                .into_iter()
                .map(|seen| seen.message)
                .collect();
            assert!(is_paired(&messages), "{messages:?}");
            assert!(
                messages.contains(
                    &messages
                        .iter()
                        .find(|m| m.role == Role::User)
                        .unwrap()
                        .clone()
                )
            );
        }
    }
    let narrow = super::project(&files, super::hot(4));
    let narrow = super::window(&memory, &narrow);
    let messages = wait(narrow.get_messages(&ctx())).unwrap();
    assert!(is_paired(&messages), "{messages:?}");
}

#[test]
fn a_message_in_a_page_that_is_forgotten_takes_the_link_along() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = full(&files);
    let window = window(&memory, &project);
    wait(window.compress(&ctx())).unwrap();
    let (first, _) = wait(window.original(&ctx(), None, 1)).unwrap();
    let id = first[0].id.clone();
    let hits = crate::all(&memory);
    let record = hits.iter().find(|record| {
        record
            .body
            .as_ref()
            .is_some_and(|body| body["id"] == id.as_str())
    });
    wait(
        memory
            .records()
            .forget(&ctx(), &[record.unwrap().id.clone()], None),
    )
    .unwrap();
    let texts = shown(&window);
    assert!(!texts[0].starts_with("[History Link"), "{texts:?}");
    assert!(texts[0].contains("module 1 "), "{texts:?}");
    wait(window.add_message(&ctx(), user("on"))).unwrap();
}

#[test]
fn a_model_writes_the_summary_of_a_page_afterwards() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = full(&files);
    let path = format!("{LIBRARY}/history-001.md");
    let text = "Every module has a port of its own.";
    let llm = Arc::new(Scripted::answering(&[text, text]));
    let one = window(&memory, &project).llm(llm);
    let events = wait(one.compress(&ctx())).unwrap();
    assert_eq!(events[0].summariser(), Some("extractive, model pending"));
    assert!(!read(&files, &path).contains("Every module has"));
    let refined = wait(one.refine_pending(&ctx())).unwrap();
    assert_eq!(refined.written as usize, events.len(), "{refined:?}");
    let page = read(&files, &path);
    assert!(
        page.contains("Every module has a port of its own."),
        "{page}"
    );
    assert!(
        page.contains("reload: ") && page.contains("port 8000"),
        "{page}"
    );
    assert_eq!(shown(&one)[0], "[History Link: history-001.md]");
}
