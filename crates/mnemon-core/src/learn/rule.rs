//! What failures have in common.
//!
//! One observation is the first try of a tool in a run: further tries of the same run are not
//! independent of it. For each tool, each sort of error and each feature (a parameter's value, what
//! was the case, a word of the request, a tool that was or was not used before) Fisher's exact test
//! asks whether it fails more often with the feature than without. The probability is corrected for
//! the number of questions asked (Bonferroni): all rules of a type of task together are wrong with a
//! probability of at most [`WRONG`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::procedure::may_be_told;
use super::statistics::fisher;
use super::{Act, Ended, Outcome, Rate, Run};
use crate::model::{Audience, Id, Time, limits};

/// How likely any rule of a type of task may be to be chance.
const WRONG: f64 = 0.01;
/// Failures that a rule needs.
const FAILURES: usize = 5;
/// By how much the failure rate must be higher.
const HIGHER: f64 = 0.2;
/// Sorts of errors of one tool that are looked at by themselves.
const CLASSES: usize = 3;
/// A value that fewer tries have is no feature.
const TRIES: usize = 5;
/// The part of the ways out that must agree for it to be advised.
const AGREED: f64 = 0.6;
/// The newest successful runs that say whether a tool is needed: an old one may be replaced.
const NEWEST_SUCCESSES: usize = 20;

/// When a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "when")]
pub enum Condition {
    /// Whenever the tool is used.
    Always,
    /// A parameter has this value.
    Param { name: String, value: String },
    /// This is the case.
    Context { name: String, value: String },
    /// The request has this word.
    Word { word: String },
    /// Another tool was used before.
    After { tool: String },
    /// Another tool was not used before.
    NotAfter { tool: String },
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Advice {
    Avoid,
    /// Another value of the parameter went well.
    Use {
        name: String,
        value: String,
    },
    /// Use the other tool first.
    First {
        tool: String,
    },
    /// Another tool did the work.
    Instead {
        tool: String,
    },
    /// The same tool did the work when it was tried again: so often of those that tried.
    Retry {
        worked: usize,
        of: usize,
    },
    /// Most successful runs use it all the same: so many of the newest.
    Needed {
        used: usize,
        of: usize,
    },
}

impl Advice {
    /// Whether it turns agents away from the tool as it was called.
    pub fn turns_away(&self) -> bool {
        match self {
            Self::Avoid | Self::Use { .. } | Self::Instead { .. } => true,
            Self::First { .. } | Self::Retry { .. } | Self::Needed { .. } => false,
        }
    }
}

/// A rule: when this, avoid or do that.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub tool: String,
    pub condition: Condition,
    /// The sort of error, where it is always the same.
    pub error: Option<String>,
    pub advice: Advice,
    /// Failures where it applies, and where it does not.
    pub with: Rate,
    pub without: Rate,
    /// The probability that chance made it, corrected, as a logarithm.
    pub ln_chance: f64,
    /// The runs that failed so.
    pub runs: Vec<Id>,
    pub last_confirmed: Option<Time>,
    /// Who may be told it; see [`Audience::of_sources`].
    pub audience: Audience,
}

impl Rule {
    /// The rule in words.
    pub fn text(&self) -> String {
        let tool = &self.tool;
        let when = match &self.condition {
            Condition::Always => format!("When you use {tool}"),
            Condition::Param { name, value } => {
                format!("When you use {tool} with {name} = {value}")
            }
            Condition::Context { name, value } => {
                format!("When {name} = {value} and you use {tool}")
            }
            Condition::Word { word } => {
                format!("When the request speaks of {word} and you use {tool}")
            }
            Condition::After { tool: other } => format!("When you use {tool} after {other}"),
            Condition::NotAfter { tool: other } => {
                format!("When you use {tool} without {other} before")
            }
        };
        let advice = match &self.advice {
            Advice::Avoid => "avoid it".to_owned(),
            Advice::Use { name, value } => format!("use {name} = {value} instead"),
            Advice::First { tool } => format!("do {tool} first"),
            Advice::Instead { tool } => format!("use {tool} instead"),
            Advice::Retry { worked, of } => {
                format!("try it again, which worked in {worked} of {of}")
            }
            Advice::Needed { used, of } => {
                format!("it is needed all the same, {used} of the last {of} successful runs use it")
            }
        };
        let error = self.error.as_ref().map(|error| format!(" ({error})"));
        let (with, without) = (self.with, self.without);
        let otherwise = match self.condition {
            Condition::Always => "Other tools",
            _ => "Otherwise it",
        };
        format!(
            "{when}, it failed in {} of {} tries{}: {advice}. {otherwise} failed in {} of {}.",
            with.good,
            with.of,
            error.unwrap_or_default(),
            without.good,
            without.of
        )
    }
}

