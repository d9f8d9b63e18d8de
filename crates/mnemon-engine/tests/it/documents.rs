//! Documents: kept in chunks, replaced whole, found by their parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mnemon_core::chunk::Syntax;
use mnemon_core::embed::{EmbedError, Embedder, ModelId};
use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, ErrorKind, Filter, Ids, Kind, Limits, Owner, Record, Scan};
use mnemon_engine::{
    ChunkCounts, Document, DocumentFate, DocumentReceipt, FileStamp, Hit, Memory, Query,
};
use mnemon_testkit::fakes::HashEmbedder;
use proptest::prelude::*;

use crate::{all, ctx, id, memory, named, wait};

/// Counts the texts that it is asked to place.
#[derive(Default)]
struct Counting {
    inner: HashEmbedder,
    texts: AtomicUsize,
}

#[async_trait::async_trait]
impl Embedder for Counting {
    fn model(&self) -> &ModelId {
        self.inner.model()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        self.inner.embed(texts).await
    }
}

/// The chunks that a search finds.
fn found(memory: &Memory, text: &str, filter: Filter) -> Vec<Hit> {
    let kinds = vec![Kind::Chunk];
    let query = Query::new(text, Filter { kinds, ..filter });
    wait(memory.records().search(&ctx(), &query)).unwrap()
}

fn counting() -> (Memory, Arc<Counting>) {
    let embedder = Arc::new(Counting::default());
    let builder = Memory::builder(Arc::new(Ram::new()), Ids::new(7));
    (builder.embedder(embedder.clone()).build(), embedder)
}

fn later(days: i64) -> Ctx {
    let mut later = ctx();
    later.now = later.now.plus_days(days);
    later
}

fn document(uri: &str, text: impl Into<String>) -> Document {
    Document {
        uri: uri.to_owned(),
        text: text.into(),
        ..Document::default()
    }
}

/// A guide of as many sections, each a chunk of its own.
fn guide(sections: usize) -> String {
    let sections = (0..sections).map(|n| {
        let words = format!("section number{n} tells about subject{n} at length. ");
        format!("## Part {n}\n\n{}\n\n", words.repeat(8))
    });
    format!("# The guide\n\n{}", sections.collect::<String>())
}

fn add(memory: &Memory, document: Document) -> DocumentReceipt {
    let mut receipts = wait(memory.records().add_documents(&later(1), vec![document])).unwrap();
    receipts.remove(0)
}

fn chunks(memory: &Memory) -> Vec<Record> {
    let filter = Filter {
        kinds: vec![Kind::Chunk],
        ..Filter::all_of_tenant()
    };
    wait(memory.records().list(&ctx(), &Scan::new(filter, 1000)))
        .unwrap()
        .records
}

fn counts(added: usize, kept: usize, removed: usize) -> ChunkCounts {
    ChunkCounts {
        added,
        kept,
        removed,
    }
}

#[test]
fn a_changed_document_is_replaced_and_keeps_what_did_not_change() {
    let (memory, embedder) = counting();
    let first = add(&memory, document("guide.md", guide(10)));
    assert_eq!(
        (first.fate, first.chunks),
        (DocumentFate::Added, counts(10, 0, 0))
    );
    assert_eq!(first.title, "The guide");
    assert_eq!(
        embedder.texts.load(Ordering::Relaxed),
        11,
        "ten chunks and the document"
    );

    let before = chunks(&memory);
    let changed = guide(10).replace("number4 tells", "number4 never speaks");
    let second = add(&memory, document("guide.md", changed));
    assert_eq!(
        (second.fate, second.chunks),
        (DocumentFate::Replaced, counts(1, 9, 1))
    );
    assert_eq!(second.id, first.id);
    assert_eq!(
        embedder.texts.load(Ordering::Relaxed),
        13,
        "one chunk and the document"
    );
    let after = chunks(&memory);
    let untouched = after.iter().filter(|chunk| before.contains(chunk)).count();
    assert_eq!(
        (after.len(), untouched),
        (10, 9),
        "versions and numbers included"
    );
    assert_eq!(second.commit.map(|_| ()), Some(()), "one commit");

    let third = add(
        &memory,
        document(
            "guide.md",
            guide(10).replace("number4 tells", "number4 never speaks"),
        ),
    );
    assert_eq!(
        (third.fate, third.chunks, third.commit),
        (DocumentFate::Unchanged, counts(0, 10, 0), None)
    );
    assert_eq!(embedder.texts.load(Ordering::Relaxed), 13);
}

