//! The window of a conversation: what the model still sees, kept small and never lossy.
//!
//! What was said are the records of the dialog; nothing here changes them. The window itself is one
//! small record: entries that point at messages or at what replaced them, and the place up to which
//! they reach. Whatever was said after that place is in the window as well, so that appending does
//! not touch it. A compression writes the offloads and the window in one batch.

mod compress;
mod copies;
mod in_memory;
mod in_project;
mod page;
mod reading;
mod state;
mod stored;
mod summarise;
mod view;

use std::collections::HashSet;
use std::sync::Arc;

use mnemon_core::llm::Llm;
use mnemon_core::window::{CompressionEvent, Measure, Plan, Prompts, Settings, estimate, paired};
use mnemon_core::{
    Block, Ctx, Cursor, Expect, Fate, Filter, Id, Invalid, Kind, Message, Order, Owner, Page,
    Receipt, Record, Role, Scan, Scope, StoreError, Time, Viewer, limits,
};

pub use compress::Preview;
pub use copies::Snapshot;

pub use in_memory::InMemory;
pub use state::WindowState;
pub use summarise::Refined;
pub use view::{Folded, Seen, SeenAs, Shown, Tier, Tiers};

use super::session::SessionId;
use crate::conversation::project::Project;
use crate::memory::Memory;
use crate::memory::scopes::{message_draft, message_of, session_of_owner, within};
use crate::records::draft::intent;
use crate::records::naming::{check_name, fixed_id};
use crate::records::safety::TakenOut;
use crate::records::{Draft, Error, Records};
use stored::{Covered, Entry, Offload, Position, TAG};

/// Clocks of two processes that write one conversation may be this far apart.
const CLOCK_AHEAD_MS: i64 = 24 * 60 * 60 * 1000;

/// Tells that a uuid names nothing.
fn not_found(uuid: &str) -> String {
    format!(
        "No messages found for UUID: {uuid}, The context may have been cleared or the UUID is invalid."
    )
}

/// A conversation as its model sees it.
#[derive(Clone)]
pub struct Window<'a> {
    records: &'a Records,
    owner: Owner,
    settings: Settings,
    prompts: Prompts,
    plan: Option<Plan>,
    llm: Option<Arc<dyn Llm>>,
    /// The project in whose files it lies, and its name there.
    project: Option<(&'a Project, SessionId)>,
    /// Where the pages of a project are indexed.
    library: &'a Records,
    measure: &'a Measure,
}

/// What a window holds at a moment.
struct Read {
    /// Of the window's record; `None` when there is none yet.
    version: Option<u64>,
    covered: Option<Covered>,
    entries: Vec<Entry>,
    /// One for each entry.
    messages: Vec<Message>,
    /// Whether there are more than a window may hold.
    more: bool,
}

impl Memory {
    /// The window of a user's session. The session's name must be fit for a file.
    pub fn window(&self, user: &str, session: &str) -> Result<Window<'_>, Error> {
        check_session(session)?;
        check_name("user", user, limits::NAME_CHARS)?;
        let owner = Owner::of(Some(user), Some(session));
        session_of_owner(&owner)?;
        Ok(self.window_of(owner))
    }

    pub(super) fn window_of(&self, owner: Owner) -> Window<'_> {
        Window {
            records: self.records_of(Scope::Dialog),
            owner,
            settings: Settings::default(),
            prompts: Prompts::default(),
            plan: None,
            llm: self.llm().cloned(),
            project: None,
            library: self.records_of(Scope::Semantic),
            measure: &estimate,
        }
    }

    /// What was replaced under this uuid in any conversation of the user; `None` if there is no
    /// such thing.
    pub async fn reload(
        &self,
        ctx: &Ctx,
        user: &str,
        uuid: &str,
    ) -> Result<Option<Vec<Message>>, Error> {
        let records = self.records_of(Scope::Dialog);
        let Some((owner, offload)) = offload_at(records, ctx, uuid).await? else {
            return Ok(None);
        };
        let asked = Owner {
            user: Some(user.to_owned()),
            ..owner.clone()
        };
        self.window_of(asked).reloaded(ctx, owner, offload).await
    }
}

