//! From a URL to a service and its address.

use mnemon_core::Invalid;
use reqwest::Url;

use crate::http::Secret;

/// The forms of URLs that name a service, each with what it is.
pub const SCHEMES: &[(&str, &str)] = &[
    ("mem0+https://HOST", "Mem0 platform, API v3"),
    ("mem0-v1+https://HOST", "Mem0 platform, API v1 and v2"),
    ("mem0-oss+http://HOST", "Mem0, self-hosted"),
    ("zep+https://HOST", "Zep, API v2 (clients of version 3)"),
    ("reme+http://HOST", "ReMe up to 0.3"),
    (
        "reme-jobs+http://HOST?user=NAME",
        "ReMe from 0.4, which keeps one user",
    ),
    (
        "acontext+https://HOST?space=UUID",
        "Acontext with a learning space",
    ),
];

/// Generations of Mem0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mem0Version {
    Platform3,
    Platform1,
    SelfHosted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Mem0(Mem0Version),
    Zep,
    Reme,
    RemeJobs,
    Acontext,
}

impl Service {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "mem0" => Self::Mem0(Mem0Version::Platform3),
            "mem0-v1" => Self::Mem0(Mem0Version::Platform1),
            "mem0-oss" => Self::Mem0(Mem0Version::SelfHosted),
            "zep" => Self::Zep,
            "reme" => Self::Reme,
            "reme-jobs" => Self::RemeJobs,
            "acontext" => Self::Acontext,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mem0(_) => "Mem0",
            Self::Zep => "Zep",
            Self::Reme | Self::RemeJobs => "ReMe",
            Self::Acontext => "Acontext",
        }
    }

    /// The path below which a service has its API, if the URL names none.
    fn usual_path(self) -> &'static str {
        match self {
            Self::Zep => "/api/v2",
            Self::Acontext => "/api/v1",
            _ => "",
        }
    }

    fn needs_key(self) -> bool {
        matches!(
            self,
            Self::Mem0(Mem0Version::Platform3 | Mem0Version::Platform1)
                | Self::Zep
                | Self::Acontext
        )
    }
}

/// A service and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) service: Service,
    /// `https://HOST/PATH`, without a slash at the end.
    pub(super) base: String,
    /// The learning space of Acontext.
    pub(super) space: Option<String>,
    /// The user of a service that keeps one user only.
    pub(super) user: Option<String>,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, Invalid> {
        let (service, address) = url.split_once('+').ok_or_else(|| unknown(url))?;
        let service = Service::of(service).ok_or_else(|| unknown(url))?;
        let parsed = http_url(address)?;
        let mut found = Self {
            base: base_of(&parsed, service.usual_path()),
            service,
            space: None,
            user: None,
        };
        for (name, value) in parsed.query_pairs() {
            let value = Some(value.into_owned()).filter(|value| !value.is_empty());
            match (service, name.as_ref()) {
                (Service::Acontext, "space") => found.space = value.filter(|id| is_uuid(id)),
                (Service::RemeJobs, "user") => found.user = value,
                (_, name) => {
                    let what = format!("{} has no setting `{name}`", service.name());
                    return Err(Invalid::new("url", what));
                }
            }
        }
        if found.space.is_none() && parsed.query_pairs().any(|(name, _)| name == "space") {
            return Err(Invalid::new("url", "`space` must be a UUID"));
        }
        Ok(found)
    }

    /// Refuses to send a key in the open, or to do without one that is needed.
    pub(super) fn check_key(&self, key: Option<&Secret>) -> Result<(), Invalid> {
        check_encrypted(&self.base, key)?;
        match key {
            None if self.service.needs_key() && !is_this_machine(&self.base) => {
                let name = self.service.name();
                let what = format!("{name} needs a key; set its variable in the environment");
                Err(Invalid::new("key", what))
            }
            _ => Ok(()),
        }
    }
}

