//! Changes in ascending order: a listener that resumes misses none and sees none twice.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mnemon_core::{Batch, Cause, Change, Changes, Grant, Id, Op, Record, Right, Store, Viewer};

use super::Subject;
use crate::make::{Caller, Remade, at, fact, grant, id, limits, note};
use crate::observe::changes_all;

async fn feed(s: &Subject, grant: &Grant, viewer: Viewer, after: u64) -> Vec<Change> {
    let wanted = Changes {
        viewer,
        ..Changes::feed(after, 0)
    };
    let store = &**s.store();
    changes_all(store, grant, &wanted, limits().changes)
        .await
        .unwrap()
}

fn told(changes: &[Change]) -> Vec<(u64, String, String)> {
    let row = |change: &Change| (change.seq, change.id.to_string(), change.cause.to_string());
    changes.iter().map(row).collect()
}

pub async fn the_feed_is_the_history_the_other_way_round(mut s: Subject) {
    let g = grant(at(0));
    for n in 0..4 {
        let text = format!("{n}");
        let ops = vec![
            Op::put(note("a").saying(&text)),
            Op::put(fact(&format!("b{n}")).made_from(&["a"])),
        ];
        s.done(&g, ops).await;
    }
    s.delete(&g, "a").await;
    for _ in 0..2 {
        let mut history = s.seen(&g).await.changes;
        history.reverse();
        assert_eq!(history.len(), 13);
        for after in [0, 1, 7, 12, 13, 99, 1 << 40, (1 << 41) + 5, u64::MAX] {
            let expected: Vec<Change> = history.iter().filter(|c| c.seq > after).cloned().collect();
            assert_eq!(
                feed(&s, &g, Viewer::Tenant, after).await,
                expected,
                "{after}"
            );
        }
        let few = Changes::feed(3, 2);
        let page = s.store().changes(&g, &few).await.unwrap();
        assert_eq!(page.iter().map(|c| c.seq).collect::<Vec<_>>(), [4, 5]);
        let one = Changes {
            id: Some(id("a")),
            before: Some(9),
            ..Changes::feed(1, usize::MAX)
        };
        let page = s.store().changes(&g, &one).await.unwrap();
        assert_eq!(page.iter().map(|c| c.seq).collect::<Vec<_>>(), [3, 5, 7]);
        let commit = Changes {
            commit: Some(3),
            ..Changes::feed(3, usize::MAX)
        };
        let page = s.store().changes(&g, &commit).await.unwrap();
        assert_eq!(page.iter().map(|c| c.seq).collect::<Vec<_>>(), [4]);
        assert_eq!(s.store().newest_change(&g).await.unwrap(), 13);
        s.reopen().await;
    }
    let other = Caller::default().on("elsewhere").grant(Right::Read);
    assert_eq!(s.store().newest_change(&other).await.unwrap(), 0);
    assert!(feed(&s, &other, Viewer::Tenant, 0).await.is_empty());
}

pub async fn a_page_of_the_feed_ends_with_the_change_that_reaches_its_bytes(s: Subject) {
    let g = grant(at(0));
    for (id, letter) in [("a", "p"), ("b", "q"), ("a", "r"), ("a", "s")] {
        let content = letter.repeat(100);
        s.done(&g, vec![Op::put(note(id).saying(&content))]).await;
    }
    s.delete(&g, "a").await;
    // The weights are 100, 100, 200, 200 and 100.
    let pages: [(u64, usize, &[u64]); 6] = [
        (0, 1, &[1]),
        (0, 100, &[1]),
        (0, 101, &[1, 2]),
        (1, 300, &[2, 3]),
        (2, 200, &[3]),
        (3, 201, &[4, 5]),
    ];
    for (after, bytes, expected) in pages {
        let wanted = Changes::feed(after, 3).within(bytes);
        let page = s.store().changes(&g, &wanted).await.unwrap();
        let numbers: Vec<u64> = page.iter().map(|change| change.seq).collect();
        assert_eq!(numbers, expected, "after {after}, {bytes} bytes");
    }
}

pub async fn a_purge_is_in_the_feed_as_an_id(mut s: Subject) {
    let g = grant(at(0));
    s.put(&g, [note("a"), note("b").made_from(&["a"]), note("c")])
        .await;
    s.delete(&g, "c").await;
    let receipt = s.purge(&g, "a").await;
    assert_eq!(receipt.commit, None, "a purge cannot be undone");
    s.purge(&g, "c").await;
    s.put(&g, [note("c").saying("a new life")]).await;
    // Nothing is there to purge: no change, and the earlier tombstone stays.
    s.purge(&g, "a").await;
    let expected = [
        (5, "b", "purged"),
        (6, "a", "purged"),
        (7, "c", "purged"),
        (8, "c", "written"),
    ];
    let expected = expected.map(|(seq, id, cause)| (seq, id.to_owned(), cause.to_owned()));
    for _ in 0..2 {
        let found = feed(&s, &g, Viewer::Tenant, 0).await;
        assert_eq!(told(&found), expected);
        for purge in &found[..3] {
            assert_eq!((&purge.before, &purge.after), (&None, &None));
            assert_eq!((purge.version, purge.before_known), (0, false));
            assert_eq!((purge.actor.as_str(), purge.at), ("test", at(0)));
        }
        assert_eq!((found[3].version, found[3].before_known), (1, true));
        // Only the feed knows: the history of a purged record stays empty.
        assert!(s.changes(&g, "a").await.is_empty());
        assert_eq!(s.changes(&g, "c").await.len(), 1);
        assert_eq!(s.tally(&g).await.history, 0);
        assert!(feed(&s, &g, Viewer::user("ann"), 0).await.len() == 1);
        s.reopen().await;
    }
    // It goes with the history.
    let later = Caller::default().at(at(0).plus_days(9)).keeping_history(3);
    let later = later.grant(Right::Write);
    let done = s.upkeep(&later, 2).await;
    assert_eq!((done.history, done.more), (2, true));
    assert_eq!(
        told(&feed(&s, &later, Viewer::Tenant, 0).await),
        expected[2..]
    );
    assert_eq!(s.upkeep(&later, 9).await.history, 1);
    assert_eq!(
        told(&feed(&s, &later, Viewer::Tenant, 0).await),
        expected[3..]
    );
    s.reopen().await;
    assert_eq!(
        told(&feed(&s, &later, Viewer::Tenant, 0).await),
        expected[3..]
    );
    assert_eq!(s.tally(&later).await.history, 0);
}

