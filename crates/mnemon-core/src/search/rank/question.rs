//! What a question names: who is meant, and when; and what kind of answer it wants.

use serde::Serialize;

use crate::model::Time;
use crate::ports::Features;
use crate::search::dates::{self, Asked};
use crate::search::speakers::Voice;
use crate::search::text;

/// What a question wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerType {
    /// `When …?`
    Time,
    /// `Who …?`, `Where …?`
    Name,
}

/// Steps of ranking that can be left out to measure what they are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// `I` is the user, `you` the assistant.
    pub first_person: bool,
    /// The days that are asked for find what tells of them.
    pub dates: bool,
    /// A time is wanted, or a name.
    pub answer_type: bool,
    /// A question lends twice its words to the record after it.
    pub after_question: bool,
    /// `Went` counts as `go`, in the whole process ([`text::leave_out_irregular_forms`]).
    pub irregular_forms: bool,
    /// Words that mean nearly the same as a word of the query count in part.
    pub similar_words: bool,
    /// Near-copies of a better hit come last.
    pub copies: bool,
}

impl Steps {
    pub const ALL: Self = Self {
        first_person: true,
        dates: true,
        answer_type: true,
        after_question: true,
        irregular_forms: true,
        similar_words: true,
        copies: true,
    };
}

impl Default for Steps {
    fn default() -> Self {
        Self::ALL
    }
}

/// A query, read: whom it names, which days, and what is left to look for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// Speakers of the store that are named.
    pub named: Vec<String>,
    /// Whose words are asked for in a chat with an assistant.
    pub voice: Option<Voice>,
    /// The user who asks.
    pub asker: Option<String>,
    pub dates: Vec<Asked>,
    pub answer: Option<AnswerType>,
    /// The query without the names and the days: they say who and when, not what.
    pub rest: String,
    /// The words for the days.
    pub dated: String,
    /// Words of the rest that say what is looked for.
    pub content: usize,
}

/// How well a record fits that is of a day that is asked for and does not tell of it.
const OF_DAY: f32 = 0.5;
/// Words that say no more than that something was.
const HAPPENED: [&str; 7] = ["happen", "event", "làm", "lam", "xảy", "xay", "ra"];

impl Question {
    /// Reads a query. A speaker is named by the whole name, whatever its case, or by its first
    /// word written with a capital. The name of a role is never the name of a speaker.
    pub fn read(query: &str, speakers: &[String], now: Time, steps: Steps) -> Self {
        let wanted = answer_type(query);
        // `Who is April?`
        let is_name = |words: &str| {
            wanted == Some(AnswerType::Name) && !words.contains(|c: char| c.is_ascii_digit())
        };
        let read = dates::asked(query, now);
        let (dates, mut rest, dated) = match steps.dates && !is_name(&read.2) {
            true => read,
            false => (Vec::new(), query.to_owned(), String::new()),
        };
        let mut named = Vec::new();
        let speakers = speakers.iter().filter(|name| Voice::of(name).is_none());
        let mut longest: Vec<&String> = speakers.collect();
        longest.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        for speaker in longest {
            let first = speaker.split_whitespace().next().unwrap_or_default();
            if let Some(without) =
                without(&rest, speaker, false).or_else(|| without(&rest, &capitalised(first), true))
            {
                named.push(speaker.clone());
                rest = without;
            }
        }
        let rest = rest.split_whitespace().collect::<Vec<&str>>().join(" ");
        let empty = !rest.chars().any(char::is_alphanumeric);
        Self {
            content: content(&rest),
            dated,
            named,
            voice: voice(query).filter(|_| steps.first_person),
            asker: None,
            dates,
            answer: wanted.filter(|_| steps.answer_type),
            rest: if empty { query.trim().to_owned() } else { rest },
        }
    }

    /// Whether days are asked for and nothing else.
    pub fn asks_only_for_days(&self) -> bool {
        self.content == 0 && !self.dates.is_empty()
    }