#[test]
fn one_undo_brings_the_whole_document_back_as_it_was() {
    let memory = memory();
    add(&memory, document("guide.md", guide(5)));
    let before: Vec<String> = chunks(&memory)
        .into_iter()
        .map(|chunk| chunk.content)
        .collect();
    let replaced = add(&memory, document("guide.md", "# Another\n\ntext"));
    assert_eq!(replaced.chunks, counts(1, 0, 5));
    wait(memory.records().undo(&later(2), replaced.commit.unwrap())).unwrap();
    let mut after: Vec<String> = chunks(&memory)
        .into_iter()
        .map(|chunk| chunk.content)
        .collect();
    after.sort();
    let mut before = before;
    before.sort();
    assert_eq!(after, before);
    let again = add(&memory, document("guide.md", guide(5)));
    assert_eq!(again.fate, DocumentFate::Unchanged);
}

#[test]
fn lines_are_right_after_something_was_put_in_before_them() {
    let memory = memory();
    add(&memory, document("guide.md", guide(5)));
    let longer = guide(5).replacen("## Part 0", "## Preface\n\nShort.\n\n## Part 0", 1);
    let replaced = add(&memory, document("guide.md", longer.clone()));
    assert_eq!(replaced.chunks, counts(1, 4, 1));
    let chunk = &found(&memory, "subject3", Filter::all_of_tenant())[0].record;
    assert_eq!(chunk.summary.as_deref(), Some("The guide › Part 3"));
    assert_eq!(chunk.source.as_deref(), Some("guide.md"));
    let document = wait(memory.records().get(&ctx(), &chunk.derived_from)).unwrap();
    let contents = document[0].as_ref().unwrap().body.as_ref().unwrap();
    let chunks = contents["chunks"].as_array().unwrap();
    let place = chunks.iter().find(|one| one[0] == chunk.id.as_str());
    let first = place.unwrap()[1].as_u64().unwrap();
    assert_eq!(longer.lines().nth(first as usize - 1), Some("## Part 3"));
}

#[test]
fn headings_and_titles_are_words_to_find_a_chunk_by() {
    let memory = memory();
    let text = "# Kettles\n\n## Descaling\n\nUse a spoon of vinegar and wait an hour.\n";
    add(&memory, document("house/kettle.md", text));
    let hits = found(&memory, "descaling kettles", Filter::all_of_tenant());
    assert_eq!(hits.len(), 1);
    assert_eq!(
        hits[0].record.summary.as_deref(),
        Some("Kettles › Descaling")
    );
}

#[test]
fn chunks_are_found_by_tags_metadata_owner_and_language() {
    let memory = memory();
    let mut code = document("src/kettle.rs", "fn boil() {\n    heat();\n}\n");
    code.tags = vec!["house".to_owned()];
    code.metadata.insert("team".to_owned(), "tea".into());
    code.owner.user = Some("ann".to_owned());
    add(&memory, code.clone());
    add(
        &memory,
        document("src/kettle.py", "def boil():\n    heat()\n"),
    );
    let found = |mut filter: serde_json::Value| {
        filter["viewer"] = "tenant".into();
        found(&memory, "boil", serde_json::from_value(filter).unwrap()).len()
    };
    assert_eq!(found(serde_json::json!({})), 2);
    assert_eq!(found(serde_json::json!({"tags": ["house"]})), 1);
    assert_eq!(found(serde_json::json!({"metadata": {"team": "tea"}})), 1);
    assert_eq!(
        found(serde_json::json!({"metadata": {"language": "python"}})),
        1
    );
    assert_eq!(found(serde_json::json!({"owner": {"user": "ann"}})), 1);
    assert_eq!(found(serde_json::json!({"owner": {"user": "bob"}})), 0);

    code.tags.push("kitchen".to_owned());
    let relabelled = add(&memory, code);
    assert_eq!(
        (relabelled.fate, relabelled.chunks),
        (DocumentFate::Replaced, counts(1, 0, 0))
    );
    assert_eq!(found(serde_json::json!({"tags": ["kitchen"]})), 1);
}

#[test]
fn the_same_file_of_two_users_is_two_documents() {
    let memory = memory();
    let of = |user: &str| Document {
        owner: Owner {
            user: Some(user.to_owned()),
            ..Owner::default()
        },
        ..document("notes.md", "tea")
    };
    let (ann, bob) = (add(&memory, of("ann")), add(&memory, of("bob")));
    assert_ne!(ann.id, bob.id);
    assert_eq!(chunks(&memory).len(), 2);
}

