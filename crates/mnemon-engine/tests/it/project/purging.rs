//! What was purged is neither shown nor read again.

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::log::Log;
use mnemon_core::{Ctx, ErrorKind};
use mnemon_engine::{Forgotten, Memory, Project, ProjectConfig, ProjectFiles, SessionForget};
use mnemon_testkit::fakes::FilesInRam;

use super::{LIBRARY, LOG, append, shown, user, window};
use crate::{ctx, memory, wait};

fn project(files: &Arc<FilesInRam>) -> Project {
    let config = ProjectConfig {
        hot_window_size: 20,
        max_tokens: 100,
        ..ProjectConfig::default()
    };
    super::project(files, config)
}

fn fill(memory: &Memory, project: &Project, text: &str) {
    for n in 0..6 {
        let line = format!("{text} number {n} is a line of some words");
        append(&window(memory, project), &line);
    }
}

fn found(memory: &Memory, text: &str) -> usize {
    let records = crate::all(memory);
    records
        .iter()
        .filter(|record| record.content.contains(text))
        .count()
}

fn project_files(files: &Arc<FilesInRam>) -> ProjectFiles {
    ProjectFiles {
        root: "/project".to_owned(),
        files: files.clone(),
        log: files.clone(),
    }
}

fn asked(projects: &[ProjectFiles], purge: bool) -> SessionForget<'_> {
    SessionForget {
        user: "ann",
        session: "s1",
        purge,
        projects,
        folders: &[],
    }
}

fn forget(memory: &Memory, ctx: &Ctx, files: Option<&Arc<FilesInRam>>, purge: bool) -> Forgotten {
    let projects: Vec<ProjectFiles> = files.into_iter().map(project_files).collect();
    wait(memory.forget_session(ctx, &asked(&projects, purge))).unwrap()
}

#[test]
fn a_session_of_no_project_goes_without_those_of_projects() {
    for purge in [false, true] {
        let files = Arc::new(FilesInRam::default());
        let (memory, project) = (memory(), project(&files));
        fill(&memory, &project, "needle");
        let gone = forget(&memory, &ctx(), None, purge);
        assert_eq!(gone, Forgotten::default());
        let plain = memory.window("ann", "s1").unwrap();
        append(&plain, "plain");
        let gone = forget(&memory, &ctx(), None, purge);
        assert!(gone.is_whole() && gone.records > 0, "{gone:?}");
        assert!(shown(&plain).is_empty());
        assert_eq!(shown(&window(&memory, &project)).len(), 6);
        assert!(wait(files.read(LOG)).unwrap().is_some());
        // And the other way round.
        append(&plain, "plain");
        forget(&memory, &ctx(), Some(&files), purge);
        assert_eq!(shown(&plain), ["plain"]);
        assert_eq!(found(&memory, "needle"), 0);
        let roots = wait(memory.session_roots(&ctx(), "s1")).unwrap();
        assert_eq!(roots.is_empty(), purge, "the files are there still");
    }
}

#[test]
fn what_is_gone_is_not_forgotten_again() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    let projects = [project_files(&files)];
    let mut asked = asked(&projects, false);
    assert!(!wait(memory.has_session(&ctx(), &asked)).unwrap());
    fill(&memory, &project, "needle");
    assert!(wait(memory.has_session(&ctx(), &asked)).unwrap());
    let gone = wait(memory.forget_session(&ctx(), &asked)).unwrap();
    assert!(!gone.is_nothing(false));
    assert!(!wait(memory.has_session(&ctx(), &asked)).unwrap());
    let again = wait(memory.forget_session(&ctx(), &asked)).unwrap();
    assert!(again.is_nothing(false), "{again:?}");
    asked.purge = true;
    assert!(wait(memory.has_session(&ctx(), &asked)).unwrap());
    wait(memory.forget_session(&ctx(), &asked)).unwrap();
    assert!(!wait(memory.has_session(&ctx(), &asked)).unwrap());
}

