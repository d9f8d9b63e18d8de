//! The adapters from outside.

mod jsonl;
