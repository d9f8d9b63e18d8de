//! Who takes a decision on: the sentences that say so, and the words that a correction inherits.

use std::collections::HashSet;

use super::cues::{Cue, Cues, Word, is_person_verb, names, padded, words_of};
use super::relations::{SHORT, holds};
use super::statement::{Kind, Statement};

/// An owner is named within so many messages after the decision.
const OWNER_WITHIN: usize = 4;
/// A sentence about more than this is about something else than the decision before it.
const OWNER_WORDS: usize = 4;
/// A sentence of no more words, right after a decision, is a remark on it.
const REMARK: usize = 8;

/// Joins short sentences that follow a decision, and those who take it on, with the decision.
pub(super) fn owners(said: &mut [Statement]) {
    let mut last: Option<usize> = None;
    for at in 0..said.len() {
        let (before, rest) = said.split_at_mut(at);
        let Some(now) = rest.first_mut().filter(|s| !s.dropped) else {
            continue;
        };
        let decision = last.and_then(|last| before.get_mut(last));
        if let Some(decision) = decision.filter(|decision| belongs(decision, now)) {
            decision.joined.push(match decision.who == now.who {
                true => now.text.clone(),
                false => format!("({}: {})", now.who, now.text),
            });
            decision.add_words(&now.words);
            decision.commits |= now.commits;
            // What somebody takes on was decided.
            if decision.kind == Kind::Other && now.commits {
                decision.kind = Kind::Decision;
                decision.score += 7.0;
            }
            now.dropped = true;
            continue;
        }
        match now.kind {
            Kind::Decision => last = Some(at),
            Kind::Question => last = None,
            // A question with its answer.
            _ if !now.joined.is_empty() => last = Some(at),
            _ => {}
        }
    }
}

fn belongs(decision: &Statement, next: &Statement) -> bool {
    let within = next.at <= decision.at + OWNER_WITHIN;
    let stands_alone = !within || matches!(next.kind, Kind::Question | Kind::SmallTalk);
    if next.length() > SHORT || stands_alone || !next.joined.is_empty() {
        return false;
    }
    let low = padded(&next.text);
    let refers = ["it", "that", "this", "he", "she", "they"];
    let refers = refers
        .iter()
        .any(|word| low.starts_with(&format!(" {word} ")));
    if next.at == decision.at {
        return next.kind != Kind::Decision || refers || next.subject.is_empty();
    }
    let is_other = next.subject.len() > 1 && !holds(&decision.words, &next.subject);
    let is_new = next.corrects || next.words.len() > OWNER_WORDS || is_other;
    let is_short = next.length() <= REMARK && next.kind != Kind::Deferral;
    let is_remark = is_short && next.subject.is_empty() && refers_back(&low);
    // Somebody who has a name says something short right after a decision: they take it on.
    let answers = is_short && !next.is_anonymous() && next.at <= decision.at + 1;
    (next.commits || is_remark || answers) && next.names_someone() && !is_new
}

/// Whether a sentence speaks of what was said just before.
fn refers_back(padded: &str) -> bool {
    let words = [" it ", " that ", " this ", " one ", " job ", " will do "];
    words.iter().any(|word| padded.contains(word))
}

/// The words of a decision that say who takes it on, in brackets: the sentences that were joined
/// with it, and its clauses beside the one with its subject, where a name stands where somebody
/// stands who does something. With `names`, words that are names somewhere in the conversation, also
/// a part that just begins with one of them.
pub(super) fn owner_words(
    decision: &Statement,
    names_known: Option<&HashSet<Word>>,
) -> Option<String> {
    let joined = decision.joined.iter().map(String::as_str);
    let joined = joined.filter(|part| !part.starts_with('→'));
    let clauses = decision
        .text
        .split(['(', ';', ','])
        .skip(1)
        .filter(|clause| {
            let words = words_of(clause);
            let mut subjects = decision.subjects().flatten();
            !subjects.any(|word| words.contains(word))
        });
    let whole = Some(decision.text.as_str()).filter(|text| begins_with_doer(text));
    let vocative = decision.text.split_once(", ").filter(|(name, order)| {
        let is_name = names(name).first().is_some_and(|one| one == name);
        is_name && padded(order).starts_with(" please ")
    });
    let vocative = vocative.map(|(name, _)| name);
    let parts: Vec<&str> = joined.chain(clauses).collect();
    let surely = parts.iter().copied().find(|part| takes_on(part));
    let words = surely.or(vocative).or(whole).or_else(|| {
        let known = names_known?;
        let is_owner = |part: &&str| {
            let refers = refers_back(&padded(part)) && !names(part).is_empty();
            let first = names(part).into_iter().next();
            let first = first.filter(|name| part.trim().starts_with(name.as_str()));
            refers || first.is_some_and(|name| words_of(&name).iter().any(|w| known.contains(w)))
        };
        parts.iter().copied().find(is_owner)
    })?;
    let words = words.trim().trim_start_matches('(');
    Some(format!("({})", words.trim_end_matches([')', '.'])))
}

/// Whether a name stands where somebody stands who does something, or is given something.
fn takes_on(part: &str) -> bool {
    // "(Ann: I can do it)"
    let (speaker, said) = part.split_once(": ").unwrap_or_default();
    let first_person = [" i ", " i'll ", " i'm ", " i've ", " me ", " mine ", " my "];
    let speaks = |said: &str| {
        let low = padded(said);
        first_person.iter().any(|word| low.contains(word))
    };
    if speaker.starts_with('(') && !names(speaker).is_empty() {
        return speaks(said) || Cues::of(&padded(said)).has(Cue::Committed) || said.len() < 30;
    }
    if part.contains("さん") {
        return true;
    }
    let part = part.trim().trim_end_matches([')', '.', '!', '。']);
    let found = names(part);
    found.iter().any(|name| {
        part.match_indices(name.as_str()).any(|(at, _)| {
            let after = part.get(at + name.len()..).unwrap_or_default();
            let before = padded(part.get(..at).unwrap_or_default());
            let given = [
                " to ", " for ", " owner ", " by ", " asked ", " cho ", " is ",
            ];
            let is_last = after.is_empty() && part.len() > name.len();
            let is_given = is_last && given.iter().any(|word| before.ends_with(word));
            let is_labelled = is_last
                && part
                    .get(..at)
                    .is_some_and(|b| b.trim_end().ends_with([':', '@', 'は']));
            is_given || is_labelled || is_person_verb(&padded(after))
        })
    })
}

/// Whether the sentence begins with somebody who does something: "Ann will change the port".
fn begins_with_doer(text: &str) -> bool {
    names(text).first().is_some_and(|name| {
        let after = text.strip_prefix(name.as_str());
        after.is_some_and(|after| is_person_verb(&padded(after)))
    })
}
