//! The operation that puts together what a prompt needs to know.

use std::collections::BTreeMap;

use mnemon_core::budget::{Form, Section};
use mnemon_core::{Invalid, limits};
use mnemon_engine::{ContextQuery, MemoryQuery};

use super::{Access, Arguments, Context, Field, Interface, Operation, USER};
use crate::{Error, api};

/// A query, in characters.
pub(super) const QUERY: usize = 10_000;

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
            super::notes::user("User whose profile and knowledge are read"),
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

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Self::Answer, Error> {
        let text = |name: &str| arguments.text(name);
        let named = |name: &str, usual: &str| text(name).unwrap_or_else(|| usual.to_owned());
        let user = named("user", access.user.unwrap_or(USER));
        let (session, agent) = (named("session", USER), named("agent", "cli"));
        let about = MemoryQuery {
            flow_id: text("flow"),
            node_id: text("node"),
            query: text("query"),
            task_type: text("task_type"),
            ..MemoryQuery::new(user, session, agent, &[])
        };
        let budget = arguments.whole("budget").unwrap_or(api::context::BUDGET);
        let usual = ContextQuery::new(about, budget);
        let form = text("form").map(|word| word.parse());
        let query = ContextQuery {
            form: form.transpose()?.unwrap_or(usual.form),
            floors: shares(&arguments, "floors")?,
            ceilings: shares(&arguments, "ceilings")?,
            ..usual
        };
        let model = text("model");
        api::context::run(access.memory, access.ctx, query, model.as_deref()).await
    }
}

/// Tokens of sections, which the command line gives as texts.
fn shares(arguments: &Arguments, name: &str) -> Result<BTreeMap<Section, usize>, Invalid> {
    let shares = arguments.object(name).into_iter().flatten();
    let shares = shares.map(|(section, tokens)| {
        let section = section.parse();
        let section = section.map_err(|wrong: Invalid| Invalid::new(name, wrong.what))?;
        let tokens = tokens.as_str().unwrap_or_default();
        let wrong = |_| Invalid::new(name, format!("`{tokens}` is not a number of tokens"));
        Ok((section, tokens.parse().map_err(wrong)?))
    });
    shares.collect()
}
