//! What a context is made of, and how much of it there may be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Invalid;
use crate::error::words;
use crate::model::{Id, Role, limits};

words! {
    /// A part of the context. They come in this order: what seldom changes stands first, so that
    /// a model's cache of the beginning stays good.
    Section, "section" {
        /// Who the user is and what they like.
        Profile = "profile",
        /// What was said before the last turns.
        Summary = "summary",
        /// How things are done.
        Skills = "skills",
        /// The last turns of the conversation, oldest first.
        Turns = "turns",
        /// Where the flow and its tasks stand.
        State = "state",
        /// What is known that bears on the question.
        Facts = "facts",
        /// Parts of documents that bear on the question.
        Documents = "documents",
    }
}

impl Section {
    /// Whether it is mostly the same from call to call.
    pub fn is_stable(self) -> bool {
        self < Self::Turns
    }
}

words! {
    /// How the context is written.
    Form, "form" {
        /// Headings and quoted text.
        Markdown = "markdown",
        /// A tag for every section and every item.
        Xml = "xml",
        /// A list of chat messages in JSON; turns are messages of their own.
        Messages = "messages",
    }
}

/// One thing that may go into the context.
#[derive(Debug, Clone, PartialEq)]
pub struct Material {
    pub section: Section,
    /// The record that is cited for it.
    pub id: Id,
    pub text: String,
    /// What to say of it when it is left out; its first line otherwise.
    pub summary: Option<String>,
    /// How much it bears on the question, from 0 to 1.
    pub value: f64,
    /// Its place within the section, smallest first; the id decides between equals. A time or a
    /// count, not a score: the beginning of the text must not change with the question.
    pub order: i64,
    /// The file that it was read from, if it was: others may have written it.
    pub file: Option<String>,
    /// The external source that it comes from, if it is not a record. It is shown instead of a file.
    pub external: Option<String>,
    /// Who said it, if it is a turn.
    pub role: Option<Role>,
    /// Whether it is taken before anything else.
    pub pinned: bool,
}

impl Material {
    /// Something of full value.
    pub fn new(section: Section, id: Id, text: impl Into<String>) -> Self {
        Self {
            section,
            id,
            text: text.into(),
            summary: None,
            value: 1.0,
            order: 0,
            file: None,
            external: None,
            role: None,
            pinned: false,
        }
    }
}

/// The tokens of one section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Share {
    /// So many are filled from this section before sections compete for the rest. When all floors
    /// together exceed the budget, each gets its part of it.
    pub floor: usize,
    /// The section takes no more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<usize>,
}

/// How many tokens there are, in all and for each section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Never exceeded by what is sent.
    pub tokens: usize,
    /// A section that is not named has no floor and no ceiling.
    pub shares: BTreeMap<Section, Share>,
    /// Whether the text ends with what was left out, where there is room.
    pub also_known: bool,
}

impl Budget {
    /// So many tokens, for whatever is worth most.
    pub fn of(tokens: usize) -> Self {
        Self {
            tokens,
            shares: BTreeMap::new(),
            also_known: true,
        }
    }

    /// The share of this section.
    pub fn share(&self, section: Section) -> Share {
        self.shares.get(&section).copied().unwrap_or_default()
    }

    /// Whether it can be kept to.
    pub fn check(&self) -> Result<(), Invalid> {
        let most = limits::CONTEXT_TOKENS;
        if !(1..=most).contains(&self.tokens) {
            return Err(Invalid::new(
                "budget",
                format!("is {} tokens, it must be between 1 and {most}", self.tokens),
            ));
        }
        for (section, share) in &self.shares {
            if let Some(ceiling) = share.ceiling.filter(|ceiling| *ceiling < share.floor) {
                return Err(Invalid::new(
                    format!("budget of {section}"),
                    format!(
                        "has the floor {} above its ceiling {ceiling}; raise the ceiling or lower \
                         the floor",
                        share.floor
                    ),
                ));
            }
        }
        Ok(())
    }
}
