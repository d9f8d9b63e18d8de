//! What the cutting promises.

use std::collections::HashSet;

use icu_segmenter::GraphemeClusterSegmenter;
use proptest::prelude::*;

use super::*;

fn texts<'a>(source: &'a str, chunks: &[Chunk]) -> Vec<&'a str> {
    chunks.iter().map(|chunk| chunk.text(source)).collect()
}

fn paths(chunks: &[Chunk]) -> Vec<String> {
    let paths = chunks.iter().map(|chunk| chunk.headings.join("/"));
    paths.collect()
}

fn markdown(source: &str) -> Vec<Chunk> {
    divide(source, Syntax::Markdown, Size::DEFAULT).chunks
}

fn words(count: usize, seed: usize) -> String {
    let words = (0..count).map(|n| format!("word{}", (n * 7919 + seed * 104_729) % 997));
    let words: Vec<String> = words.collect();
    let sentences: Vec<String> = words
        .chunks(9)
        .map(|nine| format!("The {}.", nine.join(" ")))
        .collect();
    sentences.join(" ")
}

#[test]
fn each_section_is_a_chunk_under_its_headings() {
    let source = format!(
        "# Guide\n\n{}\n\n## Install\n\n{}\n\n### Linux\n\n{}\n\n## Use\n\n{}\n",
        words(60, 1),
        words(60, 2),
        words(60, 3),
        words(60, 4)
    );
    let chunks = markdown(&source);
    let expected = ["Guide", "Guide/Install", "Guide/Install/Linux", "Guide/Use"];
    assert_eq!(paths(&chunks), expected);
    assert!(chunks[2].text(&source).starts_with("### Linux"));
    assert_eq!(chunks[0].lines(), (1, 3));
    assert_eq!(chunks[3].lines(), (13, 15));
}

#[test]
fn a_heading_alone_goes_with_what_follows_unless_that_ranks_higher() {
    let source = format!(
        "# A\n\n## B\n\n{}\n\n### C\n\n# D\n\n{}\n",
        words(80, 1),
        words(80, 2)
    );
    let chunks = markdown(&source);
    assert_eq!(paths(&chunks), ["A/B", "A/B/C", "D"]);
}

#[test]
fn a_number_sign_in_a_fence_or_a_quotation_is_no_heading() {
    let source = "# Real\n\n```sh\n# not a heading\n```\n\n> # quoted\n\n    # indented\n";
    let divided = divide(source, Syntax::Markdown, Size::DEFAULT);
    assert_eq!(divided.chunks.len(), 1);
    assert_eq!(divided.chunks[0].headings, ["Real"]);
    assert_eq!(divided.title.as_deref(), Some("Real"));
}

#[test]
fn underlined_headings_and_front_matter_are_read() {
    let source = "---\ntitle: \"The plan\"\ntags: [a]\n---\n\nIntro\n=====\n\ntext\n";
    let divided = divide(source, Syntax::Markdown, Size::DEFAULT);
    assert_eq!(divided.title.as_deref(), Some("The plan"));
    assert_eq!(divided.chunks[0].headings, ["Intro"]);
    let plain = divide(source, Syntax::Text, Size::DEFAULT);
    assert_eq!(plain.title, None);
}

#[test]
fn only_the_beginning_is_front_matter() {
    let words = words(60, 1);
    let source = format!("# One\n\n{words}\n\n---\n# Two\ntitle: x\n\n---\n\n{words}\n");
    let divided = divide(&source, Syntax::Markdown, Size::DEFAULT);
    assert_eq!(divided.title.as_deref(), Some("One"));
    assert_eq!(divided.chunks[1].headings, ["Two"]);
    let never_closed = divide("---\ntitle: x\n\n# Real\n", Syntax::Markdown, Size::DEFAULT);
    assert_eq!(never_closed.title.as_deref(), Some("Real"));
}

