//! Mnemon's outside world: stores, files and models behind the ports of `mnemon-core`.

mod health;
mod store;

pub use health::{Examination, Finding};
pub use store::jsonl::{Jsonl, Notices, Skipped};

// In place of `open`, which comes with the merge.
pub use store::jsonl::{examine as examine_jsonl, repair as repair_jsonl};
