//! The door for MCP clients. Tools, resources and prompts decode into the requests of
//! [`api`](mnemon_operations::api) and encode the responses, within a bound of tokens.
//!
//! Nothing is kept between two requests, so that clients of old and new protocols are served alike,
//! and any number of servers may work on one store.

mod answer;
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

use mnemon_operations::operation::{arguments, field};

pub use http::router;
pub use profile::Profile;
pub use served::{Options, RemoteCaller, Served};
pub use stdio::serve as serve_stdio;

/// The schema of a tool, by its name.
pub fn schema_of(tool: &str) -> Option<serde_json::Value> {
    use mnemon_engine::longterm::Mode;
    let tools = tools::of(&[Profile::All], Mode::Agent, None);
    let tool = tools.iter().find(|known| known.name == tool)?;
    Some(serde_json::json!(field::schema(&tool.fields)))
}
