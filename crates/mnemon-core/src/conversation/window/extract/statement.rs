//! One thing that was said, and what it does in the conversation.

use std::collections::HashMap;

use super::cues::{Cues, content_words, details, names, padded};
use super::sentences::{cut, sentences};
use crate::model::{Message, Role};

/// A sentence is cut after so many characters.
const LINE: usize = 280;
/// Sentences that are looked at in one message; of more, the first and the last ones.
const SENTENCES: usize = 400;

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    Other,
}

/// Something that was said.
#[derive(Debug, Clone)]
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
    pub(super) words: Vec<u32>,
    /// The words of the decision's subject, sorted; empty if no subject was recognised.
    pub(super) subject: Vec<u32>,
    /// Whether the subject is that of a verb (`the port is 80`), so that the rest is its value.
    pub(super) states: bool,
    /// The names and numbers in it that are not part of its subject.
    pub(super) values: Vec<u32>,
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
    /// A statement of which nothing else is known.
    pub(super) fn new(at: usize, who: String, kind: Kind) -> Self {
        Self {
            at,
            who,
            text: String::new(),
            kind,
            corrects: false,
            commits: false,
            words: Vec::new(),
            subject: Vec::new(),
            states: false,
            values: Vec::new(),
            joined: Vec::new(),
            score: 0.0,
            dropped: false,
            superseded: false,
            inherits: false,
        }
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

    /// Whether it names a person, or the speaker speaks of themselves.
    pub(super) fn names_someone(&self) -> bool {
        if !["user", "assistant", "system", "tool"].contains(&self.who.as_str()) {
            return true;
        }
        let low = padded(&self.text);
        let first_person = [
            " i ", " i'll ", " i've ", " i'm ", " me ", " mine ", " my ", " tôi ", " さん",
        ];
        !names(&self.text).is_empty()
            || first_person.iter().any(|word| low.contains(word))
            || low.contains("さん")
    }
}

pub(super) fn length(text: &str) -> usize {
    let wide = text.chars().filter(|c| *c >= '\u{3000}').count();
    text.split_whitespace().count() + wide / 3
}

/// Numbers for words, and in how many statements each occurs.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<String, u32>,
}

impl Vocabulary {
    pub(super) fn of(&mut self, text: &str) -> Vec<u32> {
        self.numbered(content_words(text))
    }

