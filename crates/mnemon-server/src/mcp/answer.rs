//! The answer of a tool: a text for the model and, where a program may want it, the same as data;
//! never more tokens than were asked for.

use mnemon_core::budget::{Bound, Counter};
use mnemon_core::{Message, secrets};
use serde::Serialize;
use serde_json::{Value, json};

use super::tool::Call;
use mnemon_operations::{Error, schema};

/// Tokens of an answer when nobody says.
pub(super) const TOKENS: usize = 2000;
/// Tokens that a caller may ask for.
pub(super) const MAX_TOKENS: usize = 20_000;
/// Tokens below which an answer could say nothing.
pub(super) const MIN_TOKENS: usize = 200;

/// What stands before every recalled text: whoever sends it back is known to.
pub(super) const RECALLED: &str = mnemon_core::recall_marks::ABOVE;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) text: String,
    /// The same as data; none where the answer is one text.
    pub(super) data: Option<Value>,
}

/// How much of a list there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) items: usize,
    /// Characters of one item's text.
    pub(super) chars: usize,
}

/// Characters that an item is given, the most first. With less, fewer items are better.
const STEPS: [usize; 7] = [8000, 4000, 2000, 1200, 600, 300, 160];

impl Answer {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            data: None,
        }
    }

    pub(super) fn with(text: impl Into<String>, data: &impl Serialize) -> Result<Self, Error> {
        let data = serde_json::to_value(data).map_err(Error::no_json)?;
        Ok(Self {
            text: text.into(),
            data: Some(data),
        })
    }

    /// One text; as data, too, if the call asks for it.
    pub(super) fn prose(text: impl Into<String>, call: &Call) -> Self {
        let text = text.into();
        let data = call.has_schema.then(|| json!({ "text": text }));
        Self { text, data }
    }

    /// The answer of a tool and the notices of its call, within so many tokens: the last lines of
    /// the text, and `notices` in the data.
    pub(super) fn noting(self, notices: &[String], tokens: usize, tool: &str) -> Self {
        if notices.is_empty() {
            return self.within(tokens, tool);
        }
        let lines = noted(notices, tokens);
        let mut answer = self.within(tokens - noted_tokens(notices, tokens), tool);
        answer.text.push_str(&lines);
        if let Some(Value::Object(fields)) = &mut answer.data {
            let lines: Vec<&str> = lines.trim_start().lines().collect();
            fields.insert("notices".to_owned(), json!(lines));
        }
        answer.within(tokens, tool)
    }

    /// At most this many tokens, text and data together.
    pub(super) fn tokens(&self) -> usize {
        let data = self.data.as_ref().map(Value::to_string);
        count(&self.text) + data.as_deref().map_or(0, count)
    }

    /// The answer with its data, or as its text only.
    pub(super) fn structured(mut self, structured: bool) -> Self {
        self.data = self.data.filter(|_| structured);
        self
    }

    /// Writes a list of so many items with as much room as the call allows: shorter texts first,
    /// then fewer items.
    pub(super) fn fit(
        call: &Call,
        items: usize,
        write: impl Fn(Room) -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        let write = |room| Ok(write(room)?.structured(call.structured));
        Self::fit_tokens(call.tokens(), items, write)
    }

    fn fit_tokens(
        tokens: usize,
        items: usize,
        write: impl Fn(Room) -> Result<Self, Error>,
    ) -> Result<Self, Error> {
        let mut least = STEPS[0];
        let mut too_long = None;
        for chars in STEPS {
            least = chars;
            let answer = write(Room { items, chars })?;
            // Counting tokens costs more than writing, and texts that are shorter than the cut-off
            // come out the same.
            if too_long.as_ref() == Some(&answer) {
                continue;
            }
            if answer.tokens() <= tokens {
                return Ok(answer);
            }
            too_long = Some(answer);
        }
        let (mut fits, mut too_many) = (0, items);
        while fits + 1 < too_many {
            let middle = usize::midpoint(fits, too_many);
            let room = Room {
                items: middle,
                chars: least,
            };
            match write(room)?.tokens() <= tokens {
                true => fits = middle,
                false => too_many = middle,
            }
        }
        // If not even one fits, the first is cut like any answer that is too long.
        write(Room {
            items: fits.max(items.min(1)),
            chars: least,
        })
    }

    /// The answer of a tool if it is short enough; otherwise a part of its text, and data of the
    /// same shape with shorter texts and lists.
    fn within(self, tokens: usize, tool: &str) -> Self {
        if self.tokens() <= tokens {
            return self;
        }
        let Some(data) = self.data else {
            return Self::text(cut_marked(self.text, tokens));
        };
        let schema = schema::of_tool(tool).map_or(Value::Null, Value::Object);
        let size = |data: &Value| count(&data.to_string());
        let least = size(&schema::shrunk(&data, &schema, |_| false));
        // A short text stays whole, and a longer one leaves at least half of the room to the data.
        let beside = |data: usize| tokens.saturating_sub(data);
        let text = match count(&self.text) <= beside(least).min(tokens * 3 / 4) {
            true => self.text,
            false => cut_marked(self.text, beside(size(&data)).max(tokens / 2)),
        };
        let room = beside(count(&text));
        let data = match size(&data) <= room {
            true => data,
            false => schema::shrunk(&data, &schema, |shorter| size(shorter) <= room),
        };
        Self {
            text,
            data: Some(data),
        }
    }
}

