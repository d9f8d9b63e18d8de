//! `mnemon remote`

use super::door::Door;
use super::text;
use mnemon_core::Invalid;
use mnemon_operations::config::{Environment, Secret};
use mnemon_operations::{Error, wiring};

/// Test services that keep a memory
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:\n  \
    mnemon remote check\n  \
    mnemon remote check zep+https://api.getzep.com --key-env ZEP_API_KEY\n\n\
    docs/backends.md lists the services.")]
pub(super) enum Args {
    /// Check a service and show its capabilities
    ///
    /// Sends requests that change nothing. Keys go only to configured addresses.
    Check(CheckArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// URL of the service [default: long_term.url]
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// Environment variable with the key to send
    #[arg(long, value_name = "VARIABLE")]
    key_env: Option<String>,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    // The services and keys of a server are its own.
    door.local()?;
    match args {
        Args::Check(args) => check(args, door).await,
    }
}

async fn check(args: CheckArgs, door: &mut Door) -> Result<(), Error> {
    let key = args.key_env.as_deref().map(key).transpose()?;
    let remote = wiring::remote(&door.config, args.url.as_deref(), key)?;
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

fn key(variable: &str) -> Result<Secret, Error> {
    let env = Environment::of_process();
    match env.get_named(variable) {
        Some(key) => Ok(Secret::new(key)),
        None => {
            let what = format!("the variable `{}` is not set", text::one_line(variable));
            Err(Invalid::new("--key-env", what).into())
        }
    }
}