#[test]
fn what_fits_into_a_chunk_stays_whole() {
    let fence = format!("```rust\n{}```\n", "let a = 1; // some code\n".repeat(50));
    let list = "- an item of a list that is long enough\n".repeat(30);
    let table = format!(
        "| a | b |\n|---|---|\n{}",
        "| one cell | another one |\n".repeat(45)
    );
    for block in [fence, list, table] {
        assert!(cost(&block) <= Size::DEFAULT.limit());
        for before in [5, 40, 90, 130, 200] {
            let source = format!("{}\n\n{block}\n{}\n", words(before, 1), words(100, 2));
            let chunks = markdown(&source);
            let whole = texts(&source, &chunks)
                .iter()
                .any(|text| text.contains(block.trim_end()));
            assert!(whole, "{before}: {:?}", texts(&source, &chunks));
        }
    }
}

#[test]
fn what_is_larger_is_cut_at_its_lines() {
    let rows: String = (0..200)
        .map(|n| format!("| row {n} | value {n} |\n"))
        .collect();
    let source = format!("| a | b |\n|---|---|\n{rows}");
    let chunks = markdown(&source);
    assert!(chunks.len() > 2);
    for text in texts(&source, &chunks) {
        assert!(text.starts_with('|') && text.ends_with('|'), "{text}");
    }
    let items: String = (0..200)
        .map(|n| format!("- item {n}\n  goes on here\n"))
        .collect();
    for text in texts(&items, &markdown(&items)) {
        assert!(
            text.starts_with("- item") && text.ends_with("here"),
            "{text}"
        );
    }
}

#[test]
fn code_is_cut_before_definitions() {
    let body = "    let x = compute(1, 2, 3);\n".repeat(20);
    let source: String = (0..6)
        .map(|n| format!("/// Says what it does.\npub fn f{n}() {{\n{body}}}\n\n"))
        .collect();
    let chunks = divide(&source, Syntax::Code, Size::DEFAULT).chunks;
    assert!(chunks.len() >= 3);
    for chunk in &chunks {
        assert!(chunk.text(&source).starts_with("/// Says"), "{chunk:?}");
        assert!(chunk.text(&source).ends_with('}'));
        assert_eq!(chunk.start, chunk.own, "code does not overlap");
    }
}

#[test]
fn a_long_definition_is_named_in_each_of_its_chunks() {
    let body = "    def method(self):\n        return 1\n\n".repeat(100);
    let source = format!("import os\n\nclass Kettle(Device):\n{body}");
    let chunks = divide(&source, Syntax::Code, Size::DEFAULT).chunks;
    assert!(chunks.len() > 2);
    assert_eq!(chunks[2].headings, ["class Kettle(Device)"]);
    assert!(chunks[2].text(&source).starts_with("    def method"));
    let (first, last) = chunks[2].lines();
    let lines: Vec<&str> = source.lines().collect();
    assert!(lines[first - 1].contains("def method") && lines[last - 1].contains("return"));
}

#[test]
fn a_long_paragraph_is_cut_at_sentences_and_overlaps() {
    let source = words(900, 1);
    let chunks = divide(&source, Syntax::Text, Size::DEFAULT).chunks;
    assert!(chunks.len() > 4);
    for text in texts(&source, &chunks) {
        assert!(text.ends_with('.') && text.starts_with("The word"));
    }
    for pair in chunks.windows(2) {
        let repeated = &source[pair[1].start..pair[1].own];
        assert!(
            !repeated.is_empty() && source[..pair[1].start].ends_with(". "),
            "{repeated}"
        );
    }
}

#[test]
fn sentences_end_in_every_language() {
    let english = "The kettle is on. Is tea ready? Yes! ".repeat(80);
    let vietnamese = "Nước đang sôi. Trà đã sẵn sàng chưa? Rồi! ".repeat(80);
    let japanese = "やかんは火にかけてある。お茶はできた？はい！".repeat(80);
    let chinese = "水壶已经烧开。茶准备好了吗？好了！".repeat(80);
    for source in [english, vietnamese, japanese, chinese] {
        let chunks = divide(&source, Syntax::Text, Size::DEFAULT).chunks;
        assert!(chunks.len() > 1);
        for text in texts(&source, &chunks) {
            assert!(text.ends_with(['.', '?', '!', '。', '？', '！']), "{text}");
        }
    }
}

