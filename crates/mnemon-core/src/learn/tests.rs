//! Each rule by itself, and against a slower way to get the same.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::{Id, Time, limits};

fn id(text: &str) -> Id {
    text.parse().unwrap()
}

fn at(ms: i64) -> Time {
    Time::from_millis(ms).unwrap()
}

/// A run of these steps; a tool with an exclamation mark failed.
fn run(name: &str, tools: &[&str]) -> Run {
    let mut run = Run::new(id(name), "task", at(0));
    for (n, tool) in tools.iter().enumerate() {
        let ended = match tool.ends_with('!') {
            true => Ended::Failed,
            false => Ended::Done,
        };
        let tool = tool.trim_end_matches('!');
        let act = Act::new(id(&format!("{name}-{n}")), Some(tool), ended);
        run.add(act, None, at(n as i64));
    }
    run
}

#[test]
fn the_formulas_agree_with_tables() {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-3;
    let (low, high) = wilson(8, 10);
    assert!(near(low, 0.490) && near(high, 0.943), "{low} {high}");
    assert_eq!(wilson(0, 0), (0.0, 1.0));
    assert!(near(wilson(0, 10).0, 0.0) && near(wilson(10, 10).1, 1.0));
    assert!(near(binomial_tail(8, 10, 0.5).exp(), 0.0547));
    assert!(near(binomial_tail(0, 10, 0.5).exp(), 1.0));
    assert_eq!(binomial_tail(11, 10, 0.5), f64::NEG_INFINITY);
    // The lady who tastes tea.
    assert!(near(fisher(4, 4, 0, 4).exp(), 1.0 / 70.0));
    assert!(near(fisher(3, 4, 1, 4).exp(), 17.0 / 70.0));
    assert!(near(fisher(0, 0, 0, 0).exp(), 1.0));
}

#[test]
fn errors_of_one_sort_have_one_class() {
    let same = [
        "Timeout after 30 s at https://a.example/x?y=1",
        "timeout after 4512 s at https://b.example/z",
    ];
    let classes: HashSet<String> = same.iter().map(|text| error_class(text)).collect();
    assert_eq!(classes.len(), 1, "{classes:?}");
    assert_eq!(
        error_class("file 'a b.txt' not found\nstack: …"),
        error_class("File \"c\" not found")
    );
    assert_eq!(error_class("couldn't open it"), "couldn't open it");
    assert_ne!(error_class("not found"), error_class("permission denied"));
    assert_eq!(error_class(""), "error");
    assert_eq!(error_class("12345"), "error");
}

#[test]
fn a_run_ends_when_it_is_silent_or_somebody_says_so() {
    let mut run = run("r", &["a", "b"]);
    assert_eq!(run.outcome(at(10), 100), None);
    assert_eq!(run.outcome(at(101), 100), Some(Outcome::Success));
    run.add(Act::new(id("c"), Some("c"), Ended::Cancelled), None, at(2));
    assert_eq!(run.outcome(at(500), 100), Some(Outcome::Abandoned));
    // The step was finished: it counts as the last one.
    run.add(Act::new(id("c"), Some("c"), Ended::Failed), None, at(3));
    assert_eq!(
        (run.acts.len(), run.outcome(at(500), 100)),
        (3, Some(Outcome::Failure))
    );
    run.add(
        Act::new(id("d"), None, Ended::Done),
        Some(Outcome::Success),
        at(4),
    );
    assert_eq!(run.outcome(at(4), 100), Some(Outcome::Success));
}

#[test]
fn a_run_keeps_no_more_steps_than_it_may() {
    let tools = vec!["a"; limits::RUN_STEPS + 5];
    let run = run("r", &tools);
    assert_eq!((run.acts.len(), run.left_out), (limits::RUN_STEPS, 5));
    assert_eq!(run.outcome(at(1_000_000), 0), Some(Outcome::Abandoned));
}

#[test]
fn a_procedure_is_followed_to_its_end_or_to_where_it_failed() {
    let tools: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
    let followed = |names: &[&str], outcome| follows(&run("r", names), outcome, &tools);
    assert!(followed(&["a", "x", "b", "c"], Outcome::Success));
    assert!(!followed(&["a", "c", "b"], Outcome::Success));
    assert!(followed(&["a", "b!"], Outcome::Failure));
    assert!(followed(&["a!"], Outcome::Failure));
    assert!(!followed(&["a", "x!"], Outcome::Failure));
    assert!(!followed(&["a", "b"], Outcome::Failure));
}