/// The outcome of a message that was added before.
fn already_there(id: &Id) -> Fate {
    Fate::Duplicate { of: id.clone() }
}

/// The id in the tag of a replacement, or the id alone, in any case.
fn offload_id(text: &str) -> Result<Id, Invalid> {
    let after = text.split_once("uuid=").map_or(text, |(_, after)| after);
    let word = after.split_whitespace().next().unwrap_or_default();
    word.trim_end_matches("-->").to_lowercase().parse()
}

/// What was replaced under this uuid, and whose it is.
async fn offload_at(
    records: &Records,
    ctx: &Ctx,
    uuid: &str,
) -> Result<Option<(Owner, Offload)>, Error> {
    let Ok(id) = offload_id(uuid) else {
        return Ok(None);
    };
    Ok(records.find(ctx, &id).await?.and_then(|record| {
        let offload = Offload::of(&record)?;
        Some((record.owner, offload))
    }))
}

/// The names that a session may have: they become names of files in other places.
fn check_session(session: &str) -> Result<(), Invalid> {
    check_name("session", session, limits::NAME_CHARS)?;
    if session.contains(['/', '\\']) || session.contains("..") {
        let what = "holds `/`, `\\` or `..`; a session is a plain name, not a path";
        return Err(Invalid::new("session", what));
    }
    Ok(())
}

impl<'a> Window<'a> {
    /// When it is compressed and what is kept.
    pub fn settings(mut self, settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        self.settings = settings;
        Ok(self)
    }

    /// The model that writes summaries, if not the memory's own. Without one they are made of what
    /// was said.
    #[must_use]
    pub fn llm(mut self, llm: Arc<dyn Llm>) -> Self {
        self.llm = Some(llm);
        self
    }

    /// What the model is asked.
    #[must_use]
    pub fn prompts(mut self, prompts: Prompts) -> Self {
        self.prompts = prompts;
        self
    }

    /// The plan that the agent follows.
    #[must_use]
    pub fn plan(mut self, plan: Plan) -> Self {
        self.plan = Some(plan);
        self
    }

    /// How tokens are counted, if not by the estimate.
    #[must_use]
    pub fn measure(mut self, measure: &'a Measure) -> Self {
        self.measure = measure;
        self
    }

    /// The agent that messages are said to or by.
    #[must_use]
    pub fn agent(mut self, agent: &str) -> Self {
        self.owner.agent = Some(agent.to_owned());
        self
    }

    /// Adds a message at the end. It is durable when this returns.
    pub async fn add_message(&self, ctx: &Ctx, message: Message) -> Result<Receipt, Error> {
        self.add_messages(ctx, vec![message], None).await
    }

    /// Adds messages at the end, all or none. They are durable when this returns: as records, which
    /// nothing here changes, and in a project as lines of its log. With a key a retry is harmless.
    pub async fn add_messages(
        &self,
        ctx: &Ctx,
        messages: Vec<Message>,
        key: Option<&str>,
    ) -> Result<Receipt, Error> {
        if messages.is_empty() {
            return Err(Invalid::new("messages", "is empty; nothing was said").into());
        }
        if self.project.is_some() {
            let receipt = self.append_to_log(ctx, messages.clone(), key).await?;
            // They are in the log, whatever the store says.
            self.warn_of_orphans(ctx, &messages).await.ok();
            return Ok(receipt);
        }
        let intended = key
            .map(|key| intent(key, &("window", &self.owner, &messages)))
            .transpose()?;
        let earliest = self.earliest_append(ctx).await?;
        let mut created = earliest;
        let drafts = messages.iter().map(|message| {
            created = created.max(said_at(message, ctx.now));
            let draft = self.message_draft(ctx, message.clone(), created)?;
            Ok((draft, Expect::Absent))
        });
        let mut drafts = drafts.collect::<Result<Vec<_>, Invalid>>()?;
        let mut taken = TakenOut::default();
        for (draft, _) in &mut drafts {
            self.records.safety.screen(draft, &mut taken)?;
        }
        let drawn = drafts.first().and_then(|(draft, _)| draft.id.clone());
        let receipt = self.records.put_screened(ctx, drafts, intended).await?;
        ctx.notices.extend(taken.sentences());
        // The receipt of a retry names the ids of the first attempt.
        let is_retry = receipt.items.first().map(|item| &item.id) != drawn.as_ref();
        if let Some(key) = key.filter(|_| is_retry) {
            return self.repeated(ctx, receipt, key).await;
        }
        self.stay_visible(ctx, &receipt, earliest).await?;
        self.warn_of_orphans(ctx, &messages).await?;
        Ok(receipt)
    }

