use super::*;
use crate::model::{Ctx, Policy, Right, Tenant};

fn day(day: i64) -> Time {
    Time::EPOCH.plus_days(20_000 + day)
}

/// A clock that was seen on these days, in this order.
fn seen(days: &[i64]) -> Clock {
    let mut clock = Clock::default();
    for at in days {
        clock = clock.observe(day(*at), false);
    }
    clock
}

fn days_ahead(clock: Clock, at: i64) -> Option<i64> {
    let ctx = Ctx::new(Tenant::default(), "test", day(at));
    clock.days_ahead(&Policy::default().check(&ctx, Right::Write).unwrap())
}

#[test]
fn a_clock_that_goes_on_as_clocks_do_is_believed() {
    assert_eq!(days_ahead(Clock::default(), 9000), None);
    assert_eq!(days_ahead(seen(&[0, 1, 20, 50]), 50), None);
    let step = limits::CLOCK_STEP_DAYS;
    assert_eq!(days_ahead(seen(&[0]), step), None);
    assert_eq!(days_ahead(seen(&[0]), step + 1), Some(step + 1));
}

#[test]
fn a_clock_that_comes_back_is_believed_at_once() {
    let clock = seen(&[0, 7000]);
    assert_eq!(days_ahead(clock, 7000), Some(7000));
    assert_eq!(seen(&[0, 7000, 1]), seen(&[0, 1]));
    // Nothing is left of the wrong time, not even as the time to count from.
    assert_eq!(days_ahead(seen(&[0, 7000, 1]), 7000), Some(6999));
    assert_eq!(days_ahead(seen(&[0, -7000]), 0), Some(7000));
}

#[test]
fn a_clock_that_stays_ahead_for_a_day_is_believed() {
    let suspected = seen(&[0, 100]);
    let almost = suspected.observe(day(101).plus_millis(-1), false);
    assert_eq!(almost, suspected);
    assert_eq!(days_ahead(almost, 101), None);
    assert_eq!(seen(&[0, 100, 101]), seen(&[101]));
    // A second jump, ahead or back, begins the day anew.
    assert_eq!(days_ahead(seen(&[0, 100, 200]), 200), Some(200));
    assert_eq!(days_ahead(seen(&[0, 100, 200, 100]), 100), Some(100));
    assert_eq!(days_ahead(seen(&[0, 100, 200, 201]), 201), None);
}

#[test]
fn an_accepted_clock_is_believed() {
    let clock = seen(&[0]).observe(day(7000), true);
    assert_eq!(clock, seen(&[7000]));
}

#[test]
fn what_is_worth_a_write() {
    let worth = |before: &[i64], after: &[i64]| seen(after).is_worth_keeping_after(seen(before));
    assert!(!worth(&[], &[5]), "there is nothing to expire yet");
    assert!(!worth(&[5], &[5]));
    assert!(worth(&[5], &[6]));
    assert!(worth(&[5], &[4]));
    assert!(worth(&[5], &[5, 500]));
    assert!(!worth(&[5, 500], &[5, 500]));
    assert!(worth(&[5, 500], &[5]));
}
