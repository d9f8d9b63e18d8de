//! Names of sessions.

use std::fmt;
use std::str::FromStr;

use mnemon_core::{Invalid, limits};
use serde::{Deserialize, Deserializer, Serialize};

use crate::records::naming::{check_name, is_device};

/// A session's name: safe as the name of a file, whatever somebody types.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        check("session", text)?;
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The rules for the name of a session, and for the name of a part of one.
pub(super) fn check(field: &str, text: &str) -> Result<(), Invalid> {
    check_name(field, text, limits::NAME_CHARS)?;
    let shown = text.escape_debug();
    if text.contains(['/', '\\']) {
        let what = format!("`{shown}` holds a slash or backslash; leave it out");
        return Err(Invalid::new(field, what));
    }
    if text == "." || text.contains("..") {
        let what = format!("`{shown}` may not be `.` or hold `..`; leave the dots out");
        return Err(Invalid::new(field, what));
    }
    if is_device(text) {
        let what = format!("`{shown}` is the name of a device on Windows; choose another");
        return Err(Invalid::new(field, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_lead_astray_are_refused_with_a_reason() {
        let long = "x".repeat(256);
        for (bad, why) in [
            ("", "empty"),
            ("  \t", "empty"),
            (long.as_str(), "at most 255"),
            ("a/b", "slash"),
            ("a\\b", "slash"),
            ("..", "`..`"),
            (".", "`.`"),
            ("a..b", "`..`"),
            ("a\nb", "control"),
            ("a\0b", "control"),
            ("con", "device"),
            ("NUL", "device"),
            ("Aux.old", "device"),
            ("prn .x", "device"),
            ("com1", "device"),
            ("LPT²", "device"),
        ] {
            let error = bad.parse::<SessionId>().unwrap_err().to_string();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
        for good in [
            "user123",
            "ann@example.org",
            "Nguyễn",
            ".hidden",
            "a b",
            "console",
            "com10",
            "com",
            "my-con",
            &"x".repeat(255),
        ] {
            assert!(good.parse::<SessionId>().is_ok(), "{good}");
        }
    }
}
