//! What statements are to each other: answers, owners, corrections, fixes.

use std::collections::{HashMap, HashSet};

use super::cues::{Word, padded};
use super::owners::{owner_words, owners};
use super::statement::{Kind, Statement};

/// An answer stands within so many messages after its question.
const ANSWER_WITHIN: usize = 8;
/// A correction that names nothing takes back a decision within so many messages before it.
const RECENT: usize = 4;
/// A statement that holds this part of a question's words answers it.
const COVERED: f64 = 0.85;
/// The same for a question that asks for a choice, and a statement near it.
const CHOICE_COVERED: f64 = 0.6;
/// So many statements with a word are compared, so that a text that says the same ten thousand
/// times costs no more than another one.
const NEAR: usize = 100;
/// So many decisions of one form are a list.
const LIST: usize = 4;
/// A fix stands within so many messages after the failure that it does not name.
const FIX_WITHIN: usize = 8;
/// A sentence of more words than this stands for itself.
pub(super) const SHORT: usize = 12;

/// Drops what was answered, taken back or fixed, and joins what belongs together.
pub(super) fn relate(said: &mut [Statement]) {
    let index = Index::of(said);
    let lists = Lists::of(said);
    answers(said, &index);
    owners(said);
    corrections(said, &index, &lists);
    fixes(said, &index);
}

/// Which statements hold a word.
struct Index(HashMap<Word, Vec<usize>>);

impl Index {
    fn of(said: &[Statement]) -> Self {
        let mut places: HashMap<Word, Vec<usize>> = HashMap::new();
        for (at, statement) in said.iter().enumerate() {
            for word in &statement.words {
                places.entry(*word).or_default().push(at);
            }
        }
        Self(places)
    }

    fn frequency(&self, word: Word) -> usize {
        self.0.get(&word).map_or(0, Vec::len)
    }

    /// Whether a word occurs in so few statements that it can tell their subject.
    fn is_telling(&self, word: Word) -> bool {
        self.frequency(word) <= NEAR
    }

    /// The next statements after `at` that hold one of the rarest of these words.
    fn after(&self, at: usize, words: &[Word]) -> Vec<usize> {
        self.near(words, |places| {
            let from = places.partition_point(|place| *place <= at);
            from..places.len().min(from + NEAR)
        })
    }

    /// The last statements before `at` that hold one of the rarest of these words.
    fn before(&self, at: usize, words: &[Word]) -> Vec<usize> {
        self.near(words, |places| {
            let to = places.partition_point(|place| *place < at);
            to.saturating_sub(NEAR)..to
        })
    }

