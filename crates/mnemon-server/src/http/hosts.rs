//! The names under which clients may address the server. A page of the web whose name was made to
//! lead to this machine (DNS rebinding) sends its own name, and is refused by it.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::{HeaderMap, StatusCode, Uri, header};
use mnemon_core::Invalid;

use super::problem::Problem;

/// A host, and a port if only that one is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority {
    host: String,
    port: Option<u16>,
}

/// The names that are allowed.
#[derive(Debug, Clone)]
pub(super) struct Hosts(Vec<Authority>);

impl Hosts {
    /// This machine, the address that is listened on, and these names.
    pub(super) fn new(own: IpAddr, named: &[String]) -> Result<Self, Invalid> {
        let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let all = local.into_iter().chain([own.to_string()]);
        let all = all.chain(named.iter().cloned()).map(|name| allowed(&name));
        all.collect::<Result<_, _>>().map(Self)
    }

    /// That the request names an allowed host, exactly once and as HTTP wants it.
    pub(super) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Box<Problem>> {
        let said = "the Host header must be one HOST or HOST:PORT";
        let wrong = || Box::new(Problem::new(StatusCode::BAD_REQUEST, "wrong-host", said));
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(wrong());
        };
        let asked = host.to_str().ok().and_then(parse).ok_or_else(wrong)?;
        // A whole address in the request line goes before the header, so both must agree.
        if let Some(authority) = uri.authority()
            && parse(authority.as_str()).as_ref() != Some(&asked)
        {
            return Err(wrong());
        }
        let is_allowed = self.0.iter().any(|allowed| {
            allowed.host == asked.host && (allowed.port.is_none() || allowed.port == asked.port)
        });
        match is_allowed {
            true => Ok(()),
            false => {
                let said = "this host is not served; the operator of the server can allow it with \
                            --allow-host NAME";
                Err(Box::new(Problem::new(
                    StatusCode::FORBIDDEN,
                    "wrong-host",
                    said,
                )))
            }
        }
    }
}

/// A name of the command line, where an IPv6 address may stand without brackets.
fn allowed(name: &str) -> Result<Authority, Invalid> {
    let bare = name.parse::<Ipv6Addr>().ok().map(|address| Authority {
        host: address.to_string(),
        port: None,
    });
    bare.or_else(|| parse(name)).ok_or_else(|| {
        let what = format!("`{}` is not a HOST or HOST:PORT", name.escape_debug());
        Invalid::new("allow-host", what)
    })
}

/// `host`, `host:port`, `[ipv6]` or `[ipv6]:port`, and nothing else: no user, path, escape or space.
fn parse(text: &str) -> Option<Authority> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (address.parse::<Ipv6Addr>().ok()?.to_string(), port)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            let (name, port) = text.split_at_checked(end)?;
            let is_part = |part: &str| {
                let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                !part.is_empty() && part.bytes().all(is_letter)
            };
            if !name.split('.').all(is_part) {
                return None;
            }
            (name.to_ascii_lowercase(), port)
        }
    };
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        // `u16` would also read `+80`.
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok()?)
        }
        _ => return None,
    };
    Some(Authority { host, port })
}

#[cfg(test)]
mod tests;