/// An http or https URL without a user, a password or a fragment.
pub(super) fn http_url(address: &str) -> Result<Url, Invalid> {
    // The message does not repeat the URL: it may hold a password.
    let invalid = |what: &str| Invalid::new("url", what);
    let parsed = Url::parse(address).map_err(|_| invalid("is not a URL with http or https"))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(invalid("is not a URL with http or https"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        let what = "must not contain a user name or password; keys come from the environment";
        return Err(invalid(what));
    }
    if parsed.fragment().is_some() {
        return Err(invalid("must not contain a `#`"));
    }
    Ok(parsed)
}

pub(super) fn base_of(url: &Url, usual_path: &str) -> String {
    let path = match url.path().trim_end_matches('/') {
        "" => usual_path,
        path => path,
    };
    format!("{}{path}", url.origin().ascii_serialization())
}

/// Refuses to send a key without encryption to another machine.
pub(super) fn check_encrypted(base: &str, key: Option<&Secret>) -> Result<(), Invalid> {
    if key.is_some() && base.starts_with("http://") && !is_this_machine(base) {
        let what = format!("the key would go to {base} unencrypted; use https");
        return Err(Invalid::new("url", what));
    }
    Ok(())
}

fn is_this_machine(base: &str) -> bool {
    let url = Url::parse(base).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(is_hex)
}

fn unknown(url: &str) -> Invalid {
    let known: Vec<&str> = SCHEMES.iter().map(|(form, _)| *form).collect();
    // Only the scheme is shown: the rest may hold a password.
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let what = format!(
        "`{}://` does not name a memory service; write one of: {}",
        scheme.escape_debug(),
        known.join(", ")
    );
    Invalid::new("url", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_service_and_its_api() {
        for (url, service, base) in [
            (
                "mem0+https://api.mem0.ai",
                Service::Mem0(Mem0Version::Platform3),
                "https://api.mem0.ai",
            ),
            (
                "mem0-v1+https://h/x/",
                Service::Mem0(Mem0Version::Platform1),
                "https://h/x",
            ),
            (
                "mem0-oss+http://h:8888",
                Service::Mem0(Mem0Version::SelfHosted),
                "http://h:8888",
            ),
            (
                "zep+https://api.getzep.com",
                Service::Zep,
                "https://api.getzep.com/api/v2",
            ),
            ("zep+https://h/api/v3", Service::Zep, "https://h/api/v3"),
            ("reme+http://h:8002", Service::Reme, "http://h:8002"),
            ("reme-jobs+http://h?user=ann", Service::RemeJobs, "http://h"),
            (
                "acontext+http://h:8029",
                Service::Acontext,
                "http://h:8029/api/v1",
            ),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!(
                (address.service, address.base.as_str()),
                (service, base),
                "{url}"
            );
        }
        let space = "6f9619ff-8b86-d011-b42d-00cf4fc964ff";
        let address = Address::parse(&format!("acontext+http://h?space={space}")).unwrap();
        assert_eq!(address.space.as_deref(), Some(space));
    }

    #[test]
    fn bad_urls_are_refused_without_repeating_a_password() {
        for (url, expected) in [
            ("https://api.mem0.ai", "does not name a memory service"),
            ("mem1+https://api.mem0.ai", "does not name a memory service"),
            ("mem0+ftp://host", "http or https"),
            ("mem0+https://", "http or https"),
            (
                "mem0+https://u\u{3a}PW@host",
                "must not contain a user name or password",
            ),
            ("mem0+https://host#x", "must not contain a `#`"),
            ("mem0+https://host?space=1", "Mem0 has no setting `space`"),
            ("acontext+https://host?space=../x", "`space` must be a UUID"),
            ("", "does not name a memory service"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("PW"), "{error}");
        }
    }

    #[test]
    fn a_key_goes_to_another_machine_only_encrypted() {
        let key = Secret::new("k");
        let check = |url: &str, key| Address::parse(url).unwrap().check_key(key);
        assert!(check("mem0-oss+http://memory.lan", Some(&key)).is_err());
        assert!(check("mem0-oss+http://memory.lan", None).is_ok());
        assert!(check("mem0-oss+http://127.0.0.1:1", Some(&key)).is_ok());
        assert!(check("mem0+https://h", Some(&key)).is_ok());
        let error = check("zep+https://h", None).unwrap_err().to_string();
        assert!(error.contains("Zep needs a key"), "{error}");
    }
}