/// A run of a shell in which somebody may have said what was wanted.
fn asked(number: usize, goal: Option<&str>) -> Run {
    let mut run = Run::new(id(&format!("asked-{number}")), "task", at(0));
    let metadata = goal.map(|goal| json!({"goal": goal, "correction": "slowly"}));
    let metadata = metadata.unwrap_or(json!({"correction": "slowly"}));
    for (step, cmd) in ["npm install", "npm publish"].into_iter().enumerate() {
        let tool = if step == 0 { "shell" } else { "ship" };
        let act = Act::new(
            id(&format!("asked-{number}-{step}")),
            Some(tool),
            Ended::Done,
        )
        .called_with(&json!({"cmd": cmd, "place": format!("kitchen {number}")}));
        let told = if step == 1 {
            json!({})
        } else {
            metadata.clone()
        };
        let act = act.known(told.as_object().unwrap());
        run.add(act, Some(Outcome::Success), at(step as i64));
    }
    run
}

#[test]
fn the_occasion_is_what_was_asked_for_not_a_command() {
    let learnt = |goal: Option<&str>| {
        let told: Vec<(Run, Outcome)> = (0..20)
            .map(|number| (asked(number, goal), Outcome::Success))
            .collect();
        let found = procedures(&told, &LearnSettings::default());
        found.first().unwrap().use_when("deploy")
    };
    let said = learnt(Some("put the npm shop online"));
    for word in ["shop", "online", "npm"] {
        assert!(said.contains(word), "{said}");
    }
    assert!(
        !said.contains("install") && !said.contains("kitchen"),
        "{said}"
    );
    let unsaid = learnt(None);
    assert!(
        unsaid.contains("kitchen"),
        "what varies may tell the occasion: {unsaid}"
    );
    assert!(
        !unsaid.contains("npm") && !unsaid.contains("install"),
        "{unsaid}"
    );
}

#[test]
fn what_was_asked_for_may_be_said_late() {
    let mut run = run("r", &["a", "b"]);
    let goal = json!({"request": "Book a flight"});
    let act = Act::new(id("c"), Some("c"), Ended::Done).known(goal.as_object().unwrap());
    run.add(act, None, at(3));
    assert_eq!(run.words(), ["book", "flight"]);
}

#[test]
fn what_a_step_was_called_with_is_flattened_and_bounded() {
    let input = json!({"a": {"b": {"c": {"d": {"e": 1}}}}, "list": [1, 2], "text": "Ship the box"});
    let act = Act::new(id("s"), Some("t"), Ended::Done).called_with(&input);
    assert_eq!(act.params["a.b.c.d"], "{\"e\":1}");
    assert_eq!(act.params["list"], "[1,2]");
    assert!(act.words.contains(&"ship".to_owned()) && !act.words.contains(&"the".to_owned()));
    let long = Act::new(id("s"), None, Ended::Done).called_with(&json!("x".repeat(5000)));
    assert!(long.params["input"].chars().count() < limits::LEARN_VALUE_CHARS + 30);
}

#[test]
fn a_regression_is_more_than_bad_luck() {
    let went = |good: usize, bad: usize| [vec![true; good], vec![false; bad]].concat();
    assert_eq!(regressed(&went(30, 3)), None);
    assert!(regressed(&went(30, 5)).is_some());
    assert_eq!(regressed(&went(2, 5)), None, "it never worked for long");
    let mixed: Vec<bool> = (0..60).map(|n| n % 2 == 0).collect();
    assert_eq!(regressed(&mixed), None, "it always was so");
}

#[test]
fn what_goes_right_by_itself_is_not_worth_a_skill() {
    let told: Vec<(Run, Outcome)> = (0..30)
        .map(|n| (run(&format!("r{n}"), &["a", "b", "c"]), Outcome::Success))
        .collect();
    assert!(procedures(&told, &LearnSettings::default()).is_empty());
    let easy = LearnSettings {
        complexity: 0,
        ..LearnSettings::default()
    };
    let found = procedures(&told, &easy);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].tools(), ["a", "b", "c"]);
}

