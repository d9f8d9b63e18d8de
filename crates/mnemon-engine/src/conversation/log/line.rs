//! A line of a log, and the message that one or several lines are.
//!
//! A plain line has the four types of the document and a time. A message of several blocks is a
//! line for each of them, under one id. What these lines cannot say is in further members: `call`
//! and `tool` tell to which call a result belongs, `lines` how many lines the message has, and
//! `message` holds those fields of the message that would read differently without it.

use std::ops::Range;

use mnemon_core::{Block, Invalid, Message, Role, Time, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::read::RawLine;
use crate::records::draft::to_json;

/// What happened, as the log's format names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Said {
    User {
        content: String,
    },
    Thought {
        content: String,
    },
    Action {
        tool: String,
        #[serde(default)]
        params: Value,
    },
    Observation {
        result: Value,
    },
}

impl Said {
    /// That it says something. A tool may well answer with nothing.
    pub fn check(&self) -> Result<(), Invalid> {
        let (field, text, what) = match self {
            Self::User { content } | Self::Thought { content } => {
                ("content", content, "is empty; give the text to append")
            }
            Self::Action { tool, .. } => ("tool", tool, "is empty; name the tool"),
            Self::Observation { .. } => return Ok(()),
        };
        match text.trim().is_empty() {
            true => Err(Invalid::new(field, what)),
            false => Ok(()),
        }
    }

    /// Whether this message is what the line was read as, whatever call it answers.
    pub(crate) fn is_said_by(&self, message: &Message) -> bool {
        let (role, content) = (message.role, message.content.as_slice());
        match (self, content) {
            (Self::User { content }, [Block::Text { text }]) => {
                role == Role::User && text == content
            }
            (Self::Thought { content }, [Block::Text { text }]) => {
                role == Role::Assistant && text == content
            }
            (Self::Action { tool, params }, [Block::ToolUse { id, .. }]) => {
                content == [tool_use(id.clone(), tool.clone(), params.clone())]
            }
            (Self::Observation { result }, [Block::ToolResult { id, name, .. }]) => {
                content == [tool_result(id.clone(), name.clone(), result.clone())]
            }
            (Self::Observation { result }, [Block::Text { text }]) => *text == unanswering(result),
            _ => false,
        }
    }

    fn text(role: Role, content: String) -> Self {
        match role {
            Role::User => Self::User { content },
            Role::Assistant | Role::System => Self::Thought { content },
            Role::Tool => Self::Observation {
                result: Value::String(content),
            },
        }
    }

    /// The line of a block, and what more it must name.
    fn of(role: Role, block: &Block) -> (Self, Vec<(&'static str, Value)>) {
        let named = |name: &str| (Self::text(role, name.to_owned()), Vec::new());
        match block {
            Block::Text { text } => named(text),
            Block::Thinking { thinking, .. } => {
                let content = thinking.clone();
                (Self::Thought { content }, Vec::new())
            }
            Block::Image { .. } => named("[image]"),
            Block::Audio { .. } => named("[sound]"),
            Block::Video { .. } => named("[video]"),
            Block::ToolUse {
                id, name, input, ..
            } => {
                let (tool, params) = (name.clone(), Value::Object(input.clone()));
                (Self::Action { tool, params }, vec![(CALL, json!(id))])
            }
            Block::ToolResult {
                id, name, output, ..
            } => {
                let result = match output.as_slice() {
                    [Block::Text { text }] => json!(text),
                    blocks => json!(blocks),
                };
                let more = vec![(CALL, json!(id)), (TOOL, json!(name))];
                (Self::Observation { result }, more)
            }
        }
    }
}

const CALL: &str = "call";
const TOOL: &str = "tool";
const LINES: &str = "lines";
const MESSAGE: &str = "message";

/// The time of a line that is written now: later than a purge, whatever the clock says.
pub(crate) fn after_purge(now: Time, purged: Option<Time>) -> Time {
    purged.map_or(now, |purged| now.max(purged.plus_millis(1)))
}

/// Writes messages as lines.
pub(crate) struct Writer {
    /// The time that the lines carry.
    pub(crate) at: Time,
}

impl Writer {
    /// One line of a type of the document, with its break.
    pub(crate) fn line(&self, said: &Said, id: &str) -> Result<Vec<u8>, Invalid> {
        self.bytes(said, id, &[])
    }

