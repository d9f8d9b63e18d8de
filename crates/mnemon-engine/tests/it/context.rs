//! What goes into the prompt.

use std::sync::Arc;

use mnemon_core::budget::{Bound, Compiled, Form, Section, Why};
use mnemon_core::ram::Ram;
use mnemon_core::{Ids, Kind, Owner, Role, Scope};
use mnemon_engine::{
    Context, ContextQuery, Knowledge, Memory, MemoryQuery, Policies, Sop, ToolSop, Whom,
};
use serde_json::json;

use crate::{ctx, wait};

fn ann() -> Owner {
    Owner {
        user: Some("ann".to_owned()),
        ..Owner::default()
    }
}

/// Everything a prompt could want, for Ann in session `s`; and things that are not for her.
fn filled(policies: Policies) -> Memory {
    let builder = Memory::builder(Arc::new(Ram::new()), Ids::new(7));
    let memory = builder.policies(policies).build();
    let changes = json!({"name": "Ann", "drinks": "green tea", "age": 41});
    let changes = changes.as_object().unwrap().clone();
    let profile = memory.profile();
    wait(profile.update_profile(&ctx(), "ann", &changes, None, None)).unwrap();
    let summary = "They planned a visit to the tea house.";
    wait(
        memory
            .dialog()
            .update_summary(&ctx(), "ann", "s", summary, vec![], None),
    )
    .unwrap();
    say(&memory, "s", Role::User, "Where is the tea house?");
    say(
        &memory,
        "s",
        Role::Assistant,
        "In the old town, by the bridge.",
    );
    say(&memory, "other", Role::User, "A secret of another session");
    let knowledge = [
        (
            Kind::Document,
            "Guide to the tea house. It opens at nine and closes at five.",
        ),
        (Kind::Fact, "The tea house was built in 1890"),
        (Kind::Fact, "Where is the tea house?"),
    ];
    for (kind, content) in knowledge {
        let knowledge = Knowledge {
            content: content.to_owned(),
            kind: Some(kind),
            ..Knowledge::default()
        };
        wait(memory.semantic().remember(&ctx(), &ann(), knowledge, None)).unwrap();
    }
    let bob = Owner {
        user: Some("bob".to_owned()),
        ..Owner::default()
    };
    let foreign = Knowledge {
        content: "Bob's tea house is a secret".to_owned(),
        ..Knowledge::default()
    };
    wait(memory.semantic().remember(&ctx(), &bob, foreign, None)).unwrap();
    let sop = Sop {
        use_when: "book a table at the tea house".to_owned(),
        tool_sops: vec![ToolSop {
            tool: "phone".to_owned(),
            action: "call before ten".to_owned(),
        }],
        preferences: "a seat by the window".to_owned(),
        task_type: Some("booking".to_owned()),
        derived_from: vec![],
        shared: false,
    };
    wait(memory.procedural().add_skill(&ctx(), &ann(), sop, None)).unwrap();
    memory
}

fn say(memory: &Memory, session: &str, role: Role, text: &str) {
    wait(memory.dialog().append(&ctx(), "ann", session, role, text)).unwrap();
}

fn about() -> MemoryQuery {
    MemoryQuery {
        query: Some("tea house".to_owned()),
        task_type: Some("booking".to_owned()),
        ..MemoryQuery::new("ann", "s", "planner", &[])
    }
}

fn asked(memory: &Memory, query: &ContextQuery) -> Context {
    wait(memory.context(&ctx(), query, &Bound)).unwrap()
}

fn sections(compiled: &Compiled) -> Vec<Section> {
    let mut sections: Vec<Section> = compiled.taken.iter().map(|taken| taken.section).collect();
    sections.dedup();
    sections
}

#[test]
fn a_context_has_all_that_a_node_needs_and_nothing_of_others() {
    let memory = filled(Policies::default());
    let context = asked(&memory, &ContextQuery::new(about(), 4000));
    let compiled = &context.compiled;
    assert_eq!(
        sections(compiled),
        [
            Section::Profile,
            Section::Summary,
            Section::Skills,
            Section::Turns,
            Section::Facts,
            Section::Documents
        ]
    );
    let wanted = [
        "> age: 41\n> drinks: green tea\n> name: Ann\n",
        "> They planned a visit to the tea house.",
        "> Use when: book a table at the tea house\n> 1. phone: call before ten\n> Prefer: a seat",
        "> In the old town, by the bridge.",
        "> The tea house was built in 1890",
        "> Guide to the tea house.",
    ];
    for wanted in wanted {
        assert!(
            compiled.text.contains(wanted),
            "{wanted}\n{}",
            compiled.text
        );
    }
    assert!(!compiled.text.contains("secret"), "{}", compiled.text);
    assert!(context.silent.is_empty(), "{:?}", context.silent);
    // What was said in the conversation is not repeated as a fact.
    assert_eq!(compiled.text.matches("Where is the tea house?").count(), 1);
    let why = &compiled.left_out[0].why;
    assert!(matches!(why, Why::Duplicate { .. }), "{why:?}");
    // Every id that is cited can be fetched.
    let ids: Vec<_> = compiled
        .taken
        .iter()
        .map(|taken| taken.id.clone())
        .collect();
    let records = wait(memory.records().get(&ctx(), &ids)).unwrap();
    assert!(records.iter().all(Option::is_some));
}

