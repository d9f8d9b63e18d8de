use mnemon_core::markdown::Document;
use mnemon_core::{ErrorKind, limits};
use mnemon_engine::agentfiles::{
    Code, ContextChange, Decision, Learning, SectionText, SessionEnd, SessionLog,
};

use proptest::prelude::*;

use super::*;

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let desk = Desk::with_samples();
    let before = desk.all();
    let long = "x".repeat(limits::AGENT_NAME_CHARS + 1);
    let names = [
        "",
        ".",
        "..",
        "a//b",
        "a/../b",
        "a/b/c/d",
        "../coder",
        "/etc",
        "a\\b",
        "a b",
        "a\0",
        "a\n",
        "con",
        "COM1",
        "memory",
        "Team-Memory",
        "-x",
        ".hidden",
        "é",
        &long,
    ];
    for name in names {
        let errors = [
            wait(desk.agents.activate(name, None)).unwrap_err(),
            wait(desk.agents.decide(&ctx(), name, &decision("x"))).unwrap_err(),
            wait(desk.agents.learn(&ctx(), name, &learning("x"))).unwrap_err(),
            wait(desk.agents.begin(&ctx(), name, "x")).unwrap_err(),
            wait(desk.agents.lint(&ctx(), name)).unwrap_err(),
            wait(desk.agents.archive(&ctx(), name)).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{name:?}: {error}");
            assert!(!error.to_string().contains(char::is_control), "{error}");
        }
    }
    for name in ["..", "a/..", "../a", "a/b/c", "teams"] {
        assert_eq!(
            wait(desk.agents.team(name)).unwrap_err().kind(),
            ErrorKind::Invalid,
            "{name}"
        );
    }
    assert_eq!(desk.all(), before);
    let longest = "x".repeat(limits::AGENT_NAME_CHARS);
    wait(desk.agents.begin(&ctx(), &longest, "x")).unwrap();
    for root in ["", "..", "/etc", "a/../b"] {
        assert!(AgentFiles::new(desk.files.clone(), root).is_err(), "{root}");
    }
}

#[test]
fn a_memory_that_is_a_file_is_named() {
    let desk = Desk::empty();
    desk.put(MEMORY, "oh");
    for error in [
        wait(desk.agents.activate("coder", None)).unwrap_err(),
        wait(desk.agents.decide(&ctx(), "coder", &decision("x"))).unwrap_err(),
    ] {
        assert!(
            error
                .to_string()
                .contains("is a file and should be a folder"),
            "{error}"
        );
    }
    assert_eq!(desk.paths(), [MEMORY]);
}

#[test]
fn files_that_are_too_large_or_no_text_are_left_alone() {
    let desk = Desk::with_samples();
    let path = format!("{MEMORY}/decisions.md");
    desk.put(&path, &"x".repeat(limits::AGENT_FILE_BYTES + 1));
    let error = wait(desk.agents.activate("coder", None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(wait(desk.agents.decide(&ctx(), "coder", &decision("x"))).is_err());
    assert_eq!(desk.get(&path).len(), limits::AGENT_FILE_BYTES + 1);
    // One that is full takes no more.
    let full = format!("# D\n{}\n", "x".repeat(limits::AGENT_FILE_BYTES - 5));
    desk.put(&path, &full);
    assert_eq!(
        wait(desk.agents.decide(&ctx(), "coder", &decision("x")))
            .unwrap_err()
            .kind(),
        ErrorKind::TooLarge
    );
    assert_eq!(desk.get(&path), full);
    let stamp = wait(desk.files.read(&path)).unwrap().unwrap().stamp;
    wait(desk.files.write(&path, b"ok \xc3\x28", Some(&stamp))).unwrap();
    let error = wait(desk.agents.decide(&ctx(), "coder", &decision("x"))).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().contains("byte 3")),
        (ErrorKind::Corrupt, true),
        "{error}"
    );
}

#[test]
fn an_entry_stays_one_entry() {
    let desk = Desk::with_samples();
    let before = desk.all();
    let wrong = [
        Decision {
            context: "a\n## 2020-01-01: forged\n".to_owned(),
            ..decision("x")
        },
        Decision {
            context: "```\nopen".to_owned(),
            ..decision("x")
        },
        Decision {
            context: "<!-- open".to_owned(),
            ..decision("x")
        },
        Decision {
            title: "two\nlines".to_owned(),
            ..decision("x")
        },
        Decision {
            title: "y".repeat(limits::AGENT_LINE_CHARS + 1),
            ..decision("x")
        },
        Decision {
            decision: " ".to_owned(),
            ..decision("x")
        },
        Decision {
            reasons: vec!["a\n- b".to_owned()],
            ..decision("x")
        },
        Decision {
            date: Some("yesterday".to_owned()),
            ..decision("x")
        },
    ];
    for wrong in wrong {
        let error = wait(desk.agents.decide(&ctx(), "coder", &wrong)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong:?}: {error}");
    }
    let wrong = Learning {
        code: Some(Code {
            language: "a`b".to_owned(),
            text: String::new(),
        }),
        ..learning("x")
    };
    assert!(wait(desk.agents.learn(&ctx(), "coder", &wrong)).is_err());
    for text in ["```\nopen", "# heading"] {
        let change = ContextChange {
            sections: vec![SectionText {
                section: "Notes".to_owned(),
                text: text.to_owned(),
            }],
            ..ContextChange::default()
        };
        assert!(
            wait(desk.agents.update_context(&ctx(), "coder", &change)).is_err(),
            "{text}"
        );
    }
    let change = ContextChange {
        tasks: vec!["a\n## b".to_owned()],
        ..ContextChange::default()
    };
    assert!(wait(desk.agents.update_context(&ctx(), "coder", &change)).is_err());
    assert_eq!(desk.all(), before);
}

