//! One thing that was said, and what it does in the conversation.

use super::cues::{
    Cue, Cues, NOT, Word, content_words, details, names, numbered, padded, words_of,
};
use super::sentences::{cut, sentences};
use crate::model::{Message, Role};

/// A sentence is cut after so many characters.
const LINE: usize = 280;
/// Sentences that are looked at in one message; of more, the first and the last ones.
const SENTENCES: usize = 400;

/// What a statement does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Settles something, or takes back what was settled.
    Decision,
    /// Somebody takes something on.
    Commitment,
    Question,
    /// Said instead of an answer.
    Deferral,
    Failure,
    Fix,
    /// What a tool gave back.
    Outcome,
    SmallTalk,
    #[default]
    Other,
}

/// Something that was said.
#[derive(Debug, Clone, Default)]
pub(super) struct Statement {
    /// The message it stands in.
    pub(super) at: usize,
    pub(super) who: String,
    pub(super) text: String,
    pub(super) kind: Kind,
    /// Whether it takes back something that was said before.
    pub(super) corrects: bool,
    pub(super) commits: bool,
    /// What it is about, sorted.
    pub(super) words: Vec<Word>,
    /// The words of the decision's subject, sorted; empty if no subject was recognised.
    pub(super) subject: Vec<Word>,
    /// Further phrases that may be its subject, if the first one is not.
    pub(super) other_subjects: Vec<Vec<Word>>,
    /// Whether the subject is that of a verb (`the port is 80`), so that the rest is its value.
    pub(super) states: bool,
    /// The names and numbers in it that are not part of its subject.
    pub(super) values: Vec<Word>,
    /// The words of its own text beside its subject.
    pub(super) rest: Vec<Word>,
    /// The words of a value that it names as wrong.
    pub(super) old_values: Vec<Word>,
    /// Whether it is a question of what to take.
    pub(super) asks_for_choice: bool,
    /// Further sentences that belong to it: its owner, its reason, the answer to a question.
    pub(super) joined: Vec<String>,
    pub(super) score: f64,
    pub(super) dropped: bool,
    /// Whether it was dropped because it no longer holds.
    pub(super) superseded: bool,
    /// Whether it names the owner of an earlier decision that it takes back.
    pub(super) inherits: bool,
}

impl Statement {
    /// The phrases that it may be about, the likeliest first.
    pub(super) fn subjects(&self) -> impl Iterator<Item = &Vec<Word>> {
        let all = std::iter::once(&self.subject).chain(&self.other_subjects);
        all.filter(|subject| !subject.is_empty())
    }

    /// Adds words that it is about.
    pub(super) fn add_words(&mut self, words: &[Word]) {
        self.words.extend(words);
        self.words.sort_unstable();
        self.words.dedup();
    }

    pub(super) fn line(&self) -> String {
        let open = match self.kind {
            Kind::Question => "open question, ",
            _ => "",
        };
        let between = if self.kind == Kind::Outcome {
            " →"
        } else {
            ":"
        };
        let mut line = format!("- {open}{}{between} {}", self.who, self.text);
        for joined in &self.joined {
            line.push(' ');
            line.push_str(joined);
        }
        line
    }

    /// Number of words; of Japanese text, of which there are none, half of its characters.
    pub(super) fn length(&self) -> usize {
        length(&self.text)
    }

    /// Drops it because it no longer holds.
    pub(super) fn drop_as_stale(&mut self) {
        self.dropped = true;
        self.superseded = true;
    }

    /// Whether the speaker is known by their role only.
    pub(super) fn is_anonymous(&self) -> bool {
        ["user", "assistant", "system", "tool"].contains(&self.who.as_str())
    }

    /// Whether it names a person, or the speaker speaks of themselves.
    pub(super) fn names_someone(&self) -> bool {
        const FIRST_PERSON: &str = " i | i'll | i've | i'm | me | mine | my | tôi |さん";
        let low = padded(&self.text);
        !self.is_anonymous()
            || !names(&self.text).is_empty()
            || FIRST_PERSON.split('|').any(|word| low.contains(word))
    }
}

pub(super) fn length(text: &str) -> usize {
    let wide = text.chars().filter(|c| *c >= '\u{3000}').count();
    text.split_whitespace().count() + wide / 3
}

/// The speaker of a message, as a line of a summary names them.
pub(super) fn speaker(message: &Message) -> String {
    match (&message.name, message.role) {
        (Some(name), Role::User) => cut(name, 40),
        (_, Role::User) => "user".to_owned(),
        (_, Role::Assistant) => "assistant".to_owned(),
        (_, Role::System) => "system".to_owned(),
        (_, Role::Tool) => "tool".to_owned(),
    }
}