    fn near(
        &self,
        words: &[Word],
        part: impl Fn(&[usize]) -> std::ops::Range<usize>,
    ) -> Vec<usize> {
        let mut rare = words.to_vec();
        rare.sort_by_key(|word| self.frequency(*word));
        let places = rare.iter().take(5).filter_map(|word| self.0.get(word));
        let places = places.filter_map(|places| places.get(part(places)));
        let mut places: Vec<usize> = places.flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// How much of these words the others hold; rare ones count more.
    fn coverage(&self, words: &[Word], others: &[Word]) -> f64 {
        let weight = |word: &Word| 1.0 / (1.0 + self.frequency(*word) as f64).ln_1p();
        let all: f64 = words.iter().map(weight).sum();
        let shared = words.iter().filter(|word| contains(others, **word));
        let shared: f64 = shared.map(weight).sum();
        if all > 0.0 { shared / all } else { 0.0 }
    }
}

fn contains(words: &[Word], word: Word) -> bool {
    words.binary_search(&word).is_ok()
}

/// Whether all of these words are among the others.
pub(super) fn holds(words: &[Word], wanted: &[Word]) -> bool {
    wanted.iter().all(|word| contains(words, *word))
}

/// Finds the answer of each question: answered ones are dropped, or joined with an answer that
/// says nothing without them.
fn answers(said: &mut [Statement], index: &Index) {
    for at in 0..said.len() {
        let (before, rest) = said.split_at_mut(at);
        let Some((question, later)) = rest.split_first_mut() else {
            return;
        };
        if question.kind != Kind::Question {
            continue;
        }
        if let Some(lead) = before.last_mut().filter(|lead| introduces(lead, question)) {
            lead.dropped = true;
            question.text = format!("{} {}", lead.text, question.text);
            question.add_words(&lead.words);
        }
        match fate(question, later, at, index) {
            Fate::Open(deferral) => {
                if let Some(reply) = deferral.and_then(|place| later.get_mut(place)) {
                    reply.dropped = true;
                    let line = format!("({}: {})", reply.who, reply.text);
                    question.joined.push(line);
                }
            }
            Fate::Answered => question.dropped = true,
            Fate::AnsweredBy(place) => {
                question.dropped = true;
                // The answer to a question of choice settles it, in whatever words.
                let answer = later.get_mut(place).filter(|a| a.kind == Kind::Other);
                if let Some(answer) = answer.filter(|_| question.asks_for_choice) {
                    answer.kind = Kind::Decision;
                    answer.score += 8.0;
                }
            }
            Fate::By(place) => {
                if let Some(reply) = later.get_mut(place) {
                    reply.dropped = true;
                    join_answer(question, reply);
                }
            }
        }
    }
}

/// Whether a question that names nothing is about the sentence before it: "Next, the port of the
/// gateway. What do people want?"
fn introduces(lead: &Statement, question: &Statement) -> bool {
    let is_plain = lead.kind == Kind::Other && !lead.dropped && lead.length() <= SHORT;
    is_plain && lead.at == question.at && question.subject.is_empty() && question.words.len() <= 2
}

/// Makes one statement of a question and an answer that needs the question to be understood.
fn join_answer(question: &mut Statement, reply: &Statement) {
    let line = format!("→ {}: {}", reply.who, reply.text);
    question.joined.push(line);
    let chooses = reply.kind == Kind::Decision || question.asks_for_choice;
    (question.kind, question.score) = match chooses {
        true => (Kind::Decision, 9.5),
        false => (Kind::Other, 2.5),
    };
    if question.subject.len() < 2 {
        question.subject = question.words.clone();
    }
    question.rest = reply.words.clone();
    question.add_words(&reply.words);
}

/// What became of a question; statements are named by their places after it.
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

fn fate(question: &Statement, later: &[Statement], at: usize, index: &Index) -> Fate {
    // Without a subject, or with a tag at its end, it asks for nothing.
    let low = padded(&question.text);
    let tagged = [" isn't it ", " right ", " aren't you ", " don't you "];
    if question.words.is_empty() || tagged.iter().any(|tag| low.ends_with(tag)) {
        return Fate::Answered;
    }
    if let Some(answer) = answer_of(question, later, at, index, ANSWER_WITHIN) {
        return Fate::AnsweredBy(answer);
    }
    match first_reply(question, later) {
        Fate::Open(deferral) => match answer_of(question, later, at, index, usize::MAX) {
            Some(_) => Fate::Answered,
            None => Fate::Open(deferral),
        },
        fate => fate,
    }
}

/// The first later statement that says what a question asks for, within so many messages.
fn answer_of(
    question: &Statement,
    later: &[Statement],
    at: usize,
    index: &Index,
    within: usize,
) -> Option<usize> {
    let chooses = question.asks_for_choice;
    let answers = |one: &Statement| {
        let says = !matches!(one.kind, Kind::Question | Kind::Deferral | Kind::SmallTalk);
        let away = one.at.saturating_sub(question.at);
        let decides = one.kind == Kind::Decision;
        // A decision on the subject answers however it was asked for.
        let mut subjects = question.subjects();
        let is_on_subject = subjects.any(|subject| {
            let is_same = one.subjects().any(|other| other == subject);
            let is_sought = !question.states && subject.len() > 1;
            (chooses || decides || is_same || is_sought) && holds(&one.words, subject)
        });
        let is_asked = |subject: &Vec<Word>| {
            let is_most = subject.len() * 2 > question.words.len();
            (decides || is_most) && subject.len() > 1 && holds(&question.words, subject)
        };
        let is_on_subject = is_on_subject || one.subjects().any(is_asked);
        let covered = index.coverage(&question.words, &one.words);
        let is_near = is_on_subject || chooses && covered >= CHOICE_COVERED;
        says && away <= within && (is_near && away <= ANSWER_WITHIN || covered >= COVERED)
    };
    let places = index.after(at, &question.words).into_iter();
    let mut places = places.map(|place| place - at - 1);
    places.find(|place| later.get(*place).is_some_and(answers))
}

/// What the next speaker makes of a question.
fn first_reply(question: &Statement, later: &[Statement]) -> Fate {
    let within = later.iter().enumerate();
    let within = within.take_while(|(_, s)| s.at <= question.at + ANSWER_WITHIN);
    let replies = within.filter(|(_, s)| match s.kind {
        Kind::SmallTalk => s.at == question.at + 1 && agrees(&s.text),
        kind => kind != Kind::Outcome,
    });
    for (place, reply) in replies {
        if reply.kind == Kind::Deferral {
            return Fate::Open(Some(place));
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
                true => Fate::By(place),
                false => Fate::Answered,
            };
        }
    }
    Fate::Open(None)
}

