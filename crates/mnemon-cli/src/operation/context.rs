//! The operation that puts together what a prompt needs to know.

use mnemon_core::budget::{Form, Section};
use mnemon_core::{Invalid, limits};
use serde_json::{Map, Value};

use super::{Access, Arguments, Field, Interface, Operation};
use crate::{Error, api};

/// A query, in characters.
pub(super) const QUERY: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Context;

impl Operation for Context {
    const COMMAND: &'static str = "context";
    const TOOL: &'static str = "memory_context";
    type Answer = api::context::Response;

    fn fields() -> Vec<Field> {
        let name = |name, about| Field::text(name, limits::NAME_CHARS, about).value("NAME");
        let terminal = |field: Field| field.only(Interface::CommandLine);
        let most = limits::CONTEXT_TOKENS as u64;
        let query = "The task: selects facts, documents and skills";
        let floor = "Tokens reserved for a section: documents=800";
        let model = "The model that will read it, or o200k, cl100k, any, bytes";
        let forms = Form::ALL.iter().map(|form| form.as_str());
        vec![
            Field::text("query", QUERY, query)
                .or(&["q", "text", "task", "topic"])
                .piped(),
            name("user", "User whose profile and knowledge are read")
                .or(&["user_id"])
                .lenient()
                .rare(),
            name("session", "The conversation").or(&["session_id", "conversation"]),
            name("agent", "The agent that calls").rare(),
            terminal(name("flow", "The flow; its policy applies")),
            terminal(name("node", "The node of the flow")),
            Field::text(
                "task_type",
                limits::TASK_TYPE_CHARS,
                "The type of task, for skills",
            )
            .value("NAME")
            .rare(),
            Field::whole("budget", 1, most, "Maximum number of tokens")
                .default("2000")
                .or(&["max_tokens", "token_budget", "tokens"]),
            terminal(name("model", model)),
            terminal(Field::one_of("form", forms, "Output format").default("markdown")),
            terminal(
                Field::object("floors", floor)
                    .option("floor")
                    .value("SECTION=N"),
            ),
            terminal(
                Field::object("ceilings", "Maximum number of tokens of a section")
                    .option("ceiling")
                    .value("SECTION=N"),
            ),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        for name in ["floors", "ceilings"] {
            if let Some(Value::Object(shares)) = arguments.take(name) {
                arguments.set(name, shares_of(name, shares)?);
            }
        }
        let user = access.user.unwrap_or(super::USER);
        for (name, usual) in [("user", user), ("session", super::USER), ("agent", "cli")] {
            if !arguments.has(name) {
                arguments.set(name, usual);
            }
        }
        api::context::run(access.memory, access.ctx, arguments.read()?).await
    }
}

/// Tokens of sections, which the command line gives as texts.
fn shares_of(name: &str, shares: Map<String, Value>) -> Result<Map<String, Value>, Invalid> {
    let shares = shares.into_iter().map(|(section, tokens)| {
        let known = section.parse::<Section>();
        known.map_err(|wrong| Invalid::new(name, wrong.what))?;
        let tokens = tokens.as_str().unwrap_or_default();
        let wrong = || Invalid::new(name, format!("`{tokens}` is not a number of tokens"));
        let number: usize = tokens.parse().map_err(|_| wrong())?;
        Ok((section, number.into()))
    });
    shares.collect()
}
