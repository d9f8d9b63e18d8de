//! What was said: the last turns, a summary of what came before, and the facts that stand out.

use mnemon_core::{
    Block, Ctx, Expect, Filter, Id, IdempotencyKey, Invalid, Kind, Message, Order, Origin, Owner,
    Receipt, Record, Role, Scan, Scope, Time, Viewer,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::records::draft::to_json;
use crate::records::naming::fixed_id;
use crate::records::{Draft, Error, Records};

/// How many turns are shown when nobody says.
pub const LIMIT_TURNS: usize = 20;
/// Messages that are read in one go, at the most.
const PAGE: usize = 500;
/// Messages that a turn has, as a first guess.
const PER_TURN: usize = 2;

/// The dialogs of a memory.
#[derive(Clone, Copy)]
pub struct Dialog<'a> {
    pub(crate) records: &'a Records,
}

/// What a model needs to know of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DialogContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SessionSummary>,
    /// The most important first.
    pub facts: Vec<SalientFact>,
    /// The last turns, oldest first.
    pub turns: Vec<Turn>,
    /// Whether there are older turns than these.
    pub more: bool,
}

/// What came before, in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    pub id: Id,
    pub text: String,
    pub version: u64,
    pub updated: Time,
}

/// Something that was said and should not get lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SalientFact {
    pub id: Id,
    #[serde(rename = "content")]
    pub text: String,
    pub importance: f64,
}

/// A user message and everything up to the next one. What comes before the first user message is
/// a turn of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Oldest first.
    pub messages: Vec<Said>,
}

/// A message as it was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    pub id: Id,
    #[serde(rename = "created")]
    pub at: Time,
    #[serde(serialize_with = "lower_case")]
    pub role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its text.
    pub content: String,
    /// All of its parts, if it has others than text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
}

fn lower_case<S: Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.word())
}

/// A message to be remembered, as the caller says it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utterance {
    /// The caller's own name for it; it is kept, but the record has an id of ours.
    #[serde(default)]
    pub id: Option<String>,
    pub role: Role,
    pub content: Content,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// When it was said, if not now.
    #[serde(default)]
    pub timestamp: Option<Time>,
}

/// Text, or the parts that a model may put into a message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "content must be a text or a list of blocks")]
pub enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl Utterance {
    /// Plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            id: None,
            role,
            content: Content::Text(text.into()),
            name: None,
            metadata: Map::new(),
            timestamp: None,
        }
    }

    /// The message that it is. Without an id of the caller's it has none yet.
    pub fn into_message(self) -> Message {
        Message {
            id: self.id.unwrap_or_default(),
            name: self.name,
            role: self.role,
            content: match self.content {
                Content::Text(text) => vec![Block::Text { text }],
                Content::Blocks(blocks) => blocks,
            },
            metadata: self.metadata,
            timestamp: self.timestamp.map(|at| at.to_string()),
        }
    }

    fn into_draft(self, ctx: &Ctx, id: Id, owner: &Owner) -> Result<Draft, Invalid> {
        let created = self.timestamp;
        let message = self.into_message();
        let content = message.text_content();
        let says_nothing = |block: &Block| matches!(block, Block::Text { .. });
        if content.trim().is_empty() && message.content.iter().all(says_nothing) {
            return Err(Invalid::new("content", "is empty; nothing was said"));
        }
        Ok(Draft {
            content,
            ..message_draft(ctx, owner, id, message, created)?
        })
    }
}

/// The record of a message.
pub(crate) fn message_draft(
    ctx: &Ctx,
    owner: &Owner,
    id: Id,
    mut message: Message,
    created: Option<Time>,
) -> Result<Draft, Invalid> {
    if message.id.is_empty() {
        message.id = id.to_string();
    }
    message.timestamp.get_or_insert_with(|| ctx.now.to_string());
    let body = to_json("message", &message)?;
    Ok(Draft {
        id: Some(id),
        // A NUL may be in what a tool gave back, but not in a text.
        content: message.searchable_text().replace('\0', "\u{fffd}"),
        owner: owner.clone(),
        kind: Some(Kind::Message),
        body: Some(body),
        origin: Some(origin_of(message.role)),
        created,
        metadata: message.metadata,
        ..Draft::default()
    })
}