    /// The lines of a message, with their breaks. Read again they are the same message.
    pub(crate) fn lines(&self, message: &Message, id: &str) -> Result<Vec<u8>, Invalid> {
        let (role, blocks) = (message.role, &message.content);
        let mut lines: Vec<_> = blocks.iter().map(|block| Said::of(role, block)).collect();
        if lines.is_empty() {
            lines.push((Said::text(role, String::new()), Vec::new()));
        }
        let count = lines.len();
        if let Some((_, more)) = lines.first_mut().filter(|_| count > 1) {
            more.push((LINES, json!(count)));
        }
        let plain = self.joined(&lines, id)?;
        let differing = differing(message, &read_back(&plain))?;
        if differing.is_empty() {
            return Ok(plain);
        }
        if let Some((_, more)) = lines.first_mut() {
            more.push((MESSAGE, Value::Object(differing)));
        }
        self.joined(&lines, id)
    }

    fn joined(&self, lines: &[(Said, Vec<(&str, Value)>)], id: &str) -> Result<Vec<u8>, Invalid> {
        let mut bytes = Vec::new();
        for (said, more) in lines {
            bytes.extend(self.bytes(said, id, more)?);
        }
        Ok(bytes)
    }

    fn bytes(&self, said: &Said, id: &str, more: &[(&str, Value)]) -> Result<Vec<u8>, Invalid> {
        let invalid = |error: serde_json::Error| Invalid::new("line", error.to_string());
        let mut text = serde_json::to_string(said).map_err(invalid)?;
        let members = [("ts", json!(self.at)), ("id", json!(id))];
        for (name, value) in members.iter().chain(more) {
            // Before the brace at the end, so that a line of the document keeps its order.
            text.truncate(text.len().saturating_sub(1));
            text.push_str(&format!(",\"{name}\":{value}}}"));
        }
        if text.len() > limits::LOG_LINE_BYTES {
            let (bytes, most) = (text.len(), limits::LOG_LINE_BYTES);
            let what = format!("has {bytes} bytes, a line of a log at most {most}");
            return Err(Invalid::new("message", what));
        }
        text.push('\n');
        Ok(text.into_bytes())
    }
}

fn read_back(bytes: &[u8]) -> Option<Message> {
    let mut reader = Reader::default();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let raw = RawLine {
            start: 0,
            end: line.len() as u64,
            bytes: line.to_vec(),
            is_too_long: false,
        };
        reader.take(raw, None);
    }
    reader.close();
    reader.messages.pop().map(|logged| logged.message)
}

/// The fields of the message that the other one has differently.
fn differing(message: &Message, read: &Option<Message>) -> Result<Map<String, Value>, Invalid> {
    let json = |message: &Message| to_json("message", message);
    let read = read.as_ref().map_or(Ok(Value::Null), json)?;
    let Value::Object(mut fields) = json(message)? else {
        return Ok(Map::new());
    };
    fields.retain(|name, value| read.get(name.as_str()) != Some(value));
    Ok(fields)
}

/// A message that was read, and where it stands.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) at: Range<u64>,
    /// The id that its lines carry, if it is one of ours: others need not be unique.
    pub(super) id: Option<String>,
    pub(super) time: Option<Time>,
    pub(super) message: Message,
    /// A digest of its lines.
    pub(super) digest: String,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) offset: u64,
    pub(super) why: String,
}

/// Calls that a plain observation may answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Calls {
    /// Id and tool, oldest first.
    waiting: Vec<(String, String)>,
    /// Whether the last line was a call, so that another one is made at the same time.
    was_action: bool,
}

/// Calls that are remembered at most.
const MOST_WAITING: usize = 64;

/// Makes messages of lines.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) calls: Calls,
    pub(super) messages: Vec<Logged>,
    pub(super) skipped: Vec<Skipped>,
    /// Up to where lines were consumed.
    pub(super) consumed: u64,
    /// Observations that answer no call.
    pub(super) orphans: usize,
    open: Option<Open>,
}

/// A message of which there may be more lines.
struct Open {
    logged: Logged,
    /// How many lines are still to come; `None` if the first one does not say so, as earlier
    /// versions wrote it.
    missing: Option<u64>,
    overlay: Option<Map<String, Value>>,
    hasher: blake3::Hasher,
    /// The calls that waited before its first line.
    calls: Calls,
}

impl Reader {
    /// Goes on where these calls wait for results.
    pub(super) fn after(calls: Calls) -> Self {
        Self {
            calls,
            ..Self::default()
        }
    }

