//! What statements are to each other: answers, owners, corrections, fixes.

use std::collections::{HashMap, HashSet};

use super::cues::{NOT, content_words, names, padded};
use super::people::{People, inheritance};
use super::statement::{Kind, Statement};

/// An answer stands within so many messages after its question.
const ANSWER_WITHIN: usize = 8;
/// An owner is named within so many messages after the decision.
const OWNER_WITHIN: usize = 4;
/// A sentence about more than this is about something else than the decision before it.
const OWNER_WORDS: usize = 4;
/// A sentence of no more words, right after a decision, is a remark on it.
const REMARK: usize = 8;
/// A statement that holds this part of a question's words answers it.
const COVERED: f64 = 0.85;
/// So many statements with a word are compared, so that a text that says the same ten thousand
/// times costs no more than another one.
const NEAR: usize = 100;
/// So many decisions of one form are a list.
const LIST: usize = 4;
/// A fix stands within so many messages after the failure that it does not name.
const FIX_WITHIN: usize = 8;
/// A sentence of more words than this stands for itself.
const SHORT: usize = 12;

/// Drops what was answered, taken back or fixed, and joins what belongs together.
pub(super) fn relate(said: &mut [Statement], vocabulary: &impl Fn(&str) -> Vec<u32>) {
    let index = Index::of(said);
    let lists = Lists::of(said);
    answers(said, &index);
    owners(said);
    corrections(said, &index, &lists, vocabulary);
    fixes(said, &index);
}

/// Which statements hold a word.
struct Index(HashMap<u32, Vec<usize>>);

impl Index {
    fn of(said: &[Statement]) -> Self {
        let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, statement) in said.iter().enumerate() {
            for word in &statement.words {
                places.entry(*word).or_default().push(at);
            }
        }
        Self(places)
    }

    fn frequency(&self, word: u32) -> usize {
        self.0.get(&word).map_or(0, Vec::len)
    }

    /// Whether a word occurs in so few statements that it can tell their subject.
    fn is_telling(&self, word: u32) -> bool {
        self.frequency(word) <= NEAR
    }

    /// The next statements after `at` that hold one of the rarest of these words.
    fn after(&self, at: usize, words: &[u32]) -> Vec<usize> {
        self.near(words, |places| {
            let from = places.partition_point(|place| *place <= at);
            let to = places.len().min(from + NEAR);
            places.get(from..to).unwrap_or_default()
        })
    }

    /// The last statements before `at` that hold one of the rarest of these words.
    fn before(&self, at: usize, words: &[u32]) -> Vec<usize> {
        self.near(words, |places| {
            let to = places.partition_point(|place| *place < at);
            places.get(to.saturating_sub(NEAR)..to).unwrap_or_default()
        })
    }

    fn near(&self, words: &[u32], part: impl Fn(&[usize]) -> &[usize]) -> Vec<usize> {
        let mut rare = words.to_vec();
        rare.sort_by_key(|word| self.frequency(*word));
        let places = rare.iter().take(5).filter_map(|word| self.0.get(word));
        let mut places: Vec<usize> = places.flat_map(|p| part(p)).copied().collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// How much of these words the others hold; rare ones count more.
    fn coverage(&self, words: &[u32], others: &[u32]) -> f64 {
        let weight = |word: &u32| 1.0 / (1.0 + self.frequency(*word) as f64).ln_1p();
        let all: f64 = words.iter().map(weight).sum();
        let shared = words
            .iter()
            .filter(|word| others.binary_search(word).is_ok());
        let shared: f64 = shared.map(weight).sum();
        if all > 0.0 { shared / all } else { 0.0 }
    }
}