/// What the text of a message says, sentence by sentence.
pub(super) fn statements(message: &Message) -> Vec<Statement> {
    let text = message.text_content();
    let all = sentences(&text);
    let (count, half) = (all.len(), SENTENCES / 2);
    let edges = all
        .into_iter()
        .enumerate()
        .filter(|(place, _)| *place < half || place + half >= count);
    let who = speaker(message);
    let said = edges.map(|(_, text)| statement(&who, message.role, text));
    said.collect()
}

fn statement(who: &str, role: Role, text: &str) -> Statement {
    let low = padded(text);
    let cues = Cues::of(&low);
    let (mut subjects, states) = subjects(text);
    let subject = subjects.remove(0);
    let mut values = words_of(&values(text));
    values.retain(|value| subject.binary_search(value).is_err());
    // One word alone says too little, and a name is rather the value than the subject.
    subjects.retain(|one| one.len() > 1 && one.iter().any(|word| !values.contains(word)));
    let words = words_of(text);
    let rest = words.iter().copied();
    let rest = rest.filter(|word| subject.binary_search(word).is_err());
    let says = !subject.is_empty() || !values.is_empty();
    let kind = kind(text, &low, cues, says);
    let score = match kind {
        Kind::Decision if cues.has(Cue::Corrected) => 11.0,
        Kind::Decision => 10.0,
        Kind::Question => 8.0,
        Kind::Commitment => 7.0,
        Kind::Failure => 5.0,
        Kind::Fix => 2.0,
        Kind::Deferral | Kind::SmallTalk => 0.0,
        Kind::Outcome | Kind::Other if cues.has(Cue::Open) => 4.0,
        Kind::Outcome | Kind::Other if cues.has(Cue::Wanted) => 3.0,
        Kind::Outcome | Kind::Other if cues.has(Cue::Result) => 1.0,
        Kind::Outcome | Kind::Other => 0.0,
    };
    let speaker = if role == Role::User { 0.5 } else { 0.0 };
    // It says something of something.
    let assertion = match (kind, subject.len()) {
        (_, 0) => 0.0,
        (Kind::Decision, 2..) => 2.0,
        _ => 0.5,
    };
    let detail = match kind {
        Kind::SmallTalk => 0.0,
        _ => details(text) + speaker + assertion,
    };
    Statement {
        who: who.to_owned(),
        text: cut(text, LINE),
        kind,
        corrects: cues.has(Cue::Corrected) && kind == Kind::Decision,
        commits: cues.has(Cue::Committed),
        rest: rest.collect(),
        old_values: taken_back(text),
        asks_for_choice: kind == Kind::Question && asks_for_choice(text),
        words,
        subject,
        other_subjects: subjects,
        states,
        values,
        score: score + detail,
        ..Statement::default()
    }
}

