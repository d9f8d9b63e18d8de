//! Reading and writing by scope, policies, and forgetting a session, as users meet them.

use mnemon_core::{Ctx, Filter, Owner, Scan, Scope};
use mnemon_engine::{Draft, Memory, MemoryWriteEvent, Query};
use mnemon_operations::config::Config;
use mnemon_operations::{api, wiring};
use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox};

const ANN: [&str; 4] = ["--user", "ann", "--session", "s1"];

fn write(sandbox: &Sandbox, scope: &str, data: &str) -> Ran {
    let mut args = vec!["write", "--scope", scope, "--data", data];
    args.extend(ANN);
    sandbox.run(&args)
}

fn read(sandbox: &Sandbox, more: &[&str]) -> Ran {
    let mut args = vec!["read", "--query", "green tea", "--task-type", "shop"];
    args.extend(ANN);
    args.extend(more);
    sandbox.run(&args)
}

fn fill(sandbox: &Sandbox) {
    for (scope, data) in [
        ("dialog", r#"{"role":"user","content":"I want green tea"}"#),
        ("dialog", r#"{"summary":"Ann is shopping."}"#),
        ("state", r#"{"state":{"cart":1}}"#),
        (
            "state",
            r#"{"tasks":[{"id":"look"},{"id":"buy","depends_on":["look"]}]}"#,
        ),
        ("semantic", r#"{"content":"Green tea is sold in bags"}"#),
        (
            "procedural",
            r#"{"use_when":"buy green tea","tool_sops":[{"tool":"shop","action":"order"}]}"#,
        ),
        ("profile", r#"{"name":"Ann"}"#),
        (
            "experience",
            r#"{"tool":"pay","task_type":"shop","error":"no money"}"#,
        ),
    ] {
        write(sandbox, scope, data).ok();
    }
}

#[test]
fn what_is_written_is_read_by_people_and_programs() {
    let sandbox = Sandbox::new();
    fill(&sandbox);
    insta::assert_snapshot!(sandbox.redact(&read(&sandbox, &[]).ok()));
    let answer = read(
        &sandbox,
        &["--json", "--scope", "profile", "--scope", "state"],
    )
    .json();
    let items = answer["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(
        items[0],
        json!({"scope": "profile", "payload": {"profile": {"name": "Ann"}, "version": 1}})
    );
    assert_eq!(items[1]["payload"]["startable"], json!(["look"]));
}

#[test]
fn data_comes_from_the_argument_a_file_or_stdin() {
    let sandbox = Sandbox::new();
    let file = format!(
        "@{}",
        sandbox.file("data.json", r#"{"fact":"from a file"}"#)
    );
    write(&sandbox, "dialog", &file).ok();
    let mut args = vec!["write", "--scope", "dialog", "--data", "-", "--json"];
    args.extend(ANN);
    let receipt = sandbox.pipe(b"{\"fact\":\"from stdin\"}\n", &args).json();
    assert_eq!(receipt["items"][0]["fate"], "stored");
    let told = read(&sandbox, &["--scope", "dialog"]).ok();
    assert!(
        told.contains("from a file") && told.contains("from stdin"),
        "{told}"
    );
}

#[test]
fn mistakes_are_told_and_nothing_is_written() {
    let sandbox = Sandbox::new();
    write(&sandbox, "profile", r#"{"name":"Ann"}"#).ok();
    let before = sandbox.state();
    for (scope, data, expected) in [
        ("profile", "{", "data: is not JSON"),
        ("profile", "[1]", "data: is not a JSON object"),
        (
            "dialog",
            "{}",
            "give one of: content, messages, summary, fact",
        ),
        (
            "experience",
            r#"{"tool":"t","latency_ms":-1}"#,
            "data.latency_ms",
        ),
        (
            "procedural",
            r#"{"use_when":"x","tool_sops":[{"tool":"t"}]}"#,
            "data.tool_sops[0]",
        ),
        (
            "semantic",
            r#"{"text":"x"}"#,
            "unknown field `text`, expected one of `content`",
        ),
        ("dreams", "{}", "invalid value 'dreams'"),
    ] {
        let (code, error) = write(&sandbox, scope, data).failed();
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(expected), "{data}: {error}");
    }
    let (code, error) = sandbox.run(&["read", "--session", "s1"]).failed();
    assert_eq!(code, 2);
    assert!(error.contains("--user"), "{error}");
    let (_, error) = sandbox
        .run(&["read", "--session", "s1", "--user", ""])
        .failed();
    assert!(error.contains("--user: is empty"), "{error}");
    assert_eq!(sandbox.state(), before);
}

#[test]
fn a_stale_save_exits_as_a_conflict() {
    let sandbox = Sandbox::new();
    write(&sandbox, "state", r#"{"state":{"n":1}}"#).ok();
    let mut args = vec![
        "write",
        "--scope",
        "state",
        "--data",
        r#"{"state":{"n":2}}"#,
    ];
    args.extend(["--meta", r#"{"expected_version":7}"#]);
    args.extend(ANN);
    let (code, error) = sandbox.run(&args).failed();
    assert_eq!(code, 4);
    assert!(
        error.contains("version 7 was expected, version 1 is there"),
        "{error}"
    );
}

#[test]
fn policies_come_from_the_file() {
    let sandbox = Sandbox::new();
    sandbox.config(
        "[policy.smart_buyer]\nuse_profile = false\nwrite_experience = false\n\
         max_items = { dialog = 0 }\n[policy.smart_buyer.agents.planner]\nuse_profile = true\n",
    );
    fill(&sandbox);
    let flow = [
        "--flow",
        "smart_buyer",
        "--scope",
        "profile",
        "--scope",
        "dialog",
    ];
    let told = read(&sandbox, &flow).ok();
    assert!(
        told.contains("profile: left out: the policy says use_profile = false"),
        "{told}"
    );
    assert!(
        told.contains("dialog: (2 more have no room under the policy)"),
        "{told}"
    );
    let told = read(&sandbox, &[&flow[..], &["--agent", "planner"]].concat()).ok();
    assert!(told.contains("name: Ann"), "{told}");
    let mut args = vec![
        "write",
        "--scope",
        "experience",
        "--data",
        r#"{"tool":"x"}"#,
    ];
    args.extend(ANN);
    args.extend(["--flow", "smart_buyer"]);
    let told = sandbox.run(&args).ok();
    assert_eq!(
        told,
        "left out (the policy says write_experience = false)\n"
    );

    let shown = sandbox
        .run(&["policy", "show", "smart_buyer", "--agent", "planner"])
        .ok();
    let rows: Vec<String> = shown
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    insta::assert_snapshot!(sandbox.redact(&rows.join("\n")));
    let unknown = sandbox.run(&["policy", "show", "nobody", "--json"]).json();
    let origins = unknown["values"].as_array().unwrap().iter();
    assert!(origins.clone().all(|row| row["origin"] == "default"));
    assert_eq!(origins.count(), 37);
    let config = sandbox.run(&["config"]).ok();
    assert!(
        config.contains("policy.default.max_dialog_turns"),
        "{config}"
    );
    assert!(
        config.contains("policy.smart_buyer.agents.planner.use_profile"),
        "{config}"
    );
}

#[test]
fn writing_too_often_says_when_to_come_back() {
    let sandbox = Sandbox::new();
    sandbox.config("[policy.default]\nwrites_per_minute = { profile = 0 }\n");
    let (code, error) = write(&sandbox, "profile", r#"{"a":1}"#).failed();
    assert_eq!(code, 14);
    assert!(error.contains("at most 0 writes per minute"), "{error}");
}

#[test]
fn a_session_is_forgotten_and_comes_back() {
    let sandbox = Sandbox::new();
    fill(&sandbox);
    let forget = ["chat", "delete", "s1", "--user", "ann"];
    let before = sandbox.run(&["export"]).ok();
    let purge = [&forget[..], &["--purge"]].concat();
    let (code, error) = sandbox.run(&purge).failed();
    assert_eq!(code, 2);
    assert!(error.contains("Add --yes to confirm"), "{error}");
    assert_eq!(sandbox.run(&["export"]).ok(), before);

    let told = sandbox.run(&forget).ok();
    assert!(
        told.starts_with("deleted: 5 records\nundo with: mnemon undo "),
        "{told}"
    );
    let read_back = read(&sandbox, &[]).ok();
    assert!(
        !read_back.contains("I want green tea") && read_back.contains("name: Ann"),
        "{read_back}"
    );
    let (code, again) = sandbox.run(&[&forget[..], &["--yes"]].concat()).failed();
    assert_eq!(code, 3);
    assert!(
        again.contains("user `ann` has no conversation `s1`"),
        "{again}"
    );

    let commit = told.trim_end().rsplit(' ').next().unwrap();
    sandbox.run(&["undo", commit]).ok();
    assert!(read(&sandbox, &[]).ok().contains("I want green tea"));
    let told = sandbox
        .run(&[&forget[..], &["--yes", "--purge", "--json"]].concat())
        .json();
    let purged = json!({"status": "purged", "records": 5, "kept": 0});
    assert_eq!(told, purged);
    assert!(!sandbox.state().contains("I want green tea"));
}

async fn tell(memory: &Memory, config: &Config, session: &str, scope: Scope, data: Value) {
    let event = MemoryWriteEvent {
        user_id: "ann".to_owned(),
        session_id: session.to_owned(),
        agent_id: "planner".to_owned(),
        flow_id: Some("buyer".to_owned()),
        node_id: None,
        scope,
        data: data.as_object().unwrap().clone(),
        meta: serde_json::Map::new(),
    };
    let ctx = wiring::stamp(config).unwrap();
    memory.write(&ctx, &event).await.unwrap();
}

/// More than a page of messages, what was derived from them, and a session beside it.
async fn two_sessions(memory: &Memory, config: &Config) {
    for (session, animal) in [("s1", "quokka"), ("s2", "wombat")] {
        let messages: Vec<Value> = (0..1500)
            .map(|n| json!({"role": "user", "content": format!("{animal} number {n}")}))
            .collect();
        let said = json!({ "messages": messages });
        tell(memory, config, session, Scope::Dialog, said).await;
        let step = json!({"tool": "quokka", "task_type": "zoo", "error": "bitten"});
        tell(memory, config, session, Scope::Experience, step).await;
        let saved = json!({"state": {"quokka": 1}});
        tell(memory, config, session, Scope::State, saved).await;
    }
    tell(
        memory,
        config,
        "s1",
        Scope::Profile,
        json!({"pet": "quokka"}),
    )
    .await;
    let note = json!({"content": "A quokka is a small kangaroo", "shared": true});
    tell(memory, config, "s1", Scope::Semantic, note).await;
    let ctx = wiring::stamp(config).unwrap();
    let context = memory
        .dialog()
        .get_context(&ctx, &mnemon_core::Viewer::Tenant, "ann", "s1", 3)
        .await;
    let turns = context.unwrap().turns;
    let (said, other) = (&turns[0].messages[0].id, &turns[1].messages[0].id);
    let book = Draft {
        id: Some("book".parse().unwrap()),
        ..Draft::note("The quokka book")
    };
    let only = Draft {
        derived_from: vec![said.clone(), other.clone()],
        ..Draft::note("quokka lesson of this session only")
    };
    let both = Draft {
        derived_from: vec![said.clone(), "book".parse().unwrap()],
        ..Draft::note("quokka lesson of the book and the session")
    };
    let drafts = vec![book, only, both];
    memory.records().add(&ctx, drafts, None).await.unwrap();
}

async fn nothing_is_found(memory: &Memory, ctx: &Ctx, store: &str) {
    let search = Query {
        limit: 1000,
        ..Query::new("quokka", Filter::all_of_tenant())
    };
    let hits = memory.search(ctx, &search).await.unwrap();
    for hit in &hits {
        assert_ne!(hit.record.owner.session.as_deref(), Some("s1"), "{store}");
        assert!(!hit.record.content.contains("session only"), "{store}");
    }
    let kept = hits.iter().filter(|hit| hit.record.owner.session.is_none());
    assert_eq!(
        kept.count(),
        4,
        "{store}: profile, note, book, and what the book taught"
    );
    let owner = Owner {
        session: Some("s1".to_owned()),
        ..Owner::default()
    };
    let filter = Filter {
        owner,
        ..Filter::all_of_tenant()
    };
    let left = api::list::run(memory, ctx, Scan::new(filter, 50));
    let left = left.await.unwrap();
    assert!(left.records.is_empty(), "{store}");
}

#[test]
fn no_store_finds_anything_of_a_forgotten_session() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for store in [
        "ram:".to_owned(),
        format!("sqlite:{}", folder.path().join("m.db").display()),
        format!("jsonl:{}", folder.path().join("lines").display()),
    ] {
        let config = Config::for_store(&store);
        runtime.block_on(async {
            let memory = wiring::open(&config).unwrap().memory;
            two_sessions(&memory, &config).await;
            let ctx = wiring::stamp(&config).unwrap();
            let request = api::session_forget::Request {
                user: "ann".to_owned(),
                session: "s1".to_owned(),
                ..api::session_forget::Request::default()
            };
            let gone = api::session_forget::run(&memory, &ctx, request.clone())
                .await
                .unwrap();
            let gone = gone.forgotten;
            assert_eq!((gone.records, gone.kept), (1503, 1), "{store}");
            nothing_is_found(&memory, &ctx, &store).await;
            let again = api::session_forget::run(&memory, &ctx, request)
                .await
                .unwrap();
            let nothing = mnemon_engine::Forgotten::default();
            assert_eq!(again.forgotten, nothing, "{store}");
        });
    }
}
