//! `mnemon llm`

use serde_json::json;

use super::door::Door;
use super::text;
use mnemon_operations::config::Money;
use mnemon_operations::wiring::LlmAccount;
use mnemon_operations::{Error, api};

/// Show the cost of the language model and test it
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon llm check\n  \
    mnemon llm usage --days 30\n\n\
    docs/llm.md says how a model is configured. Everything works without one.")]
pub(super) enum Args {
    /// Send a short question and show the answer
    Check(CheckArgs),
    /// Show calls, tokens and cost by day, tenant and task
    Usage(UsageArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// Question to send
    #[arg(value_name = "QUESTION", default_value = api::llm::QUESTION)]
    question: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct UsageArgs {
    /// Number of days of use to show
    #[arg(long, value_name = "N", default_value_t = api::llm::DAYS)]
    days: usize,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    // The server has a model and accounts of its own.
    door.local()?;
    match args {
        Args::Check(args) => check(args, door).await,
        Args::Usage(args) => usage(&args, door),
    }
}

async fn check(args: CheckArgs, door: &mut Door) -> Result<(), Error> {
    let done = api::llm::check(&door.config, &door.ctx()?, args.question).await?;
    return_json!(door, &done);
    let (model, answer) = (text::one_line(&done.model), text::clean(&done.answer));
    say!(door, "{model}: {answer}")?;
    let (input, output) = (done.input_tokens, done.output_tokens);
    say!(door, "{input} tokens in, {output} tokens out")
}

fn usage(args: &UsageArgs, door: &mut Door) -> Result<(), Error> {
    let accounts = api::llm::usage(&door.config, args.days)?;
    return_json!(door, &json!({ "accounts": accounts }));
    if accounts.is_empty() {
        return door.out.line("the language model was not used");
    }
    let rows = accounts.iter().map(row).collect();
    let head = [
        "DAY", "TENANT", "TASK", "CALLS", "IN", "OUT", "HELD", "COST",
    ];
    door.out.table(&head, rows)
}

fn row(account: &LlmAccount) -> Vec<String> {
    let usage = &account.usage;
    let counts = [
        usage.calls,
        usage.input_tokens,
        usage.output_tokens,
        usage.held_tokens,
    ];
    let names = [&account.day, &account.tenant, &account.task];
    let names = names.map(|name| text::one_line(name));
    let cost = Money(usage.nanos).to_string();
    let counts = counts.map(|count| count.to_string());
    names.into_iter().chain(counts).chain([cost]).collect()
}
