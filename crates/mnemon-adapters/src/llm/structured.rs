//! Answers in JSON: asked for, found among other words, checked, and asked for once more.

use mnemon_core::json::Schema;
use mnemon_core::llm::Prompt;
use mnemon_core::{Message, Role};
use serde_json::Value;

/// What the schema is called where it must have a name.
pub(super) const NAME: &str = "answer";
/// Characters of a wrong answer that are shown to the model again.
const SHOWN: usize = 4000;

/// What a model is told about the form of its answer.
pub(super) fn instruction(schema: &Value) -> String {
    format!("Answer with JSON alone, with no other words, that fits this JSON schema:\n{schema}")
}

/// The JSON in an answer, if it fits; otherwise what is wrong, in words for the model.
pub(super) fn fit(text: &str, schema: &Schema) -> Result<String, String> {
    let value = find(text).ok_or("it is not JSON")?;
    match schema.check(NAME, &value) {
        Ok(()) => Ok(value.to_string()),
        Err(invalid) => Err(invalid.to_string()),
    }
}

/// The prompt again, with what came of it and what is wrong with that.
pub(super) fn again(prompt: &Prompt, answer: &str, wrong: &str) -> Prompt {
    let mut prompt = prompt.clone();
    let shown: String = answer.chars().take(SHOWN).collect();
    let ask = format!("This cannot be used: {wrong}. Answer again, with the right JSON alone.");
    let messages = [(Role::Assistant, shown), (Role::User, ask)];
    let messages = messages.map(|(role, text)| Message::text("repair", role, text));
    prompt.messages.extend(messages);
    prompt
}

/// An answer without what the model thought aloud before it.
pub(super) fn without_thoughts(text: &str) -> &str {
    let text = text.trim();
    match text.strip_prefix("<think>") {
        Some(rest) => rest.split_once("</think>").map_or("", |(_, said)| said),
        None => text,
    }
    .trim()
}

/// The JSON of an answer: all of it, what stands in a fence, or what stands between the first
/// bracket and the last.
fn find(text: &str) -> Option<Value> {
    let parse = |text: &str| serde_json::from_str(text.trim()).ok();
    parse(text)
        .or_else(|| {
            let (_, rest) = text.split_once("```")?;
            let (fenced, _) = rest.split_once("```")?;
            parse(fenced.strip_prefix("json").unwrap_or(fenced))
        })
        .or_else(|| {
            let start = text.find(['{', '['])?;
            let end = text.rfind(['}', ']'])?;
            parse(text.get(start..=end)?)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_among_words() {
        let schema = Schema::read(json!({"type": "object", "required": ["a"]})).unwrap();
        for text in [
            r#"{"a": 1}"#,
            "```json\n{\"a\": 1}\n```",
            "Here it is:\n```\n{\"a\":1}\n```\nAnything else?",
            "Sure! {\"a\": 1} is what you want.",
        ] {
            assert_eq!(fit(text, &schema).unwrap(), r#"{"a":1}"#, "{text}");
        }
        for text in ["", "no", "{\"a\": ", "}{", "{\"b\": 1}", "```"] {
            assert!(fit(text, &schema).is_err(), "{text}");
        }
    }

    #[test]
    fn thoughts_are_left_out() {
        assert_eq!(without_thoughts("<think>hm</think>\n yes "), "yes");
        assert_eq!(without_thoughts("<think>hm, and no end"), "");
        assert_eq!(without_thoughts(" yes <think>"), "yes <think>");
    }
}
