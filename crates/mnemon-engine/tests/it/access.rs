//! Keys of a server, and quotas of its tenants.

use std::collections::BTreeMap;
use std::sync::Arc;

use mnemon_core::ram::Ram;
use mnemon_core::{Ctx, ErrorKind, Filter, Ids, Scan, Tenant, Time, limits};
use mnemon_engine::access::{
    Amount, Caller, CreatedKey, Key, Keys, NewKey, Quota, Quotas, RANDOM_BYTES, Refused, Rights,
    day_ends_in_s,
};
use mnemon_engine::{Draft, Error, Memory, OnConflict};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::{memory, named, wait};

const DAY_MS: i64 = 86_400_000;

fn at(ms: i64) -> Time {
    Time::from_millis(1_700_000_000_000 + ms).unwrap()
}

fn ctx_of(tenant: &str, ms: i64) -> Ctx {
    Ctx::new(tenant.parse().unwrap(), "cli:ann", at(ms))
}

fn new_key(rights: Rights) -> NewKey {
    NewKey {
        name: "ci".to_owned(),
        rights,
        user: None,
        agent: None,
        expires: None,
    }
}

fn create(keys: &Keys, tenant: &str, new: NewKey, seed: u8) -> CreatedKey {
    wait(keys.create(&ctx_of(tenant, 0), new, [seed; RANDOM_BYTES])).unwrap()
}

fn refused(keys: &Keys, ms: i64, shown: &str) -> String {
    format!("{:?}", wait(keys.resolve(at(ms), shown)).unwrap_err())
}

/// Two servers on one store.
fn servers() -> (Keys, Keys, Memory) {
    let store = Arc::new(Ram::new());
    let one = Memory::builder(store.clone(), Ids::new(1)).build();
    let two = Memory::builder(store, Ids::new(2)).build();
    (Keys::new(one.records()), Keys::new(two.records()), one)
}

#[test]
fn a_key_opens_its_tenant_with_its_rights() {
    let memory = memory();
    let keys = Keys::new(memory.records());
    let bound = NewKey {
        user: Some("ann".to_owned()),
        agent: Some("planner".to_owned()),
        ..new_key(Rights::Write)
    };
    let CreatedKey { key, secret } = create(&keys, "acme", bound, 1);
    let caller = wait(keys.resolve(at(5), &secret)).unwrap();
    let expected = Caller {
        tenant: "acme".parse().unwrap(),
        user: Some("ann".to_owned()),
        agent: Some("planner".to_owned()),
        rights: Rights::Write,
        name: key.prefix.clone(),
    };
    assert_eq!(caller, expected);
    assert!(caller.require(Rights::Read).is_ok() && caller.require(Rights::Write).is_ok());
    let denied = caller.require(Rights::Admin).unwrap_err().to_string();
    assert_eq!(
        denied,
        "this needs the right `admin`; the caller has `write`"
    );
    let ctx = caller.ctx(at(5));
    assert_eq!(ctx.actor, format!("http:{}", key.prefix));
    assert_eq!(ctx.tenant.as_str(), "acme");
}

#[test]
fn the_secret_is_stored_nowhere_and_no_caller_reads_the_records_of_keys() {
    let store = Arc::new(Ram::new());
    let memory = Memory::builder(store, Ids::new(1)).build();
    let keys = Keys::new(memory.records());
    let created = create(&keys, "acme", new_key(Rights::Read), 1);
    assert!(!format!("{created:?}").contains(&created.secret));
    let listed = wait(keys.list(&ctx_of("acme", 0), None)).unwrap();
    let listed = serde_json::to_string(&listed).unwrap();
    let (_, secret) = created.secret.rsplit_once('_').unwrap();
    assert!(
        !listed.contains(secret) && !listed.contains("hash"),
        "{listed}"
    );
    // Every read of a caller needs a grant, and none is given on the reserved tenant.
    let system = Ctx {
        tenant: Tenant::system(),
        ..ctx_of("acme", 0)
    };
    let scan = Scan::new(Filter::all_of_tenant(), 10);
    let denied = wait(memory.records().list(&system, &scan)).unwrap_err();
    assert_eq!(denied.kind(), ErrorKind::Denied);
    let added = wait(memory.records().add(&system, vec![Draft::note("x")], None));
    assert_eq!(added.unwrap_err().kind(), ErrorKind::Denied);
    let created = wait(keys.create(&system, new_key(Rights::Read), [9; RANDOM_BYTES]));
    assert_eq!(created.unwrap_err().kind(), ErrorKind::Denied);
    assert!(
        wait(memory.records().stats(&ctx_of("acme", 0)))
            .unwrap()
            .records()
            == 0
    );
}

