//! The server as clients meet it: JSON-RPC, line by line, to a real process.

mod answers;
pub(crate) mod client;
mod conversations;
mod http;
mod life;
mod many;
mod notices;
mod projects;
mod replaced;
mod schemas;
mod screened;
mod users;
mod wrong;
