//! `mnemon remote`

use super::door::Door;
use super::text;
use mnemon_operations::{Error, wiring};

/// Test services that keep a memory
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon remote check zep+https://api.getzep.com\n  \
    mnemon remote check\n\n\
    docs/backends.md lists the services.")]
pub(super) enum Args {
    /// Check a service and show its capabilities
    ///
    /// Sends requests that change nothing. The key comes from MNEMON_LONG_TERM_KEY. An external source
    /// uses its own key.
    Check(CheckArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// URL of the service [default: long_term.url]
    #[arg(value_name = "URL")]
    url: Option<String>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    // The services and keys of a server are its own.
    door.local()?;
    match args {
        Args::Check(args) => check(args, door).await,
    }
}

async fn check(args: CheckArgs, door: &mut Door) -> Result<(), Error> {
    let remote = wiring::remote(&door.config, args.url.as_deref())?;
    let report = remote.check(&door.ctx()?).await?;
    return_json!(door, &report);
    say!(door, "{}", text::one_line(&report.service))?;
    say!(door, "protocol       {}", text::one_line(&report.protocol))?;
    say!(door, "capabilities   {}", report.capabilities.join(", "))?;
    for remark in &report.remarks {
        say!(door, "{}", text::one_line(remark))?;
    }
    Ok(())
}