#[test]
fn log_pages_and_records_are_erased_and_a_restored_copy_stays_silent() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    fill(&memory, &project, "needle");
    wait(window(&memory, &project).compress(&ctx())).unwrap();
    let page = format!("{LIBRARY}/history-001.md");
    let log = wait(files.read(LOG)).unwrap().unwrap().bytes;
    let paged = wait(files.read(&page)).unwrap().unwrap().bytes;
    wait(files.write(&format!("{LIBRARY}/hand.md"), b"# By hand\n", None)).unwrap();
    shown(&window(&memory, &project));
    // A session of the same name elsewhere is another one.
    let (other, there) = (Arc::new(FilesInRam::default()), "another needle");
    let other = super::at("/other", &other, super::hot(3));
    wait(window(&memory, &other).add_message(&ctx(), super::user(there))).unwrap();
    let gone = forget(&memory, &ctx(), Some(&files), true);
    assert!(gone.is_whole(), "{gone:?}");
    assert!(gone.files.contains(&format!("/project/{LOG}")), "{gone:?}");
    assert!(gone.files.contains(&format!("/project/{page}")), "{gone:?}");
    let left = wait(files.list("")).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(found(&memory, "needle"), 1);
    assert_eq!(shown(&window(&memory, &other)), [there]);
    // From a backup.
    wait(files.append(LOG, &log)).unwrap();
    wait(files.write(&page, &paged, None)).unwrap();
    let (ctx, window) = (ctx(), window(&memory, &project));
    wait(window.catch_up(&ctx)).unwrap();
    let told = ctx.notices.take();
    assert!(
        told[0].contains("older than the purge of the session"),
        "{told:?}"
    );
    assert!(shown(&window).is_empty());
    fill(&memory, &project, "hay");
    assert_eq!(found(&memory, "needle"), 1);
    assert_eq!(shown(&window).len(), 6, "what came after is read");
}

#[test]
fn a_fork_and_a_name_that_is_too_long_are_refused() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    append(&window(&memory, &project), "one");
    let refused = wait(window(&memory, &project).fork(&ctx(), "copy")).unwrap_err();
    assert!(
        refused.to_string().contains("cannot be forked"),
        "{refused}"
    );
    assert!(wait(memory.window("ann", "copy").unwrap().is_empty(&ctx())).unwrap());
    let name = "x".repeat(255);
    let plain = memory.window("ann", &name).unwrap();
    let refused = plain.in_project(&project).err().unwrap().to_string();
    let most = refused.split("at most ").nth(1).unwrap();
    let most: usize = most.split(' ').next().unwrap().parse().unwrap();
    assert!(refused.contains("has 255 characters"), "{refused}");
    let fits = |chars: usize| {
        let plain = memory.window("ann", &name[..chars]).unwrap();
        let window = plain.in_project(&project)?;
        wait(window.add_message(&ctx(), super::user("x")))
    };
    assert!(fits(most).is_ok() && fits(most + 1).is_err(), "{refused}");
}

#[test]
fn what_was_forgotten_stays_forgotten_and_undo_brings_it_back() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    fill(&memory, &project, "needle");
    let window = window(&memory, &project);
    let before = shown(&window);
    let gone = forget(&memory, &ctx(), Some(&files), false);
    assert_eq!(gone.left[0].path, format!("/project/{LOG}"), "{gone:?}");
    assert!(shown(&window).is_empty());
    append(&window, "on we go");
    assert_eq!(shown(&window), ["on we go"]);
    wait(memory.records().undo(&ctx(), gone.commit.unwrap())).unwrap();
    assert_eq!(shown(&window).len(), before.len() + 1);
}

