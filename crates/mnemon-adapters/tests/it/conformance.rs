//! The suite that every store passes, and random operations compared with the reference store.

use async_trait::async_trait;
use mnemon_core::Backend;
use mnemon_testkit::Fixture;

use crate::kit::rounds;

/// A store of this scheme in a folder of its own.
struct OnDisk {
    url: String,
    _folder: tempfile::TempDir,
}

impl OnDisk {
    fn fresh(scheme: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            url: format!("{scheme}:{}", folder.path().join("store").display()),
            _folder: folder,
        }
    }
}

#[async_trait]
impl Fixture for OnDisk {
    async fn open(&self) -> Backend {
        crate::kit::open_backend(&self.url)
    }
}

mnemon_testkit::conformance!(sqlite, OnDisk::fresh("sqlite"));
mnemon_testkit::index_conformance!(sqlite_index, OnDisk::fresh("sqlite"));

#[test]
fn sqlite_agrees_with_the_reference_on_random_operations() {
    mnemon_testkit::oracle::check_against_ram(|| OnDisk::fresh("sqlite"), rounds(200, 40));
}

/// Actors that share a store through faults and crashes; see the testkit's simulator.
fn simulate(scheme: &str) {
    mnemon_testkit::simulator::sweep(
        "-p mnemon-adapters --test it -- properties_under_simulation",
        u64::from(rounds(6, 1)),
        800,
        || OnDisk::fresh(scheme),
        |_| mnemon_testkit::simulator::StoreActors::default(),
    );
}

#[test]
fn sqlite_keeps_its_properties_under_simulation() {
    simulate("sqlite");
}

#[test]
fn jsonl_keeps_its_properties_under_simulation() {
    simulate("jsonl");
}

mnemon_testkit::conformance!(jsonl, OnDisk::fresh("jsonl"));
mnemon_testkit::index_conformance!(jsonl_index, OnDisk::fresh("jsonl"));

#[test]
fn jsonl_agrees_with_the_reference_on_random_operations() {
    mnemon_testkit::oracle::check_against_ram(|| OnDisk::fresh("jsonl"), rounds(200, 40));
}
