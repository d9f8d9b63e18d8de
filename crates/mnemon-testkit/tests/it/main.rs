//! The testkit on the reference store, and on itself.

mod ports;
mod retries;
mod suite;
