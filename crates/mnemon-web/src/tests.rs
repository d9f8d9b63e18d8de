//! Stored text is data, whatever it holds.

use crate::text::{block, clean, grouped, line, snippet};
use crate::{PAGES, markdown};

const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</pre></bdi><svg onload=alert(1)>",
    "javascript:alert(1)",
    "\u{1b}[31mred\u{1b}[0m\u{7}",
    "left\u{202e}right\u{2066}isolated",
    "tag\u{e0041}\u{200b}zero",
];

#[test]
fn hostile_text_makes_no_tag_and_no_control_character() {
    for hostile in HOSTILE {
        for shown in [
            line(hostile),
            block(hostile),
            snippet(hostile, &["alert", "right"], 200),
        ] {
            let html = shown.into_string();
            for tag in ["<script", "<img", "<svg", "</bdi><"] {
                assert!(!html.contains(tag), "{hostile:?}: {html}");
            }
            let is_acting = |one: char| {
                one.is_control() && one != '\n' || ('\u{202a}'..='\u{202e}').contains(&one)
            };
            assert!(!html.contains(is_acting), "{hostile:?}: {html}");
        }
    }
    assert_eq!(clean("a\u{1b}[1mb\u{202e}c"), "a␛[1mb⟨U+202E⟩c");
    assert_eq!(clean("a\u{e0100}b\u{3164}"), "a⟨U+E0100⟩b⟨U+3164⟩");
    assert_eq!(clean("ẹ 東京 👩‍🚀 نص"), "ẹ 東京 👩‍🚀 نص");
}

#[test]
fn texts_that_are_hard_to_compare_take_no_longer() {
    // One-letter words without an order, of which the best alignment takes long to find.
    let mut state = 1_u32;
    let mut words = || {
        let letters = (0..2000).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + (state >> 24) as u8 % 26)
        });
        letters.flat_map(|letter| [letter, ' ']).collect::<String>()
    };
    let change = serde_json::json!({
        "before": {"content": words()}, "after": {"content": words()}, "commit": 1
    });
    let began = std::time::Instant::now();
    for _ in 0..20 {
        crate::history::version(&change);
    }
    let taken = began.elapsed();
    // Without the limit it takes 20 s.
    assert!(taken < std::time::Duration::from_secs(8), "{taken:?}");
}

#[test]
fn markdown_makes_no_tag_of_its_own_and_no_link_but_to_the_web() {
    let html = markdown::render(
        "# Title\n\n<script>x</script>\n\n[a](javascript:alert(1)) [b](https://example.org) \
         ![i](https://example.org/i.png)\n\n<div onclick=x>\n\n| a |\n|---|\n| <b>c</b> |",
    );
    let html = html.into_string();
    assert!(html.contains("<h3>Title</h3>"), "{html}");
    assert!(html.contains("&lt;script&gt;"), "{html}");
    assert!(html.contains("<a href=\"#\">a</a>"), "{html}");
    assert!(
        html.contains("<a href=\"https://example.org\">b</a>"),
        "{html}"
    );
    for tag in ["<script", "javascript:", "<img", "<div", "<b>"] {
        assert!(!html.contains(tag), "{tag}: {html}");
    }
}

#[test]
fn a_long_line_is_cut() {
    let text = "x".repeat(1_000_000);
    assert!(line(&text).into_string().len() < 1000);
    assert!(snippet(&text, &["y"], 200).into_string().len() < 1000);
    assert!(block(&text).into_string().len() < 25_000);
}

#[test]
fn words_that_matched_are_marked() {
    let marked = |text: &str, words: &[&str]| snippet(text, words, 200).into_string();
    assert!(marked("Ann drinks tea", &["drink"]).contains("<mark>drinks</mark> tea"));
    assert!(marked("東京の会議", &["東京"]).contains("<mark>"));
    assert!(!marked("Ann drinks tea", &["ea"]).contains("<mark>"));
    let far = format!("{} tea", "word ".repeat(400));
    assert!(marked(&far, &["tea"]).contains("<mark>tea</mark>"));
}

#[test]
fn numbers_are_grouped() {
    assert_eq!(grouped(999), "999");
    assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
}

/// A change needs a form, and a form a token, so pages that are only read change nothing.
#[test]
fn pages_have_a_method_and_a_path_of_their_own() {
    let mut known = std::collections::BTreeSet::new();
    for page in PAGES {
        assert!(["GET", "POST"].contains(&page.method), "{}", page.path);
        assert!(
            known.insert((page.method, page.path)),
            "{} twice",
            page.path
        );
    }
}

#[test]
fn a_part_of_a_path_is_never_dots_and_can_be_read_back() {
    for text in [".", "..", "~.", "~..", "~~.", "...", "~", "a/b", "~a"] {
        let part = crate::shell::path_part(text);
        assert!(part != "." && part != "..", "{text} became {part}");
        let read = percent_encoding::percent_decode_str(&part);
        let read = read.decode_utf8().unwrap();
        assert_eq!(crate::shell::unescaped_part(&read), text);
    }
}

#[test]
fn the_ends_of_an_axis_never_have_the_same_label() {
    let ends = |first, last| crate::text::axis_ends(first, last);
    let pair = |first: &str, last: &str| (first.to_owned(), last.to_owned());
    let first = "2026-01-30T09:05:01.000Z";
    assert_eq!(
        ends(first, "2026-01-31T09:05:01.000Z"),
        pair("2026-01-30", "2026-01-31")
    );
    assert_eq!(
        ends(first, "2026-01-30T17:40:00.000Z"),
        pair("2026-01-30 09:05", "17:40")
    );
    assert_eq!(
        ends(first, "2026-01-30T09:05:31.000Z"),
        pair("2026-01-30 09:05:01", "09:05:31")
    );
    assert_eq!(ends(first, first), pair("2026-01-30 09:05:01", ""));
}

#[test]
fn times_become_numbers() {
    assert_eq!(crate::text::millis("1970-01-01T00:00:00Z"), Some(0));
    let leap_day = crate::text::millis("2024-02-29T12:00:00.250Z");
    assert_eq!(leap_day, Some(1_709_208_000_250));
    assert_eq!(crate::text::millis("yesterday"), None);
}
