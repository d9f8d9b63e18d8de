//! The testkit on the reference store, and on itself.

mod learning;
mod ports;
mod retries;
mod simulator;
mod suite;
