//! Better words by a model, and nothing but words.

use mnemon_core::Id;
use mnemon_engine::learn::Improved;
use mnemon_testkit::fakes::Scripted;

use super::*;
use crate::memory;

fn learnt(seed: u64) -> (Memory, World, Lesson) {
    let (memory, world) = (memory(), world(seed, 20));
    live(&memory, &world.runs);
    learn(&memory, &ctx());
    let skill = skill(&memory, &world).unwrap();
    (memory, world, skill)
}

fn answer(tools: &[String], same_as: Option<&Id>) -> String {
    let steps: Vec<Value> = tools
        .iter()
        .map(|tool| json!({ "tool": tool, "action": format!("do the {tool}") }))
        .collect();
    let answer = json!({
        "use_when": "a parcel must be shipped",
        "preferences": "",
        "tool_sops": steps,
        "same_as": same_as,
    });
    format!("Here you are:\n```json\n{answer}\n```")
}

fn improve(memory: &Memory, id: &Id, answers: &[&str]) -> Improved {
    let llm = Scripted::answering(answers);
    wait(memory.learning().improve(&ctx(), &llm, id)).unwrap()
}

#[test]
fn a_model_may_reword_a_skill_once() {
    let (memory, world, lesson) = learnt(9401);
    let better = answer(&world.tools(), None);
    let done = improve(&memory, &lesson.id, &[&better]);
    assert!(matches!(done, Improved::Reworded { .. }), "{done:?}");
    let after = skill(&memory, &world).unwrap();
    let LessonBody::Skill(sop) = &after.body else {
        panic!("no skill");
    };
    assert_eq!(sop.use_when, "a parcel must be shipped");
    assert_eq!(after.evidence.worded_by.as_deref(), Some("scripted"));
    assert_eq!(after.runs, lesson.runs);
    let again = improve(&memory, &lesson.id, &[&better]);
    assert!(matches!(again, Improved::Left { .. }), "{again:?}");
}

#[test]
fn tools_that_no_run_used_are_refused() {
    let (memory, world, lesson) = learnt(9402);
    let mut invented = world.tools();
    invented.push("rm_rf".to_owned());
    let mut turned = world.tools();
    turned.reverse();
    let short = world.tools()[1..].to_vec();
    for (tools, why) in [
        (invented, "rm_rf"),
        (turned, "in this order"),
        (short, "in this order"),
    ] {
        let done = improve(&memory, &lesson.id, &[&answer(&tools, None)]);
        match done {
            Improved::Refused { why: said, .. } => assert!(said.contains(why), "{said}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(skill(&memory, &world).unwrap(), lesson);
    }
}

#[test]
fn nonsense_and_silence_lose_nothing() {
    let (memory, world, lesson) = learnt(9403);
    for answers in [
        &["I would rather not"][..],
        &["{\"use_when\": 7}"],
        &["{]}"],
        &[],
    ] {
        let done = improve(&memory, &lesson.id, answers);
        assert!(matches!(done, Improved::Refused { .. }), "{done:?}");
        assert_eq!(skill(&memory, &world).unwrap(), lesson);
    }
}

#[test]
fn a_skill_is_merged_only_into_one_with_the_same_tools() {
    let (memory, world, lesson) = learnt(9404);
    let stranger: Id = "elsewhere".parse().unwrap();
    let done = improve(
        &memory,
        &lesson.id,
        &[&answer(&world.tools(), Some(&stranger))],
    );
    assert!(matches!(done, Improved::Reworded { .. }), "{done:?}");
    assert!(is(Status::Active, &skill(&memory, &world)));
}
