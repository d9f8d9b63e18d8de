//! The words of the API. Messages and descriptions are written for the command line; a client of the
//! API knows its fields and routes instead: `--min-score` is `min_score`, and `mnemon list` is
//! `GET /v1/records`.

use std::sync::LazyLock;

use mnemon_operations::operation::routes::endpoints;

/// Options of the program that no field has: they are for the operator of the server.
const OPERATOR: &[&str] = &[
    "allow-host",
    "allow-origin",
    "features",
    "listen",
    "repair",
    "server",
    "store",
    "tls-cert",
    "tls-key",
];

/// Commands that have a route, with its fields, method and path; those of more words come first.
static ROUTES: LazyLock<Vec<(&'static str, Vec<&'static str>, String)>> = LazyLock::new(|| {
    let named = endpoints()
        .into_iter()
        .filter(|one| !one.command.is_empty());
    let mut routes: Vec<_> = named
        .map(|one| {
            let (method, path) = (one.route.method.as_str(), one.route.path);
            let fields = one.fields.iter().map(|field| field.name).collect();
            (one.command, fields, format!("{method} {path}"))
        })
        .collect();
    routes.sort_by_key(|(command, ..)| std::cmp::Reverse(command.len()));
    routes
});

/// The text with fields in place of options, and routes in place of commands. Commands that have no
/// route stay: they are for the operator of the server.
pub(super) fn of_api(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for (number, part) in text.split('`').enumerate() {
        let is_quoted = number % 2 == 1;
        if number > 0 {
            words.push('`');
        }
        match part.strip_prefix("mnemon ") {
            Some(command) if is_quoted => match route_of(command) {
                Some(route) => words.push_str(route),
                None => words.push_str(part),
            },
            _ => words.push_str(&fields(part, is_quoted)),
        }
    }
    words
}

/// The name of a field in place of that of an option.
pub(super) fn field(name: &str) -> String {
    match name.strip_prefix("--") {
        Some(option) => option.replace('-', "_"),
        None => name.to_owned(),
    }
}

fn route_of(command: &str) -> Option<&'static str> {
    let found = ROUTES.iter().find_map(|(name, fields, route)| {
        let rest = command.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(' ')).then_some((fields, rest, route))
    });
    let (fields, rest, route) = found?;
    // A route does not do what an option that it lacks does.
    let mut options = rest.split(' ').filter(|word| word.starts_with("--"));
    let has_all = options.all(|option| fields.contains(&field(option).as_str()));
    has_all.then_some(route.as_str())
}

/// The text with `field` for each `--field`, in quotes unless it stands in them already.
fn fields(text: &str, is_quoted: bool) -> String {
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("--") {
        let end = after.find(|c: char| !c.is_ascii_lowercase() && c != '-');
        let (option, left) = after.split_at(end.unwrap_or(after.len()));
        words.push_str(before);
        let begins = before.is_empty() || before.ends_with([' ', '(']);
        let is_field = begins && !option.is_empty() && !OPERATOR.contains(&option);
        match (is_field, is_quoted) {
            (true, true) => words.push_str(&option.replace('-', "_")),
            (true, false) => words.push_str(&format!("`{}`", option.replace('-', "_"))),
            (false, _) => words.push_str(&format!("--{option}")),
        }
        rest = left;
    }
    words + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_fields_and_commands_routes() {
        for (text, said) in [
            ("needs --user", "needs `user`"),
            ("half of --msg-threshold)", "half of `msg_threshold`)"),
            ("set `--min-score` to 0", "set `min_score` to 0"),
            (
                "`mnemon list` shows the records, `mnemon history` those that were deleted",
                "`GET /v1/records` shows the records, `GET /v1/history` those that were deleted",
            ),
            (
                "`mnemon doctor --repair` repairs what it can",
                "`mnemon doctor --repair` repairs what it can",
            ),
            (
                "can allow it with --allow-host NAME",
                "can allow it with --allow-host NAME",
            ),
            (
                "rebuild with --features otel",
                "rebuild with --features otel",
            ),
            ("a -- b, x--y and --", "a -- b, x--y and --"),
            ("`--", "`--"),
            ("", ""),
        ] {
            assert_eq!(of_api(text), said);
        }
        assert_eq!(field("--if-version"), "if_version");
        assert_eq!(field("tags[2]"), "tags[2]");
    }
}
