//! Words that were written after the cues had been improved with a look at `BLIND`: they measure
//! how far that improvement carries. Do not look at them when the cues are changed.

use super::blind::BLIND;
use super::phrases::Phrases;

pub const FRESH: Phrases = Phrases {
    owned: &[
        "Here's the deal: {c} for {s}, and {o} makes it happen.",
        "Let's call it: {s} is {c}. {o} raises the pull request.",
        "We picked {c} to be {s}; ask {o} about the details, it's {o}'s now.",
        "Sold! {c} for {s}. {o} sets that up tomorrow.",
        "The answer for {s} is {c}, with {o} in the lead.",
        "Management wants {c} as {s}. {o} gets the ticket.",
        "{s} will run on {c}; {o} prepares it.",
        "Long story short, {c} for {s}. {o} is writing it down and rolls it out.",
    ],
    decided: &[
        "{c} it shall be for {s}.",
        "Then let's have {c} as {s}.",
        "We ended up with {c} for {s}.",
        "Nobody objected to {c} for {s}, so it's in.",
        "I'd like {s} to be {c}, and nobody disagreed.",
        "From today {s} is {c}.",
    ],
    assigned: &[
        "{o}, this is yours.",
        "Can {o} do it? Yes.",
        "I put {o}'s name next to it.",
        "{o} has time for that.",
        "Over to {o}.",
    ],
    taken: &[
        "I'm in.",
        "Happy to do so.",
        "I'll see to it this week.",
        "Okay, mine then.",
        "Yep, doing it.",
    ],
    asked: &[
        "Who has an idea for {s}?",
        "Next topic, {s}. What do people want?",
        "Do you have something in mind for {s}?",
        "Are we settled on {s}?",
    ],
    answered: &[
        "{c} sounds right.",
        "Just use {c}.",
        "{c} wins.",
        "I'm for {c}.",
    ],
    corrected: &[
        "{x} is history, {s} is {c} from today.",
        "We need to change {s}: {c} rather than {x}.",
        "Sorry all, {x} was a mistake for {s}; please use {c}.",
        "After the test we moved {s} from {x} to {c}.",
        "I changed {s} to {c} today.",
        "The customer rejected {x}, hence {c} for {s}.",
        "New plan for {s}: {c}.",
        "Let's replace {x} by {c} for {s}.",
    ],
    settled: &[
        ("Who holds the keys of the {p}?", "{o} has them."),
        (
            "Is anybody using the beta of the {p}?",
            "Around {n} people are.",
        ),
        ("What's the address of the {p} wiki?", "See {f}."),
        ("Did we ever test the {p} on a phone?", "Sure, twice."),
        ("How come the {p} sends two mails?", "One is for the log."),
        ("Will the {p} be down on Sunday?", "Only for an hour."),
    ],
    open: &[
        ("Which lawyer looks at the {p} terms?", "I wish I knew."),
        (
            "Could the {p} work without cookies?",
            "Someone has to try that.",
        ),
        (
            "What do we do with the {p} leftovers?",
            "Let's discuss that next time.",
        ),
        ("Is the {p} name protected?", "Nobody checked so far."),
        ("When do we archive the {p}?", "No date yet."),
    ],
    ..BLIND
};

/// Written last, and measured once: no cue was changed after that.
pub const UNSEEN: Phrases = Phrases {
    owned: &[
        "So we agreed on {c} for {s}. {o} will drive this.",
        "I suggest we close this with {c} as {s}, {o} executes.",
        "Verdict: {s} becomes {c}. Who does it? {o}.",
        "We'll be using {c} for {s}, {o} already started.",
        "{o} convinced us: {c} for {s}, and {o} builds it.",
        "{s}: {c}. Contact: {o}.",
        "The steering group chose {c} for {s}; {o} reports back on Friday.",
    ],
    decided: &[
        "{c} is the way to go for {s}.",
        "Everyone okay with {c} for {s}? Good, done.",
        "We'll stay with {c} for {s}.",
        "Please treat {c} as {s} in all documents.",
        "Result of the poll: {c} for {s}.",
    ],
    assigned: &[
        "{o} said she'd do it.",
        "{o} is the one for this.",
        "Let's give it to {o}.",
        "{o} will.",
    ],
    taken: &[
        "I can look after it.",
        "Give it to me.",
        "I'm happy to take this.",
        "My job.",
    ],
    asked: &[
        "How about {s}?",
        "What are we doing about {s}?",
        "{s}, any takers?",
        "Which do you want for {s}?",
    ],
    answered: &[
        "I'd go for {c}.",
        "{c} is fine.",
        "Why not {c}.",
        "Definitely {c}.",
    ],
    corrected: &[
        "Change {s} from {x} to {c}, please.",
        "{x} did not pass the audit; {s} is {c} as of today.",
        "We're replacing {x} with {c} as {s}.",
        "Wait, {s} must be {c}, {x} is too slow.",
        "Update: {c} for {s}, {x} was dropped.",
        "My earlier note on {s} is outdated, it's {c}.",
    ],
    ..BLIND
};
