//! A request as a double reads it.

use std::io::Read;
use std::net::TcpStream;

use serde_json::Value;

/// Why a path is refused.
pub(super) const NOT_A_ROUTE: &str = "this is not a route";

pub(super) struct Call {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    bytes: Vec<u8>,
    /// `null` without a body, or if it is not JSON.
    pub(super) body: Value,
}

impl Call {
    pub(super) fn read(stream: &mut TcpStream) -> std::io::Result<Self> {
        let (mut bytes, mut piece) = (Vec::new(), [0; 65_536]);
        loop {
            if let Some(call) = Self::parse(&bytes) {
                return Ok(call);
            }
            match stream.read(&mut piece)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                n => bytes.extend_from_slice(&piece[..n]),
            }
        }
    }

    /// The request, once it is whole.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let (first, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
        let headers = headers.lines().filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        let headers: Vec<(String, String)> = headers.collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().unwrap());
        let body = bytes[end + 4..].to_vec();
        if body.len() < length {
            return None;
        }
        let mut words = first.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Some(Self {
            method,
            path: path.to_owned(),
            query: pairs
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
            headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
            bytes: body,
        })
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The rules that all services share.
    pub(super) fn check(&self) -> Result<(), String> {
        let accept = self.header("accept").unwrap_or_default();
        if !accept.contains("application/json") && !accept.contains("*/*") {
            return Err("the header Accept does not allow JSON".to_owned());
        }
        if self.bytes.is_empty() {
            return Ok(());
        }
        let content_type = self.header("content-type").unwrap_or_default();
        match (self.method.as_str(), content_type) {
            ("GET", _) => Err("a GET has no body".to_owned()),
            (_, kind) if !kind.starts_with("application/json") => {
                Err(format!("the content type is `{kind}`"))
            }
            _ if self.body.is_null() => Err("the body is not JSON".to_owned()),
            _ => Ok(()),
        }
    }

    /// Refuses parameters other than these.
    pub(super) fn only_query(&self, known: &[&str]) -> Result<(), String> {
        let mut names = self.query.iter().map(|(name, _)| name.as_str());
        match names.find(|name| !known.contains(name)) {
            Some(name) => Err(format!("unknown parameter {name}")),
            None => Ok(()),
        }
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A parameter that is a whole number between these; `usual` without it.
    pub(super) fn number(&self, name: &str, usual: u64, most: u64) -> Result<u64, String> {
        let Some(text) = self.parameter(name) else {
            return Ok(usual);
        };
        let number = text.parse::<u64>().ok().filter(|n| (1..=most).contains(n));
        number.ok_or_else(|| format!("{name} is not between 1 and {most}"))
    }
}

/// `%20` and `+` are spaces.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        let (byte, next) = match (first, code) {
            (b'%', Some(code)) => (code, &after[2..]),
            (b'+', _) => (b' ', after),
            (other, _) => (*other, after),
        };
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
