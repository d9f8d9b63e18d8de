//! The keys that verify tokens, from a JWKS document (RFC 7517).

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mnemon_core::limits;
use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256};
use ring::{hmac, signature};
use serde::Deserialize;

use super::TokenRefused;
use crate::http;

/// A JWKS document is a few keys; a larger one is a mistake.
const MOST_BYTES: u64 = 1024 * 1024;
/// A symmetric key must be at least as long as the hash that it is used with.
const LEAST_SECRET: usize = 32;
/// How long an address may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Where the keys come from.
pub trait JwksSource: Send + Sync {
    fn read(&self) -> Result<Jwks, JwksError>;
}

/// Keys in a file.
#[derive(Debug, Clone)]
pub struct JwksFile(pub PathBuf);

/// Why the keys cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JwksError {
    #[error("the keys in {} cannot be read", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the keys of {url} cannot be read: {why}")]
    Url { url: String, why: String },
    #[error("{0}")]
    Invalid(String),
}

/// Keys at an address.
pub(super) struct JwksUrl {
    client: reqwest::Client,
    url: reqwest::Url,
}

impl JwksUrl {
    pub(super) fn new(url: &str) -> Result<Self, JwksError> {
        let wrong = |why: &str| JwksError::Url {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        let parsed = reqwest::Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        let host = parsed.host_str().unwrap_or_default();
        let host = host.trim_matches(['[', ']']).to_owned();
        let is_local = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        match parsed.scheme() {
            "https" => {}
            "http" if is_local => {}
            // Who can change the answer on its way decides which tokens are accepted.
            _ => return Err(wrong("use https; http is accepted for this machine only")),
        }
        let client = http::client(TIMEOUT).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self {
            client,
            url: parsed,
        })
    }

    pub(super) async fn read(&self) -> Result<Jwks, JwksError> {
        let mut shown = self.url.clone();
        // A query may hold a secret.
        shown.set_query(None);
        let wrong = |why: String| JwksError::Url {
            url: shown.to_string(),
            why,
        };
        let failed = |error: reqwest::Error| wrong(error.without_url().to_string());
        let response = self.client.get(self.url.clone()).send().await;
        let response = response.map_err(failed)?;
        if !response.status().is_success() {
            return Err(wrong(format!("it answered {}", response.status())));
        }
        let most = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
        let body = http::read(response, most).await;
        let body = body.map_err(|unread| match unread {
            http::Unread::TooLarge => wrong(format!("it has more than {MOST_BYTES} bytes")),
            http::Unread::Failed(error) => failed(error),
        })?;
        Jwks::parse(&String::from_utf8_lossy(&body)).map_err(|error| wrong(error.to_string()))
    }
}

impl JwksSource for JwksFile {
    fn read(&self) -> Result<Jwks, JwksError> {
        let read = || {
            let mut text = String::new();
            let file = std::fs::File::open(&self.0)?;
            file.take(MOST_BYTES).read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|source| JwksError::File {
            path: self.0.clone(),
            source,
        })?;
        Jwks::parse(&text).map_err(|error| match error {
            JwksError::Invalid(what) => JwksError::Invalid(format!("{}: {what}", self.0.display())),
            error => error,
        })
    }
}

/// Keys, each for one algorithm.
#[derive(Default)]
pub struct Jwks(Vec<Key>);

struct Key {
    id: Option<String>,
    verifier: Verifier,
}

enum Verifier {
    /// Modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// An uncompressed point.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
    Hmac(hmac::Key),
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Member>,
}

/// The members of a key that matter here; others are ignored, as the standard demands.
#[derive(Deserialize)]
struct Member {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    k: Option<String>,
}

impl fmt::Debug for Jwks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

