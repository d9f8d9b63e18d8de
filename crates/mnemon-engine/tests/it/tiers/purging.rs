//! What was purged is neither shown nor indexed again.

use std::sync::Arc;

use mnemon_core::Ctx;
use mnemon_core::files::Files;
use mnemon_core::log::Log;
use mnemon_engine::tiers::{Hot, TierConfig, Tiers};
use mnemon_engine::{Forgotten, Memory, ProjectFiles, Query, SessionForget};
use mnemon_testkit::fakes::FilesInRam;

use super::{LIBRARY, LOG, append, s1, user, words};
use crate::{ctx, memory, wait};

fn config() -> TierConfig {
    TierConfig {
        hot_window_size: 3,
        max_tokens: 20,
        ..TierConfig::default()
    }
}

fn tiers(files: &Arc<FilesInRam>, memory: &Arc<Memory>) -> Tiers {
    let tiers = Tiers::new(
        files.clone(),
        files.clone(),
        memory.clone(),
        config(),
        words,
    );
    tiers.unwrap().at("/project")
}

fn fill(tiers: &Tiers, text: &str) -> Hot {
    let mut hot = wait(tiers.boot(&ctx(), &s1())).unwrap().hot;
    for n in 0..6 {
        append(
            tiers,
            &mut hot,
            user(&format!("{text} number {n} is a line of some words")),
        );
    }
    hot
}

fn found(memory: &Memory, text: &str) -> usize {
    let hits = wait(memory.records().search(
        &ctx(),
        &Query::new(text, mnemon_core::Filter::all_of_tenant()),
    ))
    .unwrap();
    hits.iter()
        .filter(|hit| hit.record.content.contains(text))
        .count()
}

fn purge(memory: &Memory, ctx: &Ctx, files: Option<&Arc<FilesInRam>>) -> Forgotten {
    let projects: Vec<ProjectFiles> = files
        .iter()
        .map(|files| ProjectFiles {
            root: "/project".to_owned(),
            files: (*files).clone(),
            log: (*files).clone(),
            may_erase: true,
        })
        .collect();
    let asked = SessionForget {
        user: "ann",
        session: "s1",
        purge: true,
        projects: &projects,
        folders: &[],
    };
    wait(memory.forget_session(ctx, &asked)).unwrap()
}

#[test]
fn a_log_that_could_not_be_erased_is_listed_and_not_indexed_again() {
    let files = Arc::new(FilesInRam::default());
    let memory = Arc::new(memory());
    let tiers = tiers(&files, &memory);
    let mut old = fill(&tiers, "needle");
    assert!(found(&memory, "needle") > 0);
    let gone = purge(&memory, &ctx(), None);
    assert!(!gone.is_whole());
    assert_eq!(gone.left[0].path, format!("/project/{LOG}"));
    assert_eq!(found(&memory, "needle"), 0);
    // A window that was booted before the purge, and one from after it.
    append(
        &tiers,
        &mut old,
        user("hay for the old window, some more words"),
    );
    let fresh = fill(&tiers, "hay");
    assert_eq!(found(&memory, "needle"), 0);
    assert!(found(&memory, "hay") > 0, "what came after is indexed");
    assert!(fresh.lines().all(|line| line.line.text().contains("hay")));
    // The root is still known.
    let gone = purge(&memory, &ctx(), Some(&files));
    assert!(gone.is_whole(), "{gone:?}");
    assert!(wait(files.list("")).unwrap().is_empty());
    assert!(wait(memory.session_roots(&ctx(), "s1")).unwrap().is_empty());
}

#[test]
fn log_pages_and_index_are_erased_and_a_restored_copy_stays_silent() {
    let files = Arc::new(FilesInRam::default());
    let memory = Arc::new(memory());
    let tiers = tiers(&files, &memory);
    let mut hot = fill(&tiers, "needle");
    let page = wait(tiers.compress_if_needed(&ctx(), &mut hot, &|texts: &[String]| texts.concat()));
    let page = format!("{LIBRARY}/{}", page.unwrap().unwrap().history);
    let log = wait(files.read(LOG)).unwrap().unwrap().bytes;
    let paged = wait(files.read(&page)).unwrap().unwrap().bytes;
    wait(files.write(&format!("{LIBRARY}/hand.md"), b"# By hand\n", None)).unwrap();
    wait(tiers.query_memory(&ctx(), "needle", 3)).unwrap();
    let gone = purge(&memory, &ctx(), Some(&files));
    assert!(gone.is_whole(), "{gone:?}");
    assert_eq!(
        gone.files,
        [format!("/project/{LOG}"), format!("/project/{page}")]
    );
    let left = wait(files.list("")).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(found(&memory, "needle"), 0);
    // From a backup.
    wait(files.append(LOG, &log)).unwrap();
    wait(files.write(&page, &paged, None)).unwrap();
    let boot = wait(tiers.boot(&ctx(), &s1())).unwrap();
    assert_eq!((boot.hot.lines().count(), boot.skipped_count), (0, 6));
    assert!(boot.skipped[0].what.contains("purged"));
    fill(&tiers, "hay");
    assert!(
        wait(tiers.query_memory(&ctx(), "needle", 9))
            .unwrap()
            .iter()
            .all(|e| { !e.text.contains("needle") })
    );
    assert_eq!(found(&memory, "needle"), 0);
}

#[test]
fn tiers_on_a_store_are_purged_with_their_pages() {
    let memory = Arc::new(memory());
    let tiers = Tiers::on_store(memory.clone(), config(), words).unwrap();
    let mut old = fill(&tiers, "needle");
    wait(tiers.compress_if_needed(&ctx(), &mut old, &|texts: &[String]| texts.concat())).unwrap();
    let gone = purge(&memory, &ctx(), None);
    assert!(gone.is_whole() && gone.records >= 6, "{gone:?}");
    assert_eq!(found(&memory, "needle"), 0);
    append(
        &tiers,
        &mut old,
        user("hay for the old window, some more words"),
    );
    fill(&tiers, "hay");
    assert_eq!(found(&memory, "needle"), 0);
}

#[test]
fn one_purged_line_is_not_indexed_again() {
    let files = Arc::new(FilesInRam::default());
    let memory = Arc::new(memory());
    let tiers = tiers(&files, &memory);
    let mut hot = fill(&tiers, "needle");
    // The lines of a page are indexed while they are still the last ones of the log.
    wait(tiers.compress_if_needed(&ctx(), &mut hot, &|_: &[String]| "-".to_owned())).unwrap();
    let hits = wait(memory.records().search(
        &ctx(),
        &Query::new("needle", mnemon_core::Filter::all_of_tenant()),
    ))
    .unwrap();
    let lines = hits
        .iter()
        .filter(|hit| hit.record.source.as_deref() == Some(LOG));
    let ids: Vec<_> = lines.map(|hit| hit.record.id.clone()).collect();
    assert!(ids.len() > 3);
    let done = wait(memory.purge_records(&ctx(), &ids, None)).unwrap();
    assert_eq!(done.left[0].path, LOG);
    fill(&tiers, "hay");
    let again = wait(memory.records().get(&ctx(), &ids)).unwrap();
    assert!(again.iter().all(Option::is_none), "{again:?}");
}
