use mnemon_engine::agentfiles::{Blocker, FileChange, Handoff};

use super::*;

fn team_desk(folder: &str) -> Desk {
    let desk = Desk::empty();
    for (member, front) in [
        ("maestro", "is_lead: true\n"),
        ("dijkstra", ""),
        ("linus", ""),
    ] {
        desk.put(
            &format!("{folder}/{member}/agent.md"),
            &format!("---\nname: {member}\n{front}---\n\nYou are {member}.\n"),
        );
    }
    desk.put(&format!("{folder}/README.md"), "# About");
    desk.put(
        &format!("{folder}/team-memory/context.md"),
        "# Team\n\nWe build.\n",
    );
    let days: String = (1..=7)
        .map(|day| {
            format!("\n## 2025-12-0{day}: decided {day}\n\n**Approved by**: maestro\n\n---\n")
        })
        .collect();
    desk.put(
        &format!("{folder}/team-memory/decisions.md"),
        &format!("# Decisions\n{days}"),
    );
    desk.put(&format!("{folder}/linus/memory/context.md"), "# Mine\n");
    desk
}

fn handoff(to: &str, task: &str) -> Handoff {
    Handoff {
        from: "maestro".to_owned(),
        to: to.to_owned(),
        task: task.to_owned(),
        context: "It is half done.".to_owned(),
        files: vec![FileChange {
            file: "a.rs".to_owned(),
            change: "begun".to_owned(),
        }],
        deliverable: "A patch".to_owned(),
        priority: Some("High".to_owned()),
        planned: false,
    }
}

#[test]
fn both_roots_hold_teams_and_the_lead_is_recognised() {
    for folder in [".microai/teams/core", ".microai/agents/acme/teams/core"] {
        let desk = team_desk(folder);
        let teams = wait(desk.agents.teams()).unwrap();
        assert_eq!(teams.len(), 1, "{folder}");
        assert_eq!(
            (teams[0].name.as_str(), teams[0].folder.as_str()),
            ("core", folder)
        );
        assert_eq!(teams[0].lead.as_deref(), Some("maestro"));
        assert_eq!(teams[0].members, ["dijkstra", "linus", "maestro"]);
    }
    let desk = Desk::empty();
    desk.put(
        ".microai/teams/web/agents/ui-lead.md",
        "---\nname: ui-lead\n---\nx\n",
    );
    desk.put(".microai/agents/acme/teams/web/a/agent.md", "x\n");
    let teams = wait(desk.agents.teams()).unwrap();
    assert_eq!(teams[1].lead.as_deref(), Some("ui-lead"));
    assert!(
        wait(desk.agents.team("web"))
            .unwrap_err()
            .to_string()
            .contains("NAMESPACE/NAME")
    );
    assert_eq!(
        wait(desk.agents.team("acme/web")).unwrap().folder,
        ".microai/agents/acme/teams/web"
    );
    assert!(
        wait(desk.agents.team("none"))
            .unwrap_err()
            .to_string()
            .contains("known: web")
    );
}

#[test]
fn a_member_is_told_in_the_order_of_the_document() {
    let desk = team_desk(".microai/teams/core");
    wait(
        desk.agents
            .hand_off(&ctx(), "core", &handoff("linus", "Fix the scheduler")),
    )
    .unwrap();
    wait(
        desk.agents
            .hand_off(&ctx(), "core", &handoff("dijkstra", "Prove it")),
    )
    .unwrap();
    let told = wait(desk.agents.activate_member("core", "linus", None)).unwrap();
    let names: Vec<(&str, Option<usize>)> = told
        .parts
        .iter()
        .map(|part| (part.name.as_str(), part.entries))
        .collect();
    assert_eq!(
        names,
        [
            ("team context", None),
            ("team decisions", Some(5)),
            ("personal context", None),
            ("pending handoffs", Some(1)),
            ("prompt", None)
        ]
    );
    let places: Vec<usize> = [
        "## Team Context",
        "## Team Decisions",
        "decided 7",
        "decided 3",
        "## Personal Context",
        "## Pending Handoffs",
        "Fix the scheduler",
        "\n\n---\n\nYou are linus.",
    ]
    .iter()
    .map(|words| {
        told.prompt
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {}", told.prompt))
    })
    .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!told.prompt.contains("decided 2") && !told.prompt.contains("Prove it"));
    assert!(
        wait(desk.agents.activate_member("core", "nobody", None))
            .unwrap_err()
            .to_string()
            .contains("known: dijkstra, linus, maestro")
    );
}