    /// The earliest time of a message that is added now: that of all that the window has covered,
    /// and of the newest message, even if the clock of the process that wrote that one is ahead.
    async fn earliest_append(&self, ctx: &Ctx) -> Result<Time, Error> {
        let covered = self.covered(ctx).await?;
        let covered = covered.map_or(Ok(Time::EPOCH), |c| Time::from_millis(c.at.created))?;
        let newest = Scan::new(self.within(Kind::Message), 1);
        let newest = self.records.list(ctx, &newest).await?.records;
        let newest = newest.first().map(|record| record.created);
        // A message with a later time than that was dated by its author.
        let ahead = newest.filter(|at| *at <= ctx.now.plus_millis(CLOCK_AHEAD_MS));
        Ok(covered.max(ahead.unwrap_or(Time::EPOCH)))
    }

    /// The receipt of messages that were added before under this key.
    async fn repeated(&self, ctx: &Ctx, mut receipt: Receipt, key: &str) -> Result<Receipt, Error> {
        let there = self.written(ctx, &receipt).await?.len();
        if there == 0 {
            return Err(Error::KeySpent {
                key: key.to_owned(),
            });
        }
        if there < receipt.items.len() {
            ctx.notices.add(
                "Some messages that were added under this key have been deleted or undone since; \
                 they were not added again.",
            );
        }
        for item in &mut receipt.items {
            item.fate = already_there(&item.id);
        }
        Ok(receipt)
    }

    /// Says so if a result was added whose call is not among the last messages.
    async fn warn_of_orphans(&self, ctx: &Ctx, added: &[Message]) -> Result<(), Error> {
        let results = added.iter().flat_map(|message| &message.content);
        let mut results: HashSet<&str> = results.filter_map(result_id).collect();
        if results.is_empty() {
            return Ok(());
        }
        let page = self.records.limits().page;
        let newest = self.page(ctx, Order::Newest, None, page).await?;
        for message in newest.records.iter().map(message_of) {
            for block in &message.content {
                if let Block::ToolUse { id, .. } = block {
                    results.remove(id.as_str());
                }
            }
        }
        if !results.is_empty() {
            ctx.notices.add(
                "A tool result was added whose call is not in this conversation; \
                 the window shows it as text.",
            );
        }
        Ok(())
    }

    fn message_draft(&self, ctx: &Ctx, message: Message, created: Time) -> Result<Draft, Invalid> {
        let id = self.records.ids.next(ctx.now);
        message_draft(ctx, &self.owner, id, message, Some(created))
    }

    /// Another process, with a faster clock, may have compressed the window without seeing these:
    /// then they are moved behind the place it covers.
    async fn stay_visible(&self, ctx: &Ctx, receipt: &Receipt, created: Time) -> Result<(), Error> {
        let Some(covered) = self.covered(ctx).await? else {
            return Ok(());
        };
        if created.millis() > covered.at.created {
            return Ok(());
        }
        for mut record in self.written(ctx, receipt).await? {
            if Position::of(&record) <= covered.at && record.seq > covered.newest {
                record.created = Time::from_millis(covered.at.created)?.plus_millis(1);
                self.records.update_screened(ctx, record).await?;
            }
        }
        Ok(())
    }

