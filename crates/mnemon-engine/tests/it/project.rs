//! Conversations in a project's files: the log is the truth, the store a copy of it.

mod catching_up;
mod lines;
mod pages;
mod purging;

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::ram::Ram;
use mnemon_core::window::Settings;
use mnemon_core::{ErrorKind, Fate, Filter, Ids, Message, Role, Viewer};
use mnemon_engine::{Memory, Project, ProjectConfig, Query, Window};
use mnemon_testkit::fakes::FilesInRam;
use mnemon_testkit::faults::Flaky;

use crate::{ctx, memory, wait};

const LOG: &str = ".airsspec/contexts/agent/s1.jsonl";
const LIBRARY: &str = ".airsspec/knowledge/library";

fn hot(hot_window_size: usize) -> ProjectConfig {
    ProjectConfig {
        hot_window_size,
        ..ProjectConfig::default()
    }
}

fn project(files: &Arc<FilesInRam>, config: ProjectConfig) -> Project {
    at("/project", files, config)
}

fn at(root: &str, files: &Arc<FilesInRam>, config: ProjectConfig) -> Project {
    Project::new(files.clone(), files.clone(), root, config).unwrap()
}

fn window<'a>(memory: &'a Memory, project: &'a Project) -> Window<'a> {
    let window = memory.window("ann", "s1").unwrap();
    let window = window.in_project(project).unwrap();
    window
        .settings(project.settings(Settings::default()))
        .unwrap()
}

fn user(text: &str) -> Message {
    Message::text("", Role::User, text)
}

fn append(window: &Window<'_>, text: &str) {
    let ctx = ctx();
    wait(window.add_message(&ctx, user(text))).unwrap();
    assert_eq!(ctx.notices.take(), Vec::<String>::new());
}

/// What a boot shows, in words.
fn shown(window: &Window<'_>) -> Vec<String> {
    wait(window.catch_up(&ctx())).unwrap();
    let shown = wait(window.show(&ctx())).unwrap();
    let texts = shown
        .messages
        .iter()
        .map(|seen| seen.message.text_content());
    texts.collect()
}

/// Everything that was said, oldest first.
fn said(window: &Window<'_>) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let (messages, next) = wait(window.original(&ctx(), after, 500)).unwrap();
        all.extend(messages.iter().map(Message::text_content));
        match next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

fn read(files: &FilesInRam, path: &str) -> String {
    let file = wait(files.read(path)).unwrap().expect(path);
    String::from_utf8(file.bytes).unwrap()
}

/// What a search of this user finds.
fn found(memory: &Memory, user: &str, text: &str) -> Vec<String> {
    let viewer = Viewer::of_caller(Some(user.to_owned()), None);
    let query = Query::new(text, Filter::seen_by(viewer));
    let hits = wait(memory.records().search(&ctx(), &query)).unwrap();
    hits.into_iter().map(|hit| hit.record.content).collect()
}

#[test]
fn two_projects_users_or_sessions_share_nothing() {
    let memory = memory();
    let (shop, bank) = (Arc::default(), Arc::default());
    let shop = at("/projects/shop", &shop, hot(2));
    let bank = at("/projects/bank", &bank, hot(2));
    for n in 0..5 {
        append(
            &window(&memory, &shop),
            &format!("shop step {n} about flowers"),
        );
        append(
            &window(&memory, &bank),
            &format!("bank step {n} about ledgers"),
        );
    }
    let all = |what: &str, topic: &str| -> Vec<String> {
        (0..5)
            .map(|n| format!("{what} step {n} about {topic}"))
            .collect()
    };
    assert_eq!(said(&window(&memory, &shop)), all("shop", "flowers"));
    assert_eq!(said(&window(&memory, &bank)), all("bank", "ledgers"));
    assert_eq!(shown(&window(&memory, &bank)), all("bank", "ledgers")[3..]);
    assert_eq!(found(&memory, "ann", "ledgers").len(), 5);
    // The plain session, another session and another user know nothing of it.
    let plain = memory.window("ann", "s1").unwrap();
    assert!(said(&plain).is_empty());
    let other = memory.window("ann", "s2").unwrap();
    assert!(shown(&other.in_project(&shop).unwrap()).is_empty());
    assert!(found(&memory, "bob", "ledgers").is_empty());
    // The log is of the project: whoever opens it has messages of their own.
    let bob = memory
        .window("bob", "s1")
        .unwrap()
        .in_project(&bank)
        .unwrap();
    assert_eq!(shown(&bob), all("bank", "ledgers")[3..]);
    assert_eq!(said(&window(&memory, &bank)).len(), 5);
}

#[test]
fn pages_of_two_projects_do_not_touch_each_other() {
    let memory = memory();
    let (one, two): (Arc<FilesInRam>, Arc<FilesInRam>) = (Arc::default(), Arc::default());
    wait(one.write(&format!("{LIBRARY}/notes.md"), b"# Roses are red", None)).unwrap();
    wait(two.write(&format!("{LIBRARY}/notes.md"), b"# Loans are dear", None)).unwrap();
    for files in [&one, &two, &one] {
        let root = if Arc::ptr_eq(files, &one) {
            "/one"
        } else {
            "/two"
        };
        shown(&window(&memory, &at(root, files, hot(3))));
    }
    assert_eq!(found(&memory, "ann", "roses").len(), 1);
    assert_eq!(found(&memory, "ann", "loans").len(), 1);
    // A page that is gone is found no more, one that changed is found as it is.
    let file = wait(one.read(&format!("{LIBRARY}/notes.md")))
        .unwrap()
        .unwrap();
    wait(one.write(
        &format!("{LIBRARY}/notes.md"),
        b"# Tulips",
        Some(&file.stamp),
    ))
    .unwrap();
    let file = wait(two.read(&format!("{LIBRARY}/notes.md")))
        .unwrap()
        .unwrap();
    wait(two.remove(&format!("{LIBRARY}/notes.md"), &file.stamp)).unwrap();
    shown(&window(&memory, &at("/one", &one, hot(3))));
    shown(&window(&memory, &at("/two", &two, hot(3))));
    assert_eq!(found(&memory, "ann", "roses loans tulips"), ["# Tulips"]);
    // Kept apart, they are not in the store at all.
    wait(two.write(&format!("{LIBRARY}/x.md"), b"# Mortgages", None)).unwrap();
    let apart = at("/two", &two, hot(3)).library_apart();
    shown(&window(&memory, &apart));
    assert!(found(&memory, "ann", "mortgages").is_empty());
    let library = crate::memory();
    wait(apart.index_library_in(&library, &memory, &ctx())).unwrap();
    assert_eq!(found(&library, "ann", "mortgages").len(), 1);
}

#[test]
fn a_retry_with_a_key_is_one_message_and_one_line() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files, hot(5)));
    let window = window(&memory, &project);
    let say = |text: &str| wait(window.add_messages(&ctx(), vec![user(text)], Some("k")));
    let first = say("hello").unwrap();
    let again = say("hello").unwrap();
    assert_eq!(first.items[0].id, again.items[0].id);
    assert!(matches!(again.items[0].fate, Fate::Duplicate { .. }));
    assert_eq!(said(&window), ["hello"]);
    assert_eq!(read(&files, LOG).lines().count(), 1);
    let other = say("something else").unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Conflict, "{other}");
    // Two processes that retry at the same moment both write the line.
    let twice = read(&files, LOG);
    wait(mnemon_core::log::Log::append(
        &*files,
        LOG,
        twice.as_bytes(),
    ))
    .unwrap();
    assert_eq!(shown(&window), ["hello"]);
    assert_eq!(said(&window), ["hello"]);
}

