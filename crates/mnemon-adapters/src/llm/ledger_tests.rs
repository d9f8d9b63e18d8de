use std::sync::Arc;

use mnemon_core::{Tenant, Time};
use proptest::prelude::*;

use super::*;

fn charged(tenant: &str, task: &str, day: i64) -> Charged {
    Charged {
        tenant: tenant.parse::<Tenant>().unwrap(),
        task: task.to_owned(),
        at: Time::EPOCH.plus_days(day),
    }
}

fn budget(tokens: u64) -> Budgets {
    Budgets {
        tokens_per_day: Some(tokens),
        ..Budgets::default()
    }
}

#[test]
fn what_was_held_and_not_used_is_given_back() {
    let ledger = Ledger::in_memory(budget(100), Prices::default());
    let ann = charged("ann", "window", 0);
    let hold = ledger.hold(&ann, 50, 40).unwrap();
    assert!(ledger.hold(&ann, 11, 0).is_err(), "90 are held");
    ledger.settle(&hold, 20, 5).unwrap();
    let next = ledger.hold(&ann, 75, 0).unwrap();
    assert!(ledger.hold(&ann, 1, 0).is_err());
    ledger.release(&next).unwrap();
    let accounts = ledger.accounts().unwrap();
    assert_eq!(accounts.len(), 1);
    let usage = accounts[0].usage;
    assert_eq!(
        (usage.calls, usage.input_tokens, usage.output_tokens),
        (1, 20, 5)
    );
    assert_eq!(usage.held_tokens, 0);
}

#[test]
fn tenants_tasks_and_days_have_accounts_of_their_own() {
    let budgets = Budgets {
        tokens_per_day: Some(100),
        task_tokens_per_day: Some(60),
        nanos_per_day: None,
    };
    let ledger = Ledger::in_memory(budgets, Prices::default());
    ledger.hold(&charged("ann", "window", 0), 60, 0).unwrap();
    let error = ledger.hold(&charged("ann", "window", 0), 1, 0).unwrap_err();
    let LedgerError::Spent(what) = error else {
        panic!("{error}")
    };
    assert!(
        what.contains("the task window of the tenant ann on 1970-01-01"),
        "{what}"
    );
    assert!(what.contains("60 tokens, of which 60"), "{what}");
    ledger.hold(&charged("ann", "skills", 0), 40, 0).unwrap();
    assert!(ledger.hold(&charged("ann", "other", 0), 1, 0).is_err());
    ledger.hold(&charged("bob", "window", 0), 60, 0).unwrap();
    ledger.hold(&charged("ann", "window", 1), 60, 0).unwrap();
    assert_eq!(ledger.accounts().unwrap()[0].day, "1970-01-02");
}

#[test]
fn a_tenant_may_have_its_own_budget() {
    let own = [("ann", Some(10)), ("bob", None)];
    let own = own.map(|(tenant, tokens)| (tenant.to_owned(), tokens));
    let ledger = Ledger::in_memory(budget(100), Prices::default()).with_tenants(own.into());
    let hold = |tenant, tokens| ledger.hold(&charged(tenant, "window", 0), tokens, 0);
    assert!(hold("ann", 11).is_err() && hold("ann", 10).is_ok());
    assert!(hold("bob", 1_000_000).is_ok());
    assert!(hold("cid", 101).is_err() && hold("cid", 100).is_ok());
}

#[test]
fn money_counts_too() {
    let budgets = Budgets {
        nanos_per_day: Some(1_000_000),
        ..Budgets::default()
    };
    let prices = Prices {
        input_nanos: 1000,
        output_nanos: 4000,
    };
    let ledger = Ledger::in_memory(budgets, prices);
    let ann = charged("ann", "window", 0);
    let hold = ledger.hold(&ann, 200, 200).unwrap();
    let error = ledger.hold(&ann, 1, 0).unwrap_err();
    assert!(
        matches!(&error, LedgerError::Spent(what) if what.contains("0.001000")),
        "{error:?}"
    );
    ledger.settle(&hold, 100, 10).unwrap();
    assert_eq!(ledger.accounts().unwrap()[0].usage.nanos, 140_000);
}

#[test]
fn a_file_is_shared_and_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/usage.json");
    let open = || Ledger::in_file(&path, budget(100), Prices::default());
    assert!(open().accounts().unwrap().is_empty());
    assert!(!path.exists(), "looking makes no file");
    let ann = charged("ann", "window", 0);
    let hold = open().hold(&ann, 90, 0).unwrap();
    assert!(open().hold(&ann, 11, 0).is_err());
    open().settle(&hold, 30, 0).unwrap();
    open().hold(&ann, 70, 0).unwrap();
    // Nobody settled it: it stays held.
    assert_eq!(open().accounts().unwrap()[0].usage.held_tokens, 70);
}

#[test]
fn many_threads_never_hold_more_than_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("usage.json");
    let held: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let ledger = Ledger::in_file(&path, budget(100), Prices::default());
                    let ann = charged("ann", "window", 0);
                    (0..5).filter(|_| ledger.hold(&ann, 7, 0).is_ok()).count() as u64
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(held, 14, "14 times 7 is 98");
}

#[test]
fn a_file_of_another_sort_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("usage.json");
    for text in ["{\"version\":2,\"days\":{}}", "half a {", "{\"other\":1}"] {
        std::fs::write(&path, text).unwrap();
        let ledger = Ledger::in_file(&path, Budgets::default(), Prices::default());
        let error = ledger.hold(&charged("ann", "window", 0), 1, 1).unwrap_err();
        assert!(error.to_string().contains("usage.json"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn old_days_and_too_many_accounts_are_bounded() {
    let mut books = Books::default();
    for n in 0..=limits::LLM_ACCOUNT_DAYS {
        books.days.insert(format!("{n:06}"), Day::default());
    }
    books.forget_old();
    assert_eq!(books.days.len(), limits::LLM_ACCOUNT_DAYS);
    assert!(!books.days.contains_key("000000"));
    let ledger = Arc::new(Ledger::in_memory(Budgets::default(), Prices::default()));
    for n in 0..limits::LLM_ACCOUNTS {
        ledger
            .hold(&charged("ann", &format!("t{n}"), 0), 1, 1)
            .unwrap();
    }
    let error = ledger.hold(&charged("ann", "more", 0), 1, 1).unwrap_err();
    assert!(matches!(error, LedgerError::TooMany));
    ledger.hold(&charged("ann", "t0", 0), 1, 1).unwrap();
}

proptest! {
    /// Whatever is held, settled within its bound and released: the budget is never exceeded.
    #[test]
    fn a_budget_is_never_exceeded(
        steps in prop::collection::vec((0u64..60, 0u64..60, 0u8..3, 0u64..100), 1..60)
    ) {
        let ledger = Ledger::in_memory(budget(500), Prices::default());
        let ann = charged("ann", "window", 0);
        for (input, output, end, part) in steps {
            if let Ok(hold) = ledger.hold(&ann, input, output) {
                match end {
                    0 => ledger.settle(&hold, input * part / 100, output * part / 100).unwrap(),
                    1 => ledger.release(&hold).unwrap(),
                    _ => {}
                }
            }
            let accounts = ledger.accounts().unwrap();
            let used: u64 = accounts.iter().map(|account| account.usage.tokens()).sum();
            prop_assert!(used <= 500);
        }
    }
}
