//! From a URL to a service and its address.

use mnemon_core::Invalid;
use reqwest::Url;

use crate::http::Secret;

/// The form of URLs that name a memory service.
const FORM: &str = "mem0+https://HOST";
/// The service, for people.
const MEM0: &str = "Mem0";

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// `https://HOST/PATH`, without a slash at the end.
    pub(super) base: String,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, Invalid> {
        let address = url.strip_prefix("mem0+").ok_or_else(|| unknown(url))?;
        let parsed = http_url(address)?;
        if let Some((name, _)) = parsed.query_pairs().next() {
            let what = format!("{MEM0} has no setting `{name}`");
            return Err(Invalid::new("url", what));
        }
        Ok(Self {
            base: base_of(&parsed),
        })
    }

    /// The name of the service.
    pub(super) fn service(&self) -> &'static str {
        MEM0
    }

    /// Refuses to send a key in the open, or to do without one that is needed.
    pub(super) fn check_key(&self, key: Option<&Secret>) -> Result<(), Invalid> {
        check_encrypted(&self.base, key)?;
        match key {
            None if !is_this_machine(&self.base) => {
                let what = format!("{MEM0} needs a key; set its variable in the environment");
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

pub(super) fn base_of(url: &Url) -> String {
    let path = url.path().trim_end_matches('/');
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

fn unknown(url: &str) -> Invalid {
    // Only the scheme is shown: the rest may hold a password.
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let scheme = scheme.escape_debug();
    let what = format!("`{scheme}://` does not name a memory service; write {FORM}");
    Invalid::new("url", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_service_and_its_api() {
        for (url, base) in [
            ("mem0+https://api.mem0.ai", "https://api.mem0.ai"),
            ("mem0+https://h/x/", "https://h/x"),
            ("mem0+http://h:8888", "http://h:8888"),
        ] {
            assert_eq!(Address::parse(url).unwrap().base, base, "{url}");
        }
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
        let error = check("mem0+https://h", None).unwrap_err().to_string();
        assert!(error.contains("Mem0 needs a key"), "{error}");
    }
}
