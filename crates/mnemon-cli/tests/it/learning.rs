//! Learning as users meet it: the commands, on every store.

use mnemon_engine::Memory;
use mnemon_operations::config::Config;
use mnemon_operations::{api, wiring};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const STORE: &str = "MNEMON_STORE";

/// Twelve runs that went well, six with a mistake on the way, and four that went wrong.
fn steps() -> Vec<Value> {
    let mut steps = Vec::new();
    for run in 0..16 {
        let trace = format!("t{run}");
        let step = |tool: &str, input: Value, error: Option<&str>| {
            json!({
                "task_type": "deploy_app", "tool": tool, "input": input, "error": error,
                "trace_id": trace, "metadata": {"request": format!("put shop number {run} online")},
            })
        };
        let mut of_run = vec![step(
            "make_repo",
            json!({"template": "nextjs", "name": format!("shop{run}")}),
            None,
        )];
        if run % 4 == 3 {
            of_run.push(step("upload_by_hand", json!({}), Some("permission denied")));
        } else {
            if run % 2 == 0 {
                of_run.push(step(
                    "run_cmd",
                    json!({"cmd": "npm instal"}),
                    Some("unknown command"),
                ));
            }
            of_run.push(step("run_cmd", json!({"cmd": "npm install"}), None));
            of_run.push(step("publish", json!({"to": "vercel"}), None));
        }
        let ended = if run % 4 == 3 { "failure" } else { "success" };
        of_run.last_mut().unwrap()["metadata"]["outcome"] = json!(ended);
        steps.extend(of_run);
    }
    steps
}

async fn fill(memory: &Memory, config: &Config, steps: Vec<Value>) {
    for step in steps {
        let owner = serde_json::from_value(json!({"user": "ann"})).unwrap();
        let step = serde_json::from_value(step).unwrap();
        let ctx = wiring::stamp(config).unwrap();
        api::experience::log(memory, &ctx, &owner, step)
            .await
            .unwrap();
    }
}

/// Logs these steps as Ann's.
fn fill_store(store: &str, steps: Vec<Value>) {
    let config = Config::for_store(store);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let memory = wiring::open(&config).unwrap().memory;
        fill(&memory, &config, steps).await;
    });
}

/// A sandbox whose store has lived through all that.
fn lived(scheme: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let store = format!("{scheme}:{}", sandbox.path("store").display());
    fill_store(&store, steps());
    sandbox.with(STORE, &store)
}

fn skill_of(sandbox: &Sandbox) -> Value {
    let listed = sandbox.run(&["skill", "list", "--json"]).json();
    let skills = listed["skills"].as_array().unwrap();
    let skill = skills.iter().find(|one| one.get("skill").is_some());
    skill
        .cloned()
        .unwrap_or_else(|| panic!("no skill in {listed}"))
}

#[test]
fn from_steps_to_a_skill_that_agents_are_told() {
    for scheme in ["sqlite", "jsonl"] {
        let sandbox = lived(scheme);
        let dry = sandbox.run(&["learn", "dry-run"]).ok();
        assert!(
            dry.contains("active") && dry.contains("make_repo → run_cmd → publish"),
            "{dry}"
        );
        assert_eq!(
            sandbox.run(&["skill", "list", "--json"]).json()["skills"],
            json!([])
        );
        let learnt = sandbox.run(&["learn", "run"]).ok();
        assert!(learnt.contains("make_repo → run_cmd → publish"), "{learnt}");
        let status = sandbox.run(&["learn", "status", "--json"]).json();
        assert_eq!(status["steps"], steps().len());
        let skill = skill_of(&sandbox);
        assert_eq!(skill["evidence"]["status"], "active");
        assert_eq!(skill["evidence"]["support"], 12);
        assert_eq!(
            skill["skill"]["tool_sops"][1]["action"],
            "with cmd = npm install"
        );
        let shown = sandbox
            .run(&["skill", "show", skill["id"].as_str().unwrap()])
            .ok();
        assert!(shown.contains("12/12 succeeded with it"), "{shown}");
        assert!(shown.contains("otherwise  0/4 without it"), "{shown}");
        let told = sandbox
            .run(&["skill", "search", "shop", "--task-type", "deploy_app"])
            .ok();
        assert!(
            told.contains("2. run_cmd: with cmd = npm install"),
            "{told}"
        );
        let read = [
            "read",
            "--user",
            "ann",
            "--session",
            "s1",
            "--scope",
            "procedural",
        ];
        let read = sandbox
            .run(&[&read[..], &["--task-type", "deploy_app"]].concat())
            .ok();
        assert!(read.contains("1. make_repo"), "{read}");
        let again = sandbox.run(&["learn", "run"]).ok();
        assert!(again.starts_with("0 steps read"), "{again}");
    }
}