/// The words of a sentence that stand for a value: with a capital, or with a digit.
fn values(text: &str) -> String {
    let words = text.split_whitespace().enumerate();
    let values = words.filter(|(at, word)| {
        let capital = *at > 0 && word.chars().next().is_some_and(char::is_uppercase);
        capital || word.chars().any(char::is_numeric)
    });
    values.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

/// What a sentence does; `says` whether it has a subject or names a value.
fn kind(text: &str, low: &str, cues: Cues, says: bool) -> Kind {
    let length = length(text);
    let (decided, corrected) = (cues.has(Cue::Decided), cues.has(Cue::Corrected));
    let is_small = cues.has(Cue::SmallTalk) && length <= 10 && !cues.has(Cue::Committed);
    if is_small && !decided && !corrected && !cues.has(Cue::Deferred) || low.trim().is_empty() {
        return Kind::SmallTalk;
    }
    if text.ends_with(['?', '？']) || text.ends_with("か。") {
        // Somebody is asked by name to do it.
        return match asks_someone(text) {
            true => Kind::Commitment,
            false => Kind::Question,
        };
    }
    if cues.has(Cue::Deferred) && length <= 12 && !corrected {
        return Kind::Deferral;
    }
    // An order settles what it names.
    let orders = [
        "use", "make", "take", "pick", "choose", "keep", "switch", "set",
    ];
    let orders = orders.iter().any(|verb| {
        low.starts_with(&format!(" {verb} ")) || low.contains(&format!(" please {verb} "))
    });
    if decided || orders || is_labelled(text) || corrected && says && length > 3 {
        return Kind::Decision;
    }
    if cues.has(Cue::Fixed) {
        return Kind::Fix;
    }
    if cues.has(Cue::Failed) {
        return Kind::Failure;
    }
    match cues.has(Cue::Committed) && !names(text).is_empty() {
        true => Kind::Commitment,
        false => Kind::Other,
    }
}

/// The words of the value that a correction names as wrong.
fn taken_back(text: &str) -> Vec<Word> {
    let low = text.to_lowercase();
    let after = NOT.split('|').find_map(|not| {
        let at = low.find(&format!(" {not}")).map(|at| at + 1);
        let at = at.or_else(|| low.starts_with(not).then_some(0))?;
        low.get(at + not.len()..)
    });
    let value = after.and_then(|after| after.split([',', '.', ';', ':']).next());
    let value = value.unwrap_or_default();
    let ends = [" but ", " to ", " for ", " as ", " by ", " after "];
    let end = ends.iter().filter_map(|word| value.find(word)).min();
    words_of(value.get(..end.unwrap_or(value.len())).unwrap_or_default())
}

/// Whether a question asks what to take.
fn asks_for_choice(question: &str) -> bool {
    const CHOICE: &str = " what | which | should | shall | decision | decide| prefer| suggest| best \
        | better | favo| opinion| thoughts | option| agree ";
    let low = padded(question);
    let mut words = CHOICE.split('|').map(str::trim_end);
    words.any(|word| low.contains(word)) || question.contains('何')
}

/// Whether a clause without a verb gives something a value: "Done, 80 for the port of the gateway".
fn is_labelled(text: &str) -> bool {
    // "Minutes: port of the gateway: 80"
    let is_entry = text.split(": ").count() > 2;
    let mut clauses = text.split([':', ',']).skip(1);
    is_entry
        || clauses.any(|clause| {
            let tokens: Vec<&str> = clause.split_whitespace().collect();
            let lead = tokens.iter().position(|t| ["for", "as"].contains(t));
            lead.is_some_and(|at| {
                let after = tokens.get(at + 1..).unwrap_or_default();
                let is_thing = after.first() == Some(&"the");
                is_thing && (1..=4).contains(&at) && words_of(&phrase(after)).len() > 1
            })
        })
}

/// Whether the question is a request to somebody who is named at its end ("Could you do it, Ann?").
fn asks_someone(question: &str) -> bool {
    let last = question.rsplit_once(", ").map(|(_, last)| last);
    last.is_some_and(|last| {
        let mut words = last.split_whitespace();
        let capital = |word: &str| word.chars().next().is_some_and(char::is_uppercase);
        words.clone().count() <= 2 && words.all(capital)
    })
}

/// The words for what a sentence decides on, the likeliest phrase first: after `for`, `as`, `about`
/// or `on`, or before `is`; and whether the first one is the latter.
fn subjects(text: &str) -> (Vec<Vec<Word>>, bool) {
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let ends = tokens
        .iter()
        .position(|token| ["because", "since", "vì"].contains(&bare(token).as_str()));
    let tokens = tokens
        .get(..ends.unwrap_or(tokens.len()))
        .unwrap_or_default();
    let stated = before_copula(tokens);
    let stated_words = content_words(&stated.unwrap_or_default().join(" "));
    // "Invoice 4701 is paid for Acme" is about that invoice; "version 3 is used for the client" is
    // about the client.
    let chosen = ["used", "chosen", "picked", "selected", "fine", "right"];
    let chooses = tokens
        .iter()
        .any(|token| chosen.contains(&bare(token).as_str()));
    if !chooses && stated.is_some_and(identifies) {
        return (vec![numbered(&stated_words)], true);
    }
    let phrases = |leads: &[&str]| -> Vec<Vec<Word>> {
        let places = tokens.iter().enumerate();
        let places = places.filter(|(_, token)| leads.contains(&token.to_lowercase().as_str()));
        let phrases = places.map(|(at, _)| phrase(tokens.get(at + 1..).unwrap_or_default()));
        let words = phrases.map(|phrase| content_words(&phrase));
        let words = words.filter(|words| !words.is_empty() && !is_date(words));
        words.map(|words| numbered(&words)).collect()
    };
    // In "Friday for the launch as the release day" the last one is meant.
    let mut all = phrases(&["as", "làm"]);
    all.extend(phrases(&["for", "cho"]));
    all.extend(phrases(&["about", "on"]));
    let states = all.is_empty();
    let before = text.split_once('は').map(|(before, _)| before);
    let is_thing = stated
        .and_then(|phrase| phrase.first())
        .is_some_and(|first| ["the", "our", "this", "that", "its"].contains(&bare(first).as_str()));
    // Beside a likelier phrase, one without an article is rather a value: "magic links it is".
    if let Some(before) = before {
        all.push(words_of(before));
    } else if states || is_thing {
        all.push(numbered(&stated_words));
    }
    // These lead to a subject less often.
    all.extend(phrases(&[
        "our", "set", "make", "change", "changed", "move", "moved", "switched",
    ]));
    all.extend(phrases(&["like", "want", "be"]));
    // "Minutes: port of the gateway: 80"
    if let [_, before, _] = text.splitn(3, ": ").collect::<Vec<_>>()[..] {
        all.push(words_of(before));
    }
    (all, states)
}

/// A token in small letters, without the punctuation around it.
fn bare(token: &str) -> String {
    let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '=' && c != '→');
    token.to_lowercase()
}

