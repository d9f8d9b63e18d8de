//! Language models behind the `Llm` port: any endpoint that speaks OpenAI's `/chat/completions`,
//! and Anthropic's `/v1/messages`.
//!
//! ```text
//! Model::complete(Prompt)
//!   plain                 tool calls, results and media told in words; roles that take turns
//!   Wire::request         the body that this provider wants
//!   Ledger::hold          the most that the call can cost, before anything is sent
//!   http                  timeouts, retries, Retry-After, a bounded answer
//!   Ledger::settle        what it did cost
//!   structured            JSON out of the answer, checked; one more call if it does not fit
//! ```
//!
//! **Invariant:** nothing is sent that the budget would not pay for.
//! **Invariant:** an answer is not empty and fits its schema, or it is an error.
//! **Invariant:** a key is in no message, no account and no `Debug`.

mod anthropic;
mod ledger;
mod model;
mod openai;
mod plain;
mod structured;
mod wire;

pub use crate::http::Secret;
pub use ledger::{Account, Budgets, Ledger, LedgerError, Prices, Usage};
pub use model::{Model, ModelConfig};
pub use wire::Provider;
