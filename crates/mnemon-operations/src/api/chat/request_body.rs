//! Messages as the body of a request to a provider of chat models.

use mnemon_core::Message;
use mnemon_core::format::{Anthropic, OpenAi, Unseen};
use mnemon_engine::longterm::Tool;
use serde_json::{Map, Value, json};

/// The provider that the body is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// The body of POST /v1/chat/completions
    #[value(name = "openai")]
    OpenAi,
    /// The body of POST /v1/messages
    Anthropic,
}

/// Tokens of an answer that Anthropic's API is asked for; it wants a number.
const ANSWER_TOKENS: u32 = 4096;
/// The API wants the user to speak first; a compressed window may begin with a summary.
const OPENING: &str = "Our conversation begins with a summary of its older part.";

/// A body, and what the format has no place for.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestBody {
    pub body: Value,
    pub unseen: Vec<Unseen>,
}

impl RequestBody {
    /// The body for these messages. Without a model the field `model` is left out.
    pub fn new(format: Format, messages: &[Message], tools: &[Tool], model: Option<&str>) -> Self {
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
        if let Some(model) = model {
            set("model", json!(model));
        }
        let unseen = match format {
            Format::OpenAi => {
                let made = OpenAi::of(messages);
                set("messages", json!(made.messages));
                made.unseen
            }
            Format::Anthropic => {
                let mut made = Anthropic::of(messages);
                if made
                    .messages
                    .first()
                    .is_some_and(|first| first["role"] == "assistant")
                {
                    let opening =
                        json!({"role": "user", "content": [{"type": "text", "text": OPENING}]});
                    made.messages.insert(0, opening);
                }
                set("max_tokens", json!(ANSWER_TOKENS));
                if !made.system.is_empty() {
                    set("system", json!(made.system));
                }
                set("messages", json!(made.messages));
                made.unseen
            }
        };
        if !tools.is_empty() {
            let tools = tools.iter().map(|tool| described(format, tool));
            set("tools", tools.collect());
        }
        Self {
            body: Value::Object(body),
            unseen,
        }
    }
}

fn described(format: Format, tool: &Tool) -> Value {
    let (name, about, schema) = (&tool.name, &tool.description, &tool.parameters);
    match format {
        Format::OpenAi => json!({
            "type": "function",
            "function": {"name": name, "description": about, "parameters": schema},
        }),
        Format::Anthropic => json!({
            "name": name, "description": about, "input_schema": schema,
        }),
    }
}
