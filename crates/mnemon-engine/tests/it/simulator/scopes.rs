//! The six scopes, notes, windows, learning, and forgetting a session.

use mnemon_core::{ErrorKind, Message, Namespace, Owner, Role, Scope};
use mnemon_engine::notes::{NewNote, NoteFilter, NoteQuery};
use mnemon_engine::{Answer, MemoryQuery, MemoryWriteEvent};
use mnemon_testkit::simulator::Random;
use serde_json::{Map, Value, json};

use super::Work;
use super::actor::Actor;

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// An acknowledged event is live: every record that the receipt names.
pub(super) fn write(actor: Actor, random: &mut Random, word: String) -> (String, Work) {
    let scope = Scope::ALL[random.index(Scope::ALL.len())];
    let tool = ["search", "read", "write"][random.index(3)];
    let is_good = random.chance(70);
    let data = match scope {
        Scope::Dialog => match random.below(4) {
            0 => json!({"fact": format!("{word} is a fact")}),
            1 => json!({"summary": format!("{word} sums up")}),
            _ => json!({"role": "user", "content": format!("{word} was said")}),
        },
        Scope::State => json!({"state": {"at": word}}),
        Scope::Semantic => json!({"content": format!("{word} is known"), "shared": is_good}),
        Scope::Procedural => json!({"use_when": format!("{word} happens"),
            "tool_sops": [{"tool": tool, "action": "use it"}]}),
        Scope::Profile => json!({"likes": word}),
        Scope::Experience => json!({"task_type": "deploy", "tool": tool,
            "input": {"q": word, "mode": tool}, "success": is_good,
            "trace_id": format!("t{}", random.below(30))}),
    };
    let event = MemoryWriteEvent {
        user_id: actor.user.to_owned(),
        session_id: actor.session.to_owned(),
        agent_id: "planner".to_owned(),
        flow_id: None,
        node_id: None,
        scope,
        data: map(data),
        meta: Map::new(),
    };
    let name = format!("write {scope} {word}");
    let work = async move {
        let since = actor.begin();
        match actor.memory.write(&actor.ctx, &event).await {
            Ok(receipt) => {
                let is_lost =
                    |id: &_| actor.model_get(id).is_none() && !actor.was_touched(id, since);
                match receipt.items.iter().find(|item| is_lost(&item.id)) {
                    Some(item) => Err(format!("{} was acknowledged and is not live", item.id)),
                    None => Ok(()),
                }
            }
            Err(error) => actor.explain(&error, &[ErrorKind::Conflict, ErrorKind::TooOften]),
        }
    };
    (name, Box::pin(work))
}

/// A read shows what the user may see and what is live; a scope fails only by a fault.
pub(super) fn read(actor: Actor, random: &mut Random) -> (String, Work) {
    let mut query = MemoryQuery::new(actor.user, actor.session, "planner", Scope::ALL);
    query.query = Some("tea said known".to_owned());
    query.task_type = random.chance(50).then(|| "deploy".to_owned());
    let work = async move {
        let since = actor.begin();
        let items = match actor.memory.read(&actor.ctx, &query).await {
            Ok(items) => items,
            Err(error) => return actor.explain(&error, &[]),
        };
        let is_struck = actor.sim.was_struck(actor.sim.running());
        for item in &items {
            if let Answer::Error(failure) = &item.answer
                && !is_struck
            {
                return Err(format!("{} failed without reason: {failure:?}", item.scope));
            }
        }
        actor.check_words(since, &items)
    };
    ("read".to_owned(), Box::pin(work))
}