    /// Takes the next line.
    pub(super) fn take(&mut self, raw: RawLine, purged: Option<Time>) {
        let bytes = match raw.start {
            // Some editors begin a file with a mark.
            0 => raw
                .bytes
                .strip_prefix(b"\xef\xbb\xbf")
                .unwrap_or(&raw.bytes),
            _ => &raw.bytes,
        };
        let bytes = bytes.trim_ascii();
        if raw.is_too_long {
            return self.skip(&raw, "it is longer than the maximum length of a line");
        }
        if bytes.is_empty() {
            return self.pass(&raw);
        }
        let members: Map<String, Value> = match std::str::from_utf8(bytes) {
            Err(_) => return self.skip(&raw, "it is not UTF-8"),
            Ok(text) => match serde_json::from_str(text) {
                Err(_) => return self.skip(&raw, "it is not a JSON object"),
                Ok(members) => members,
            },
        };
        let time = members.get("ts").and_then(Value::as_str);
        let time = time.and_then(|ts| ts.parse::<Time>().ok());
        // Of a line without a time nobody knows whether it is older than the purge.
        if purged.is_some_and(|purged| time.is_none_or(|time| time <= purged)) {
            return self.skip(&raw, "it is older than the purge of the session");
        }
        self.add(raw.start..raw.end, bytes, members, time);
    }

    fn skip(&mut self, raw: &RawLine, why: &str) {
        self.pass(raw);
        self.skip_at(raw.start, why);
    }

    /// Goes past a line that says nothing. Behind a message that lacks lines it may be the rest of
    /// a write that failed, after which the message is written again.
    fn pass(&mut self, raw: &RawLine) {
        match self.open.as_mut().filter(|open| open.missing > Some(0)) {
            Some(open) => open.logged.at.end = raw.end,
            None => {
                self.close();
                self.consumed = raw.end;
            }
        }
    }

    pub(super) fn skip_at(&mut self, offset: u64, why: &str) {
        let why = why.to_owned();
        self.skipped.push(Skipped { offset, why });
    }

    fn add(
        &mut self,
        at: Range<u64>,
        bytes: &[u8],
        members: Map<String, Value>,
        time: Option<Time>,
    ) {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let named = text("id");
        let id = named.filter(|id| is_ours(id, time)).map(str::to_owned);
        let lines = members.get(LINES).and_then(Value::as_u64);
        // The message begins anew: what lacks lines was written by a process that failed.
        let is_torn = |open: &mut Open| open.missing > Some(0) && open.logged.id == id;
        if lines.is_some()
            && let Some(torn) = self.open.take_if(is_torn)
        {
            self.calls = torn.calls;
        }
        let calls = self.calls.clone();
        let (role, block) = self.block(&members, at.start, id.as_deref());
        let same = self
            .open
            .as_mut()
            .filter(|open| lines.is_none() && id.is_some() && open.logged.id == id);
        let goes_on = same.filter(|open| match open.missing {
            Some(missing) => missing > 0,
            // The same line twice is one message that two processes wrote under one key.
            None => !open.logged.message.content.contains(&block),
        });
        if let Some(open) = goes_on {
            open.logged.message.content.push(block);
            open.logged.at.end = at.end;
            open.missing = open.missing.map(|missing| missing - 1);
            open.hasher.update(bytes);
            return;
        }
        self.close();
        let mut hasher = blake3::Hasher::new();
        hasher.update(bytes);
        self.open = Some(Open {
            missing: lines.map(|lines| lines.saturating_sub(1)),
            overlay: members.get(MESSAGE).and_then(Value::as_object).cloned(),
            logged: Logged {
                at,
                message: Message {
                    id: named.unwrap_or_default().to_owned(),
                    name: None,
                    role,
                    content: vec![block],
                    metadata: Map::new(),
                    timestamp: text("ts").map(str::to_owned),
                },
                id,
                time,
                digest: String::new(),
            },
            hasher,
            calls,
        });
    }

