//! OpenAI's `/chat/completions`, as OpenAI, vLLM, Ollama, llama.cpp, LM Studio and others speak it.

use mnemon_core::llm::Prompt;
use serde_json::{Value, json};

use super::plain::{Turn, turns};
use super::structured;
use super::wire::{Quirks, Reply, tokens};

pub(super) fn request(model: &str, prompt: &Prompt, quirks: &Quirks) -> Value {
    let (system, turns) = turns(prompt);
    let system = system.map(|text| json!({"role": "system", "content": text}));
    let said = turns.into_iter().map(|turn| match turn {
        Turn::User(text) => json!({"role": "user", "content": text}),
        Turn::Model(text) => json!({"role": "assistant", "content": text}),
    });
    let messages: Vec<Value> = system.into_iter().chain(said).collect();
    let mut body = json!({"model": model, "messages": messages, "stream": false});
    let limit = match quirks.new_limit() {
        true => "max_completion_tokens",
        false => "max_tokens",
    };
    body[limit] = json!(prompt.max_tokens);
    if let Some(schema) = prompt.schema.as_ref().filter(|_| !quirks.no_format()) {
        body["response_format"] = json!({
            "type": "json_schema",
            "json_schema": {"name": structured::NAME, "schema": schema},
        });
    }
    body
}

pub(super) fn read(answer: &Value) -> Result<Reply, String> {
    let message = answer.pointer("/choices/0/message");
    let message = message.ok_or("it has no choices[0].message")?;
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
        return Err(format!("it declined: {refusal}"));
    }
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        // Some servers answer in parts.
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        _ => return Err("its message has no text".to_owned()),
    };
    Ok(Reply {
        text,
        tokens: tokens(answer, "prompt_tokens", "completion_tokens"),
    })
}
