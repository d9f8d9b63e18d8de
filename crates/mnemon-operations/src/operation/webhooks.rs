//! Operations on the webhooks of the tenant of the call: an administrator of one tenant never reaches
//! those of another.

use mnemon_core::{Id, limits};
use mnemon_engine::webhooks::{DeadLetter, NewWebhook, URL_BYTES, Webhook, Webhooks};
use serde::{Deserialize, Serialize};

use super::{
    Access, Arguments, Field, Operation, Selection, Spelling, WebhookCreate, WebhookDelete,
    WebhookFailed, WebhookList, WebhookRedeliver, call,
};
use crate::{Error, wiring};

/// Bytes of chance in a secret.
const SECRET_BYTES: usize = 32;

/// A new webhook with its secret, which is not shown again.
#[derive(Clone, Serialize, Deserialize)]
pub struct CreatedWebhook {
    #[serde(flatten)]
    pub webhook: Webhook,
    pub secret: String,
}

/// Webhooks, the oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WebhookPage {
    pub webhooks: Vec<Webhook>,
}

/// The deliveries of a webhook that were given up, the oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FailedDeliveries {
    pub id: Id,
    pub dead_letters: Vec<DeadLetter>,
    pub dropped_letters: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeletedWebhook {
    pub id: Id,
}

/// A dead letter that has arrived.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Redelivered {
    pub id: Id,
    pub number: u64,
}

fn webhooks(access: &Access<'_>) -> Result<Webhooks, Error> {
    let hosts = &access.config.access.webhook_hosts;
    Ok(wiring::webhooks(access.memory.records(), hosts)?)
}

fn webhook() -> Field {
    let about = "The id of the webhook, as `mnemon webhook list` shows it";
    let field = Field::text("webhook", limits::ID_CHARS, about).required();
    field.positional(Spelling::Positional, "ID")
}

fn missing(id: &Id) -> Error {
    mnemon_engine::Error::NotThere(format!("there is no webhook {id}")).into()
}

impl Operation for WebhookCreate {
    const COMMAND: &'static str = "webhook create";
    type Answer = CreatedWebhook;

    fn fields() -> Vec<Field> {
        let about = "The address that changes are sent to, https:// or http://";
        let url = Field::text("url", URL_BYTES, about).required();
        let mut fields = vec![url.positional(Spelling::Positional, "URL")];
        fields.extend(Selection::fields());
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<CreatedWebhook, Error> {
        let url = arguments.take_needed("url");
        let random: [u8; SECRET_BYTES] = wiring::random_bytes();
        let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let new = NewWebhook {
            url,
            secret: secret.clone(),
            filter: call::<Selection, _>(access, arguments).await?,
        };
        let webhook = webhooks(access)?.create(access.ctx, new).await?;
        Ok(CreatedWebhook { webhook, secret })
    }
}

impl Operation for WebhookList {
    const COMMAND: &'static str = "webhook list";
    type Answer = WebhookPage;

    async fn run(access: &Access<'_>, _: Arguments) -> Result<WebhookPage, Error> {
        let webhooks = webhooks(access)?.list(access.ctx).await?;
        Ok(WebhookPage { webhooks })
    }
}

impl Operation for WebhookFailed {
    const COMMAND: &'static str = "webhook failed";
    type Answer = FailedDeliveries;

    fn fields() -> Vec<Field> {
        vec![webhook()]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<FailedDeliveries, Error> {
        let id = arguments.take_id("webhook")?;
        let all = webhooks(access)?.list(access.ctx).await?;
        let webhook = all.into_iter().find(|webhook| webhook.id == id);
        let webhook = webhook.ok_or_else(|| missing(&id))?;
        Ok(FailedDeliveries {
            id,
            dead_letters: webhook.dead_letters,
            dropped_letters: webhook.dropped_letters,
        })
    }
}

impl Operation for WebhookRedeliver {
    const COMMAND: &'static str = "webhook redeliver";
    type Answer = Redelivered;

    fn fields() -> Vec<Field> {
        let about = "The number of the delivery, as `mnemon webhook failed` shows it";
        let number = Field::whole("number", 1, i64::MAX.cast_unsigned(), about).required();
        vec![webhook(), number.positional(Spelling::Positional, "NUMBER")]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Redelivered, Error> {
        let id = arguments.take_id("webhook")?;
        let number = arguments.whole("number").unwrap_or_default() as u64;
        let webhooks = webhooks(access)?;
        let sent = webhooks.redeliver(access.ctx, &id, number).await?;
        sent.map_err(|error| Error::NotDelivered(error.to_string()))?;
        Ok(Redelivered { id, number })
    }
}

impl Operation for WebhookDelete {
    const COMMAND: &'static str = "webhook delete";
    type Answer = DeletedWebhook;

    fn fields() -> Vec<Field> {
        vec![webhook()]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<DeletedWebhook, Error> {
        let id = arguments.take_id("webhook")?;
        match webhooks(access)?.delete(access.ctx, &id).await? {
            true => Ok(DeletedWebhook { id }),
            false => Err(missing(&id)),
        }
    }
}