#[test]
fn wrong_keys_are_refused_without_saying_why() {
    let memory = memory();
    let keys = Keys::new(memory.records());
    let secret = create(&keys, "acme", new_key(Rights::Read), 1).secret;
    let other = create(&keys, "acme", new_key(Rights::Read), 2).secret;
    for shown in [
        "",
        "x",
        "Bearer x",
        "mnemon_",
        &secret[..40],
        &secret.to_uppercase(),
    ] {
        assert_eq!(refused(&keys, 0, shown), "Malformed", "{shown}");
    }
    // The prefix of one key with the secret of another, with a checksum that fits.
    let unknown = create(
        &Keys::new(crate::memory().records()),
        "x",
        new_key(Rights::Read),
        3,
    );
    assert_eq!(refused(&keys, 0, &unknown.secret), "Unknown");
    let mut mixed = [1; RANDOM_BYTES];
    mixed[5..].fill(2);
    let elsewhere = Keys::new(crate::memory().records());
    let made = wait(elsewhere.create(&ctx_of("x", 0), new_key(Rights::Read), mixed)).unwrap();
    assert_eq!(made.key.prefix, secret[7..15]);
    assert_eq!(refused(&keys, 0, &made.secret), "Unknown");
    assert!(wait(keys.resolve(at(0), &other)).is_ok());
}

#[test]
fn a_key_expires() {
    let memory = memory();
    let keys = Keys::new(memory.records());
    let new = NewKey {
        expires: Some(at(DAY_MS)),
        ..new_key(Rights::Read)
    };
    let created = create(&keys, "acme", new, 1);
    assert!(wait(keys.resolve(at(DAY_MS - 1), &created.secret)).is_ok());
    assert_eq!(refused(&keys, DAY_MS, &created.secret), "Expired");
    assert!(!wait(keys.has_valid(&ctx_of("acme", DAY_MS))).unwrap());
    // It is listed for another 90 days.
    let listed = |ms| wait(keys.list(&ctx_of("acme", ms), None)).unwrap().len();
    assert_eq!(listed(91 * DAY_MS), 1);
    assert_eq!(listed(91 * DAY_MS + 1), 0);
}

#[test]
fn a_revocation_by_another_process_takes_effect_within_a_second() {
    let (one, two, _memory) = servers();
    let created = create(&one, "acme", new_key(Rights::Read), 1);
    assert!(wait(two.resolve(at(100), &created.secret)).is_ok());
    let revoked = wait(one.revoke(&ctx_of("acme", 200), &created.key.prefix)).unwrap();
    assert_eq!(revoked.revoked, Some(at(200)));
    // Here at once, there when the second is over.
    assert_eq!(refused(&one, 200, &created.secret), "Revoked");
    assert!(wait(two.resolve(at(1099), &created.secret)).is_ok());
    assert_eq!(refused(&two, 1100, &created.secret), "Revoked");
    // Again is the same; the first moment counts.
    let again = wait(two.revoke(&ctx_of("acme", 5000), &created.key.prefix)).unwrap();
    assert_eq!(again.revoked, Some(at(200)));
    // A key that another process creates is known at once, though its prefix was asked for.
    let unknown = create(
        &Keys::new(crate::memory().records()),
        "acme",
        new_key(Rights::Read),
        5,
    );
    assert_eq!(refused(&two, 6000, &unknown.secret), "Unknown");
    create(&one, "acme", new_key(Rights::Read), 5);
    assert_eq!(refused(&two, 6999, &unknown.secret), "Unknown");
    assert!(wait(two.resolve(at(7000), &unknown.secret)).is_ok());
}

#[test]
fn a_tenant_sees_and_changes_its_own_keys_only() {
    let memory = memory();
    let keys = Keys::new(memory.records());
    let (acme, other) = (ctx_of("acme", 0), ctx_of("other", 0));
    let created = create(&keys, "acme", new_key(Rights::Admin), 1);
    let prefix = &created.key.prefix;
    let own = wait(keys.list(&other, Some(&other.tenant))).unwrap();
    assert!(own.is_empty());
    for error in [
        wait(keys.revoke(&other, prefix)).unwrap_err(),
        wait(keys.rotate(&other, prefix, 0, [2; RANDOM_BYTES])).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            format!("tenant `other` has no key `{prefix}`")
        );
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    assert!(wait(keys.resolve(at(0), &created.secret)).is_ok());
    let own = wait(keys.list(&acme, Some(&acme.tenant))).unwrap();
    assert_eq!(own, [created.key]);
}