/// Runs of these tools, with a correction so that they are worth keeping.
fn runs_of(sorts: &[(usize, &[&str], Outcome)]) -> Vec<(Run, Outcome)> {
    let mut told = Vec::new();
    for (sort, (count, tools, outcome)) in sorts.iter().enumerate() {
        for n in 0..*count {
            let mut run = run(&format!("r{sort}-{n}"), tools);
            run.acts[0].correction = Some("slowly".to_owned());
            told.push((run, *outcome));
        }
    }
    told
}

#[test]
fn a_pattern_that_lacks_a_step_of_most_runs_is_not_kept() {
    let told = runs_of(&[
        (40, &["clone", "tests", "build", "push"], Outcome::Success),
        (4, &["clone", "build", "push"], Outcome::Success),
        (36, &["clone", "tests!"], Outcome::Failure),
    ]);
    let found = findings(&told, &LearnSettings::default());
    assert_eq!(found.kept, []);
    let obstacles: Vec<Obstacle> = found.not_kept.iter().map(|one| one.obstacle).collect();
    assert_eq!(obstacles, [Obstacle::Unreliable, Obstacle::Incomplete]);
    assert_eq!(
        found.not_kept[1].why,
        "incomplete: lacks tests, which 40 of 44 successful runs contain"
    );
    assert!(died_at(
        &told[50].0,
        Outcome::Failure,
        &["tests".to_owned()]
    ));
}

#[test]
fn a_step_that_two_tools_do_in_turn_is_not_left_out() {
    let told = runs_of(&[
        (20, &["a", "old", "c", "d"], Outcome::Success),
        (20, &["a", "new", "c", "d"], Outcome::Success),
    ]);
    let found = findings(&told, &LearnSettings::default());
    let tools: Vec<Vec<String>> = found.kept.iter().map(Procedure::tools).collect();
    assert!(!tools.is_empty());
    assert!(tools.iter().all(|tools| tools.len() == 4), "{tools:?}");
    let done: Vec<Vec<&str>> = told.iter().map(|(run, _)| run.done()).collect();
    let short = ["a", "c", "d"].map(str::to_owned);
    let lacks = missing(&short, &done);
    assert_eq!(lacks.len(), 1);
    assert_eq!(lacks[0].tools, ["new", "old"]);
    assert_eq!((lacks[0].runs, lacks[0].of), (40, 40));
}

/// The rules of these runs about this tool.
fn rules_about(tool: &str, told: &[(Run, Outcome)]) -> Vec<Rule> {
    let mut found = rules(told);
    found.retain(|rule| rule.tool == tool);
    found
}

#[test]
fn a_tool_that_works_on_retry_is_tried_again() {
    let told = runs_of(&[
        (28, &["a", "b", "c"], Outcome::Success),
        (9, &["a", "b!", "b", "c"], Outcome::Success),
        (3, &["a", "b!", "b!"], Outcome::Failure),
    ]);
    let [rule] = &rules_about("b", &told)[..] else {
        panic!("one rule");
    };
    assert_eq!(rule.advice, Advice::Retry { worked: 9, of: 12 });
    assert_eq!(
        rule.text(),
        "When you use b, it failed in 12 of 40 tries: try it again, which worked in 9 of 12. \
         Other tools failed in 0 of 77."
    );
}

#[test]
fn a_tool_that_most_successes_use_is_not_avoided() {
    let told = runs_of(&[
        (20, &["a", "b", "c"], Outcome::Success),
        (12, &["a", "b!"], Outcome::Failure),
    ]);
    let [rule] = &rules_about("b", &told)[..] else {
        panic!("one rule");
    };
    assert_eq!(rule.advice, Advice::Needed { used: 20, of: 20 });
    assert!(!rule.text().contains("avoid"), "{}", rule.text());
}

#[test]
fn the_next_step_is_no_replacement() {
    let told = runs_of(&[
        (20, &["a", "deploy", "c"], Outcome::Success),
        (12, &["a", "guess!", "deploy", "c"], Outcome::Success),
    ]);
    let [rule] = &rules_about("guess", &told)[..] else {
        panic!("one rule");
    };
    assert_eq!(rule.advice, Advice::Avoid);
    let told = runs_of(&[
        (20, &["a", "b", "c"], Outcome::Success),
        (12, &["a", "fax!", "mail", "c"], Outcome::Success),
    ]);
    let [rule] = &rules_about("fax", &told)[..] else {
        panic!("one rule");
    };
    let mail = "mail".to_owned();
    assert_eq!(rule.advice, Advice::Instead { tool: mail });
}