impl Dialog<'_> {
    /// The summary, the salient facts and the last turns of a session.
    pub async fn get_context(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        user: &str,
        session: &str,
        limit_turns: usize,
    ) -> Result<DialogContext, Error> {
        let owner = session_of(user, session)?;
        let most = self.records.limits().turns;
        if limit_turns > most {
            let what = format!("is {limit_turns}, at most {most} are allowed");
            return Err(Invalid::new("limit_turns", what).into());
        }
        let ids = [summary_id(&owner)];
        let (summary, facts, said) = futures::join!(
            self.records.get_seen_by(ctx, viewer, &ids),
            self.facts(ctx, within(viewer, &owner, Kind::Fact)),
            self.last_turns(ctx, within(viewer, &owner, Kind::Message), limit_turns),
        );
        let summary = summary?.into_iter().flatten().next();
        let (turns, more) = said?;
        Ok(DialogContext {
            summary: summary.map(|record| SessionSummary {
                id: record.id,
                text: record.content,
                version: record.version,
                updated: record.updated,
            }),
            facts: facts?,
            turns,
            more,
        })
    }

    async fn facts(&self, ctx: &Ctx, facts: Filter) -> Result<Vec<SalientFact>, Error> {
        let scan = Scan::new(facts, self.records.limits().facts);
        let mut records = self.records.list(ctx, &scan).await?.records;
        // Stable: of equal worth the newest comes first.
        records.sort_by(|a, b| b.importance.total_cmp(&a.importance));
        let facts = records.into_iter().map(|record| SalientFact {
            id: record.id,
            text: record.content,
            importance: record.importance,
        });
        Ok(facts.collect())
    }

    /// The last turns, and whether there are older ones. Reads no further back than it must.
    async fn last_turns(
        &self,
        ctx: &Ctx,
        messages: Filter,
        limit: usize,
    ) -> Result<(Vec<Turn>, bool), Error> {
        // Enough for most conversations, and one to tell whether there is more.
        let page = limit.saturating_mul(PER_TURN).saturating_add(1).min(PAGE);
        let mut scan = Scan {
            order: Order::Newest,
            ..Scan::new(messages, page)
        };
        let mut collected = Turns::new(limit, self.records.limits().context_messages);
        loop {
            let page = self.records.list(ctx, &scan).await?;
            for record in page.records {
                if !collected.take(said(record)) {
                    return Ok((collected.oldest_first(), true));
                }
            }
            match page.next {
                Some(next) => {
                    scan.after = Some(next);
                    scan.limit = PAGE;
                }
                None => return Ok((collected.oldest_first(), false)),
            }
        }
    }

    /// Remembers a message.
    pub async fn append(
        &self,
        ctx: &Ctx,
        user: &str,
        session: &str,
        role: Role,
        content: &str,
    ) -> Result<Receipt, Error> {
        let owner = session_of(user, session)?;
        let said = vec![Utterance::text(role, content)];
        self.append_all(ctx, &owner, said, None).await
    }

    /// Remembers messages, all or none, in this order. The owner must name a user and a session.
    pub async fn append_all(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        said: Vec<Utterance>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        session_of_owner(owner)?;
        if said.is_empty() {
            return Err(Invalid::new("messages", "is empty; nothing was said").into());
        }
        let drafts = said.into_iter().map(|said| {
            let id = self.records.ids.next(ctx.now);
            Ok((said.into_draft(ctx, id, owner)?, Expect::Absent))
        });
        let drafts = drafts.collect::<Result<Vec<_>, Invalid>>()?;
        self.records.put(ctx, drafts, key).await
    }

    /// Replaces the summary of the session. What it covers is what it was made from: forgetting
    /// one of those messages forgets the summary.
    pub async fn update_summary(
        &self,
        ctx: &Ctx,
        user: &str,
        session: &str,
        summary: &str,
        covers: Vec<Id>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        let owner = session_of(user, session)?;
        let id = summary_id(&owner);
        let there = self.records.find(ctx, &id).await?;
        let draft = Draft {
            id: Some(id),
            content: summary.to_owned(),
            owner,
            audience: there.as_ref().and_then(|record| record.audience.clone()),
            kind: Some(Kind::Summary),
            origin: Some(Origin::Derived),
            created: there.map(|record| record.created),
            derived_from: covers,
            ..Draft::default()
        };
        if draft.content.trim().is_empty() {
            return Err(Invalid::new("summary", "is empty; say what happened").into());
        }
        let put = vec![(draft, Expect::Anything)];
        self.records.put(ctx, put, key).await
    }

    /// Keeps a fact of this session in view.
    pub async fn add_fact(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        fact: &str,
        importance: Option<f64>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        session_of_owner(owner)?;
        let draft = Draft {
            content: fact.to_owned(),
            owner: owner.clone(),
            scope: Some(Scope::Dialog),
            kind: Some(Kind::Fact),
            importance,
            ..Draft::default()
        };
        let put = vec![(draft, Expect::Absent)];
        self.records.put(ctx, put, key).await
    }
}

