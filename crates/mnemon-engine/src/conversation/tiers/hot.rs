//! The window: the last lines, after links to what came before them.

use std::collections::VecDeque;

use super::Line;
use crate::conversation::session::SessionId;

/// Links that stay in view; the library has them all.
const LINKS: usize = 8;

/// The hot lines of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Hot {
    pub(super) session: SessionId,
    /// Names of histories, the oldest first.
    pub(super) links: VecDeque<String>,
    pub(super) lines: VecDeque<HotLine>,
}

/// A line of the window, and where it stands in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct HotLine {
    pub offset: u64,
    pub line: Line,
}

impl Hot {
    /// An empty window.
    #[must_use]
    pub fn new(session: SessionId) -> Self {
        Self {
            session,
            links: VecDeque::new(),
            lines: VecDeque::new(),
        }
    }

    /// The lines, oldest first.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &HotLine> {
        self.lines.iter()
    }

    /// The last lines, newest first.
    #[must_use]
    pub fn newest(&self, limit: usize) -> Vec<&HotLine> {
        self.lines.iter().rev().take(limit).collect()
    }

    /// What the model is shown: links, then lines.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let links = self.links.iter().map(|name| link_text(name));
        let lines = self.lines.iter().map(|hot| hot.line.text());
        links.chain(lines).collect()
    }

    /// Forgets the window. The log stays.
    pub fn clear(&mut self) {
        self.links.clear();
        self.lines.clear();
    }

    pub(super) fn link(&mut self, history: &str) {
        self.links.push_back(history.to_owned());
        if self.links.len() > LINKS {
            self.links.pop_front();
        }
    }

    /// Where the older half ends: in the middle, or a little later so that an observation stays
    /// with its action. `None` when there is nothing to part.
    pub(super) fn half(&self) -> Option<usize> {
        let middle = self.lines.len() / 2;
        let follows = |at: &usize| {
            let line = self.lines.get(*at);
            !line.is_some_and(|hot| hot.line.is_observation())
        };
        let later = (middle..self.lines.len()).find(follows);
        let split = later.or_else(|| (1..middle).rev().find(follows));
        split.filter(|split| *split > 0)
    }
}

/// How the window names a history.
pub(super) fn link_text(history: &str) -> String {
    format!("[History Link: {history}]")
}
