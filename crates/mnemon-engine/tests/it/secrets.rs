//! Secrets stay out, whichever way they would come in.

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::ram::Ram;
use mnemon_core::secrets::SecretPolicy;
use mnemon_core::{
    Ctx, ErrorKind, Expect, Filter, Ids, Kind, Message, Origin, Owner, Role, Scan, Scope,
};
use mnemon_engine::agentfiles::{
    AgentFiles, Blocker, ContextChange, Decision, EntryChange, FieldText, Handoff, Learning, ROOT,
    SessionEnd,
};
use mnemon_engine::notes::NewNote;
use mnemon_engine::session::{FolderSessions, JsonSessions, SessionState, Sessions};
use mnemon_engine::{
    Document, Draft, Error, LogLine, Memory, OnConflict, Project, ProjectConfig, Safety, Sop, Step,
    Utterance,
};
use mnemon_testkit::fakes::FilesInRam;
use serde_json::{Map, Value, json};

use crate::session::sid;
use crate::{ctx, wait};

/// A part of the key that no mask shows.
const INNER: &str = "a8Kd03";

/// Put together here so that no scanner takes this file for a leak.
fn key() -> String {
    format!("gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3", "p")
}

fn says() -> String {
    format!("deploy with {} today", key())
}

struct Desk {
    ctx: Ctx,
    memory: Arc<Memory>,
    files: Arc<FilesInRam>,
    agents: AgentFiles,
    safety: Safety,
}

fn desk(secrets: SecretPolicy) -> Desk {
    let safety = Safety { secrets };
    let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7)).safety(safety);
    let files = Arc::new(FilesInRam::default());
    let agents = AgentFiles::new(files.clone(), ROOT).unwrap();
    for name in ["ann", "bob"] {
        let path = format!("{ROOT}/teams/core/{name}.md");
        let text = format!("---\nname: {name}\n---\n");
        wait(files.write(&path, text.as_bytes(), None)).unwrap();
    }
    Desk {
        ctx: ctx(),
        memory: Arc::new(memory.build()),
        files,
        agents: agents.safety(safety).creating(true),
        safety,
    }
}

impl Desk {
    /// Everything that is kept, in one text.
    fn everything(&self) -> String {
        let scan = Scan::new(Filter::all_of_tenant(), 1000);
        let records = wait(self.memory.records().list(&ctx(), &scan)).unwrap();
        let mut all = serde_json::to_string(&records.records).unwrap();
        for file in wait(self.files.list("")).unwrap() {
            let bytes = wait(self.files.read(&file.path)).unwrap().unwrap().bytes;
            all.push_str(&String::from_utf8(bytes).unwrap());
        }
        all
    }

    fn write(&self, scope: Scope, data: Value) -> Result<(), Error> {
        let event = crate::facade::event(scope, data);
        wait(self.memory.write(&self.ctx, &event)).map(drop)
    }

    fn add(&self, draft: Draft) -> Result<(), Error> {
        wait(self.memory.records().add(&self.ctx, vec![draft], None)).map(drop)
    }

    fn project(&self) -> Project {
        let (files, log) = (self.files.clone(), self.files.clone());
        Project::new(files, log, "/project", ProjectConfig::default()).unwrap()
    }

