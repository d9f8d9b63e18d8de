//! A cache of indexes within a budget of bytes.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::Arc;

/// Bytes that an entry takes besides its value: its key, its value's own fields, its places in the
/// maps.
const ENTRY_BYTES: usize = 1024;

/// Values with their sizes. When they exceed the budget, the least recently used are dropped; the
/// one used last stays, however large it is.
#[derive(Debug)]
pub struct Cache<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Keys by when they were used last.
    used: BTreeMap<u64, K>,
    clock: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    bytes: usize,
    used: u64,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            used: BTreeMap::new(),
            clock: 0,
            bytes: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Cache<K, V> {
    /// The value, if it is here.
    pub fn get(&mut self, key: &K) -> Option<Arc<V>> {
        let entry = self.entries.get_mut(key)?;
        self.clock += 1;
        self.used.remove(&entry.used);
        self.used.insert(self.clock, key.clone());
        entry.used = self.clock;
        Some(Arc::clone(&entry.value))
    }

    /// The value, made if it is not here.
    pub fn get_or_default(&mut self, key: &K, budget: usize) -> Arc<V> {
        if let Some(value) = self.get(key) {
            return value;
        }
        let value = Arc::<V>::default();
        self.clock += 1;
        self.used.insert(self.clock, key.clone());
        let entry = Entry {
            value: Arc::clone(&value),
            bytes: ENTRY_BYTES,
            used: self.clock,
        };
        self.entries.insert(key.clone(), entry);
        self.bytes += ENTRY_BYTES;
        self.evict(budget);
        value
    }

    /// Sets the size of a value. One that was dropped in the meantime stays dropped.
    pub fn resize(&mut self, key: &K, value: &Arc<V>, bytes: usize, budget: usize) {
        let entry = self.entries.get_mut(key);
        let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.value, value)) else {
            return;
        };
        self.bytes = self.bytes - entry.bytes + ENTRY_BYTES + bytes;
        entry.bytes = ENTRY_BYTES + bytes;
        self.evict(budget);
    }

    /// The values with their sizes, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (&K, &Arc<V>, usize)> {
        let entries = self.entries.iter();
        entries.map(|(key, entry)| (key, &entry.value, entry.bytes))
    }

    /// What the values take together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn evict(&mut self, budget: usize) {
        while self.bytes > budget
            && self.used.len() > 1
            && let Some((_, key)) = self.used.pop_first()
        {
            if let Some(entry) = self.entries.remove(&key) {
                self.bytes -= entry.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_are_dropped() {
        let mut cache: Cache<u32, u8> = Cache::default();
        let budget = 3 * (ENTRY_BYTES + 100);
        for key in 0..3 {
            let value = cache.get_or_default(&key, budget);
            cache.resize(&key, &value, 100, budget);
        }
        assert!(cache.get(&0).is_some());
        let dropped = cache.get(&1).unwrap();
        assert!(cache.get(&2).is_some() && cache.get(&0).is_some());
        cache.get_or_default(&3, budget);
        assert!(cache.get(&1).is_none());
        cache.resize(&1, &dropped, 1, budget);
        assert!(cache.get(&1).is_none(), "dropped, it stays dropped");

        let large = cache.get_or_default(&4, budget);
        cache.resize(&4, &large, 2 * budget, budget);
        assert!([0, 2, 3].iter().all(|key| cache.get(key).is_none()));
        assert!(cache.get(&4).is_some(), "the last one stays");
    }
}
