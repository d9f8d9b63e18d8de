//! Agents whose memory is Markdown: one file per operation.

pub mod activate;
pub mod archive;
pub mod context;
pub mod decide;
pub mod end;
pub mod index;
pub mod learn;
pub mod lint;
pub mod list;
pub mod new;
pub mod show;
