//! Records that were stored several times: each is found once, and the others come last.

use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Filter, Ids};
use mnemon_engine::{Draft, Memory, Query};
use mnemon_testkit::fakes::HashEmbedder;

use crate::{ctx, wait};

const SUBJECTS: [&str; 14] = [
    "garden", "train", "letter", "invoice", "river", "music", "winter", "bread", "island", "piano",
    "bridge", "lantern", "orchid", "harbour",
];

fn memory(texts: impl IntoIterator<Item = String>) -> Memory {
    let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7))
        .embedder(Arc::new(HashEmbedder::new(64)))
        .build();
    let drafts: Vec<Draft> = texts.into_iter().map(Draft::note).collect();
    for drafts in drafts.chunks(100) {
        wait(memory.records().add(&ctx(), drafts.to_vec(), None)).unwrap();
    }
    memory
}

fn found(memory: &Memory, limit: usize) -> Vec<String> {
    let query = Query {
        limit,
        min_score: Some(0.0),
        ..Query::new("tea", Filter::all_of_tenant())
    };
    let hits = wait(memory.records().search(&ctx(), &query)).unwrap();
    hits.into_iter().map(|hit| hit.record.content).collect()
}

/// Texts about tea, each with a subject of its own.
fn notes() -> Vec<String> {
    let note = |(at, subject): (usize, &&str)| {
        let others = ["and what became of it"].repeat(at % 4).join(" ");
        format!("tea and the {subject} on a long day {others}")
    };
    SUBJECTS.iter().enumerate().map(note).collect()
}

fn subjects(found: &[String]) -> Vec<&str> {
    let subject = |text: &String| {
        let is_in = |subject: &&&str| text.contains(**subject);
        *SUBJECTS.iter().find(is_in).unwrap()
    };
    found.iter().map(subject).collect()
}

#[test]
fn a_record_that_is_stored_three_times_is_found_once() {
    let once = memory(notes());
    let expected = found(&once, 10);
    let expected = subjects(&expected);
    let texts = notes().into_iter();
    let exact = memory(texts.clone().flat_map(|text| vec![text; 3]));
    assert_eq!(subjects(&found(&exact, 10)), expected);
    let with_more = texts.flat_map(|text| {
        let more = ["", "By the way: ", "Also, as I said: "];
        more.map(|more| format!("{more}{text}"))
    });
    let distinct = found(&memory(with_more), 10);
    let mut subjects = subjects(&distinct);
    subjects.sort_unstable();
    subjects.dedup();
    assert_eq!(subjects.len(), 10, "{distinct:?}");
}

/// The copies alone would fill what each arm contributes.
#[test]
fn many_copies_of_one_record_do_not_crowd_out_others() {
    let copies = vec!["tea tea tea".to_owned(); 150];
    let memory = memory(copies.into_iter().chain(notes()));
    let found = found(&memory, 10);
    assert_eq!(found[0], "tea tea tea");
    let others = subjects(&found[1..]);
    assert_eq!(others.len(), 9, "{found:?}");
}

/// Neither of two copies contains the other, but both contain the original, which comes after them.
#[test]
fn copies_with_different_words_added_are_recognised_by_the_original() {
    let text = "about tea the two of us said a lot on that day";
    let memory = memory([
        format!("tea tea, tea for two: {text}"),
        format!("more tea, and tea again: {text}"),
        text.to_owned(),
        "tea is sold out".to_owned(),
    ]);
    let found = found(&memory, 2);
    let is_copy = |hit: &&String| hit.contains(text);
    assert_eq!(found.iter().filter(is_copy).count(), 1, "{found:?}");
}

#[test]
fn copies_come_last_where_there_is_room() {
    let text = "tea with Ann on the terrace".to_owned();
    let copy = format!("By the way: {text}");
    let memory = memory([text.clone(), copy.clone(), "tea is sold out".to_owned()]);
    let found = found(&memory, 10);
    assert_eq!(found.len(), 3);
    assert!([text, copy].contains(&found[2]), "{found:?}");
}
