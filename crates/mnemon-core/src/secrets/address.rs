//! Passwords and tokens in addresses: `scheme://user:password@host`.

use super::value::{is_drawn, is_placeholder};
use super::work;

/// What stands before user and host.
pub(super) const MARK: &str = "://";
/// A user's name, or a token in its place, is looked for in this many bytes.
const USER_BYTES: usize = 1024;

/// Where the text without spaces around an address ends, and the last `@` in it. Addresses within
/// addresses share both, which keeps the work linear.
#[derive(Default)]
pub(super) struct Region {
    end: usize,
    last_at: Option<usize>,
}

/// The secret after the `://` at this place.
pub(super) fn after_mark(text: &str, at: usize, region: &mut Region) -> Option<(usize, usize)> {
    let start = at + MARK.len();
    let scheme = text.get(..at)?;
    if !scheme.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    region.reach(text, start);
    let last_at = region.last_at.filter(|last| *last >= start)?;
    let end = text.get(start..last_at + 1)?.find(['/', '?', '#']);
    work::add(end.unwrap_or(0));
    match end {
        // The host follows the `@` that ends the user's part.
        None => user_part(text, start, last_at),
        Some(end) => {
            let authority = text.get(start..start + end)?;
            if let Some(at) = authority.rfind('@') {
                return user_part(text, start, start + at);
            }
            unescaped_password(text, start, last_at)
        }
    }
}

impl Region {
    fn reach(&mut self, text: &str, start: usize) {
        if start < self.end {
            return;
        }
        let ends =
            |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '\\' | '|');
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.find(ends).unwrap_or(rest.len());
        work::add(length);
        self.end = start + length;
        let region = rest.get(..length).unwrap_or_default();
        self.last_at = region.rfind('@').map(|at| start + at);
    }
}

/// The secret in the part before the `@` at this place.
fn user_part(text: &str, start: usize, at: usize) -> Option<(usize, usize)> {
    let user = text.get(start..at)?;
    work::add(user.len().min(USER_BYTES));
    if let Some((name, password)) = user.split_once(':') {
        let is_token = password.is_empty() || password == "x-oauth-basic";
        if is_token {
            return is_drawn(name).then_some((start, start + name.len()));
        }
        let known = is_placeholder(password) || password.starts_with(['$', '%', '{', '*']);
        return (!known).then_some((start + name.len() + 1, at));
    }
    let is_token = user.len() >= 16 && !is_placeholder(user) && is_drawn(user);
    is_token.then_some((start, at))
}

/// A password with `/`, `?` or `#` in it, which should have been escaped: `user:p/ss@host`.
fn unescaped_password(text: &str, start: usize, last_at: usize) -> Option<(usize, usize)> {
    let head = text.get(start..last_at)?;
    let near = head.get(..head.floor_char_boundary(USER_BYTES))?;
    let colon = near.find([':', '/', '?', '#'])?;
    if near.as_bytes().get(colon) != Some(&b':') {
        return None;
    }
    let name = near.get(..colon)?;
    let password = head.get(colon + 1..)?;
    // A port ends the host, and a slash behind it begins the path.
    let port = password.bytes().take_while(u8::is_ascii_digit).count();
    let is_port = port > 0 && matches!(password.as_bytes().get(port), Some(b'/' | b'?' | b'#'));
    let host = text.get(last_at + 1..)?;
    let has_host = host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
    let is_digest = host.starts_with("sha256:") || host.starts_with("sha512:");
    let is_user = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'+' | b'%'));
    let fits = !is_port && has_host && !is_digest && is_user && password.len() <= USER_BYTES;
    (fits && !is_placeholder(password)).then_some((start + colon + 1, last_at))
}
