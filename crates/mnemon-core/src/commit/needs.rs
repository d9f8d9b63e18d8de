//! What has to be known about a tenant before a group of batches can be planned.

use super::Request;
use crate::model::{Id, Kind, Namespace, Time};
use crate::ports::Op;

/// What a group of batches of one tenant needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs<'a> {
    /// Records that are put, deleted or purged.
    pub ids: Vec<&'a Id>,
    /// Idempotency keys.
    pub keys: Vec<&'a str>,
    /// Records whose derived ones are needed, with those derived from them, and so on.
    pub roots: Vec<&'a Id>,
    /// How many derived records are loaded for one root at the most. It is more than a deletion
    /// may take along, because earlier batches of the group may cut links.
    pub most_derived: usize,
    /// Namespaces that may grow over a cap.
    pub grown: Vec<Grown>,
    /// Records that expire before this moment count as expired for at least one of the batches.
    pub now: Time,
    /// How many expired records the group erases on the side at the most.
    pub erased: usize,
    /// The same where a cap is passed.
    pub erased_when_over: usize,
}

/// A namespace that gets notes and has a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    pub namespace: Namespace,
    /// How many notes it gets at the most.
    pub puts: u64,
    /// The lowest cap in the group.
    pub cap: u64,
}

impl Grown {
    /// How many notes have to go at the most if there are `count` now.
    pub fn most_over(&self, count: u64) -> usize {
        let over = (count + self.puts).saturating_sub(self.cap);
        usize::try_from(over).unwrap_or(usize::MAX)
    }
}

impl Needs<'_> {
    /// How many records the group changes at the most, if operations and deletions reach `known`
    /// of them and `over` notes have to go. An ordered list of this length is always long enough,
    /// as the group cannot use up more of it.
    pub fn most_changed(&self, known: usize, over: usize) -> usize {
        let erased = match over {
            0 => self.erased,
            _ => self.erased_when_over,
        };
        known.saturating_add(over).saturating_add(erased)
    }

    /// A namespace without a cap in any batch is not needed.
    fn add_grown(&mut self, requests: &[Request]) {
        for namespace in Namespace::ALL {
            let caps = requests.iter().filter_map(|request| {
                let cap = request.grant.caps().of(*namespace)?;
                (puts(request, *namespace) > 0).then_some(cap)
            });
            if let Some(cap) = caps.min() {
                self.grown.push(Grown {
                    namespace: *namespace,
                    puts: requests.iter().map(|it| puts(it, *namespace)).sum(),
                    cap,
                });
            }
        }
    }
}

fn puts(request: &Request, namespace: Namespace) -> u64 {
    let grows = |op: &&Op| {
        matches!(op, Op::Put { record, .. }
            if record.kind == Kind::Note && record.namespace == namespace)
    };
    request.ops().iter().filter(grows).count() as u64
}

/// What the requests, all of one tenant, need to know.
pub fn needs(requests: &[Request]) -> Needs<'_> {
    let limits = || requests.iter().map(|request| request.grant.limits());
    let keys = requests.iter().filter_map(|it| it.batch.key.as_ref());
    let mut needs = Needs {
        ids: Vec::new(),
        keys: keys.map(|key| key.name.as_str()).collect(),
        roots: Vec::new(),
        most_derived: limits().map(|it| 2 * it.cascade).max().unwrap_or(0),
        grown: Vec::new(),
        now: latest(requests),
        erased: limits().map(|it| it.expired_per_write).sum(),
        erased_when_over: limits().map(|it| it.page.max(it.expired_per_write)).sum(),
    };
    let mut linked = Vec::new();
    for op in requests.iter().flat_map(Request::ops) {
        needs.ids.push(op.id());
        match op {
            Op::Delete { id, .. } | Op::Purge { id } => needs.roots.push(id),
            Op::Put { record, .. } if !record.derived_from.is_empty() => linked.push(&record.id),
            Op::Put { .. } => {}
        }
    }
    for request in requests {
        needs
            .ids
            .extend(request.replayed().map(|change| &change.id));
        let replay = request.batch.replay.iter();
        needs.ids.extend(replay.flat_map(|replay| &replay.erased));
    }
    if !needs.roots.is_empty() {
        // A deletion reaches these, and all that was derived from them, by links of the group.
        needs.roots.append(&mut linked);
    }
    needs.add_grown(requests);
    needs
}

/// The latest time of any request.
pub(super) fn latest(requests: &[Request]) -> Time {
    let times = requests.iter().map(|request| request.grant.now());
    times.max().unwrap_or(Time::EPOCH)
}
