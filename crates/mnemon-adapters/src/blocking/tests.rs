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

/// A request that waits for what its caller does next, without giving its thread back.
fn blocked() -> (
    mpsc::Sender<()>,
    impl Future<Output = bool> + Send + 'static,
) {
    let (sender, receiver) = mpsc::channel();
    let request = async move {
        // Reads within it stay on its thread.
        let thread = std::thread::current().id();
        let read = run(move || std::thread::current().id() == thread).await;
        receiver.recv().unwrap();
        // Timers are those of the caller's runtime.
        tokio::time::sleep(Duration::from_millis(1)).await;
        read.unwrap()
    };
    (sender, request)
}

#[test]
fn a_request_holds_up_nobody_and_reads_on_its_own_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time();
    runtime.build().unwrap().block_on(async {
        let (go_on, waiting) = blocked();
        let waiting = tokio::spawn(request(waiting));
        // The only thread of the runtime goes on while the request blocks.
        assert_eq!(request(async { 7 }).await, Some(7));
        go_on.send(()).unwrap();
        assert_eq!(waiting.await.unwrap(), Some(true));
    });
}

#[test]
fn a_request_ends_although_its_caller_has_gone() {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time();
    runtime.build().unwrap().block_on(async {
        let (go_on, waiting) = blocked();
        let (sender, done) = oneshot::channel();
        let caller = tokio::spawn(request(async move {
            waiting.await;
            DONE.fetch_add(1, Ordering::SeqCst);
            sender.send(()).unwrap();
        }));
        tokio::task::yield_now().await;
        caller.abort();
        go_on.send(()).unwrap();
        done.await.unwrap();
    });
    assert_eq!(DONE.load(Ordering::SeqCst), 1);
}

#[test]
fn a_request_that_panics_has_no_answer() {
    async fn fails() -> u8 {
        panic!("a request that fails")
    }
    assert_eq!(futures::executor::block_on(request(fails())), None);
    assert_eq!(futures::executor::block_on(request(async { 7 })), Some(7));
}
