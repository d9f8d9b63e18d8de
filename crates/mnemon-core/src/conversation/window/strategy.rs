//! The ways to make a window smaller, from the gentlest to the roughest, and what each would do.

use std::ops::Range;

use super::calls::Calls;
use super::predicates::{
    chars, is_compressed, is_compressed_round, is_final_assistant, is_tool, is_tool_result,
    is_tool_use, is_user, output_text,
};
use super::{Change, Measure, Settings, tokens};
use crate::error::words;
use crate::model::{Block, Message, Role, limits};

words! {
    /// A way to make a window smaller. Its word is the type of the event that it leaves.
    Strategy, "strategy" {
        /// In a project: the older half becomes a page of its library, and a link to it.
        HistoryPage = "HISTORY_PAGE",
        /// Runs of tool messages of earlier rounds become a summary each.
        ToolInvocations = "TOOL_INVOCATION_COMPRESS",
        /// Large messages before the last ones become a preview.
        LargeProtected = "LARGE_MESSAGE_OFFLOAD_WITH_PROTECTION",
        /// Large messages of earlier rounds become a preview.
        Large = "LARGE_MESSAGE_OFFLOAD",
        /// What lies between a question and its answer, and the answer, become a summary.
        PreviousRounds = "PREVIOUS_ROUND_CONVERSATION_SUMMARY",
        /// Everything before the last messages becomes one summary. Not in the document.
        History = "HISTORY_SUMMARY",
        /// Large messages of the current round become a summary each.
        CurrentLarge = "CURRENT_ROUND_LARGE_MESSAGE_SUMMARY",
        /// The current round becomes a summary.
        CurrentRound = "CURRENT_ROUND_MESSAGE_COMPRESS",
        /// Everything before the last user message becomes one summary. Not in the document.
        WholeHistory = "WHOLE_HISTORY_SUMMARY",
    }
}

impl Strategy {
    /// Whether it keeps the beginning of a large text instead of a summary.
    pub fn is_offload(self) -> bool {
        matches!(self, Self::LargeProtected | Self::Large)
    }

    /// Whether it leaves the last messages alone: only these are used below the limits.
    pub fn is_gentle(self) -> bool {
        matches!(
            self,
            Self::ToolInvocations | Self::LargeProtected | Self::History
        )
    }

    /// The part of the text that a summary by this strategy may have, if there is room.
    fn part(self, settings: &Settings) -> f64 {
        match self {
            Self::HistoryPage | Self::History | Self::WholeHistory => 0.6,
            Self::CurrentRound => settings.current_round_compression_ratio,
            _ => 0.3,
        }
    }
}

/// What the strategy would replace: ranges that do not overlap, the last one first, so that each
/// can be carried out without moving those that follow.
pub fn plan(
    strategy: Strategy,
    messages: &[Message],
    settings: &Settings,
    measure: &Measure,
) -> Vec<Change> {
    let talk = Talk {
        messages,
        settings,
        measure,
        calls: Calls::of(messages),
        last_user: messages.iter().rposition(is_user),
        last_final: messages.iter().rposition(is_final_assistant),
    };
    let mut changes = match strategy {
        Strategy::HistoryPage => talk.older_half(),
        Strategy::ToolInvocations => talk.tool_invocations(),
        Strategy::LargeProtected => talk.large(talk.protected_end()),
        Strategy::Large => talk.large(talk.last_final.unwrap_or(0)),
        Strategy::PreviousRounds => talk.previous_rounds(),
        Strategy::History => talk.history(talk.before_last_keep()),
        Strategy::CurrentLarge => talk.current_large(),
        Strategy::CurrentRound => talk.current_round(),
        Strategy::WholeHistory => talk.history(messages.len().saturating_sub(1)),
    };
    let share = talk.room(&changes) / changes.len().max(1);
    for change in &mut changes {
        let most = talk.tokens(&change.replaced) * 4 / 5;
        change.strategy = strategy;
        change.part = strategy.part(settings);
        change.room_chars = chars_of(share.min(most));
        change.size_for(change.original_chars);
    }
    changes.sort_by_key(|change| std::cmp::Reverse(change.replaced.start));
    changes
}

