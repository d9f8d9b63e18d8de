//! People who take something on, and what a decision says of its owner.

use std::collections::{HashMap, HashSet};

use super::cues::{names, padded};
use super::relations::refers_back;
use super::statement::Statement;

/// People who take something on somewhere in the conversation, by the first word of their name.
pub(super) struct People(HashMap<String, HashSet<String>>);

impl People {
    pub(super) fn of(said: &[Statement]) -> Self {
        let mut people = Self(HashMap::new());
        for statement in said {
            let speaks = ["user", "assistant", "system", "tool"].contains(&statement.who.as_str());
            if !speaks {
                people.add(&statement.who);
            }
            if statement.commits {
                let low = statement.text.to_lowercase();
                let named = names(&statement.text).into_iter();
                let doing = named.filter(|name| takes_on(&low, &name.to_lowercase()));
                doing.for_each(|name| people.add(&name));
            }
        }
        people
    }

    fn add(&mut self, name: &str) {
        let first = first_word(name).unwrap_or_default();
        self.0.entry(first).or_default().insert(name.to_owned());
    }

    /// People whose name may stand in the line: only these are looked for, since a long
    /// conversation may name as many people as it has messages.
    fn candidates(&self, line: &str) -> impl Iterator<Item = &String> {
        let low = padded(line);
        let words = low.split(' ').map(bare);
        // A name without a word of Latin letters may stand anywhere in the line.
        let words: HashSet<&str> = words.chain([""]).collect();
        let found: Vec<&HashSet<String>> = words.iter().filter_map(|w| self.0.get(*w)).collect();
        found.into_iter().flatten()
    }
}

fn bare(word: &str) -> &str {
    let word = word.strip_suffix("'s").unwrap_or(word);
    word.trim_matches('\'')
}

/// The first word of a name in small letters; `None` for scripts without spaces between words.
fn first_word(name: &str) -> Option<String> {
    let low = padded(name);
    let first = low.split(' ').map(bare).find(|word| !word.is_empty())?;
    let spaced = first.chars().all(|c| c < '\u{3000}');
    spaced.then(|| first.to_owned())
}

/// Whether a name stands where somebody stands who does something.
fn takes_on(low: &str, name: &str) -> bool {
    const DOES: [&str; 21] = [
        "will ",
        "takes ",
        "take ",
        "owns ",
        "own ",
        "is going ",
        "is responsible",
        "is on ",
        "volunteer",
        "can ",
        "leads ",
        "handles ",
        "drives ",
        "runs ",
        "has ",
        "said ",
        "agreed ",
        "works ",
        "looks ",
        "sẽ ",
        "さん",
    ];
    const GETS: [&str; 12] = [
        "goes to ",
        "assigned it to ",
        "assigned to ",
        "handed to ",
        "give it to ",
        "owner: ",
        "responsible: ",
        "asked ",
        "put ",
        "tell ",
        "giao cho ",
        "担当は",
    ];
    low.match_indices(name).any(|(at, _)| {
        let after = low.get(at + name.len()..).unwrap_or_default().trim_start();
        let before = low.get(..at).unwrap_or_default();
        DOES.iter().any(|word| after.starts_with(word))
            || GETS.iter().any(|word| before.ends_with(word))
    })
}

/// The person who takes a decision on, if one is named with it.
fn owner_of(decision: &Statement, people: &People) -> Option<String> {
    let mut found: Vec<&String> = Vec::new();
    let line = decision.line();
    for person in people.candidates(&line) {
        let commits = takes_on(&line.to_lowercase(), &person.to_lowercase())
            || line.contains(&format!("({person}: "));
        if commits {
            found.push(person);
        }
    }
    // The longest name first: "Nguyễn An" rather than "An".
    found.sort_by_key(|name| (std::cmp::Reverse(name.len()), (*name).clone()));
    found.first().map(|name| (*name).clone())
}

/// The owner of a decision: the name if it was recognised, otherwise the words about the owner.
pub(super) fn inheritance(decision: &Statement, people: &People) -> Option<String> {
    if let Some(owner) = owner_of(decision, people) {
        return Some(format!("(owner: {owner})"));
    }
    let named = |text: &&str| {
        let low = padded(text);
        let is_value = [" it ", " that ", " this "]
            .iter()
            .any(|word| low.starts_with(word));
        !is_value && refers_back(&low) && !names(text).is_empty()
    };
    let joined = decision.joined.iter().map(String::as_str);
    let parts = decision.text.split("; ").skip(1);
    let words = joined.chain(parts).find(named)?;
    let words = words.trim_start_matches('(').trim_end_matches([')', '.']);
    Some(format!("({words})"))
}