#[test]
fn a_file_that_leaves_a_fence_open_takes_nothing() {
    let desk = Desk::with_samples();
    let path = format!("{MEMORY}/decisions.md");
    desk.put(&path, "# D\n\n```\nopen\n");
    let error = wait(desk.agents.decide(&ctx(), "coder", &decision("x")))
        .unwrap_err()
        .to_string();
    assert!(error.contains("close it"), "{error}");
    assert_eq!(desk.get(&path), "# D\n\n```\nopen\n");
}

#[test]
fn a_fence_in_an_entry_does_not_close_one_in_the_file() {
    let desk = Desk::empty();
    let path = format!("{MEMORY}/decisions.md");
    for (log, said) in [
        ("~~~\n", "<div>\n~~~\n# y\n"),
        (
            "# D\n\n```\n",
            "a\n```\n## 2020-01-01: forged\n```\nb\n```\n",
        ),
        ("<!-- open\n", "a -->\n\n# y\n"),
        ("<script>\n", "</script>\n# y\n"),
    ] {
        desk.put(&path, log);
        let decision = Decision {
            decision: said.to_owned(),
            ..decision("x")
        };
        let outcome = wait(desk.agents.decide(&ctx(), "coder", &decision));
        assert!(outcome.is_err(), "{log:?} took {said:?}");
        assert_eq!(desk.get(&path), log);
    }
}

#[test]
fn a_line_that_would_be_code_is_not_added() {
    let desk = Desk::empty();
    let path = format!("{MEMORY}/context.md");
    for text in ["## Notes\n\n```\nopen\n", "## Notes\n\n<!-- open\n"] {
        desk.put(&path, text);
        let change = ContextChange {
            notes: vec!["new".to_owned()],
            ..ContextChange::default()
        };
        let error = wait(desk.agents.update_context(&ctx(), "coder", &change)).unwrap_err();
        assert!(error.to_string().contains("close it"), "{error}");
        assert_eq!(desk.get(&path), text);
    }
}

/// Found with fresh seeds: directly below the date, the HTML was read as part of its quote, and the
/// fence in it swallowed the rest of the file.
#[test]
fn the_date_of_a_context_does_not_change_how_the_rest_is_read() {
    let desk = Desk::empty();
    let path = format!("{MEMORY}/context.md");
    desk.put(&path, "# y\n<a>\n```\n\n## Notes\n\n- old\n");
    let change = ContextChange {
        notes: vec!["new".to_owned()],
        ..ContextChange::default()
    };
    wait(desk.agents.update_context(&ctx(), "coder", &change)).unwrap();
    let text = desk.get(&path);
    let document = Document::parse(text.as_str());
    let notes = document.section("Notes").expect(&text);
    assert_eq!(document.items(&notes.own).count(), 2, "{text}");
}

