use mnemon_core::{ErrorKind, limits};
use mnemon_engine::agentfiles::{Code, ContextChange, Decision, Learning, SectionText};

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
        "a/b",
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
