//! Verifies JSON Web Tokens: signature, issuer, audience, times.
//!
//! The key decides the algorithm, never the token: an RSA key verifies RS256 only, a P-256 key ES256,
//! an Ed25519 key EdDSA, a symmetric key HS256. So a token that names another algorithm, or `none`,
//! is refused. Keys come from a JWKS document: a file, or an address that is asked again now and then.

mod jwks;
#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mnemon_core::{Time, limits};
use serde::Deserialize;
use serde_json::{Map, Value};

use jwks::JwksUrl;
pub use jwks::{Jwks, JwksError, JwksFile, JwksSource};

/// How soon an address that failed is asked again.
const RETRY_MS: i64 = 30_000;

/// Which tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRules {
    /// The claim `iss` must be this.
    pub issuer: String,
    /// The claim `aud` must be this, or hold it.
    pub audience: String,
    /// How far clocks may differ, in seconds.
    pub leeway_s: u32,
}

/// Why a token is refused. Callers get the same answer for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefused {
    #[error("it is not a token")]
    Malformed,
    #[error("its algorithm is not the one of a known key")]
    Algorithm,
    #[error("it names an unknown key")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("its issuer is another one")]
    Issuer,
    #[error("it is meant for another audience")]
    Audience,
    #[error("it has expired, or names no end")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
}

/// Verifies tokens with the keys of a source.
pub struct Tokens {
    rules: TokenRules,
    source: Source,
    keys: RwLock<Arc<Jwks>>,
}

enum Source {
    Fixed(Box<dyn JwksSource>),
    /// An address, when it was asked last, and whether it answered. Only one task asks at a time.
    Url(JwksUrl, tokio::sync::Mutex<Option<(Time, bool)>>),
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that a reader must understand; none is understood here.
    crit: Option<Value>,
}

impl Tokens {
    /// Reads the keys at once.
    pub fn open(rules: TokenRules, source: Box<dyn JwksSource>) -> Result<Self, JwksError> {
        let keys = RwLock::new(Arc::new(source.read()?));
        Ok(Self {
            rules,
            source: Source::Fixed(source),
            keys,
        })
    }

    /// With the keys of an address, which must be https or of this machine. There are none until
    /// [`Self::refresh`] has asked for them.
    pub fn at_url(rules: TokenRules, url: &str) -> Result<Self, JwksError> {
        Ok(Self {
            rules,
            source: Source::Url(JwksUrl::new(url)?, tokio::sync::Mutex::default()),
            keys: RwLock::default(),
        })
    }

    /// Asks the address for the keys, unless it was asked less than `age_ms` ago. If it fails, the known
    /// ones stay in use.
    pub async fn refresh(&self, now: Time, age_ms: i64) -> Result<(), JwksError> {
        let Source::Url(url, asked) = &self.source else {
            return Ok(());
        };
        let mut asked = asked.lock().await;
        if let Some((at, was_answered)) = *asked {
            let least_ms = match was_answered {
                true => age_ms,
                false => age_ms.min(RETRY_MS),
            };
            // Another task may have asked since `now` was read.
            if (now.millis() - at.millis()).abs() < least_ms {
                return Ok(());
            }
        }
        *asked = Some((now, false));
        self.set(url.read().await?);
        *asked = Some((now, true));
        Ok(())
    }

    /// Reads the keys of a file again. If that fails, the known ones stay in use.
    pub fn reload(&self) -> Result<(), JwksError> {
        if let Source::Fixed(source) = &self.source {
            self.set(source.read()?);
        }
        Ok(())
    }

    fn set(&self, fresh: Jwks) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
    }

    /// The claims of a valid token.
    pub fn verify(&self, now: Time, token: &str) -> Result<Map<String, Value>, TokenRefused> {
        let token = token.trim();
        if token.len() > limits::CREDENTIAL_BYTES {
            return Err(TokenRefused::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenRefused::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenRefused::Malformed)?;
        let header: Header = decode(header)?;
        if header.crit.is_some() {
            return Err(TokenRefused::Malformed);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature);
        let signature = signature.map_err(|_| TokenRefused::Malformed)?;
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let keys = keys.clone();
        keys.check(
            &header.alg,
            header.kid.as_deref(),
            signed.as_bytes(),
            &signature,
        )?;
        // Nothing of the claims is read before the signature is known to be right.
        let claims: Map<String, Value> = decode(claims)?;
        self.check_claims(now, &claims)?;
        Ok(claims)
    }

    fn check_claims(&self, now: Time, claims: &Map<String, Value>) -> Result<(), TokenRefused> {
        let issuer = claims.get("iss").and_then(Value::as_str);
        if issuer != Some(self.rules.issuer.as_str()) {
            return Err(TokenRefused::Issuer);
        }
        let wanted = self.rules.audience.as_str();
        let is_meant = match claims.get("aud") {
            Some(Value::String(audience)) => audience == wanted,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(wanted)),
            _ => false,
        };
        if !is_meant {
            return Err(TokenRefused::Audience);
        }
        let seconds = now.millis().div_euclid(1000) as f64;
        let leeway = f64::from(self.rules.leeway_s);
        let end = claims.get("exp").and_then(Value::as_f64);
        if !end.is_some_and(|end| seconds < end + leeway) {
            return Err(TokenRefused::Expired);
        }
        let has_begun = |claim: &str| match claims.get(claim) {
            None => true,
            Some(from) => from.as_f64().is_some_and(|from| from <= seconds + leeway),
        };
        match has_begun("nbf") && has_begun("iat") {
            true => Ok(()),
            false => Err(TokenRefused::NotYet),
        }
    }
}

fn decode<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, TokenRefused> {
    let bytes = URL_SAFE_NO_PAD.decode(part);
    let bytes = bytes.map_err(|_| TokenRefused::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenRefused::Malformed)
}
