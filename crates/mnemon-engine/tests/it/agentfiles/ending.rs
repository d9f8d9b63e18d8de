use async_trait::async_trait;
use mnemon_core::files::{File, FilesError, Listed, Stamp};
use mnemon_engine::agentfiles::{
    Code, ContextChange, FileChange, Issue, SessionEnd, SessionLog, Sizes, StateRow,
};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn session() -> SessionEnd {
    SessionEnd {
        context: ContextChange {
            done: vec!["Implementing user authentication module".to_owned()],
            state: vec![StateRow {
                aspect: "Security".to_owned(),
                status: "✅ Reviewed".to_owned(),
                notes: Some("Done".to_owned()),
            }],
            next: Some(vec!["Ship it".to_owned()]),
            ..ContextChange::default()
        },
        decisions: vec![decision("Redis")],
        learnings: vec![mnemon_engine::agentfiles::Learning {
            code: Some(Code {
                language: "md".to_owned(),
                text: "```\n## 2020-01-01: not an entry\n```\n".to_owned(),
            }),
            ..learning("Fences")
        }],
        archive: Some(SessionLog {
            summary: "Much was done.".to_owned(),
            tasks: vec!["Wrote it".to_owned()],
            changes: vec![FileChange {
                file: "a.rs".to_owned(),
                change: "new".to_owned(),
            }],
            issues: vec![Issue {
                title: "Slow".to_owned(),
                problem: "Loop".to_owned(),
                solution: "Index".to_owned(),
            }],
            follow_up: vec!["Measure".to_owned()],
        }),
    }
}

#[test]
fn the_samples_survive_with_only_the_intended_lines_changed() {
    let desk = Desk::with_samples();
    let ended = wait(desk.agents.end(&ctx(), "coder", &session())).unwrap();
    assert_eq!(ended.files.len(), 4);
    assert!(ended.clashes.is_empty() && ended.archived.is_empty());
    assert_eq!(
        diff(CONTEXT, &desk.get(&format!("{MEMORY}/context.md"))),
        [
            "-> Last updated: 2025-12-31",
            "+> Last updated: 2026-01-02",
            "-- [ ] Implementing user authentication module",
            "+- [x] Implementing user authentication module",
            "-| Security | ⚠️ Review needed | Auth module pending |",
            "+| Security | ✅ Reviewed | Done |",
            "-1. Continue JWT implementation in auth handler",
            "-2. Review worker pool race condition fix",
            "-3. Update API documentation",
            "+1. Ship it",
        ]
    );
    assert_eq!(
        desk.get(&format!("{MEMORY}/decisions.md")),
        format!(
            "{DECISIONS}\n## 2026-01-02: Redis\n\n**Context | Bối cảnh**:\nIt had to be one or the other.\n\n**Decision | Quyết định**:\nWe take Redis.\n\n**Reason | Lý do**:\n- It is simple\n\n---\n"
        )
    );
    let learnt = desk.get(&format!("{MEMORY}/learnings.md"));
    assert!(
        learnt.starts_with(LEARNINGS) && learnt.contains("````md\n```\n## 2020-01-01"),
        "{learnt}"
    );
    assert_eq!(
        desk.get(&format!("{MEMORY}/sessions/2026-01-02.md")),
        "# Session: 2026-01-02\n\n> Archived session for reference\n> Phiên làm việc lưu trữ để tham khảo\n\n---\n\n## Summary | Tóm tắt\n\nMuch was done.\n\n---\n\n## Tasks Completed | Task hoàn thành\n\n1. ✅ Wrote it\n\n---\n\n## Key Changes | Thay đổi chính\n\n| File | Change |\n|------|--------|\n| `a.rs` | new |\n\n---\n\n## Issues Encountered | Vấn đề gặp phải\n\n1. **Slow**\n   - Problem: Loop\n   - Solution: Index\n\n---\n\n## Follow-up Items | Việc cần theo dõi\n\n- [ ] Measure\n\n---\n"
    );
    assert_eq!(
        desk.get(&format!("{MEMORY}/sessions/2025-12-31.md")),
        SESSION
    );
    assert!(!desk.paths().iter().any(|path| path.contains("journal")));
    // A second session of the day goes below the first.
    wait(desk.agents.end(
        &ctx(),
        "coder",
        &SessionEnd {
            archive: session().archive,
            ..SessionEnd::default()
        },
    ))
    .unwrap();
    assert!(
        desk.get(&format!("{MEMORY}/sessions/2026-01-02.md"))
            .contains("# Session: 2026-01-02 (2)")
    );
}

#[test]
fn files_that_are_not_there_are_made() {
    let desk = Desk::empty();
    let end = SessionEnd {
        decisions: vec![decision("Tea")],
        ..SessionEnd::default()
    };
    let creating = desk.agents.clone().creating(true);
    wait(creating.end(&ctx(), "fresh", &end)).unwrap();
    assert_eq!(
        desk.paths(),
        [
            ".microai/agents/fresh/memory/context.md",
            ".microai/agents/fresh/memory/decisions.md"
        ]
    );
}

/// Files that stop taking writes after a while, as if the power had gone.
struct Dying {
    files: Arc<FilesInRam>,
    left: AtomicUsize,
}

impl Dying {
    fn tick(&self, path: &str) -> Result<(), FilesError> {
        let left = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
        left.map(|_| ()).map_err(|_| FilesError::Unavailable {
            path: path.to_owned(),
            what: "the power is gone".to_owned(),
            source: None,
        })
    }
}

