use proptest::prelude::*;

use super::*;
use crate::model::Time;
use crate::ports::{Cause, Change, Changes};

fn audiences() -> impl Strategy<Value = Audience> {
    let name = prop::sample::select(vec!["ann", "bob", "ops"]).prop_map(str::to_owned);
    prop_oneof![
        name.clone().prop_map(Audience::User),
        name.clone().prop_map(Audience::Agent),
        name.prop_map(Audience::Team),
        Just(Audience::Everyone),
    ]
}

fn people() -> impl Strategy<Value = Viewer> {
    let name = prop::sample::select(vec!["ann", "bob", "ops"]).prop_map(str::to_owned);
    let (user, agent) = (
        prop::option::of(name.clone()),
        prop::option::of(name.clone()),
    );
    let person = (user, agent, prop::collection::vec(name, 0..3));
    person.prop_map(|(user, agent, teams)| Viewer::Person { user, agent, teams })
}

#[test]
fn an_audience_prints_and_reads() {
    for text in [
        "user:ann",
        "agent:planner",
        "team:ops",
        "user:a:b",
        "everyone",
    ] {
        let audience: Audience = text.parse().unwrap();
        assert_eq!(audience.to_string(), text);
        let json = serde_json::to_string(&audience).unwrap();
        assert_eq!(serde_json::from_str::<Audience>(&json).unwrap(), audience);
    }
    for bad in [
        "",
        "ann",
        "user:",
        "user: ",
        "group:x",
        "Everyone",
        "agent:a\nb",
    ] {
        assert!(bad.parse::<Audience>().is_err(), "{bad:?}");
    }
}

#[test]
fn a_person_sees_their_own_and_what_is_for_everyone() {
    let seen = |viewer: &Viewer| -> Vec<&str> {
        let all = [
            "user:ann",
            "user:bob",
            "agent:planner",
            "team:ops",
            "everyone",
        ];
        let seen = |text: &&str| viewer.sees(&text.parse().unwrap());
        all.into_iter().filter(seen).collect()
    };
    assert_eq!(seen(&Viewer::Tenant).len(), 5);
    assert_eq!(seen(&Viewer::ANYONE), ["everyone"]);
    assert_eq!(seen(&Viewer::user("ann")), ["user:ann", "everyone"]);
    let planner = Viewer::person(Some("ann".into()), Some("planner".into()));
    assert_eq!(seen(&planner), ["user:ann", "agent:planner", "everyone"]);
    // The names of users, agents and teams are apart.
    let odd = Viewer::person(Some("planner".into()), Some("ann".into()));
    assert_eq!(seen(&odd), ["everyone"]);
    let ops = Viewer::Person {
        user: None,
        agent: None,
        teams: vec!["qa".into(), "ops".into()],
    };
    assert_eq!(seen(&ops), ["team:ops", "everyone"]);
}

#[test]
fn a_viewer_is_checked() {
    let teams = |count: usize| Viewer::Person {
        user: Some("ann".into()),
        agent: None,
        teams: vec!["ops".into(); count],
    };
    assert!(teams(limits::VIEWER_TEAMS).check().is_ok());
    assert!(teams(limits::VIEWER_TEAMS + 2).check().is_err());
    assert!(Viewer::user("").check().is_err());
    assert!(Viewer::Tenant.check().is_ok());
}

proptest! {
    #[test]
    fn a_derived_text_is_shown_to_nobody_new(
        sources in prop::collection::vec(audiences(), 0..6),
        viewer in people(),
    ) {
        let derived = Audience::of_sources(&sources);
        let Some(derived) = derived.filter(|derived| viewer.sees(derived)) else {
            return Ok(());
        };
        for source in sources.iter().filter(|source| source.is_closed()) {
            prop_assert!(viewer.sees(source), "{derived} from {sources:?}");
        }
        let users: BTreeSet<&str> = sources.iter().filter_map(Audience::user).collect();
        let sees_one = sources.iter().any(|source| viewer.sees(source));
        prop_assert!(sees_one || users.len() > 1, "{derived} from {sources:?}");
        if let Some(user) = derived.user() {
            prop_assert!(sources.iter().all(|source| source.user() == Some(user)));
        }
    }
}

#[test]
fn nobody_is_shown_a_deletion_of_which_no_version_is_known() {
    let change = Change {
        commit: 2,
        seq: 2,
        at: Time::EPOCH,
        actor: "test".to_owned(),
        cause: Cause::Forgotten,
        id: "a".parse().unwrap(),
        version: 2,
        before: None,
        before_known: false,
        after: None,
    };
    assert!(Changes::all_of_tenant(1).shows(&change));
    assert!(!Changes::seen_by(Viewer::user("ann"), 1).shows(&change));
}
