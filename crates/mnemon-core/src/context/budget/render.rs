//! How a context is written: Markdown, XML, or chat messages.
//!
//! Whatever was remembered stays inside its item. In Markdown every line of it is quoted with `> `,
//! so no heading, fence or list of it stands at the beginning of a line; in XML `<`, `>` and `&`
//! are written as entities; in messages JSON does it, and the text of a turn that was a tool's or
//! the system's comes back quoted in the role of the user: memory gives no authority. Summaries of
//! left-out items are remembered text like any other.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Counter, Form, Material, Section};
use crate::context::recall_marks;
use crate::model::{Id, Role};

/// What a chat model adds to every message, its role included.
pub const MESSAGE_TOKENS: usize = 4;
/// What a chat model adds once, to begin its answer.
pub const REPLY_TOKENS: usize = 3;

/// A message as chat models take it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    pub role: String,
    pub content: String,
}

/// A text before and after others.
pub(super) type Around = (String, String);

/// What stands around everything. Messages have it around each half.
pub(super) fn frame(form: Form) -> Around {
    match form {
        Form::Markdown => (
            format!("# Memory\n\n{}\n", recall_marks::ABOVE),
            String::new(),
        ),
        Form::Xml | Form::Messages => (
            format!("{}\n", recall_marks::OPEN),
            format!("{}\n", recall_marks::CLOSE),
        ),
    }
}

/// What stands around a section.
pub(super) fn heading(form: Form, section: Section) -> Around {
    around(form, section.as_str())
}

/// What stands around the list of what was left out.
pub(super) fn tail_heading(form: Form) -> Around {
    match form {
        Form::Markdown => ("\n## Also known\n".to_owned(), String::new()),
        Form::Xml | Form::Messages => around(form, "also_known"),
    }
}

fn around(form: Form, name: &str) -> Around {
    match form {
        Form::Markdown => {
            let mut letters = name.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase());
            let title: String = first.into_iter().chain(letters).collect();
            (format!("\n## {title}\n"), String::new())
        }
        Form::Xml | Form::Messages => (format!("<{name}>\n"), format!("</{name}>\n")),
    }
}

/// One item, its text contained.
pub(super) fn item(form: Form, material: &Material, text: &str, is_cut: bool) -> String {
    match form {
        Form::Markdown => markdown_item(material, text, is_cut),
        Form::Xml | Form::Messages => xml_item(material, text, is_cut),
    }
}

fn markdown_item(material: &Material, text: &str, is_cut: bool) -> String {
    let id = &material.id;
    let mut out = format!("\n[{id}]");
    if material.section == Section::Turns {
        let _ = write!(out, " {}", role_word(material.role));
    }
    let from = (material.external.as_deref(), material.file.as_deref());
    let _ = match (from.0.map(name_word), from.1.map(name_word)) {
        (Some(name), _) => write!(out, " (from the external source {name})"),
        (None, Some(word)) if word.is_empty() => write!(out, " (from a file)"),
        (None, Some(word)) => write!(out, " (from the file {word})"),
        (None, None) => Ok(()),
    };
    if is_cut {
        let _ = write!(out, " (cut; the rest is in {})", rest_of(material));
    }
    out.push('\n');
    out.push_str(&quoted(&plain(text)));
    out
}

/// Every line with `> ` before it. The text is a [`plain`] one.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split('\n') {
        out.push_str(if line.is_empty() { ">" } else { "> " });
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn xml_item(material: &Material, text: &str, is_cut: bool) -> String {
    let id = escape(material.id.as_str());
    let (tag, role) = match material.section {
        Section::Turns => ("turn", format!(" role=\"{}\"", role_word(material.role))),
        _ => ("item", String::new()),
    };
    let cut = match is_cut {
        true => format!(" cut=\"the rest is in {}\"", escape(&rest_of(material))),
        false => String::new(),
    };
    let from = (material.external.as_deref(), material.file.as_deref());
    let from = match (from.0.map(name_word), from.1.map(name_word)) {
        (Some(name), _) => format!(" external=\"{name}\""),
        (None, Some(word)) if word.is_empty() => " origin=\"file\"".to_owned(),
        (None, Some(word)) => format!(" file=\"{word}\""),
        (None, None) => String::new(),
    };
    let text = escape(&plain(text));
    format!("<{tag} id=\"{id}\"{role}{from}{cut}>{text}</{tag}>\n")
}

/// A line of the list of what was left out.
pub(super) fn tail_line(form: Form, id: &Id, summary: &str) -> String {
    match form {
        Form::Markdown => format!("\n[{id}]\n{}", quoted(summary)),
        Form::Xml | Form::Messages => {
            let (id, summary) = (escape(id.as_str()), escape(summary));
            format!("<item id=\"{id}\">{summary}</item>\n")
        }
    }
}

/// A turn as a message of its own.
pub(super) fn turn_message(material: &Material, text: &str, is_cut: bool) -> ChatMessage {
    let text = plain(text);
    let mut content = match material.role {
        // A tool's answer needs the call it answers, and nobody is the system for having been
        // remembered as such.
        Some(role @ (Role::Tool | Role::System)) => {
            format!("[{}]\n{}", role_word(Some(role)), quoted(&text).trim_end())
        }
        _ => text,
    };
    if is_cut {
        let _ = write!(content, "\n[cut; the rest is in {}]", rest_of(material));
    }
    let role = match material.role {
        Some(Role::Assistant) => "assistant",
        _ => "user",
    };
    ChatMessage {
        role: role.to_owned(),
        content,
    }
}

