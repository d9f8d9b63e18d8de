//! The door for MCP clients. Tools, resources and prompts decode into the requests of
//! [`api`](crate::api) and encode the responses, within a bound of tokens.
//!
//! Nothing is kept between two requests, so that clients of old and new protocols are served alike,
//! and any number of servers may work on one store.

mod answer;
mod arguments;
mod field;
mod handler;
mod http;
mod lines;
mod profile;
mod prompts;
mod resources;
mod served;
mod stdio;
mod tool;
mod tools;

pub use http::{Access, HttpLimits, serve as serve_http, stop_signal};
pub use profile::Profile;
pub use served::{Options, Served};
pub use stdio::serve as serve_stdio;
