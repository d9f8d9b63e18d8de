//! Anthropic's `/v1/messages`.

use mnemon_core::llm::Prompt;
use serde_json::{Value, json};

use super::plain::{Turn, turns};
use super::wire::{Reply, tokens};

/// The version of the interface that is spoken here.
pub(super) const VERSION: &str = "2023-06-01";

pub(super) fn request(model: &str, prompt: &Prompt) -> Value {
    let (system, turns) = turns(prompt);
    let messages = turns.into_iter().map(|turn| match turn {
        Turn::User(text) => json!({"role": "user", "content": text}),
        Turn::Model(text) => json!({"role": "assistant", "content": text}),
    });
    let mut body = json!({
        "model": model,
        "max_tokens": prompt.max_tokens,
        "messages": messages.collect::<Vec<_>>(),
    });
    if let Some(system) = system {
        body["system"] = json!(system);
    }
    body
}

pub(super) fn read(answer: &Value) -> Result<Reply, String> {
    let blocks = answer.get("content").and_then(Value::as_array);
    let blocks = blocks.ok_or("it has no content")?;
    if answer.get("stop_reason").and_then(Value::as_str) == Some("refusal") {
        return Err("it declined".to_owned());
    }
    let texts = blocks.iter().filter(|block| block["type"] == "text");
    Ok(Reply {
        text: texts.filter_map(|block| block["text"].as_str()).collect(),
        tokens: tokens(answer, "input_tokens", "output_tokens").map(|(input, output)| {
            // What came out of a cache, or went into one, was read as well.
            let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
            let cached = cached
                .iter()
                .filter_map(|name| answer["usage"][*name].as_u64());
            (input.saturating_add(cached.sum()), output)
        }),
    })
}
