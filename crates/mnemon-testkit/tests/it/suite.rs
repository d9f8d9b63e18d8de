use mnemon_testkit::{InRam, oracle};

mnemon_testkit::conformance!(ram, InRam::default());

/// The reference agrees with itself: the checker finds no difference where there is none, and
/// whatever depends on chance (the order of a hash map) shows.
#[test]
fn ram_agrees_with_ram() {
    oracle::check_against_ram(InRam::default, 64);
}
