//! Sending what is due.

use std::collections::{BTreeMap, VecDeque};

use futures::future::join_all;
use mnemon_core::webhook::{Delivery, NotDelivered};
use mnemon_core::{Change, Ctx, Id, Tenant, Time};
use serde::Serialize;

use super::stored::{DeadLetter, Lease, Stored};
use super::{ATTEMPTS, FIRST_WAIT_MS, MOST_WAIT_MS, Webhooks};
use crate::feed::FeedPage;
use crate::records::Error;

/// Changes in one delivery.
const PAGE: usize = 100;
/// Bytes of a delivery, from which on it has fewer changes; one change is sent whatever its size.
const BODY_BYTES: usize = 1024 * 1024;
/// How long other processes wait for one that began an attempt and did not write down how it ended.
const LEASE_MS: i64 = 120_000;
/// Changes that are not meant, after which the progress is written down all the same.
const SCANNED: u64 = 10_000;
/// Webhooks of a tenant that are sent at the same time.
const AT_ONCE: usize = 4;
/// Bytes of an error that are kept.
const ERROR_BYTES: usize = 300;

/// What a round of deliveries did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Delivered {
    /// Deliveries that arrived.
    pub sent: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Deliveries that were given up.
    pub dead: u64,
    /// Whether something is left because the budget was spent.
    pub more: bool,
}

/// The body of a delivery.
#[derive(Serialize)]
struct Body<'a> {
    webhook: &'a Id,
    tenant: &'a Tenant,
    /// The changes after this number, up to `reached`.
    after: u64,
    reached: u64,
    changes: &'a [Change],
}

/// A page of changes and its JSON.
struct Letter {
    page: FeedPage,
    body: Vec<u8>,
}

/// The webhooks of one tenant, as they were read.
pub struct TenantWebhooks {
    pub tenant: Tenant,
    webhooks: Vec<Stored>,
}

impl Webhooks {
    /// The webhooks of all tenants.
    pub async fn by_tenant(&self, ctx: &Ctx) -> Result<Vec<TenantWebhooks>, Error> {
        let mut found: BTreeMap<Tenant, Vec<Stored>> = BTreeMap::new();
        for webhook in self.stored(ctx).await? {
            let tenant = webhook.definition.tenant.clone();
            found.entry(tenant).or_default().push(webhook);
        }
        let found = found.into_iter();
        Ok(found
            .map(|(tenant, webhooks)| TenantWebhooks { tenant, webhooks })
            .collect())
    }

    /// Sends what is due at `ctx.now`, of all tenants, with at most `budget` pages of changes read
    /// for each. For processes that have claimed nothing.
    pub async fn deliver_due(&self, ctx: &Ctx, budget: usize) -> Result<Delivered, Error> {
        let all = self.by_tenant(ctx).await?.into_iter();
        let rounds = all.map(|webhooks| self.deliver(ctx, webhooks, budget, false));
        let mut done = Delivered::default();
        for round in join_all(rounds).await {
            let round = round?;
            done.sent += round.sent;
            done.failed += round.failed;
            done.dead += round.dead;
            done.more |= round.more;
        }
        Ok(done)
    }

    /// Sends what is due at `ctx.now` of one tenant, with at most `budget` pages of changes read.
    /// Every webhook gets a page before one gets a second. A few are sent at the same time, so that
    /// a receiver that does not answer holds up only those. If the tenant's webhooks are claimed for
    /// this process, leases in their progress are those of processes whose claim has ended.
    pub async fn deliver(
        &self,
        ctx: &Ctx,
        webhooks: TenantWebhooks,
        budget: usize,
        is_claimed: bool,
    ) -> Result<Delivered, Error> {
        let mut done = Delivered::default();
        let due = webhooks.webhooks.into_iter();
        let due = due.filter(|one| self.is_due(one, ctx.now, is_claimed));
        let mut due: VecDeque<Stored> = due.collect();
        let mut left = budget;
        while !due.is_empty() && left > 0 {
            let count = due.len().min(left).min(AT_ONCE);
            left -= count;
            let steps = due.drain(..count).map(|webhook| self.step(ctx, webhook));
            for step in join_all(steps).await {
                let (step, webhook) = step?;
                done.sent += step.sent;
                done.failed += step.failed;
                done.dead += step.dead;
                due.extend(webhook);
            }
        }
        done.more = !due.is_empty();
        Ok(done)
    }

