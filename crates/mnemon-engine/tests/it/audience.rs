//! Who sees what is found and what is learnt.

use std::sync::Arc;

use mnemon_core::learn::Outcome;
use mnemon_core::longterm::LongTerm;
use mnemon_core::ram::Ram;
use mnemon_core::{
    Audience, Filter, Ids, Limits, Message, Owner, Policy, Role, Scan, Scope, Viewer,
};
use mnemon_engine::learn::LessonBody;
use mnemon_engine::longterm::OwnLongTerm;
use mnemon_engine::{Draft, Memory, Query};
use mnemon_testkit::worlds::{Maker, Plan, TASK};
use proptest::prelude::*;

use crate::learn::{learn, live_as};
use crate::{ctx, memory, wait};

fn of(user: Option<String>, content: &str) -> Draft {
    Draft {
        owner: Owner {
            user,
            ..Owner::default()
        },
        ..Draft::note(content)
    }
}

#[test]
fn a_memory_without_a_user_finds_shared_records_beside_thousands_of_users() {
    let memory = Arc::new(memory());
    for chunk in 0..5_u32 {
        let users = (0..1000).map(|user| format!("u{chunk}-{user}"));
        let notes = users.map(|user| of(Some(user), "deploy the tea service"));
        wait(memory.records().add(&ctx(), notes.collect(), None)).unwrap();
    }
    let shared = vec![of(None, "to deploy the tea service, take two keys")];
    wait(memory.records().add(&ctx(), shared, None)).unwrap();
    let own = OwnLongTerm::new(memory);
    let question = Message::text("q", Role::User, "deploy tea service");
    let told = wait(own.retrieve(&ctx(), &Owner::default(), &question)).unwrap();
    assert_eq!(told, "to deploy the tea service, take two keys");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However many records of others answer better, what a viewer may see is found.
    #[test]
    fn what_may_be_seen_is_not_crowded_out(
        others in 0_usize..60,
        audience in prop::sample::select(vec!["everyone", "user:ann", "agent:planner", "team:ops"]),
    ) {
        let policy = Policy { limits: &Limits::TINY, ..Policy::default() };
        let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7)).policy(policy).build();
        for number in 0..others {
            let audience = match number % 3 {
                0 => Audience::User(format!("u{number}")),
                1 => Audience::Agent(format!("a{number}")),
                _ => Audience::Team(format!("t{number}")),
            };
            let draft = Draft { audience: Some(audience), ..Draft::note("tea tea tea") };
            wait(memory.records().add(&ctx(), vec![draft], None)).unwrap();
        }
        let audience: Audience = audience.parse().unwrap();
        let draft = Draft {
            audience: Some(audience.clone()),
            ..Draft::note("a long note that says tea once among many other words")
        };
        wait(memory.records().add(&ctx(), vec![draft], None)).unwrap();
        let query = Query {
            limit: 1,
            ..Query::new("tea", Filter::seen_by(audience.viewer()))
        };
        let hits = wait(memory.records().search(&ctx(), &query)).unwrap();
        prop_assert_eq!(hits.len(), 1);
        prop_assert_eq!(hits[0].record.audience(), audience);
    }
}

/// What an agent did in private is learnt, and told to that agent only.
#[test]
fn lessons_stay_with_the_agent_whose_runs_they_rest_on() {
    let memory = memory();
    let world = Maker::new(3).with_procedure(Plan {
        successes: 30,
        noise: 5,
        ..Plan::default()
    });
    for (run, outcome) in &world.runs {
        live_as(&memory, &ctx(), &Owner::default(), run, *outcome);
    }
    let experience = memory.records_of(Scope::Experience);
    let private = Audience::Agent("planner".to_owned());
    let mut scan = Scan::new(Filter::all_of_tenant(), 1000);
    loop {
        let page = wait(experience.list(&ctx(), &scan)).unwrap();
        for mut record in page.records {
            record.audience = Some(private.clone());
            wait(experience.update(&ctx(), record)).unwrap();
        }
        match page.next {
            Some(next) => scan.after = Some(next),
            None => break,
        }
    }
    // A public run of the same type, of somebody who knows nothing of it.
    let (run, _) = &world.runs[0];
    let ann = Owner {
        user: Some("ann".to_owned()),
        ..Owner::default()
    };
    live_as(&memory, &ctx(), &ann, run, Outcome::Success);
    learn(&memory, &ctx());
    let told = |viewer: &Viewer| {
        wait(
            memory
                .learning()
                .lessons(&ctx(), viewer, Some(TASK), None, 100),
        )
        .unwrap()
    };
    let all = told(&Viewer::Tenant);
    assert!(
        all.iter()
            .any(|lesson| matches!(lesson.body, LessonBody::Skill(_))),
        "{all:?}"
    );
    assert!(
        all.iter().all(|lesson| lesson.audience == private),
        "{all:?}"
    );
    assert_eq!(told(&private.viewer()), all);
    assert_eq!(told(&Viewer::user("ann")), []);
    assert_eq!(told(&Viewer::ANYONE), []);
    let every = Filter::seen_by(Viewer::user("ann"));
    let seen = wait(experience.list(&ctx(), &Scan::new(every, 1000)))
        .unwrap()
        .records;
    let text = serde_json::to_string(&seen).unwrap();
    let tools = world.tools();
    assert!(
        !text.contains(&format!("{} → {}", tools[0], tools[1])),
        "{text}"
    );
}