/// What a condition may ask about; as the run has it, for there are many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Feature<'a> {
    Param { name: &'a str, value: &'a str },
    Context { name: &'a str, value: &'a str },
    Word { word: &'a str },
    After { tool: &'a str },
}

impl Feature<'_> {
    fn condition(self) -> Condition {
        let owned = str::to_owned;
        match self {
            Self::Param { name, value } => Condition::Param {
                name: owned(name),
                value: owned(value),
            },
            Self::Context { name, value } => Condition::Context {
                name: owned(name),
                value: owned(value),
            },
            Self::Word { word } => Condition::Word { word: owned(word) },
            Self::After { tool } => Condition::After { tool: owned(tool) },
        }
    }
}

/// The first try of a tool in a run.
struct Try<'a> {
    run: &'a Run,
    act: &'a Act,
    at: usize,
    features: BTreeSet<Feature<'a>>,
}

impl Try<'_> {
    fn has(&self, condition: &Condition) -> bool {
        let features = &self.features;
        match condition {
            Condition::Always => true,
            Condition::Param { name, value } => features.contains(&Feature::Param { name, value }),
            Condition::Context { name, value } => {
                features.contains(&Feature::Context { name, value })
            }
            Condition::Word { word } => features.contains(&Feature::Word { word }),
            Condition::After { tool } => features.contains(&Feature::After { tool }),
            Condition::NotAfter { tool } => !features.contains(&Feature::After { tool }),
        }
    }

    fn failed(&self, class: Option<&str>) -> bool {
        let of_class = class.is_none() || self.act.error.as_deref() == class;
        self.act.ended == Ended::Failed && of_class
    }
}

/// A question that was asked, and its answer.
struct Found<'a> {
    tool: &'a str,
    class: Option<&'a str>,
    condition: Condition,
    with: Rate,
    without: Rate,
    ln_p: f64,
}

/// The rules that the runs of one type of task show, the surest first.
pub fn rules(told: &[(Run, Outcome)]) -> Vec<Rule> {
    let mut tries: BTreeMap<&str, Vec<Try<'_>>> = BTreeMap::new();
    for (run, _) in told {
        for one in first_tries(run) {
            let tool = one.act.tool.as_deref().unwrap_or_default();
            tries.entry(tool).or_default().push(one);
        }
    }
    let mut asked = 0;
    let mut found: Vec<Found<'_>> = Vec::new();
    for tool in tries.keys() {
        ask(tool, &tries, &mut asked, &mut found);
    }
    let correction = (asked.max(1) as f64).ln();
    found.retain(|one| one.ln_p + correction <= WRONG.ln());
    found.sort_by(|one, other| {
        let p = one.ln_p.total_cmp(&other.ln_p);
        p.then_with(|| one.condition.cmp(&other.condition))
    });
    // What is true of some tries says more than what is true of all.
    found.sort_by_key(|one| one.condition == Condition::Always);
    let mut rules: Vec<Rule> = Vec::new();
    for one in found {
        if rules.len() == limits::TASK_RULES {
            break;
        }
        let own = tries.get(one.tool).map_or(&[][..], Vec::as_slice);
        let known: Vec<&Condition> = rules
            .iter()
            .filter(|rule| rule.tool == one.tool)
            .map(|rule| &rule.condition)
            .collect();
        // A cause comes with many features: what is left when those with a rule are set aside must
        // still speak for this one.
        let explained = |try_: &&Try<'_>| known.iter().any(|known| try_.has(known));
        let left: Vec<&Try<'_>> = own.iter().filter(|try_| !explained(try_)).collect();
        let others = tries.iter().filter(|(other, _)| **other != one.tool);
        let others = others.flat_map(|(_, tries)| tries);
        let (with, without) = match one.condition {
            Condition::Always => (
                rate(left.iter().copied(), one.class),
                rate(others, one.class),
            ),
            _ => (
                rate(
                    left.iter().copied().filter(|t| t.has(&one.condition)),
                    one.class,
                ),
                rate(
                    left.iter().copied().filter(|t| !t.has(&one.condition)),
                    one.class,
                ),
            ),
        };
        let ln_p = fisher(with.good, with.of, without.good, without.of);
        if is_worse(with, without) && ln_p + correction <= WRONG.ln() {
            let failures = own
                .iter()
                .filter(|t| t.failed(one.class) && t.has(&one.condition));
            let failures: Vec<&Try<'_>> = failures.collect();
            rules.extend(rule(told, own, &failures, &one, correction));
        }
    }
    rules
}