    fn is_due(&self, webhook: &Stored, now: Time, is_claimed: bool) -> bool {
        let progress = &webhook.progress;
        let waits = progress.next_attempt.is_some_and(|next| next > now);
        let lease = progress.lease.as_ref();
        let is_taken = lease.is_some_and(|it| it.holder != self.holder && it.until > now);
        !waits && (is_claimed || !is_taken)
    }

    /// Reads a page and sends it. Answers with the webhook if there may be another page.
    async fn step(
        &self,
        ctx: &Ctx,
        mut webhook: Stored,
    ) -> Result<(Delivered, Option<Stored>), Error> {
        let mut done = Delivered::default();
        let ctx = &of_tenant(ctx, &webhook);
        let after = self.position(&webhook);
        let newest = self.records.feed().newest(ctx).await?;
        if newest <= after {
            self.rewind(ctx, &mut webhook, newest).await?;
            return Ok((done, None));
        }
        let end = webhook.progress.range_end.unwrap_or(u64::MAX);
        let letter = self.letter(ctx, &webhook, after, end).await?;
        let (reached, more) = (letter.page.reached, letter.page.more);
        if letter.page.changes.is_empty() {
            let goes_on = self.pass(ctx, &mut webhook, reached).await? && more;
            return Ok((done, goes_on.then_some(webhook)));
        }
        if !self.claim(ctx, &mut webhook, after, reached).await? {
            return Ok((done, None));
        }
        match self.send(ctx, &webhook, &letter, after).await {
            Ok(()) => {
                done.sent = 1;
                webhook.progress.go_on(reached);
                webhook.progress.last_error = None;
            }
            Err(NotDelivered(why)) => {
                done.failed = 1;
                done.dead = u64::from(fail(&mut webhook, ctx.now, reached, why));
            }
        }
        webhook.progress.lease = None;
        let goes_on = self.save(ctx, &mut webhook).await? && done.sent > 0 && more;
        Ok((done, goes_on.then_some(webhook)))
    }

    /// If a backup was restored, numbers begin again where it ended.
    async fn rewind(&self, ctx: &Ctx, webhook: &mut Stored, newest: u64) -> Result<(), Error> {
        self.scanned().remove(&webhook.id);
        if newest < webhook.progress.reached || webhook.progress.range_end.is_some() {
            webhook.progress.go_on(newest);
            self.save(ctx, webhook).await?;
        }
        Ok(())
    }

    /// Passes changes that are not meant; `false` if another process has gone on meanwhile.
    async fn pass(&self, ctx: &Ctx, webhook: &mut Stored, reached: u64) -> Result<bool, Error> {
        self.scanned().insert(webhook.id.clone(), reached);
        // All changes of a delivery that has begun may have been purged.
        let has_begun = webhook.progress.range_end.is_some();
        if !has_begun && reached - webhook.progress.reached < SCANNED {
            return Ok(true);
        }
        webhook.progress.go_on(reached);
        self.save(ctx, webhook).await
    }

    /// The change up to which everything was sent or is not meant. The beginning of a delivery that
    /// has begun is fixed.
    fn position(&self, webhook: &Stored) -> u64 {
        if webhook.progress.range_end.is_some() {
            return webhook.progress.reached;
        }
        let scanned = self.scanned().get(&webhook.id).copied();
        scanned.unwrap_or(0).max(webhook.progress.reached)
    }

    /// Writes down, before an attempt, that this process makes it and which changes it sends, so
    /// that every other attempt sends the same ones; `false` if another process was faster.
    async fn claim(
        &self,
        ctx: &Ctx,
        webhook: &mut Stored,
        after: u64,
        end: u64,
    ) -> Result<bool, Error> {
        (webhook.progress.reached, webhook.progress.range_end) = (after, Some(end));
        webhook.progress.lease = Some(Lease {
            holder: self.holder.clone(),
            until: ctx.now.plus_millis(LEASE_MS),
        });
        self.save(ctx, webhook).await
    }