const USERS: [Option<&str>; 3] = [Some("ann"), Some("bob"), None];
const WRITERS: usize = 4;
const BATCHES: usize = 40;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn record(dice: &mut Dice, turn: usize) -> Record {
    let user = USERS[dice.below(3) as usize];
    let name = format!("{}-{}", user.unwrap_or("all"), dice.below(5));
    let mut record = fact(&name).saying(&format!("{turn}"));
    record.owner.user = user.map(str::to_owned);
    record
}

async fn write(store: Arc<dyn Store>, g: Grant, seed: u64, running: Arc<AtomicUsize>) {
    let mut dice = Dice(seed);
    for turn in 0..BATCHES {
        let record = record(&mut dice, turn);
        let ops = match dice.below(8) {
            0 => vec![Op::delete(record.id)],
            1 => vec![Op::Purge { id: record.id }],
            2 => vec![Op::put(record.clone()), Op::delete(record.id)],
            _ => vec![Op::put(record), Op::put(self::record(&mut dice, turn))],
        };
        store.apply(&g, Batch::from(ops)).await.unwrap();
        tokio::task::yield_now().await;
    }
    running.fetch_sub(1, Ordering::SeqCst);
}

/// Reads pages of random size, with pauses, until the writers are done and nothing is left.
async fn listen(
    store: Arc<dyn Store>,
    g: Grant,
    viewer: Viewer,
    seed: u64,
    running: Arc<AtomicUsize>,
) -> Vec<Change> {
    let mut dice = Dice(seed);
    let mut heard: Vec<Change> = Vec::new();
    loop {
        let is_over = running.load(Ordering::SeqCst) == 0;
        let after = heard.last().map_or(0, |last| last.seq);
        let limit = 1 + dice.below(g.limits().changes.min(20) as u64) as usize;
        let wanted = Changes {
            viewer: viewer.clone(),
            ..Changes::feed(after, limit)
        };
        let page = store.changes(&g, &wanted).await.unwrap();
        if page.is_empty() && is_over {
            return heard;
        }
        heard.extend(page);
        for _ in 0..dice.below(4) {
            tokio::task::yield_now().await;
        }
    }
}

pub async fn listeners_that_resume_hear_each_change_once(s: Subject) {
    let g = grant(at(0));
    let running = Arc::new(AtomicUsize::new(WRITERS));
    let writers: Vec<_> = (0..WRITERS as u64)
        .map(|seed| tokio::spawn(write(s.store().clone(), g.clone(), seed, running.clone())))
        .collect();
    let viewers = [Viewer::Tenant, Viewer::user("ann"), Viewer::user("bob")];
    let listeners: Vec<_> = viewers
        .iter()
        .map(|viewer| {
            let (store, viewer) = (s.store().clone(), viewer.clone());
            tokio::spawn(listen(store, g.clone(), viewer, 77, running.clone()))
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let all = feed(&s, &g, Viewer::Tenant, 0).await;
    let mut purged: HashMap<Id, u64> = HashMap::new();
    for change in all.iter().filter(|change| change.cause == Cause::Purged) {
        purged.insert(change.id.clone(), change.seq);
    }
    assert!(!purged.is_empty());
    for (viewer, listener) in viewers.into_iter().zip(listeners) {
        let heard = listener.await.unwrap();
        let is_ordered = heard.windows(2).all(|two| two[0].seq < two[1].seq);
        assert!(is_ordered, "{viewer:?}: out of order, or twice");
        let wanted = Changes::feed(0, 0);
        let wanted = Changes { viewer, ..wanted };
        let by_seq: BTreeMap<u64, &Change> = heard.iter().map(|one| (one.seq, one)).collect();
        for change in all.iter().filter(|change| wanted.shows(change)) {
            let found = by_seq.get(&change.seq);
            assert!(found.is_some(), "{:?} missed {change:?}", wanted.viewer);
        }
        for change in &heard {
            assert!(wanted.shows(change), "{:?} saw {change:?}", wanted.viewer);
            let stays = all.iter().any(|one| one.seq == change.seq);
            let is_purged = purged.get(&change.id).is_some_and(|seq| *seq > change.seq);
            assert!(stays || is_purged, "{change:?}");
        }
    }
}
