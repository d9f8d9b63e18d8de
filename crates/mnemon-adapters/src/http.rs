//! What all our HTTP clients do alike: keys that cannot be printed, waits, and bounded answers.

use std::fmt;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// The longest that we wait before another attempt.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);
/// Bytes of an error message that are passed on.
const MAX_MESSAGE_BYTES: usize = 300;

/// A key that cannot be printed by accident.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for a header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The key in base64, as basic authentication wants `user:password`.
    pub(crate) fn base64(&self) -> Self {
        Self(BASE64_STANDARD.encode(&self.0))
    }

    /// The text without the key, should somebody have repeated it.
    pub(crate) fn hide_in(&self, text: &str) -> String {
        match self.0.is_empty() {
            true => text.to_owned(),
            false => text.replace(&self.0, "***"),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A client whose calls take no longer than this, the answer included. It follows no redirects:
/// they could carry a key to somebody else.
pub(crate) fn client(timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    client_of(timeout, &[])
}

/// The same with certificates of these authorities, in PEM, besides those of the system.
pub fn client_of(timeout: Duration, authorities: &[u8]) -> Result<reqwest::Client, reqwest::Error> {
    // Without a provider of its own rustls would panic; an earlier one stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .timeout(timeout)
        .connect_timeout(timeout)
        .redirect(reqwest::redirect::Policy::none())
        .tls_certs_merge(reqwest::Certificate::from_pem_bundle(authorities)?)
        .build()
}

/// Why an answer was not read.
pub(crate) enum Unread {
    /// It had more bytes than are accepted.
    TooLarge,
    Failed(reqwest::Error),
}

/// The answer's bytes; an endless answer is cut off, not stored.
pub(crate) async fn read(mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Unread::Failed)? {
        if body.len() + chunk.len() > most {
            return Err(Unread::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// How long `Retry-After` asks to wait: it holds seconds, or a date. A date is held against the
/// answer's own `Date`, so that it does not matter whose clock is wrong; one that has passed is no
/// wait at all.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = date(text)?;
    let sent = headers.get(DATE).and_then(|sent| sent.to_str().ok());
    let now = sent.and_then(date).unwrap_or_else(Timestamp::now);
    let seconds = until.as_second().saturating_sub(now.as_second()).max(0);
    Some(Duration::from_secs(seconds.cast_unsigned()))
}

/// A date as HTTP writes it: `Wed, 21 Oct 2026 07:28:00 GMT`.
fn date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(text.trim())
        .ok()
}

/// Whether the same request may succeed later.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// Doubles with each attempt; half of it is chance, so that many clients do not come back at the
/// same moment.
pub(crate) fn backoff(first_ms: u64, attempt: u32) -> Duration {
    let full = first_ms.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let ms = full / 2 + fastrand::u64(0..=full / 2);
    Duration::from_millis(ms).min(MAX_WAIT)
}

/// What an endpoint said about its refusal, in one short text without the key.
pub(crate) fn said(body: &[u8], key: Option<&Secret>) -> String {
    let text = String::from_utf8_lossy(body);
    let json: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    let message = json.as_ref().and_then(|v| {
        let places = ["/error/message", "/error", "/message", "/detail"];
        places.iter().find_map(|at| v.pointer(at)?.as_str())
    });
    let message = message.unwrap_or(text.trim());
    let mut message = key.map_or_else(|| message.to_owned(), |key| key.hide_in(message));
    message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(retry_after: &str, date: Option<&str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        super::retry_after(&headers).map(|wait| wait.as_millis() as u64)
    }

    #[test]
    fn waits_for_seconds_or_until_a_date() {
        let sent = Some("Wed, 21 Oct 2026 07:28:00 GMT");
        assert_eq!(asked("3", None), Some(3000));
        assert_eq!(asked(" 0.3 ", None), Some(300));
        assert_eq!(asked("Wed, 21 Oct 2026 07:28:25 GMT", sent), Some(25_000));
        assert_eq!(asked("Wed, 21 Oct 2026 07:27:00 GMT", sent), Some(0));
        assert_eq!(
            asked("Thu, 22 Oct 2026 07:28:00 GMT", sent),
            Some(86_400_000)
        );
        assert_eq!(asked("-1", None), None, "backoff serves");
        assert_eq!(asked("soon", sent), None, "backoff serves");
        assert_eq!(asked("NaN", sent), None, "backoff serves");
    }

    #[test]
    fn without_a_date_of_the_answer_our_own_clock_counts() {
        assert_eq!(asked("Sat, 01 Jan 2000 00:00:00 GMT", None), Some(0));
        assert!(asked("Thu, 31 Dec 9998 00:00:00 GMT", None) > Some(86_400_000));
    }
}