/// Finds the answer of each question: answered ones are dropped, or joined with an answer that
/// says nothing without them.
fn answers(said: &mut [Statement], index: &Index) {
    for at in 0..said.len() {
        let Some(question) = said.get(at).filter(|s| s.kind == Kind::Question).cloned() else {
            continue;
        };
        let fate = fate(said, at, &question, index);
        let (reply, text) = match fate {
            Fate::Open(deferral) => (deferral, None),
            Fate::Answered => (None, None),
            Fate::AnsweredBy(answer) => {
                // The answer to a question of choice settles it, in whatever words.
                if let Some(answer) = said.get_mut(answer).filter(|a| a.kind == Kind::Other)
                    && asks_for_choice(&question.text)
                {
                    answer.kind = Kind::Decision;
                    answer.score += 8.0;
                }
                (None, None)
            }
            Fate::By(reply) => (Some(reply), Some("→ ")),
        };
        let is_open = matches!(fate, Fate::Open(_));
        let joined = reply.and_then(|reply| said.get_mut(reply)).map(|reply| {
            reply.dropped = true;
            let line = format!("{}{}: {}", text.unwrap_or("("), reply.who, reply.text);
            let decides = reply.kind == Kind::Decision;
            (
                if is_open { format!("{line})") } else { line },
                decides,
                reply.words.clone(),
            )
        });
        let Some(question) = said.get_mut(at) else {
            continue;
        };
        match joined {
            Some((line, decides, words)) => {
                question.joined.push(line);
                if !is_open {
                    let chooses = decides || asks_for_choice(&question.text);
                    question.kind = if chooses { Kind::Decision } else { Kind::Other };
                    question.score = if chooses { 9.5 } else { 2.5 };
                    question.subject = question.words.clone();
                    question.words.extend(words);
                    question.words.sort_unstable();
                    question.words.dedup();
                }
            }
            None => question.dropped = !is_open,
        }
    }
}

enum Fate {
    /// Nobody answered; the statement that put it off, if there is one.
    Open(Option<usize>),
    /// It was answered, somewhere.
    Answered,
    /// This one answers it, and can be understood without it.
    AnsweredBy(usize),
    /// This one answers it, and needs the question to be understood.
    By(usize),
}

fn fate(said: &[Statement], at: usize, question: &Statement, index: &Index) -> Fate {
    // Without a subject, or with a tag at its end, it asks for nothing.
    let low = padded(&question.text);
    let tagged = [" isn't it ", " right ", " aren't you ", " don't you "];
    if question.words.is_empty() || tagged.iter().any(|tag| low.ends_with(tag)) {
        return Fate::Answered;
    }
    if let Some(answer) = answer_of(said, at, question, index, ANSWER_WITHIN) {
        return Fate::AnsweredBy(answer);
    }
    match first_reply(said, at, question) {
        Fate::Open(deferral) => match answer_of(said, at, question, index, usize::MAX) {
            Some(_) => Fate::Answered,
            None => Fate::Open(deferral),
        },
        fate => fate,
    }
}

/// The first later statement that says what a question asks for, within so many messages.
fn answer_of(
    said: &[Statement],
    at: usize,
    question: &Statement,
    index: &Index,
    within: usize,
) -> Option<usize> {
    let chooses = asks_for_choice(&question.text);
    let mut later = index.after(at, &question.words).into_iter();
    later.find(|other| {
        said.get(*other).is_some_and(|one| {
            let says = !matches!(one.kind, Kind::Question | Kind::Deferral | Kind::SmallTalk);
            let away = one.at.saturating_sub(question.at);
            let covers = index.coverage(&question.words, &one.words) >= COVERED;
            // A decision on the subject answers however it was asked for.
            let decides = !question.subject.is_empty()
                && away <= ANSWER_WITHIN
                && (chooses || one.kind == Kind::Decision || one.subject == question.subject)
                && holds(&one.words, &question.subject);
            says && away <= within && (covers || decides)
        })
    })
}

/// What the next speaker makes of a question.
fn first_reply(said: &[Statement], at: usize, question: &Statement) -> Fate {
    let after = said.iter().enumerate().skip(at + 1);
    let within = after.take_while(|(_, s)| s.at <= question.at + ANSWER_WITHIN);
    let replies = within.filter(|(_, s)| !matches!(s.kind, Kind::SmallTalk | Kind::Outcome));
    for (other, reply) in replies {
        if reply.kind == Kind::Deferral {
            return Fate::Open(Some(other));
        }
        if reply.who == question.who {
            // The same speaker goes on: with what they meant, or after nobody answered.
            return match reply.at == question.at && reply.kind != Kind::Question {
                true => Fate::Answered,
                false => Fate::Open(None),
            };
        }
        if reply.kind != Kind::Question {
            return match reply.length() <= SHORT {
                true => Fate::By(other),
                false => Fate::Answered,
            };
        }
    }
    Fate::Open(None)
}

