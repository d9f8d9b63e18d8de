use mnemon_core::markdown::Document;
use mnemon_engine::agentfiles::{ContextChange, Language};

use super::*;

#[test]
fn the_samples_are_told_in_the_documents_words() {
    let desk = Desk::with_samples();
    let told = wait(desk.agents.activate("coder", None)).unwrap();
    let log = Document::parse(DECISIONS);
    let entries: Vec<&str> = log
        .entries()
        .iter()
        .map(|entry| {
            log.slice(&entry.span)
                .trim_end()
                .trim_end_matches('-')
                .trim_end()
        })
        .collect();
    let expected = format!(
        "## Agent Memory | Memory của Agent\n\n### Current Context | Context hiện tại\n\n{}\n\n\
         ### Recent Decisions | Quyết định gần đây\n\n{}\n\n---\n\n{}\n\n---\n\nYou write code.\n",
        CONTEXT.trim_end(),
        entries[0],
        entries[1]
    );
    assert_eq!(told.prompt, expected);
    let parts: Vec<(&str, Option<usize>)> = told
        .parts
        .iter()
        .map(|part| (part.name.as_str(), part.entries))
        .collect();
    assert_eq!(
        parts,
        [("context", None), ("decisions", Some(2)), ("prompt", None)]
    );
    assert!(told.parts.iter().all(|part| part.tokens > 0));
    // Learnings are asked for, sessions never told.
    assert!(!told.prompt.contains("Graceful HTTP") && !told.prompt.contains("Archived session"));
    assert!(told.notices.is_empty());
}

#[test]
fn missing_files_are_fine() {
    let desk = Desk::with_samples();
    desk.remove(&format!("{MEMORY}/context.md"));
    let told = wait(desk.agents.activate("coder", None)).unwrap().prompt;
    assert!(
        told.starts_with("## Agent Memory | Memory của Agent\n\n### Recent Decisions"),
        "{told}"
    );
    desk.remove(&format!("{MEMORY}/decisions.md"));
    let told = wait(desk.agents.activate("coder", None)).unwrap().prompt;
    assert_eq!(told, "\nYou write code.\n");
    let error = wait(desk.agents.activate("nobody", None))
        .unwrap_err()
        .to_string();
    assert_eq!(error, "there is no agent `nobody`; known: coder");
    for error in [
        wait(desk.agents.lint(&ctx(), "nobody")).unwrap_err(),
        wait(desk.agents.archive(&ctx(), "nobody")).unwrap_err(),
    ] {
        assert!(error.to_string().contains("there is no agent"), "{error}");
    }
}

#[test]
fn the_ten_most_recent_are_chosen_by_date_not_by_place() {
    let desk = Desk::with_samples();
    let mut text = String::from("# Log\n\n---\n");
    for day in (1..=20).rev() {
        text.push_str(&format!("\n## 2025-11-{day:02}: number {day}\n\nbody\n\n```\n## 2026-09-09: in a fence\n---\n```\n\n---\n"));
    }
    desk.put(&format!("{MEMORY}/decisions.md"), &text);
    for n in 0..2 {
        wait(
            desk.agents
                .decide(&ctx(), "coder", &decision(&format!("today {n}"))),
        )
        .unwrap();
    }
    let told = wait(desk.agents.activate("coder", None)).unwrap();
    assert_eq!(told.parts[1].entries, Some(10));
    for wanted in ["today 0", "today 1", "number 20", "number 13"] {
        assert!(told.prompt.contains(wanted), "{wanted}");
    }
    assert!(!told.prompt.contains("number 12\n"));
}

#[test]
fn knowledge_comes_between_memory_and_prompt() {
    let desk = Desk::with_samples();
    let folder = ".microai/agents/coder/knowledge";
    desk.put(&format!("{folder}/01-core.md"), "core words");
    assert!(
        wait(desk.agents.activate("coder", None))
            .unwrap()
            .prompt
            .contains("\n\n---\n\n## 01-core.md\n\ncore words\n\n---\n\nYou write code.")
    );
    let index = r#"{"core": ["01-core.md"], "entries": [{"file": "race.md", "keywords": ["Race"], "priority": 1}, {"file": "huge.md", "keywords": ["race"], "priority": 2}, {"file": "gone.md", "keywords": ["race"]}]}"#;
    desk.put(&format!("{folder}/knowledge-index.json"), index);
    desk.put(&format!("{folder}/race.md"), "about races");
    desk.put(&format!("{folder}/huge.md"), &"word ".repeat(10_000));
    let told = wait(
        desk.agents
            .activate("coder", Some("Fix race condition in goroutine")),
    )
    .unwrap();
    assert!(
        told.prompt.contains("## race.md\n\nabout races") && !told.prompt.contains("## huge.md")
    );
    assert_eq!(told.notices.len(), 2, "{:?}", told.notices);
    let told = wait(desk.agents.activate("coder", Some("write docs"))).unwrap();
    assert!(!told.prompt.contains("about races"));
    desk.put(&format!("{folder}/knowledge-index.json"), "{");
    assert!(
        wait(desk.agents.activate("coder", None))
            .unwrap_err()
            .to_string()
            .contains("not an index")
    );
}