#[async_trait]
impl Files for Dying {
    async fn read(&self, path: &str) -> Result<Option<File>, FilesError> {
        self.files.read(path).await
    }
    async fn write(
        &self,
        path: &str,
        bytes: &[u8],
        since: Option<&Stamp>,
    ) -> Result<Stamp, FilesError> {
        self.tick(path)?;
        self.files.write(path, bytes, since).await
    }
    async fn remove(&self, path: &str, since: &Stamp) -> Result<(), FilesError> {
        self.tick(path)?;
        self.files.remove(path, since).await
    }
    async fn list(&self, folder: &str) -> Result<Vec<Listed>, FilesError> {
        self.files.list(folder).await
    }
    async fn changed(&self, folder: &str, known: &[Listed]) -> Result<Vec<String>, FilesError> {
        self.files.changed(folder, known).await
    }
}

#[test]
fn a_crash_anywhere_leaves_all_or_nothing() {
    let whole = Desk::with_samples();
    wait(whole.agents.end(&ctx(), "coder", &session())).unwrap();
    // The journal, four files, and taking the journal away.
    for writes in 0..7 {
        let desk = Desk::with_samples();
        let untouched = desk.all();
        let dying = Dying {
            files: desk.files.clone(),
            left: AtomicUsize::new(writes),
        };
        let agents = AgentFiles::new(Arc::new(dying), ROOT).unwrap();
        let ended = wait(agents.end(&ctx(), "coder", &session()));
        assert_eq!(ended.is_ok(), writes >= 6, "{writes}");
        if writes > 0 && writes < 6 {
            // A person goes on editing before anybody repairs it.
            let edited = desk
                .get(&format!("{MEMORY}/context.md"))
                .replace("- Consider using", "- A person's words\n- Consider using");
            desk.put(&format!("{MEMORY}/context.md"), &edited);
        }
        wait(desk.agents.activate("coder", None)).unwrap();
        if writes == 0 {
            assert_eq!(desk.all(), untouched);
            continue;
        }
        let mut all = desk.all();
        if writes < 6 {
            for (_, text) in &mut all {
                let has = text.contains("- A person's words\n");
                assert_eq!(
                    has,
                    text.starts_with("# Current Context"),
                    "after {writes} writes"
                );
                *text = text.replace("- A person's words\n", "");
            }
        }
        assert_eq!(all, whole.all(), "after {writes} writes");
    }
}

#[test]
fn a_journal_that_is_not_ours_is_not_followed() {
    let desk = Desk::with_samples();
    for (journal, hint) in [
        ("{", "is not a journal"),
        (r#"{"v": 9, "files": []}"#, "has the form 9"),
        (
            r#"{"v": 1, "files": [{"path": ".microai/agents/other/memory/context.md", "before": null, "after": "x"}]}"#,
            "not its own",
        ),
        (
            r#"{"v": 1, "files": [{"path": ".microai/agents/coder/memory/x.sh", "before": null, "after": "x"}]}"#,
            "not its own",
        ),
    ] {
        desk.put(&format!("{MEMORY}/.mnemon-journal.json"), journal);
        let before = desk.all();
        let error = wait(desk.agents.activate("coder", None))
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
        assert_eq!(desk.all(), before);
    }
}

#[test]
fn what_is_too_long_goes_to_the_archive_of_its_year() {
    let desk = Desk::with_samples();
    let agents = desk.agents.clone().sizes(Sizes {
        decisions: 3,
        learnings: 1,
        context_lines: 10,
        ..Sizes::default()
    });
    let mut end = session();
    end.decisions = ["2024-05-05", "2026-01-01"]
        .iter()
        .map(|day| mnemon_engine::agentfiles::Decision {
            date: Some((*day).to_owned()),
            ..decision(day)
        })
        .collect();
    let ended = wait(agents.end(&ctx(), "coder", &end)).unwrap();
    assert_eq!(
        (
            ended.archived.decisions,
            ended.archived.learnings,
            ended.archived.tasks
        ),
        (1, 3, 2)
    );
    let (kept, old) = (
        desk.get(&format!("{MEMORY}/decisions.md")),
        desk.get(&format!("{MEMORY}/archive/decisions-2024.md")),
    );
    assert!(
        !kept.contains("2024-05-05") && old.contains("## 2024-05-05"),
        "{kept}\n{old}"
    );
    assert!(kept.contains("2025-12-30: PostgreSQL"));
    let old = desk.get(&format!("{MEMORY}/archive/learnings-2025.md"));
    for lines in LEARNINGS
        .lines()
        .filter(|line| !line.starts_with(['#', '>', '-']) && !line.is_empty())
    {
        assert!(old.contains(lines), "{lines}");
    }
    assert!(
        desk.get(&format!("{MEMORY}/archive/context-2026.md"))
            .contains("- [x] Completed database schema design")
    );
    assert!(!desk.get(&format!("{MEMORY}/context.md")).contains("- [x]"));
    // There is nothing more to do.
    assert!(
        wait(agents.archive(&ctx(), "coder"))
            .unwrap()
            .archived
            .is_empty()
    );
}

#[test]
fn an_end_that_says_nothing_or_something_wrong_changes_nothing() {
    let desk = Desk::with_samples();
    let before = desk.all();
    assert!(wait(desk.agents.end(&ctx(), "coder", &SessionEnd::default())).is_err());
    let mut wrong = session();
    wrong.context.done.push("no such task".to_owned());
    assert!(wait(desk.agents.end(&ctx(), "coder", &wrong)).is_err());
    let mut wrong = session();
    wrong.decisions.push(decision(""));
    assert!(wait(desk.agents.end(&ctx(), "coder", &wrong)).is_err());
    assert_eq!(desk.all(), before);
}