    /// The records that a receipt is about.
    async fn written(&self, ctx: &Ctx, receipt: &Receipt) -> Result<Vec<Record>, Error> {
        let ids: Vec<Id> = receipt.items.iter().map(|item| item.id.clone()).collect();
        let mut written = Vec::with_capacity(ids.len());
        for ids in ids.chunks(limits::PAGE) {
            written.extend(self.records.get(ctx, ids).await?.into_iter().flatten());
        }
        Ok(written)
    }

    /// The messages as the model sees them, oldest first. A result whose call was forgotten or
    /// taken out, and a call that never got its result, are told as text.
    pub async fn get_messages(&self, ctx: &Ctx) -> Result<Vec<Message>, Error> {
        let messages = self.whole(ctx).await?.messages;
        Ok(told_as_text(ctx, messages))
    }

    /// The window as it was stored; an error if it holds too many messages.
    async fn whole(&self, ctx: &Ctx) -> Result<Read, Error> {
        let read = self.read(ctx).await?;
        if read.more {
            return Err(StoreError::TooLarge {
                what: "messages in the window (compress it)",
                count: read.messages.len(),
                most: self.records.limits().window_messages,
            }
            .into());
        }
        Ok(read)
    }

    /// Takes a message out of the window; what was said stays. Out of range nothing happens.
    /// Whether there was such a message.
    pub async fn delete_message(&self, ctx: &Ctx, index: i64) -> Result<bool, Error> {
        for _ in 0..limits::CHANGE_TRIES {
            let mut read = self.read(ctx).await?;
            let Some(at) = usize::try_from(index)
                .ok()
                .filter(|at| *at < read.entries.len())
            else {
                return Ok(false);
            };
            read.entries.remove(at);
            match self.write(ctx, &read, Vec::new()).await {
                Err(Error::Store(StoreError::Conflict { .. })) => {}
                done => return done.map(|_| true),
            }
        }
        Err(self.contended())
    }

    /// Empties the window. What was said, offloads and events stay.
    pub async fn clear(&self, ctx: &Ctx) -> Result<(), Error> {
        self.replace(ctx, Vec::new()).await
    }

    /// Puts these entries in the place of all that was said up to now.
    async fn replace(&self, ctx: &Ctx, entries: Vec<Entry>) -> Result<(), Error> {
        for _ in 0..limits::CHANGE_TRIES {
            let (version, working) = self.working(ctx).await?;
            let newest = Scan::new(self.within(Kind::Message), 1);
            let newest = self.records.list(ctx, &newest).await?.records;
            let read = Read {
                version,
                covered: newest.first().map(Covered::by).or(working.covered),
                entries: entries.clone(),
                messages: Vec::new(),
                more: false,
            };
            if read.covered.is_none() && entries.is_empty() {
                return Ok(());
            }
            match self.write(ctx, &read, Vec::new()).await {
                Err(Error::Store(StoreError::Conflict { .. })) => {}
                done => return done.map(drop),
            }
        }
        Err(self.contended())
    }

    /// What the conversation has of this kind, as its user sees it.
    fn within(&self, kind: Kind) -> Filter {
        let viewer = Viewer::of_caller(self.owner.user.clone(), None);
        within(&viewer, &self.owner, kind)
    }

    /// What was replaced under this uuid, as it stood in the window; `None` if there is no such
    /// thing in this session.
    pub async fn reload(&self, ctx: &Ctx, uuid: &str) -> Result<Option<Vec<Message>>, Error> {
        match offload_at(self.records, ctx, uuid).await? {
            Some((owner, offload)) if owner.session == self.owner.session => {
                self.reloaded(ctx, owner, offload).await
            }
            _ => Ok(None),
        }
    }

    async fn reloaded(
        &self,
        ctx: &Ctx,
        owner: Owner,
        offload: Offload,
    ) -> Result<Option<Vec<Message>>, Error> {
        if owner.user != self.owner.user {
            return Ok(None);
        }
        let found = self.resolve(ctx, offload.entries).await?;
        let messages: Vec<Message> = found.into_iter().map(|(_, message)| message).collect();
        Ok((!messages.is_empty()).then_some(messages))
    }