#[test]
fn forgetting_a_document_forgets_its_chunks() {
    let memory = memory();
    let receipt = add(&memory, document("guide.md", guide(5)));
    let forgotten = wait(memory.records().forget(&later(2), &[receipt.id], None)).unwrap();
    assert_eq!(forgotten.cascaded.len(), 5);
    assert!(all(&memory).is_empty());
    let again = add(&memory, document("guide.md", guide(5)));
    assert_eq!(
        (again.fate, again.chunks),
        (DocumentFate::Added, counts(5, 0, 0))
    );
}

#[test]
fn repeated_text_is_told_apart() {
    let memory = memory();
    let text = format!(
        "## A\n\n{0}\n\n## A\n\n{0}\n",
        "the same words. ".repeat(20)
    );
    let receipt = add(&memory, document("twice.md", text));
    assert_eq!(receipt.chunks.added, 2);
    assert_eq!(chunks(&memory).len(), 2);
}

#[test]
fn what_is_too_large_is_refused_with_the_limit_and_nothing_is_written() {
    let memory = memory();
    let refused = |documents: Vec<Document>| {
        let error = wait(memory.records().add_documents(&ctx(), documents)).unwrap_err();
        (error.kind(), error.to_string())
    };
    let huge = document("huge.txt", "word ".repeat(10 * 1024 * 1024));
    let (kind, text) = refused(vec![document("fine.txt", "tea"), huge]);
    assert_eq!(kind, ErrorKind::TooLarge);
    assert_eq!(
        text,
        "document `huge.txt` has 52428800 bytes of text, at most 10485760 are allowed: split it \
         into several"
    );
    let words = "x".repeat(300);
    let crumbs: String = (0..Limits::DEFAULT.document_chunks() + 1)
        .map(|n| format!("# {n}\n\n{words}\n\n"))
        .collect();
    let (kind, text) = refused(vec![document("crumbs.md", crumbs)]);
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!(text.contains("9999 chunks, at most 9998"), "{text}");
    let mut heavy = document("heavy.txt", "A sentence of words. ".repeat(100_000));
    heavy
        .metadata
        .insert("weight".to_owned(), "x".repeat(60_000).into());
    let (kind, text) = refused(vec![heavy]);
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!(
        text.contains("bytes in all chunks with their metadata"),
        "{text}"
    );
    assert!(all(&memory).is_empty());
}

