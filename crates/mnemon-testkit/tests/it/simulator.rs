use std::sync::Arc;
use std::time::Instant;

use mnemon_core::{Backend, Limits};
use mnemon_testkit::simulator::planted::{Defect, Planted};
use mnemon_testkit::simulator::{Failure, Plan, StoreActors, run, sweep};
use mnemon_testkit::{InRam, block_on};

#[test]
fn the_reference_store_keeps_all_properties() {
    sweep(
        "-p mnemon-testkit --test it -- simulator",
        8,
        1500,
        InRam::default,
        |_| StoreActors::default(),
    );
}

fn episode(seed: u64, limits: &'static Limits, defect: Defect) -> Result<(), Failure> {
    let plan = Plan {
        seed,
        steps: 1500,
        limits,
        faults: 30,
    };
    let plant = |backend| Backend::from(Arc::new(Planted::new(backend, defect)));
    block_on(run(
        &plan,
        &InRam::default(),
        &plant,
        &mut StoreActors::default(),
    ))
}

/// Each of the planted defects that the port alone can show is found. The engine's simulation
/// finds the others.
#[test]
fn planted_defects_are_found() {
    for defect in Defect::ALL {
        if defect == Defect::UndoIncomplete {
            continue;
        }
        let began = Instant::now();
        let limits = [&Limits::DEFAULT, &Limits::TINY];
        let found = (1..100).find_map(|seed| {
            let mut runs = limits.iter().map(|limits| episode(seed, limits, defect));
            runs.find_map(Result::err)
        });
        let failure = found.unwrap_or_else(|| panic!("{defect:?} was not found"));
        println!(
            "{defect:?}: {} in step {} of seed {}, {} ms",
            failure.what.lines().next().unwrap_or_default(),
            failure.step,
            failure.seed,
            began.elapsed().as_millis()
        );
    }
}