/// Where a reader finds the whole of a text that was cut.
fn rest_of(material: &Material) -> String {
    match &material.external {
        Some(_) => "the external source".to_owned(),
        None => format!("record {}", material.id),
    }
}

/// Characters of the name of a file or source that are shown.
const NAME_CHARS: usize = 120;

/// The name of a file or source stands outside the quoted text, so that it must not be able to say anything: no
/// spaces, no quotes, nothing that begins or ends a mark.
fn name_word(name: &str) -> String {
    let letters = name.chars().take(NAME_CHARS).map(|c| match c {
        c if c.is_alphanumeric() || "._-/".contains(c) => c,
        _ => '_',
    });
    letters.collect()
}

fn role_word(role: Option<Role>) -> &'static str {
    match role {
        None | Some(Role::User) => "user",
        Some(Role::Assistant) => "assistant",
        Some(Role::System) => "system",
        Some(Role::Tool) => "tool",
    }
}

/// The text with one kind of line break and without signs that act instead of being read.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.trim_end().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\t' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// The text as it stands within a JSON string.
pub(super) fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inner = quoted.strip_prefix('"').and_then(|s| s.strip_suffix('"'));
    inner.map(str::to_owned).unwrap_or(quoted)
}

/// The messages as they are sent.
pub(super) fn json(messages: &[ChatMessage]) -> String {
    let messages = messages.iter().map(|message| {
        let (role, content) = (in_json(&message.role), in_json(&message.content));
        format!("{{\"role\":\"{role}\",\"content\":\"{content}\"}}")
    });
    let messages: Vec<String> = messages.collect();
    format!("[{}]", messages.join(","))
}

/// The tokens of what is sent. No message at all is nothing.
pub(super) fn measure(
    text: &str,
    messages: Option<&[ChatMessage]>,
    counter: &dyn Counter,
) -> usize {
    let Some(messages) = messages else {
        return counter.count(text);
    };
    if messages.is_empty() {
        return 0;
    }
    // Whether a model is billed for the JSON or for what is in it: the larger of the two.
    let contents = messages
        .iter()
        .map(|message| counter.count(&message.content));
    let written = counter.count(text).max(contents.sum());
    written + messages.len() * MESSAGE_TOKENS + REPLY_TOKENS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_a_file_is_marked_and_the_name_of_the_file_says_nothing() {
        let id: Id = "d1".parse().unwrap();
        let mut material = Material::new(Section::Facts, id, "tea");
        assert_eq!(
            item(Form::Markdown, &material, "tea", false),
            "\n[d1]\n> tea\n"
        );
        for (file, markdown, xml) in [
            ("", "(from a file)", "origin=\"file\""),
            ("a/b-1.md", "(from the file a/b-1.md)", "file=\"a/b-1.md\""),
            (
                "x)\n# Do \"it\"<",
                "(from the file x____Do__it__)",
                "file=\"x____Do__it__\"",
            ),
        ] {
            material.file = Some(file.to_owned());
            let shown = item(Form::Markdown, &material, "tea", false);
            assert!(
                shown.starts_with(&format!("\n[d1] {markdown}\n> tea")),
                "{shown}"
            );
            let shown = item(Form::Xml, &material, "tea", false);
            assert!(
                shown.starts_with(&format!("<item id=\"d1\" {xml}>tea")),
                "{shown}"
            );
        }
    }

    #[test]
    fn text_of_an_external_source_is_marked_with_its_name() {
        let id: Id = "d1".parse().unwrap();
        let material = Material {
            file: Some("a.md".to_owned()),
            external: Some("wi)ki".to_owned()),
            ..Material::new(Section::Skills, id, "tea")
        };
        let shown = item(Form::Markdown, &material, "tea", false);
        let expected = "\n[d1] (from the external source wi_ki)\n> tea\n";
        assert_eq!(shown, expected);
        let shown = item(Form::Xml, &material, "tea", false);
        assert_eq!(shown, "<item id=\"d1\" external=\"wi_ki\">tea</item>\n");
        let shown = item(Form::Markdown, &material, "tea", true);
        assert!(
            shown.contains("the rest is in the external source"),
            "{shown}"
        );
    }

    #[test]
    fn json_is_what_a_parser_reads() {
        let messages = vec![
            ChatMessage {
                role: "system".to_owned(),
                content: "a \"b\" \\ \n\t\u{1} ữ 😀 </x>".to_owned(),
            },
            ChatMessage {
                role: "user".to_owned(),
                content: String::new(),
            },
        ];
        let text = json(&messages);
        assert_eq!(text, serde_json::to_string(&messages).unwrap());
        assert_eq!(json(&[]), "[]");
    }

    #[test]
    fn signs_that_act_are_made_harmless() {
        assert_eq!(
            plain("a\r\nb\rc\u{2028}d\u{1b}[2J\u{202e}e\t\n\n"),
            "a\nb\nc\nd\u{fffd}[2J\u{fffd}e"
        );
    }
}
