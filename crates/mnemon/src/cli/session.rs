//! `mnemon session`

use super::confirm::{confirm, is_interactive};
use super::door::Door;
use super::text;
use crate::{Error, api};

/// Forget a session
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon session forget s1 --user ann\n  \
    mnemon session forget s1 --user ann --purge --yes")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Forget what was said and done in a session, and what is known only from it
    ///
    /// Its dialog, state and experience go, and all that was derived only from them. The user's
    /// profile, knowledge and skills stay; what has other sources, too, stays without this one.
    Forget(ForgetArgs),
}

#[derive(Debug, clap::Args)]
struct ForgetArgs {
    /// The session
    #[arg(value_name = "SESSION")]
    session: String,
    /// Whose session it is
    #[arg(long, value_name = "NAME")]
    user: String,
    /// Erase for good, history included: this cannot be undone
    #[arg(long)]
    purge: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let What::Forget(args) = args.what;
    let whose = format!("session {} of {}", args.session, args.user);
    let question = match args.purge {
        true => format!("This erases {whose} for good; it cannot be undone."),
        false => format!("This forgets {whose}."),
    };
    if !args.yes && !is_interactive() {
        let how = format!("{question} Pass --yes to say so");
        return Err(Error::Unconfirmed(how));
    }
    confirm(&text::one_line(&question), args.yes)?;
    let request = api::session_forget::Request {
        user: args.user,
        session: args.session,
        purge: args.purge,
    };
    let gone = api::session_forget::run(&door.memory()?, &door.ctx()?, request).await?;
    if door.out.json {
        return door.out.json(&gone);
    }
    if gone.records == 0 {
        return door.out.line("there is nothing of it to forget");
    }
    let word = if args.purge { "purged" } else { "forgotten" };
    let count = text::count(gone.records, "record");
    door.out.line(format!("{word}: {count}"))?;
    if gone.kept > 0 {
        let count = text::count(gone.kept, "record");
        door.out.line(format!("kept: {count} with other sources"))?;
    }
    for commit in gone.commits.iter().rev() {
        door.out.line(format!("undo with: mnemon undo {commit}"))?;
    }
    Ok(())
}
