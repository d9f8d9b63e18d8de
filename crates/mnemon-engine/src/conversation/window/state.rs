//! A window as the state of an agent's part: saved with a session, and taken over by another one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use mnemon_core::window::{COMPRESS_META, CompressionEvent, Strategy};
use mnemon_core::{Ctx, Expect, Id, Invalid, Message, Order, Record, StoreError, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::stored::{Covered, Entry, Offload};
use super::{InMemory, Read, Window};
use crate::conversation::session::StateModule;
use crate::memory::scopes::message_of;
use crate::records::draft::to_json;
use crate::records::safety::TakenOut;
use crate::records::{Error, Safety};

/// Everything that a window and its conversation hold, in the form that agents save.
///
/// It is a [`StateModule`]: take it with [`Window::state`], put it into a session with others, and
/// give what was loaded to [`Window::take_over`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WindowState {
    /// What the model sees.
    #[serde(rename = "workingMemoryStorage")]
    pub working: Vec<Message>,
    /// What was said.
    #[serde(rename = "originalMemoryStorage")]
    pub original: Vec<Message>,
    /// What was replaced, by uuid.
    #[serde(rename = "offloadContext")]
    pub offloads: BTreeMap<String, Vec<Message>>,
    #[serde(rename = "compressionEvents")]
    pub events: Vec<CompressionEvent>,
}

impl StateModule for WindowState {
    fn component(&self) -> &str {
        "autoContextMemory"
    }

    fn save_state(&self) -> Result<Value, Invalid> {
        to_json("window", self)
    }

    fn load_state(&mut self, state: &Value) -> Result<(), Invalid> {
        if !state.is_object() {
            return Err(Invalid::new("window", "is not an object"));
        }
        *self = Self::deserialize(state)
            .map_err(|error| Invalid::new("window", format!("is not a window: {error}")))?;
        Ok(())
    }
}

impl StateModule for InMemory {
    fn component(&self) -> &str {
        "memory_messages"
    }

    fn aliases(&self) -> &[&str] {
        &["memory", "inMemoryMemory"]
    }

    /// A list, also when it is empty: so a clear is saved, too.
    fn save_state(&self) -> Result<Value, Invalid> {
        Ok(json!(self.get_messages()))
    }

    /// The list; or, as older versions saved it, an object that has it as `messages`.
    fn load_state(&mut self, state: &Value) -> Result<(), Invalid> {
        let list = state.get("messages").unwrap_or(state);
        let messages = Vec::<Message>::deserialize(list)
            .map_err(|error| Invalid::new("messages", format!("are not messages: {error}")))?;
        self.replace(messages);
        Ok(())
    }
}

/// What the message stands for, if it stands for others.
fn stands_for(message: &Message) -> Option<&str> {
    let meta = message.metadata.get(COMPRESS_META)?;
    meta.get("offloaduuid")?.as_str()
}

