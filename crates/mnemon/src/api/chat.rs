//! What the operations on a conversation share: whose it is, and how its window is kept.

use mnemon_core::budget::{Counter, Family};
use mnemon_core::window::{Counted, Settings};
use mnemon_engine::{Memory, Window};
use serde::Deserialize;

use crate::{Error, wiring};

/// A conversation, and how large its window may be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chat {
    pub user: String,
    pub session: String,
    #[serde(default)]
    pub settings: Settings,
    /// The model whose tokens are counted; without one they are estimated.
    #[serde(default)]
    pub model: Option<String>,
}

/// Counts the tokens, if they are not to be estimated.
pub(super) struct Tokens(Option<Box<dyn Counter>>);

impl Tokens {
    pub(super) fn of(chat: &Chat) -> Self {
        let model = chat.model.as_deref();
        Self(model.map(|model| wiring::counter(Family::of(model).family)))
    }

    /// The measure, to be kept beside the window that uses it.
    pub(super) fn counted(&self) -> Option<Counted<'_>> {
        self.0.as_deref().map(Counted)
    }
}

impl Chat {
    pub(super) fn window<'a>(
        &self,
        memory: &'a Memory,
        counted: Option<&'a Counted<'a>>,
    ) -> Result<Window<'a>, Error> {
        let window = memory.window(&self.user, &self.session)?;
        let window = window.settings(self.settings)?;
        Ok(match counted {
            Some(counted) => window.measure(counted),
            None => window,
        })
    }
}