/// Whether a remark answers a question with yes or no.
fn agrees(text: &str) -> bool {
    const ANSWERS: &str = " yes | yep | yeah | sure | of course | ok | okay | no | nope | vâng ";
    let low = padded(text);
    ANSWERS.split('|').any(|word| low.starts_with(word))
}

/// Drops statements that a later one takes back: one that says so, or a later decision on the same
/// subject. The owner of what was decided stays, unless another one is named.
fn corrections(said: &mut [Statement], index: &Index, lists: &Lists) {
    let mut by_subject: HashMap<Vec<Word>, Live> = HashMap::new();
    let mut renewable = Renewable::default();
    let names: HashSet<Word> = said.iter().flat_map(|s| &s.values).copied().collect();
    for at in 0..said.len() {
        let (before, rest) = said.split_at_mut(at);
        let Some(new) = rest.first_mut() else {
            return;
        };
        let decided = |subject: &Vec<Word>| by_subject.contains_key(subject);
        let subject = renewable.by(new, before, lists);
        let subject = subject.or_else(|| {
            let mut subjects = new.subjects();
            subjects.find(|s| decided(s) && changes(new, s)).cloned()
        });
        if let Some(subject) = subject {
            new.kind = Kind::Decision;
            new.corrects = true;
            new.score = new.score.max(10.0);
            new.subject = subject;
        }
        renewable.add(at, new, index);
        if new.kind != Kind::Decision || new.dropped {
            continue;
        }
        let old_values = std::mem::take(&mut new.old_values);
        let mut stale: Vec<usize> = Vec::new();
        for subject in new.subjects() {
            if !lists.share(subject) {
                let same = by_subject.entry(subject.clone()).or_default();
                stale.extend(same.replaced_by(at, new));
            }
            stale.extend(corrected(before, new, subject, &old_values, (index, lists)));
        }
        if new.subject.is_empty() && new.corrects {
            stale.extend(latest_with(before, new, &old_values, index));
        }
        let mut inherited: Option<String> = None;
        for place in stale {
            let Some(older) = before.get_mut(place).filter(|s| !s.dropped) else {
                continue;
            };
            // The same thing said once more takes nothing back.
            if holds(&older.words, &new.words) && !new.corrects {
                continue;
            }
            older.drop_as_stale();
            inherited = owner_words(older, Some(&names)).or(inherited);
        }
        if let Some(owner) = inherited.filter(|_| owner_words(new, None).is_none()) {
            new.joined.push(owner);
            new.inherits = true;
        }
    }
}

/// Whether a statement on a subject that was decided on before decides on it anew: it gives a value
/// to it ("Kafka for the queue"), or says that it is so from now on.
fn changes(new: &Statement, subject: &[Word]) -> bool {
    let low = padded(&new.text);
    let since = [" now ", " today ", " from today ", " as of ", " new "];
    let is_change = !new.states || since.iter().any(|word| low.contains(word));
    let speaks = matches!(new.kind, Kind::Other | Kind::Commitment | Kind::Failure);
    speaks && !new.dropped && is_change && subject.len() > 1 && !new.rest.is_empty()
}

/// Decisions on one subject that hold, grouped by their words: a text that decides the same ten
/// thousand times has one group.
#[derive(Default)]
struct Live(Vec<(Vec<Word>, Vec<usize>)>);

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
struct Lists(HashSet<Vec<Word>>);

impl Lists {
    fn of(said: &[Statement]) -> Self {
        let mut forms: HashMap<_, HashSet<&[Word]>> = HashMap::new();
        for statement in said.iter().filter(|s| !s.dropped && !s.corrects) {
            for subject in statement.subjects() {
                if let Some(form) = form(statement, subject) {
                    let values = forms.entry((subject, form)).or_default();
                    values.insert(&statement.values);
                }
            }
        }
        forms.retain(|_, values| values.len() >= LIST);
        Self(forms.into_keys().map(|(s, _)| s.clone()).collect())
    }

