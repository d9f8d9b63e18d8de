use super::*;
use crate::commit::Effect;
use crate::model::{Ctx, Kind, Policy, Time};
use crate::ports::Op;

fn grant() -> Grant {
    let now = Time::from_millis(1_700_000_000_000).unwrap();
    let ctx = Ctx::new(Tenant::default(), "test", now);
    Policy::default().check(&ctx, Right::Purge).unwrap()
}

fn id(name: &str) -> Id {
    name.parse().unwrap()
}

fn record(name: &str, content: &str, sources: &[&str]) -> Record {
    let ctx = Ctx::new(Tenant::default(), "test", grant().now());
    let mut record = Record::new(id(name), &ctx, Kind::Fact, content);
    record.derived_from = sources.iter().map(|name| id(name)).collect();
    // First versions expire, so that the history is indexed by that, too.
    record.expires = (content == "1").then(|| ctx.now.plus_days(1));
    record
}

fn image() -> Image {
    let mut image = Image::default();
    let batches = [
        vec![
            Op::put(record("a", "1", &[])),
            Op::put(record("b", "1", &["a"])),
        ],
        vec![Op::put(record("b", "2", &["a", "c"]))],
        vec![Op::put(record("gone", "1", &["b"]))],
        vec![Op::delete(id("gone"))],
    ];
    for ops in batches {
        image.commit(&grant(), Batch::from(ops)).unwrap();
    }
    image
}

#[test]
fn a_batch_that_fails_half_way_changes_nothing() {
    let mut image = image();
    let before = image.clone();
    let ops = vec![
        Op::put(record("a", "2", &[])),
        Op::Purge { id: id("b") },
        Op::append(record("a", "3", &[])),
    ];
    assert!(image.commit(&grant(), Batch::from(ops)).is_err());
    assert_eq!(image, before);
}

#[test]
fn an_image_is_rebuilt_from_its_parts() {
    let image = image();
    let mut rebuilt = Image::default();
    for past in image.past() {
        rebuilt.restore_past(past.clone());
    }
    for (entry, record) in image.current() {
        rebuilt.play(Effect::Write {
            entry: entry.clone(),
            record: Box::new(record.clone()),
        });
    }
    rebuilt.set_clock(image.clock());
    assert_eq!(rebuilt, image, "links of deleted records included");
}
