//! Passwords in the arguments of commands: `curl -u ann:…`, `mysql -p…`.

use super::named;
use super::rules::PASSWORD;
use super::value;
use super::work;

/// Commands, the option that takes their password, and whether it is glued to the option.
const COMMANDS: &[(&str, u8, bool)] = &[
    ("mysql", b'p', true),
    ("mariadb", b'p', true),
    ("sshpass", b'p', true),
    ("sshpass", b'p', false),
    ("docker login", b'p', false),
    ("podman login", b'p', false),
    ("redis-cli", b'a', false),
    ("ldapsearch", b'w', false),
    ("7z", b'p', true),
    ("curl", b'b', false),
];

/// The commands of the line that was looked at last.
#[derive(Default)]
pub(super) struct Line {
    end: usize,
    /// For each row of [`COMMANDS`], where it stands first.
    places: Vec<Option<usize>>,
}

/// The password in the option whose hyphen stands at this place.
pub(super) fn option(text: &str, at: usize, line: &mut Line) -> Option<named::Span> {
    let bytes = text.as_bytes();
    let flag = *bytes.get(at + 1)?;
    let rest = text.get(at..)?;
    if rest.starts_with("-u ") || rest.starts_with("--user ") || rest.starts_with("--user=") {
        return login(text, at + rest.find([' ', '='])? + 1);
    }
    if !COMMANDS.iter().any(|(_, letter, _)| *letter == flag) {
        return None;
    }
    let spaced = bytes.get(at + 2) == Some(&b' ');
    line.reach(text, at);
    let is_there = COMMANDS
        .iter()
        .zip(&line.places)
        .any(|((_, letter, glued), place)| {
            *letter == flag && *glued != spaced && place.is_some_and(|place| place < at)
        });
    if !is_there {
        return None;
    }
    let start = at + 2 + usize::from(spaced);
    let quote = usize::from(matches!(bytes.get(start), Some(b'"' | b'\'')));
    if flag == b'b' {
        return named::cookie(text, start + quote);
    }
    let (start, end) = named::token(text, start + quote);
    let value = text.get(start..end)?;
    (value.len() >= 6 && value::is_certain_password(value)).then_some((start, end, PASSWORD))
}

/// `name:password`.
fn login(text: &str, start: usize) -> Option<named::Span> {
    let quote = usize::from(matches!(text.as_bytes().get(start), Some(b'"' | b'\'')));
    let (start, end) = named::token(text, start + quote);
    let login = text.get(start..end)?;
    let (name, password) = login.split_once(':')?;
    let is_secret = value::is_password(password, value::Mark::Sign) && !name.contains('/');
    is_secret.then_some((start + name.len() + 1, end, PASSWORD))
}

impl Line {
    fn reach(&mut self, text: &str, at: usize) {
        if at < self.end {
            return;
        }
        let start = text.get(..at).and_then(|before| before.rfind('\n'));
        // The part of the line before was looked at with an earlier option, or holds none.
        let start = start.map_or(0, |newline| newline + 1).max(self.end);
        let rest = text.get(at..).unwrap_or_default();
        self.end = at + rest.find('\n').unwrap_or(rest.len());
        let line = text.get(start..self.end).unwrap_or_default();
        work::add(line.len());
        let place = |(command, _, _): &(&str, u8, bool)| line.find(command).map(|it| start + it);
        self.places = COMMANDS.iter().map(place).collect();
    }
}
