//! `mnemon context`

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mnemon_core::budget::{Family, Form, LeftOut, Section, Why};
use mnemon_core::{Invalid, limits};

use super::door::Door;
use super::out::{error_line, table_lines};
use super::{input, text};
use crate::{Error, api};

/// Put together what a prompt needs to know, within a budget of tokens
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon context --user ann --session s1 --query \"where is the tea house\" --budget 2000\n  \
    mnemon context --user ann --session s1 --query tea --model gpt-4o --form xml --explain\n  \
    mnemon context --user ann --session s1 --task-type booking --form messages > prompt.json\n  \
    mnemon context --user ann --session s1 --query tea --floor documents=800 --ceiling turns=400\n\n\
    What is printed never has more tokens than the budget. docs/context.md says how they are \
    counted and how it is decided what goes in.")]
pub(super) struct Args {
    /// Whose profile and knowledge
    #[arg(long, value_name = "NAME")]
    user: String,
    /// The conversation
    #[arg(long, value_name = "NAME")]
    session: String,
    /// The agent that asks
    #[arg(long, value_name = "NAME", default_value = "cli")]
    agent: String,
    /// The flow, whose policy then holds
    #[arg(long, value_name = "NAME")]
    flow: Option<String>,
    /// The node of the flow
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// What facts, documents and skills are searched for; - reads it from stdin
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// The type of task, for skills
    #[arg(long, value_name = "NAME")]
    task_type: Option<String>,
    /// Tokens, from 1 to 2000000
    #[arg(long, value_name = "N", default_value_t = api::context::BUDGET, value_parser = budget)]
    budget: usize,
    /// The model that will read it, or a family: o200k, cl100k, any, bytes
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// How it is written
    #[arg(long, value_parser = form(), default_value = "markdown")]
    form: Form,
    /// Tokens that a section gets before sections compete, for example documents=800
    #[arg(long, value_name = "SECTION=N", value_parser = share)]
    floor: Vec<(Section, usize)>,
    /// Tokens that a section may have at the most
    #[arg(long, value_name = "SECTION=N", value_parser = share)]
    ceiling: Vec<(Section, usize)>,
    /// Say on stderr what was taken and what was left out
    #[arg(long)]
    explain: bool,
}

fn budget(text: &str) -> Result<usize, String> {
    let most = limits::CONTEXT_TOKENS;
    match text.parse() {
        Ok(tokens) if (1..=most).contains(&tokens) => Ok(tokens),
        _ => Err(format!("write a number of tokens from 1 to {most}")),
    }
}

fn form() -> impl TypedValueParser<Value = Form> {
    PossibleValuesParser::new(Form::ALL.iter().map(|form| form.as_str()))
        .try_map(|word| word.parse::<Form>())
}

fn share(text: &str) -> Result<(Section, usize), String> {
    let Some((section, tokens)) = text.split_once('=') else {
        return Err("write SECTION=N, for example documents=800".to_owned());
    };
    let section = section
        .parse()
        .map_err(|wrong: Invalid| wrong.to_string())?;
    let tokens = tokens
        .parse()
        .map_err(|_| format!("`{tokens}` is not a number of tokens"))?;
    Ok((section, tokens))
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let query = args.query.as_deref().map(input::given).transpose()?;
    let request = api::context::Request {
        user: args.user,
        session: args.session,
        agent: args.agent,
        flow: args.flow,
        node: args.node,
        query,
        task_type: args.task_type,
        budget: args.budget,
        model: args.model.clone(),
        form: args.form,
        floors: args.floor.into_iter().collect(),
        ceilings: args.ceiling.into_iter().collect(),
        also_known: true,
    };
    let made = api::context::run(&door.memory_with_files().await?, &door.ctx()?, request).await?;
    if let Some(needs) = made.needs {
        let budget = args.budget;
        door.out.note(&format!(
            "nothing fits into {budget} tokens; the first thing does with --budget {needs}"
        ));
    }
    return_json!(door, &made);
    door.out.bytes(made.context.compiled.text.as_bytes())?;
    if args.explain {
        door.out.flush()?;
        explain(&made, args.model.as_deref(), door.out.width);
    }
    Ok(())
}

/// Left-out records that are named; the JSON answer names them all.
const NAMED: usize = 20;

fn explain(made: &api::context::Response, model: Option<&str>, width: usize) {
    let compiled = &made.context.compiled;
    let counted = match compiled.family {
        Family::Any => "counted by a bound for any model",
        Family::Bytes => "a token counted for every byte",
        _ => "counted exactly",
    };
    let (tokens, budget, family) = (compiled.tokens, compiled.budget, compiled.family);
    error_line(format!("{tokens} of {budget} tokens, {counted} ({family})"));
    if let (Some(false), Some(model)) = (made.model_known, model) {
        let model = text::one_line(model);
        error_line(format!(
            "the model `{model}` is not known: the bound is used instead"
        ));
    }
    let rows = compiled.sections.iter().map(|report| {
        let ceiling = report
            .ceiling
            .map_or("-".to_owned(), |tokens| tokens.to_string());
        vec![
            report.section.to_string(),
            report.taken.to_string(),
            report.left_out.to_string(),
            report.tokens.to_string(),
            report.floor.to_string(),
            ceiling,
        ]
    });
    let header = ["SECTION", "TAKEN", "LEFT OUT", "TOKENS", "FLOOR", "CEILING"];
    for line in table_lines(&header, rows.collect()) {
        error_line(line);
    }
    for silent in &made.context.silent {
        error_line(format!("{}: {}", silent.scope, text::one_line(&silent.why)));
    }
    for left in compiled.left_out.iter().take(NAMED) {
        error_line(text::cut(&left_line(left), width));
    }
    if let Some(more) = compiled.left_out.len().checked_sub(NAMED + 1) {
        error_line(format!("and {} more", more + 1));
    }
}

fn left_line(left: &LeftOut) -> String {
    let why = match &left.why {
        Why::NoRoom => "no room".to_owned(),
        Why::Ceiling => "ceiling".to_owned(),
        Why::OlderTurn => "older than a turn that did not fit".to_owned(),
        Why::Duplicate { of } => format!("says what {of} says"),
        Why::Empty => "empty".to_owned(),
    };
    let LeftOut {
        id,
        section,
        summary,
        tokens,
        ..
    } = left;
    format!("left out {id} ({section}, {tokens} tokens, {why}): {summary}")
}