#[test]
fn two_ways_of_doing_it_are_two_procedures() {
    let told: Vec<(Run, Outcome)> = (0..40)
        .map(|n| {
            let tools: &[&str] = match n % 2 {
                0 => &["a", "b", "c", "d"],
                _ => &["a", "x", "y", "z"],
            };
            (run(&format!("r{n}"), tools), Outcome::Success)
        })
        .collect();
    let settings = LearnSettings {
        complexity: 0,
        ..LearnSettings::default()
    };
    let found: HashSet<Vec<String>> = procedures(&told, &settings)
        .iter()
        .map(Procedure::tools)
        .collect();
    assert_eq!(found.len(), 2, "{found:?}");
}

/// Every closed pattern, by trying all subsequences of all sequences.
fn slowly(sequences: &[Vec<&str>], least: usize) -> HashSet<(Vec<String>, usize)> {
    let mut all: HashSet<Vec<String>> = HashSet::new();
    for sequence in sequences {
        for mask in 1..(1_u32 << sequence.len()) {
            let picked = sequence.iter().enumerate();
            let picked = picked.filter(|(n, _)| mask & (1 << n) != 0);
            all.insert(picked.map(|(_, tool)| (*tool).to_owned()).collect());
        }
    }
    let support = |tools: &[String]| sequences.iter().filter(|s| contains(s, tools)).count();
    let counted: Vec<(Vec<String>, usize)> = all
        .into_iter()
        .map(|tools| (tools.clone(), support(&tools)))
        .filter(|(_, support)| *support >= least)
        .collect();
    let within = |part: &[String], whole: &[String]| {
        let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
        part.len() < whole.len() && contains(&whole, part)
    };
    let closed = counted.iter().filter(|(tools, support)| {
        !counted
            .iter()
            .any(|(other, theirs)| theirs == support && within(tools, other))
    });
    closed.cloned().collect()
}

proptest! {
    #[test]
    fn patterns_are_those_that_trying_everything_finds(
        coded in prop::collection::vec(prop::collection::vec(0_usize..4, 0..8), 1..7),
        least in 1_usize..5,
    ) {
        let names = ["a", "b", "c", "d"];
        let sequences: Vec<Vec<&str>> = coded
            .iter()
            .map(|sequence| sequence.iter().map(|n| names[*n]).collect())
            .collect();
        let mined = patterns(&sequences, least);
        let found: Vec<(Vec<String>, usize)> =
            mined.patterns.into_iter().map(|p| (p.tools, p.support)).collect();
        let unique: HashSet<(Vec<String>, usize)> = found.iter().cloned().collect();
        prop_assert_eq!(unique.len(), found.len());
        prop_assert_eq!(unique, slowly(&sequences, least));
        prop_assert!(!mined.cut);
    }

    #[test]
    fn no_error_text_is_too_strange(text in "\\PC{0,200}") {
        let class = error_class(&text);
        prop_assert!(!class.is_empty());
        prop_assert_eq!(error_class(&text), class);
    }

    #[test]
    fn a_rate_lies_in_its_interval(of in 1_usize..1000, part in 0.0..=1.0_f64) {
        let good = (of as f64 * part) as usize;
        let (low, high) = wilson(good, of);
        let rate = good as f64 / of as f64;
        prop_assert!(0.0 <= low && low <= rate + 1e-9 && rate <= high + 1e-9 && high <= 1.0);
    }
}

#[test]
fn the_search_for_patterns_ends() {
    // Three tools in no order, in runs as long as may be: far more patterns than anybody wants.
    let mut state = 7_u64;
    let mut tool = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ["a", "b", "c"][(state >> 33) as usize % 3]
    };
    let sequences: Vec<Vec<&str>> = (0..limits::LEARN_RUNS)
        .map(|_| (0..limits::RUN_STEPS).map(|_| tool()).collect())
        .collect();
    let mined = patterns(&sequences, limits::LEARN_RUNS / 2);
    assert!(mined.cut);
}