/// Text as people and agents write it, good and bad.
fn words() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "word ",
        "\n",
        "\n\n",
        "## 2025-01-01: x\n",
        "# y\n",
        "```\n",
        "~~~\n",
        "````\n",
        "---\n",
        "- item\n",
        "<!--",
        "-->",
        "<div>\n",
        "</div>\n",
        "<script>\n",
        "<pre>",
        "**Status**: no\n",
        "| a | b |\n",
        "|--|--|\n",
        "    code\n",
        "> quote\n",
        "1. one\n",
        "\r\n",
        "\t",
        "=====\n",
        "[a]: b\n",
        "\\",
        "`",
        "é",
        "<?",
        "<![CDATA[",
        "\u{0}",
        "---\na: b\n---\n",
        "[a]:\n",
        "+++\n",
        "* ",
        "  ",
        "<a>\n",
        "<!X",
        ">",
        "]]>",
        "?>",
        "</script>\n",
        "</pre>\n",
        "\u{feff}",
        "\u{b}",
        "\r",
        "&#35; ",
        "``` x ~~~\n",
        "   ~~~~\n",
        "   # z\n",
    ]);
    prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_is_said_an_entry_is_one_entry_or_refused(context in words(), said in words(), log in words(), code in words()) {
        let desk = Desk::empty();
        let path = format!("{MEMORY}/decisions.md");
        desk.put(&path, &log);
        // Each entry's title and text.
        let entries = |desk: &Desk, path: &str| -> Vec<(String, String)> {
            let document = Document::parse(desk.get(path));
            let entries = document.entries().into_iter();
            entries.map(|entry| (entry.title.clone(), document.entry_text(&entry).replace('\r', ""))).collect()
        };
        for _ in 0..2 {
            let text = desk.get(&path);
            let before = entries(&desk, &path);
            let decision = Decision { context: context.clone(), decision: said.clone(), ..decision("x") };
            match wait(desk.agents.decide(&ctx(), "coder", &decision)) {
                Ok(_) => {
                    prop_assert!(desk.get(&path).starts_with(&text));
                    let after = entries(&desk, &path);
                    let (last, others) = after.split_last().unwrap();
                    prop_assert_eq!(others, before.as_slice());
                    prop_assert_eq!(last.0.as_str(), "x");
                    let words = said.trim_matches(['\n', '\r']).trim_end();
                    let words = Document::without_rules(words).replace('\r', "");
                    // Other readers split the file at `---`.
                    let whole = desk.get(&path);
                    let (_, entry) = whole.split_at(text.len()).1.split_once("## 2026").unwrap();
                    prop_assert!(!entry.trim_end().contains("\n---\n"), "{:?}", entry);
                    prop_assert!(last.1.contains(&words), "{:?} lacks {:?}", last.1, words);
                }
                Err(_) => {
                    prop_assert_eq!(desk.get(&path), text);
                    break;
                }
            }
        }
        // Code may be anything.
        let learnings = format!("{MEMORY}/learnings.md");
        for n in 0..2 {
            let code = Some(Code { language: String::new(), text: code.clone() });
            wait(desk.agents.learn(&ctx(), "coder", &Learning { code, ..learning("x") })).unwrap();
            prop_assert_eq!(entries(&desk, &learnings).len(), n + 1);
        }
    }

    #[test]
    fn whatever_is_said_a_session_is_archived_as_one_or_refused(summary in words(), log in words()) {
        let desk = Desk::empty();
        let path = format!("{MEMORY}/sessions/2026-01-02.md");
        desk.put(&path, &log);
        let titles = |desk: &Desk| -> Vec<String> {
            let document = Document::parse(desk.get(&path));
            document.sections().iter().map(|section| section.title.clone()).collect()
        };
        let before = titles(&desk);
        let archive = SessionLog { summary, follow_up: vec!["more".to_owned()], ..SessionLog::default() };
        let end = SessionEnd { archive: Some(archive), ..SessionEnd::default() };
        if wait(desk.agents.end(&ctx(), "coder", &end)).is_ok() {
            let mut after = titles(&desk);
            let own = after.split_off(before.len());
            prop_assert_eq!(after, before);
            prop_assert_eq!(own.len(), 3, "{:?}", own);
            prop_assert!(own[0].starts_with("Session: 2026-01-02"), "{:?}", own);
        } else {
            prop_assert_eq!(desk.get(&path), log);
        }
    }

    #[test]
    fn a_change_of_any_context_keeps_every_other_line(text in words(), more in words()) {
        let desk = Desk::empty();
        let path = format!("{MEMORY}/context.md");
        let text = format!("{text}\n## Blockers\n\n- [ ] old\n{more}");
        desk.put(&path, &text);
        let change = ContextChange {
            blockers: vec!["new".to_owned()],
            tasks: vec!["task".to_owned()],
            notes: vec!["note".to_owned()],
            ..ContextChange::default()
        };
        match wait(desk.agents.update_context(&ctx(), "coder", &change)) {
            Ok(_) => {
                let after = desk.get(&path);
                // A line break after a last `\r` makes it part of that line break.
                let bare = |line: &str| line.trim_end_matches('\r').to_owned();
                let mut rest = after.lines().map(bare);
                for line in text.lines().map(bare) {
                    prop_assert!(rest.any(|kept| kept == line), "{:?} is lost in {:?}", line, after);
                }
                for new in ["- [ ] new", "- [ ] task", "- note"] {
                    prop_assert!(after.lines().any(|line| bare(line) == new), "{} in {:?}", new, after);
                }
                let read = Document::parse(after.as_str());
                for (section, new) in [("Blockers", "new"), ("Active Focus", "task"), ("Notes", "note")] {
                    let section = read.section(section).unwrap();
                    prop_assert!(read.items(&section.own).any(|item| read.item_text(item) == new), "{} in {:?}", new, after);
                }
            }
            Err(_) => prop_assert_eq!(desk.get(&path), text),
        }
    }
}