pub(super) fn note(actor: Actor, random: &mut Random, word: String) -> (String, Work) {
    let note = NewNote {
        namespace: Some(Namespace::ALL[random.index(2)]),
        importance: Some(0.5),
        owner: Owner {
            user: Some(actor.user.to_owned()),
            ..Owner::default()
        },
        ..NewNote::new(format!("{word} is worth a note"))
    };
    let name = format!("note {word}");
    let work = async move {
        let since = actor.begin();
        match actor.memory.notes().add(&actor.ctx, note, None).await {
            Ok(added) if added.not_stored || actor.model_get(&added.id).is_some() => Ok(()),
            Ok(added) if actor.was_touched(&added.id, since) => Ok(()),
            Ok(added) => Err(format!(
                "the note {} was acknowledged and is not live",
                added.id
            )),
            Err(error) => actor.explain(&error, &[ErrorKind::Conflict]),
        }
    };
    (name, Box::pin(work))
}

pub(super) fn search_notes(actor: Actor, random: &mut Random) -> (String, Work) {
    let text = ["note", "tea", "coffee worth"][random.index(3)];
    let query = NoteQuery {
        include_content: Some(true),
        limit: Some(3),
        ..NoteQuery::new(
            text,
            NoteFilter::seen_by(mnemon_core::Viewer::user(actor.user)),
        )
    };
    let work = async move {
        let since = actor.begin();
        match actor.memory.notes().search(&actor.ctx, &query).await {
            Ok(found) => actor.check_words(since, &found.results),
            Err(error) => actor.explain(&error, &[]),
        }
    };
    ("search notes".to_owned(), Box::pin(work))
}

/// A message in a window, which is compressed by a model that often fails.
pub(super) fn window(actor: Actor, word: String) -> (String, Work) {
    let name = format!("window {word}");
    let work = async move {
        let since = actor.begin();
        let reasons = [ErrorKind::Conflict, ErrorKind::Busy, ErrorKind::TooLarge];
        let window = actor
            .memory
            .window(actor.user, actor.session)
            .map_err(|e| e.to_string())?;
        let message = Message::text(&word, Role::User, format!("{word} in the window"));
        if let Err(error) = window.add_message(&actor.ctx, message).await {
            return actor.explain(&error, &reasons);
        }
        if let Err(error) = window.compress(&actor.ctx).await {
            return actor.explain(&error, &reasons);
        }
        match window.get_messages(&actor.ctx).await {
            Ok(messages) => actor.check_words(since, &messages),
            Err(error) => actor.explain(&error, &reasons),
        }
    };
    (name, Box::pin(work))
}

pub(super) fn learn(actor: Actor, random: &mut Random) -> (String, Work) {
    let steps = 1 + random.index(20);
    let work = async move {
        match actor.memory.learning().slice(&actor.ctx, steps).await {
            Ok(_) => Ok(()),
            Err(error) => actor.explain(&error, &[ErrorKind::Conflict]),
        }
    };
    (format!("learn from {steps} steps"), Box::pin(work))
}

/// Dialog, state and experience of a forgotten session are gone, apart from what was written
/// meanwhile.
pub(super) fn forget_session(actor: Actor, random: &mut Random) -> (String, Work) {
    let purge = random.chance(50);
    let name = format!("forget session {} purge {purge}", actor.session);
    let work = async move {
        let since = actor.begin();
        let (user, session) = (actor.user, actor.session);
        match actor
            .memory
            .delete_session(&actor.ctx, user, session, purge)
            .await
        {
            Ok(forgotten) if forgotten.is_whole() => {
                let is_left = |record: &&mnemon_core::Record| {
                    let is_of_session = record.owner.user.as_deref() == Some(user)
                        && record.owner.session.as_deref() == Some(session);
                    let scopes = [Scope::Dialog, Scope::State, Scope::Experience];
                    let is_mark = record.content.is_empty() && record.body.is_some();
                    is_of_session
                        && !is_mark
                        && scopes.contains(&record.scope)
                        && !actor.was_touched(&record.id, since)
                };
                match actor.live().iter().find(is_left) {
                    Some(record) => Err(format!("{} of the session is still live", record.id)),
                    None => Ok(()),
                }
            }
            Ok(_) => Ok(()),
            Err(error) => actor.explain(&error, &[ErrorKind::Conflict]),
        }
    };
    (name, Box::pin(work))
}
