//! The facade over the six scopes.

mod bad_input;
mod dialog;
mod experience;
mod hooks;
mod knowledge;
mod policies;
mod profile;
mod reading;
mod sessions;
mod state;

use mnemon_core::{Ctx, Owner, Receipt, Role, Scope};
use mnemon_engine::{
    Answer, Error, Memory, MemoryItem, MemoryQuery, MemoryWriteEvent, Payload, Place,
};
use serde_json::{Map, Value};

use crate::{ctx, wait};

/// The test's moment, so many milliseconds later.
fn at(ms: i64) -> Ctx {
    let now = ctx().now.plus_millis(ms);
    Ctx { now, ..ctx() }
}

fn ann() -> Owner {
    Owner {
        user: Some("ann".to_owned()),
        ..Owner::default()
    }
}

fn nobody() -> Owner {
    Owner::default()
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

const PLACE: Place<'static> = Place {
    user: "ann",
    session: "s1",
    flow: Some("buyer"),
    agent: None,
};

/// Ann's planner in session s1 of the flow `buyer`.
fn query(scopes: &[Scope]) -> MemoryQuery {
    MemoryQuery {
        flow_id: Some("buyer".to_owned()),
        query: Some("green tea".to_owned()),
        task_type: Some("shop".to_owned()),
        ..MemoryQuery::new("ann", "s1", "planner", scopes)
    }
}

/// What Ann's planner says of this scope.
pub(crate) fn event(scope: Scope, data: Value) -> MemoryWriteEvent {
    MemoryWriteEvent {
        user_id: "ann".to_owned(),
        session_id: "s1".to_owned(),
        agent_id: "planner".to_owned(),
        flow_id: Some("buyer".to_owned()),
        node_id: None,
        scope,
        data: map(data),
        meta: Map::new(),
    }
}

fn write(memory: &Memory, scope: Scope, data: Value) -> Result<Receipt, Error> {
    wait(memory.write(&ctx(), &event(scope, data)))
}

fn read(memory: &Memory, scope: Scope) -> MemoryItem {
    let mut items = wait(memory.read(&ctx(), &query(&[scope]))).unwrap();
    assert_eq!(items.len(), 1);
    items.remove(0)
}

#[track_caller]
fn payload(item: &MemoryItem) -> &Payload {
    match &item.answer {
        Answer::Payload(payload) => payload,
        other => panic!("{other:?}"),
    }
}

fn say(memory: &Memory, ms: i64, role: Role, text: &str) -> Receipt {
    let dialog = memory.dialog();
    wait(dialog.append(&at(ms), "ann", "s1", role, text)).unwrap()
}
