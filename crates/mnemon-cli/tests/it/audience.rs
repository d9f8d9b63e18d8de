//! Who sees what: every audience, every viewer, every way to read, on RAM and on SQLite.

use std::sync::Arc;

use mnemon_adapters::Sqlite;
use mnemon_core::budget::Bound;
use mnemon_core::ram::Ram;
use mnemon_core::{
    Audience, Ctx, Filter, Id, Ids, Kind, Order, Record, Role, Scan, Scope, Tenant, Time, Viewer,
};
use mnemon_engine::notes::{NewNote, NoteFilter, NoteQuery};
use mnemon_engine::{
    ContextQuery, Document, Draft, Memory, MemoryQuery, Place, Query, Sop, Step, ToolSop,
};
use mnemon_operations::api;
use serde_json::{Map, json};

use crate::sandbox::Sandbox;

/// A word that every record has and nothing else.
const MARK: &str = "quokka";

fn ctx() -> Ctx {
    let now = Time::from_millis(1_700_000_000_000).unwrap();
    Ctx::new(Tenant::default(), "test", now)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

fn audiences() -> Vec<Audience> {
    let texts = [
        "user:ann",
        "user:bob",
        "agent:planner",
        "team:ops",
        "everyone",
    ];
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn viewers() -> Vec<Viewer> {
    let agent = Some("planner".to_owned());
    vec![
        Viewer::Tenant,
        Viewer::ANYONE,
        Viewer::user("ann"),
        Viewer::user("bob"),
        Viewer::person(Some("ann".to_owned()), agent.clone()),
        Viewer::person(None, agent),
        Viewer::Person {
            user: Some("ann".to_owned()),
            agent: None,
            teams: vec!["ops".to_owned()],
        },
    ]
}

/// Something of every scope, all of it Ann's and in her session.
async fn fill(memory: &Memory) {
    let ann = mnemon_core::Owner {
        user: Some("ann".to_owned()),
        ..mnemon_core::Owner::default()
    };
    let place = Place {
        user: "ann",
        session: "s1",
        flow: None,
        agent: None,
    };
    let said = format!("the {MARK} sleeps");
    let dialog = memory.dialog();
    dialog
        .append(&ctx(), "ann", "s1", Role::User, &said)
        .await
        .unwrap();
    let body = Map::from_iter([(MARK.to_owned(), json!(1))]);
    let state = memory.state();
    state
        .save_state(&ctx(), place, body.clone(), None, None)
        .await
        .unwrap();
    let profile = memory.profile();
    profile
        .update_profile(&ctx(), "ann", &body, None, None)
        .await
        .unwrap();
    fill_knowledge(memory, &ann, &said).await;
}

/// Knowledge, a skill and a failed step.
async fn fill_knowledge(memory: &Memory, ann: &mnemon_core::Owner, said: &str) {
    let note = NewNote {
        owner: ann.clone(),
        ..NewNote::new(said)
    };
    memory.notes().add(&ctx(), note, None).await.unwrap();
    let document = Document {
        uri: "zoo.md".to_owned(),
        text: format!("# Zoo\n\nA {MARK} lives here."),
        owner: ann.clone(),
        ..Document::default()
    };
    memory
        .semantic()
        .add_documents(&ctx(), vec![document])
        .await
        .unwrap();
    let sop = Sop {
        use_when: format!("feed the {MARK}"),
        tool_sops: vec![ToolSop {
            tool: "feed".to_owned(),
            action: "leaves".to_owned(),
        }],
        preferences: String::new(),
        task_type: Some("feed".to_owned()),
        derived_from: Vec::new(),
        shared: false,
    };
    memory
        .procedural()
        .add_skill(&ctx(), ann, sop, None)
        .await
        .unwrap();
    let step = Step {
        task_type: Some("feed".to_owned()),
        tool: Some("feed".to_owned()),
        error: Some(format!("the {MARK} ran away")),
        ..Step::default()
    };
    memory
        .experience()
        .log_step(&ctx(), ann, step, None)
        .await
        .unwrap();
}

async fn all(memory: &Memory) -> Vec<Record> {
    let scan = Scan {
        order: Order::Oldest,
        ..Scan::new(Filter::all_of_tenant(), 100)
    };
    memory.records().list(&ctx(), &scan).await.unwrap().records
}

async fn give_all_to(memory: &Memory, audience: &Audience) {
    for mut record in all(memory).await {
        record.audience = Some(audience.clone());
        memory.records().update(&ctx(), record).await.unwrap();
    }
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// Every way to read that takes a viewer, with what it answered.
async fn answers(memory: &Memory, viewer: &Viewer) -> Vec<(&'static str, String)> {
    let mut answers = answers_of_records(memory, viewer).await;
    answers.extend(answers_of_notes(memory, viewer).await);
    let (c, filter) = (ctx(), Filter::seen_by(viewer.clone()));
    let semantic = memory.semantic();
    let known = semantic.search(&c, MARK, filter, 5).await;
    let procedural = memory.procedural();
    let skills = procedural.search_skills(&c, viewer, None, MARK, 5).await;
    let learning = memory.learning();
    let lessons = learning.lessons(&c, viewer, None, None, 5).await;
    let (experience, owner) = (memory.experience(), mnemon_core::Owner::default());
    let failures = experience.get_failures(&c, viewer, &owner, None, 5).await;
    answers.extend([
        ("semantic", text(&known.unwrap())),
        ("skills", text(&skills.unwrap())),
        ("lessons", text(&lessons.unwrap())),
        ("experience", text(&failures.unwrap())),
    ]);
    answers
}

async fn answers_of_records(memory: &Memory, viewer: &Viewer) -> Vec<(&'static str, String)> {
    let (records, c) = (memory.records(), ctx());
    let there = all(memory).await.into_iter();
    let ids: Vec<Id> = there.map(|record| record.id).collect();
    let filter = || Filter::seen_by(viewer.clone());
    let get = records.get_seen_by(&c, viewer, &ids).await;
    let list = records.list(&c, &Scan::new(filter(), 100)).await;
    let search = records.search(&c, &Query::new(MARK, filter())).await;
    let latest = records.latest(&c, filter(), 5).await;
    let kinds = vec![Kind::Chunk];
    let chunks = Query::new(MARK, Filter { kinds, ..filter() });
    let documents = records.search(&c, &chunks).await;
    let got = api::get::run(memory, &c, viewer, ids).await;
    vec![
        ("get", text(&get.unwrap())),
        ("api get", text(&got.unwrap().records)),
        ("list", text(&list.unwrap().records)),
        ("search", text(&search.unwrap())),
        ("latest", text(&latest.unwrap())),
        ("documents", text(&documents.unwrap())),
    ]
}

async fn answers_of_notes(memory: &Memory, viewer: &Viewer) -> Vec<(&'static str, String)> {
    let (notes, c) = (memory.notes(), ctx());
    let filter = || NoteFilter::seen_by(viewer.clone());
    let id = id_of(memory, Kind::Note).await;
    let found = notes.search(&c, &NoteQuery::new(MARK, filter())).await;
    let by_id = notes
        .search(&c, &NoteQuery::new(id.as_str(), filter()))
        .await;
    let listed = notes.list(&c, &filter(), None, 10).await;
    let one = notes.get(&c, viewer, &id, Some(true)).await;
    let whole = notes.text(&c, viewer, &id, 0, 100).await;
    let counted = match notes.stats(&c, viewer).await.unwrap().total {
        0 => "",
        _ => MARK,
    };
    vec![
        ("note search", text(&found.unwrap().results)),
        ("note by id", text(&by_id.unwrap().results)),
        ("note list", text(&listed.unwrap())),
        ("note get", text(&one.unwrap())),
        ("note text", text(&whole.unwrap())),
        ("note stats", counted.to_owned()),
    ]
}

async fn id_of(memory: &Memory, kind: Kind) -> Id {
    let records = all(memory).await;
    records
        .into_iter()
        .find(|record| record.kind == kind)
        .unwrap()
        .id
}

/// What a node reads: each scope by itself, and the context that is made of all.
async fn read(memory: &Memory, user: &str, agent: &str) -> Vec<(String, String)> {
    let query = MemoryQuery {
        query: Some(MARK.to_owned()),
        task_type: Some("feed".to_owned()),
        ..MemoryQuery::new(user, "s1", agent, Scope::ALL)
    };
    let items = memory.read(&ctx(), &query).await.unwrap();
    let mut read: Vec<(String, String)> = items
        .iter()
        .map(|item| (item.scope.to_string(), text(item)))
        .collect();
    let context = memory
        .context(&ctx(), &ContextQuery::new(query, 4000), &Bound)
        .await
        .unwrap();
    read.push(("context".to_owned(), context.compiled.text));
    read
}

fn stores(folder: &std::path::Path) -> Vec<Memory> {
    let ram = Memory::builder(Arc::new(Ram::new()), Ids::new(7)).build();
    let file = Sqlite::open(&folder.join("m.db")).unwrap();
    vec![ram, Memory::builder(Arc::new(file), Ids::new(7)).build()]
}

#[test]
fn every_way_to_read_shows_exactly_what_the_viewer_may_see() {
    let folder = tempfile::tempdir().unwrap();
    wait(async {
        for memory in stores(folder.path()) {
            fill(&memory).await;
            for audience in audiences() {
                give_all_to(&memory, &audience).await;
                for viewer in viewers() {
                    for (way, answer) in answers(&memory, &viewer).await {
                        let sees = viewer.sees(&audience);
                        assert_eq!(
                            answer.contains(MARK),
                            sees,
                            "{way}: {viewer:?} looks at {audience}: {answer}"
                        );
                    }
                }
                for agent in ["planner", "other"] {
                    let viewer = Viewer::person(Some("ann".to_owned()), Some(agent.to_owned()));
                    for (way, answer) in read(&memory, "ann", agent).await {
                        let sees = viewer.sees(&audience);
                        assert_eq!(
                            answer.contains(MARK),
                            sees,
                            "{way}: ann at {agent} reads {audience}: {answer}"
                        );
                    }
                }
            }
        }
    });
}

#[test]
fn a_record_is_for_its_user_or_for_everyone_unless_it_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    wait(async {
        for memory in stores(folder.path()) {
            let draft = |user: Option<&str>| Draft {
                owner: mnemon_core::Owner {
                    user: user.map(str::to_owned),
                    ..mnemon_core::Owner::default()
                },
                ..Draft::note(format!("{MARK} of {user:?}"))
            };
            let drafts = vec![draft(Some("ann")), draft(Some("bob")), draft(None)];
            memory.records().add(&ctx(), drafts, None).await.unwrap();
            let seen = async |viewer: Viewer| {
                let query = Query::new(MARK, Filter::seen_by(viewer));
                memory.records().search(&ctx(), &query).await.unwrap().len()
            };
            assert_eq!(seen(Viewer::Tenant).await, 3);
            assert_eq!(seen(Viewer::user("ann")).await, 2);
            assert_eq!(seen(Viewer::ANYONE).await, 1);
            assert!(
                all(&memory)
                    .await
                    .iter()
                    .all(|record| record.audience.is_none())
            );
        }
    });
}

#[test]
fn agents_have_private_memory_beside_what_is_shared() {
    let sandbox = Sandbox::new();
    let add = |text: &str, more: &[&str]| {
        let mut args = vec!["add", text];
        args.extend(more);
        sandbox.run(&args).ok();
    };
    add(
        "the quokka plan is private",
        &["--audience", "agent:planner"],
    );
    add(
        "the quokka plan of ann",
        &["--user", "ann", "--audience", "agent:planner"],
    );
    add("the quokka is a marsupial", &[]);
    let search = |more: &[&str]| {
        let mut args = vec!["search", MARK, "--json"];
        args.extend(more);
        sandbox.run(&args).json()["hits"].as_array().unwrap().len()
    };
    assert_eq!(search(&[]), 3, "without a user the tenant looks");
    assert_eq!(search(&["--agent", "planner"]), 2);
    assert_eq!(search(&["--user", "ann"]), 1, "Ann is not the planner");
    assert_eq!(search(&["--user", "ann", "--own"]), 0);
    assert_eq!(search(&["--user", "ann", "--agent", "planner"]), 2);
    assert_eq!(search(&["--user", "ann", "--agent", "planner", "--own"]), 1);
    let read = |agent: &str| {
        let args = ["read", "--user", "bob", "--session", "s1", "--query", MARK];
        let args = [&args[..], &["--scope", "semantic", "--agent", agent]].concat();
        let answer = sandbox.run(&[&args[..], &["--json"]].concat()).json();
        let docs = &answer["items"][0]["payload"]["docs"];
        docs.as_array().unwrap().len()
    };
    assert_eq!(read("planner"), 3);
    assert_eq!(read("other"), 1);
    // It survives a way out and back in.
    let exported = sandbox.run(&["export"]).ok();
    assert_eq!(exported.matches(r#""audience":"agent:planner""#).count(), 2);
    let other = Sandbox::new();
    other.pipe(exported.as_bytes(), &["import", "-"]).ok();
    assert_eq!(
        other
            .run(&["export"])
            .ok()
            .matches("agent:planner\",\"scope")
            .count(),
        2
    );
    // Forgetting Ann reaches what only the planner may see.
    sandbox
        .run(&["forget", "--user", "ann", "--purge", "--yes"])
        .ok();
    assert_eq!(search(&[]), 2);
    let (_, wrong) = sandbox.run(&["add", "x", "--audience", "planner"]).failed();
    assert!(
        wrong.contains("user:NAME, agent:NAME, team:NAME or everyone"),
        "{wrong}"
    );
}

#[test]
fn a_user_sees_own_and_shared_records_in_every_command() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["note", "add", "tea for ann", "--user", "ann"])
        .ok();
    sandbox
        .run(&["note", "add", "coffee for bob", "--user", "bob"])
        .ok();
    sandbox.run(&["note", "add", "water for everybody"]).ok();
    for command in [
        &["list"][..],
        &["search", "tea coffee water", "--min-score", "0"],
        &["note", "list"],
        &["note", "search", "tea coffee water", "--min-score", "0"],
    ] {
        let shown = |more: &[&str]| {
            let shown = sandbox.run(&[command, more].concat()).ok();
            ["tea", "coffee", "water"].map(|word| shown.contains(&format!("{word} for")))
        };
        assert_eq!(shown(&[]), [true; 3], "{command:?}");
        assert_eq!(
            shown(&["--user", "ann"]),
            [true, false, true],
            "{command:?}"
        );
        let own = shown(&["--user", "ann", "--own"]);
        assert_eq!(own, [true, false, false], "{command:?}");
        let (code, said) = sandbox.run(&[command, &["--own"]].concat()).failed();
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("--own: needs --user"), "{said}");
    }
    // Other commands mean the records that belong to the user.
    let exported = sandbox.run(&["export", "--user", "ann"]).ok();
    assert_eq!(exported.lines().count(), 1, "{exported}");
    sandbox.run(&["forget", "--user", "ann", "--yes"]).ok();
    let left = sandbox.run(&["list"]).ok();
    assert!(left.contains("water") && !left.contains("tea"), "{left}");
}

#[test]
fn a_shared_page_is_found_beside_thousands_of_users_notes() {
    let sandbox = Sandbox::new();
    let mut lines = String::new();
    for user in 0..5000 {
        let note =
            json!({"content": "deploy the tea service", "owner": {"user": format!("u{user}")}});
        lines += &format!("{note}\n");
    }
    lines += r#"{"content":"Runbook: deploy the tea service with two keys"}"#;
    sandbox.pipe(lines.as_bytes(), &["add", "--jsonl"]).ok();
    let query = ["chat", "query", "deploy tea service", "--user", "nobody"];
    let told = sandbox.run(&query).ok();
    assert!(told.contains("two keys"), "{told}");
}
