//! How an agent and a long-term memory work together: the frame looks after it (static), the agent
//! does by calling tools, or both.

mod note_copies;
mod outbox;
mod own;
mod remote;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::lock::Mutex;
use mnemon_core::longterm::LongTerm;
use mnemon_core::{Ctx, Id, Message, Owner, Role, Scope, recall_marks};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use note_copies::NoteCopies;
use outbox::Outbox;
pub use outbox::{ATTEMPTS, FIRST_WAIT_MS, MOST_WAIT_MS, OutboxDelivery, OutboxState};
pub use own::OwnLongTerm;
use remote::RemoteLongTerm;

use crate::memory::Memory;
use crate::records::Error;
use crate::records::naming::fixed_id;

/// The long-term memory that is configured: a service, or this engine.
pub fn of(memory: &Arc<Memory>) -> Arc<dyn LongTerm> {
    match &memory.long_term {
        Some(remote) => Arc::new(RemoteLongTerm::new(remote.clone(), memory.clone())),
        None => Arc::new(OwnLongTerm::new(memory.clone())),
    }
}

impl Memory {
    /// Sends recordings again that the long-term memory at another service did not take.
    pub async fn deliver_outbox(&self, ctx: &Ctx, limit: usize) -> Result<OutboxDelivery, Error> {
        match &self.long_term {
            Some(remote) => {
                let outbox = Outbox::new(self.records_of(Scope::Semantic), remote.as_ref());
                outbox.deliver(ctx, limit).await
            }
            None => Ok(OutboxDelivery::default()),
        }
    }

    /// How many recordings wait for the long-term memory at another service.
    pub async fn outbox(&self, ctx: &Ctx) -> Result<OutboxState, Error> {
        outbox::state(self.records_of(Scope::Semantic), ctx).await
    }
}

/// Who looks after the long-term memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The frame: what is known comes before each call, what was said is recorded after it.
    Static,
    /// The agent, by tools.
    Agent,
    #[default]
    Both,
}

impl Mode {
    fn is_static(self) -> bool {
        self != Self::Agent
    }

    fn has_tools(self) -> bool {
        self != Self::Static
    }
}

/// The name of the message that carries what is known.
pub const NAME: &str = "long_term_memory";
/// Recordings that may wait while one is under way; more are dropped, and say so.
pub const QUEUE: usize = 3;
/// The tools of the agent.
pub const RECORD: &str = "record_to_memory";
pub const RETRIEVE: &str = "retrieve_from_memory";

/// What is known, as the model is told it. The remembered text holds no character that begins a
/// tag, nor one that Unicode normalises to it, so that it cannot end the mark around it in any
/// spelling.
pub fn wrap(text: &str) -> String {
    let text = text.replace(['<', '\u{ff1c}', '\u{fe64}'], "&lt;");
    format!(
        "{}\n<{NAME}>\n{text}\n</{NAME}>",
        recall_marks::INTRODUCTION
    )
}

/// An agent's long-term memory.
pub struct Remembering {
    memory: Arc<dyn LongTerm>,
    owner: Owner,
    mode: Mode,
    queue: Arc<Queue>,
}

/// One recording at a time; those that wait are counted.
#[derive(Default)]
struct Queue {
    turn: Mutex<()>,
    count: AtomicUsize,
}

/// A place in the queue; it is free again when this is dropped, also when nobody ever waits.
struct Ticket(Arc<Queue>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Ticket {
    fn draw(queue: &Arc<Queue>) -> Option<Self> {
        let free = |count: usize| (count <= QUEUE).then_some(count + 1);
        let drawn = queue
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, free);
        drawn.ok().map(|_| Self(queue.clone()))
    }
}

/// The messages of a call, and what went wrong on the way, if something did.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    pub messages: Vec<Message>,
    /// Why nothing was added; the call goes on without.
    pub failure: Option<String>,
}

/// What became of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    Done,
    /// The mode, or an empty conversation, leaves nothing to record.
    Nothing,
    /// Too many others are waiting.
    Dropped,
    Failed(String),
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// A JSON schema.
    pub parameters: Value,
}

impl Remembering {
    /// This owner's share of the memory.
    pub fn new(memory: Arc<dyn LongTerm>, owner: Owner, mode: Mode) -> Self {
        Self {
            memory,
            owner,
            mode,
            queue: Arc::default(),
        }
    }

    /// Before a call (not before each step of it): the input with what is known about its last
    /// user message at the end. A memory that fails or knows nothing leaves the input as it is.
    pub async fn before_call(&self, ctx: &Ctx, input: Vec<Message>) -> Prepared {
        let mut prepared = Prepared {
            messages: input,
            failure: None,
        };
        let asked = |message: &&Message| message.role == Role::User && !is_recalled(message);
        let question = prepared.messages.iter().rev().find(asked);
        let Some(question) = question.filter(|_| self.mode.is_static()) else {
            return prepared;
        };
        if question.text_content().trim().is_empty() {
            return prepared;
        }
        match self.memory.retrieve(ctx, &self.owner, question).await {
            Ok(known) if known.trim().is_empty() => {}
            Ok(known) => {
                let id = message_id(ctx, &[NAME, &question.id]);
                let mut told = Message::text(id.to_string(), Role::User, wrap(&known));
                told.name = Some(NAME.to_owned());
                prepared.messages.push(told);
            }
            Err(error) => prepared.failure = Some(error.to_string()),
        }
        prepared
    }

