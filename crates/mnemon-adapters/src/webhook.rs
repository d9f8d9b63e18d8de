//! Sends the deliveries of webhooks, and nothing else, to addresses outside.
//!
//! A webhook's URL comes from a user of the server, who must not reach through it what only the
//! server can reach. So names are resolved here, every address is checked, and the connection goes
//! to exactly the addresses that were checked: a name that changes between check and connection
//! gains nothing. Redirects are not followed and proxies not used.

mod guard;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use guard::{Guard, System};
use mnemon_core::Invalid;
use mnemon_core::webhook::{Delivery, NotDelivered, WebhookSender};
use reqwest::Url;
use reqwest::dns::Resolve;
use sha2::{Digest, Sha256};

pub use guard::is_public;

/// The header that proves who sent the body: `t=SECONDS,v1=HEX`, where HEX is the HMAC-SHA256 of
/// `SECONDS.BODY` under the webhook's secret.
pub const SIGNATURE: &str = "Mnemon-Signature";
/// The header that is the same for every attempt of one delivery.
pub const DELIVERY: &str = "Mnemon-Delivery";

const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends deliveries over HTTP.
pub struct HttpWebhooks {
    client: reqwest::Client,
    guard: Arc<Guard>,
}

impl HttpWebhooks {
    /// A sender that resolves names as the system does. Hosts of `allowed` may have any address:
    /// their names or addresses, as they stand in URLs.
    pub fn new(allowed: Vec<String>) -> Result<Self, Invalid> {
        Self::with_resolver(allowed, Arc::new(System), TIMEOUT)
    }

    /// The same with other names and another time limit, for tests.
    pub fn with_resolver(
        allowed: Vec<String>,
        names: Arc<dyn Resolve>,
        timeout: Duration,
    ) -> Result<Self, Invalid> {
        let guard = Arc::new(Guard::new(allowed, names, timeout / 2));
        // Without a provider of its own rustls would panic; an earlier one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .timeout(timeout)
            .connect_timeout(timeout)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            // A connection that is kept was checked before an allow list could change.
            .pool_max_idle_per_host(0)
            .dns_resolver(guard.clone())
            .build()
            .map_err(|error| Invalid::new("webhooks", error.to_string()))?;
        Ok(Self { client, guard })
    }

    fn url(&self, url: &str) -> Result<Url, Invalid> {
        let invalid = |what: &str| Invalid::new("url", what.to_owned());
        let parsed = Url::parse(url).map_err(|error| invalid(&format!("is not a URL: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(invalid("must begin with https:// or http://"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(invalid("must not contain a user or a password"));
        }
        let host = parsed.host_str().ok_or_else(|| invalid("names no host"))?;
        self.guard
            .check_host(host)
            .map_err(|what| Invalid::new("url", what))?;
        Ok(parsed)
    }
}

#[async_trait]
impl WebhookSender for HttpWebhooks {
    fn check(&self, url: &str) -> Result<(), Invalid> {
        self.url(url).map(drop)
    }

    async fn send(&self, delivery: &Delivery<'_>) -> Result<(), NotDelivered> {
        let url = self
            .url(delivery.url)
            .map_err(|error| NotDelivered(error.to_string()))?;
        let seconds = delivery.at.millis().div_euclid(1000);
        let signature = signature(delivery.secret.as_bytes(), seconds, delivery.body);
        let request = self
            .client
            .post(url)
            .header("Content-Type", "application/json")
            .header(SIGNATURE, signature)
            .header(DELIVERY, delivery.id)
            .body(delivery.body.to_vec());
        let response = request
            .send()
            .await
            .map_err(|error| NotDelivered(reason(&error)))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(NotDelivered(format!("the receiver answered {status}"))),
        }
    }
}

/// The innermost cause, without the URL: it may hold a token.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "the receiver did not answer in time".to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    format!("the request failed: {cause}")
}

/// The value of [`SIGNATURE`].
pub fn signature(secret: &[u8], seconds: i64, body: &[u8]) -> String {
    let stamp = format!("{seconds}.");
    let code = hmac_sha256(secret, &[stamp.as_bytes(), body]);
    let hex: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

/// HMAC of RFC 2104 with SHA-256.
fn hmac_sha256(key: &[u8], message: &[&[u8]]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let hashed;
    let key = match key.len() > BLOCK {
        true => {
            hashed = Sha256::digest(key);
            hashed.as_slice()
        }
        false => key,
    };
    let padded = |pad: u8| {
        let zeros = std::iter::repeat_n(&0, BLOCK - key.len());
        let bytes = key.iter().chain(zeros).map(move |byte| byte ^ pad);
        bytes.collect::<Vec<u8>>()
    };
    let mut inner = Sha256::new_with_prefix(padded(0x36));
    for part in message {
        inner.update(part);
    }
    Sha256::new_with_prefix(padded(0x5c))
        .chain_update(inner.finalize())
        .finalize()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Cases 1, 2 and 6 of RFC 4231.
    #[test]
    fn the_code_is_that_of_the_standard() {
        let cases: [(&[u8], &[u8], &str); 3] = [
            (
                &[0x0b; 20],
                b"Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, message, expected) in cases {
            assert_eq!(hex(&hmac_sha256(key, &[message])), expected);
            let (one, two) = message.split_at(3);
            assert_eq!(hex(&hmac_sha256(key, &[one, two])), expected);
        }
    }
}
