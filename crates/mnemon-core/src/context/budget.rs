//! What goes into a prompt: materials, a budget of tokens, and a text that never exceeds it.
//!
//! [`compile`] chooses by value per token, within the floor and the ceiling of each section, and
//! counts what it has written, headings, tags and ids included. The order of the output depends on
//! what is in it and never on scores, so that the beginning stays the same from call to call.
//!
//! ```
//! use mnemon_core::budget::{Bound, Budget, Form, Material, Section, compile};
//!
//! let tea = Material::new(Section::Profile, "p1".parse()?, "Ann prefers tea");
//! let compiled = compile(&[tea], &Budget::of(100), Form::Xml, &Bound)?;
//! assert!(compiled.text.contains(r#"<item id="p1">Ann prefers tea</item>"#));
//! assert!(compiled.tokens <= 100);
//! # Ok::<(), mnemon_core::Invalid>(())
//! ```

mod bound;
mod choose;
mod compile;
mod copies;
mod counter;
mod cut;
mod material;
mod render;

pub use bound::{Bound, word_mark};
pub use compile::{Compiled, LeftOut, SectionReport, Taken, Why, compile};
pub use copies::similarity;
pub use counter::{Bytes, Counter, Family, Named};
pub use material::{Budget, Form, Material, Section, Share};
pub use render::{ChatMessage, MESSAGE_TOKENS, REPLY_TOKENS};
pub(crate) use render::{escape as contained, plain as readable};

#[cfg(test)]
mod tests;