    /// After the reply: records the conversation. The future may be awaited or spawned; it never
    /// fails, and the reply need not wait for it. One is under way at a time and [`QUEUE`] wait.
    pub fn after_reply(
        &self,
        ctx: Ctx,
        messages: Vec<Message>,
    ) -> impl Future<Output = Recorded> + Send + 'static {
        let (memory, owner, queue) = (self.memory.clone(), self.owner.clone(), self.queue.clone());
        // What was recalled is never learnt again as if it were new.
        let fresh = messages.into_iter().filter(|message| !is_recalled(message));
        let fresh: Vec<Message> = fresh.collect();
        let is_wanted = self.mode.is_static() && !fresh.is_empty();
        let ticket = is_wanted.then(|| Ticket::draw(&queue));
        async move {
            let ticket = match ticket {
                None => return Recorded::Nothing,
                Some(None) => return Recorded::Dropped,
                Some(Some(ticket)) => ticket,
            };
            let turn = queue.turn.lock().await;
            let done = memory.record(&ctx, &owner, &fresh).await;
            drop((turn, ticket));
            match done {
                Ok(()) => Recorded::Done,
                Err(error) => Recorded::Failed(error.to_string()),
            }
        }
    }

    /// The tools that the agent is given; none if the frame alone looks after the memory.
    pub fn tools(&self) -> Vec<Tool> {
        if !self.mode.has_tools() {
            return Vec::new();
        }
        let texts =
            |what: &str| json!({"type": "array", "items": {"type": "string"}, "description": what});
        vec![
            Tool {
                name: RECORD.to_owned(),
                description: "Record important info to long-term memory".to_owned(),
                parameters: json!({
                    "type": "object",
                    "properties": {
                        "thinking": {"type": "string", "description": "Why it is worth remembering"},
                        "content": texts("Statements to remember, one per entry"),
                    },
                    "required": ["content"],
                }),
            },
            Tool {
                name: RETRIEVE.to_owned(),
                description: "Retrieve info from long-term memory".to_owned(),
                parameters: json!({
                    "type": "object",
                    "properties": {"keywords": texts("Keywords to search for")},
                    "required": ["keywords"],
                }),
            },
        ]
    }

    /// Answers a call of one of the tools; `None` if the tool is not one of these.
    pub async fn call(&self, ctx: &Ctx, tool: &str, input: &Value) -> Option<String> {
        if !self.mode.has_tools() {
            return None;
        }
        match tool {
            RECORD | "recordToMemory" => {
                let thinking = input.get("thinking").and_then(Value::as_str);
                let content = texts(input.get("content"));
                Some(self.record_to_memory(ctx, thinking, &content).await)
            }
            RETRIEVE | "retrieveFromMemory" => {
                let keywords = texts(input.get("keywords"));
                Some(self.retrieve_from_memory(ctx, &keywords).await)
            }
            _ => None,
        }
    }

    /// The tool [`RECORD`]: its answer is a sentence for the model, whatever happens.
    pub async fn record_to_memory(
        &self,
        ctx: &Ctx,
        thinking: Option<&str>,
        content: &[String],
    ) -> String {
        if content.is_empty() {
            return "No content provided to record".to_owned();
        }
        let thought = thinking.into_iter().map(|text| (Role::Assistant, text));
        let told = content.iter().map(|text| (Role::User, text.as_str()));
        let all = thought
            .chain(told)
            .filter(|(_, text)| !text.trim().is_empty());
        let messages = all.enumerate().map(|(number, (role, text))| {
            let id = message_id(ctx, &[RECORD, &number.to_string(), text]);
            Message::text(id.to_string(), role, text)
        });
        let messages: Vec<Message> = messages.collect();
        if messages.is_empty() {
            return "No valid content to record".to_owned();
        }
        match self.memory.record(ctx, &self.owner, &messages).await {
            Ok(()) => "Successfully recorded to long-term memory".to_owned(),
            Err(error) => format!("Error recording memory: {error}"),
        }
    }

    /// The tool [`RETRIEVE`]: its answer is a text for the model, whatever happens.
    pub async fn retrieve_from_memory(&self, ctx: &Ctx, keywords: &[String]) -> String {
        let query = keywords.join(" ");
        if query.trim().is_empty() {
            return "No keywords provided for search".to_owned();
        }
        let id = message_id(ctx, &[RETRIEVE, &query]);
        let question = Message::text(id.to_string(), Role::User, query);
        match self.memory.retrieve(ctx, &self.owner, &question).await {
            Ok(known) if known.trim().is_empty() => "No relevant memories found".to_owned(),
            Ok(known) => wrap(&known),
            Err(error) => format!("Error retrieving memory: {error}"),
        }
    }
}

/// A list of texts, or a single one where a model gave just that.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => {
            let texts = items.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the message holds what a memory has told, or a summary of what is kept anyway.
fn is_recalled(message: &Message) -> bool {
    if message.name.as_deref() == Some(NAME) {
        return true;
    }
    let text = message.text_content();
    text.contains("<long_term_memory>") || text.contains("<compressed_history>")
}

fn message_id(ctx: &Ctx, parts: &[&str]) -> Id {
    let now = ctx.now.to_string();
    let mut names: Vec<Option<&str>> = parts.iter().copied().map(Some).collect();
    names.push(Some(&now));
    fixed_id("long-term", &names)
}