#[test]
fn a_rotation_leaves_both_secrets_valid_for_the_overlap() {
    let (one, two, _memory) = servers();
    let new = NewKey {
        user: Some("ann".to_owned()),
        expires: Some(at(30 * DAY_MS)),
        ..new_key(Rights::Write)
    };
    let old = create(&one, "acme", new, 1);
    let later = 10 * DAY_MS;
    let ctx = ctx_of("acme", later);
    let prefix = &old.key.prefix;
    let rotated = wait(one.rotate(&ctx, prefix, DAY_MS, [2; RANDOM_BYTES])).unwrap();
    let Key {
        name, user, rights, ..
    } = rotated.new.key.clone();
    assert_eq!(
        (name.as_str(), user.as_deref(), rights),
        ("ci", Some("ann"), Rights::Write)
    );
    assert_eq!(rotated.new.key.expires, Some(at(40 * DAY_MS)));
    assert_eq!(rotated.replaced.expires, Some(at(later + DAY_MS)));
    assert_eq!(
        rotated.replaced.replaced_by.as_ref(),
        Some(&rotated.new.key.prefix)
    );
    for shown in [&old.secret, &rotated.new.secret] {
        assert!(wait(two.resolve(at(later + DAY_MS - 1), shown)).is_ok());
    }
    assert_eq!(refused(&two, later + DAY_MS, &old.secret), "Expired");
    assert!(wait(two.resolve(at(later + DAY_MS), &rotated.new.secret)).is_ok());
    // Once is enough, and no longer than the limit.
    let again = wait(one.rotate(&ctx, prefix, 0, [3; RANDOM_BYTES])).unwrap_err();
    assert!(again.to_string().contains("already replaced"), "{again}");
    let prefix = &rotated.new.key.prefix;
    let long = wait(one.rotate(&ctx, prefix, 91 * DAY_MS, [3; RANDOM_BYTES])).unwrap_err();
    assert_eq!(
        long.to_string(),
        "overlap: is too long; at most 90d is allowed"
    );
    wait(one.revoke(&ctx, prefix)).unwrap();
    let revoked = wait(one.rotate(&ctx, prefix, 0, [3; RANDOM_BYTES])).unwrap_err();
    assert!(revoked.to_string().contains("was revoked"), "{revoked}");
}

#[test]
fn the_last_use_is_written_once_a_minute() {
    let (one, two, _memory) = servers();
    let created = create(&one, "acme", new_key(Rights::Read), 1);
    let prefix = created.key.prefix.as_str();
    let used = |keys: &Keys, ms| wait(keys.note_use(at(ms), prefix)).unwrap();
    let last = || {
        let listed = wait(one.list(&ctx_of("acme", 0), None)).unwrap();
        listed[0].last_used
    };
    assert!(used(&one, 10));
    assert!(
        !used(&one, 20) && !used(&two, 60_009),
        "another process wrote it"
    );
    assert_eq!(last(), Some(at(10)));
    assert!(used(&two, 60_010));
    assert_eq!(last(), Some(at(60_010)));
    assert!(!used(&one, 60_020));
    // A use does not bring a revoked key back.
    wait(two.revoke(&ctx_of("acme", 200_000), prefix)).unwrap();
    used(&one, 200_001);
    assert_eq!(refused(&one, 201_100, &created.secret), "Revoked");
    assert!(!wait(one.note_use(at(0), "nobody")).unwrap());
    // The versions of uses do not pile up.
    let upkept = wait(one.upkeep(at(3 * DAY_MS), 1000)).unwrap();
    assert!(upkept.history >= 3, "{upkept:?}");
}

#[test]
fn new_keys_are_checked() {
    let memory = memory();
    let keys = Keys::new(memory.records());
    let wrong = |new: NewKey| {
        let made = wait(keys.create(&ctx_of("acme", 0), new, [1; RANDOM_BYTES]));
        made.unwrap_err().to_string()
    };
    let base = || new_key(Rights::Admin);
    for (new, expected) in [
        (
            NewKey {
                name: " ".into(),
                ..base()
            },
            "name: is empty",
        ),
        (
            NewKey {
                name: "a\nb".into(),
                ..base()
            },
            "name:",
        ),
        (
            NewKey {
                name: "a".repeat(limits::KEY_NAME_CHARS + 1),
                ..base()
            },
            "name:",
        ),
        (
            NewKey {
                user: Some("ann".into()),
                ..base()
            },
            "rights: a key with the right `admin`",
        ),
        (
            NewKey {
                agent: Some("a".into()),
                ..base()
            },
            "agent: needs a user",
        ),
        (
            NewKey {
                user: Some(String::new()),
                ..base()
            },
            "user: is empty",
        ),
        (
            NewKey {
                expires: Some(at(0)),
                ..base()
            },
            "expires: is in the past",
        ),
        (
            NewKey {
                expires: Some(at(0).plus_days(limits::TTL_DAYS + 1)),
                ..base()
            },
            "expires:",
        ),
    ] {
        let error = wrong(new);
        assert!(error.starts_with(expected), "{error}");
    }
    assert!("owner".parse::<Rights>().is_err());
    assert_eq!("write".parse::<Rights>().unwrap(), Rights::Write);
}

