//! What the operations on a conversation share: whose it is, and how its window is kept.

use mnemon_core::budget::Family;
use mnemon_core::window::{Measure, Settings};
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

impl Chat {
    /// The tokens of the model that was named; `None` if they are to be estimated.
    pub(super) fn measure(&self) -> Option<Box<Measure>> {
        let counter = wiring::counter(Family::of(self.model.as_deref()?).family);
        Some(Box::new(move |text: &str| counter.count(text)))
    }

    pub(super) fn window<'a>(
        &self,
        memory: &'a Memory,
        measure: Option<&'a Measure>,
    ) -> Result<Window<'a>, Error> {
        let window = memory.window(&self.user, &self.session)?;
        let window = window.settings(self.settings)?;
        Ok(match measure {
            Some(measure) => window.measure(measure),
            None => window,
        })
    }
}