/// How many of the tries failed so.
fn rate<'a, 'b: 'a>(tries: impl Iterator<Item = &'a Try<'b>>, class: Option<&str>) -> Rate {
    tries.fold(Rate::default(), |sum, one| Rate {
        good: sum.good + usize::from(one.failed(class)),
        of: sum.of + 1,
    })
}

/// Whether the difference is one that matters.
fn is_worse(with: Rate, without: Rate) -> bool {
    let higher = with.rate() - without.rate() >= HIGHER;
    with.good >= FAILURES && higher && with.rate() >= 2.0 * without.rate()
}

fn first_tries(run: &Run) -> Vec<Try<'_>> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut tries = Vec::new();
    for (at, act) in run.acts.iter().enumerate() {
        let Some(tool) = act.tool.as_deref() else {
            continue;
        };
        let first = !seen.contains(tool);
        if first && act.ended != Ended::Cancelled {
            tries.push(Try {
                run,
                act,
                at,
                features: features(run, act, &seen),
            });
        }
        seen.insert(tool);
    }
    tries
}

fn features<'a>(run: &'a Run, act: &'a Act, before: &BTreeSet<&'a str>) -> BTreeSet<Feature<'a>> {
    let params = act.params.iter();
    let params = params.map(|(name, value)| Feature::Param { name, value });
    let context = act.context.iter();
    let context = context.map(|(name, value)| Feature::Context { name, value });
    let words = run.words().iter().map(|word| Feature::Word { word });
    let after = before.iter().copied();
    let after = after.map(|tool| Feature::After { tool });
    params.chain(context).chain(words).chain(after).collect()
}

/// Asks everything that can be asked about one tool.
fn ask<'a>(
    tool: &'a str,
    tries: &BTreeMap<&'a str, Vec<Try<'a>>>,
    asked: &mut usize,
    found: &mut Vec<Found<'a>>,
) {
    let Some(own) = tries.get(tool) else {
        return;
    };
    let mut features: BTreeMap<Feature<'a>, usize> = BTreeMap::new();
    for feature in own.iter().flat_map(|one| &one.features) {
        *features.entry(*feature).or_default() += 1;
    }
    // What all tries have tells them from none.
    features.retain(|_, tries| (TRIES.min(own.len())..own.len()).contains(tries));
    for class in classes(own) {
        let mut test = |condition: Condition, with: Rate, without: Rate| {
            if is_worse(with, without) {
                let ln_p = fisher(with.good, with.of, without.good, without.of);
                found.push(Found {
                    tool,
                    class,
                    condition,
                    with,
                    without,
                    ln_p,
                });
            }
        };
        let all = rate(own.iter(), class);
        let others = tries.iter().filter(|(other, _)| **other != tool);
        let others = rate(others.flat_map(|(_, tries)| tries), class);
        *asked += usize::from(others.of > 0);
        if others.of > 0 {
            test(Condition::Always, all, others);
        }
        for feature in features.keys() {
            *asked += 1 + usize::from(matches!(feature, Feature::After { .. }));
            if all.good < FAILURES {
                // The question was asked; the answer is no.
                continue;
            }
            let having = own.iter().filter(|one| one.features.contains(feature));
            let with = rate(having, class);
            let without = Rate {
                good: all.good - with.good,
                of: all.of - with.of,
            };
            test(feature.condition(), with, without);
            if let Feature::After { tool } = feature {
                let tool = (*tool).to_owned();
                test(Condition::NotAfter { tool }, without, with);
            }
        }
    }
}