impl Jwks {
    /// The keys of the document that can be used here. One that is damaged is an error.
    pub fn parse(text: &str) -> Result<Self, JwksError> {
        let document: Document = serde_json::from_str(text)
            .map_err(|error| JwksError::Invalid(format!("it is not a JWKS document: {error}")))?;
        if document.keys.len() > limits::JWKS_KEYS {
            let (count, most) = (document.keys.len(), limits::JWKS_KEYS);
            let what = format!("it has {count} keys, at most {most} are allowed");
            return Err(JwksError::Invalid(what));
        }
        let mut keys = Vec::new();
        for (at, member) in document.keys.into_iter().enumerate() {
            let key = member.key();
            let wrong = |what| JwksError::Invalid(format!("key {} {what}", at + 1));
            keys.extend(key.map_err(wrong)?);
        }
        match keys.is_empty() {
            true => Err(JwksError::Invalid(
                "it has no key for RS256, ES256, EdDSA or HS256".to_owned(),
            )),
            false => Ok(Self(keys)),
        }
    }

    /// Whether a key with this name and algorithm made the signature.
    pub(super) fn check(
        &self,
        algorithm: &str,
        id: Option<&str>,
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenRefused> {
        let is_named = |key: &&Key| id.is_none() || key.id.as_deref() == id;
        let mut named = self.0.iter().filter(is_named).peekable();
        if named.peek().is_none() {
            return Err(TokenRefused::UnknownKey);
        }
        let mut fitting = named
            .filter(|key| key.verifier.algorithm() == algorithm)
            .peekable();
        if fitting.peek().is_none() {
            return Err(TokenRefused::Algorithm);
        }
        match fitting.any(|key| key.verifier.accepts(signed, signature)) {
            true => Ok(()),
            false => Err(TokenRefused::Signature),
        }
    }
}

impl Verifier {
    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(..) => "RS256",
            Self::P256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
            Self::Hmac(_) => "HS256",
        }
    }

    fn accepts(&self, signed: &[u8], made: &[u8]) -> bool {
        let accepts = |algorithm: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            let key = signature::UnparsedPublicKey::new(algorithm, key);
            key.verify(signed, made).is_ok()
        };
        match self {
            Self::Rsa(n, e) => {
                let key = signature::RsaPublicKeyComponents { n, e };
                let verified = key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, made);
                verified.is_ok()
            }
            Self::P256(point) => accepts(&ECDSA_P256_SHA256_FIXED, point),
            Self::Ed25519(key) => accepts(&ED25519, key),
            // Compares in constant time.
            Self::Hmac(key) => hmac::verify(key, signed, made).is_ok(),
        }
    }
}

impl Member {
    /// The key; `None` if it is meant for something else.
    fn key(self) -> Result<Option<Key>, String> {
        if self.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return Ok(None);
        }
        let verifier = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (bytes("n", &self.n)?, bytes("e", &self.e)?);
                Verifier::Rsa(trimmed(&n), trimmed(&e))
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x", &self.x)?, bytes("y", &self.y)?);
                if (x.len(), y.len()) != (32, 32) {
                    return Err("has coordinates that are not 32 bytes long".to_owned());
                }
                Verifier::P256([&[4], x.as_slice(), y.as_slice()].concat())
            }
            ("OKP", Some("Ed25519")) => Verifier::Ed25519(bytes("x", &self.x)?),
            ("oct", _) => {
                let secret = bytes("k", &self.k)?;
                if secret.len() < LEAST_SECRET {
                    let bits = LEAST_SECRET * 8;
                    return Err(format!("is too short: HS256 needs {bits} bits or more"));
                }
                Verifier::Hmac(hmac::Key::new(hmac::HMAC_SHA256, &secret))
            }
            _ => return Ok(None),
        };
        let is_other = |named: &str| named != verifier.algorithm();
        if self.alg.as_deref().is_some_and(is_other) {
            return Ok(None);
        }
        let id = self.kid;
        Ok(Some(Key { id, verifier }))
    }
}

fn bytes(name: &str, text: &Option<String>) -> Result<Vec<u8>, String> {
    let text = text.as_deref().ok_or_else(|| format!("lacks `{name}`"))?;
    let bytes = URL_SAFE_NO_PAD.decode(text);
    bytes.map_err(|_| format!("has a `{name}` that is not base64url"))
}

/// A number without leading zeros, which some programs write.
fn trimmed(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.iter().skip(zeros).copied().collect()
}
