//! Hot, warm, cold and frozen, in files and on a store.

mod booting;
mod forms;
mod purging;

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::ram::Ram;
use mnemon_core::{ErrorKind, Ids, Owner};
use mnemon_engine::session::SessionId;
use mnemon_engine::tiers::{Hot, Said, Summarise, TierConfig, Tiers, first_sentences};
use mnemon_engine::{Draft, Memory};
use mnemon_testkit::fakes::FilesInRam;
use mnemon_testkit::faults::Flaky;
use serde_json::json;

use crate::{ctx, memory, wait};

const LOG: &str = ".airsspec/contexts/agent/s1.jsonl";
const LIBRARY: &str = ".airsspec/knowledge/library";

fn s1() -> SessionId {
    "s1".parse().unwrap()
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn tiers(files: &Arc<FilesInRam>, config: TierConfig) -> Tiers {
    let memory = Arc::new(memory());
    Tiers::new(files.clone(), files.clone(), memory, config, words).unwrap()
}

fn user(content: &str) -> Said {
    Said::User {
        content: content.to_owned(),
    }
}

fn append(tiers: &Tiers, hot: &mut Hot, said: Said) {
    let ctx = ctx();
    wait(tiers.append(&ctx, hot, said)).unwrap();
    assert!(ctx.notices.take().is_empty());
}

fn read(files: &FilesInRam, path: &str) -> String {
    let file = wait(files.read(path)).unwrap().expect(path);
    String::from_utf8(file.bytes).unwrap()
}

#[test]
fn lines_are_written_as_the_document_says_and_come_back() {
    let files = Arc::new(FilesInRam::default());
    let tiers = tiers(&files, TierConfig::default());
    let mut hot = wait(tiers.boot(&ctx(), &s1())).unwrap().hot;
    let all = [
        user("Hi"),
        Said::Thought {
            content: "hm".to_owned(),
        },
        Said::Action {
            tool: "write_file".to_owned(),
            params: json!({"path": "x"}),
        },
        Said::Observation {
            result: json!("done"),
        },
    ];
    for said in all {
        append(&tiers, &mut hot, said);
    }
    let ts = "\"ts\":\"2023-11-14T22:13:20.000Z\"";
    assert_eq!(
        read(&files, LOG),
        format!(
            "{{\"type\":\"user\",\"content\":\"Hi\",{ts}}}\n\
         {{\"type\":\"thought\",\"content\":\"hm\",{ts}}}\n\
         {{\"type\":\"action\",\"tool\":\"write_file\",\"params\":{{\"path\":\"x\"}},{ts}}}\n\
         {{\"type\":\"observation\",\"result\":\"done\",{ts}}}\n"
        )
    );
    let again = wait(tiers.boot(&ctx(), &s1())).unwrap();
    assert_eq!(again.hot, hot);
    assert!(again.skipped.is_empty());
    assert_eq!(hot.newest(2)[0].line.text(), "Observation: done");
    hot.clear();
    assert_eq!(tiers.tokens(&hot), 0);
}

#[test]
fn the_oldest_lines_are_pushed_out_found_again_and_still_in_the_log() {
    let files = Arc::new(FilesInRam::default());
    let config = TierConfig {
        hot_window_size: 3,
        ..TierConfig::default()
    };
    let tiers = tiers(&files, config);
    let mut hot = Hot::new(s1());
    for animal in ANIMALS {
        append(
            &tiers,
            &mut hot,
            user(&format!("this animal is a {animal}")),
        );
    }
    assert_eq!(hot.lines().count(), 3);
    assert_eq!(read(&files, LOG).lines().count(), 6);
    let found = wait(tiers.query_memory(&ctx(), "which animal is a quokka", 3)).unwrap();
    assert!(found[0].text.contains("quokka"), "{found:?}");
    assert_eq!(found[0].source, LOG);
    let all = wait(tiers.query_memory(&ctx(), "animal", 10)).unwrap();
    assert_eq!(all.len(), 3, "what is still in view is not told again");
    assert!(found[0].score > 0.0);
}

const ANIMALS: [&str; 6] = ["quokka", "wombat", "zebra", "otter", "lynx", "tapir"];

/// Ten lines of ten words each, a limit of 100 tokens.
fn full() -> (Arc<FilesInRam>, Tiers, Hot) {
    let files = Arc::new(FilesInRam::default());
    let config = TierConfig {
        max_tokens: 100,
        chunk_size: 2,
        ..TierConfig::default()
    };
    let tiers = tiers(&files, config);
    let mut hot = Hot::new(s1());
    for n in 0..8 {
        let text = format!("line {n} says one two three four five six");
        append(&tiers, &mut hot, user(&text));
    }
    (files, tiers, hot)
}

fn joined(texts: &[String]) -> String {
    format!(
        "[{}]",
        first_sentences(texts)
            .split(' ')
            .filter(|w| w.parse::<u8>().is_ok())
            .collect::<Vec<_>>()
            .join(" ")
    )
}

#[test]
fn only_above_the_threshold_the_older_half_becomes_a_page_and_a_link() {
    let (files, tiers, mut hot) = full();
    assert_eq!(tiers.tokens(&hot), 80, "exactly at the threshold");
    assert_eq!(
        wait(tiers.compress_if_needed(&ctx(), &mut hot, &joined)).unwrap(),
        None
    );
    append(&tiers, &mut hot, user("more"));
    let before = hot.clone();
    let done = wait(tiers.compress_if_needed(&ctx(), &mut hot, &joined))
        .unwrap()
        .unwrap();
    assert_eq!(
        (done.history.as_str(), done.lines, done.levels),
        ("history-001.md", 4, 2)
    );
    assert_eq!(done.tokens_before, 82);
    assert!(done.tokens_after < 82);
    let texts = hot.texts();
    assert_eq!(texts[0], "[History Link: history-001.md]");
    assert_eq!(texts[1..], before.texts()[4..]);
    let page = read(&files, &format!("{LIBRARY}/history-001.md"));
    assert!(
        page.starts_with("---\nversion: 1\nstatus: final\nauthor: mnemon\n"),
        "{page}"
    );
    assert!(
        page.contains("session: \"s1\"") && page.contains("- [0 1]") && page.contains("- [2 3]")
    );
    assert_eq!(read(&files, LOG).lines().count(), 9, "the log is whole");
    assert_eq!(
        wait(tiers.compress_if_needed(&ctx(), &mut hot, &joined)).unwrap(),
        None
    );
}

#[test]
fn pages_are_numbered_on_and_repeated_compression_ends() {
    let (files, tiers, mut hot) = full();
    wait(files.write(&format!("{LIBRARY}/history-007.md"), b"# old", None)).unwrap();
    for _ in 0..3 {
        for n in 0..9 {
            append(
                &tiers,
                &mut hot,
                user(&format!("{n} one two three four five six seven")),
            );
        }
        let mut rounds = 0;
        while wait(tiers.compress_if_needed(&ctx(), &mut hot, &joined))
            .unwrap()
            .is_some()
        {
            rounds += 1;
            assert!(rounds < 10);
        }
        assert!(!tiers.is_over(&hot));
    }
    let pages = wait(files.list(LIBRARY)).unwrap();
    assert_eq!(pages[1].path, format!("{LIBRARY}/history-008.md"));
}

#[test]
fn an_observation_stays_with_its_action() {
    let (_, tiers, mut hot) = full();
    hot.clear();
    for n in 0..4 {
        let long = "one two three four five six seven eight nine ten ".repeat(2);
        append(
            &tiers,
            &mut hot,
            Said::Action {
                tool: format!("tool{n} {long}"),
                params: json!({}),
            },
        );
        append(
            &tiers,
            &mut hot,
            Said::Observation {
                result: json!("seen"),
            },
        );
        append(
            &tiers,
            &mut hot,
            Said::Observation {
                result: json!("seen more"),
            },
        );
    }
    append(&tiers, &mut hot, user("and"));
    let done = wait(tiers.compress_if_needed(&ctx(), &mut hot, &joined))
        .unwrap()
        .unwrap();
    assert_eq!(done.lines, 6);
    append(&tiers, &mut hot, user("on"));
    while wait(tiers.compress_if_needed(&ctx(), &mut hot, &joined))
        .unwrap()
        .is_some()
    {
        let first = hot.lines().next().unwrap().line.text();
        assert!(!first.starts_with("Observation"), "{first}");
    }
}

struct Failing(&'static str);

#[async_trait::async_trait]
impl Summarise for Failing {
    async fn summarise(&self, texts: &[String]) -> Result<String, String> {
        match self.0 {
            "error" => Err("down".to_owned()),
            "empty" => Ok("  ".to_owned()),
            _ => Ok("blah ".repeat(texts.concat().len())),
        }
    }
}

#[test]
fn a_summary_that_is_none_is_replaced_by_the_first_sentences() {
    for mischief in ["error", "empty", "longer"] {
        let (files, tiers, mut hot) = full();
        append(&tiers, &mut hot, user("more"));
        wait(tiers.compress_if_needed(&ctx(), &mut hot, &Failing(mischief)))
            .unwrap()
            .unwrap();
        let page = read(&files, &format!("{LIBRARY}/history-001.md"));
        assert!(page.contains("User: line 0 says"), "{mischief}: {page}");
        assert!(!page.contains("blah"));
    }
}

#[test]
fn the_library_is_found_changed_pages_too_and_removed_ones_no_more() {
    let files = Arc::new(FilesInRam::default());
    let tiers = tiers(&files, TierConfig::default());
    let path = format!("{LIBRARY}/adr.md");
    let text = "# Decisions\n\nWe talked about lunch.\n\nAuthentication uses signed tokens.\n";
    let stamp = wait(files.write(&path, text.as_bytes(), None)).unwrap();
    let ask = |query: &str| wait(tiers.query_memory(&ctx(), query, 5)).unwrap();
    let found = ask("authentication decision");
    assert_eq!(found[0].source, path);
    assert_eq!(found[0].text, "Authentication uses signed tokens.");
    let stamp = wait(files.write(&path, b"Authentication uses passkeys.", Some(&stamp))).unwrap();
    assert_eq!(
        ask("authentication")[0].text,
        "Authentication uses passkeys."
    );
    wait(files.remove(&path, &stamp)).unwrap();
    assert!(ask("authentication").is_empty());
}

#[test]
fn the_configuration_comes_from_its_file_and_mistakes_are_named() {
    let read = |text: &str| {
        let files = FilesInRam::default();
        wait(files.write(".airsspec/airsspec.toml", text.as_bytes(), None)).unwrap();
        wait(Tiers::read_config(&files, TierConfig::default()))
    };
    let none = wait(Tiers::read_config(
        &FilesInRam::default(),
        TierConfig::default(),
    ))
    .unwrap();
    assert_eq!(none, TierConfig::default());
    assert_eq!((none.hot_window_size, none.chunk_size), (30, 10));
    let config = read("[retry]\nx = 1\n[memory]\nhot_window_size = 5\nother = true\n").unwrap();
    assert_eq!(
        config,
        TierConfig {
            hot_window_size: 5,
            ..TierConfig::default()
        }
    );
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

#[test]
fn an_index_that_fails_costs_no_line() {
    let files = Arc::new(FilesInRam::default());
    let store = Arc::new(Flaky::new(Ram::new(), 1, 100));
    let cold = Arc::new(Memory::builder(store, Ids::new(7)).build());
    let config = TierConfig {
        hot_window_size: 3,
        ..TierConfig::default()
    };
    let tiers = Tiers::new(files.clone(), files.clone(), cold, config, words).unwrap();
    let mut hot = Hot::new(s1());
    for n in 0..10 {
        let ctx = ctx();
        wait(tiers.append(&ctx, &mut hot, user(&n.to_string()))).unwrap();
        let told = ctx.notices.take().concat();
        assert_eq!(told.contains("not indexed yet"), n >= 3, "{n}: {told}");
        assert!(hot.lines().count() <= 6, "it has a bound all the same");
    }
    assert_eq!(read(&files, LOG).lines().count(), 10);
}

#[test]
fn what_belongs_to_a_user_is_not_told_to_a_project() {
    let files = Arc::new(FilesInRam::default());
    let cold = Arc::new(memory());
    let tiers = Tiers::new(
        files.clone(),
        files,
        cold.clone(),
        TierConfig::default(),
        words,
    )
    .unwrap();
    let owned = |number: usize, user: Option<String>| Draft {
        owner: Owner {
            user,
            ..Owner::default()
        },
        ..Draft::note(format!("the secret of walnuts, part {number}"))
    };
    let mut drafts: Vec<Draft> = (0..20)
        .map(|number| owned(number, Some("ann".to_owned())))
        .collect();
    drafts.push(owned(99, None));
    wait(cold.records().add(&ctx(), drafts, None)).unwrap();
    let found = wait(tiers.query_memory(&ctx(), "secret of walnuts", 2)).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].text.ends_with("99"));
}