    /// The block that a line is, and who speaks.
    fn block(&mut self, members: &Map<String, Value>, at: u64, id: Option<&str>) -> (Role, Block) {
        let was_action = std::mem::take(&mut self.calls.was_action);
        let text = |text: String| Block::Text { text };
        let object = Value::Object(members.clone());
        let Ok(said) = Said::deserialize(&object) else {
            // Of a type that a newer writer may know.
            return (Role::Assistant, text(object.to_string()));
        };
        let named = |name: &str| members.get(name).and_then(Value::as_str);
        match said {
            Said::User { content } => {
                self.calls.waiting.clear();
                (Role::User, text(content))
            }
            Said::Thought { content } => (Role::Assistant, text(content)),
            Said::Action { tool, params } => {
                if !was_action {
                    self.calls.waiting.clear();
                }
                self.calls.was_action = true;
                let plain = || format!("call-{}", id.map_or(at.to_string(), str::to_owned));
                let call = named(CALL).map_or_else(plain, str::to_owned);
                if self.calls.waiting.len() < MOST_WAITING {
                    self.calls.waiting.push((call.clone(), tool.clone()));
                }
                (Role::Assistant, tool_use(call, tool, params))
            }
            Said::Observation { result } => {
                let call = match (named(CALL), named(TOOL)) {
                    (Some(call), tool) => {
                        self.calls.waiting.retain(|(waiting, _)| waiting != call);
                        Some((call.to_owned(), tool.unwrap_or_default().to_owned()))
                    }
                    (None, _) if self.calls.waiting.is_empty() => None,
                    (None, _) => Some(self.calls.waiting.remove(0)),
                };
                match call {
                    Some((id, name)) => (Role::Tool, tool_result(id, name, result)),
                    None => {
                        self.orphans += 1;
                        (Role::Assistant, text(unanswering(&result)))
                    }
                }
            }
        }
    }

    /// Ends the message under way. One that lacks lines keeps what it has, but not its id: its
    /// writer may write it again.
    pub(super) fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let mut logged = open.logged;
        if open.missing > Some(0) {
            logged.id = None;
        } else if let Some(overlay) = open.overlay {
            logged.message = overlaid(logged.message, overlay);
        }
        logged.digest = open.hasher.finalize().to_hex().chars().take(16).collect();
        self.consumed = logged.at.end;
        self.messages.push(logged);
    }

    /// Whether the next line may belong to the message under way.
    pub(super) fn is_open(&self) -> bool {
        self.open.as_ref().is_some_and(|open| match open.missing {
            Some(missing) => missing > 0,
            None => open.logged.id.is_some(),
        })
    }

    /// Leaves the message under way unread, because more lines of it may follow.
    pub(super) fn leave(&mut self) {
        if let Some(open) = self.open.take() {
            self.calls = open.calls;
        }
    }

    /// Ends the last message of the log, unless lines of it are still to come.
    pub(super) fn finish(&mut self) {
        match self.open.take_if(|open| open.missing > Some(0)) {
            Some(open) => self.calls = open.calls,
            None => self.close(),
        }
    }
}

/// Whether a line of this time has this id from us: made of a key, or drawn when it was written.
/// Other tools give several lines the same one.
fn is_ours(id: &str, time: Option<Time>) -> bool {
    let mut bytes = id.bytes().enumerate();
    let is_uuid = id.len() == 36
        && bytes.all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let digits: String = id.chars().filter(|char| *char != '-').collect();
    let drawn = digits.get(..12).map(|time| i64::from_str_radix(time, 16));
    is_uuid
        && match digits.as_bytes().get(12) {
            Some(b'8') => true,
            Some(b'7') => time.is_some_and(|time| drawn == Some(Ok(time.millis()))),
            _ => false,
        }
}

fn tool_use(id: String, name: String, params: Value) -> Block {
    let input = match params {
        Value::Object(input) => input,
        Value::Null => Map::new(),
        other => Map::from_iter([("params".to_owned(), other)]),
    };
    Block::ToolUse {
        id,
        name,
        input,
        content: None,
        metadata: Map::new(),
    }
}

fn tool_result(id: String, name: String, result: Value) -> Block {
    let blocks = result
        .is_array()
        .then(|| Vec::<Block>::deserialize(&result));
    let output = match blocks {
        Some(Ok(blocks)) => blocks,
        _ => vec![Block::Text {
            text: plain_text(&result),
        }],
    };
    Block::ToolResult {
        id,
        name,
        output,
        metadata: Map::new(),
    }
}

/// How an observation reads that answers no call.
fn unanswering(result: &Value) -> String {
    format!("Observation: {}", plain_text(result))
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The message with these fields in the place of its own.
fn overlaid(message: Message, overlay: Map<String, Value>) -> Message {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(&message) else {
        return message;
    };
    fields.extend(overlay);
    serde_json::from_value(Value::Object(fields)).unwrap_or(message)
}