/// Twelve runs in which nothing goes wrong.
fn easy_steps() -> Vec<Value> {
    let steps = (0..12).flat_map(|run| {
        ["make_repo", "run_cmd", "publish"].map(|tool| {
            let outcome = (tool == "publish").then_some("success");
            let metadata = outcome.map_or(json!({}), |said| json!({ "outcome": said }));
            json!({
                "task_type": "deploy_app", "tool": tool, "trace_id": format!("t{run}"),
                "metadata": metadata,
            })
        })
    });
    steps.collect()
}

#[test]
fn learning_says_what_it_found_and_did_not_keep() {
    let sandbox = Sandbox::new();
    let store = format!("sqlite:{}", sandbox.path("store").display());
    fill_store(&store, easy_steps());
    let sandbox = sandbox.with(STORE, &store);
    let said = "deploy_app: a procedure of 3 steps (make_repo → run_cmd → publish) was found, not \
                kept: too easy: 0 of 2 complexity points";
    for verb in ["dry-run", "run", "status"] {
        let text = sandbox.run(&["learn", verb]).ok();
        assert!(text.contains(said), "{verb}: {text}");
    }
    let status = sandbox.run(&["learn", "status", "--json"]).json();
    assert_eq!(status["not_kept"][0]["task_type"], "deploy_app");
    let why = status["not_kept"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("too easy"), "{why}");
}

#[test]
fn a_users_own_skills_are_listed_and_exported_for_that_user_only() {
    let sandbox = lived("sqlite");
    sandbox.run(&["learn", "run"]).ok();
    let listed = |user: &str| {
        let args = ["skill", "list", "--user", user, "--json"];
        let skills = sandbox.run(&args).json()["skills"].clone();
        skills.as_array().unwrap().len()
    };
    assert!(listed("ann") > 0);
    assert_eq!(listed("bob"), 0);
    let exported = |user: &str| {
        let args = ["skill", "export", &format!("for-{user}"), "--user", user];
        sandbox.run(&args).ok()
    };
    assert_eq!(exported("ann"), "deploy-app/SKILL.md\n");
    assert_eq!(exported("bob"), "");
}

#[test]
fn upkeep_learns_on_the_side() {
    let sandbox = lived("sqlite");
    let done = sandbox.run(&["upkeep", "--json"]).json();
    assert_eq!(done["steps"], steps().len());
    assert!(done["learnt"].as_u64().unwrap() >= 1, "{done}");
    skill_of(&sandbox);
}

