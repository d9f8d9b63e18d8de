//! Semantic and procedural memory: found by what they say, seen by whom they are for.

use mnemon_core::{ErrorKind, Filter, Kind, Scope};
use mnemon_engine::{Draft, Memory, Payload, Sop};
use serde_json::{Value, json};

use super::{nobody, payload, query, read, write};
use crate::{ctx, memory, wait};

fn docs(memory: &Memory) -> Vec<String> {
    let item = read(memory, Scope::Semantic);
    let Payload::Semantic { docs } = payload(&item) else {
        panic!("{item:?}");
    };
    docs.iter().map(|doc| doc.content.clone()).collect()
}

fn sop(use_when: &str, task_type: Option<&str>) -> Value {
    json!({
        "use_when": use_when,
        "tool_sops": [{"tool": "shop", "action": "open it"}],
        "task_type": task_type,
        "shared": true,
    })
}

fn skills(memory: &Memory, task_type: Option<&str>, query: &str, top_k: usize) -> Vec<String> {
    let found = wait(memory.procedural().search_skills(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        task_type,
        query,
        top_k,
    ));
    let found = found.unwrap().into_iter();
    found.map(|skill| skill.sop.use_when).collect()
}

#[test]
fn a_user_sees_their_own_and_what_is_shared() {
    let memory = memory();
    let add = |user: &str, content: &str, shared: bool| {
        let mut event = super::event(
            Scope::Semantic,
            json!({"content": content, "shared": shared}),
        );
        event.user_id = user.to_owned();
        wait(memory.write(&ctx(), &event)).unwrap();
    };
    for n in 0..100 {
        add("bob", &format!("green tea of bob, number {n}"), false);
    }
    add("ann", "green tea of ann", false);
    add("bob", "green tea grows on hills", true);
    let mut seen = docs(&memory);
    seen.sort();
    assert_eq!(seen, ["green tea grows on hills", "green tea of ann"]);
    let everything = wait(memory.semantic().search(
        &ctx(),
        "green tea",
        Filter::all_of_tenant(),
        5,
    ));
    assert_eq!(everything.unwrap().len(), 5);
}

#[test]
fn documents_can_be_filtered_by_metadata() {
    let memory = memory();
    for lang in ["vi", "en"] {
        let data = json!({"content": format!("green tea, {lang}"), "metadata": {"lang": lang}});
        write(&memory, Scope::Semantic, data).unwrap();
    }
    let mut asked = query(&[Scope::Semantic]);
    asked.extra = super::map(json!({"filters": {"lang": "vi"}, "own": 1}));
    let items = wait(memory.read(&ctx(), &asked)).unwrap();
    let Payload::Semantic { docs } = payload(&items[0]) else {
        panic!("{items:?}");
    };
    assert_eq!(docs.len(), 1);
    assert_eq!(docs[0].content, "green tea, vi");
    asked.extra = super::map(json!({"filters": {"n": {"$like": 1}}}));
    let refused = wait(memory.read(&ctx(), &asked)).unwrap_err();
    assert!(refused.to_string().starts_with("extra.filter"), "{refused}");
}

