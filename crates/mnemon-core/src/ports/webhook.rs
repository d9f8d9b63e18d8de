//! The port that sends changes to a URL.

use async_trait::async_trait;

use crate::error::Invalid;
use crate::model::Time;

/// Sends the deliveries of webhooks.
#[async_trait]
pub trait WebhookSender: Send + Sync {
    /// Whether deliveries may go to this URL, as far as the URL itself says.
    fn check(&self, url: &str) -> Result<(), Invalid>;

    /// Sends one delivery, signed with the secret. It has arrived if the receiver answers with a
    /// status from 200 to 299.
    async fn send(&self, delivery: &Delivery<'_>) -> Result<(), NotDelivered>;
}

/// One request of a webhook.
#[derive(Clone, Copy)]
pub struct Delivery<'a> {
    pub url: &'a str,
    pub secret: &'a str,
    /// The same for every attempt, so that the receiver can tell a repetition.
    pub id: &'a str,
    /// When it is sent, for the signature.
    pub at: Time,
    /// JSON.
    pub body: &'a [u8],
}

/// Why a delivery did not arrive, in one sentence without the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotDelivered(pub String);