    /// 1 if this is said by whom the question means, otherwise 0.
    pub(super) fn speaks(&self, features: &Features) -> f32 {
        let speaker = features.speaker.as_deref();
        let is_named = speaker.is_some_and(|name| self.named.iter().any(|named| named == name));
        let is_meant = match (self.voice, features.traits.voice()) {
            (None, _) => false,
            (Some(meant), Some(voice)) => meant == voice,
            // A note is the user's, and so is what is said under the user's name.
            (Some(Voice::User), None) => speaker.is_none_or(|name| {
                let asker = self.asker.as_deref();
                asker.is_some_and(|asker| asker.eq_ignore_ascii_case(name))
            }),
            (Some(Voice::Assistant), None) => false,
        };
        f32::from(u8::from(is_named || is_meant))
    }

    /// 1 if this has the kind of answer that is wanted, otherwise 0.
    pub(super) fn answers(&self, features: &Features) -> f32 {
        let answers = match self.answer {
            Some(AnswerType::Time) => features.traits.tells_time(),
            Some(AnswerType::Name) => features.traits.has_name(),
            None => false,
        };
        f32::from(u8::from(answers))
    }

    /// From 0 to 1: how well a record of this moment fits the days that are asked for.
    pub(super) fn date_match(&self, created: Time) -> f32 {
        let fits = self.dates.iter().map(|asked| asked.fits(created));
        fits.fold(0.0, f32::max)
    }

    /// From 0 to 1: how well the days that a record tells of fit those that are asked for. A record
    /// that is of such a day fits half as well.
    pub(super) fn told_match(&self, features: &Features) -> f32 {
        let asked = || self.dates.iter();
        let told = features.told.iter();
        let told = told.flat_map(|told| asked().map(|asked| told.fits(asked)));
        let of_day = asked().map(|asked| OF_DAY * asked.has_moment(features.created));
        told.chain(of_day).fold(0.0, f32::max)
    }
}

/// How many words say what is looked for.
fn content(rest: &str) -> usize {
    let analysis = text::analyse(rest);
    let terms = analysis
        .terms()
        .filter(|term| !term.stop && term.kind != text::Kind::Surface);
    let said = terms.filter(|term| !HAPPENED.contains(&term.text) && !term.text.starts_with('何'));
    let mut places: Vec<u32> = said.map(|term| term.position).collect();
    places.dedup();
    places.len()
}

