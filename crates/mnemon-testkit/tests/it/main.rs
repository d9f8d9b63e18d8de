//! The testkit on the reference store, and on itself.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test code: a failure should panic"
)]

mod doubles;
mod learning;
mod meetings;
mod planner;
mod ports;
mod retries;
mod simulator;
mod suite;