    /// Whether decisions with this subject may be about different things.
    fn share(&self, subject: &[Word]) -> bool {
        self.0.contains(subject)
    }
}

/// The words of a decision but for its subject and its values. `None` if there are none or if it
/// says what its subject is: a new value then takes the place of the old one.
fn form(statement: &Statement, subject: &[Word]) -> Option<Vec<Word>> {
    let of_form = |word: &&Word| !contains(subject, **word) && !contains(&statement.values, **word);
    let words: Vec<Word> = statement.words.iter().filter(of_form).copied().collect();
    let decides = statement.kind == Kind::Decision && !statement.states;
    (decides && !words.is_empty()).then_some(words)
}

/// Earlier statements, in other words than a decision's, that hold its subject and are taken back
/// by it.
fn corrected(
    before: &[Statement],
    new: &Statement,
    subject: &[Word],
    old_values: &[Word],
    (index, lists): (&Index, &Lists),
) -> Vec<usize> {
    let places = index.before(before.len(), subject).into_iter();
    let found: Vec<(usize, &Statement, bool)> = places
        .filter_map(|place| before.get(place).map(|older| (place, older)))
        .filter(|(_, older)| !older.dropped && older.kind != Kind::Question)
        .filter(|(_, older)| holds(&older.words, subject))
        .filter_map(|(place, older)| {
            let decides = older.kind == Kind::Decision
                && (new.corrects || older.subject.is_empty())
                || new.corrects && older.subject == subject;
            let named = !old_values.is_empty() && holds(&older.words, old_values);
            (decides || named && new.corrects).then_some((place, older, named))
        })
        .collect();
    // Where a subject's words occur in decisions on many subjects, they do not tell which one is
    // meant: "the port was wrong" takes back the last port, not those of all modules.
    let is_other = |older: &Statement| {
        let narrower = subject.len() > 1 && holds(&older.subject, subject);
        !narrower && !holds(subject, &older.subject)
    };
    let others = found.iter().filter(|(_, older, _)| is_other(older));
    let subjects: HashSet<&Vec<Word>> = others.map(|(_, older, _)| &older.subject).collect();
    let vague = subjects.len() >= LIST;
    let last = found.last().map(|(place, _, _)| *place);
    let last = last.filter(|_| found.iter().all(|(_, _, named)| !named));
    let meant = found.into_iter().filter(|(place, older, named)| {
        let one_of_many = lists.share(&older.subject) || vague && is_other(older);
        !one_of_many || *named || Some(*place) == last
    });
    meant.map(|(place, _, _)| place).collect()
}

/// Statements that may be renewed, each under the rarest word of each of its subjects.
#[derive(Default)]
struct Renewable(HashMap<Word, Vec<usize>>);

impl Renewable {
    fn add(&mut self, at: usize, statement: &Statement, index: &Index) {
        if statement.dropped || !matches!(statement.kind, Kind::Decision | Kind::Other) {
            return;
        }
        for subject in statement.subjects().filter(|subject| subject.len() > 1) {
            let rarest = subject.iter().min_by_key(|word| index.frequency(**word));
            let rarest = rarest.filter(|word| index.is_telling(**word));
            if let Some(word) = rarest {
                self.0.entry(*word).or_default().push(at);
            }
        }
    }

    /// The subject of the last one that this statement names together with its value and with a
    /// new one.
    fn by(&self, new: &Statement, before: &[Statement], lists: &Lists) -> Option<Vec<Word>> {
        let speaks = matches!(
            new.kind,
            Kind::Other | Kind::Commitment | Kind::Failure | Kind::Decision
        );
        let is_clear = new.corrects && !new.subject.is_empty();
        if !speaks || new.dropped || is_clear {
            return None;
        }
        let places = new.words.iter().filter_map(|word| self.0.get(word));
        let places = places.flat_map(|places| places.iter().rev().take(NEAR));
        let renewed = places.filter_map(|place| {
            let older = before.get(*place)?;
            let mut subjects = older.subjects().filter(|subject| subject.len() > 1);
            let named = subjects.find(|s| holds(&new.words, s) && !lists.share(s))?;
            renews(new, older).then_some((place, named))
        });
        renewed.max().map(|(_, subject)| subject.clone())
    }
}

