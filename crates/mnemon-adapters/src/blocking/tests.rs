use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::*;

#[test]
fn work_without_a_thread_runs_where_it_was_asked_for() {
    static NO_THREADS: Workers = Workers::new(|_| Err(io::ErrorKind::OutOfMemory.into()));
    static DONE: AtomicUsize = AtomicUsize::new(0);
    for _ in 0..3 {
        NO_THREADS.start(Box::new(|| {
            DONE.fetch_add(1, Ordering::SeqCst);
        }));
    }
    NO_THREADS.start(Box::new(|| panic!("a job that fails")));
    assert_eq!(DONE.load(Ordering::SeqCst), 3);
    let queue = NO_THREADS.lock();
    assert_eq!((queue.jobs.len(), queue.threads), (0, 0));
}

#[test]
fn every_job_is_done_and_threads_are_used_again() {
    static WORKERS: Workers = Workers::new(spawn);
    let (sender, done) = mpsc::channel();
    for number in 0..200 {
        let sender = sender.clone();
        WORKERS.start(Box::new(move || {
            assert!(number % 50 != 7, "one that panics takes no thread along");
            sender.send(number).unwrap();
        }));
    }
    drop(sender);
    assert_eq!(done.iter().count(), 196);
    assert!(WORKERS.lock().threads <= 200);
}

#[tokio::test]
async fn where_a_thread_may_block_no_other_is_woken() {
    let own = std::thread::current().id();
    let here = || futures::FutureExt::now_or_never(run(|| std::thread::current().id()));
    assert_eq!(may_block(here), Some(Some(own)));
    let panics = || futures::FutureExt::now_or_never(run(|| panic!("a defect")));
    assert_eq!(may_block(panics), Some(None::<()>));
    assert_ne!(run(|| std::thread::current().id()).await, Some(own));
}
