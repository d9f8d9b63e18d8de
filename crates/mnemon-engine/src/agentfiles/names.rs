//! Names that become folders.

use mnemon_core::{Invalid, limits};

#[derive(Debug, Clone, Copy)]
pub(super) enum Sort {
    Agent,
    Team,
}

/// Folders that mean something else.
const RESERVED: &[&str] = &[
    "agents",
    "archive",
    "knowledge",
    "memory",
    "sessions",
    "team-memory",
    "teams",
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
    if RESERVED.contains(&lower.as_str()) || crate::records::naming::is_device(name) {
        let what = format!("`{shown}` is reserved; choose another name");
        return Err(Invalid::new(field, what));
    }
    Ok(())
}

/// A text that stays on its line.
pub(super) fn check_line(field: &str, text: &str) -> Result<(), Invalid> {
    crate::records::naming::check_name(field, text, limits::AGENT_LINE_CHARS)
}
