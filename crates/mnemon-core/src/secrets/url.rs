//! Passwords in addresses: `scheme://user:password@host`.

use super::Secret;
use super::assigned::is_placeholder;

/// What stands before a user and a host.
pub(super) const MARK: &str = "://";

/// What lies between `://` and the host is no longer than this.
const USER_BYTES: usize = 1024;

pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    for (at, mark) in text.match_indices(MARK) {
        let start = at + mark.len();
        let scheme = text.get(..at).unwrap_or_default();
        let named = scheme.ends_with(|c: char| c.is_ascii_alphanumeric());
        let Some(rest) = text.get(start..).filter(|_| named) else {
            continue;
        };
        let ends = |c: char| {
            c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`' | '\\')
        };
        let authority = rest.split(ends).next().unwrap_or_default();
        if authority.len() > USER_BYTES {
            continue;
        }
        let Some((user, _host)) = authority.rsplit_once('@') else {
            continue;
        };
        let Some((name, password)) = user.split_once(':') else {
            continue;
        };
        if password.is_empty() || is_placeholder(password) {
            continue;
        }
        let start = start + name.len() + 1;
        found.push(Secret {
            what: "password in an address",
            start,
            end: start + password.len(),
        });
    }
}
