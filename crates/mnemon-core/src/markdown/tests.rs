use proptest::prelude::*;

use super::*;

const CONTEXT: &str = include_str!("samples/context.md");
const DECISIONS: &str = include_str!("samples/decisions.md");
const LEARNINGS: &str = include_str!("samples/learnings.md");
const SESSION: &str = include_str!("samples/session.md");

#[test]
fn the_samples_come_back_byte_for_byte() {
    for sample in [CONTEXT, DECISIONS, LEARNINGS, SESSION] {
        assert_eq!(Document::parse(sample).as_str(), sample);
        let windows = sample.replace('\n', "\r\n");
        assert_eq!(Document::parse(windows.as_str()).as_str(), windows);
    }
}

#[test]
fn entries_are_dated_headings_outside_fences() {
    let doc = Document::parse(DECISIONS);
    let entries = doc.entries();
    let titles: Vec<&str> = entries.iter().map(|entry| entry.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "JWT vs Session-based Authentication",
            "PostgreSQL as Primary Database"
        ]
    );
    assert_eq!(entries[0].day.unwrap().to_string(), "2025-12-31");
    assert!(
        doc.entry_text(&entries[0])
            .ends_with("Yes, with migration effort")
    );

    let tricky = "# L\n\n## 2025-01-01: One\n\n```md\n## 2025-02-02: Not me\n---\n```\n\n\
        <!--\n## 2025-03-03: Nor me\n-->\n\n> ## 2025-04-04: quoted\n\n- a\n  ```\n  ## 2025-05-05: x\n  ```\n\n\
        ~~~\n```\n## 2025-06-06: no\n~~~\n\n---\n\n## 2025-07-07 09:30: Two ##\n### deeper\n\n## Undated\n";
    let doc = Document::parse(tricky);
    let entries = doc.entries();
    let seen: Vec<(String, Option<u16>)> = entries
        .iter()
        .map(|entry| (entry.title.clone(), entry.minute))
        .collect();
    assert_eq!(
        seen,
        [
            ("One".to_owned(), None),
            ("Two".to_owned(), Some(570)),
            ("Undated".to_owned(), None)
        ]
    );
    assert!(doc.slice(&entries[0].body).contains("Not me"));
    assert!(doc.slice(&entries[1].span).contains("deeper"));
}

#[test]
fn a_line_above_dashes_is_no_heading_and_front_matter_is_none_either() {
    let doc = Document::parse(
        "---\nname: x\n---\n## 2025-01-01: A\n\n**Reversible**: Yes\n---\n\n## B\n",
    );
    assert_eq!(doc.front_matter().map(str::trim), Some("name: x"));
    assert!(doc.body().starts_with("## 2025"));
    let titles: Vec<String> = doc.entries().into_iter().map(|entry| entry.title).collect();
    assert_eq!(titles, ["A", "B"]);
    let field = doc.field(&doc.entries()[0].body, "reversible").unwrap();
    assert_eq!(field.text, "Yes");
    // A rule at the top is no front matter.
    let doc = Document::parse("---\n\n# Title\n\n---\n");
    assert_eq!(doc.front_matter(), None);
    assert_eq!(doc.sections().len(), 1);
}

#[test]
fn only_real_days_are_dates() {
    for wrong in [
        "2025-13-01",
        "2025-02-30",
        "2025-1-1",
        "25-01-01",
        "2025-01-01x",
        "２０２５-01-01",
    ] {
        assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        let doc = Document::parse(format!("## {wrong}: A\n"));
        assert_eq!(doc.entries()[0].day, None, "{wrong}");
    }
    assert_eq!(
        "2024-02-29".parse::<Day>().unwrap().to_string(),
        "2024-02-29"
    );
    assert_eq!(
        Day::of("2024-02-29".parse::<Day>().unwrap().start()).to_string(),
        "2024-02-29"
    );
}