    fn save(&self, place: &dyn Sessions) -> Result<(), Error> {
        let mut state = SessionState::new(sid("s1"));
        state.components = map(json!({"agent": {"said": says()}, "list": [says()]}));
        wait(place.save(&self.ctx, &state, None))
    }
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn sop() -> Sop {
    let sop = json!({"use_when": "something is deployed",
        "tool_sops": [{"tool": "ssh", "action": says()}]});
    serde_json::from_value(sop).unwrap()
}

/// A way in, and its name.
type Way = (&'static str, fn(&Desk) -> Result<(), Error>);

const RECORDS: &[Way] = &[
    ("a note's content", |desk| {
        wait(
            desk.memory
                .notes()
                .add(&desk.ctx, NewNote::new(says()), None),
        )
        .map(drop)
    }),
    ("a note's tags", |desk| {
        let note = NewNote {
            // In capitals: tags are kept in small letters, and no key has only those.
            tags: vec![format!("AK{}", "IAZ7Q4M2X9K5T8W3R6"), key()],
            ..NewNote::new("tagged")
        };
        wait(desk.memory.notes().add(&desk.ctx, note, None)).map(drop)
    }),
    ("a note's source and metadata", |desk| {
        let note = NewNote {
            source: Some(says()),
            metadata: map(json!({"deep": [{"said": says()}], key(): 1})),
            ..NewNote::new("sourced")
        };
        wait(desk.memory.notes().add(&desk.ctx, note, None)).map(drop)
    }),
    ("a record of any kind", |desk| {
        Kind::ALL.iter().try_for_each(|kind| {
            desk.add(Draft {
                kind: Some(*kind),
                ..Draft::note(says())
            })
        })
    }),
    ("a record's other fields", |desk| {
        desk.add(Draft {
            summary: Some(says()),
            tags: vec![key()],
            source: Some(says()),
            body: Some(json!({"api_token": "9f86d081884c7d659a2feaa0c55ad015", "x": [says()]})),
            metadata: map(json!({"y": says()})),
            ..Draft::note("plain")
        })
    }),
    ("what is said to be derived", |desk| {
        // Masked whatever the policy says, for nobody could say it otherwise.
        desk.add(Draft {
            origin: Some(Origin::Derived),
            ..Draft::note(says())
        })?;
        match desk.safety.secrets {
            SecretPolicy::Refuse => desk.add(Draft::note(says())),
            _ => Ok(()),
        }
    }),
    ("a change", |desk| {
        let receipt = wait(
            desk.memory
                .records()
                .add(&desk.ctx, vec![Draft::note("x")], None),
        )?;
        let ids = [receipt.items[0].id.clone()];
        let found = wait(desk.memory.records().get(&desk.ctx, &ids))?;
        let mut record = found.into_iter().flatten().next().unwrap();
        record.body = Some(json!({"said": says()}));
        wait(desk.memory.records().update(&desk.ctx, record)).map(drop)
    }),
    ("an import", |desk| {
        let other = self::desk(SecretPolicy::Allow);
        other.add(Draft::note(says()))?;
        let scan = Scan::new(Filter::all_of_tenant(), 10);
        let records = wait(other.memory.records().list(&desk.ctx, &scan))?.records;
        let records = desk
            .memory
            .records()
            .import(&desk.ctx, records, OnConflict::Fail);
        wait(records).map(drop)
    }),
    ("a document", |desk| {
        let document = Document {
            uri: "notes.md".to_owned(),
            title: Some(says()),
            text: format!("# One\n\n{}\n", says()),
            tags: vec![key()],
            metadata: map(json!({"x": says()})),
            ..Document::default()
        };
        let receipts = wait(
            desk.memory
                .records()
                .add_documents(&desk.ctx, vec![document]),
        )?;
        let notices = receipts.into_iter().flat_map(|one| one.notices);
        desk.ctx.notices.extend(notices);
        Ok(())
    }),
    ("a message of a dialog", |desk| {
        desk.write(Scope::Dialog, json!({"role": "user", "content": says()}))
    }),
    ("a message's metadata", |desk| {
        let said = json!({"role": "user", "content": "x", "metadata": {"k": says()}});
        desk.write(Scope::Dialog, json!({ "messages": [said] }))
    }),
    ("what a tool is given", |desk| {
        let block = json!({"type": "tool_use", "id": "c1", "name": "ssh",
            "input": {"password": "hunter2!x", "note": says()}});
        let said = json!({"role": "assistant", "content": [block]});
        desk.write(Scope::Dialog, json!({ "messages": [said] }))?;
        let all = desk.everything();
        assert!(
            desk.safety.secrets == SecretPolicy::Allow || !all.contains("hunter2"),
            "{all}"
        );
        Ok(())
    }),
    ("a summary", |desk| {
        // It is derived, so that it is masked in any case.
        desk.write(Scope::Dialog, json!({ "summary": says() }))?;
        match desk.safety.secrets {
            SecretPolicy::Refuse => desk.write(Scope::Dialog, json!({ "fact": says() })),
            _ => Ok(()),
        }
    }),
    ("a fact", |desk| {
        desk.write(Scope::Dialog, json!({ "fact": says() }))
    }),
    ("a state", |desk| {
        desk.write(Scope::State, json!({"state": {"cart": [{"note": says()}]}}))
    }),
    ("tasks", |desk| {
        let step = json!({"task_id": "t", "step": "x", "status": "failed", "error": says()});
        desk.write(Scope::State, step)
    }),
    ("knowledge", |desk| {
        desk.write(Scope::Semantic, json!({ "content": says() }))
    }),
    ("a skill", |desk| {
        let owner = Owner::default();
        wait(
            desk.memory
                .procedural()
                .add_skill(&desk.ctx, &owner, sop(), None),
        )
        .map(drop)
    }),
    ("a skill from a file", |desk| {
        wait(desk.memory.learning().take_in(&desk.ctx, None, sop())).map(drop)
    }),
    ("a profile", |desk| {
        desk.write(Scope::Profile, json!({"about": {"note": says()}}))
    }),
    ("a step of experience", |desk| {
        let step = json!({"tool": "ssh", "input": {"x": says()}, "output": says(),
            "error": says()});
        desk.write(Scope::Experience, step)
    }),
    ("a step that was begun", |desk| {
        let step = |output: Value| Step {
            tool: Some("ssh".to_owned()),
            output,
            ..Step::default()
        };
        let experience = desk.memory.experience();
        let owner = Owner::default();
        let id = wait(experience.begin_step(&desk.ctx, &owner, step(Value::Null)))?;
        wait(experience.finish_step(&desk.ctx, &id, step(json!(says())))).map(drop)
    }),
    ("a saved session", |desk| {
        desk.save(&desk.memory.sessions(None)?)
    }),
];

const FILES: &[Way] = &[
    ("a conversation with a log", |desk| {
        let project = desk.project();
        let window = desk.memory.window("ann", "s1")?.in_project(&project)?;
        let said = Message::text("", Role::User, says());
        wait(window.add_message(&desk.ctx, said)).map(drop)
    }),
    ("a line in files", |desk| {
        let project = desk.project();
        let window = desk.memory.window("ann", "s1")?.in_project(&project)?;
        let said = LogLine::Action {
            tool: "ssh".to_owned(),
            params: json!({"x": says()}),
        };
        wait(window.append_line(&desk.ctx, &said, None)).map(drop)
    }),
    ("a session in a file", |desk| {
        let place = JsonSessions::new(desk.files.clone(), "json").safety(desk.safety);
        desk.save(&place)
    }),
    ("a session in a folder", |desk| {
        let (files, log) = (desk.files.clone(), desk.files.clone());
        desk.save(&FolderSessions::new(files, log, "folders").safety(desk.safety))
    }),
    ("a value in a folder", |desk| {
        let (files, log) = (desk.files.clone(), desk.files.clone());
        let place = FolderSessions::new(files, log, "folders").safety(desk.safety);
        wait(place.save_value(&sid("s1"), "agent", &json!(says())))?;
        wait(place.save_list(&sid("s1"), "list", &[json!(says())])).map(drop)
    }),
    ("an agent's description", |desk| {
        wait(desk.agents.begin(&desk.ctx, "coder", &says())).map(drop)
    }),
    ("an agent's decision", |desk| {
        let decision = Decision {
            title: "Deploy".to_owned(),
            context: says(),
            decision: says(),
            reasons: vec![says()],
            ..Decision::default()
        };
        wait(desk.agents.decide(&desk.ctx, "coder", &decision)).map(drop)
    }),
    ("an entry that is changed", |desk| {
        let decision = Decision {
            title: "Deploy".to_owned(),
            decision: "so".to_owned(),
            ..Decision::default()
        };
        wait(desk.agents.decide(&desk.ctx, "coder", &decision))?;
        let change = EntryChange {
            which: "Deploy".to_owned(),
            fields: vec![FieldText {
                label: "Reason".to_owned(),
                text: says(),
            }],
            ..EntryChange::default()
        };
        wait(desk.agents.change_entry(&desk.ctx, "coder", &change)).map(drop)
    }),
    ("an agent's learning", |desk| {
        let learning = Learning {
            title: "Deploy".to_owned(),
            pattern: says(),
            why: "x".to_owned(),
            ..Learning::default()
        };
        wait(desk.agents.learn(&desk.ctx, "coder", &learning)).map(drop)
    }),
    ("an agent's context", |desk| {
        let change = ContextChange {
            tasks: vec![says()],
            ..ContextChange::default()
        };
        wait(desk.agents.update_context(&desk.ctx, "coder", &change)).map(drop)
    }),
    ("an agent's whole context", |desk| {
        wait(desk.agents.rewrite_context(&desk.ctx, "coder", &says(), "")).map(drop)
    }),
    ("the end of a session", |desk| {
        let end = SessionEnd {
            context: ContextChange {
                notes: vec![says()],
                ..ContextChange::default()
            },
            ..SessionEnd::default()
        };
        wait(desk.agents.end(&desk.ctx, "coder", &end)).map(drop)
    }),
    ("a handoff", |desk| {
        let handoff = Handoff {
            from: "ann".to_owned(),
            to: "bob".to_owned(),
            task: says(),
            context: "x".to_owned(),
            deliverable: "y".to_owned(),
            ..Handoff::default()
        };
        wait(desk.agents.hand_off(&desk.ctx, "core", &handoff)).map(drop)
    }),
    ("a blocker", |desk| {
        let blocker = Blocker {
            title: says(),
            by: "ann".to_owned(),
            ..Blocker::default()
        };
        wait(desk.agents.block(&desk.ctx, "core", &blocker)).map(drop)
    }),
];

fn ways() -> impl Iterator<Item = &'static Way> {
    RECORDS.iter().chain(FILES)
}

#[test]
fn they_are_masked_on_every_way_in() {
    for (name, way) in ways() {
        let desk = desk(SecretPolicy::Mask);
        way(&desk).unwrap_or_else(|error| panic!("{name}: {error}"));
        let all = desk.everything();
        assert!(!all.contains(INNER), "{name}: {all}");
        assert!(
            !all.to_lowercase().contains("iaz7q4m2x9k5t8w3r6"),
            "{name}: {all}"
        );
        let marked = all.contains("[secret removed: ") || all.contains("secret-removed");
        assert!(marked, "{name}: {all}");
        let told = desk.ctx.notices.take().join(" ");
        // A single value of a session is saved without a call to report to.
        let tells = *name != "a value in a folder";
        assert_eq!(tells, told.contains("A secret was found"), "{name}: {told}");
        assert!(!told.contains(INNER), "{name}: {told}");
    }
}

#[test]
fn they_are_refused_on_every_way_in() {
    for (name, way) in ways() {
        let desk = desk(SecretPolicy::Refuse);
        let error = way(&desk)
            .err()
            .unwrap_or_else(|| panic!("{name} was taken"));
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
        let told = error.to_string();
        assert!(told.contains("holds a secret in line"), "{name}: {told}");
        assert!(!told.contains(INNER), "{name}: {told}");
        let all = desk.everything();
        assert!(!all.contains(INNER), "{name}: {all}");
    }
}

#[test]
fn they_are_kept_by_who_wants_that() {
    for (name, way) in ways() {
        let desk = desk(SecretPolicy::Allow);
        way(&desk).unwrap_or_else(|error| panic!("{name}: {error}"));
        // Tags are kept in small letters.
        let all = desk.everything().to_lowercase();
        assert!(all.contains(&INNER.to_lowercase()), "{name}");
        let told = desk.ctx.notices.take().join(" ");
        assert!(!told.contains("secret"), "{name}: {told}");
    }
}

#[test]
fn what_was_masked_at_the_door_is_never_changed_again() {
    let desk = desk(SecretPolicy::Mask);
    let window = desk.memory.window("ann", "s1").unwrap();
    let block = json!([{"type": "text", "text": says()}, {"type": "tool_use", "id": "c1",
        "name": "ssh", "input": {"token": "9f86d081884c7d659a2feaa0c55ad015"}}]);
    let said: Utterance =
        serde_json::from_value(json!({"role": "assistant", "content": block})).unwrap();
    wait(window.add_message(&ctx(), said.into_message())).unwrap();
    let before = wait(window.get_messages(&ctx())).unwrap();
    assert_eq!(wait(window.fork(&ctx(), "s2")).unwrap(), 1);
    let copy = desk.memory.window("ann", "s2").unwrap();
    assert_eq!(wait(copy.get_messages(&ctx())).unwrap(), before);
    let state = wait(window.state(&ctx())).unwrap();
    let third = desk.memory.window("ann", "s3").unwrap();
    wait(third.take_over(&ctx(), &state)).unwrap();
    assert_eq!(wait(third.get_messages(&ctx())).unwrap(), before);
}

#[test]
fn a_window_that_comes_from_elsewhere_is_looked_through() {
    let other = desk(SecretPolicy::Allow);
    let window = other.memory.window("ann", "s1").unwrap();
    wait(window.add_message(&ctx(), Message::text("m1", Role::User, says()))).unwrap();
    let state = wait(window.state(&ctx())).unwrap();
    let masking = desk(SecretPolicy::Mask);
    let window = masking.memory.window("ann", "s1").unwrap();
    assert_eq!(wait(window.take_over(&ctx(), &state)).unwrap(), 1);
    assert!(!masking.everything().contains(INNER));
    let refusing = desk(SecretPolicy::Refuse);
    let window = refusing.memory.window("ann", "s1").unwrap();
    let error = wait(window.take_over(&ctx(), &state)).unwrap_err();
    assert!(error.to_string().contains("holds a secret"), "{error}");
}

#[test]
fn people_may_keep_what_they_like_in_their_own_files() {
    for secrets in [SecretPolicy::Mask, SecretPolicy::Refuse] {
        let desk = desk(secrets);
        let path = format!("{ROOT}/agents/coder/memory/decisions.md");
        let text = format!("# Log\n\n## 2026-01-01: Deploy\n\n{}\n", says());
        wait(desk.files.write(&path, text.as_bytes(), None)).unwrap();
        // The agent rewrites a context that held one already.
        let context = format!("{ROOT}/agents/coder/memory/context.md");
        let base = format!("# Context\n\n{}\n", says());
        wait(desk.files.write(&context, base.as_bytes(), None)).unwrap();
        let text = format!("{base}\nand more\n");
        wait(desk.agents.rewrite_context(&ctx(), "coder", &text, &base)).unwrap();
        let kept = wait(desk.files.read(&context)).unwrap().unwrap().bytes;
        assert!(String::from_utf8(kept).unwrap().contains(INNER));
        // But it is repeated in no store.
        let done = wait(desk.agents.index(&ctx(), &desk.memory)).unwrap();
        assert!(done.written > 0);
        let scan = Scan::new(Filter::all_of_tenant(), 1000);
        let records = wait(desk.memory.records().list(&ctx(), &scan)).unwrap();
        let all = serde_json::to_string(&records.records).unwrap();
        assert!(
            all.contains("[secret removed: ") && !all.contains(INNER),
            "{all}"
        );
    }
}

#[test]
fn a_document_without_its_secret_is_known_again() {
    let desk = desk(SecretPolicy::Mask);
    let document = || Document {
        uri: "keys.md".to_owned(),
        text: format!("# Keys\n\n{}\n", says()),
        ..Document::default()
    };
    for commit in [true, false] {
        let ctx = ctx();
        let add = desk.memory.records().add_documents(&ctx, vec![document()]);
        assert_eq!(wait(add).unwrap()[0].commit.is_some(), commit);
    }
}

#[test]
fn expectations_hold_for_what_was_masked() {
    let desk = desk(SecretPolicy::Mask);
    let put = |id: &str| {
        let draft = crate::named(id, &says());
        let drafts = vec![(draft, Expect::Absent)];
        wait(desk.memory.records().put(&desk.ctx, drafts, None))
    };
    put("n1").unwrap();
    assert_eq!(desk.ctx.notices.take().len(), 1);
    assert_eq!(put("n1").unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn what_is_there_already_can_be_imported_again() {
    let store = Arc::new(Ram::new());
    let memory = |secrets| {
        let memory = Memory::builder(store.clone(), Ids::new(7));
        memory.safety(Safety { secrets }).build()
    };
    let allowing = memory(SecretPolicy::Allow);
    wait(
        allowing
            .records()
            .add(&ctx(), vec![Draft::note(says())], None),
    )
    .unwrap();
    let scan = Scan::new(Filter::all_of_tenant(), 10);
    let records = wait(allowing.records().list(&ctx(), &scan))
        .unwrap()
        .records;
    for secrets in [SecretPolicy::Mask, SecretPolicy::Refuse] {
        let (memory, ctx) = (memory(secrets), ctx());
        let import = memory
            .records()
            .import(&ctx, records.clone(), OnConflict::Fail);
        let receipt = wait(import).unwrap();
        assert_eq!((receipt.commit, ctx.notices.take().len()), (None, 0));
    }
}

/// Ways in for a name that the caller chose.
const NAMES: &[Way] = &[
    ("an id", |desk| desk.add(crate::named(&key(), "plain"))),
    ("an id within a longer one", |desk| {
        desk.add(crate::named(&format!("TOKEN_{}", key()), "plain"))
    }),
    ("a link", |desk| {
        desk.add(Draft {
            derived_from: vec![crate::id(&key())],
            ..Draft::note("plain")
        })
    }),
    ("an idempotency key", |desk| {
        let drafts = vec![Draft::note("plain")];
        wait(desk.memory.records().add(&desk.ctx, drafts, Some(&key()))).map(drop)
    }),
    ("the key of a note", |desk| {
        let note = NewNote::new("plain");
        wait(desk.memory.notes().add(&desk.ctx, note, Some(&key()))).map(drop)
    }),
    ("the key of messages", |desk| {
        let window = desk.memory.window("ann", "s1")?;
        let said = vec![Message::text("", Role::User, "plain")];
        wait(window.add_messages(&desk.ctx, said, Some(&key()))).map(drop)
    }),
    ("the key of an event", |desk| {
        let mut event = crate::facade::event(Scope::Dialog, json!({"fact": "plain"}));
        event.meta = map(json!({"idempotency_key": key()}));
        wait(desk.memory.write(&desk.ctx, &event)).map(drop)
    }),
    ("the key of a deletion", |desk| {
        let ids = [crate::id("n1")];
        desk.add(crate::named("n1", "plain"))?;
        wait(desk.memory.records().forget(&desk.ctx, &ids, Some(&key()))).map(drop)
    }),
    ("the id of an import", |desk| {
        let other = self::desk(SecretPolicy::Allow);
        other.add(crate::named(&key(), "plain"))?;
        let scan = Scan::new(Filter::all_of_tenant(), 10);
        let records = wait(other.memory.records().list(&desk.ctx, &scan))?.records;
        let records = desk
            .memory
            .records()
            .import(&desk.ctx, records, OnConflict::Fail);
        wait(records).map(drop)
    }),
];

#[test]
fn ids_and_keys_that_hold_one_are_refused() {
    for (name, way) in NAMES {
        for secrets in [SecretPolicy::Mask, SecretPolicy::Refuse] {
            let desk = desk(secrets);
            let error = way(&desk)
                .err()
                .unwrap_or_else(|| panic!("{name} was taken"));
            assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
            let told = error.to_string();
            assert!(
                told.contains("holds a secret (repository token)"),
                "{name}: {told}"
            );
            assert!(!told.contains(INNER), "{name}: {told}");
            assert!(!desk.everything().contains(INNER), "{name}");
        }
        let desk = desk(SecretPolicy::Allow);
        way(&desk).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_card_number_is_found_where_json_has_a_number() {
    let desk = desk(SecretPolicy::Mask);
    let body = json!({"paid_with": 4_111_111_111_111_111_u64, "order_id": 4_111_111_111_111_111_u64,
        "at": 1_763_200_000_000_u64});
    let draft = Draft {
        body: Some(body),
        ..Draft::note("an order")
    };
    desk.add(draft).unwrap();
    let told = desk.ctx.notices.take();
    assert!(told[0].contains("payment card number"), "{told:?}");
    let all = desk.everything();
    assert!(
        all.contains("[secret removed: payment card number]"),
        "{all}"
    );
    assert!(all.contains("\"order_id\":4111111111111111"), "{all}");
    assert!(all.contains("1763200000000"), "{all}");
}