/// Whether the words are numbers or parts of a date or of a period, which is never a subject.
fn is_date(words: &[String]) -> bool {
    const CALENDAR: &str = "monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|\
        february|march|april|may|june|july|august|september|october|november|december|tomorrow";
    const PERIODS: &str = "day|week|month|year|hour|minute";
    let is_in = |list: &str, word: &str| list.split('|').any(|one| one == word);
    let is_number = |word: &String| word.chars().all(char::is_numeric);
    let is_time = |word: &String| is_number(word) || is_in(PERIODS, word) || is_in(CALENDAR, word);
    !words.is_empty() && words.iter().all(is_time) || words.iter().any(|word| is_in(CALENDAR, word))
}

/// Whether the phrase names one of several things of a kind: a noun and then its number or name
/// ("invoice 4701", "customer Acme"), or a path.
fn identifies(phrase: &[&str]) -> bool {
    // "So Kafka it is": the thing is named elsewhere.
    if phrase
        .last()
        .is_some_and(|last| content_words(last).is_empty())
    {
        return false;
    }
    let small = |word: &str| word.chars().all(char::is_alphabetic) && word.len() > 2;
    let mut pairs = phrase.iter().zip(phrase.iter().skip(1)).enumerate();
    let numbered = pairs.any(|(at, (noun, id))| {
        let id = id.trim_start_matches(['#', '"', '`', '(']);
        let named =
            id.chars().next().is_some_and(char::is_uppercase) && !is_date(&content_words(id));
        let has_digit = id.chars().any(char::is_numeric);
        let is_noun = noun.chars().next().is_some_and(char::is_lowercase) || at == 0 && has_digit;
        (named || has_digit) && is_noun && small(noun) && !content_words(noun).is_empty()
    });
    let is_path = |word: &&str| word.contains(['/', '_']) || word.contains("::");
    numbered || phrase.iter().any(is_path)
}

/// The tokens up to a punctuation mark, a date or the next clause.
fn phrase(tokens: &[&str]) -> String {
    const STOPS: [&str; 28] = [
        "we", "we're", "we'll", "i", "i'm", "is", "are", "will", "should", "so", "and", "now",
        "instead", "but", "with", "it", "là", "must", "to", "shall", "becomes", "stays", "than",
        "from", "as", "for", "=", "→",
    ];
    let mut words = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map(|next| content_words(next));
        let dated = next.is_some_and(|next| is_date(&next));
        let dates = ["on", "at", "by", "until"].contains(&bare(token).as_str()) && dated;
        if dates || token.starts_with('(') || STOPS.contains(&bare(token).as_str()) {
            break;
        }
        words.push(*token);
        if token.ends_with([',', '.', ';', ':', '!', '?']) {
            break;
        }
    }
    words.join(" ")
}

/// The tokens before the first verb that gives something a value.
fn before_copula<'a>(tokens: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let is_copula = |at: usize, token: &str| {
        let next = tokens.get(at + 1).map(|next| bare(next));
        let next = next.unwrap_or_default();
        match bare(token).as_str() {
            "is" | "are" => next != "going",
            "will" | "should" | "shall" | "must" => next == "be" || next == "use",
            "has" | "have" => next == "to",
            "=" | "→" | "uses" | "becomes" | "stays" | "remains" | "gets" | "là" => true,
            "moves" | "goes" | "switches" | "changes" => next == "to",
            _ => false,
        }
    };
    let stated = |(at, token): (usize, &&str)| {
        let before = tokens.get(..at).filter(|_| is_copula(at, token))?;
        let starts = |token: &&str| token.ends_with([':', ',', ';']) || *token == "that";
        let start = before.iter().rposition(starts);
        let phrase = before.get(start.map_or(0, |start| start + 1)..)?;
        let words = content_words(&phrase.join(" "));
        (!words.is_empty() && !is_date(&words)).then_some(phrase)
    };
    tokens.iter().enumerate().find_map(stated)
}
