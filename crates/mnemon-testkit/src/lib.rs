//! What Mnemon's tests are made of.
//!
//! [`conformance`] is the suite that every store passes with the same test bodies,
//! [`index_conformance`] the one that every index passes, [`oracle`] runs
//! random operations on a store and on [`mnemon_core::ram::Ram`] and compares, [`faults`] breaks a
//! store on purpose, [`fakes`] stand in for the other ports, [`ports`] says what files and logs
//! must do, [`talks`] makes conversations up, [`meetings`] plants facts in them, [`worlds`] makes up what is learnt from, and [`make`] keeps tests short.
//!
//! A new backend gets both with a [`Fixture`], which says how to open it at one place:
//!
//! ```
//! use std::sync::Arc;
//! use mnemon_core::{Backend, ram::Ram};
//! use mnemon_testkit::Fixture;
//!
//! struct Place(Arc<Ram>); // for a store on disk: a temporary folder
//!
//! #[async_trait::async_trait]
//! impl Fixture for Place {
//!     async fn open(&self) -> Backend {
//!         self.0.clone().into()
//!     }
//! }
//!
//! mnemon_testkit::conformance!(ram, Place(Arc::default()));
//!
//! // And in a test of its own:
//! mnemon_testkit::oracle::check_against_ram(|| Place(Arc::default()), 4);
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a failure should panic"
)]

pub mod conformance;
pub mod fakes;
pub mod faults;
pub mod index_conformance;
pub mod index_operations;
pub mod make;
pub mod meetings;
pub mod oracle;
pub mod plain_index;
pub mod ports;
pub mod simulator;
pub mod talks;
pub mod texts;
pub mod worlds;

mod fixture;
mod observe;

pub use fixture::{Fixture, InRam, block_on};
pub use observe::{Observed, observe};
