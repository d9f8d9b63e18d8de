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

/// A run that goes through these tools, with what the user put right.
fn walked(tools: &[&str], number: usize) -> Run {
    let id = |at: usize| format!("way-{}-{number}-{at}", tools[0]).parse().unwrap();
    let mut run = Run::new(id(99), TASK, ctx().now);
    run.trace = Some(format!("way-{}-{number}", tools[0]));
    for (at, tool) in tools.iter().enumerate() {
        run.acts.push(Act::new(id(at), Some(tool), Ended::Done));
    }
    run
}

fn walk(memory: &Memory, tools: &[&str], numbers: std::ops::Range<usize>) {
    for number in numbers {
        let run = walked(tools, number);
        for (at, act) in run.acts.iter().enumerate() {
            let mut step = step_of(&run, act);
            if at == 0 {
                let said = json!("weigh it first");
                step.metadata.insert("correction".to_owned(), said);
            }
            if at + 1 == run.acts.len() {
                let said = json!("success");
                step.metadata.insert("outcome".to_owned(), said);
            }
            let owner = owner("ann", "s1");
            wait(memory.experience().log_step(&ctx(), &owner, step, None)).unwrap();
        }
    }
}

const THERE: [&str; 3] = ["pack", "weigh", "label"];
const BACK: [&str; 3] = ["label", "weigh", "pack"];

fn names(tools: &[&str]) -> Vec<String> {
    tools.iter().map(|tool| (*tool).to_owned()).collect()
}

fn way(memory: &Memory, tools: &[&str]) -> Lesson {
    let found = lessons(memory).into_iter().find(|lesson| {
        let LessonBody::Skill(sop) = &lesson.body else {
            return false;
        };
        sop.tool_sops.iter().map(|s| &s.tool).eq(tools)
    });
    found.unwrap_or_else(|| panic!("no skill {tools:?}"))
}

/// Two skills of the same tools: one with fifteen runs, one with fourteen.
fn two_ways() -> Memory {
    let memory = memory();
    walk(&memory, &THERE, 0..15);
    walk(&memory, &BACK, 0..14);
    learn(&memory, &ctx());
    assert_eq!(way(&memory, &THERE).evidence.support, 15);
    assert_eq!(way(&memory, &BACK).evidence.support, 14);
    memory
}

#[test]
fn skills_that_say_the_same_are_merged_and_their_evidence_is_joined() {
    let memory = two_ways();
    let (strong, weak) = (way(&memory, &THERE), way(&memory, &BACK));
    let same = answer(&names(&BACK), Some(&strong.id));
    match improve(&memory, &weak.id, &[&same]) {
        Improved::Merged { id, into } => {
            assert_eq!((id, into), (weak.id.clone(), strong.id.clone()))
        }
        other => panic!("{other:?}"),
    }
    let both = way(&memory, &THERE);
    assert_eq!(both.evidence.support, 29);
    assert_eq!((both.evidence.with.good, both.evidence.with.of), (29, 29));
    assert!(
        strong
            .runs
            .iter()
            .chain(&weak.runs)
            .all(|run| both.runs.contains(run))
    );
    assert_eq!(told(&memory, "ann").0, 1, "only one of them is told");

    // What is learnt later keeps to it: either order speaks for the one that is left.
    walk(&memory, &BACK, 14..17);
    learn(&memory, &ctx());
    let both = way(&memory, &THERE);
    assert_eq!(both.evidence.support, 32);
    assert_eq!(both.evidence.status, Status::Active);
    let gone = way(&memory, &BACK);
    assert_eq!(gone.evidence.status, Status::Retired);
    let why = gone.evidence.retired.unwrap().why;
    assert!(why.contains(strong.id.as_str()), "{why}");
}

#[test]
fn forgetting_the_runs_takes_what_was_merged_along() {
    let memory = two_ways();
    let (strong, weak) = (way(&memory, &THERE), way(&memory, &BACK));
    let same = answer(&names(&BACK), Some(&strong.id));
    improve(&memory, &weak.id, &[&same]);
    wait(memory.delete_session(&ctx(), "ann", "s1", false)).unwrap();
    assert!(lessons(&memory).is_empty());
}

#[test]
fn a_merge_invents_no_tools_and_puts_nothing_stronger_away() {
    let memory = two_ways();
    let (strong, weak) = (way(&memory, &THERE), way(&memory, &BACK));
    let mut invented = names(&BACK);
    invented.push("rm_rf".to_owned());
    for tools in [invented, names(&THERE)] {
        let done = improve(&memory, &weak.id, &[&answer(&tools, Some(&strong.id))]);
        assert!(matches!(done, Improved::Refused { .. }), "{done:?}");
        assert_eq!(way(&memory, &BACK), weak);
        assert_eq!(way(&memory, &THERE), strong);
    }
    let turned = answer(&names(&THERE), Some(&weak.id));
    let done = improve(&memory, &strong.id, &[&turned]);
    assert!(matches!(done, Improved::Reworded { .. }), "{done:?}");
    assert_eq!(way(&memory, &BACK), weak);
    let pin = mnemon_engine::learn::Review::Pin;
    wait(memory.learning().review(&ctx(), &weak.id, pin)).unwrap();
    let same = answer(&names(&BACK), Some(&strong.id));
    let done = improve(&memory, &weak.id, &[&same]);
    assert!(matches!(done, Improved::Reworded { .. }), "{done:?}");
    // Of two for one situation the one in use is told.
    assert_eq!(told(&memory, "ann").0, 1);
    assert_eq!(way(&memory, &BACK).evidence.status, Status::Active);
    assert_eq!(way(&memory, &THERE).evidence.status, Status::Candidate);
}