#[test]
fn people_have_the_last_word() {
    let sandbox = lived("sqlite");
    sandbox.run(&["learn", "run"]).ok();
    let id = skill_of(&sandbox)["id"].as_str().unwrap().to_owned();
    let status = |args: &[&str]| {
        let mut args = args.to_vec();
        args.push("--json");
        sandbox.run(&args).json()["evidence"]["status"].clone()
    };
    assert_eq!(
        status(&["skill", "retire", &id, "--why", "the shop is closed"]),
        "retired"
    );
    let told = ["skill", "search", "--task-type", "deploy_app", "--json"];
    assert_eq!(sandbox.run(&told).json()["skills"], json!([]));
    assert_eq!(status(&["skill", "approve", &id]), "active");
    assert_eq!(status(&["skill", "pin", &id]), "active");
    let edited = sandbox
        .run(&["skill", "edit", &id, "--preferences", "ask first"])
        .ok();
    assert!(
        edited.contains("Prefer: ask first") && edited.contains("pinned, approved, edited"),
        "{edited}"
    );
    assert_eq!(status(&["skill", "reject", &id]), "retired");
    let (code, error) = sandbox.run(&["skill", "approve", "nobody"]).failed();
    assert_eq!(code, 3);
    assert!(error.contains("no skill or rule nobody"), "{error}");
    let (code, _) = sandbox.run(&["skill", "edit", &id]).failed();
    assert_eq!(code, 2);
    let (code, error) = sandbox.run(&["skill", "list", "--status", "good"]).failed();
    assert_eq!(code, 2);
    assert!(error.contains("candidate, active, retired"), "{error}");
}

#[test]
fn skills_go_out_as_files_and_come_back() {
    let sandbox = lived("sqlite");
    sandbox.run(&["learn", "run"]).ok();
    let written = sandbox.run(&["skill", "export", "skills"]).ok();
    assert_eq!(written, "deploy-app/SKILL.md\n");
    let text = std::fs::read_to_string(sandbox.path("skills/deploy-app/SKILL.md")).unwrap();
    assert!(
        text.starts_with("---\nname: deploy-app\ndescription: \"deploy app"),
        "{text}"
    );
    // Writing over an earlier export is fine.
    sandbox.run(&["skill", "export", "skills"]).ok();
    let json = sandbox.run(&["skill", "export"]).ok();
    let other = Sandbox::new();
    let from = sandbox.path("skills").display().to_string();
    let taken = other.run(&["skill", "import", &from, "--user", "bob"]).ok();
    assert_eq!(taken, "1 skill imported\n");
    let there = skill_of(&other);
    assert_eq!(there["skill"], skill_of(&sandbox)["skill"]);
    assert_eq!(there["audience"], "user:bob");
    let third = Sandbox::new();
    third.pipe(json.as_bytes(), &["skill", "import", "-"]).ok();
    assert_eq!(skill_of(&third)["skill"], there["skill"]);
    // A file that is none names itself, and nothing is taken in.
    std::fs::create_dir_all(sandbox.path("skills/broken")).unwrap();
    std::fs::write(sandbox.path("skills/broken/SKILL.md"), "# hello").unwrap();
    let fourth = Sandbox::new();
    let (code, error) = fourth.run(&["skill", "import", &from]).failed();
    assert_eq!(code, 2);
    assert!(error.contains("broken/SKILL.md"), "{error}");
    assert_eq!(
        fourth.run(&["skill", "list", "--json"]).json()["skills"],
        json!([])
    );
}

#[test]
fn experience_is_logged_and_looked_at() {
    let sandbox = Sandbox::new();
    let step = r#"{"task_type":"deploy","tool":"run_cmd","error":"no such file","trace_id":"t1"}"#;
    sandbox
        .run(&["experience", "log", step, "--user", "ann"])
        .ok();
    let good = r#"{"task_type":"deploy","tool":"look","trace_id":"t2"}"#;
    sandbox
        .run(&["experience", "log", good, "--user", "ann"])
        .ok();
    let failures = sandbox
        .run(&["experience", "failures", "--task-type", "deploy"])
        .ok();
    assert!(
        failures.contains("run_cmd failed: no such file"),
        "{failures}"
    );
    let traces = sandbox.run(&["experience", "traces"]).ok();
    assert!(
        traces.starts_with("t2\n") && traces.contains("look done"),
        "{traces}"
    );
    let (code, error) = sandbox.run(&["experience", "log", "{\"tol\":1}"]).failed();
    assert_eq!(code, 2);
    assert!(error.contains("unknown field `tol`"), "{error}");
    let (code, error) = sandbox.run(&["experience", "log", "{}"]).failed();
    assert_eq!(code, 2);
    assert!(error.contains("name the tool"), "{error}");
}
