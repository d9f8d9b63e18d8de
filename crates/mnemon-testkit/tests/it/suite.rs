use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::Backend;
use mnemon_core::ram::Ram;
use mnemon_testkit::fakes::HashEmbedder;
use mnemon_testkit::plain_index::PlainIndex;
use mnemon_testkit::{Fixture, InRam, oracle};

mnemon_testkit::conformance!(ram, InRam::default());
mnemon_testkit::index_conformance!(ram_index, InRam::default());

/// The reference store with an index that knows neither neighbours nor, perhaps, filters.
struct Plain {
    store: Arc<Ram>,
    has_filters: bool,
}

impl Plain {
    fn new(has_filters: bool) -> Self {
        Self {
            store: Arc::default(),
            has_filters,
        }
    }
}

#[async_trait]
impl Fixture for Plain {
    async fn open(&self) -> Backend {
        let embedder = Arc::new(HashEmbedder::default());
        let index = PlainIndex::new(self.store.clone(), Some(embedder));
        match self.has_filters {
            true => index.backend(),
            false => index.without_filters().backend(),
        }
    }
}

mnemon_testkit::index_conformance!(plain_index, Plain::new(true));
mnemon_testkit::index_conformance!(plain_index_without_filters, Plain::new(false));

/// The reference agrees with itself: the checker finds no difference where there is none, and
/// whatever depends on chance (the order of a hash map) shows.
#[test]
fn ram_agrees_with_ram() {
    oracle::check_against_ram(InRam::default, 64);
}

/// A case that nobody runs proves nothing.
#[test]
fn every_case_is_in_the_macro() {
    let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap();
    let index = read(src.join("index_conformance.rs"));
    let listed = read(src.join("conformance.rs")) + &index;
    let mut cases = 0;
    let folder = std::fs::read_dir(src.join("conformance")).unwrap();
    let files = folder.map(|file| read(file.unwrap().path()));
    for text in files.chain([index]) {
        for rest in text.split("\npub async fn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            let word = |line: &str| line.trim() == name;
            assert!(listed.lines().any(word), "{name} is not in conformance!");
            cases += 1;
        }
    }
    assert!(cases > 100, "only {cases} cases were found");
}

/// `.cargo/config.toml` sets the seed of every property, so that two runs test the same.
#[test]
fn properties_have_a_fixed_seed() {
    use proptest::test_runner::{Config, RngSeed};
    assert_ne!(Config::default().rng_seed, RngSeed::Random);
}