#[test]
fn records_of_the_reserved_tenant_are_not_imported() {
    let memory = memory();
    wait(
        memory
            .records()
            .add(&crate::ctx(), vec![named("a", "tea")], None),
    )
    .unwrap();
    let mut record = crate::all(&memory).remove(0);
    record.tenant = Tenant::system();
    let (records, ctx) = (memory.records(), crate::ctx());
    let import = records.import(&ctx, vec![record], OnConflict::Replace);
    let error = wait(import).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("reserved tenant"), "{error}");
}

fn quotas(default: Quota) -> Quotas {
    let own = Quota {
        requests_per_minute: Some(2),
        ..Quota::default()
    };
    Quotas::new(default, BTreeMap::from([("small".parse().unwrap(), own)]))
}

#[test]
fn requests_are_counted_for_each_tenant() {
    let quotas = quotas(Quota {
        requests_per_minute: Some(60),
        ..Quota::default()
    });
    let request = |tenant: &str, ms| quotas.check_request(&tenant.parse().unwrap(), at(ms));
    for _ in 0..60 {
        request("acme", 0).unwrap();
    }
    let error = request("acme", 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the quota of tenant `acme` is used up: 60 requests per minute; try again in 1 s"
    );
    assert_eq!(
        (error.kind(), error.retry_seconds(at(0))),
        (ErrorKind::TooOften, Some(1))
    );
    request("acme", 1000).unwrap();
    assert!(request("acme", 1000).is_err());
    request("other", 0).unwrap();
    // A tenant with its own quota.
    assert_eq!(day_ends_in_s(Time::EPOCH), 86_400);
    assert_eq!(day_ends_in_s(Time::EPOCH.plus_millis(86_399_001)), 1);
    request("small", 0)
        .and_then(|()| request("small", 0))
        .unwrap();
    assert_eq!(
        request("small", 0).unwrap_err().retry_seconds(at(0)),
        Some(30)
    );
}

#[test]
fn records_and_bytes_are_counted_between_two_measurements() {
    let memory = memory();
    let records = memory.records();
    let quotas = quotas(Quota {
        records: Some(3),
        bytes: Some(20),
        ..Quota::default()
    });
    let write = |ms: i64, records_added, bytes| {
        let added = Amount {
            records: records_added,
            bytes,
        };
        wait(quotas.check_write(records, &ctx_of("acme", ms), added))
    };
    wait(records.add(&ctx_of("acme", 0), vec![named("a", "four")], None)).unwrap();
    write(0, 1, 4).unwrap();
    // Two records and eight bytes are counted, though only one record is stored.
    let error = write(1, 2, 0).unwrap_err();
    let Error::Quota {
        what,
        most,
        seconds,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!((what, most, seconds), ("records", 3, None));
    let error = write(1, 1, 13).unwrap_err();
    // Waiting does not help, so it is not proposed.
    assert!(error.to_string().ends_with("20 bytes"), "{error}");
    write(1, 1, 12).unwrap();
    // The next measurement of records is five seconds later, that of bytes ten minutes.
    assert!(write(4999, 1, 0).is_err());
    write(5000, 2, 0).unwrap();
    assert!(write(10_000, 1, 1).is_err());
    write(600_000, 1, 16).unwrap();
    // Without a quota nothing is read.
    let added = Amount {
        records: 1_000_000,
        bytes: u64::MAX,
    };
    wait(Quotas::default().check_write(records, &ctx_of("acme", 0), added)).unwrap();
}

#[test]
fn a_minute_never_admits_more_than_twice_its_requests() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(64), rng);
    let steps = proptest::collection::vec(0_i64..3000, 1..300);
    let run = runner.run(&steps, |steps| {
        let quotas = quotas(Quota {
            requests_per_minute: Some(30),
            ..Quota::default()
        });
        let tenant: Tenant = "acme".parse().unwrap();
        let mut now = 0;
        let mut admitted: Vec<i64> = Vec::new();
        for step in steps {
            now += step;
            if quotas.check_request(&tenant, at(now)).is_ok() {
                admitted.push(now);
            }
        }
        for from in &admitted {
            let minute = *from..*from + 60_000;
            prop_assert!(admitted.iter().filter(|ms| minute.contains(ms)).count() <= 60);
        }
        Ok(())
    });
    run.unwrap();
    assert_eq!(
        refused(&Keys::new(memory().records()), 0, "x"),
        format!("{:?}", Refused::Malformed)
    );
}