impl Window<'_> {
    /// Everything that there is of this conversation and its window, to be saved elsewhere.
    pub async fn state(&self, ctx: &Ctx) -> Result<WindowState, Error> {
        Ok(self.state_and_ids(ctx).await?.1)
    }

    /// The same, and the records of its original messages.
    pub(super) async fn state_and_ids(&self, ctx: &Ctx) -> Result<(Vec<Id>, WindowState), Error> {
        let mut ids = Vec::new();
        let mut state = WindowState {
            working: self.whole(ctx).await?.messages,
            events: self.events(ctx).await?,
            ..WindowState::default()
        };
        let limits = self.records.limits();
        let mut after = None;
        loop {
            let page = self.page(ctx, Order::Oldest, after, limits.page).await?;
            state.original.extend(page.records.iter().map(message_of));
            ids.extend(page.records.into_iter().map(|record| record.id));
            if state.original.len() > limits.window_state_messages {
                return Err(StoreError::TooLarge {
                    what: "messages of one conversation",
                    count: state.original.len(),
                    most: limits.window_state_messages,
                }
                .into());
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let mut wanted: Vec<String> = uuids(&state.working);
        while let Some(uuid) = wanted.pop() {
            if state.offloads.contains_key(&uuid) {
                continue;
            }
            if let Some(messages) = self.reload(ctx, &uuid).await? {
                wanted.extend(uuids(&messages));
                state.offloads.insert(uuid, messages);
            }
        }
        Ok((ids, state))
    }

    /// Whether nothing was said here.
    pub async fn is_empty(&self, ctx: &Ctx) -> Result<bool, Error> {
        let said = self.page(ctx, Order::Newest, None, 1).await?;
        Ok(said.records.is_empty() && self.working(ctx).await?.0.is_none())
    }

    /// Makes this conversation, in which nothing was said yet, what the state says. What was
    /// replaced gets new uuids, as the old ones may be in use. How many messages there are.
    ///
    /// The messages are written first and the window last: cut off in between, everything that was
    /// written is in view.
    pub async fn take_over(&self, ctx: &Ctx, state: &WindowState) -> Result<usize, Error> {
        if !self.is_empty(ctx).await? {
            let session = self.owner.session.clone().unwrap_or_default();
            return Err(Error::ConversationExists(session));
        }
        let ids = state
            .original
            .iter()
            .map(|_| self.records.ids.next(ctx.now));
        let ids: Vec<Id> = ids.collect();
        self.take(ctx, state, &ids, self.records.safety).await
    }

    /// Writes the state here, its original messages under these ids. Those that are there already
    /// are left as they are.
    pub(super) async fn take(
        &self,
        ctx: &Ctx,
        state: &WindowState,
        ids: &[Id],
        safety: Safety,
    ) -> Result<usize, Error> {
        // As a whole: what a message says must be the same wherever the state repeats it.
        let state = &safety.clean_value("window", state, &mut TakenOut::default())?;
        let mut taken = Taken::new(state);
        let mut created = None;
        let size = self.records.limits().commit_ops;
        for (chunk, ids) in state.original.chunks(size).zip(ids.chunks(size)) {
            let there = self.records.get_all(ctx, ids).await?;
            let mut drafts = Vec::with_capacity(chunk.len());
            for ((message, id), there) in chunk.iter().zip(ids).zip(there) {
                let said = message.timestamp.as_deref().and_then(|at| at.parse().ok());
                // In the order of the list, whatever the messages say of themselves.
                let at: Time = said.unwrap_or(ctx.now).max(created.unwrap_or(Time::EPOCH));
                created = Some(at);
                if there.is_none() {
                    let mut draft = self.message_draft(ctx, message.clone(), at)?;
                    draft.id = Some(id.clone());
                    drafts.push((draft, Expect::Absent));
                }
            }
            if !drafts.is_empty() {
                self.records.put_screened(ctx, drafts, None).await?;
            }
            let written = self.records.get_all(ctx, ids).await?;
            for (message, record) in chunk.iter().zip(written.iter().flatten()) {
                taken.said(message, record);
            }
        }
        let entries = taken.entries(&state.working, &mut || self.records.ids.next(ctx.now), ctx);
        let offloads = taken
            .made
            .drain(..)
            .map(|(uuid, offload)| Ok((self.offload_draft(uuid, &offload)?, Expect::Absent)));
        let offloads = offloads.collect::<Result<Vec<_>, Invalid>>()?;
        if !entries.is_empty() || !state.original.is_empty() {
            let read = Read {
                version: None,
                covered: taken.covered,
                entries,
                messages: Vec::new(),
                more: false,
            };
            self.write(ctx, &read, offloads).await?;
        }
        Ok(state.original.len())
    }
}

fn uuids(messages: &[Message]) -> Vec<String> {
    let named = messages.iter().filter_map(stands_for);
    named.map(str::to_owned).collect()
}

/// A state on its way into a store.
struct Taken<'a> {
    state: &'a WindowState,
    /// By the ids of the messages, which need not be unique.
    originals: HashMap<&'a str, Vec<(&'a Message, Entry)>>,
    covered: Option<Covered>,
    /// What stands in the window for a uuid of the state.
    replaced: HashMap<&'a str, Entry>,
    under_way: BTreeSet<&'a str>,
    /// The events that have found their message.
    told: BTreeSet<usize>,
    made: Vec<(Id, Offload)>,
}