#[test]
fn the_most_recent_are_chosen_by_date() {
    let titles = |text: &str, most: usize| -> Vec<String> {
        let recent = Document::parse(text).recent(most);
        recent.into_iter().map(|entry| entry.title).collect()
    };
    let newest_first = "## 2025-03-02: d\n## 2025-03-02: c\n## 2025-03-01: b\n## 2025-01-01: a\n";
    assert_eq!(titles(newest_first, 2), ["d", "c"]);
    let appended = format!("{newest_first}## 2025-04-01: e\n## 2025-04-01: f\n## Some day: u\n");
    assert_eq!(titles(&appended, 3), ["f", "e", "c"]);
    assert_eq!(titles(&appended, 10).last().unwrap(), "Some day: u");
}

#[test]
fn fields_have_one_label_or_two() {
    let doc = Document::parse(DECISIONS);
    let entry = &doc.entries()[0];
    assert_eq!(doc.fields(&entry.body).len(), 6);
    let reason = doc.field(&entry.body, "Reason").unwrap();
    assert_eq!(reason.text.lines().count(), 3);
    assert_eq!(doc.field(&entry.body, "lý do"), Some(reason));
    let doc = Document::parse(LEARNINGS);
    let entry = &doc.entries()[0];
    let code = doc.field(&entry.body, "Code").unwrap();
    assert!(
        code.text.starts_with("```go") && code.text.ends_with("```"),
        "{}",
        code.text
    );

    let doc = Document::parse(
        "**A:** one\n**B**\nno field\n- **C**: item\n```\n**D**: code\n```\n**E** : two\n",
    );
    let whole = 0..doc.as_str().len();
    let labels: Vec<String> = doc
        .fields(&whole)
        .into_iter()
        .map(|field| field.label)
        .collect();
    assert_eq!(labels, ["A", "E"]);
}

#[test]
fn edits_touch_their_own_lines_only() {
    let mut doc = Document::parse(CONTEXT);
    let focus = doc.section("Active Focus").unwrap().clone();
    let item = doc.items(&focus.body).nth(1).unwrap().clone();
    assert_eq!(doc.item_text(&item), "Fixing race condition in worker pool");
    doc.tick(&item, true);
    let blockers = doc.section("điểm nghẽn").unwrap().clone();
    doc.add_item(&blockers, "- [ ] No budget");
    let state = doc.section("Project State").unwrap().clone();
    let table = doc.tables(&state.body).remove(0);
    doc.set_row(&table, "build", &[Some("❌ Failing"), None]);
    let table = doc.tables(&state.body).remove(0);
    doc.set_row(&table, "Docs", &[Some("a|b")]);
    let next = doc.section("Next Session Should").unwrap().clone();
    doc.set_body(&next, "1. Rest");
    assert!(doc.set_line("Last updated", "2026-01-02"));
    assert_eq!(
        changed_lines(CONTEXT, doc.as_str()),
        [
            "-> Last updated: 2025-12-31",
            "+> Last updated: 2026-01-02",
            "-- [ ] Fixing race condition in worker pool",
            "+- [x] Fixing race condition in worker pool",
            "-| Build | ✅ Passing | All tests green |",
            "+| Build | ❌ Failing | All tests green |",
            "+| Docs | a\\|b |  |",
            "+- [ ] No budget",
            "-1. Continue JWT implementation in auth handler",
            "-2. Review worker pool race condition fix",
            "-3. Update API documentation",
            "+1. Rest",
        ]
    );
}

#[test]
fn edits_keep_crlf_and_a_missing_last_line_break() {
    let mut doc = Document::parse("# A\r\n\r\n## B\r\n\r\n- one");
    let section = doc.section("B").unwrap().clone();
    doc.add_item(&section, "- two");
    assert_eq!(doc.as_str(), "# A\r\n\r\n## B\r\n\r\n- one\r\n- two");
    doc.append("## C\n");
    assert_eq!(
        doc.as_str(),
        "# A\r\n\r\n## B\r\n\r\n- one\r\n- two\r\n\r\n## C\r\n"
    );
    let section = doc.section("C").unwrap().clone();
    doc.set_body(&section, "text");
    assert!(doc.as_str().ends_with("## C\r\n\r\ntext\r\n"), "{doc}");
    let first = doc.items(&(0..99)).next().unwrap().clone();
    doc.remove_item(&first);
    assert!(doc.as_str().contains("## B\r\n\r\n- two"), "{doc}");
}

