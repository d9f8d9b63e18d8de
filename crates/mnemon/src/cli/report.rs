//! How errors are told.

use std::error::Error as _;
use std::process::ExitCode;

use console::style;
use mnemon_core::ErrorKind;
use serde_json::json;

use super::out::error_line;
use super::text;
use crate::{Error, code};

/// Says what went wrong, why, and what to do about it.
pub(super) fn failure(error: &Error, as_json: bool) -> ExitCode {
    let kind = error.kind();
    let row = code::of(kind);
    let chain = chain(error);
    if as_json {
        error_line(json!({ "error": {
            "kind": code::word(kind),
            "message": chain.join(": "),
            "hint": row.hint,
        }}));
        return ExitCode::from(row.exit);
    }
    let mut words = chain.iter();
    if let Some(first) = words.next() {
        let label = style("error:").for_stderr().red().bold();
        error_line(format!("{label} {}", text::one_line(first)));
    }
    for cause in words {
        error_line(format!("  caused by: {}", text::one_line(cause)));
    }
    error_line(format!("  hint: {}", row.hint));
    ExitCode::from(row.exit)
}

/// The error and what it came from, each said once.
fn chain(error: &Error) -> Vec<String> {
    let mut chain = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if chain.last().is_none_or(|last| !last.contains(&cause_text)) {
            chain.push(cause_text);
        }
        source = cause.source();
    }
    chain
}

/// What the argument parser has to say: help is not an error.
pub(super) fn usage(error: &clap::Error, as_json: bool) -> ExitCode {
    let wanted = !error.use_stderr();
    if as_json && !wanted {
        let row = code::of(ErrorKind::Invalid);
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ");
        let message = text.split("\n\nUsage:").next().unwrap_or(text);
        let message: Vec<&str> = message.split_whitespace().collect();
        error_line(json!({ "error": {
            "kind": code::word(ErrorKind::Invalid),
            "message": message.join(" "),
            "hint": row.hint,
        }}));
        return ExitCode::from(row.exit);
    }
    // Nobody may be reading the help; that is no error either.
    let _ = error.print();
    if wanted {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(code::of(ErrorKind::Invalid).exit)
    }
}
