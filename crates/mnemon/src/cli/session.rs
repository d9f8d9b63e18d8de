//! `mnemon session`

mod saved;

use super::confirm::{confirm, is_interactive};
use super::door::Door;
use super::text;
use crate::{Error, api};

/// Save, load, copy or forget a session
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon session save s1 --file state.json\n  \
    mnemon session load s1 | jq .components\n  \
    mnemon session list --folder ./sessions\n  \
    mnemon session snapshot s1 before-the-change\n  \
    mnemon session fork s1 s2\n  \
    mnemon session forget s1 --user ann\n  \
    mnemon session forget s1 --user ann --purge --yes")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Save the states of a session, in place of what was saved before
    ///
    /// They are read as JSON: an object with `sessionId` and `components`, or one with a state for
    /// each component.
    Save(saved::SaveArgs),
    /// Print the saved states of a session as JSON
    Load(saved::OneArgs),
    /// List the saved sessions
    List(saved::Place),
    /// Make a session once more under another id, which must be free
    ///
    /// Its saved states are copied, and with a store everything that was said in it.
    Fork(saved::ForkArgs),
    /// Keep a session as it is now, as SESSION@LABEL
    ///
    /// Its saved states are copied; of its conversation the window is kept.
    Snapshot(saved::LabelArgs),
    /// Make a session what it was when the snapshot was taken
    ///
    /// What was said since stays in the conversation, but is not in its window any more.
    Restore(saved::LabelArgs),
    /// Take the saved states of a session away; what was said in it stays
    Delete(saved::DeleteArgs),
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
    match args.what {
        What::Save(args) => saved::save(args, door).await,
        What::Load(args) => saved::load(args, door).await,
        What::List(place) => saved::list(place, door).await,
        What::Fork(args) => saved::fork(args, door).await,
        What::Snapshot(args) => saved::snapshot(args, door).await,
        What::Restore(args) => saved::restore(args, door).await,
        What::Delete(args) => saved::delete(args, door).await,
        What::Forget(args) => forget(args, door).await,
    }
}

/// Asks, unless the answer was given; without anybody to ask, nothing happens.
fn agreed(question: &str, yes: bool) -> Result<(), Error> {
    if !yes && !is_interactive() {
        let how = format!("{question} Pass --yes to say so");
        return Err(Error::Unconfirmed(how));
    }
    confirm(&text::one_line(question), yes)
}

async fn forget(args: ForgetArgs, door: &mut Door) -> Result<(), Error> {
    let whose = format!("session {} of {}", args.session, args.user);
    let question = match args.purge {
        true => format!("This erases {whose} for good; it cannot be undone."),
        false => format!("This forgets {whose}."),
    };
    agreed(&question, args.yes)?;
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
