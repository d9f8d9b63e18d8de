//! Which call belongs to which result. A model refuses a result without its call.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::predicates::{has_result, is_tool_result, is_tool_use, is_user, output_text};
use super::tokens::flat_json;
use crate::model::{Block, Message, Role};

/// A block, by the places of its message and of itself in it.
type Place = (usize, usize);

/// Calls with their results, and results without a call before them.
fn matched(messages: &[Message]) -> (Vec<(Place, Place)>, HashSet<Place>) {
    let mut latest: HashMap<&str, Place> = HashMap::new();
    let (mut pairs, mut orphans) = (Vec::new(), HashSet::new());
    for (at, message) in messages.iter().enumerate() {
        for (place, block) in message.content.iter().enumerate() {
            match block {
                Block::ToolUse { id, .. } => {
                    latest.insert(id, (at, place));
                }
                // Ids come back in later rounds: the call is the newest one before it.
                Block::ToolResult { id, .. } => match latest.get(id.as_str()) {
                    Some(call) => pairs.push((*call, (at, place))),
                    None => {
                        orphans.insert((at, place));
                    }
                },
                _ => {}
            }
        }
    }
    (pairs, orphans)
}

/// Calls and their results, by the places of their messages.
pub(super) struct Calls {
    pairs: Vec<(usize, usize)>,
    /// The message of the newest calls, if one of them may still be answered.
    open: Option<usize>,
}

impl Calls {
    pub(super) fn of(messages: &[Message]) -> Self {
        let (pairs, _) = matched(messages);
        let answered: HashSet<Place> = pairs.iter().map(|(call, _)| *call).collect();
        let open = newest_calls(messages).filter(|at| {
            let content = messages.get(*at).map(|m| m.content.as_slice());
            let mut blocks = content.unwrap_or_default().iter().enumerate();
            blocks.any(|(place, block)| {
                matches!(block, Block::ToolUse { .. }) && !answered.contains(&(*at, place))
            })
        });
        let pairs = pairs.into_iter().map(|(call, result)| (call.0, result.0));
        Self {
            pairs: pairs.collect(),
            open,
        }
    }

    /// Whether nothing that belongs together would be parted if these messages were replaced.
    pub(super) fn closed(&self, range: &Range<usize>) -> bool {
        let parted =
            |(call, result): &(usize, usize)| range.contains(call) != range.contains(result);
        !self.pairs.iter().any(parted) && !self.open.is_some_and(|open| range.contains(&open))
    }

    /// The message of calls that may still be answered.
    pub(super) fn open(&self) -> Option<usize> {
        self.open
    }
}

/// The newest message with calls, unless the conversation has long gone on without an answer.
fn newest_calls(messages: &[Message]) -> Option<usize> {
    let at = messages.iter().rposition(is_tool_use)?;
    let since = messages.iter().skip(at + 1);
    let users = since.filter(|m| is_user(m)).count();
    (users < 2).then_some(at)
}

/// The last `count` messages, or fewer: what would begin with results whose calls are gone begins
/// after them. The plainest way to make a window smaller; nothing is kept of the rest.
pub fn truncated(messages: &[Message], count: usize) -> &[Message] {
    let calls = Calls::of(messages);
    let from = messages.len().saturating_sub(count);
    let parted = calls.pairs.iter();
    let parted = parted.filter(|(call, result)| *call < from && *result >= from);
    let from = parted.map(|(_, result)| result + 1).max().unwrap_or(from);
    messages.get(from..).unwrap_or_default()
}

/// The messages as a model takes them, and how many blocks were changed for that: a result without
/// its call before it, and a call that was passed over without a result, become text. Only calls
/// after which nothing but results was said may still be answered.
pub fn paired(messages: Vec<Message>) -> (Vec<Message>, usize) {
    let (pairs, orphans) = matched(&messages);
    let answered: HashSet<Place> = pairs.into_iter().map(|(call, _)| call).collect();
    // A result that becomes text is something else that was said after the call.
    let is_answer = |at: usize, message: &Message| {
        let results = message.content.iter().enumerate();
        let mut results = results.filter(|(_, b)| matches!(b, Block::ToolResult { .. }));
        let is_orphaned = orphans.iter().any(|(orphan, _)| *orphan == at)
            && results.all(|(place, _)| orphans.contains(&(at, place)));
        is_tool_result(message) && !is_orphaned
    };
    let all = messages.iter().enumerate();
    let open = all
        .rev()
        .find(|(at, m)| !is_answer(*at, m))
        .map(|(at, _)| at);
    let mut changed = 0;
    let paired = messages.into_iter().enumerate().map(|(at, mut message)| {
        let mut is_orphan = false;
        for (place, block) in message.content.iter_mut().enumerate() {
            let here = (at, place);
            let text = match block {
                Block::ToolUse { name, input, .. }
                    if Some(at) != open && !answered.contains(&here) =>
                {
                    format!("[Call of {name} without a result: {}]", flat_json(input))
                }
                Block::ToolResult { name, output, .. } if orphans.contains(&here) => {
                    is_orphan = true;
                    format!(
                        "[Result of {name}, whose call is gone: {}]",
                        output_text(output)
                    )
                }
                _ => continue,
            };
            *block = Block::Text { text };
            changed += 1;
        }
        // Providers take no tool's message without a result.
        if is_orphan && !has_result(&message) && message.role == Role::Tool {
            message.role = Role::Assistant;
        }
        message
    });
    let paired = paired.collect();
    (paired, changed)
}

/// Whether every result has its call before it.
pub fn is_paired(messages: &[Message]) -> bool {
    matched(messages).1.is_empty()
}
