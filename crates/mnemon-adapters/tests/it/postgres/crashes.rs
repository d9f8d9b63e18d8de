//! A server that crashes under its writers. `MNEMON_TEST_CRASH` names `scripts/postgres`, whose server
//! no other test uses meanwhile; without it this test does nothing.

use std::process::Command;

use mnemon_core::{Batch, Op};

use super::{database, note};
use crate::kit::{everything, grant, open, rounds, wait};

const WRITERS: usize = 4;

/// Every write is acknowledged, although its connection may be lost at any moment, and stored once.
/// After a crash the server gives numbers of lost transactions to others.
#[test]
fn writers_survive_a_server_that_crashes() {
    let Some(script) = std::env::var_os("MNEMON_TEST_CRASH") else {
        return;
    };
    let database = database!();
    let store = open(&database.url());
    let crashes = rounds(10, 3) as usize;
    let each = 25 * (crashes + 1);
    std::thread::scope(|scope| {
        let (done, writes) = std::sync::mpsc::channel();
        for _ in 0..WRITERS {
            let (done, store) = (done.clone(), &store);
            scope.spawn(move || {
                for _ in 0..each {
                    let append = Batch::of(Op::append(note("tea")));
                    wait(store.apply(&grant(), append)).unwrap();
                    // The crashes may be over.
                    let _ = done.send(());
                }
            });
        }
        drop(done);
        for _ in 0..crashes {
            assert_eq!(writes.iter().take(WRITERS * 20).count(), WRITERS * 20);
            let crash = Command::new(&script).arg("crash").status();
            assert!(crash.unwrap().success());
        }
    });
    let written = WRITERS * each;
    assert_eq!(everything(store.as_ref()).len(), written);
    let newest = wait(store.newest_change(&grant())).unwrap();
    assert_eq!(newest, written as u64, "nothing twice");
    let examination = mnemon_adapters::examine(&database.url()).unwrap();
    assert!(examination.is_clean(), "{examination:?}");
}