#[test]
fn skills_for_the_very_task_come_first() {
    let memory = memory();
    for (use_when, task_type) in [
        ("deploy the web app to production", None),
        ("deploy a database", Some("deploy_db")),
        ("make tea", Some("kitchen")),
    ] {
        write(&memory, Scope::Procedural, sop(use_when, task_type)).unwrap();
    }
    assert_eq!(
        skills(&memory, Some("deploy_db"), "deploy the web app", 3),
        ["deploy a database", "deploy the web app to production"]
    );
    assert_eq!(
        skills(&memory, Some("deploy_db"), "", 1),
        ["deploy a database"]
    );
    assert_eq!(skills(&memory, None, "tea", 3), ["make tea"]);
    let nothing =
        wait(
            memory
                .procedural()
                .search_skills(&ctx(), &mnemon_core::Viewer::Tenant, None, " ", 3),
        );
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn skills_that_are_not_told_do_not_stand_in_the_way() {
    let memory = memory();
    let add = |text: String, status: &str, task_type: Option<&str>| {
        let draft = Draft {
            content: text.clone(),
            kind: Some(Kind::Skill),
            body: Some(sop(&text, task_type)),
            tags: task_type
                .iter()
                .map(|name| format!("task:{name}"))
                .collect(),
            metadata: json!({"evidence": {"status": status}})
                .as_object()
                .unwrap()
                .clone(),
            ..Draft::default()
        };
        wait(memory.records().add(&ctx(), vec![draft], None)).unwrap();
    };
    // The better they fit, the less they are told.
    for n in 0..5 {
        add(format!("buy green tea, way {n}"), "candidate", None);
    }
    for n in 0..3 {
        add(format!("buy green paper at shop {n}"), "active", None);
    }
    add("sell green cars".to_owned(), "active", Some("shop"));
    add("sell green boats".to_owned(), "retired", Some("shop"));
    let found = skills(&memory, Some("shop"), "buy green tea", 3);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], "sell green cars");
    let paper = |text: &String| text.starts_with("buy green paper");
    assert!(found[1..].iter().all(paper), "{found:?}");
    let all = skills(&memory, Some("shop"), "buy green tea", 10);
    assert_eq!(all.len(), 4, "{all:?}");
    assert_eq!(all[..3], found, "asking for fewer leaves the order alone");
}

#[test]
fn a_skill_comes_back_as_it_was_and_tool_name_is_understood() {
    let memory = memory();
    let given = json!({
        "use_when": "deploy Next.js app to Vercel",
        "tool_sops": [
            {"tool": "create_repo", "action": "create repo from template nextjs"},
            {"tool_name": "run_cmd", "action": "npm install"},
        ],
        "preferences": "use pnpm if available",
        "shared": true,
    });
    let sop: Sop = serde_json::from_value(given).unwrap();
    wait(memory.procedural().add_skill(&ctx(), &nobody(), sop, None)).unwrap();
    let found = wait(memory.procedural().search_skills(
        &ctx(),
        &mnemon_core::Viewer::Tenant,
        None,
        "Next.js to Vercel",
        3,
    ));
    let found = serde_json::to_value(&found.unwrap()[0]).unwrap();
    assert_eq!(found["tool_sops"][1]["tool"], "run_cmd");
    assert_eq!(found["preferences"], "use pnpm if available");
}

#[test]
fn a_skill_that_cannot_be_followed_is_refused() {
    let memory = memory();
    let step = json!({"tool": "t", "action": "a"});
    for (bad, expected) in [
        (
            json!({"use_when": " ", "tool_sops": [step]}),
            "use_when: is empty",
        ),
        (
            json!({"use_when": "x", "tool_sops": []}),
            "tool_sops: has 0 steps",
        ),
        (
            json!({"use_when": "x", "tool_sops": vec![step.clone(); 101]}),
            "has 101 steps",
        ),
        (
            json!({"use_when": "x", "tool_sops": [{"action": "a"}]}),
            "missing field `tool`",
        ),
        (
            json!({"use_when": "x", "tool_sops": [{"tool": "", "action": "a"}]}),
            "tool_sops[0].tool",
        ),
        (
            json!({"use_when": "x", "tool_sops": [{"tool": "t", "action": ""}]}),
            "tool_sops[0].action",
        ),
        (
            json!({"use_when": "x".repeat(10_001), "tool_sops": [step]}),
            "10001 bytes",
        ),
        (
            json!({"use_when": "x", "tool_sops": [step], "preferences": 3}),
            "invalid type",
        ),
        (
            json!({"use_when": "x", "tool_sops": [step], "task_type": "t".repeat(81)}),
            "task_type",
        ),
        (
            json!({"use_when": "x", "tool_sops": [step], "when": 1}),
            "unknown field `when`, expected one of `use_when`",
        ),
    ] {
        let error = write(&memory, Scope::Procedural, bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(crate::all(&memory).is_empty());
}
