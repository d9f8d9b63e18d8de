//! `mnemon context`

use mnemon_core::budget::{Family, LeftOut, Why};

use super::door::Door;
use super::out::{error_line, table_lines};
use super::shared::{Shared, call_with_files};
use super::text;
use mnemon_operations::operation::Context;
use mnemon_operations::{Error, api};

/// Build the context for a prompt within a token budget
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon context --user ann --session s1 --query \"where is the tea house\" --budget 2000\n  \
    mnemon context --user ann --session s1 --query tea --model gpt-4o --form xml --explain\n  \
    mnemon context --user ann --session s1 --task-type booking --form messages > prompt.json\n  \
    mnemon context --user ann --session s1 --query tea --floor documents=800 --ceiling turns=400\n\n\
    The output never has more tokens than the budget. docs/context.md describes how tokens are \
    counted and how records are selected.")]
pub(super) struct Args {
    #[command(flatten)]
    about: Shared<Context>,
    /// Print on stderr which records were included and which were left out
    #[arg(long)]
    explain: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let about = args.about.arguments()?;
    let model = about.text("model");
    let made = call_with_files::<Context>(about, door).await?;
    if let Some(needs) = made.needs {
        let budget = made.context.compiled.budget;
        door.out.note(&format!(
            "nothing fits into {budget} tokens; the first item needs --budget {needs}"
        ));
    }
    return_json!(door, &made);
    door.out.bytes(made.context.compiled.text.as_bytes())?;
    if args.explain {
        door.out.flush()?;
        explain(&made, model.as_deref(), door.out.width);
    }
    Ok(())
}

/// Left-out records that are named; the JSON answer names them all.
const NAMED: usize = 20;

fn explain(made: &api::context::Response, model: Option<&str>, width: usize) {
    let compiled = &made.context.compiled;
    let counted = match compiled.family {
        Family::Any => "counted with an upper bound for any model",
        Family::Bytes => "counted as one token per byte",
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
        Why::Duplicate { of } => format!("same content as {of}"),
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
