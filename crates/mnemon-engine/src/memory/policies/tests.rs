use super::*;

fn said(lines: &[(Whom, &str, &str)]) -> Policies {
    let mut policies = Policies::default();
    for (whom, key, value) in lines {
        policies.set(whom.clone(), key, value).unwrap();
    }
    policies
}

#[test]
fn the_defaults_are_those_of_the_document() {
    let policy = Policies::default().of(Some("unknown"), None);
    assert_eq!(policy, MemoryPolicy::default());
    let counts = (policy.max_dialog_turns, policy.max_docs, policy.max_skills);
    assert_eq!(counts, (20, 5, 3));
    assert!(Scope::ALL.iter().all(|scope| policy.reads(*scope)));
    assert!(policy.write_experience);
}

/// Whatever the order in which it was said.
#[test]
fn the_most_specific_wins_key_by_key() {
    let lines = [
        (Whom::all(), "max_docs", "1"),
        (Whom::flow("f"), "max_docs", "2"),
        (Whom::agent("a"), "max_docs", "3"),
        (Whom::both("f", "a"), "max_docs", "4"),
    ];
    for turn in 0..lines.len() {
        let mut turned = lines.clone();
        turned.rotate_left(turn);
        let policies = said(&turned);
        let docs = |flow, agent| policies.of(flow, agent).max_docs;
        assert_eq!(docs(None, None), 1);
        assert_eq!(docs(Some("x"), Some("y")), 1);
        assert_eq!(docs(Some("f"), None), 2);
        assert_eq!(docs(Some("f"), Some("y")), 2);
        assert_eq!(docs(None, Some("a")), 3);
        assert_eq!(docs(Some("x"), Some("a")), 3);
        assert_eq!(docs(Some("f"), Some("a")), 4);
    }
    let policies = said(&[
        (Whom::flow("f"), "max_docs", "8"),
        (Whom::both("f", "a"), "use_dialog", "false"),
    ]);
    let policy = policies.of(Some("f"), Some("a"));
    assert_eq!((policy.max_docs, policy.use_dialog), (8, false));
}

#[test]
fn a_limit_can_be_taken_away_again() {
    let policies = said(&[
        (Whom::all(), "max_tokens.dialog", "100"),
        (Whom::flow("f"), "max_tokens.dialog", "none"),
    ]);
    let tokens = |flow| policies.of(flow, None).max_tokens.of(Scope::Dialog);
    assert_eq!((tokens(None), tokens(Some("f"))), (Some(100), None));
}

#[test]
fn every_key_can_be_set_read_and_explained() {
    for key in MemoryPolicy::keys() {
        let (text, value) = match key.as_str() {
            "learn_approval" => ("true", json!(true)),
            "learn" => ("false", json!(false)),
            key if key.starts_with("use_") || key.starts_with("write_") => ("false", json!(false)),
            _ => ("6", json!(6)),
        };
        let policies = said(&[(Whom::flow("f"), &key, text)]);
        assert_eq!(policies.of(Some("f"), None).get(&key), Some(value), "{key}");
        let explained = policies.explain(Some("f"), None);
        let row = explained.iter().find(|row| row.key == key).unwrap();
        assert_eq!(row.from, Some(Whom::flow("f")));
        let others = explained.iter().filter(|row| row.key != key);
        assert!(others.clone().all(|row| row.from.is_none()));
        assert_eq!(others.count(), MemoryPolicy::keys().len() - 1);
    }
}

#[test]
fn what_is_no_key_or_no_value_is_refused() {
    let refused = |key: &str, value: &str| {
        let mut policies = Policies::default();
        policies
            .set(Whom::all(), key, value)
            .unwrap_err()
            .to_string()
    };
    let error = refused("max_doc", "3");
    assert!(error.contains("the keys are: use_dialog"), "{error}");
    for (key, value) in [
        ("max_tokens", "3"),
        ("max_tokens.dialogs", "3"),
        ("use_dialog", "yes"),
        ("max_docs", "-1"),
        ("max_docs", "none"),
        ("max_docs", "100000"),
        ("max_items.state", "-1"),
    ] {
        refused(key, value);
    }
}
