//! The open connections, and which of them is closed when a new one finds no room.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::limits::HttpLimits;

/// All open connections.
pub(super) struct Connections {
    most: usize,
    most_of_one_address: usize,
    open: Mutex<Open>,
    refused: AtomicU64,
}

#[derive(Default)]
struct Open {
    /// Counts changes, so that the connection that has waited longest can be found.
    changes: u64,
    slots: BTreeMap<u64, Slot>,
}

struct Slot {
    address: IpAddr,
    state: State,
    since: u64,
    close: Arc<Notify>,
}

/// What a connection is worth: the first are closed first, and busy ones never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// It has not sent a whole request that was let in.
    Unproven,
    /// It is between two whole requests.
    Idle,
    Busy,
}

/// Why a connection was not let in: all that are open are busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowded {
    ByAddress,
    ByAll,
}

impl Connections {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        Self {
            most: limits.connections,
            most_of_one_address: limits.address_connections,
            open: Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Counts a new connection. Where there is no room, the oldest one that never sent a request
    /// that was let in is closed, then the one that has been idle longest. So clients without a
    /// key cannot keep out those that have one.
    pub(super) fn open(self: &Arc<Self>, address: IpAddr) -> Result<Connection, Crowded> {
        let address = network(address);
        let mut open = self.lock();
        let of_address = open.slots.values().filter(|slot| slot.address == address);
        if of_address.count() >= self.most_of_one_address {
            if !open.evict(Some(address)) {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(Crowded::ByAddress);
            }
        } else if open.slots.len() >= self.most && !open.evict(None) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Crowded::ByAll);
        }
        let id = open.change();
        let close = Arc::new(Notify::new());
        let slot = Slot {
            address,
            state: State::Unproven,
            since: id,
            close: close.clone(),
        };
        open.slots.insert(id, slot);
        Ok(Connection {
            id,
            close,
            all: self.clone(),
        })
    }

    /// Closes one connection that is not busy, for want of something else than a slot.
    pub(super) fn evict(&self) {
        self.lock().evict(None);
    }

    /// Closes every connection that is not busy.
    pub(super) fn evict_all(&self) {
        let mut open = self.lock();
        while open.evict(None) {}
    }

    pub(super) fn count(&self) -> usize {
        self.lock().slots.len()
    }

    /// Connections that were not let in.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Nothing that holds the lock can leave a half-made change behind.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn change(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    fn evict(&mut self, address: Option<IpAddr>) -> bool {
        let waiting = self.slots.iter().filter(|(_, slot)| {
            slot.state != State::Busy && address.is_none_or(|address| slot.address == address)
        });
        let first = waiting.min_by_key(|(_, slot)| (slot.state, slot.since));
        let first = first.map(|(id, _)| *id);
        let evicted = first.and_then(|id| self.slots.remove(&id));
        if let Some(slot) = &evicted {
            slot.close.notify_one();
        }
        evicted.is_some()
    }

    fn set(&mut self, id: u64, state: State) {
        let since = self.change();
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.state = state;
            slot.since = since;
        }
    }
}

/// One open connection; it is no longer counted when this is dropped.
pub(super) struct Connection {
    id: u64,
    close: Arc<Notify>,
    all: Arc<Connections>,
}

impl Connection {
    /// A request was let in.
    pub(super) fn begin(&self) {
        self.all.lock().set(self.id, State::Busy);
    }

    /// Its answer was sent.
    pub(super) fn end(&self) {
        self.all.lock().set(self.id, State::Idle);
    }

    pub(super) fn close(&self) {
        self.close.notify_one();
    }

    /// Returns when the connection is to be closed.
    pub(super) async fn closing(&self) {
        self.close.notified().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.lock().slots.remove(&self.id);
    }
}

/// What counts as one address: who has one IPv6 address has its whole /64 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(prefix).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests;