#[test]
fn a_store_that_fails_costs_no_line_and_is_caught_up() {
    let files = Arc::new(FilesInRam::default());
    let project = project(&files, hot(3));
    let broken = Memory::builder(Arc::new(Flaky::new(Ram::new(), 1, 100)), Ids::new(7)).build();
    for n in 0..10 {
        let ctx = ctx();
        wait(window(&broken, &project).add_message(&ctx, user(&format!("line {n}")))).unwrap();
        let told = ctx.notices.take().concat();
        assert!(told.contains("The message is in the log"), "{told}");
    }
    let whole = memory();
    let window = window(&whole, &project);
    assert_eq!(shown(&window), ["line 7", "line 8", "line 9"]);
    assert_eq!(said(&window).len(), 10);
    assert!(found(&whole, "ann", "line 0").contains(&"line 0".to_owned()));
}

#[test]
fn what_was_forgotten_or_undone_is_not_read_again() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files, hot(5)));
    let window = window(&memory, &project);
    append(&window, "one");
    let two = wait(window.add_message(&ctx(), user("two"))).unwrap();
    let three = wait(window.add_message(&ctx(), user("three"))).unwrap();
    wait(
        memory
            .records()
            .forget(&ctx(), &[two.items[0].id.clone()], None),
    )
    .unwrap();
    assert_eq!(shown(&window), ["one", "three"]);
    wait(memory.records().undo(&ctx(), three.commit.unwrap())).unwrap();
    assert_eq!(shown(&window), ["one"]);
    append(&window, "four");
    assert_eq!(shown(&window), ["one", "four"]);
    assert_eq!(read(&files, LOG).lines().count(), 4, "the log is whole");
}

#[test]
fn the_configuration_comes_from_its_file_and_mistakes_are_named() {
    let read = |text: &str| {
        let files = FilesInRam::default();
        wait(files.write(".airsspec/airsspec.toml", text.as_bytes(), None)).unwrap();
        wait(Project::read_config(&files, ProjectConfig::default()))
    };
    let plain = ProjectConfig::default();
    let none = wait(Project::read_config(&FilesInRam::default(), plain)).unwrap();
    assert_eq!(none, plain);
    assert_eq!((none.hot_window_size, none.chunk_size), (30, 10));
    let config = read("[retry]\nx = 1\n[memory]\nhot_window_size = 5\nother = true\n").unwrap();
    assert_eq!(config, hot(5));
    for (text, why) in [
        ("[memory]\nhot_window_size = 0", "between 1 and"),
        ("[memory]\nchunk_size = 1", "between 2 and"),
        ("[memory]\ncompression_threshold = 1.5", "at most 1"),
        ("[memory]\n\nhot_window_size = \"x\"", "line 3"),
        ("[memory", "line 1"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let error = error.to_string();
        assert!(
            error.contains(why) && error.contains("airsspec.toml"),
            "{error}"
        );
    }
}
