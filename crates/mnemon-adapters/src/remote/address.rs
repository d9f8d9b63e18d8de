//! From a URL to a service and its address.

use mnemon_core::Invalid;
use reqwest::Url;

use super::client::KeyHeader;
use crate::http::Secret;

/// The forms of URLs that name a memory service.
const FORMS: [&str; 7] = [
    "mem0+https://HOST",
    "mem0-v1+https://HOST",
    "mem0-oss+http://HOST",
    "zep+https://HOST",
    "reme+http://HOST",
    "reme-jobs+http://HOST?user=NAME",
    "acontext+https://HOST",
];

/// Generations of Mem0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mem0Version {
    /// The platform, API v3.
    Platform3,
    /// The platform, API v1 for additions and v2 for searches.
    Platform1,
    SelfHosted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Mem0(Mem0Version),
    Zep,
    /// ReMe up to 0.3.
    Reme,
    /// ReMe from 0.4.
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

    /// The name, for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mem0(_) => "Mem0",
            Self::Zep => "Zep",
            Self::Reme | Self::RemeJobs => "ReMe",
            Self::Acontext => "Acontext",
        }
    }

    pub(super) fn key_header(self) -> KeyHeader {
        match self {
            Self::Mem0(Mem0Version::SelfHosted) => KeyHeader::ApiKey,
            Self::Mem0(_) => KeyHeader::Authorization("Token"),
            Self::Zep => KeyHeader::Authorization("Api-Key"),
            // ReMe has no keys; a proxy in front of it may ask for one.
            Self::Reme | Self::RemeJobs | Self::Acontext => KeyHeader::Authorization("Bearer"),
        }
    }

    /// Whether a server on another machine always asks for a key.
    fn needs_key(self) -> bool {
        matches!(
            self,
            Self::Mem0(Mem0Version::Platform3 | Mem0Version::Platform1)
                | Self::Zep
                | Self::Acontext
        )
    }

    /// The path below which a service has its API, if the URL names none.
    fn usual_path(self) -> &'static str {
        match self {
            Self::Zep => "/api/v2",
            Self::Acontext => "/api/v1",
            Self::Mem0(_) | Self::Reme | Self::RemeJobs => "",
        }
    }
}

/// A service and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) service: Service,
    /// `https://HOST/PATH`, without a slash at the end.
    pub(super) base: String,
    /// The user of a service that keeps one user.
    pub(super) user: Option<String>,
    /// The learning space of Acontext whose skills all users read.
    pub(super) space: Option<String>,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, Invalid> {
        let (service, address) = url.split_once('+').ok_or_else(|| unknown(url))?;
        let service = Service::of(service).ok_or_else(|| unknown(url))?;
        let parsed = http_url(address)?;
        let mut found = Self {
            base: base_of(&parsed, service.usual_path()),
            service,
            user: None,
            space: None,
        };
        for (name, value) in parsed.query_pairs() {
            found.set(&name, &value)?;
        }
        Ok(found)
    }

    /// Takes a setting of the URL's query.
    fn set(&mut self, name: &str, value: &str) -> Result<(), Invalid> {
        match (self.service, name) {
            (Service::RemeJobs, "user") if !value.is_empty() => {
                self.user = Some(value.to_owned());
                Ok(())
            }
            (Service::Acontext, "space") if is_uuid(value) => {
                self.space = Some(value.to_owned());
                Ok(())
            }
            (Service::Acontext, "space") => Err(Invalid::new("url", "`space` must be a UUID")),
            (Service::RemeJobs, "user") => Err(Invalid::new("url", "`user` must not be empty")),
            (service, name) => {
                let what = format!("{} has no setting `{name}`", service.name());
                Err(Invalid::new("url", what))
            }
        }
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

pub(super) fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(is_hex)
}

fn unknown(url: &str) -> Invalid {
    // Only the scheme is shown: the rest may hold a password.
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let scheme = scheme.escape_debug();
    let forms = FORMS.join(", ");
    let what = format!("`{scheme}://` does not name a memory service; write one of: {forms}");
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
            ("zep+https://h/zep/v2", Service::Zep, "https://h/zep/v2"),
            ("reme+http://h:8002", Service::Reme, "http://h:8002"),
            ("reme-jobs+http://h?user=ann", Service::RemeJobs, "http://h"),
            (
                "acontext+http://h:8029",
                Service::Acontext,
                "http://h:8029/api/v1",
            ),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!((address.service, address.base.as_str()), (service, base));
        }
    }

    #[test]
    fn a_key_is_for_one_service_at_one_address() {
        use super::super::is_same_service;
        let known = "zep+https://api.getzep.com";
        for (other, expected) in [
            (known, true),
            ("zep+https://api.getzep.com/", true),
            ("zep+https://api.getzep.com:443/api/v2", true),
            ("zep+http://api.getzep.com", false),
            ("zep+https://api.getzep.com.example", false),
            ("zep+https://api.getzep.com:8443", false),
            ("mem0+https://api.getzep.com", false),
            ("kb+https://api.getzep.com", false),
            ("", false),
        ] {
            assert_eq!(is_same_service(known, other), expected, "{other}");
        }
        assert!(!is_same_service("", ""), "no service");
    }

    #[test]
    fn bad_urls_are_refused_without_repeating_a_password() {
        for (url, expected) in [
            ("https://api.mem0.ai", "does not name a memory service"),
            ("mem1+https://api.mem0.ai", "does not name a memory service"),
            ("mem0+ftp://host", "http or https"),
            ("mem0+https://", "http or https"),
            (
                &["mem0+https://u", ":PW@host"].concat(),
                "must not contain a user name or password",
            ),
            ("mem0+https://host#x", "must not contain a `#`"),
            ("mem0+https://host?space=1", "Mem0 has no setting `space`"),
            ("reme+http://host?user=ann", "ReMe has no setting `user`"),
            ("reme-jobs+http://host?user=", "must not be empty"),
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
        assert!(check("mem0+http://memory.lan", Some(&key)).is_err());
        assert!(check("mem0+http://127.0.0.1:1", Some(&key)).is_ok());
        assert!(check("mem0+https://h", Some(&key)).is_ok());
        assert!(check("mem0-oss+http://memory.lan", Some(&key)).is_err());
        assert!(check("mem0-oss+http://memory.lan", None).is_ok());
        for (url, expected) in [
            ("mem0+https://h", "Mem0 needs a key"),
            ("mem0-v1+https://h", "Mem0 needs a key"),
            ("zep+https://h", "Zep needs a key"),
            ("acontext+https://h", "Acontext needs a key"),
        ] {
            let error = check(url, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
