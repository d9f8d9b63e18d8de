//! Threads for work that blocks.
//!
//! The runtime's own pool panics when the system refuses its first thread (`ulimit -u`, too little
//! memory). Here the work then runs on the thread that asked for it: later, but correctly.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// Threads at the most; more work waits in the queue.
const MOST_THREADS: usize = 512;
/// A thread without work for this long ends.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The name of the threads.
const THREAD: &str = "mnemon-blocking";

/// How a thread is started; tests pass one that fails.
type Spawn = fn(&'static Workers) -> io::Result<()>;

static WORKERS: Workers = Workers::new(spawn);

thread_local! {
    /// Whether work may block this thread for now.
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Runs something on this thread, which may block meanwhile: what it would have another thread do is
/// done here, as to wake a thread and to be woken by it takes longer than most reads.
pub fn may_block<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MAY_BLOCK.set(self.0);
        }
    }
    let _before = Before(MAY_BLOCK.replace(true));
    work()
}

/// Runs the work on a thread where it may block, and waits for its result. `None` if it panicked.
/// The work runs on this thread if the thread may block, or if there is no runtime to hold up.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if MAY_BLOCK.get() {
        return std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok();
    }
    if tokio::runtime::Handle::try_current().is_err() {
        return Some(work());
    }
    let (sender, result) = oneshot::channel();
    start(move || {
        // A caller that was cancelled no longer waits for the result.
        let _ = sender.send(work());
    });
    result.await.ok()
}

/// Whether this is one of the threads where work may block.
pub(crate) fn is_worker() -> bool {
    MAY_BLOCK.get() || std::thread::current().name() == Some(THREAD)
}

/// Runs the work on a thread where it may block, without waiting for it.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) {
    WORKERS.start(Box::new(work));
}

struct Workers {
    spawn: Spawn,
    queue: Mutex<Queue>,
    ready: Condvar,
}

struct Queue {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job, those included that were woken and have not taken one yet.
    idle: usize,
    threads: usize,
}

impl Workers {
    const fn new(spawn: Spawn) -> Self {
        Self {
            spawn,
            queue: Mutex::new(Queue {
                jobs: VecDeque::new(),
                idle: 0,
                threads: 0,
            }),
            ready: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&'static self, job: Job) {
        let mut queue = self.lock();
        queue.jobs.push_back(job);
        if queue.jobs.len() <= queue.idle {
            drop(queue);
            return self.ready.notify_one();
        }
        if queue.threads >= MOST_THREADS {
            return;
        }
        queue.threads += 1;
        drop(queue);
        if (self.spawn)(self).is_ok() {
            return;
        }
        let mut queue = self.lock();
        queue.threads -= 1;
        // A busy thread will come to the job; without any, it is done here, and so are those whose
        // callers counted on a thread that could not be started either.
        while queue.threads == 0
            && let Some(job) = queue.jobs.pop_front()
        {
            drop(queue);
            run_caught(job);
            queue = self.lock();
        }
    }

    /// What a thread does: jobs until none has come for a while.
    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                run_caught(job);
                queue = self.lock();
                continue;
            }
            queue.idle += 1;
            let waited = self.ready.wait_timeout(queue, KEEP_ALIVE);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            if timeout.timed_out() && queue.jobs.is_empty() {
                queue.threads -= 1;
                return;
            }
        }
    }
}

/// A job that panics takes its result along, which its caller notices, but not the thread.
fn run_caught(job: Job) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
}

fn spawn(workers: &'static Workers) -> io::Result<()> {
    let thread = std::thread::Builder::new().name(THREAD.to_owned());
    thread.spawn(|| workers.work()).map(drop)
}

#[cfg(test)]
mod tests;