    fn numbered(&mut self, words: Vec<String>) -> Vec<u32> {
        let mut numbers: Vec<u32> = Vec::with_capacity(words.len());
        for word in words {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            numbers.push(*self.numbers.entry(word).or_insert(next));
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
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
pub(super) fn statements(
    at: usize,
    message: &Message,
    vocabulary: &mut Vocabulary,
) -> Vec<Statement> {
    let text = message.text_content();
    let all = sentences(&text);
    let (count, half) = (all.len(), SENTENCES / 2);
    let edges = all
        .into_iter()
        .enumerate()
        .filter(|(place, _)| *place < half || place + half >= count);
    let who = speaker(message);
    let said = edges.map(|(_, text)| statement(at, &who, message.role, text, vocabulary));
    said.collect()
}

fn statement(
    at: usize,
    who: &str,
    role: Role,
    text: &str,
    vocabulary: &mut Vocabulary,
) -> Statement {
    let low = padded(text);
    let cues = Cues::of(&low);
    let (subject, states) = subject(text);
    let subject = vocabulary.numbered(subject);
    let mut values = vocabulary.of(&values(text));
    values.retain(|value| subject.binary_search(value).is_err());
    let kind = kind(text, &low, &cues);
    let score = match kind {
        Kind::Decision if cues.corrected => 11.0,
        Kind::Decision => 10.0,
        Kind::Question => 8.0,
        Kind::Commitment => 7.0,
        Kind::Failure => 5.0,
        Kind::Fix => 2.0,
        Kind::Deferral | Kind::SmallTalk => 0.0,
        Kind::Outcome | Kind::Other => match (cues.open, cues.wanted, cues.result) {
            (true, _, _) => 4.0,
            (_, true, _) => 3.0,
            (_, _, true) => 1.0,
            _ => 0.0,
        },
    };
    let speaker = if role == Role::User { 0.5 } else { 0.0 };
    // It says something of something.
    let assertion = if subject.is_empty() { 0.0 } else { 0.5 };
    let detail = match kind {
        Kind::SmallTalk => 0.0,
        _ => details(text) + speaker + assertion,
    };
    Statement {
        text: cut(text, LINE),
        corrects: cues.corrected && kind == Kind::Decision,
        commits: cues.committed,
        words: vocabulary.of(text),
        subject,
        states,
        values,
        score: score + detail,
        ..Statement::new(at, who.to_owned(), kind)
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

fn kind(text: &str, low: &str, cues: &Cues) -> Kind {
    let length = length(text);
    let is_small =
        cues.small_talk && length <= 10 && !cues.decided && !cues.corrected && !cues.deferred;
    let asks = text.ends_with(['?', '？']) || text.ends_with("か。");
    if is_small || low.trim().is_empty() {
        return Kind::SmallTalk;
    }
    if asks {
        return Kind::Question;
    }
    if cues.deferred && length <= 12 && !cues.corrected {
        return Kind::Deferral;
    }
    // An order settles what it names.
    let orders = ["use", "make", "take", "pick", "choose", "keep", "switch"];
    let orders = orders
        .iter()
        .any(|verb| low.starts_with(&format!(" {verb} ")));
    if cues.decided || orders || cues.corrected && length > 3 {
        return Kind::Decision;
    }
    if cues.fixed {
        return Kind::Fix;
    }
    if cues.failed {
        return Kind::Failure;
    }
    if cues.committed && !names(text).is_empty() {
        return Kind::Commitment;
    }
    Kind::Other
}

/// The words for what a sentence decides on: after `for`, `as`, `about` or `on`, or before `is`;
/// and whether it is the latter.
fn subject(text: &str) -> (Vec<String>, bool) {
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let bare = |token: &str| {
        let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '=');
        token.to_lowercase()
    };
    let ends = tokens
        .iter()
        .position(|token| ["because", "since", "vì"].contains(&bare(token).as_str()));
    let tokens = tokens
        .get(..ends.unwrap_or(tokens.len()))
        .unwrap_or_default();
    let stated = before_copula(tokens, bare);
    let stated_words = || content_words(&stated.unwrap_or_default().join(" "));
    // "Invoice 4701 is paid for Acme" is about that invoice; "version 3 is used for the client" is
    // about the client.
    let chosen = ["used", "chosen", "picked", "selected", "fine", "right"];
    let chooses = tokens
        .iter()
        .any(|token| chosen.contains(&bare(token).as_str()));
    if !chooses && stated.is_some_and(identifies) {
        return (stated_words(), true);
    }
    for leads in [["for", "as", "cho", "làm"].as_slice(), &["about", "on"]] {
        for (at, _) in tokens
            .iter()
            .enumerate()
            .filter(|(_, t)| leads.contains(&bare(t).as_str()))
        {
            let words = content_words(&phrase(tokens.get(at + 1..).unwrap_or_default(), bare));
            if !words.is_empty() && !is_date(&words) {
                return (words, false);
            }
        }
    }
    if let Some((before, _)) = text.split_once('は') {
        return (content_words(before), true);
    }
    (stated_words(), true)
}

/// Whether the words are numbers or parts of a date or of a period, which is never a subject.
fn is_date(words: &[String]) -> bool {
    const TIMES: &str = "monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|\
        march|april|june|july|august|september|october|november|december|day|week|month|year|hour|\
        minute|tomorrow";
    let is_time = |word: &String| {
        word.chars().all(char::is_numeric) || TIMES.split('|').any(|time| time == word)
    };
    !words.is_empty() && words.iter().all(is_time)
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
fn phrase(tokens: &[&str], bare: impl Fn(&str) -> String) -> String {
    const STOPS: [&str; 18] = [
        "we", "we're", "we'll", "i", "i'm", "is", "are", "will", "should", "so", "and", "now",
        "instead", "but", "with", "it", "là", "must",
    ];
    let mut words = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map(|next| content_words(next));
        let dated = next.is_some_and(|next| is_date(&next));
        let dates = ["on", "at", "by", "until"].contains(&bare(token).as_str()) && dated;
        if dates || STOPS.contains(&bare(token).as_str()) {
            break;
        }
        words.push(*token);
        if token.ends_with([',', '.', ';', ':', '!', '?']) {
            break;
        }
    }
    words.join(" ")
}

/// The tokens before the verb that gives something a value.
fn before_copula<'a>(
    tokens: &'a [&'a str],
    bare: impl Fn(&str) -> String,
) -> Option<&'a [&'a str]> {
    let copula = tokens.iter().enumerate().position(|(at, token)| {
        let next = tokens
            .get(at + 1)
            .map(|next| bare(next))
            .unwrap_or_default();
        match bare(token).as_str() {
            "is" | "are" => next != "going",
            "will" | "should" | "shall" | "must" => next == "be" || next == "use",
            "has" | "have" => next == "to",
            "=" | "uses" | "becomes" | "là" => true,
            _ => false,
        }
    });
    let before = tokens.get(..copula?)?;
    let start = before
        .iter()
        .rposition(|token| token.ends_with([':', ',', ';']));
    before.get(start.map_or(0, |start| start + 1)..)
}
