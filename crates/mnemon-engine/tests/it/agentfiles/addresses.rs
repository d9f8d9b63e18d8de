//! Agents, members of teams and teams by name; names that are mistyped; languages; entries that
//! are changed later.

use mnemon_engine::Error;
use mnemon_engine::agentfiles::{
    ContextChange, EntryChange, FieldText, Handoff, Language, NewTeam, SessionEnd, Whose,
};

use super::*;

const TEAM: &str = ".microai/agents/thinking/teams/deep";

/// A team in the layout of the format: the member `feynman` has a memory of its own.
fn deep_team() -> Desk {
    let desk = Desk::empty();
    for member in ["feynman", "maestro"] {
        desk.put(
            &format!("{TEAM}/{member}/agent.md"),
            &format!("---\nname: {member}\ndescription: Thinks\n---\n\nYou are {member}.\n"),
        );
    }
    desk.put(
        &format!("{TEAM}/feynman/memory/context.md"),
        "# Current Context\n\n## Active Focus\n\n- [ ] Old task\n",
    );
    desk
}

fn tasks(task: &str) -> ContextChange {
    ContextChange {
        tasks: vec![task.to_owned()],
        ..ContextChange::default()
    }
}

#[test]
fn a_member_is_read_and_written_in_its_team() {
    let desk = deep_team();
    let agents = &desk.agents;
    for name in ["deep/feynman", "thinking/deep/feynman"] {
        wait(agents.update_context(&ctx(), name, &tasks("New task"))).unwrap();
        wait(agents.decide(&ctx(), name, &decision("Draw it"))).unwrap();
        wait(agents.learn(&ctx(), name, &learning("Explain it"))).unwrap();
        let end = SessionEnd {
            context: tasks("Last task"),
            ..SessionEnd::default()
        };
        wait(agents.end(&ctx(), name, &end)).unwrap();
        wait(agents.archive(&ctx(), name)).unwrap();
        assert!(wait(agents.show(name, "decisions.md")).unwrap().is_some());
    }
    assert!(
        desk.paths().iter().all(|path| path.starts_with(TEAM)),
        "{:?}",
        desk.paths()
    );
    let told = wait(agents.activate("deep/feynman", None)).unwrap();
    assert_eq!(
        told,
        wait(agents.activate_member("deep", "feynman", None)).unwrap()
    );
    assert!(told.prompt.contains("New task") && told.prompt.contains("Last task"));
    assert!(
        !wait(agents.lint(&ctx(), "deep/feynman"))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn members_are_listed_with_their_team() {
    let desk = deep_team();
    let names = || {
        let listed = wait(desk.agents.list()).unwrap();
        listed
            .into_iter()
            .map(|agent| agent.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names(), ["deep/feynman", "deep/maestro"]);
    desk.put(".microai/teams/deep/ada/agent.md", "x\n");
    assert_eq!(
        names(),
        ["thinking/deep/feynman", "thinking/deep/maestro", "deep/ada"]
    );
}

#[test]
fn a_member_may_be_an_agent_beside_its_team() {
    let desk = deep_team();
    desk.put(
        ".microai/agents/maestro/memory/context.md",
        "# Own\n\nbeside\n",
    );
    let told = wait(desk.agents.activate("deep/maestro", None)).unwrap();
    assert!(told.prompt.contains("beside"), "{}", told.prompt);
    let file = wait(desk.agents.decide(&ctx(), "deep/maestro", &decision("So"))).unwrap();
    assert_eq!(file, ".microai/agents/maestro/memory/decisions.md");
}

#[test]
fn a_mistyped_agent_is_an_error_that_names_the_nearest() {
    let desk = deep_team();
    desk.put(".microai/agents/coder/agent.md", "x\n");
    let before = desk.all();
    for (name, said) in [
        ("codr", "there is no agent `codr`; did you mean `coder`?"),
        (
            "feynman",
            "there is no agent `feynman`; did you mean `deep/feynman`?",
        ),
        (
            "zzz",
            "there is no agent `zzz`; known: coder, deep/feynman, deep/maestro",
        ),
        (
            "deep",
            "`deep` is a team; name a member: deep/feynman, deep/maestro",
        ),
        (
            "deep/fenyman",
            "`fenyman` is not a member of deep; did you mean `feynman`?",
        ),
        (
            "depe/feynman",
            "there is no team `depe`; did you mean `deep`?",
        ),
    ] {
        let agents = &desk.agents;
        let errors = [
            wait(agents.update_context(&ctx(), name, &tasks("x"))).unwrap_err(),
            wait(agents.rewrite_context(&ctx(), name, "x", "y")).unwrap_err(),
            wait(agents.decide(&ctx(), name, &decision("x"))).unwrap_err(),
            wait(agents.learn(&ctx(), name, &learning("x"))).unwrap_err(),
            wait(agents.end(
                &ctx(),
                name,
                &SessionEnd {
                    context: tasks("x"),
                    ..SessionEnd::default()
                },
            ))
            .unwrap_err(),
            wait(agents.activate(name, None)).unwrap_err(),
            wait(agents.archive(&ctx(), name)).unwrap_err(),
            wait(agents.lint(&ctx(), name)).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::NoAgent(_)), "{error}");
            assert_eq!(error.to_string(), said);
        }
    }
    assert_eq!(desk.all(), before);
    let ctx = ctx();
    let creating = desk.agents.clone().creating(true);
    for name in ["codr", "deep/ada"] {
        wait(creating.decide(&ctx, name, &decision("x"))).unwrap();
    }
    assert_eq!(
        ctx.notices.take(),
        ["made the agent `codr`", "made the agent `deep/ada`"]
    );
    assert!(
        desk.get(&format!("{TEAM}/ada/memory/decisions.md"))
            .contains("We take x.")
    );
}

#[test]
fn a_team_is_made_with_its_members_and_can_grow() {
    let desk = Desk::empty();
    desk.put(
        ".microai/agents/coder/agent.md",
        "---\nname: coder\ndescription: Writes code\n---\nx\n",
    );
    desk.put(".microai/agents/coder/memory/context.md", "# Mine\n");
    let mut new = NewTeam {
        team: "core".to_owned(),
        lead: Some("ada".to_owned()),
        members: vec!["linus".to_owned(), "coder".to_owned()],
    };
    let made = wait(desk.agents.begin_team(&ctx(), &new)).unwrap();
    assert_eq!(made.len(), 4 + 4 + 4 + 1, "{made:?}");
    let team = &wait(desk.agents.teams()).unwrap()[0];
    assert_eq!(
        (team.folder.as_str(), team.lead.as_deref()),
        (".microai/teams/core", Some("ada"))
    );
    assert_eq!(team.members, ["ada", "coder", "linus"]);
    let told = wait(desk.agents.activate("core/coder", None)).unwrap();
    assert!(told.prompt.contains("# Mine") && told.prompt.contains("Writes code"));
    let error = wait(desk.agents.begin_team(&ctx(), &new)).unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
    new.members.push("grace".to_owned());
    assert_eq!(wait(desk.agents.begin_team(&ctx(), &new)).unwrap().len(), 4);
    wait(desk.agents.begin(&ctx(), "core/margaret", "Tests")).unwrap();
    assert!(
        desk.get(".microai/teams/core/margaret/agent.md")
            .contains("name: margaret\n")
    );
    new.team = "acme/core".to_owned();
    wait(desk.agents.begin_team(&ctx(), &new)).unwrap();
    desk.get(".microai/agents/acme/teams/core/team-memory/handoffs.md");
    for bad in ["../x", "a/b/c", "teams"] {
        new.team = bad.to_owned();
        assert!(wait(desk.agents.begin_team(&ctx(), &new)).is_err(), "{bad}");
    }
}

#[test]
fn a_team_has_a_context_and_decisions_of_its_own() {
    let desk = deep_team();
    let team = Whose::Team("deep");
    let made = wait(desk.agents.update_context(&ctx(), team, &tasks("Ship it"))).unwrap();
    assert_eq!(made, ["added task: Ship it"]);
    assert!(
        desk.get(&format!("{TEAM}/team-memory/context.md"))
            .starts_with("# Team Context\n")
    );
    let decided = Decision {
        proposed_by: Some("feynman".to_owned()),
        approved_by: Some("maestro".to_owned()),
        dissent: vec!["None".to_owned()],
        impact: vec!["All".to_owned()],
        ..decision("Go")
    };
    let file = wait(desk.agents.decide(&ctx(), team, &decided)).unwrap();
    assert_eq!(file, format!("{TEAM}/team-memory/decisions.md"));
    let text = desk.get(&file);
    for label in [
        "Proposed by**: feynman",
        "Approved by**: maestro",
        "Reasoning**:\n- It is simple",
        "Dissenting Views**:\n- None",
        "Implementation Impact**:\n- All",
    ] {
        assert!(text.contains(&format!("\n**{label}\n")), "{label}: {text}");
    }
    let told = wait(desk.agents.activate("deep/feynman", None)).unwrap();
    assert!(told.prompt.contains("- [ ] Ship it") && told.prompt.contains("We take Go."));
    let error = wait(desk.agents.decide(&ctx(), Whose::Team("none"), &decided)).unwrap_err();
    assert_eq!(error.to_string(), "there is no team `none`; known: deep");
}

#[test]
fn new_files_have_the_language_that_is_set_and_old_ones_keep_theirs() {
    for (language, label, heading) in [
        (Language::English, "\n**Reason**:", "## Active Focus\n"),
        (Language::Vietnamese, "\n**Lý do**:", "## Đang tập trung\n"),
        (
            Language::Bilingual,
            "\n**Reason | Lý do**:",
            "## Active Focus | Đang tập trung\n",
        ),
    ] {
        let desk = Desk::empty();
        let agents = desk.agents.clone().language(language);
        wait(agents.begin(&ctx(), "coder", "Writes")).unwrap();
        // The setting may change later: the files stay as they are.
        let agents = &desk.agents;
        wait(agents.decide(&ctx(), "coder", &decision("One"))).unwrap();
        wait(agents.update_context(&ctx(), "coder", &tasks("Fix it"))).unwrap();
        let change = ContextChange {
            done: vec!["Fix".to_owned()],
            notes: vec!["so".to_owned()],
            ..ContextChange::default()
        };
        let made = wait(agents.update_context(&ctx(), "coder", &change)).unwrap();
        assert_eq!(made, ["ticked: Fix it", "added note: so"]);
        let (decisions, context) = (
            desk.get(&format!("{MEMORY}/decisions.md")),
            desk.get(&format!("{MEMORY}/context.md")),
        );
        assert!(decisions.contains(label), "{decisions}");
        assert!(context.contains(heading), "{context}");
        assert_eq!(context.matches("\n## ").count(), 6, "{context}");
        let told = wait(agents.activate("coder", None)).unwrap().prompt;
        let title = match language {
            Language::English => "## Agent Memory\n\n### Current Context\n",
            Language::Vietnamese => "## Memory của Agent\n\n### Context hiện tại\n",
            Language::Bilingual => {
                "## Agent Memory | Memory của Agent\n\n### Current Context | Context hiện tại\n"
            }
        };
        assert!(told.starts_with(title), "{told}");
        let rules = wait(agents.lint(&ctx(), "coder")).unwrap();
        assert!(
            rules
                .iter()
                .all(|one| !matches!(one.rule.as_str(), "reason" | "context" | "next")),
            "{rules:?}"
        );
    }
}

#[test]
fn entries_without_a_separator_are_closed_before_the_next() {
    let desk = Desk::with_samples();
    let path = format!("{MEMORY}/decisions.md");
    desk.put(&path, "# Log\n\n## 2025-12-30: One\n\n**Decision**: a\n");
    wait(desk.agents.decide(&ctx(), "coder", &decision("Two"))).unwrap();
    let text = desk.get(&path);
    let pieces: Vec<&str> = text.split("\n---\n").collect();
    assert!(
        pieces[0].contains("One") && !pieces[0].contains("Two"),
        "{text}"
    );
    assert!(pieces[1].contains("## 2026-01-02: Two"), "{text}");
}

fn edit(which: &str) -> EntryChange {
    EntryChange {
        which: which.to_owned(),
        ..EntryChange::default()
    }
}

fn field(label: &str, text: &str) -> FieldText {
    FieldText {
        label: label.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn an_entry_is_changed_in_its_own_lines() {
    let desk = Desk::with_samples();
    let agents = &desk.agents;
    wait(agents.decide(&ctx(), "coder", &decision("Use zebras"))).unwrap();
    let path = format!("{MEMORY}/decisions.md");
    let before = desk.get(&path);
    let change = EntryChange {
        title: Some("Use horses".to_owned()),
        fields: vec![
            field("reason", "- They are faster\n- They are here"),
            field("Impact", "- Stables"),
        ],
        ..edit("zebras")
    };
    let done = wait(agents.change_entry(&ctx(), "coder", &change)).unwrap();
    assert_eq!(done.heading, "2026-01-02: Use horses");
    assert!(done.before.contains("Use zebras") && !done.removed);
    assert_eq!(
        diff(&before, &desk.get(&path)),
        [
            "-## 2026-01-02: Use zebras",
            "+## 2026-01-02: Use horses",
            "-- It is simple",
            "+- They are faster",
            "+- They are here",
            "+**Impact | Ảnh hưởng**:",
            "+- Stables",
            "+",
        ]
    );
    let change = EntryChange {
        new_date: Some("2025-01-01".to_owned()),
        ..edit("2026-01-02: Use horses")
    };
    let done = wait(agents.change_entry(&ctx(), "coder", &change)).unwrap();
    assert_eq!(done.heading, "2025-01-01: Use horses");
}

#[test]
fn an_entry_is_removed_by_title_and_date() {
    let desk = Desk::with_samples();
    let agents = &desk.agents;
    let path = format!("{MEMORY}/decisions.md");
    let before = desk.get(&path);
    let mut old = decision("Twice");
    old.date = Some("2025-01-01".to_owned());
    wait(agents.decide(&ctx(), "coder", &decision("Twice"))).unwrap();
    let once = desk.get(&path);
    wait(agents.decide(&ctx(), "coder", &old)).unwrap();
    wait(agents.learn(&ctx(), "coder", &learning("A habit"))).unwrap();
    let remove = EntryChange {
        remove: true,
        ..edit("Twice")
    };
    let error = wait(agents.change_entry(&ctx(), "coder", &remove)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("2026-01-02: Twice; 2025-01-01: Twice"),
        "{error}"
    );
    let dated = EntryChange {
        date: Some("2025-01-01".to_owned()),
        ..remove.clone()
    };
    let gone = wait(agents.change_entry(&ctx(), "coder", &dated)).unwrap();
    assert!(gone.removed && gone.before.contains("We take Twice."));
    assert_eq!(desk.get(&path).trim_end(), once.trim_end());
    wait(agents.change_entry(&ctx(), "coder", &remove)).unwrap();
    assert_eq!(desk.get(&path).trim_end(), before.trim_end());
    let habit = EntryChange {
        remove: true,
        ..edit("A habit")
    };
    // A part of a title is enough to change an entry, and not to remove it.
    let part = EntryChange {
        remove: true,
        ..edit("habit")
    };
    assert!(wait(agents.change_entry(&ctx(), "coder", &part)).is_err());
    let gone = wait(agents.change_entry(&ctx(), "coder", &habit)).unwrap();
    assert_eq!(gone.file, format!("{MEMORY}/learnings.md"));
    let error = wait(agents.change_entry(&ctx(), "coder", &habit)).unwrap_err();
    assert!(
        error.to_string().contains("there is no entry `A habit` in"),
        "{error}"
    );
    for bad in [
        edit("Twice"),
        edit(""),
        EntryChange {
            title: Some("a".to_owned()),
            ..remove.clone()
        },
    ] {
        assert!(wait(agents.change_entry(&ctx(), "coder", &bad)).is_err());
    }
    let broken = EntryChange {
        fields: vec![field("Reason", "x\n\n## 2025-01-01: Other")],
        ..edit("Use")
    };
    assert!(wait(agents.change_entry(&ctx(), "coder", &broken)).is_err());
}

#[test]
fn conflict_marks_of_git_are_noticed_in_every_file() {
    let marks = "\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> feat\n";
    let desk = deep_team();
    wait(desk.agents.begin(&ctx(), "coder", "Writes")).unwrap();
    wait(
        desk.agents
            .update_context(&ctx(), Whose::Team("deep"), &tasks("x")),
    )
    .unwrap();
    for (agent, path) in [
        ("coder", format!("{MEMORY}/context.md")),
        ("coder", format!("{MEMORY}/decisions.md")),
        ("coder", format!("{MEMORY}/learnings.md")),
        ("deep/feynman", format!("{TEAM}/team-memory/blockers.md")),
        ("deep/feynman", format!("{TEAM}/team-memory/decisions.md")),
        (
            "deep/feynman",
            format!("{TEAM}/feynman/memory/learnings.md"),
        ),
    ] {
        assert!(
            wait(desk.agents.activate(agent, None))
                .unwrap()
                .notices
                .is_empty()
        );
        let before = wait(desk.files.read(&path)).unwrap();
        let text = before
            .map(|file| String::from_utf8(file.bytes).unwrap())
            .unwrap_or_default();
        desk.put(&path, &format!("{text}{marks}"));
        let notices = wait(desk.agents.activate(agent, None)).unwrap().notices;
        assert!(
            notices.len() == 1 && notices[0].starts_with(&path),
            "{path}: {notices:?}"
        );
        let found = wait(desk.agents.lint_all(&ctx())).unwrap();
        let conflicts: Vec<_> = found.iter().filter(|one| one.is_error()).collect();
        assert!(
            conflicts.len() == 1 && conflicts[0].file == path,
            "{conflicts:?}"
        );
        desk.put(&path, &text);
    }
}

#[test]
fn a_handoff_needs_two_people_and_is_planned_until_it_begins() {
    let desk = deep_team();
    let mut given = Handoff {
        from: "maestro".to_owned(),
        to: "Maestro".to_owned(),
        task: "Think".to_owned(),
        context: "Much".to_owned(),
        deliverable: "An idea".to_owned(),
        planned: true,
        ..Handoff::default()
    };
    let error = wait(desk.agents.hand_off(&ctx(), "deep", &given)).unwrap_err();
    assert!(
        error.to_string().contains("cannot hand work to itself"),
        "{error}"
    );
    given.to = "feynman".to_owned();
    let written = wait(desk.agents.hand_off(&ctx(), "deep", &given)).unwrap();
    assert!(written.heading.ends_with("feynman (Planned)"));
    let taken = wait(desk.agents.accept("deep", "feynman", None)).unwrap();
    assert_eq!(taken.heading, "2026-01-02 09:30: maestro → feynman");
    let text = desk.get(&format!("{TEAM}/team-memory/handoffs.md"));
    assert!(!text.contains("Planned"), "{text}");
    // Whoever can be given work can also be activated.
    desk.put(".microai/agents/coder/agent.md", "You code.\n");
    given.to = "coder".to_owned();
    wait(desk.agents.hand_off(&ctx(), "deep", &given)).unwrap();
    let told = wait(desk.agents.activate_member("deep", "coder", None)).unwrap();
    assert!(told.prompt.contains("## Pending Handoffs") && told.prompt.contains("You code."));
}
