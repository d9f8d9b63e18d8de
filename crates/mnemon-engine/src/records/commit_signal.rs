//! Tells listeners of this process that a tenant's memory was written, by this process or by another
//! one that the store hears of.
//!
//! The engine starts no task and owns no runtime, so a waiting listener is a future with a waker:
//! it runs on the caller's executor, and costs nothing until the next commit.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mnemon_core::{Store, Tenant};

/// Counts the acknowledged commits of each tenant, and wakes those that wait for the next one.
#[derive(Debug, Default)]
pub(crate) struct CommitSignal {
    tenants: Mutex<HashMap<Tenant, Listeners>>,
    /// Whether the store was asked to announce commits of other processes.
    is_listening: AtomicBool,
}

#[derive(Debug, Default)]
struct Listeners {
    commits: u64,
    /// By the number of the future, so that one that is dropped leaves no waker behind.
    waiting: BTreeMap<u64, Waker>,
    last_number: u64,
}

impl CommitSignal {
    fn tenants(&self) -> MutexGuard<'_, HashMap<Tenant, Listeners>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit of this tenant was acknowledged.
    pub(crate) fn announce(&self, tenant: &Tenant) {
        let mut tenants = self.tenants();
        let Some(listeners) = tenants.get_mut(tenant) else {
            let first = Listeners {
                commits: 1,
                ..Listeners::default()
            };
            tenants.insert(tenant.clone(), first);
            return;
        };
        listeners.commits += 1;
        let waiting = std::mem::take(&mut listeners.waiting);
        drop(tenants);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Commits of any tenant may have been missed.
    fn announce_all(&self) {
        let mut tenants = self.tenants();
        let mut waiting = Vec::new();
        for listeners in tenants.values_mut() {
            listeners.commits += 1;
            waiting.extend(std::mem::take(&mut listeners.waiting).into_values());
        }
        drop(tenants);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Announces commits of other processes, too, as far as the store hears of them. Asked for by
    /// the first listener, since it costs a connection.
    pub(crate) fn listen_to(self: &Arc<Self>, store: &dyn Store) {
        if self.is_listening.swap(true, Ordering::Relaxed) {
            return;
        }
        let signal = Arc::downgrade(self);
        store.listen(Box::new(move |tenant| {
            if let Some(signal) = signal.upgrade() {
                match tenant {
                    Some(tenant) => signal.announce(tenant),
                    None => signal.announce_all(),
                }
            }
        }));
    }

    /// How many commits of this tenant were announced.
    pub(crate) fn commits(&self, tenant: &Tenant) -> u64 {
        let tenants = self.tenants();
        tenants.get(tenant).map_or(0, |listeners| listeners.commits)
    }

    /// Waits until there are more than `seen`.
    pub(crate) fn beyond(self: &Arc<Self>, tenant: &Tenant, seen: u64) -> NextCommit {
        NextCommit {
            signal: Arc::clone(self),
            tenant: tenant.clone(),
            seen,
            number: None,
        }
    }
}

/// Resolves to the number of commits once it is not the number that was seen. Dropping it is the
/// way to give up.
#[derive(Debug)]
#[must_use = "a future does nothing until it is awaited"]
pub struct NextCommit {
    signal: Arc<CommitSignal>,
    tenant: Tenant,
    seen: u64,
    /// Its number among the waiting futures, once it has waited.
    number: Option<u64>,
}

impl Future for NextCommit {
    type Output = u64;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        let this = self.get_mut();
        let mut tenants = this.signal.tenants();
        let listeners = tenants.entry(this.tenant.clone()).or_default();
        if listeners.commits != this.seen {
            return Poll::Ready(listeners.commits);
        }
        let number = *this.number.get_or_insert_with(|| {
            listeners.last_number += 1;
            listeners.last_number
        });
        listeners.waiting.insert(number, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for NextCommit {
    fn drop(&mut self) {
        if let Some(number) = self.number
            && let Some(listeners) = self.signal.tenants().get_mut(&self.tenant)
        {
            listeners.waiting.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_commit_wakes_the_listeners_of_its_tenant_once() {
        let (ours, theirs): (Tenant, Tenant) = ("a".parse().unwrap(), "b".parse().unwrap());
        let signal = Arc::new(CommitSignal::default());
        let wakes = Arc::new(Count::default());
        let waker = Waker::from(wakes.clone());
        let mut cx = Context::from_waker(&waker);
        let mut next = signal.beyond(&ours, 0);
        let mut given_up = signal.beyond(&ours, 0);
        for _ in 0..3 {
            assert!(Pin::new(&mut next).poll(&mut cx).is_pending());
            assert!(Pin::new(&mut given_up).poll(&mut cx).is_pending());
        }
        drop(given_up);
        signal.announce(&theirs);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
        signal.announce(&ours);
        signal.announce(&ours);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        assert_eq!(Pin::new(&mut next).poll(&mut cx), Poll::Ready(2));
        let mut any = signal.beyond(&theirs, 1);
        assert!(Pin::new(&mut any).poll(&mut cx).is_pending());
        signal.announce_all();
        assert_eq!(Pin::new(&mut any).poll(&mut cx), Poll::Ready(2));
        // A commit that came before the listener asked is not missed.
        let mut late = signal.beyond(&ours, 1);
        assert_eq!(Pin::new(&mut late).poll(&mut cx), Poll::Ready(3));
        assert_eq!((signal.commits(&ours), signal.commits(&theirs)), (3, 2));
        drop(next);
        assert!(signal.tenants().values().all(|one| one.waiting.is_empty()));
    }
}