/// The words of a query in lower case.
fn words(query: &str) -> Vec<String> {
    let words = query.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Whose words the query asks for: `I` is the user; `you` is the assistant where it is asked what
/// it said, and nobody in `can you tell me`.
fn voice(query: &str) -> Option<Voice> {
    let words = words(query);
    let is = |at: usize, list: &[&str]| {
        words
            .get(at)
            .is_some_and(|word| list.contains(&word.as_str()))
    };
    let you = (0..words.len()).any(|at| {
        let said = [
            "said",
            "told",
            "suggested",
            "recommended",
            "mentioned",
            "gave",
            "explained",
            "advised",
            "proposed",
            "listed",
            "described",
            "suggest",
            "recommend",
            "provided",
        ];
        let yours = [
            "advice",
            "suggestion",
            "suggestions",
            "recommendation",
            "recommendations",
            "explanation",
            "answer",
            "proposal",
        ];
        (is(at, &["you"]) && at > 0 && is(at - 1, &["did", "have", "had"]))
            || (is(at, &["you"]) && is(at + 1, &said))
            || (is(at, &["your"]) && is(at + 1, &yours))
    });
    let mine = [
        "i", "me", "my", "mine", "myself", "i'm", "i've", "i'd", "i'll", "tôi", "mình",
    ];
    let i = words.iter().any(|word| mine.contains(&word.as_str()));
    let i = i || ["私", "僕", "俺"].iter().any(|word| query.contains(word));
    match (you, i) {
        (true, _) => Some(Voice::Assistant),
        (_, true) => Some(Voice::User),
        _ => None,
    }
}

fn answer_type(query: &str) -> Option<AnswerType> {
    let words = words(query);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let pair = |one: &str, others: &[&str]| {
        let mut pairs = words.iter().zip(words.iter().skip(1));
        pairs.any(|(a, b)| a == one && others.contains(&b.as_str()))
    };
    let is_time = words.first().is_some_and(|word| word == "when")
        || pair("what", &["time", "date", "day", "month", "year"])
        || pair("which", &["date", "day", "month", "year"])
        || pair("khi", &["nào"])
        || pair("bao", &["giờ"])
        || pair("ngày", &["nào"])
        || query.contains("いつ");
    if is_time {
        return Some(AnswerType::Time);
    }
    let is_name = words
        .first()
        .is_some_and(|word| matches!(word.as_str(), "who" | "where" | "whose"))
        || has(&["đâu"])
        || (has(&["ai"]) && !query.is_ascii())
        || ["どこ", "誰", "だれ"]
            .iter()
            .any(|word| query.contains(word));
    is_name.then_some(AnswerType::Name)
}

/// The text without this name where it stands as a word, a following 's included.
fn without(text: &str, name: &str, exact: bool) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let (hay, needle) = if exact {
        (text.to_owned(), name.to_owned())
    } else {
        (text.to_lowercase(), name.to_lowercase())
    };
    // Lower case may have another length; then the places do not agree and we leave it.
    if hay.len() != text.len() {
        return None;
    }
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut out = String::new();
    let (mut kept, mut found) = (0, false);
    for (at, _) in hay.match_indices(&needle) {
        let end = at + needle.len();
        let (Some(before), Some(after)) = (hay.get(..at), hay.get(end..)) else {
            continue;
        };
        if at < kept || word(before.chars().next_back()) || word(after.chars().next()) {
            continue;
        }
        out.push_str(text.get(kept..at)?);
        out.push(' ');
        let possessive = ["'s", "’s"].iter().find(|s| after.starts_with(**s));
        kept = end + possessive.map_or(0, |s| s.len());
        found = true;
    }
    out.push_str(text.get(kept..)?);
    found.then_some(out)
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::speakers::{first_word, lookup_words};

    fn names(query: &str) -> (Vec<String>, String) {
        let speakers = ["Caroline", "Mel", "Nguyễn An"].map(str::to_owned);
        let question = Question::read(query, &speakers, Time::EPOCH, Steps::ALL);
        (question.named, question.rest)
    }

    #[test]
    fn names_are_taken_out() {
        let (named, rest) = names("When did Caroline's sister visit?");
        assert_eq!(named, ["Caroline"]);
        assert_eq!(rest, "When did sister visit?");
        assert_eq!(names("what does nguyễn an like").0, ["Nguyễn An"]);
        assert_eq!(names("a melon and carolines").0, Vec::<String>::new());
        let (named, rest) = names("Mel");
        assert_eq!((named.len(), rest.as_str()), (1, "Mel"), "nothing else");
    }

    /// The speakers that the words of the query lead to are those that are named.
    #[test]
    fn speakers_that_are_looked_up_are_enough() {
        let names = "Ann|ann|Ann Lee|O'Brien|J.R.R. Tolkien|@bob|bob_2|Nguyễn An|Jean-Luc|Dr. Who|42|\
            李雷|Ёжик|-|élan vital|Mel";
        let names: Vec<&str> = names.split('|').collect();
        let around = [
            "", " ", "'s ", "’s", ", ", "(", ") ", "\"", "? ", "x", "_", "-", ".", "\n",
        ];
        let all: Vec<String> = names.iter().copied().map(str::to_owned).collect();
        let mut state = 11_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        for _ in 0..5000 {
            let mut query = String::new();
            for _ in 0..1 + random(4) {
                query.push_str(around[random(around.len())]);
                let name = names[random(names.len())];
                match random(3) {
                    0 => query.push_str(&name.to_lowercase()),
                    1 => query.push_str(name.split(' ').next().unwrap()),
                    _ => query.push_str(name),
                }
                query.push_str(around[random(around.len())]);
            }
            let words = lookup_words(&query);
            let found = all.iter().filter(|name| words.contains(&first_word(name)));
            let found: Vec<String> = found.cloned().collect();
            assert_eq!(
                Question::read(&query, &found, Time::EPOCH, Steps::ALL),
                Question::read(&query, &all, Time::EPOCH, Steps::ALL),
                "{query}"
            );
        }
    }
}
