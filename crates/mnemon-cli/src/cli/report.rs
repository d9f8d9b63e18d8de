//! How errors are told.

use std::error::Error as _;

use console::style;
use mnemon_core::{ErrorKind, secrets};
use serde::Serialize;

use super::out::error_line;
use super::text;
use mnemon_operations::{Error, code};

/// Says what went wrong, why, and what to do about it.
pub(super) fn failure(error: &Error, as_json: bool) -> u8 {
    let kind = error.kind();
    let hint = error.hint();
    let exit = code::of(kind).exit;
    let chain: Vec<String> = chain(error).iter().map(|said| discreet(said)).collect();
    if as_json {
        return as_document(kind, &chain.join(": "), hint.as_deref());
    }
    let mut words = chain.iter();
    if let Some(first) = words.next() {
        let label = style("error:").for_stderr().red().bold();
        error_line(format!("{label} {}", text::one_line(first)));
    }
    for cause in words {
        error_line(format!("  caused by: {}", text::one_line(cause)));
    }
    if let Some(hint) = hint {
        error_line(format!("  hint: {}", text::one_line(&hint)));
    }
    exit
}

/// An error repeats what was said, but no secret: it may be logged.
fn discreet(said: &str) -> String {
    secrets::mask(said, &secrets::find(said))
}

#[derive(Serialize)]
struct ErrorDocument<'a> {
    kind: ErrorKind,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

fn as_document(kind: ErrorKind, message: &str, hint: Option<&str>) -> u8 {
    let row = code::of(kind);
    let error = ErrorDocument {
        kind,
        message,
        hint,
    };
    // Texts always have a JSON form.
    let told = serde_json::to_string(&error).unwrap_or_default();
    error_line(format!("{{\"error\":{told}}}"));
    row.exit
}

/// The error and what it came from, each said once.
fn chain(error: &Error) -> Vec<String> {
    let mut chain = vec![error.to_string()];
    if let Error::Remote { causes, .. } = error {
        chain.extend(causes.iter().cloned());
    }
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
pub(super) fn usage(error: &clap::Error, as_json: bool) -> u8 {
    let wanted = !error.use_stderr();
    if as_json && !wanted {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ");
        let message = text.split("\n\nUsage:").next().unwrap_or(text);
        let message: Vec<&str> = message.split_whitespace().collect();
        let kind = ErrorKind::Invalid;
        let hint = Some(code::of(kind).hint);
        return as_document(kind, &discreet(&message.join(" ")), hint);
    }
    let text = error.render().to_string();
    match secrets::find(&text).is_empty() || wanted {
        // Nobody may be reading the help; that is no error either.
        true => drop(error.print()),
        false => error_line(discreet(text.trim_end())),
    }
    if wanted {
        0
    } else {
        code::of(ErrorKind::Invalid).exit
    }
}
