//! The testkit on the reference store.

mod replayed;
mod suite;