fn asks_for_choice(question: &str) -> bool {
    let low = padded(question);
    let words = [
        " what ",
        " which ",
        " should ",
        " shall ",
        " decision ",
        " preference ",
        " suggest ",
    ];
    words.iter().any(|word| low.contains(word)) || question.contains('何')
}

/// Joins short sentences that follow a decision, and those who take it on, with the decision.
fn owners(said: &mut [Statement]) {
    let mut last: Option<usize> = None;
    for at in 0..said.len() {
        let Some(statement) = said.get(at).filter(|s| !s.dropped) else {
            continue;
        };
        let decision = last.and_then(|last| said.get(last));
        let belongs = decision.is_some_and(|decision| belongs(decision, statement));
        if belongs {
            let who = decision.is_some_and(|d| d.who != statement.who);
            let line = match who {
                true => format!("({}: {})", statement.who, statement.text),
                false => statement.text.clone(),
            };
            let (words, commits) = (statement.words.clone(), statement.commits);
            if let Some(decision) = last.and_then(|last| said.get_mut(last)) {
                decision.joined.push(line);
                decision.words.extend(words);
                decision.words.sort_unstable();
                decision.words.dedup();
                decision.commits |= commits;
            }
            if let Some(statement) = said.get_mut(at) {
                statement.dropped = true;
            }
            continue;
        }
        match statement.kind {
            Kind::Decision => last = Some(at),
            Kind::Question => last = None,
            _ => {}
        }
    }
}