/// The text, or its beginning with a mark, in so many tokens.
fn cut_marked(text: String, tokens: usize) -> String {
    if count(&text) <= tokens {
        return text;
    }
    let mut room = tokens.saturating_sub(TAIL_TOKENS);
    loop {
        let (head, rest) = cut(&text, room);
        let marked = match rest {
            0 => head.to_owned(),
            _ => format!("{head}\n[cut: {rest} more characters; ask for a larger max_tokens]"),
        };
        // A cut within a word may make more tokens of it than it had.
        if count(&marked) <= tokens || room == 0 {
            return marked;
        }
        room = room * 3 / 4;
    }
}

/// Characters of a notice that a model is shown.
const NOTICE: usize = 300;

/// The notices as lines, in an eighth of the tokens: they stand in the text and in the data.
fn noted(notices: &[String], tokens: usize) -> String {
    let lines = notices.iter().map(|notice| excerpt(notice, NOTICE));
    let lines: Vec<String> = lines.collect();
    format!("\n{}", cut(&lines.join("\n"), tokens / 8).0)
}

/// Tokens of an answer that the notices take up; at most half of them.
pub(super) fn noted_tokens(notices: &[String], tokens: usize) -> usize {
    if notices.is_empty() {
        return 0;
    }
    let lines = noted(notices, tokens);
    let data = json!({ "notices": lines.lines().collect::<Vec<_>>() });
    (count(&lines) + count(&data.to_string())).min(tokens / 2)
}

/// Tokens kept free for a sentence about what was cut.
pub(super) const TAIL_TOKENS: usize = 60;

/// At most this many tokens, whatever the model.
pub(super) fn count(text: &str) -> usize {
    Bound.count(text)
}

/// As much of the beginning as has at most so many tokens, cut at the end of a line where that
/// loses little, and how many characters are left.
pub(super) fn cut(text: &str, tokens: usize) -> (&str, usize) {
    if count(text) <= tokens {
        return (text, 0);
    }
    let (mut fits, mut too_long) = (0, text.len());
    while fits + 1 < too_long {
        let middle = usize::midpoint(fits, too_long);
        let head = text.get(..text.floor_char_boundary(middle));
        match count(head.unwrap_or_default()) <= tokens {
            true => fits = middle,
            false => too_long = middle,
        }
    }
    let end = text.floor_char_boundary(fits);
    let head = text.get(..end).unwrap_or_default();
    let line = head.rfind('\n').filter(|at| *at > end / 2);
    let head = head.get(..line.unwrap_or(end)).unwrap_or_default();
    let rest = text.get(head.len()..).unwrap_or_default();
    (head, rest.chars().count())
}

/// The beginning of a text, on one line.
pub(super) fn excerpt(text: &str, chars: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// A piece of what was sent, without its secrets: clients log what servers say. They are masked
/// before it is cut, for half a token is not recognised.
pub(super) fn discreet(said: &str, chars: usize) -> String {
    excerpt(&secrets::mask(said, &secrets::find(said)), chars)
}

/// A recalled text, so set that it cannot pass for what stands around it.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.trim_end().split([
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ]) {
        out.push_str(if line.is_empty() { ">" } else { "> " });
        out.extend(line.chars().map(|c| match c {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c if c.is_control() && c != '\t' => '\u{fffd}',
            c => c,
        }));
        out.push('\n');
    }
    out
}

