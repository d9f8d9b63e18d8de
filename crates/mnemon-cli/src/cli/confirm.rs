//! Asking before something is done.

use std::io::{self, BufRead, IsTerminal, Write};

use super::text;
use mnemon_operations::Error;

/// Whether there is somebody to ask.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks, unless `yes` was said beforehand. Without anybody to ask it is an error that says how to
/// say yes.
pub(super) fn confirm(question: &str, yes: bool) -> Result<(), Error> {
    if yes {
        return Ok(());
    }
    if !is_interactive() {
        return Err(Error::Unconfirmed(format!(
            "{question} Add --yes to confirm, or --dry-run to look first"
        )));
    }
    let mut stderr = io::stderr().lock();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    asked.map_err(Error::Output)?;
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(Error::Input)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Error::Unconfirmed("you answered no".to_owned())),
    }
}

/// The same for a command that has no --dry-run. The question may hold what somebody typed.
pub(super) fn agreed(question: &str, yes: bool) -> Result<(), Error> {
    if !yes && !is_interactive() {
        let how = format!("{question} Add --yes to confirm");
        return Err(Error::Unconfirmed(how));
    }
    confirm(&text::one_line(question), yes)
}
