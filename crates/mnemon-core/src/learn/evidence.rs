//! What a skill or a rule rests on.

use serde::{Deserialize, Serialize};

use super::statistics::{fisher, wilson};
use crate::error::words;
use crate::model::Time;
#[cfg(doc)]
use crate::model::limits;

words! {
    /// Where a skill or a rule stands.
    Status, "status" {
        /// Proposed: agents do not see it yet.
        Candidate = "candidate",
        /// It is told to agents.
        Active = "active",
        /// It stopped working, another took its place, or a person put it away.
        Retired = "retired",
    }
}

/// So many of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rate {
    pub good: usize,
    pub of: usize,
}

impl Rate {
    /// From 0 to 1; 0 of nothing is 0.
    pub fn rate(&self) -> f64 {
        self.good as f64 / self.of.max(1) as f64
    }
}

/// Why and when something was retired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    pub at: Time,
    pub why: String,
    /// A person did: nothing brings it back but a person.
    #[serde(default)]
    pub by_person: bool,
}

/// What a skill or a rule rests on, and what people said about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    pub status: Status,
    /// Runs that speak for it.
    pub support: usize,
    /// How often it went well with it (for a rule: how often it failed where the rule applies).
    pub with: Rate,
    /// And without it, where there are such runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<Rate>,
    /// Where the true rate with it lies, at 95 %.
    pub interval: (f64, f64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_confirmed: Option<Time>,
    /// The probability that chance made it.
    #[serde(default)]
    pub chance: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<Retired>,
    /// Why it is a candidate, however much evidence there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// It is not retired by itself.
    #[serde(default)]
    pub pinned: bool,
    /// A person wrote its words; learning leaves them as they are.
    #[serde(default)]
    pub edited: bool,
    /// A person said it is good.
    #[serde(default)]
    pub approved: bool,
    /// The model that worded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worded_by: Option<String>,
    /// Other orders of the same tools that count as doing it: those of skills that were merged
    /// into it. At most [`limits::SKILL_WAYS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Vec<String>>,
}

impl Evidence {
    /// Evidence that was counted just now.
    pub fn counted(status: Status, support: usize, with: Rate, without: Rate) -> Self {
        Self {
            status,
            support,
            with,
            without: Some(without).filter(|rate| rate.of > 0),
            interval: wilson(with.good, with.of),
            last_confirmed: None,
            chance: 0.0,
            retired: None,
            held: None,
            pinned: false,
            edited: false,
            approved: false,
            worded_by: None,
            also: Vec::new(),
        }
    }
}

/// How many of the newest runs are held against those before.
const RECENT: [usize; 3] = [5, 10, 20];
/// How unlikely it must be that they only had bad luck.
const BAD_LUCK: f64 = 0.001;

/// Whether something that used to work does not any more: of the newest 5, 10 or 20 runs that
/// followed it, less than half went well, and that is no bad luck compared with those before.
/// Says so in words.
pub fn regressed(went_well: &[bool]) -> Option<String> {
    let Decline {
        now,
        of,
        then,
        before,
    } = declined(went_well)?;
    Some(format!(
        "it failed in {now} of the last {of} runs, in {then} of the {before} before"
    ))
}

/// Whether runs stopped doing all of it: of the newest 5, 10 or 20 successes that did it, or all
/// but one step of it, more than half left a step out, and it is not chance compared with those
/// before. Says so in words.
pub fn disused(did_all: &[bool]) -> Option<String> {
    let Decline {
        now,
        of,
        then,
        before,
    } = declined(did_all)?;
    Some(format!(
        "{now} of the last {of} successful runs left out one of its steps, {then} of the {before} \
         before"
    ))
}

/// Bad ones among the newest and among those before.
struct Decline {
    now: usize,
    of: usize,
    then: usize,
    before: usize,
}

fn declined(good: &[bool]) -> Option<Decline> {
    RECENT.iter().find_map(|recent| {
        let at = good.len().checked_sub(*recent)?;
        let (before, newest) = good.split_at_checked(at)?;
        let bad = |runs: &[bool]| runs.iter().filter(|good| !**good).count();
        let (now, then) = (bad(newest), bad(before));
        let worse = fisher(now, newest.len(), then, before.len());
        let declined = now * 2 > newest.len() && worse <= BAD_LUCK.ln();
        declined.then_some(Decline {
            now,
            of: newest.len(),
            then,
            before: before.len(),
        })
    })
}
