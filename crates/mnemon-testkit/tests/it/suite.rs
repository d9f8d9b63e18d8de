use mnemon_testkit::{InRam, oracle};

mnemon_testkit::conformance!(ram, InRam::default());

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
    let listed = std::fs::read_to_string(src.join("conformance.rs")).unwrap();
    let mut cases = 0;
    for file in std::fs::read_dir(src.join("conformance")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
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
