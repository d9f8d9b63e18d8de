//! The same tiers in files and on a store: one body of tests for both.

use std::sync::Arc;

use mnemon_core::{Filter, Kind, Scan, Scope};
use mnemon_engine::Memory;
use mnemon_engine::tiers::{Hot, Line, Said, Summarise, Summariser, TierConfig, Tiers};
use mnemon_testkit::fakes::{FilesInRam, Scripted};
use proptest::prelude::*;
use serde_json::json;

use super::{append, s1, user, words};
use crate::{ctx, memory, wait};

const FORMS: [&str; 2] = ["files", "records"];

fn of(form: &str, config: TierConfig) -> (Tiers, Arc<Memory>) {
    let memory = Arc::new(memory());
    let tiers = match form {
        "files" => {
            let files = Arc::new(FilesInRam::default());
            Tiers::new(files.clone(), files, memory.clone(), config, words)
        }
        _ => Tiers::on_store(memory.clone(), config, words),
    };
    (tiers.unwrap(), memory)
}

#[test]
fn lines_come_back_in_their_order_and_form() {
    for form in FORMS {
        let (tiers, _) = of(form, TierConfig::default());
        let empty = wait(tiers.boot(&ctx(), &s1())).unwrap();
        assert_eq!(empty.hot, Hot::new(s1()), "{form}");
        let mut hot = empty.hot;
        let all = [
            user("Hi \0 there\nwith a break"),
            Said::Thought {
                content: "hm".to_owned(),
            },
            Said::Action {
                tool: "write_file".to_owned(),
                params: json!({"path": "x"}),
            },
            Said::Observation {
                result: json!({"done": [1, null]}),
            },
        ];
        for said in all.clone() {
            append(&tiers, &mut hot, said);
        }
        let boot = wait(tiers.boot(&ctx(), &s1())).unwrap();
        assert_eq!(boot.hot, hot, "{form}");
        assert_eq!((boot.skipped_count, boot.gave_up), (0, false));
        let said: Vec<Said> = boot
            .hot
            .lines()
            .map(|hot| match &hot.line {
                Line::Known { said, .. } => said.clone(),
                Line::Other(_) => panic!("all are known"),
            })
            .collect();
        assert_eq!(said, all);
        let other = wait(tiers.boot(&ctx(), &"s2".parse().unwrap())).unwrap();
        assert_eq!(other.hot.lines().count(), 0, "{form}: another session");
    }
}

#[test]
fn what_leaves_the_window_is_found_and_what_is_in_it_is_not() {
    for form in FORMS {
        let config = TierConfig {
            hot_window_size: 3,
            ..TierConfig::default()
        };
        let (tiers, _) = of(form, config);
        let mut hot = Hot::new(s1());
        for animal in super::ANIMALS {
            append(
                &tiers,
                &mut hot,
                user(&format!("this animal is a {animal}")),
            );
        }
        assert_eq!(hot.lines().count(), 3);
        let found = wait(tiers.query_memory(&ctx(), "which animal is a quokka", 3)).unwrap();
        assert!(found[0].text.contains("quokka"), "{form}: {found:?}");
        assert!(found[0].source.contains("s1"), "{form}: {found:?}");
        let all = wait(tiers.query_memory(&ctx(), "animal", 10)).unwrap();
        assert_eq!(
            all.len(),
            3,
            "{form}: what is still in view is not told again"
        );
    }
}

fn over(form: &str) -> (Tiers, Arc<Memory>, Hot) {
    let config = TierConfig {
        max_tokens: 100,
        chunk_size: 2,
        ..TierConfig::default()
    };
    let (tiers, memory) = of(form, config);
    let mut hot = Hot::new(s1());
    for n in 0..9 {
        append(
            &tiers,
            &mut hot,
            user(&format!("We decided {n} on the plan with walnuts and tea.")),
        );
    }
    (tiers, memory, hot)
}

#[test]
fn the_older_half_becomes_a_page_and_a_link() {
    for form in FORMS {
        let (tiers, _, mut hot) = over(form);
        let before = hot.clone();
        let compress = |hot: &mut Hot| {
            wait(tiers.compress_if_needed(&ctx(), hot, &Summariser::extractive())).unwrap()
        };
        let done = compress(&mut hot).unwrap();
        assert_eq!(
            (done.history.as_str(), done.lines),
            ("history-001.md", 4),
            "{form}"
        );
        assert!(done.tokens_after < done.tokens_before);
        assert_eq!(hot.texts()[0], "[History Link: history-001.md]");
        assert_eq!(hot.texts()[1..], before.texts()[4..], "{form}");
        assert_eq!(compress(&mut hot), None, "{form}: it is small enough");
        let found = wait(tiers.query_memory(&ctx(), "History 001", 20)).unwrap();
        let page = found
            .iter()
            .find(|one| one.source.ends_with("history-001.md"));
        assert!(page.is_some(), "{form}: {found:?}");
        // The log is whole: a start sees the lines again.
        let boot = wait(tiers.boot(&ctx(), &s1())).unwrap();
        assert_eq!(boot.hot.lines().count(), 9);
        // But what became a page does not become another one.
        let mut fresh = boot.hot;
        assert_eq!(compress(&mut fresh), None, "{form}");
        assert_eq!(fresh.texts(), hot.texts(), "{form}");
        for n in 0..9 {
            append(
                &tiers,
                &mut hot,
                user(&format!("{n} one two three four five six seven")),
            );
        }
        assert_eq!(
            compress(&mut hot).unwrap().history,
            "history-002.md",
            "{form}"
        );
    }
}