#[test]
fn one_purged_line_is_told_and_not_read_again() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    fill(&memory, &project, "needle");
    let records = crate::all(&memory);
    let ids: Vec<_> = records
        .iter()
        .filter(|record| record.content.contains("number 2"))
        .map(|record| record.id.clone())
        .collect();
    let done = wait(memory.purge_records(&ctx(), &ids, None)).unwrap();
    assert_eq!(done.left[0].path, LOG);
    assert!(done.left[0].why.contains(" s1 "), "{:?}", done.left);
    // Even if the log is read from its beginning.
    let log = wait(files.read(LOG)).unwrap().unwrap().bytes;
    wait(files.erase(LOG)).unwrap();
    wait(files.append(LOG, &log[..log.len() / 2])).unwrap();
    shown(&window(&memory, &project));
    let again = wait(memory.records().get(&ctx(), &ids)).unwrap();
    assert!(again.iter().all(Option::is_none), "{again:?}");
}

#[test]
fn the_key_of_what_is_gone_is_refused() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    let window = window(&memory, &project);
    let say = |text: &str| wait(window.add_messages(&ctx(), vec![user(text)], Some(text)));
    let purged = say("needle").unwrap().items[0].id.clone();
    let forgotten = say("hay").unwrap().items[0].id.clone();
    let undone = say("straw").unwrap().commit.unwrap();
    wait(memory.purge_records(&ctx(), &[purged], None)).unwrap();
    wait(memory.records().forget(&ctx(), &[forgotten], None)).unwrap();
    wait(memory.records().undo(&ctx(), undone)).unwrap();
    for text in ["needle", "hay", "straw"] {
        let error = say(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("forgotten or undone"), "{error}");
    }
    assert_eq!(super::read(&files, LOG).lines().count(), 3);
}

#[test]
fn what_is_gone_stays_so_when_the_log_is_read_anew() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    let window = window(&memory, &project);
    let long = "z".repeat(150_000);
    for text in ["one", "two", &long, "three", "four", "five"] {
        append(&window, text);
    }
    let id = |text: &str| {
        let records = crate::all(&memory);
        let mut found = records.iter().filter(|record| record.content == text);
        found.next().unwrap().id.clone()
    };
    let ids = [id("two"), id("four")];
    wait(memory.records().forget(&ctx(), &ids, None)).unwrap();
    let undone = wait(window.add_message(&ctx(), user("six"))).unwrap();
    wait(memory.records().undo(&ctx(), undone.commit.unwrap())).unwrap();
    let log = wait(files.read(LOG)).unwrap().unwrap().bytes;
    // The first line was taken out by hand.
    let second = log.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    wait(files.erase(LOG)).unwrap();
    wait(files.append(LOG, &log[second..])).unwrap();
    wait(window.add_message(&ctx(), user("seven"))).unwrap();
    wait(window.import_backlog(&ctx(), &mut |_| {})).unwrap();
    let kept = ["one", &long, "three", "five", "seven"];
    assert_eq!(super::said(&window), kept);
}

#[test]
fn more_messages_than_one_read_takes_are_added_under_one_key() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    let window = window(&memory, &project);
    let count = memory.records().limits().page + 1;
    let messages: Vec<_> = (0..count).map(|n| user(&format!("line {n}"))).collect();
    for _ in 0..2 {
        let done = wait(window.add_messages(&ctx(), messages.clone(), Some("k"))).unwrap();
        assert_eq!(done.items.len(), count);
    }
    assert_eq!(super::read(&files, LOG).lines().count(), count);
}

#[test]
fn what_one_user_purged_does_not_come_back_from_a_log_that_others_use() {
    let files = Arc::new(FilesInRam::default());
    let (memory, project) = (memory(), project(&files));
    append(&window(&memory, &project), "needle");
    let bob = memory.window("bob", "s1").unwrap();
    let bob = bob.in_project(&project).unwrap();
    assert_eq!(shown(&bob), ["needle"]);
    let gone = forget(&memory, &ctx(), Some(&files), true);
    assert!(!gone.is_whole() && gone.records > 0, "{gone:?}");
    assert!(gone.left.iter().any(|left| left.path.contains(LOG)));
    let ann = window(&memory, &project);
    assert!(shown(&ann).is_empty());
    append(&ann, "after the purge");
    assert_eq!(shown(&ann), ["after the purge"]);
    assert_eq!(shown(&bob), ["needle", "after the purge"]);
}
