//! Names that become folders.

use mnemon_core::{Invalid, limits};

#[derive(Debug, Clone, Copy)]
pub(super) enum Sort {
    Agent,
    Team,
}

/// Folders that mean something else, and names that some systems keep for themselves.
const RESERVED: &[&str] = &[
    "agents",
    "archive",
    "knowledge",
    "memory",
    "sessions",
    "team-memory",
    "teams",
    "con",
    "prn",
    "aux",
    "nul",
];

/// A name of letters, digits, `-` and `_`.
pub(super) fn check(sort: Sort, name: &str) -> Result<(), Invalid> {
    let field = match sort {
        Sort::Agent => "agent",
        Sort::Team => "team",
    };
    let shown = name.escape_debug();
    let most = limits::AGENT_NAME_CHARS;
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins_well || !name.chars().all(allowed) || name.len() > most {
        let what = format!(
            "`{shown}` is not a name; use 1 to {most} letters, digits, - and _, beginning with a letter or digit"
        );
        return Err(Invalid::new(field, what));
    }
    let lower = name.to_ascii_lowercase();
    let port = lower
        .strip_prefix("com")
        .or_else(|| lower.strip_prefix("lpt"));
    let is_port =
        port.is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()));
    if RESERVED.contains(&lower.as_str()) || is_port {
        let what = format!("`{shown}` is reserved; choose another name");
        return Err(Invalid::new(field, what));
    }
    Ok(())
}

/// A text that stays on its line.
pub(super) fn check_line(field: &str, text: &str) -> Result<(), Invalid> {
    crate::naming::check_name(field, text, limits::AGENT_LINE_CHARS)
}