fn belongs(decision: &Statement, next: &Statement) -> bool {
    if next.length() > SHORT || matches!(next.kind, Kind::Question | Kind::SmallTalk) {
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
    let within = next.at <= decision.at + OWNER_WITHIN;
    let is_new = next.corrects || next.words.len() > OWNER_WORDS;
    let is_remark = next.length() <= REMARK && next.subject.is_empty() && refers_back(&low);
    within && (next.commits || is_remark) && next.names_someone() && !is_new
}

/// Whether a sentence speaks of what was said just before.
pub(super) fn refers_back(padded: &str) -> bool {
    let words = [" it ", " that ", " this ", " one ", " job ", " will do "];
    words.iter().any(|word| padded.contains(word))
}

/// Drops statements that a later one takes back: one that says so, or a later decision on the same
/// subject. The owner of what was decided stays, unless another one is named.
fn corrections(
    said: &mut [Statement],
    index: &Index,
    lists: &Lists,
    vocabulary: &impl Fn(&str) -> Vec<u32>,
) {
    let people = People::of(said);
    let mut by_subject: HashMap<Vec<u32>, Live> = HashMap::new();
    for at in 0..said.len() {
        let older = renewed(said, at, index, lists).and_then(|older| said.get(older));
        let subject = older.map(|older| older.subject.clone());
        if let (Some(subject), Some(new)) = (subject, said.get_mut(at)) {
            new.kind = Kind::Decision;
            new.corrects = true;
            new.score = new.score.max(10.0);
            new.subject = subject;
        }
        let Some(new) = said
            .get(at)
            .filter(|s| s.kind == Kind::Decision && !s.dropped)
        else {
            continue;
        };
        let new = new.clone();
        let old_values = taken_back(&new.text, vocabulary);
        let mut stale: Vec<usize> = Vec::new();
        if !new.subject.is_empty() {
            if !lists.share(&new.subject) {
                let same = by_subject.entry(new.subject.clone()).or_default();
                stale.extend(same.replaced_by(at, &new));
            }
            stale.extend(corrected(said, at, &new, &old_values, (index, lists)));
        } else if new.corrects {
            stale.extend(latest_with(said, at, &old_values, &new.text, index));
        }
        let mut inherited: Vec<String> = Vec::new();
        for other in stale {
            let Some(older) = said.get_mut(other).filter(|s| !s.dropped) else {
                continue;
            };
            // The same thing said once more takes nothing back.
            if holds(&older.words, &new.words) && !new.corrects {
                continue;
            }
            older.dropped = true;
            older.superseded = true;
            inherited.extend(inheritance(older, &people));
        }
        if let Some(new) = said.get_mut(at) {
            let named = inheritance(new, &people).is_some();
            if let Some(owner) = inherited.pop().filter(|_| !named) {
                new.joined.push(owner);
                new.inherits = true;
            }
        }
    }
}

/// Decisions on one subject that hold, grouped by their words: a text that decides the same ten
/// thousand times has one group.
#[derive(Default)]
struct Live(Vec<(Vec<u32>, Vec<usize>)>);

impl Live {
    /// Takes out the decisions that the new one replaces, and adds the new one.
    fn replaced_by(&mut self, at: usize, new: &Statement) -> Vec<usize> {
        let mut replaced: Vec<usize> = Vec::new();
        self.0.retain(|(words, places)| {
            let same = holds(words, &new.words) && !new.corrects;
            if !same {
                replaced.extend(places);
            }
            same
        });
        let mut groups = self.0.iter_mut();
        match groups.find(|(words, _)| *words == new.words) {
            Some((_, places)) => places.push(at),
            None => self.0.push((new.words.clone(), vec![at])),
        }
        replaced
    }
}

/// Subjects with many decisions that differ in their values only: "We pay invoice 1 for Acme", "We
/// pay invoice 2 for Acme". Two of them may be a correction; many are a list, and all of them hold.
struct Lists(HashSet<Vec<u32>>);

impl Lists {
    fn of(said: &[Statement]) -> Self {
        let mut forms: HashMap<_, HashSet<&[u32]>> = HashMap::new();
        for statement in said.iter().filter(|s| !s.dropped && !s.corrects) {
            if let Some(form) = form(statement) {
                let values = forms.entry((&statement.subject, form)).or_default();
                values.insert(&statement.values);
            }
        }
        forms.retain(|_, values| values.len() >= LIST);
        Self(forms.into_keys().map(|(s, _)| s.clone()).collect())
    }

    /// Whether decisions with this subject may be about different things.
    fn share(&self, subject: &[u32]) -> bool {
        self.0.contains(subject)
    }
}

/// The words of a decision but for its subject and its values. `None` if there are none or if it
/// says what its subject is: a new value then takes the place of the old one.
fn form(statement: &Statement) -> Option<Vec<u32>> {
    let subject = &statement.subject;
    let of_form = |word: &&u32| {
        subject.binary_search(word).is_err() && statement.values.binary_search(word).is_err()
    };
    let words: Vec<u32> = statement.words.iter().filter(of_form).copied().collect();
    let decides = statement.kind == Kind::Decision && !statement.states && !subject.is_empty();
    (decides && !words.is_empty()).then_some(words)
}

/// Earlier statements, in other words than a decision's, that hold its subject and are taken back
/// by it.
fn corrected(
    said: &[Statement],
    at: usize,
    new: &Statement,
    old_values: &[u32],
    (index, lists): (&Index, &Lists),
) -> Vec<usize> {
    let before = index.before(at, &new.subject).into_iter();
    let found: Vec<(usize, &Statement, bool)> = before
        .filter_map(|other| said.get(other).map(|older| (other, older)))
        .filter(|(_, older)| !older.dropped && older.kind != Kind::Question)
        .filter(|(_, older)| holds(&older.words, &new.subject))
        .filter_map(|(other, older)| {
            let decides = older.kind == Kind::Decision
                && (new.corrects || older.subject.is_empty())
                || new.corrects && older.subject == new.subject;
            let named = !old_values.is_empty() && holds(&older.words, old_values);
            (decides || named && new.corrects).then_some((other, older, named))
        })
        .collect();
    // Where a subject's words occur in decisions on many subjects, they do not tell which one is
    // meant: "the port was wrong" takes back the last port, not those of all modules.
    let is_other = |older: &Statement| {
        let narrower = new.subject.len() > 1 && holds(&older.subject, &new.subject);
        !narrower && !holds(&new.subject, &older.subject)
    };
    let others = found.iter().filter(|(_, older, _)| is_other(older));
    let subjects: HashSet<&Vec<u32>> = others.map(|(_, older, _)| &older.subject).collect();
    let vague = subjects.len() >= LIST;
    let last = found.last().map(|(other, _, _)| *other);
    let last = last.filter(|_| found.iter().all(|(_, _, named)| !named));
    let meant = found.into_iter().filter(|(other, older, named)| {
        let one_of_many = lists.share(&older.subject) || vague && is_other(older);
        !one_of_many || *named || Some(*other) == last
    });
    meant.map(|(other, _, _)| other).collect()
}

/// The earlier decision whose subject and value this statement names together with a new value.
fn renewed(said: &[Statement], at: usize, index: &Index, lists: &Lists) -> Option<usize> {
    let new = said.get(at)?;
    let speaks = matches!(
        new.kind,
        Kind::Other | Kind::Commitment | Kind::Failure | Kind::Decision
    );
    if !speaks || new.dropped || new.corrects || names(&new.text).is_empty() {
        return None;
    }
    let mut older = index.before(at, &new.words).into_iter().rev();
    older.find(|place| {
        said.get(*place).is_some_and(|older| {
            let holds_value = |value: &u32| new.words.binary_search(value).is_ok();
            let is_new = |value: &u32| older.words.binary_search(value).is_err();
            matches!(older.kind, Kind::Decision | Kind::Other)
                && !older.dropped
                && older.subject.len() > 1
                && !lists.share(&older.subject)
                && holds(&new.words, &older.subject)
                && older.subject.iter().any(|word| index.is_telling(*word))
                && older.values.iter().any(holds_value)
                && new.values.iter().any(is_new)
        })
    })
}

/// Whether all of these words are among the others.
fn holds(words: &[u32], wanted: &[u32]) -> bool {
    wanted.iter().all(|word| words.binary_search(word).is_ok())
}

/// The words of the value that a correction names as wrong.
fn taken_back(text: &str, vocabulary: &impl Fn(&str) -> Vec<u32>) -> Vec<u32> {
    let low = text.to_lowercase();
    let after = NOT.iter().find_map(|not| {
        let at = low.find(&format!(" {not}")).map(|at| at + 1);
        let at = at.or_else(|| low.starts_with(not).then_some(0))?;
        low.get(at + not.len()..)
    });
    let value = after.map(|after| {
        let end = after.find([',', '.', ';', ':']).unwrap_or(after.len());
        let value = after.get(..end).unwrap_or_default();
        let end = [" but ", " to ", " for ", " as ", " by "]
            .iter()
            .filter_map(|word| value.find(word))
            .min();
        value
            .get(..end.unwrap_or(value.len()))
            .unwrap_or_default()
            .to_owned()
    });
    value.map(|value| vocabulary(&value)).unwrap_or_default()
}

/// The newest decision before a correction without a subject: one that holds the value it names,
/// or just the last one if it clearly takes something back.
fn latest_with(
    said: &[Statement],
    at: usize,
    values: &[u32],
    text: &str,
    index: &Index,
) -> Option<usize> {
    let decides = |place: &usize| {
        let older = said.get(*place);
        older.is_some_and(|s| s.kind == Kind::Decision && !s.dropped)
    };
    if !values.is_empty() {
        let named = |place: &usize| said.get(*place).is_some_and(|s| holds(&s.words, values));
        let mut before = index.before(at, values).into_iter().rev();
        return before.find(|place| decides(place) && named(place));
    }
    let low = padded(text);
    let clearly = low.starts_with(" scratch that") || low.starts_with(" correction");
    let here = said.get(at).filter(|_| clearly)?.at;
    let recent = |place: &usize| {
        said.get(*place)
            .is_some_and(|s| s.at + OWNER_WITHIN >= here)
    };
    let mut before = (0..at).rev().take_while(recent);
    before.find(decides)
}

/// Drops failures that were fixed later, and outcomes of a tool that gave another one later.
fn fixes(said: &mut [Statement], index: &Index) {
    for at in 0..said.len() {
        let Some(failure) = said
            .get(at)
            .filter(|s| s.kind == Kind::Failure && !s.dropped)
        else {
            continue;
        };
        let fixed = index.after(at, &failure.words).into_iter().any(|other| {
            said.get(other).is_some_and(|later| {
                let shared = index.coverage(&failure.words, &later.words);
                let shared = shared.max(index.coverage(&later.words, &failure.words));
                later.kind == Kind::Fix && shared >= 0.45
            })
        });
        if fixed && let Some(failure) = said.get_mut(at) {
            failure.dropped = true;
            failure.superseded = true;
        }
    }
    join_fixes(said);
    let mut latest: HashSet<String> = HashSet::new();
    for statement in said.iter_mut().rev().filter(|s| s.kind == Kind::Outcome) {
        let call = statement.who.clone();
        let repeated = !latest.insert(call);
        statement.dropped |= repeated;
        statement.superseded |= repeated;
    }
}

/// Joins a fix that does not name its failure ("fixed it; 14 passed") with the last failure before
/// it, which is then shown as fixed.
fn join_fixes(said: &mut [Statement]) {
    let mut last: Option<usize> = None;
    for at in 0..said.len() {
        let Some(statement) = said.get(at) else {
            continue;
        };
        match statement.kind {
            // A failure that was dropped has its fix.
            Kind::Failure => last = (!statement.dropped).then_some(at),
            Kind::Decision if begins_with_fix(&statement.text) => {
                let here = statement.at;
                let failure = last.take().and_then(|last| said.get_mut(last));
                if let Some(failure) = failure.filter(|f| f.at + FIX_WITHIN >= here) {
                    failure.dropped = true;
                    failure.superseded = true;
                }
            }
            Kind::Fix if !statement.dropped && says_fixed(&statement.text) => {
                let line = format!("({}: {})", statement.who, statement.text);
                let (here, score) = (statement.at, statement.score);
                let failure = last.take().and_then(|last| said.get_mut(last));
                let Some(failure) = failure.filter(|f| f.at + FIX_WITHIN >= here) else {
                    continue;
                };
                failure.joined.push(line);
                failure.kind = Kind::Fix;
                failure.score = score;
                if let Some(fix) = said.get_mut(at) {
                    fix.dropped = true;
                }
            }
            _ => {}
        }
    }
}

/// Whether a decision tells first that something was fixed ("Resolved, we use UTC now").
fn begins_with_fix(text: &str) -> bool {
    let low = padded(text);
    let words = [
        " fixed ",
        " solved ",
        " resolved ",
        " i fixed ",
        " we fixed ",
    ];
    words.iter().any(|word| low.starts_with(word)) && !low.starts_with(" resolved that ")
}

/// Whether a fix says so itself, and not only that something works.
fn says_fixed(text: &str) -> bool {
    let low = padded(text);
    let words = [
        " fixed ",
        " solved ",
        " resolved ",
        " passed ",
        " đã sửa ",
        "修正",
        "解決",
    ];
    words.iter().any(|word| low.contains(word))
}

/// The words that come up most among what matters: what a range of messages is about.
pub(super) fn topics(texts: &[&str], most: usize) -> Vec<String> {
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    for (at, text) in texts.iter().enumerate() {
        for word in content_words(text)
            .into_iter()
            .filter(|w| w.chars().count() > 2)
        {
            counts.entry(word).or_insert((0, at)).0 += 1;
        }
    }
    let mut ranked: Vec<(String, (usize, usize))> = counts.into_iter().collect();
    ranked.sort_by(|(a, (many, first)), (b, (more, then))| {
        more.cmp(many).then(first.cmp(then)).then(a.cmp(b))
    });
    ranked
        .into_iter()
        .take(most)
        .map(|(word, _)| word)
        .collect()
}
