//! The server of Mnemon.
//!
//! - [`http`]: the HTTP API, whose routes are derived from the operations, with MCP at `/mcp`.
//! - [`mcp`]: the interface for MCP clients, over stdio or HTTP.

pub mod http;
pub mod mcp;