#[test]
fn ranges_are_cut_out() {
    let mut doc = Document::parse(DECISIONS);
    let spans: Vec<_> = doc.entries().into_iter().map(|entry| entry.span).collect();
    doc.cut(&spans);
    assert_eq!(doc.as_str(), &DECISIONS[..spans[0].start]);
    doc.cut(&[]);
    assert!(doc.entries().is_empty());
}

#[test]
fn a_table_row_may_hold_bars_and_lack_frames() {
    let doc = Document::parse("a | b\n--|--\nx \\| y | z\n| | w |\n");
    let table = doc.tables(&(0..99)).remove(0);
    let cells = |row: &Row| -> Vec<String> {
        row.cells
            .iter()
            .map(|cell| doc.slice(cell).to_owned())
            .collect()
    };
    assert_eq!(cells(&table.header), ["a", "b"]);
    assert_eq!(cells(&table.rows[0]), ["x \\| y", "z"]);
    assert!(doc.tables(&(30..40)).is_empty());
}

/// The lines that differ, in the order of the text.
fn changed_lines(old: &str, new: &str) -> Vec<String> {
    let diff = similar::capture_diff_slices(
        similar::Algorithm::Myers,
        &old.lines().collect::<Vec<_>>(),
        &new.lines().collect::<Vec<_>>(),
    );
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let changed = diff.iter().filter(|op| op.tag() != similar::DiffTag::Equal);
    changed
        .flat_map(|op| {
            let gone = old[op.old_range()].iter().map(|line| format!("-{line}"));
            let come = new[op.new_range()].iter().map(|line| format!("+{line}"));
            gone.chain(come).collect::<Vec<_>>()
        })
        .collect()
}

/// Markdown as people write it, good and bad.
fn pieces() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "# Title\n",
        "## 2025-12-31: Entry | Mục\n",
        "## Active Focus | Đang tập trung\n",
        "### Deep ###\n",
        "   ## Indented\n",
        "```go\n## 2025-01-01: code\n---\n```\n",
        "~~~\nopen fence\n",
        "    ## code\n",
        "- [ ] task\n",
        "- [x] done\n  - nested\n",
        "1. one\n2. two\n",
        "* star\n\n  para\n",
        "| a | b |\n|---|---|\n| 1 | `x|y` |\n",
        "| lonely |\n",
        "**Context | Bối cảnh**: value\n",
        "**Bold** text\n",
        "---\n",
        "***\n",
        "Setext\n---\n",
        "<div>\n## html\n</div>\n",
        "<!-- c\n## no\n-->\n",
        "> quote\n> ## q\n",
        "text\r\n",
        "## CRLF | Hai\r\n\r\n",
        "\n",
        "  \n",
        "\t- tab\n",
        "日本語 và tiếng Việt 🦀\n",
        "[ref]: http://x\n",
        "\\## esc\n",
        "no end",
        "##\n",
        "```\n",
        "~~~~ x\n",
        "  ```\n",
        "    ---\n",
        "- a\n\n      ---\n",
        "```a`b\n",
        "####### seven\n",
        "<b>x</b>\n",
        "#\ttab\n",
        "#no heading\n",
        "- ```\n  ## in item\n  ```\n",
        "\u{feff}",
        "\0\n",
        "last line without break",
    ])
}

fn markdown() -> impl Strategy<Value = String> {
    prop::collection::vec(pieces(), 0..25).prop_map(|pieces| pieces.concat())
}