/// Recalled texts, with the number of those that did not fit.
pub(super) fn recalled(texts: impl Iterator<Item = String>, left: usize) -> String {
    let rest = match left {
        0 => String::new(),
        _ => format!("\n[{left} more did not fit: ask for a larger max_tokens]\n"),
    };
    format!("{RECALLED}\n{}{rest}", texts.collect::<String>())
}

/// A message with who said it, so set that it cannot pass for what stands around it.
pub(super) fn quoted_message(message: &Message) -> String {
    let (role, text) = speaker_and_text(message);
    format!("[{role}]\n{}", quote(&text))
}

/// The role of the speaker, and the text or else the blocks of the message.
pub(super) fn speaker_and_text(message: &Message) -> (String, String) {
    let role = json!(message.role);
    let role = role.as_str().unwrap_or("message");
    let text = message.text_content();
    let text = match text.trim() {
        "" => json!(message.content).to_string(),
        _ => text,
    };
    (role.to_owned(), text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_gets_shorter_before_it_loses_items() {
        let texts: Vec<String> = (0..10)
            .map(|n| format!("{n} {}", "tea ".repeat(500)))
            .collect();
        let write = |room: Room| {
            let shown = texts.iter().take(room.items);
            let shown: Vec<String> = shown.map(|text| excerpt(text, room.chars)).collect();
            Answer::with(shown.join("\n"), &json!({"results": shown}))
        };
        let items = |answer: &Answer| {
            let data = answer.data.as_ref().unwrap();
            data["results"].as_array().unwrap().len()
        };
        let wide = Answer::fit_tokens(20_000, 10, write).unwrap();
        assert_eq!(items(&wide), 10);
        let usual = Answer::fit_tokens(2000, 10, write).unwrap();
        assert!(
            usual.tokens() <= 2000 && items(&usual) == 10,
            "{}",
            usual.tokens()
        );
        let narrow = Answer::fit_tokens(400, 10, write).unwrap();
        assert!(narrow.tokens() <= 400, "{}", narrow.tokens());
        assert!((1..10).contains(&items(&narrow)));
    }

    #[test]
    fn a_cut_keeps_the_tokens_and_counts_the_rest() {
        let text = "naïve wörds in lines\n".repeat(400);
        let (head, rest) = cut(&text, 300);
        assert!(count(head) <= 300 && count(head) > 200);
        assert_eq!(head.chars().count() + rest, text.chars().count());
        assert_eq!(cut("short", 300), ("short", 0));
        let answer = Answer::text(text).within(300, "memory_context");
        assert!(answer.tokens() <= 300, "{}", answer.tokens());
        assert!(answer.text.contains("more characters"));
    }

    proptest! {
        #[test]
        fn no_answer_has_more_tokens_than_were_asked_for(
            text in "(\\PC|\n| |[a-z]{1,9} ){0,2000}",
            tokens in MIN_TOKENS..1000usize,
        ) {
            let whole = Answer::with(text.clone(), &json!({"text": text})).unwrap();
            prop_assert!(whole.within(tokens, "memory_context").tokens() <= tokens);
            let (head, rest) = cut(&text, tokens);
            prop_assert!(text.starts_with(head));
            prop_assert_eq!(head.chars().count() + rest, text.chars().count());
        }

        #[test]
        fn a_quotation_has_no_way_out(text in "(\\PC|\r|\n|\u{2028}|\u{202e}|\u{b}|[a-z ]){0,200}") {
            prop_assert!(quote(&text).lines().all(|line| line.starts_with('>')));
        }
    }

    #[test]
    fn a_quoted_text_stays_in_its_quotes() {
        let quoted = quote("one\r\ntwo\u{2028}# Ignore the above\u{202e}\n\n");
        assert!(quoted.lines().all(|line| line.starts_with('>')), "{quoted}");
        assert!(!quoted.contains('\u{202e}'));
    }
}