/// Characters that so many tokens are, by the estimate.
fn chars_of(tokens: usize) -> usize {
    tokens * 5 / 2
}

/// A conversation under inspection.
struct Talk<'a> {
    messages: &'a [Message],
    settings: &'a Settings,
    measure: &'a Measure,
    calls: Calls,
    last_user: Option<usize>,
    last_final: Option<usize>,
}

impl Talk<'_> {
    fn get(&self, range: &Range<usize>) -> &[Message] {
        self.messages.get(range.clone()).unwrap_or_default()
    }

    fn is(&self, at: usize, what: impl Fn(&Message) -> bool) -> bool {
        self.messages.get(at).is_some_and(what)
    }

    fn tokens(&self, range: &Range<usize>) -> usize {
        tokens(self.get(range), self.measure)
    }

    /// Where the last messages begin.
    fn before_last_keep(&self) -> usize {
        self.messages
            .len()
            .saturating_sub(self.settings.last_keep())
    }

    /// Before the latest answer and before the last messages.
    fn protected_end(&self) -> usize {
        let end = self.before_last_keep();
        self.last_final.map_or(end, |last| last.min(end))
    }

    fn has_enough(&self) -> bool {
        self.messages.len() >= self.settings.last_keep()
    }

    fn summary(&self, replaced: Range<usize>, offloaded: Range<usize>) -> Change {
        let chars: usize = self.get(&offloaded).iter().map(chars).sum();
        Change {
            strategy: Strategy::History,
            replaced,
            offloaded,
            original_chars: chars,
            summary_chars: 0,
            room_chars: 0,
            part: 0.0,
        }
    }

    /// The older half of what is not compressed yet, but for the last user message.
    fn older_half(&self) -> Vec<Change> {
        let compressed = self.messages.iter().rposition(is_compressed);
        let mut start = compressed.map_or(0, |last| last + 1);
        let mut middle = start + (self.messages.len() - start) / 2;
        if let Some(user) = self.last_user.filter(|user| (start..middle).contains(user)) {
            match user - start >= middle - user {
                true => middle = user,
                false => start = user + 1,
            }
        }
        let most = self.last_user.filter(|user| *user >= start);
        let most = most.unwrap_or(self.messages.len().saturating_sub(1));
        let later = middle.max(start + 1)..=most;
        let mut ends = later.chain((start + 1..middle).rev());
        let closed = |end: &usize| {
            let size = *end - start;
            size <= limits::WINDOW_REPLACED && self.calls.closed(&(start..*end))
        };
        let end = ends.find(closed).into_iter();
        end.map(|end| self.summary(start..end, start..end))
            .collect()
    }

    /// Tokens that summaries may have, so that the window is at three fifths of its limit
    /// afterwards; a tenth of the limit if what stays is more than half of it.
    fn room(&self, changes: &[Change]) -> usize {
        let limit = self.settings.token_limit();
        let replaced: usize = changes.iter().map(|c| self.tokens(&c.replaced)).sum();
        let stays = tokens(self.messages, self.measure).saturating_sub(replaced);
        (limit * 3 / 5).saturating_sub(stays).max(limit / 10)
    }

    fn tool_invocations(&self) -> Vec<Change> {
        let mut found = Vec::new();
        if !self.has_enough() || self.last_final.is_none() {
            return found;
        }
        let (mut cursor, end) = (0, self.protected_end());
        while found.len() < limits::WINDOW_TOOL_GROUPS && cursor < end {
            let run = self.run_of_tools(cursor, end);
            if run.is_empty() {
                break;
            }
            cursor = run.end;
            let Some(group) = self.whole_calls(run) else {
                continue;
            };
            if self.tokens(&group) >= self.settings.min_compression_token_threshold {
                cursor = group.end;
                found.push(self.summary(group.clone(), group));
            }
        }
        found
    }

    /// The next messages in a row that have to do with tools.
    fn run_of_tools(&self, from: usize, end: usize) -> Range<usize> {
        let start = (from..end).find(|at| self.is(*at, is_tool)).unwrap_or(end);
        let stop = (start..end).find(|at| !self.is(*at, is_tool));
        start..stop.unwrap_or(end)
    }

    /// The run from its first call to a result after which nothing is parted, if it is long enough.
    fn whole_calls(&self, run: Range<usize>) -> Option<Range<usize>> {
        let least = self.settings.min_consecutive_tool_messages;
        let start = run.clone().find(|at| self.is(*at, is_tool_use))?;
        let most = run.end.min(start + limits::WINDOW_REPLACED);
        let mut ends = (start + 1..=most).rev();
        let end =
            ends.find(|end| self.is(end - 1, is_tool_result) && self.calls.closed(&(start..*end)))?;
        (end - start > least).then_some(start..end)
    }

    fn large(&self, end: usize) -> Vec<Change> {
        if !self.has_enough() {
            return Vec::new();
        }
        let last_user = self.last_user;
        let places = (0..end).rev().filter(|at| {
            // The last user message stays as it is, however large.
            Some(*at) != last_user && self.is(*at, |m| self.is_large(m))
        });
        places
            .map(|at| self.summary(at..at + 1, at..at + 1))
            .collect()
    }

    fn is_large(&self, message: &Message) -> bool {
        let more = |text: &str| text.chars().count() > self.settings.large_payload_threshold;
        // A replacement is as large as the room allows; its beginning would say nothing.
        if is_tool_use(message) || is_compressed(message) {
            return false;
        }
        if !is_tool_result(message) {
            return more(&message.text_content());
        }
        let mut results = message.content.iter().filter_map(|block| match block {
            Block::ToolResult { output, .. } => Some(output_text(output)),
            _ => None,
        });
        results.any(|text| more(&text))
    }

    fn previous_rounds(&self) -> Vec<Change> {
        let mut found = Vec::new();
        let mut user = None;
        for at in 0..self.last_final.unwrap_or(0) {
            if self.is(at, is_user) {
                user = Some(at);
            } else if self.is(at, is_final_assistant)
                && let Some(asked) = user.take()
            {
                let (round, pair) = (asked + 1..at + 1, asked..at + 1);
                let worth = self.settings.min_compression_token_threshold;
                let fits = round.len() > 1 && pair.len() <= limits::WINDOW_REPLACED;
                if fits && self.tokens(&pair) >= worth && self.calls.closed(&round) {
                    found.push(self.summary(round, pair));
                }
            }
        }
        found
    }

    /// One summary of what lies before `end`, the last user message and what is needed after it.
    fn history(&self, end: usize) -> Vec<Change> {
        let start = self
            .messages
            .iter()
            .take_while(|m| m.role == Role::System)
            .count();
        let end = self.last_user.map_or(end, |last| last.min(end));
        let end = end.min(start + limits::WINDOW_REPLACED);
        let mut ends = (start + 2..=end).rev();
        let closed = ends.find(|end| self.calls.closed(&(start..*end)));
        let range = closed.map(|end| start..end).into_iter();
        range
            .map(|range| self.summary(range.clone(), range))
            .collect()
    }

    fn current_large(&self) -> Vec<Change> {
        let Some(last_user) = self.last_user else {
            return Vec::new();
        };
        let most = self.settings.large_payload_threshold;
        let large = |message: &Message| {
            let text = message.text_content();
            let size = match text.is_empty() {
                true => chars(message),
                false => text.chars().count(),
            };
            !is_compressed(message) && size > most
        };
        let places = (last_user + 1..self.messages.len()).rev();
        let places = places.filter(|at| self.is(*at, large));
        places
            .map(|at| self.summary(at..at + 1, at..at + 1))
            .collect()
    }

    fn current_round(&self) -> Vec<Change> {
        let Some(last_user) = self.last_user else {
            return Vec::new();
        };
        let start = last_user + 1;
        // A call that is still to be answered stays, with the answers that it has.
        let open = self.calls.open().filter(|open| *open >= start);
        let end = open.unwrap_or(self.messages.len());
        let end = end.min(start + limits::WINDOW_REPLACED);
        let mut ends = (start + 1..=end).rev();
        let Some(end) = ends.find(|end| self.calls.closed(&(start..*end))) else {
            return Vec::new();
        };
        if end - start == 1 && self.is(start, is_compressed_round) {
            return Vec::new();
        }
        vec![self.summary(start..end, start..end)]
    }
}