/// Failures of any sort, and the sorts that are frequent.
fn classes<'a>(own: &[Try<'a>]) -> Vec<Option<&'a str>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for one in own.iter().filter(|one| one.failed(None)) {
        if let Some(class) = one.act.error.as_deref() {
            *counts.entry(class).or_default() += 1;
        }
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.retain(|(_, count)| *count >= FAILURES);
    counts.sort_by_key(|(class, count)| (usize::MAX - count, *class));
    let several = counts.len() > 1;
    let frequent = counts.into_iter().take(CLASSES).filter(|_| several);
    std::iter::once(None)
        .chain(frequent.map(|(class, _)| Some(class)))
        .collect()
}

fn rule(
    told: &[(Run, Outcome)],
    own: &[Try<'_>],
    failures: &[&Try<'_>],
    found: &Found<'_>,
    correction: f64,
) -> Option<Rule> {
    let mut errors: BTreeSet<Option<&str>> = BTreeSet::new();
    errors.extend(failures.iter().map(|one| one.act.error.as_deref()));
    // A rule that rests on one user's failures is that user's: its words, values and counts.
    let audience = Audience::of_sources(failures.iter().map(|one| &one.run.audience))?;
    if let Condition::NotAfter { .. } = &found.condition {
        // The failures lack this tool: whose it is, the others say.
        let having = own.iter().filter(|one| !one.has(&found.condition));
        let used_for = having.map(|one| &one.run.audience).collect();
        if !may_be_told(&used_for, &audience) {
            return None;
        }
    }
    Some(Rule {
        tool: found.tool.to_owned(),
        condition: found.condition.clone(),
        error: match errors.len() {
            1 => errors.first().copied().flatten().map(str::to_owned),
            _ => found.class.map(str::to_owned),
        },
        advice: advice(told, own, failures, found, &audience),
        with: found.with,
        without: found.without,
        ln_chance: (found.ln_p + correction).min(0.0),
        runs: failures.iter().map(|one| one.run.id.clone()).collect(),
        last_confirmed: failures.iter().map(|one| one.run.last).max(),
        audience,
    })
}

/// What went well instead.
fn advice(
    told: &[(Run, Outcome)],
    own: &[Try<'_>],
    failures: &[&Try<'_>],
    found: &Found<'_>,
    audience: &Audience,
) -> Advice {
    if let Condition::NotAfter { tool } = &found.condition {
        return Advice::First { tool: tool.clone() };
    }
    if let Condition::Param { name, value } = &found.condition {
        let way_out = failures.iter().filter_map(|one| later_value(one, name));
        let went_well = own.iter().filter(|one| one.act.ended == Ended::Done);
        let usual = went_well.filter_map(|one| one.act.params.get(name).map(String::as_str));
        let may_be_told = |other: &&str| may_be_told(&audiences_with(own, name, other), audience);
        let mut others = [
            agreed(&way_out.collect::<Vec<_>>()),
            agreed(&usual.collect::<Vec<_>>()),
        ]
        .into_iter()
        .flatten();
        if let Some(other) = others.find(|other| other != value && may_be_told(other)) {
            return Advice::Use {
                name: name.clone(),
                value: other.to_owned(),
            };
        }
    }
    let retried = retried(failures);
    if retried.of * 2 >= failures.len() && retried.rate() >= AGREED {
        let Rate { good: worked, of } = retried;
        return Advice::Retry { worked, of };
    }
    if let Some(tool) = instead(told, own, failures, audience) {
        return Advice::Instead { tool };
    }
    let needed = needed(told, found);
    match needed.good * 2 > needed.of {
        true => Advice::Needed {
            used: needed.good,
            of: needed.of,
        },
        false => Advice::Avoid,
    }
}

/// How often the same tool did its work when it was tried again in the same run.
fn retried(failures: &[&Try<'_>]) -> Rate {
    let mut rate = Rate::default();
    for one in failures {
        let later = one.run.acts.iter().skip(one.at + 1);
        let again: Vec<Ended> = later
            .filter(|act| act.tool == one.act.tool)
            .map(|act| act.ended)
            .collect();
        rate.of += usize::from(!again.is_empty());
        rate.good += usize::from(again.contains(&Ended::Done));
    }
    rate
}

/// How many of the newest successful runs did the work with the tool where the condition holds.
fn needed(told: &[(Run, Outcome)], found: &Found<'_>) -> Rate {
    let mut rate = Rate::default();
    let good = told.iter().rev();
    let good = good.filter(|(_, outcome)| *outcome == Outcome::Success);
    for (run, _) in good {
        if rate.of == NEWEST_SUCCESSES {
            break;
        }
        let mut done = run
            .acts
            .iter()
            .filter(|act| act.ended == Ended::Done && act.tool.as_deref() == Some(found.tool));
        let holds = || {
            let tries = first_tries(run);
            let own = tries
                .iter()
                .find(|one| one.act.tool.as_deref() == Some(found.tool));
            own.is_some_and(|one| one.has(&found.condition))
        };
        let (counts, used) = match &found.condition {
            Condition::Always => (true, done.next().is_some()),
            Condition::Param { name, value } => {
                let done: Vec<&Act> = done.collect();
                let so = |act: &&Act| act.params.get(name) == Some(value);
                (!done.is_empty(), done.iter().any(so))
            }
            _ => (holds(), done.next().is_some()),
        };
        rate.of += usize::from(counts);
        rate.good += usize::from(counts && used);
    }
    rate
}

/// The tool that did the work after this one failed, if this one never did it. A tool that most
/// runs call without trying this one first is merely the next step.
fn instead(
    told: &[(Run, Outcome)],
    own: &[Try<'_>],
    failures: &[&Try<'_>],
    audience: &Audience,
) -> Option<String> {
    if own.iter().any(|one| one.act.ended == Ended::Done) {
        return None;
    }
    let tool = own.first()?.act.tool.as_deref();
    let next = failures.iter().filter_map(|one| {
        let next = one.run.acts.get(one.at + 1)?;
        let other = next
            .tool
            .as_deref()
            .filter(|_| next.tool.as_deref() != tool);
        other.filter(|_| next.ended == Ended::Done)
    });
    let other = agreed(&next.collect::<Vec<_>>())?;
    let mut elsewhere = Rate::default();
    let mut used_for: BTreeSet<&Audience> = BTreeSet::new();
    for (run, outcome) in told {
        let done = run.done().contains(&other);
        let tried = run.acts.iter().any(|act| act.tool.as_deref() == tool);
        if done {
            used_for.insert(&run.audience);
        }
        if *outcome == Outcome::Success && !tried {
            elsewhere.of += 1;
            elsewhere.good += usize::from(done);
        }
    }
    let replaces = elsewhere.of > 0 && elsewhere.good * 2 < elsewhere.of;
    (replaces && may_be_told(&used_for, audience)).then(|| other.to_owned())
}

/// Whom the runs are for that called a tool with this value of the parameter, whatever came of it.
fn audiences_with<'a>(own: &[Try<'a>], name: &str, value: &str) -> BTreeSet<&'a Audience> {
    let having = own.iter().filter(|one| {
        let mut acts = one.run.acts.iter();
        acts.any(|act| act.params.get(name).is_some_and(|known| known == value))
    });
    having.map(|one| &one.run.audience).collect()
}

/// The value of the parameter with which the same tool went well later in the same run.
fn later_value<'a>(one: &Try<'a>, name: &str) -> Option<&'a str> {
    let mut later = one.run.acts.iter().skip(one.at + 1);
    let done = later.find(|act| act.tool == one.act.tool && act.ended == Ended::Done)?;
    done.params.get(name).map(String::as_str)
}

/// What most of them are, if there are some.
fn agreed<'a>(values: &[&'a str]) -> Option<&'a str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let (value, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count >= 2 && count as f64 >= AGREED * values.len() as f64).then_some(value)
}