impl<'a> Taken<'a> {
    fn new(state: &'a WindowState) -> Self {
        Self {
            state,
            originals: HashMap::new(),
            covered: None,
            replaced: HashMap::new(),
            under_way: BTreeSet::new(),
            told: BTreeSet::new(),
            made: Vec::new(),
        }
    }

    fn said(&mut self, message: &'a Message, record: &Record) {
        let same = self.originals.entry(&message.id).or_default();
        same.push((message, Entry::original(record)));
        self.covered = Some(Covered::by(record).after(self.covered));
    }

    /// The entries of these messages; one that is neither an original nor a replacement is left out.
    fn entries(
        &mut self,
        messages: &'a [Message],
        fresh: &mut dyn FnMut() -> Id,
        ctx: &Ctx,
    ) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(messages.len());
        for message in messages {
            let same = self.originals.get(message.id.as_str());
            let own = same.and_then(|same| same.iter().find(|(one, _)| *one == message));
            match own {
                Some((_, entry)) => entries.push(entry.clone()),
                None => entries.extend(self.replacement(message, fresh, ctx)),
            }
        }
        entries
    }

    fn replacement(
        &mut self,
        message: &'a Message,
        fresh: &mut dyn FnMut() -> Id,
        ctx: &Ctx,
    ) -> Option<Entry> {
        let uuid = stands_for(message)?;
        if let Some(entry) = self.replaced.get(uuid) {
            return Some(entry.clone());
        }
        let inner = self.state.offloads.get(uuid)?;
        // A state that somebody else wrote may go round in circles.
        if !self.under_way.insert(uuid) {
            return None;
        }
        let offloaded = self.entries(inner, fresh, ctx);
        self.under_way.remove(uuid);
        let mut event = self.event(uuid, message, inner.len(), ctx);
        // With a round its question was kept, too, but stays in the window.
        let kept = event.event_type == Strategy::PreviousRounds.to_string();
        let replaced = offloaded.get(usize::from(kept)..).unwrap_or_default();
        let id = fresh();
        if event.compressed_message_id.as_deref() == Some(uuid) {
            event.compressed_message_id = Some(id.to_string());
        }
        let entry = Entry::replacing(id.clone(), replaced)
            .or_else(|| Entry::replacing(id.clone(), &offloaded))?;
        let offload = Offload {
            entries: offloaded,
            message: renamed(message, uuid, &id),
            event,
        };
        self.made.push((id, offload));
        self.replaced.insert(uuid, entry.clone());
        Some(entry)
    }

    /// What is known of the compression that made this message.
    fn event(
        &mut self,
        uuid: &str,
        message: &Message,
        count: usize,
        ctx: &Ctx,
    ) -> CompressionEvent {
        // A message that was compressed twice has two events of its name: they come in order, and
        // what lies within is asked for first.
        let named = |name: &str| {
            let events = self.state.events.iter().enumerate();
            let mut free = events.filter(|(at, _)| !self.told.contains(at));
            free.find(|(_, event)| event.compressed_message_id.as_deref() == Some(name))
        };
        let known = named(uuid).or_else(|| named(&message.id));
        let told = known.map(|(at, _)| at);
        let known = known.map(|(_, event)| event.clone());
        self.told.extend(told);
        known.unwrap_or_else(|| CompressionEvent {
            event_type: Strategy::Large.to_string(),
            timestamp: ctx.now.millis(),
            compressed_message_count: count,
            previous_message_id: None,
            next_message_id: None,
            compressed_message_id: None,
            metadata: serde_json::Map::new(),
        })
    }
}

/// The message with another uuid in its tag.
fn renamed(message: &Message, from: &str, to: &Id) -> Message {
    let json = serde_json::to_string(message).unwrap_or_default();
    let json = json.replace(from, to.as_str());
    serde_json::from_str(&json).unwrap_or_else(|_| message.clone())
}
