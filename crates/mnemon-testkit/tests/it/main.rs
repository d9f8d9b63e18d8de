//! The testkit on the reference store.

mod suite;