fn check_structure(doc: &Document) {
    let text = doc.as_str();
    let whole = 0..text.len();
    for section in doc.sections() {
        assert!(section.span.start <= section.body.start && section.body.start <= section.own.end);
        assert!(section.own.end <= section.span.end && section.span.end <= text.len());
        assert!(
            text.get(section.span.clone()).is_some() && text.get(section.own.clone()).is_some()
        );
        assert!(text.get(doc.content(section)).is_some());
    }
    for field in doc.fields(&whole) {
        assert_eq!(doc.slice(&field.value), field.text);
    }
    for table in doc.tables(&whole) {
        for cell in table
            .rows
            .iter()
            .chain([&table.header])
            .flat_map(|row| &row.cells)
        {
            assert!(text.get(cell.clone()).is_some());
        }
    }
    for entry in doc.recent(10) {
        assert!(text.contains(doc.entry_text(&entry)));
    }
}

fn lines_of(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| line.trim_end_matches('\r'))
        .collect()
}

/// Which section is changed, the lines that come, and whether the old ones go.
type Change = (usize, Vec<String>, bool);

/// A base, and two changes of it that touch different sections.
fn apart() -> impl Strategy<Value = (String, String, String)> {
    let line = prop::sample::select(vec![
        "alpha",
        "- [ ] beta",
        "| c | d |",
        "",
        "**F**: x",
        "end",
    ]);
    let section = prop::collection::vec(line, 0..5);
    let added = prop::collection::vec("[a-z]{6}", 1..4);
    let side = (0_usize..6, added, any::<bool>());
    (prop::collection::vec(section, 6..8), side.clone(), side).prop_filter_map(
        "the same section",
        |(sections, ours, theirs)| {
            if ours.0 == theirs.0 {
                return None;
            }
            let print = |change: Option<(&Change, &str)>| {
                let mut text = String::from("# T\n");
                for (n, lines) in sections.iter().enumerate() {
                    text.push_str(&format!("## S{n}\n"));
                    let mut lines: Vec<String> =
                        lines.iter().map(|line| (*line).to_owned()).collect();
                    if let Some(((_, added, replace), who)) =
                        change.filter(|((at, ..), _)| *at == n)
                    {
                        if *replace {
                            lines.clear();
                        }
                        lines.extend(added.iter().map(|line| format!("{who} {line}")));
                    }
                    lines
                        .iter()
                        .for_each(|line| text.push_str(&format!("{line}\n")));
                }
                text
            };
            Some((
                print(None),
                print(Some((&ours, "ours"))),
                print(Some((&theirs, "theirs"))),
            ))
        },
    )
}