#[test]
fn frozen_records_are_never_changed_and_take_along_what_was_made_of_them() {
    let (tiers, memory, mut hot) = over("records");
    let frozen = || {
        let filter = Filter {
            kinds: vec![Kind::Event],
            ..Filter::all_of_tenant()
        };
        let page = wait(memory.records().list(&ctx(), &Scan::new(filter, 100))).unwrap();
        page.records
    };
    let before = frozen();
    assert_eq!(before.len(), 9);
    wait(tiers.compress_if_needed(&ctx(), &mut hot, &Summariser::extractive())).unwrap();
    hot.clear();
    assert_eq!(frozen(), before);
    assert!(before.iter().all(|record| record.version == 1));
    let ids: Vec<_> = before.iter().map(|record| record.id.clone()).collect();
    wait(memory.records().forget(&ctx(), &ids, None)).unwrap();
    let filter = Filter {
        scopes: vec![Scope::Semantic],
        ..Filter::all_of_tenant()
    };
    let left = wait(memory.records().list(&ctx(), &Scan::new(filter, 100))).unwrap();
    assert!(left.records.is_empty(), "{:?}", left.records);
}

#[test]
fn one_summariser_asks_the_model_and_does_without_it() {
    let texts: Vec<String> = (0..6)
        .map(|n| format!("User: We decided number {n} of the long list of things to be done."))
        .collect();
    let extract = wait(Summariser::extractive().summarise(&texts)).unwrap();
    assert!(extract.contains("We decided number"), "{extract}");
    assert!(extract.len() < texts.concat().len() / 2, "{extract}");
    let long = "words ".repeat(1000);
    for (answer, expected) in [
        ("Six decisions.", "Six decisions."),
        (" ", &extract),
        (&long, &extract),
    ] {
        let llm = Arc::new(Scripted::answering(&[answer]));
        let summariser = Summariser::with(Some(llm.clone()), &ctx());
        assert_eq!(wait(summariser.summarise(&texts)).unwrap(), expected);
        assert_eq!(llm.asked()[0].account.task, "tiers");
    }
    // One that does not answer is not asked for the other parts.
    let llm = Arc::new(Scripted::default());
    let summariser = Summariser::with(Some(llm.clone()), &ctx());
    for _ in 0..3 {
        assert_eq!(wait(summariser.summarise(&texts)).unwrap(), extract);
    }
    assert_eq!(llm.asked().len(), 1);
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        "[a-z \u{e4}\u{4e2d}\n\"\\\\]{0,40}".prop_map(|content| Said::User { content }),
        "[a-z ]{0,40}".prop_map(|content| Said::Thought { content }),
        "[a-z]{1,8}".prop_map(|tool| Said::Action {
            tool,
            params: json!({"a": 1})
        }),
        "[a-z ]{0,60}".prop_map(|text| Said::Observation {
            result: json!(text)
        }),
    ]
}

proptest! {
    /// Whatever is said, both forms show the same window, and a start shows its end again.
    #[test]
    fn both_forms_show_the_same(
        all in prop::collection::vec(said(), 0..40),
        size in 1usize..12,
        max_tokens in 10usize..200,
    ) {
        let config = TierConfig {
            hot_window_size: size,
            max_tokens,
            chunk_size: 3,
            ..TierConfig::default()
        };
        let mut shown: Vec<Vec<String>> = Vec::new();
        for form in FORMS {
            let (tiers, _) = of(form, config);
            let mut hot = Hot::new(s1());
            for said in &all {
                append(&tiers, &mut hot, said.clone());
                let summariser = Summariser::extractive();
                wait(tiers.compress_if_needed(&ctx(), &mut hot, &summariser)).unwrap();
            }
            let boot = wait(tiers.boot(&ctx(), &s1())).unwrap();
            prop_assert_eq!(boot.hot.lines().count(), all.len().min(size));
            let lines: Vec<_> = hot.lines().cloned().collect();
            let booted: Vec<_> = boot.hot.lines().cloned().collect();
            prop_assert!(booted.ends_with(&lines), "{}", form);
            shown.push([hot.texts(), boot.hot.texts()].concat());
        }
        prop_assert_eq!(&shown[0], &shown[1]);
    }
}