    /// The tool of that name: what was replaced, or one message that says why there is nothing.
    pub async fn context_reload(&self, ctx: &Ctx, uuid: Option<&str>) -> Vec<Message> {
        let uuid = uuid.unwrap_or_default();
        if uuid.trim().is_empty() {
            return said("Error: UUID cannot be null or empty.".to_owned());
        }
        match self.reload(ctx, uuid).await {
            Ok(Some(messages)) => messages,
            Ok(None) => said(not_found(uuid)),
            Err(error) => said(format!("Error reloading context with UUID {uuid}: {error}")),
        }
    }

    /// What compressions did, oldest first; the newest [`Limits::window_events`](mnemon_core::Limits::window_events) of them.
    pub async fn events(&self, ctx: &Ctx) -> Result<Vec<CompressionEvent>, Error> {
        let filter = Filter {
            tags: vec![TAG.to_owned()],
            ..self.within(Kind::Summary)
        };
        let scan = Scan::new(filter, self.records.limits().window_events);
        let records = self.records.list(ctx, &scan).await?.records;
        let offloads = records.iter().rev().filter_map(Offload::of);
        Ok(offloads.map(|offload| offload.event).collect())
    }

    /// A page of everything that was said, oldest first, and where to go on.
    pub async fn original(
        &self,
        ctx: &Ctx,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<(Vec<Message>, Option<Cursor>), Error> {
        let page = self.page(ctx, Order::Oldest, after, limit).await?;
        let messages = page.records.iter().map(message_of).collect();
        Ok((messages, page.next))
    }

    /// The last messages that were said before a place, or of all, oldest first; and the place
    /// before which to go on.
    pub async fn tail(
        &self,
        ctx: &Ctx,
        before: Option<Cursor>,
        count: usize,
    ) -> Result<(Vec<Message>, Option<Cursor>), Error> {
        let page = self.page(ctx, Order::Newest, before, count).await?;
        let messages = page.records.iter().rev().map(message_of).collect();
        Ok((messages, page.next))
    }

    async fn page(
        &self,
        ctx: &Ctx,
        order: Order,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, Error> {
        let scan = Scan {
            order,
            after,
            ..Scan::new(self.within(Kind::Message), limit)
        };
        self.records.list(ctx, &scan).await
    }

    fn id(&self) -> Id {
        self.fixed("window")
    }

    fn fixed(&self, sort: &str) -> Id {
        self.fixed_for(sort, &[])
    }

    fn fixed_for(&self, sort: &str, names: &[&str]) -> Id {
        let mut all = vec![self.owner.user.as_deref(), self.owner.session.as_deref()];
        all.extend(names.iter().copied().map(Some));
        fixed_id(sort, &all)
    }

    /// The place that the window reaches to. It has a record of its own, so that appending does
    /// not read the window.
    async fn covered(&self, ctx: &Ctx) -> Result<Option<Covered>, Error> {
        let record = self.records.find(ctx, &self.fixed("window-place")).await?;
        Ok(record.as_ref().map(Covered::of).transpose()?)
    }

    fn contended(&self) -> Error {
        StoreError::Conflict {
            id: self.id(),
            expected: "the window as it was read".to_owned(),
            current: None,
        }
        .into()
    }
}

/// The time of a message: its own, unless it has none or one in the future.
fn said_at(message: &Message, now: Time) -> Time {
    let own = message.timestamp.as_deref().and_then(|at| at.parse().ok());
    own.map_or(now, |own: Time| own.min(now))
}

fn result_id(block: &Block) -> Option<&str> {
    match block {
        Block::ToolResult { id, .. } => Some(id),
        _ => None,
    }
}

/// The messages with lone calls and results as text, and a notice if there are any.
fn told_as_text(ctx: &Ctx, messages: Vec<Message>) -> Vec<Message> {
    let (messages, changed) = paired(messages);
    if changed > 0 {
        ctx.notices.add(format!(
            "{changed} tool calls or results lack their counterpart; the window shows them as text."
        ));
    }
    messages
}

/// One message that says this.
fn said(text: String) -> Vec<Message> {
    vec![Message::text("context_reload", Role::System, text)]
}