proptest! {
    #[test]
    fn any_text_is_read_and_comes_back(text in markdown()) {
        let doc = Document::parse(text.as_str());
        prop_assert_eq!(doc.as_str(), text.as_str());
        check_structure(&doc);
    }

    #[test]
    fn an_outline_has_the_headings_of_the_parser(text in markdown()) {
        let (quick, full) = (Document::outline(text.as_str()), Document::parse(text.as_str()));
        prop_assert_eq!(quick.sections(), full.sections());
        prop_assert_eq!(quick.body(), full.body());
        for entry in full.entries() {
            prop_assert_eq!(quick.entry_text(&entry), full.entry_text(&entry));
        }
    }

    #[test]
    fn an_edit_changes_nothing_else(text in markdown(), pick in any::<prop::sample::Index>()) {
        let doc = Document::parse(text.as_str());
        let items: Vec<Item> = doc.items(&(0..text.len())).filter(|item| item.mark.is_some()).cloned().collect();
        if !items.is_empty() {
            let item = pick.get(&items);
            let mut ticked = doc.clone();
            ticked.tick(item, item.checked == Some(false));
            let at = item.mark.clone().unwrap().start + 1;
            prop_assert_eq!(&ticked.as_str()[..at], &text[..at]);
            prop_assert_eq!(&ticked.as_str()[at + 1..], &text[at + 1..]);
        }
        if !doc.sections().is_empty() {
            let section = pick.get(doc.sections()).clone();
            let content = doc.content(&section);
            let mut set = doc.clone();
            set.set_body(&section, "new words");
            prop_assert!(set.as_str().starts_with(&text[..content.start]));
            prop_assert!(set.as_str().ends_with(&text[content.end..]));
            let mut added = doc.clone();
            added.add_item(&section, "- new item");
            prop_assert!(added.as_str().starts_with(&text[..content.end]));
            prop_assert!(added.as_str().ends_with(&text[content.end..]));
        }
        let mut longer = doc.clone();
        longer.append("## 2026-01-01: New\n");
        prop_assert!(longer.as_str().starts_with(text.as_str()));
    }

    #[test]
    fn edits_to_different_sections_always_merge((base, ours, theirs) in apart()) {
        let merged = merge(&base, &ours, &theirs);
        prop_assert_eq!(&merged.clashes, &[]);
        let has = lines_of(&merged.text);
        for side in [&ours, &theirs] {
            for line in lines_of(side).into_iter().filter(|line| line.starts_with("ours") || line.starts_with("theirs")) {
                prop_assert!(has.contains(&line), "{} is lost in\n{}", line, merged.text);
            }
        }
        // Nobody's change is undone: a section that one side emptied is empty.
        prop_assert_eq!(merge(&base, &theirs, &ours).text, merged.text);
    }

    #[test]
    fn a_merge_never_lacks_an_added_line(base in markdown(), ours in markdown(), theirs in markdown()) {
        let merged = merge(&base, &ours, &theirs);
        let (was, has) = (lines_of(&base), lines_of(&merged.text));
        for side in [&ours, &theirs] {
            for line in lines_of(side).into_iter().filter(|line| !was.contains(line)) {
                prop_assert!(has.contains(&line), "{:?} is lost in\n{}", line, merged.text);
            }
        }
    }

    #[test]
    fn a_merge_of_one_change_is_that_change(base in markdown(), ours in markdown()) {
        prop_assert_eq!(merge(&base, &ours, &base).text, ours.clone());
        prop_assert_eq!(merge(&base, &base, &ours).text, ours.clone());
        prop_assert_eq!(merge(&base, &ours, &ours).text, ours);
    }
}

#[test]
fn two_changes_of_the_same_line_both_stay() {
    let merged = merge(
        "## A\none\ntwo\n",
        "## A\nours\ntwo\n",
        "## A\ntheirs\ntwo\n",
    );
    assert_eq!(
        merged.text,
        "## A\n<<<<<<< in the file\ntheirs\n=======\nours\n>>>>>>> written at the same time\ntwo\n"
    );
    assert_eq!(merged.clashes[0].heading, "## A");
}

#[test]
fn texts_added_at_one_place_follow_each_other() {
    let base = "# D\n\n## 2025-01-01: A\n\na\n\n---\n";
    let ours = format!("{base}\n## 2025-01-02: O\n\no\n\n---\n");
    let theirs = format!("{base}\n## 2025-01-02: T\n\nt\n\n---\n");
    let merged = merge(base, &ours, &theirs);
    assert!(merged.clashes.is_empty());
    assert_eq!(
        merged.text,
        format!("{theirs}## 2025-01-02: O\n\no\n\n---\n")
    );
}

#[test]
fn a_section_that_one_side_took_away_and_the_other_changed_stays() {
    let merged = merge(
        "## A\na\n## B\nb\n",
        "## A\na\n",
        "## A\na\n## B\nchanged\n",
    );
    assert_eq!(merged.text, "## A\na\n## B\nchanged\n");
    assert_eq!(merged.clashes.len(), 1);
    let merged = merge("## A\na\n## B\nb\n", "## A\na\n", "## A\nx\n## B\nb\n");
    assert_eq!(
        (merged.text.as_str(), merged.clashes.len()),
        ("## A\nx\n", 0)
    );
}

#[test]
fn repeated_lines_do_not_confuse_a_merge() {
    // The library's places of these changes are wrong; only their lengths are right.
    let code = "```go\nx\n---\n```\n";
    let ours = format!(
        "> q\n> r\n{code}> q\n> r\n{code}{code}{code}{code}```\n| l |\n# T\n# T\n<div>\n## h\n</div>\n"
    );
    let merged = merge("text\r\n> q\n> r\n# T\n", &ours, "> q\n> r\n");
    assert_eq!(merged.text, ours);
}

