//! Teams of agents: one file per operation.

pub mod accept;
pub mod activate;
pub mod block;
pub mod complete;
pub mod handoff;
pub mod list;
pub mod status;