#[test]
fn wrapped_lines_are_not_sentences() {
    let source = format!(
        "Here begins{} and ends. ",
        "\na line of a long sentence".repeat(9)
    );
    let source = source.repeat(20);
    for text in texts(
        &source,
        &divide(&source, Syntax::Text, Size::DEFAULT).chunks,
    ) {
        assert!(text.ends_with("ends."), "{text}");
    }
}

#[test]
fn an_insertion_changes_the_chunks_near_it_only() {
    let sections: Vec<String> = (0..40)
        .map(|n| {
            format!(
                "## Part {n}\n\n{}\n\n{}\n",
                words(150, n),
                words(170, n + 100)
            )
        })
        .collect();
    let before = sections.concat();
    let mut edited = sections.clone();
    edited[20] = edited[20].replacen("word", "An inserted sentence. word", 1);
    let after = edited.concat();
    assert!(fresh(&before, &after, Syntax::Markdown) <= 3);
    // No headings help here: the cuts find their places again by themselves.
    let text = |extra: &str| {
        let paragraphs: Vec<String> = (0..200).map(|n| words(40 + n % 60, n)).collect();
        format!("{extra}{}", paragraphs.join("\n\n"))
    };
    let fresh = fresh(
        &text(""),
        &text("Something new at the top.\n\n"),
        Syntax::Text,
    );
    assert!(fresh <= 8, "{fresh} chunks are new");
}

/// How many chunks of `after` were not there before.
fn fresh(before: &str, after: &str, syntax: Syntax) -> usize {
    let old = divide(before, syntax, Size::DEFAULT).chunks;
    let old: HashSet<&str> = texts(before, &old).into_iter().collect();
    let new = divide(after, syntax, Size::DEFAULT).chunks;
    texts(after, &new)
        .into_iter()
        .filter(|text| !old.contains(text))
        .count()
}

#[test]
fn names_tell_the_syntax() {
    assert_eq!(Syntax::of_name("notes/README.MD"), Syntax::Markdown);
    assert_eq!(Syntax::of_name("src/main.rs"), Syntax::Code);
    assert_eq!(Syntax::of_name("Makefile"), Syntax::Code);
    assert_eq!(Syntax::of_name("a.b/letter"), Syntax::Text);
    assert_eq!(language("kettle.tsx"), Some("typescript"));
    assert!(
        "html"
            .parse::<Syntax>()
            .unwrap_err()
            .to_string()
            .contains("markdown, code, text")
    );
}

#[test]
fn sizes_have_bounds() {
    assert!(Size::new(63, 0).is_err() && Size::new(100_001, 0).is_err());
    assert!(Size::new(100, 26).is_err() && Size::new(100, 25).is_ok());
}

#[test]
fn nothing_gives_nothing() {
    for syntax in Syntax::ALL.iter().copied() {
        for source in ["", " ", "\n\n\t\n", &"\n".repeat(5000)] {
            assert!(divide(source, syntax, Size::DEFAULT).chunks.is_empty());
        }
    }
}

