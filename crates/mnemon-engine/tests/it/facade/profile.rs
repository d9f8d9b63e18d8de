use mnemon_core::json::Schema;
use mnemon_core::{ErrorKind, Scope};
use mnemon_engine::Payload;
use serde_json::{Value, json};

use super::{event, map, payload, read, write};
use crate::{ctx, memory, wait};

#[test]
fn changes_are_merged_and_the_history_is_kept() {
    let memory = memory();
    let profile = memory.profile();
    let update = |changes: Value, expected| {
        wait(profile.update_profile(&ctx(), "ann", &map(changes), expected, None))
    };
    assert_eq!(
        wait(profile.get_profile(&ctx(), &mnemon_core::Viewer::Tenant, "ann")).unwrap(),
        None
    );
    update(
        json!({"name": "Ann", "food": {"tea": true, "nuts": false}}),
        Some(0),
    )
    .unwrap();
    update(
        json!({"food": {"nuts": null, "rice": true}, "style": "brief"}),
        None,
    )
    .unwrap();
    let found = wait(profile.get_profile(&ctx(), &mnemon_core::Viewer::Tenant, "ann"))
        .unwrap()
        .unwrap();
    let expected = json!({"name": "Ann", "food": {"tea": true, "rice": true}, "style": "brief"});
    assert_eq!((Value::Object(found.profile), found.version), (expected, 2));
    let stale = update(json!({"name": "Anna"}), Some(1)).unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Conflict);
    let history = wait(profile.history(&ctx(), "ann", 10)).unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(
        history[0].before.as_ref().unwrap().body.as_ref().unwrap()["name"],
        "Ann"
    );
    assert_eq!(
        wait(profile.get_profile(&ctx(), &mnemon_core::Viewer::Tenant, "bob")).unwrap(),
        None
    );
}

#[test]
fn a_schema_is_held_to_until_it_is_taken_away() {
    let memory = memory();
    let profile = memory.profile();
    let update =
        |changes: Value| wait(profile.update_profile(&ctx(), "ann", &map(changes), None, None));
    update(json!({"age": "old"})).unwrap();
    let schema = Schema::read(json!({
        "type": "object",
        "properties": {"age": {"type": "integer", "minimum": 0}},
    }));
    wait(profile.set_schema(&ctx(), Some(schema.unwrap()))).unwrap();
    let refused = update(json!({"age": -1})).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("profile.age"), "{refused}");
    let still_wrong = update(json!({"name": "Ann"})).unwrap_err();
    assert!(
        still_wrong.to_string().contains("profile.age"),
        "{still_wrong}"
    );
    update(json!({"name": "Ann", "age": 30})).unwrap();
    let other = mnemon_core::Ctx {
        tenant: "other".parse().unwrap(),
        ..ctx()
    };
    let elsewhere =
        wait(profile.update_profile(&other, "ann", &map(json!({"age": "x"})), None, None));
    elsewhere.unwrap();
    wait(profile.set_schema(&ctx(), None)).unwrap();
    update(json!({"age": "young"})).unwrap();
}

#[test]
fn the_facade_patches_and_reads() {
    let memory = memory();
    let empty = read(&memory, Scope::Profile);
    assert!(matches!(
        payload(&empty),
        Payload::Profile { version: 0, .. }
    ));
    write(&memory, Scope::Profile, json!({"name": "Ann", "extra": 1})).unwrap();
    write(&memory, Scope::Profile, json!({"extra": null})).unwrap();
    let shown = serde_json::to_value(read(&memory, Scope::Profile)).unwrap();
    let expected =
        json!({"scope": "profile", "payload": {"profile": {"name": "Ann"}, "version": 2}});
    assert_eq!(shown, expected);
    let mut stale = event(Scope::Profile, json!({"name": "B"}));
    stale.meta = map(json!({"expected_version": 1}));
    assert_eq!(
        wait(memory.write(&ctx(), &stale)).unwrap_err().kind(),
        ErrorKind::Conflict
    );
}

#[test]
fn changes_at_the_same_time_all_arrive() {
    let memory = memory();
    let updates = (0..8).map(|n| {
        let changes = map(json!({format!("k{n}"): n}));
        let memory = &memory;
        async move {
            memory
                .profile()
                .update_profile(&ctx(), "ann", &changes, None, None)
                .await
        }
    });
    for done in wait(futures::future::join_all(updates)) {
        done.unwrap();
    }
    let found = wait(
        memory
            .profile()
            .get_profile(&ctx(), &mnemon_core::Viewer::Tenant, "ann"),
    )
    .unwrap()
    .unwrap();
    assert_eq!(found.profile.len(), 8);
}
