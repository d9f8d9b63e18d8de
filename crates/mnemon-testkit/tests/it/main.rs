//! The testkit on the reference store, and on itself.

mod learning;
mod planner;
mod ports;
mod retries;
mod simulator;
mod suite;
