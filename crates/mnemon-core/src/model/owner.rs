//! Whose a record is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Invalid;
use crate::model::limits;

/// A customer, a team or a person who must never see another's records.
///
/// The name may become a folder, so it is lower case letters, digits, `-` and `_` only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Tenant(String);

/// The tenant that holds Mnemon's own records, such as access keys.
const SYSTEM: &str = "mnemon-system";

impl Tenant {
    /// The tenant as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The reserved tenant of Mnemon's own records. Parsing refuses its name, so that callers
    /// cannot name it, and [`Policy::check`](crate::model::Policy::check) grants nothing on it.
    pub fn system() -> Self {
        Self(SYSTEM.to_owned())
    }

    /// Whether this is the reserved tenant.
    pub fn is_system(&self) -> bool {
        self.0 == SYSTEM
    }

    /// A name that a store holds: any valid one, the reserved one included.
    pub fn from_store(text: &str) -> Result<Self, Invalid> {
        let inner = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
        };
        let starts_well = text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit());
        if starts_well && text.len() <= limits::TENANT_CHARS && text.bytes().all(inner) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid::new(
            "tenant",
            format!(
                "`{}` is not a tenant name; use 1 to {} lower case letters, digits, - and _, \
                 beginning with a letter or digit",
                text.escape_debug(),
                limits::TENANT_CHARS
            ),
        ))
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Tenant {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let tenant = Self::from_store(text)?;
        match tenant.is_system() {
            true => Err(Invalid::new(
                "tenant",
                format!("`{SYSTEM}` is reserved for Mnemon's own records; choose another name"),
            )),
            false => Ok(tenant),
        }
    }
}

impl<'de> Deserialize<'de> for Tenant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_store(&text).map_err(serde::de::Error::custom)
    }
}

/// Within a tenant: who said it, to which agent, in which session, at which point of which flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Owner {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

impl Owner {
    /// A user, a session, or a user's session.
    pub fn of(user: Option<&str>, session: Option<&str>) -> Self {
        Self {
            user: user.map(str::to_owned),
            session: session.map(str::to_owned),
            ..Self::default()
        }
    }

    /// The five parts with their names.
    pub fn parts(&self) -> [(&'static str, Option<&str>); 5] {
        [
            ("user", self.user.as_deref()),
            ("agent", self.agent.as_deref()),
            ("session", self.session.as_deref()),
            ("flow", self.flow.as_deref()),
            ("node", self.node.as_deref()),
        ]
    }

    /// Whether nobody is named.
    pub fn is_empty(&self) -> bool {
        self.parts().iter().all(|(_, part)| part.is_none())
    }

    /// Whether every part that `wanted` names is the same here.
    pub fn includes(&self, wanted: &Self) -> bool {
        self.parts()
            .iter()
            .zip(wanted.parts())
            .all(|((_, ours), (_, theirs))| theirs.is_none() || *ours == theirs)
    }

    /// Names are neither empty nor too long, and hold no control characters.
    pub fn check(&self) -> Result<(), Invalid> {
        for (field, part) in self.parts() {
            if let Some(name) = part {
                check_line(field, name, limits::NAME_CHARS)?;
            }
        }
        Ok(())
    }
}

/// A single line of text: not blank, not too long, no control characters.
pub fn check_line(field: &str, text: &str, most: usize) -> Result<(), Invalid> {
    if text.trim().is_empty() {
        return Err(Invalid::new(
            field,
            "is empty; leave it out or give it a value",
        ));
    }
    let chars = text.chars().count();
    if chars > most {
        return Err(Invalid::new(
            field,
            format!("has {chars} characters, at most {most} are allowed"),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(
            field,
            "holds a control character (a line break, tab or NUL); remove it",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_are_safe_as_folder_names() {
        for bad in [
            "",
            "A",
            "a/b",
            "..",
            ".a",
            "-a",
            "a b",
            "ä",
            "con:",
            "a\0",
            &"a".repeat(64),
        ] {
            assert!(bad.parse::<Tenant>().is_err(), "{bad:?}");
        }
        assert!("team-7_x".parse::<Tenant>().is_ok());
    }

    #[test]
    fn includes_compares_only_what_is_wanted() {
        let ann = Owner {
            user: Some("ann".into()),
            session: Some("s1".into()),
            ..Owner::default()
        };
        let wanted = |user: &str| Owner {
            user: Some(user.into()),
            ..Owner::default()
        };
        assert!(ann.includes(&Owner::default()));
        assert!(ann.includes(&wanted("ann")));
        assert!(!ann.includes(&wanted("bob")));
    }

    #[test]
    fn names_are_checked() {
        let owner = |user: &str| Owner {
            user: Some(user.into()),
            ..Owner::default()
        };
        for bad in ["", "  ", "a\nb", "a\0b", &"x".repeat(256)] {
            assert!(owner(bad).check().is_err(), "{bad:?}");
        }
        assert!(owner("Nguyễn Văn An").check().is_ok());
    }
}