#[test]
fn a_new_turn_and_another_question_leave_the_beginning_as_it_was() {
    let memory = filled(Policies::default());
    for form in Form::ALL {
        let query = ContextQuery {
            form: *form,
            ..ContextQuery::new(about(), 4000)
        };
        let before = asked(&memory, &query).compiled;
        say(&memory, "s", Role::User, "And when does it open?");
        let after = asked(&memory, &query).compiled;
        assert!(before.prefix_bytes > 100);
        let prefix = &before.text[..before.prefix_bytes];
        assert_eq!(prefix, &after.text[..after.prefix_bytes], "{form}");
    }
}

#[test]
fn the_budget_is_kept_at_every_size() {
    let memory = filled(Policies::default());
    for tokens in (1..600).step_by(7) {
        for form in Form::ALL {
            let query = ContextQuery {
                form: *form,
                ..ContextQuery::new(about(), tokens)
            };
            let compiled = asked(&memory, &query).compiled;
            assert!(compiled.tokens <= tokens, "{form} {tokens}");
        }
    }
}

#[test]
fn the_policy_switches_off_and_caps() {
    let mut policies = Policies::default();
    let flow = Whom::flow("quiet");
    policies.set(flow.clone(), "use_semantic", "false").unwrap();
    policies.set(flow.clone(), "use_profile", "false").unwrap();
    policies.set(flow.clone(), "max_dialog_turns", "1").unwrap();
    policies.set(flow, "max_tokens.procedural", "0").unwrap();
    let memory = filled(policies);
    let quiet = MemoryQuery {
        flow_id: Some("quiet".to_owned()),
        ..about()
    };
    let context = asked(&memory, &ContextQuery::new(quiet, 4000));
    assert_eq!(
        sections(&context.compiled),
        [Section::Summary, Section::Turns]
    );
    let silent: Vec<Scope> = context.silent.iter().map(|silent| silent.scope).collect();
    assert_eq!(silent, [Scope::Profile, Scope::Semantic]);
    assert!(context.silent[0].why.contains("use_profile"));
    let skills = &context.compiled.sections[2];
    assert_eq!((skills.section, skills.ceiling), (Section::Skills, Some(0)));
}

#[test]
fn without_a_query_there_is_still_a_context() {
    let memory = filled(Policies::default());
    let bare = MemoryQuery::new("ann", "s", "planner", &[]);
    let context = asked(&memory, &ContextQuery::new(bare, 4000));
    assert_eq!(
        sections(&context.compiled),
        [Section::Profile, Section::Summary, Section::Turns]
    );
    assert_eq!(context.silent.len(), 2);
    let nobody = MemoryQuery::new("nobody", "none", "planner", &[]);
    let context = asked(&memory, &ContextQuery::new(nobody, 4000));
    assert_eq!(
        (context.compiled.text.as_str(), context.compiled.tokens),
        ("", 0)
    );
}

#[test]
fn a_caller_sets_floors_and_ceilings() {
    let memory = filled(Policies::default());
    let mut query = ContextQuery::new(about(), 4000);
    query.ceilings.insert(Section::Turns, 0);
    query.floors.insert(Section::Documents, 77);
    let compiled = asked(&memory, &query).compiled;
    assert!(!sections(&compiled).contains(&Section::Turns));
    assert_eq!(compiled.sections[6].floor, 77);
    assert_eq!(compiled.sections[3].floor, 0, "the usual floor gives way");
    query.floors.insert(Section::Turns, 1);
    let refused = wait(memory.context(&ctx(), &query, &Bound)).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("budget of turns: has the floor 1")
    );
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let memory = filled(Policies::default());
    let wrong = |query: ContextQuery| {
        let refused = wait(memory.context(&ctx(), &query, &Bound)).unwrap_err();
        refused.to_string()
    };
    assert!(wrong(ContextQuery::new(about(), 0)).starts_with("budget: is 0 tokens"));
    let long = MemoryQuery {
        query: Some("x".repeat(70_000)),
        ..about()
    };
    assert!(wrong(ContextQuery::new(long, 100)).starts_with("query: has 70000 bytes"));
    let nobody = MemoryQuery::new("", "s", "planner", &[]);
    assert!(wrong(ContextQuery::new(nobody, 100)).starts_with("user_id: is empty"));
}