#[test]
fn a_handoff_is_verified_accepted_and_completed() {
    let desk = team_desk(".microai/teams/core");
    let given = wait(
        desk.agents
            .hand_off(&ctx(), "core", &handoff("linus", "Fix the scheduler")),
    )
    .unwrap();
    assert_eq!(
        (given.heading.as_str(), given.status.as_str()),
        ("2026-01-02 09:30: maestro → linus", "⏳ Pending")
    );
    let path = ".microai/teams/core/team-memory/handoffs.md";
    assert!(desk.get(path).contains(
        "**Files Involved**:\n\n| File | Notes |\n|------|--------|\n| `a.rs` | begun |\n"
    ));
    wait(
        desk.agents
            .hand_off(&ctx(), "core", &handoff("linus", "Fix the docs")),
    )
    .unwrap();
    let before = desk.all();
    let error = wait(desk.agents.accept("core", "linus", None))
        .unwrap_err()
        .to_string();
    assert!(error.contains("2 are pending; say which"), "{error}");
    assert!(wait(desk.agents.accept("core", "dijkstra", None)).is_err());
    assert_eq!(desk.all(), before);
    let taken = wait(desk.agents.accept("core", "linus", Some("scheduler"))).unwrap();
    assert_eq!(taken.status, "🔄 In Progress");
    assert_eq!(
        diff(
            &before.iter().find(|(at, _)| at == path).unwrap().1,
            &desk.get(path)
        ),
        ["-**Status**: ⏳ Pending", "+**Status**: 🔄 In Progress"]
    );
    assert!(
        wait(desk.agents.complete(
            &ctx(),
            "core",
            "linus",
            Some("scheduler"),
            Some("## Oh\nno")
        ))
        .is_err()
    );
    wait(
        desk.agents
            .complete(&ctx(), "core", "linus", Some("scheduler"), Some("It runs.")),
    )
    .unwrap();
    assert!(
        desk.get(path)
            .contains("**Status**: ✅ Complete\n\n**Result Summary**:\nIt runs.\n")
    );
    let status = wait(desk.agents.team_status(&ctx(), "core")).unwrap();
    assert_eq!(status.handoffs.len(), 1);
    assert_eq!(status.handoffs[0].task, "Fix the docs");
}

#[test]
fn a_handoff_that_says_too_little_or_goes_to_nobody_changes_nothing() {
    let desk = team_desk(".microai/teams/core");
    let before = desk.all();
    let full = handoff("linus", "x");
    let wrong = [
        Handoff {
            from: String::new(),
            ..full.clone()
        },
        Handoff {
            to: " ".to_owned(),
            ..full.clone()
        },
        Handoff {
            task: String::new(),
            ..full.clone()
        },
        Handoff {
            context: String::new(),
            ..full.clone()
        },
        Handoff {
            deliverable: "\n".to_owned(),
            ..full.clone()
        },
        Handoff {
            to: "nobody".to_owned(),
            ..full.clone()
        },
        Handoff {
            to: "../linus".to_owned(),
            ..full.clone()
        },
        Handoff {
            from: "stranger".to_owned(),
            ..full.clone()
        },
        Handoff {
            task: "a\n## 2025-01-01 10:00: b → c\n".to_owned(),
            ..full.clone()
        },
        Handoff {
            context: "```\nopen".to_owned(),
            ..full.clone()
        },
    ];
    for handoff in wrong {
        assert!(
            wait(desk.agents.hand_off(&ctx(), "core", &handoff)).is_err(),
            "{handoff:?}"
        );
    }
    assert_eq!(desk.all(), before);
}

#[test]
fn blockers_are_counted_escalated_and_resolved() {
    let desk = team_desk(".microai/teams/core");
    let blocker = Blocker {
        title: "No access".to_owned(),
        by: "linus".to_owned(),
        blocking: "The release".to_owned(),
        owner: None,
    };
    for id in ["BLOCKER-001", "BLOCKER-002"] {
        assert_eq!(
            wait(desk.agents.block(&ctx(), "core", &blocker))
                .unwrap()
                .id,
            id
        );
    }
    for (minutes, who) in [
        (60, "none"),
        (61, "tell the lead"),
        (241, "tell the user"),
        (1441, "stop the work"),
    ] {
        let mut later = ctx();
        later.now = later.now.plus_millis(minutes * 60_000);
        let status = wait(desk.agents.team_status(&later, "core")).unwrap();
        assert_eq!(status.blockers[0].escalation, who, "{minutes}");
        assert_eq!(status.blockers[0].minutes, Some(minutes));
    }
    wait(desk.agents.unblock(&ctx(), "core", "blocker-001", "Got it")).unwrap();
    let text = desk.get(".microai/teams/core/team-memory/blockers.md");
    assert!(
        text.contains("## BLOCKER-001: No access [RESOLVED]\n")
            && text.contains("**Status**: ✅ Resolved\n\n**Resolution**: Got it\n"),
        "{text}"
    );
    let status = wait(desk.agents.team_status(&ctx(), "core")).unwrap();
    assert_eq!(status.blockers.len(), 1);
    assert!(wait(desk.agents.unblock(&ctx(), "core", "1", "Again")).is_err());
    assert_eq!(
        wait(desk.agents.block(&ctx(), "core", &blocker))
            .unwrap()
            .id,
        "BLOCKER-003"
    );
}