/// Whether a statement names the value of an older one and says something new.
fn renews(new: &Statement, older: &Statement) -> bool {
    let values = match older.kind {
        Kind::Decision => &older.rest,
        _ => &older.values,
    };
    let is_new = |word: &Word| !contains(&older.words, *word);
    let says = new.values.iter().any(is_new) || new.corrects || new.kind == Kind::Decision;
    !older.dropped && says && values.iter().any(|word| contains(&new.words, *word))
}

/// The newest decision before a correction without a subject: one that holds the value it names,
/// or just the last one if it clearly takes something back.
fn latest_with(
    before: &[Statement],
    new: &Statement,
    values: &[Word],
    index: &Index,
) -> Option<usize> {
    let decides = |place: &usize| {
        let older = before.get(*place);
        older.filter(|s| s.kind == Kind::Decision && !s.dropped)
    };
    if !values.is_empty() {
        let mut places = index.before(before.len(), values).into_iter().rev();
        return places.find(|place| decides(place).is_some_and(|s| holds(&s.words, values)));
    }
    let low = padded(&new.text);
    let clearly = low.starts_with(" scratch that") || low.starts_with(" correction");
    let mut places = (0..before.len()).rev();
    let last = places.find_map(|place| decides(&place).map(|s| (place, s)));
    last.filter(|(_, s)| clearly && s.at + RECENT >= new.at)
        .map(|(place, _)| place)
}

/// Drops failures that were fixed later, and outcomes of a tool that gave another one later.
fn fixes(said: &mut [Statement], index: &Index) {
    for at in 0..said.len() {
        let (_, rest) = said.split_at_mut(at);
        let Some((failure, later)) = rest.split_first_mut() else {
            return;
        };
        if failure.kind != Kind::Failure || failure.dropped {
            continue;
        }
        let places = index.after(at, &failure.words).into_iter();
        let mut later = places.filter_map(|place| later.get(place - at - 1));
        let is_fixed = later.any(|later| {
            let shared = index.coverage(&failure.words, &later.words);
            let shared = shared.max(index.coverage(&later.words, &failure.words));
            later.kind == Kind::Fix && shared >= 0.45
        });
        if is_fixed {
            failure.drop_as_stale();
        }
    }
    join_fixes(said);
    let mut latest: HashSet<String> = HashSet::new();
    for statement in said.iter_mut().rev().filter(|s| s.kind == Kind::Outcome) {
        if !latest.insert(statement.who.clone()) {
            statement.drop_as_stale();
        }
    }
}

/// Joins a fix that does not name its failure ("fixed it; 14 passed") with the last failure before
/// it, which is then shown as fixed.
fn join_fixes(said: &mut [Statement]) {
    let mut last: Option<usize> = None;
    for at in 0..said.len() {
        let (before, rest) = said.split_at_mut(at);
        let Some(now) = rest.first_mut() else {
            return;
        };
        let decides = now.kind == Kind::Decision && begins_with_fix(&now.text);
        let fixes = now.kind == Kind::Fix && !now.dropped && says_fixed(&now.text);
        if now.kind == Kind::Failure {
            // A failure that was dropped has its fix.
            last = (!now.dropped).then_some(at);
        }
        if !decides && !fixes {
            continue;
        }
        let failure = last.take().and_then(|last| before.get_mut(last));
        let Some(failure) = failure.filter(|f| f.at + FIX_WITHIN >= now.at) else {
            continue;
        };
        if decides {
            failure.drop_as_stale();
        } else {
            failure.joined.push(format!("({}: {})", now.who, now.text));
            failure.kind = Kind::Fix;
            failure.score = now.score;
            now.dropped = true;
        }
    }
}

/// Whether a decision tells first that something was fixed ("Resolved, we use UTC now").
fn begins_with_fix(text: &str) -> bool {
    const FIXED: &str = " fixed | solved | resolved | i fixed | we fixed ";
    let low = padded(text);
    let mut words = FIXED.split('|');
    words.any(|word| low.starts_with(word)) && !low.starts_with(" resolved that ")
}

/// Whether a fix says so itself, and not only that something works.
fn says_fixed(text: &str) -> bool {
    const FIXED: &str = " fixed | solved | resolved | passed | đã sửa |修正|解決";
    let low = padded(text);
    FIXED.split('|').any(|word| low.contains(word))
}