#[test]
fn the_language_of_a_file_is_that_of_most_of_its_labels() {
    let known = [
        Label::new("Reason", "Lý do"),
        Label::new("Notes", "Ghi chú"),
        Label::new("Code", "Code"),
    ];
    for (text, language) in [
        ("## Notes | Ghi chú\n", Some(Language::Bilingual)),
        ("## Ghi chú\n", Some(Language::Vietnamese)),
        (
            "**Reason**: x\n## Notes\n**Lý do**: y\n",
            Some(Language::English),
        ),
        ("**Reason:** x\n", Some(Language::English)),
        ("**Code**:\n", None),
        ("# Anything | else\n\nNotes\n", None),
    ] {
        assert_eq!(language_of(text, &known), language, "{text}");
    }
    let doc = Document::parse("## Ghi chú\n\n**Lý do | Reason**: so\n");
    let notes = known[1].section(&doc).unwrap();
    assert_eq!(known[0].field(&doc, &notes.body).unwrap().text, "so");
    assert_eq!(known[0].text(Language::Bilingual), "Reason | Lý do");
}

#[test]
fn conflict_marks_of_git_and_of_ours_are_found() {
    let marked = "a\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> feat\n";
    assert_eq!(conflict(marked), Some(2));
    assert_eq!(conflict(&marked.replace('\n', "\r\n")), Some(3));
    let merged = merge("## A\none\n", "## A\nours\n", "## A\ntheirs\n");
    assert!(conflict(&merged.text).is_some());
    for text in [
        "",
        "<<<<<<< HEAD\n",
        "a\n=======\nb\n>>>>>>> x\n",
        "<<<<<<<<\n=======\n>>>>>>>\n",
    ] {
        assert_eq!(conflict(text), None, "{text}");
    }
}

#[test]
fn an_entry_above_is_closed_before_the_next() {
    let mut open = Document::parse("# Log\n\n## 2025-12-30: One\n\n**Decision**: a\n");
    open.append_entry("## 2025-12-31: Two\n\n---\n");
    let text =
        "# Log\n\n## 2025-12-30: One\n\n**Decision**: a\n\n---\n\n## 2025-12-31: Two\n\n---\n";
    assert_eq!(open.as_str(), text);
    open.append_entry("## 2026-01-01: Three\n");
    assert_eq!(open.as_str(), format!("{text}\n## 2026-01-01: Three\n"));
    let mut empty = Document::parse("# Log\n");
    empty.append_entry("## One\n");
    assert_eq!(empty.as_str(), "# Log\n\n## One\n");
}

#[test]
fn a_rule_within_an_entry_is_a_part_of_it() {
    let text = "# D\n\n## 2025-01-01: A\n\n**Decision**:\none\n\n---\n\ntwo\n\n**Status**: open\n\n---\n\n\
        a remark\n\n---\n\n## 2025-01-02: B\n";
    let document = Document::parse(text);
    let entry = &document.entries()[0];
    let decision = document.field(&entry.body, "Decision").unwrap();
    assert_eq!(decision.text, "one\n\n---\n\ntwo");
    let status = document.field(&entry.body, "Status").unwrap();
    assert_eq!(status.text, "open");
    assert!(document.entry_text(entry).ends_with("a remark"));
}

#[test]
fn a_text_is_written_without_lines_that_split_it() {
    let plain = |text: &str| Document::without_rules(text);
    assert_eq!(
        plain("a\n\n---\n\nb --- c\n----"),
        "a\n\n***\n\nb --- c\n----"
    );
    assert_eq!(plain("---\nname: x\n---\n"), "***\nname: x\n***\n");
    // The code is the same when it is read again.
    let code = "see\n\n```yaml\na: 1\n---\nb: 2\n```\n\nend";
    let written = plain(code);
    assert_eq!(written, "see\n\n ```yaml\n a: 1\n ---\n b: 2\n ```\n\nend");
    assert_eq!(plain(&written), written);
    assert_eq!(plain("```\nx\n```"), "```\nx\n```");
}