/// Turns under collection, from the newest message backwards.
struct Turns {
    limit: usize,
    most_messages: usize,
    messages: usize,
    /// Newest first; in each the newest message first. The last one may still grow.
    turns: Vec<Turn>,
    /// Whether the next older message begins a new turn.
    closed: bool,
}

impl Turns {
    fn new(limit: usize, most_messages: usize) -> Self {
        Self {
            limit,
            most_messages,
            messages: 0,
            turns: Vec::new(),
            closed: true,
        }
    }

    /// Takes the next older message, or says that there is no room for it.
    fn take(&mut self, said: Said) -> bool {
        if self.messages == self.most_messages {
            return false;
        }
        if self.closed {
            if self.turns.len() == self.limit {
                return false;
            }
            self.turns.push(Turn {
                messages: Vec::new(),
            });
        }
        self.closed = said.role == Role::User;
        self.messages += 1;
        if let Some(turn) = self.turns.last_mut() {
            turn.messages.push(said);
        }
        true
    }

    fn oldest_first(mut self) -> Vec<Turn> {
        self.turns.reverse();
        for turn in &mut self.turns {
            turn.messages.reverse();
        }
        self.turns
    }
}

/// The message that a record of a dialog keeps.
pub(crate) fn message_of(record: &Record) -> Message {
    Message::from_record(record).unwrap_or_else(|_| {
        // Written by hand, without the structured form.
        let role = role_of(record.origin);
        Message::text(record.id.to_string(), role, &record.content)
    })
}

fn said(mut record: Record) -> Said {
    let kept = record.body.take();
    // Taken apart rather than copied: a context has dozens of them.
    let kept = kept.and_then(|body| serde_json::from_value::<Message>(body).ok());
    let message = kept.unwrap_or_else(|| message_of(&record));
    let only_text = |block: &Block| matches!(block, Block::Text { .. });
    let content = message.text_content();
    Said {
        id: record.id,
        at: record.created,
        role: message.role,
        content,
        name: message.name,
        blocks: match message.content.iter().all(only_text) {
            true => Vec::new(),
            false => message.content,
        },
    }
}

/// Who such a message comes from.
fn origin_of(role: Role) -> Origin {
    match role {
        Role::User => Origin::User,
        Role::Assistant | Role::System => Origin::Agent,
        Role::Tool => Origin::Tool,
    }
}

fn role_of(origin: Origin) -> Role {
    match origin {
        Origin::User => Role::User,
        Origin::Tool => Role::Tool,
        Origin::Agent | Origin::File | Origin::Web | Origin::Derived => Role::Assistant,
    }
}

fn summary_id(owner: &Owner) -> Id {
    let names = [owner.user.as_deref(), owner.session.as_deref()];
    fixed_id("summary", &names)
}

/// What a session of a user has of this kind, as far as the viewer may see it.
pub(crate) fn within(viewer: &Viewer, owner: &Owner, kind: Kind) -> Filter {
    Filter {
        owner: Owner::of(owner.user.as_deref(), owner.session.as_deref()),
        scopes: vec![Scope::Dialog],
        kinds: vec![kind],
        ..Filter::seen_by(viewer.clone())
    }
}

/// The owner of what is said in this session.
fn session_of(user: &str, session: &str) -> Result<Owner, Invalid> {
    let owner = Owner::of(Some(user), Some(session));
    session_of_owner(&owner)?;
    Ok(owner)
}

/// An owner that names a user and a session.
pub(crate) fn session_of_owner(owner: &Owner) -> Result<(), Invalid> {
    for (field, name) in [("user", &owner.user), ("session", &owner.session)] {
        if name.as_deref().unwrap_or_default().trim().is_empty() {
            let what = "is missing; a dialog belongs to a user and a session";
            return Err(Invalid::new(field, what));
        }
    }
    owner.check()
}
