//! What a question names: who is meant, and when.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::model::Time;
use crate::search::text::MONTHS;

/// Words before a bare `may` or `march` that make it a month.
const BEFORE_MONTH: [&str; 12] = [
    "in", "during", "of", "on", "by", "since", "last", "this", "next", "before", "after", "until",
];

/// A date as far as a question gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub year: Option<i16>,
    pub month: Option<i8>,
    pub day: Option<i8>,
}

/// A query, read: whom it names, which dates, and what is left to look for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// Speakers of the store that are named.
    pub named: Vec<String>,
    pub dates: Vec<Asked>,
    /// The query without the names: they say who, not what.
    pub rest: String,
}

impl Question {
    /// Reads a query. A speaker is named by the whole name, whatever its case, or by its first
    /// word written with a capital.
    pub fn read(query: &str, speakers: &[String]) -> Self {
        let mut rest = query.to_owned();
        let mut named = Vec::new();
        let mut longest: Vec<&String> = speakers.iter().collect();
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
            named,
            dates: dates(query),
            rest: if empty { query.trim().to_owned() } else { rest },
        }
    }

    pub(super) fn speaker_factor(&self, speaker: Option<&str>, lift: f32) -> f32 {
        match speaker {
            Some(speaker) if self.named.iter().any(|named| named == speaker) => 1.0 + lift,
            _ => 1.0,
        }
    }

    /// From 0 to 1: how well a record of this moment fits the dates that are asked for.
    pub(super) fn date_match(&self, created: Time) -> f32 {
        if self.dates.is_empty() {
            return 0.0;
        }
        let Ok(at) = jiff::Timestamp::from_millisecond(created.millis()) else {
            return 0.0;
        };
        let day = at.to_zoned(TimeZone::UTC).date();
        let fits = self.dates.iter().map(|asked| asked.fits(day));
        fits.fold(0.0, f32::max)
    }
}

impl Asked {
    fn fits(&self, day: Date) -> f32 {
        let year = self.year.unwrap_or(day.year());
        let same_year = year == day.year();
        let same_month = same_year && self.month == Some(day.month());
        match (self.month, self.day) {
            (None, _) if same_year => 0.3,
            (Some(_), None) if same_month => 1.0,
            (Some(month), Some(asked)) => {
                let Ok(wanted) = Date::new(year, month, asked) else {
                    return 0.0;
                };
                match (day - wanted).get_days() {
                    0 => 1.0,
                    1..=7 => 0.6,
                    _ if same_month => 0.4,
                    _ => 0.0,
                }
            }
            _ => 0.0,
        }
    }
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

/// The dates that a text names: `7 May 2023`, `May 7th`, `May 2023`, `2023-05-07`; bare years
/// only if there is nothing better.
fn dates(text: &str) -> Vec<Asked> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
        .filter(|word| !word.is_empty())
        .collect();
    let mut found: Vec<Asked> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if let Some(date) = iso(word) {
            found.push(date);
        } else if let Some(month) = MONTHS.iter().position(|name| name == word) {
            found.extend(around_month(&words, at, month));
        }
    }
    if found.is_empty() {
        let years = words.iter().filter_map(|word| year(word));
        found.extend(years.map(|year| Asked {
            year: Some(year),
            month: None,
            day: None,
        }));
    }
    found
}

/// The date whose month stands at this word.
fn around_month(words: &[&str], at: usize, month: usize) -> Option<Asked> {
    let after = |offset: usize| words.get(at + offset).copied();
    let before = |offset: usize| at.checked_sub(offset).and_then(|at| words.get(at).copied());
    let day_before = match before(1) {
        Some("of") => before(2).and_then(day),
        other => other.and_then(day),
    };
    let day_after = after(1).and_then(day);
    let year_at = if day_after.is_some() { 2 } else { 1 };
    let year = after(year_at).and_then(year);
    let bare = day_before.is_none() && day_after.is_none() && year.is_none();
    let doubtful = ["may", "march"].contains(words.get(at)?);
    let announced = before(1).is_some_and(|word| BEFORE_MONTH.contains(&word));
    (!(bare && doubtful) || announced).then_some(Asked {
        year,
        month: i8::try_from(month + 1).ok(),
        day: day_before.or(day_after),
    })
}

fn iso(word: &str) -> Option<Asked> {
    let mut parts = word.splitn(3, '-');
    let year = year(parts.next()?)?;
    let month: i8 = parts.next()?.parse().ok()?;
    let day = parts.next().and_then(|day| day.parse().ok());
    (1..=12).contains(&month).then_some(Asked {
        year: Some(year),
        month: Some(month),
        day,
    })
}

fn day(word: &str) -> Option<i8> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = word.get(digits.len()..)?;
    let known = ["", "st", "nd", "rd", "th"].contains(&ending);
    let day: i8 = digits.parse().ok()?;
    (known && (1..=31).contains(&day)).then_some(day)
}

fn year(word: &str) -> Option<i16> {
    let year: i16 = word.parse().ok()?;
    (word.len() == 4 && (1900..2100).contains(&year)).then_some(year)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::search::speakers::{first_word, lookup_words};

    fn names(query: &str) -> (Vec<String>, String) {
        let speakers = ["Caroline", "Mel", "Nguyễn An"].map(str::to_owned);
        let question = Question::read(query, &speakers);
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
                Question::read(&query, &found),
                Question::read(&query, &all),
                "{query}"
            );
        }
    }

    #[test]
    fn dates_are_read() {
        let asked = |year, month, day| Asked { year, month, day };
        let cases = [
            ("on 7 May 2023", vec![asked(Some(2023), Some(5), Some(7))]),
            ("May 7th, 2023?", vec![asked(Some(2023), Some(5), Some(7))]),
            ("the 2nd of June", vec![asked(None, Some(6), Some(2))]),
            ("in August 2022", vec![asked(Some(2022), Some(8), None)]),
            ("in May", vec![asked(None, Some(5), None)]),
            ("she may march on", vec![]),
            ("what happened in 2021", vec![asked(Some(2021), None, None)]),
            ("2023-05-07", vec![asked(Some(2023), Some(5), Some(7))]),
            ("chapter 12", vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(dates(text), expected, "{text}");
        }
    }

    #[test]
    fn the_day_itself_fits_best() {
        let asked = Asked {
            year: Some(2023),
            month: Some(5),
            day: Some(7),
        };
        let days = [
            date(2023, 5, 7),
            date(2023, 5, 10),
            date(2023, 5, 1),
            date(2022, 5, 7),
        ];
        assert_eq!(days.map(|day| asked.fits(day)), [1.0, 0.6, 0.4, 0.0]);
    }
}