/// Texts of the kind that break a cutter: Markdown of all sorts, long runs, odd characters.
fn source() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[a-zA-Z .,!?]{0,120}",
        2 => Just("\n\n".to_owned()),
        1 => Just("\n".to_owned()),
        1 => Just("\r\n".to_owned()),
        1 => "\n#{1,6} [a-z ]{0,20}\n",
        1 => Just("\n```\nlet a = 1;\n# no\n```\n".to_owned()),
        1 => Just("\n```\nnever closed\n".to_owned()),
        1 => "(\n[-*] [a-z ]{1,30}){1,6}\n",
        1 => "(\n\\| [a-z]{1,9} \\| [a-z]{1,9} \\|){2,6}\n",
        1 => Just("\n> quoted\n> # more\n".to_owned()),
        1 => Just("\n---\n".to_owned()),
        1 => Just("---\ntitle: x\n---\n".to_owned()),
        1 => Just("\n    indented code\n\tand tabs\n".to_owned()),
        1 => Just("\n<div>\n<p>html\n\n</div>\n".to_owned()),
        1 => "[ァ-ヶ一-龥。、]{0,60}",
        1 => "[ạ-ỹđ ]{0,40}",
        1 => Just("👩‍👩‍👧‍👦🇻🇳🇯🇵e\u{301}\u{302}".to_owned()),
        1 => Just("x".repeat(300)),
        1 => Just("a\u{300}".repeat(70)),
        1 => "\\PC{0,40}",
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn size() -> impl Strategy<Value = Size> {
    (64_usize..600, 0_usize..=25)
        .prop_map(|(most, share)| Size::new(most, most * share / 100).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn chunks_cover_the_text_in_order_within_their_bounds(
        source in source(),
        syntax in proptest::sample::select(Syntax::ALL.to_vec()),
        size in size(),
    ) {
        let chunks = divide(&source, syntax, size).chunks;
        let mut reached = 0;
        for chunk in &chunks {
            prop_assert!(chunk.own >= reached, "own parts lie in order");
            let gap = source.get(reached..chunk.own);
            prop_assert!(gap.is_some_and(|gap| gap.trim().is_empty()), "nothing is left out");
            prop_assert!(chunk.start <= chunk.own && chunk.own < chunk.end);
            let whole = source.get(chunk.start..chunk.end);
            prop_assert!(whole.is_some(), "cut between characters");
            prop_assert!(cost(whole.unwrap()) <= size.most(), "{}", cost(whole.unwrap()));
            let repeated = source.get(chunk.start..chunk.own).unwrap();
            prop_assert!(cost(repeated) <= size.overlap());
            prop_assert!(!chunk.text(&source).is_empty());
            let (first, last) = chunk.lines();
            let own = source.get(chunk.own..chunk.end).unwrap();
            let before = chunk.own + own.len() - own.trim_start().len();
            prop_assert_eq!(first, 1 + source[..before].matches('\n').count());
            prop_assert_eq!(last, first + own.trim().matches('\n').count());
            prop_assert!(chunk.headings.len() <= 6);
            reached = chunk.end;
        }
        prop_assert!(source[reached..].trim().is_empty(), "the end is left out");
    }

    #[test]
    fn no_grapheme_is_cut_that_fits_into_a_chunk(source in source(), size in size()) {
        let mut breaks: Vec<usize> = GraphemeClusterSegmenter::new().segment_str(&source).collect();
        breaks.dedup();
        let longest = breaks.windows(2).map(|pair| cost(&source[pair[0]..pair[1]])).max();
        prop_assume!(longest.unwrap_or(0) <= size.limit());
        for syntax in Syntax::ALL.iter().copied() {
            for chunk in divide(&source, syntax, size).chunks {
                for place in [chunk.start, chunk.own, chunk.end] {
                    prop_assert!(breaks.binary_search(&place).is_ok(), "{} in {:?}", place, source);
                }
            }
        }
    }

    #[test]
    fn an_edit_in_one_section_leaves_the_others_as_they_are(
        parts in proptest::collection::vec("[a-z ]{100,900}", 2..6),
        at in any::<prop::sample::Index>(),
        with in "[a-z ]{100,900}",
    ) {
        // Sections that are not short: only those stand by themselves.
        let of = |parts: &[String]| -> String {
            let sections = parts.iter().enumerate().map(|(n, words)| {
                format!("# Part {n}\n\n{}{words}\n\n", "text ".repeat(50))
            });
            sections.collect()
        };
        let before = of(&parts);
        let mut edited = parts.clone();
        let at = at.index(edited.len());
        edited[at] = with;
        let after = of(&edited);
        let untouched = |source: &str| -> Vec<String> {
            let chunks = divide(source, Syntax::Markdown, Size::DEFAULT).chunks;
            let others = chunks.iter().filter(|chunk| chunk.headings != [format!("Part {at}")]);
            others.map(|chunk| chunk.text(source).to_owned()).collect()
        };
        prop_assert_eq!(untouched(&before), untouched(&after));
    }
}
