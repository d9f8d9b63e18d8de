//! Webhooks: changes of a tenant, sent to a URL in order, at least once each.
//!
//! A webhook is two records of the system tenant: its definition, and its progress, which is the
//! number of the change that it has reached. So any server of the store goes on where another one
//! stopped. The server claims the webhooks of a tenant where the store keeps claims. Elsewhere a lease
//! in the progress keeps two processes from sending the same changes; it ends with the attempt.
//!
//! The range of a delivery is written down before its first attempt, so that all attempts send the
//! same changes. A delivery that fails is tried again after a wait that doubles. After [`ATTEMPTS`]
//! the webhook goes on with later changes at once, and the delivery becomes a dead letter: the range of its numbers,
//! without contents, so that a redelivery shows nothing that was purged meanwhile.
//!
//! The engine has no timer: the server calls [`Webhooks::by_tenant`] and [`Webhooks::deliver`].

mod delivering;
mod stored;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use mnemon_core::webhook::WebhookSender;
use mnemon_core::{Ctx, Filter, Id, Invalid, Tenant, Time};
use serde::{Deserialize, Serialize};

pub use delivering::{Delivered, TenantWebhooks};
pub use stored::DeadLetter;

use crate::records::{Error, Records};
use crate::webhooks::stored::{Definition, Progress, Secret, Stored};

/// Attempts of one delivery, the first included, before it becomes a dead letter.
pub const ATTEMPTS: u32 = 8;
/// The wait after the first failure; it doubles up to [`MOST_WAIT_MS`].
pub const FIRST_WAIT_MS: i64 = 10_000;
pub const MOST_WAIT_MS: i64 = 3_600_000;
/// Dead letters that a webhook keeps; the oldest go first, and are counted.
pub const DEAD_LETTERS: usize = 100;
/// Webhooks of one tenant.
pub const MOST_WEBHOOKS: usize = 20;
/// Webhooks of all tenants.
const MOST_IN_ALL: usize = 1_000;
pub const URL_BYTES: usize = 2_048;
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 16..=256;

/// A webhook to be made.
#[derive(Clone)]
pub struct NewWebhook {
    pub url: String,
    /// Signs the deliveries; made by the caller, who has a source of chance.
    pub secret: String,
    /// Which changes are sent, and who it is that sees them.
    pub filter: Filter,
}

/// A webhook and how it is doing. The secret is not shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Webhook {
    pub id: Id,
    pub tenant: Tenant,
    pub url: String,
    pub filter: Filter,
    pub created: Time,
    /// The change up to which everything was sent, or became a dead letter.
    pub reached: u64,
    /// Failed attempts of the delivery that is due next.
    pub failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    pub dead_letters: Vec<DeadLetter>,
    /// Dead letters that were dropped because there were too many.
    pub dropped_letters: u64,
}

/// The webhooks of one store.
pub struct Webhooks {
    records: Records,
    sender: Arc<dyn WebhookSender>,
    /// Names this process in leases.
    holder: String,
    /// How far each webhook has read without finding a change to send. Kept here, because writing
    /// it down for every change that is not meant would be a change itself.
    scanned: Mutex<HashMap<Id, u64>>,
    /// How often progress was written down.
    saves: AtomicU64,
}

impl Webhooks {
    /// Webhooks over this store. `holder` is different for every process that delivers.
    pub fn new(
        records: &Records,
        sender: Arc<dyn WebhookSender>,
        holder: impl Into<String>,
    ) -> Self {
        Self {
            records: records.clone(),
            sender,
            holder: holder.into(),
            scanned: Mutex::default(),
            saves: AtomicU64::default(),
        }
    }

    /// Makes a webhook of the tenant of `ctx`. It sends changes from now on.
    pub async fn create(&self, ctx: &Ctx, new: NewWebhook) -> Result<Webhook, Error> {
        self.check(&new)?;
        if ctx.tenant.is_system() {
            let what = "is reserved; webhooks belong to other tenants";
            return Err(Invalid::new("tenant", what).into());
        }
        let all = self.stored(ctx).await?;
        let ours = all.iter().filter(|one| one.definition.tenant == ctx.tenant);
        if ours.count() >= MOST_WEBHOOKS || all.len() >= MOST_IN_ALL {
            let what = format!(
                "there are {MOST_WEBHOOKS} webhooks already, which is the limit; delete one first"
            );
            return Err(Invalid::new("webhook", what).into());
        }
        let definition = Definition {
            tenant: ctx.tenant.clone(),
            url: new.url,
            secret: Secret::new(new.secret),
            filter: new.filter,
            created: ctx.now,
        };
        let progress = Progress {
            reached: self.records.feed().newest(ctx).await?,
            ..Progress::default()
        };
        let stored = Stored::new(&self.records.ids.next(ctx.now), definition, progress)?;
        self.insert(ctx, &stored).await?;
        Ok(stored.shown())
    }

    fn check(&self, new: &NewWebhook) -> Result<(), Error> {
        new.filter.viewer.check()?;
        if new.url.len() > URL_BYTES {
            let what = format!("is longer than {URL_BYTES} bytes");
            return Err(Invalid::new("url", what).into());
        }
        if !SECRET_BYTES.contains(&new.secret.len()) {
            let (least, most) = (SECRET_BYTES.start(), SECRET_BYTES.end());
            let what = format!("must have {least} to {most} bytes");
            return Err(Invalid::new("secret", what).into());
        }
        Ok(self.sender.check(&new.url)?)
    }

    /// The webhooks of the tenant of `ctx`, oldest first.
    pub async fn list(&self, ctx: &Ctx) -> Result<Vec<Webhook>, Error> {
        let all = self.stored(ctx).await?.into_iter();
        let ours = all.filter(|one| one.definition.tenant == ctx.tenant);
        Ok(ours.map(|one| one.shown()).collect())
    }

    /// Deletes a webhook of the tenant of `ctx`, with its secret, its progress and its dead
    /// letters; whether there was one.
    pub async fn delete(&self, ctx: &Ctx, id: &Id) -> Result<bool, Error> {
        let Some(stored) = self.find(ctx, id).await? else {
            return Ok(false);
        };
        self.erase(ctx, &stored).await?;
        self.scanned().remove(id);
        Ok(true)
    }

    async fn find(&self, ctx: &Ctx, id: &Id) -> Result<Option<Stored>, Error> {
        let found = self.load(ctx, std::slice::from_ref(id)).await?;
        let ours = |one: &Stored| one.definition.tenant == ctx.tenant;
        Ok(found.into_iter().next().filter(ours))
    }

    fn scanned(&self) -> std::sync::MutexGuard<'_, HashMap<Id, u64>> {
        self.scanned
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