#[test]
fn an_agent_begins_with_files_that_can_be_used() {
    let desk = Desk::empty();
    let bilingual = desk.agents.clone().language(Language::Bilingual);
    let made = wait(bilingual.begin(&ctx(), "writer", "Writes: \"docs\"")).unwrap();
    assert_eq!(made.len(), 4);
    assert!(
        wait(desk.agents.begin(&ctx(), "writer", "x"))
            .unwrap_err()
            .to_string()
            .contains("already")
    );
    let listed = wait(desk.agents.list()).unwrap();
    assert_eq!(listed[0].description.as_deref(), Some("Writes: \"docs\""));
    assert_eq!((listed[0].name.as_str(), listed[0].files), ("writer", 3));
    let change = ContextChange {
        tasks: vec!["one".to_owned()],
        blockers: vec!["no money".to_owned()],
        notes: vec!["note".to_owned()],
        next: Some(vec!["go on".to_owned(), "rest".to_owned()]),
        state: vec![mnemon_engine::agentfiles::StateRow {
            aspect: "Build".to_owned(),
            status: "ok".to_owned(),
            notes: None,
        }],
        files: vec![mnemon_engine::agentfiles::KeyFile {
            file: "a.rs".to_owned(),
            state: "new".to_owned(),
            notes: Some("x|y".to_owned()),
        }],
        ..ContextChange::default()
    };
    wait(desk.agents.update_context(&ctx(), "writer", &change)).unwrap();
    let text = desk.get(".microai/agents/writer/memory/context.md");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.is_empty() && *line != "---")
        .collect();
    assert_eq!(
        lines,
        [
            "# Current Context",
            "> Last updated: 2026-01-02",
            "## Active Focus | Đang tập trung",
            "- [ ] one",
            "## Project State | Trạng thái dự án",
            "| Aspect | Status | Notes |",
            "|--------|--------|-------|",
            "| Build | ok |  |",
            "## Key Files | File quan trọng",
            "| File | State | Notes |",
            "|------|-------|-------|",
            "| `a.rs` | new | x\\|y |",
            "## Blockers | Điểm nghẽn",
            "- [ ] no money",
            "## Next Session Should | Phiên tiếp theo nên",
            "1. go on",
            "2. rest",
            "## Notes | Ghi chú",
            "- note",
        ]
    );
}

#[test]
fn a_partial_update_touches_one_file_and_its_lines() {
    let desk = Desk::with_samples();
    let before = desk.all();
    let change = ContextChange {
        done: vec!["race condition".to_owned()],
        resolved: vec!["Need decision on rate limiting strategy".to_owned()],
        blockers: vec!["Staging is down".to_owned()],
        ..ContextChange::default()
    };
    wait(desk.agents.update_context(&ctx(), "coder", &change)).unwrap();
    let after = desk.all();
    let changed: Vec<&String> = before
        .iter()
        .zip(&after)
        .filter(|(a, b)| a != b)
        .map(|(a, _)| &a.0)
        .collect();
    assert_eq!(changed, [&format!("{MEMORY}/context.md")]);
    assert_eq!(
        diff(CONTEXT, &desk.get(&format!("{MEMORY}/context.md"))),
        [
            "-> Last updated: 2025-12-31",
            "+> Last updated: 2026-01-02",
            "-- [ ] Fixing race condition in worker pool",
            "+- [x] Fixing race condition in worker pool",
            "-- [ ] Need decision on rate limiting strategy",
            "+- [ ] Staging is down",
        ]
    );
    for (words, hint) in [("nothing like it", "which has: "), ("i", "write more")] {
        let change = ContextChange {
            done: vec![words.to_owned()],
            ..ContextChange::default()
        };
        let error = wait(desk.agents.update_context(&ctx(), "coder", &change))
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
    assert_eq!(desk.all(), after);
}

#[test]
fn the_linter_speaks_of_the_documents_best_practices() {
    let desk = Desk::with_samples();
    let rules = |desk: &Desk| -> Vec<(String, usize, String)> {
        let found = wait(desk.agents.lint(&ctx(), "coder")).unwrap();
        found
            .into_iter()
            .map(|warning| {
                (
                    warning.file.rsplit('/').next().unwrap().to_owned(),
                    warning.line,
                    warning.rule,
                )
            })
            .collect()
    };
    assert_eq!(rules(&desk), [], "the document's own samples are fine");
    desk.put(
        &format!("{MEMORY}/context.md"),
        "# C\n\n## Things\n- Working on stuff\n- Maybe do auth later\n- Fix the token bug\n",
    );
    desk.put(&format!("{MEMORY}/decisions.md"), "# D\n\n## 2025-12-31: Use tabs instead of spaces\nContext: Formatting decision...\n\n## Use Redis\n**Context**: x\n**Reason**: y\n\n## 2027-01-01: Later\n**Context**: z\n");
    desk.put(
        &format!("{MEMORY}/learnings.md"),
        "# L\n\n## 2025-01-01: Cancel\nUse select.\n",
    );
    desk.put(
        &format!("{MEMORY}/sessions/2025-12-31.md"),
        &"line\n".repeat(61),
    );
    let named = |file: &str, line: usize, rule: &str| (file.to_owned(), line, rule.to_owned());
    assert_eq!(
        rules(&desk),
        [
            named("context.md", 1, "undated"),
            named("context.md", 1, "next"),
            named("context.md", 3, "vague"),
            named("context.md", 4, "vague"),
            named("context.md", 5, "vague"),
            named("decisions.md", 3, "trivial"),
            named("decisions.md", 6, "undated"),
            named("decisions.md", 10, "future"),
            named("decisions.md", 10, "reason"),
            named("learnings.md", 3, "code"),
            named("2025-12-31.md", 1, "long"),
        ]
    );
}