#[test]
fn bad_documents_are_refused_by_name_before_anything_is_written() {
    let memory = memory();
    let text = |document: Document| {
        let documents = vec![self::document("fine.txt", "tea"), document];
        let error = wait(memory.records().add_documents(&ctx(), documents)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    assert!(
        text(document("empty.txt", " \n ")).starts_with("document `empty.txt`: text: is empty")
    );
    assert!(text(document("", "tea")).contains("uri: is empty"));
    assert!(text(document("nul.txt", "a\0b")).contains("NUL byte"));
    assert!(text(document("fine.txt", "again")).contains("is given twice"));
    assert!(text(document("line\nbreak", "tea")).contains("control character"));
    let address = |secret: char| {
        let secret = format!("a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu{secret}");
        document(&format!("https://x.org/?api_key={secret}"), "tea")
    };
    let alike = vec![address('1'), address('2')];
    let error = wait(memory.records().add_documents(&ctx(), alike)).unwrap_err();
    assert!(error.to_string().contains("is given twice"), "{error}");
    let mut tagged = document("tagged.txt", "tea");
    tagged.tags = vec![String::new()];
    assert!(text(tagged).starts_with("document `tagged.txt`: tags"));
    assert!(all(&memory).is_empty());
}

#[test]
fn the_id_of_another_record_is_not_taken() {
    let memory = memory();
    wait(
        memory
            .records()
            .add(&ctx(), vec![named("a", "a note")], None),
    )
    .unwrap();
    let mut document = document("", "tea");
    document.id = Some(id("a"));
    let error = wait(memory.records().add_documents(&ctx(), vec![document])).unwrap_err();
    assert!(
        error.to_string().contains("a is taken by a note"),
        "{error}"
    );
}

#[test]
fn a_large_document_is_replaced_in_one_commit_too() {
    let memory = memory();
    let crumbs = |mark: &str| -> String {
        let words = mark.repeat(300);
        (0..6000).map(|n| format!("# {n}\n\n{words}\n\n")).collect()
    };
    add(&memory, document("crumbs.md", crumbs("x")));
    let replaced = add(&memory, document("crumbs.md", crumbs("y")));
    assert_eq!(
        (replaced.fate, replaced.chunks),
        (DocumentFate::Replaced, counts(6000, 0, 6000))
    );
    let tally = wait(memory.records().stats(&ctx())).unwrap();
    assert_eq!(tally.records(), 6001);
}

#[test]
fn many_documents_are_one_commit() {
    let memory = memory();
    let documents: Vec<Document> = (0..300)
        .map(|n| document(&format!("{n}.md"), guide(5)))
        .collect();
    let receipts = wait(memory.records().add_documents(&ctx(), documents)).unwrap();
    let mut commits: Vec<u64> = receipts
        .iter()
        .filter_map(|receipt| receipt.commit)
        .collect();
    assert_eq!(commits.len(), 300);
    commits.dedup();
    assert_eq!(commits.len(), 1);
    wait(memory.records().undo(&ctx(), commits[0])).unwrap();
    assert!(crate::all(&memory).is_empty());
}

#[test]
fn a_file_is_recognised_by_its_stamp_once_its_clock_has_ticked() {
    let modified = ctx().now;
    let stamp = |read_ms: i64| FileStamp {
        bytes: 3,
        modified,
        read: modified.plus_millis(read_ms),
        digest: "d".to_owned(),
    };
    assert!(stamp(5000).vouches_for(3, modified));
    assert!(!stamp(5000).vouches_for(4, modified));
    assert!(!stamp(5000).vouches_for(3, modified.plus_millis(1)));
    assert!(
        !stamp(100).vouches_for(3, modified),
        "it may have changed in the same tick"
    );

    let memory = memory();
    let mut file = document("a.txt", "tea");
    file.file = Some(stamp(5000));
    add(&memory, file.clone());
    let bare = document("a.txt", "");
    let known = wait(
        memory
            .records()
            .known_documents(&ctx(), &[bare.clone(), document("b.txt", "")]),
    )
    .unwrap();
    let first = known[0].as_ref().unwrap();
    assert!(first.same_frame && first.file == file.file && known[1].is_none());
    let tagged = Document {
        tags: vec!["new".to_owned()],
        ..bare
    };
    let known = wait(memory.records().known_documents(&ctx(), &[tagged])).unwrap();
    assert!(!known[0].as_ref().unwrap().same_frame);
}

#[test]
fn two_writers_of_one_document_do_not_mix() {
    let store = Arc::new(Ram::new());
    let open = |seed| Memory::builder(store.clone(), Ids::new(seed)).build();
    let version =
        |writer: usize, round: usize| guide(4).replace("tells", &format!("w{writer}r{round}"));
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let memory = open(writer as u64);
            scope.spawn(move || {
                for round in 0..20 {
                    let documents = vec![document("guide.md", version(writer, round))];
                    // To give up after several tries is fine; to leave a mixture is not.
                    if let Err(error) = wait(memory.records().add_documents(&ctx(), documents)) {
                        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                    }
                }
            });
        }
    });
    let left = chunks(&open(9));
    let mark = |chunk: &Record| chunk.content.split("number0 ").nth(1).map(str::to_owned);
    let marks: Vec<String> = left.iter().filter_map(mark).collect();
    assert_eq!((left.len(), marks.len()), (4, 1));
    let word = marks[0].split(' ').next().unwrap();
    assert!(
        left.iter().all(|chunk| chunk.content.contains(word)),
        "{word}: {left:?}"
    );
}

#[test]
fn a_document_is_read_from_json() {
    let json = r#"{"name": "a.md", "content": "tea", "media": "markdown", "tags": ["x"]}"#;
    let document: Document = serde_json::from_str(json).unwrap();
    assert_eq!(
        (document.uri.as_str(), document.syntax),
        ("a.md", Some(Syntax::Markdown))
    );
    assert!(serde_json::from_str::<Document>(r#"{"txt": "tea"}"#).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However a document came to be what it is, its chunks are those of one that was added new.
    #[test]
    fn replacing_ends_where_adding_would(
        versions in proptest::collection::vec(
            proptest::collection::vec(("[ab]{1,3}", 1_usize..60), 1..8), 1..5),
    ) {
        let text = |sections: &Vec<(String, usize)>| -> String {
            let sections = sections.iter().map(|(name, length)| {
                format!("## {name}\n\n{}\n\n", "some words here. ".repeat(*length))
            });
            sections.collect()
        };
        let contents = |memory: &Memory| -> Vec<(String, Option<String>, String)> {
            let chunks = chunks(memory).into_iter();
            let mut chunks: Vec<_> = chunks.map(|c| (c.id.to_string(), c.summary, c.content)).collect();
            chunks.sort();
            chunks
        };
        let replaced = memory();
        for version in &versions {
            add(&replaced, document("a.md", text(version)));
        }
        let fresh = memory();
        add(&fresh, document("a.md", text(versions.last().unwrap())));
        prop_assert_eq!(contents(&replaced), contents(&fresh));
    }
}