    /// The next page up to `end`, of as many changes as fit into a delivery.
    async fn letter(
        &self,
        ctx: &Ctx,
        webhook: &Stored,
        after: u64,
        end: u64,
    ) -> Result<Letter, Error> {
        let filter = &webhook.definition.filter;
        let mut limit = PAGE;
        loop {
            let mut page = self.records.feed().next(ctx, filter, after, limit).await?;
            if page.reached > end {
                page.changes.retain(|change| change.seq <= end);
                (page.reached, page.more) = (end, true);
            }
            let body = body(webhook, after, &page);
            if body.len() <= BODY_BYTES || limit == 1 {
                return Ok(Letter { page, body });
            }
            limit /= 2;
        }
    }

    async fn send(
        &self,
        ctx: &Ctx,
        webhook: &Stored,
        letter: &Letter,
        after: u64,
    ) -> Result<(), NotDelivered> {
        let id = format!("{}-{after}-{}", webhook.id, letter.page.reached);
        let delivery = Delivery {
            url: &webhook.definition.url,
            secret: webhook.definition.secret.reveal(),
            id: &id,
            at: ctx.now,
            body: &letter.body,
        };
        self.sender.send(&delivery).await
    }

    /// Sends a dead letter of the tenant's webhook again, as the changes are now, and removes it
    /// when it has arrived; a delivery that waits is then due at once. `Ok(Err(..))` if it has not
    /// arrived.
    pub async fn redeliver(
        &self,
        ctx: &Ctx,
        id: &Id,
        number: u64,
    ) -> Result<Result<(), NotDelivered>, Error> {
        let missing = || Error::NotThere(format!("webhook {id} has no dead letter {number}"));
        let mut webhook = self.find(ctx, id).await?.ok_or_else(missing)?;
        let letters = webhook.progress.dead_letters.iter();
        let mut letters = letters.filter(|letter| letter.number == number);
        let DeadLetter { after, reached, .. } = letters.next().ok_or_else(missing)?.clone();
        let mut position = after;
        while position < reached {
            let letter = self.letter(ctx, &webhook, position, reached).await?;
            if !letter.page.changes.is_empty() {
                let sent = self.send(ctx, &webhook, &letter, position).await;
                if sent.is_err() {
                    return Ok(sent);
                }
            }
            position = letter.page.reached;
        }
        loop {
            let letters = &mut webhook.progress.dead_letters;
            letters.retain(|letter| letter.number != number);
            // The receiver answers again.
            webhook.progress.next_attempt = None;
            if self.save(ctx, &mut webhook).await? {
                return Ok(Ok(()));
            }
            // A delivery was written down meanwhile.
            webhook = self.find(ctx, id).await?.ok_or_else(missing)?;
        }
    }
}

/// The same call on the webhook's tenant, as a commit of its own.
fn of_tenant(ctx: &Ctx, webhook: &Stored) -> Ctx {
    Ctx {
        tenant: webhook.definition.tenant.clone(),
        group: None,
        ..ctx.clone()
    }
}

fn body(webhook: &Stored, after: u64, page: &FeedPage) -> Vec<u8> {
    let body = Body {
        webhook: &webhook.id,
        tenant: &webhook.definition.tenant,
        after,
        reached: page.reached,
        changes: &page.changes,
    };
    // Records came from JSON and have a JSON form.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// Notes a failed attempt; whether the delivery is given up.
fn fail(webhook: &mut Stored, now: Time, reached: u64, mut why: String) -> bool {
    why.truncate(why.floor_char_boundary(ERROR_BYTES));
    let progress = &mut webhook.progress;
    progress.failures += 1;
    progress.next_attempt = Some(now.plus_millis(wait_ms(progress.failures)));
    progress.last_error = Some(why.clone());
    let is_dead = progress.failures >= ATTEMPTS;
    if is_dead {
        progress.give_up(DeadLetter {
            number: progress.last_letter + 1,
            after: progress.reached,
            reached,
            at: now,
            attempts: progress.failures,
            error: why,
        });
        progress.go_on(reached);
    }
    is_dead
}

/// How long to wait after so many failures.
fn wait_ms(failures: u32) -> i64 {
    let doublings = failures.saturating_sub(1).min(20);
    FIRST_WAIT_MS
        .saturating_mul(1 << doublings)
        .min(MOST_WAIT_MS)
}
