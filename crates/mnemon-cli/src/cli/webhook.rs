//! `mnemon webhook`

use mnemon_core::Time;
use mnemon_engine::webhooks::{DeadLetter, Webhook};

use super::door::Door;
use super::key::{audit, show};
use super::shared::{Shared, Shown};
use super::text;
use mnemon_operations::Error;
use mnemon_operations::operation::{
    CreatedWebhook, DeletedWebhook, FailedDeliveries, Redelivered, WebhookCreate, WebhookDelete,
    WebhookFailed, WebhookList, WebhookPage, WebhookRedeliver,
};

/// Send changes of the memory to a URL
///
/// A running `mnemon serve` on the same store sends the changes of the tenant, signed and in order,
/// and repeats what fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon webhook create https://hooks.example.org/mnemon\n  \
    mnemon webhook create https://hooks.example.org/ann --kind note --user ann\n  \
    mnemon webhook list\n  \
    mnemon webhook failed ID\n  \
    mnemon webhook redeliver ID 1\n  \
    mnemon webhook delete ID\n\n\
    docs/changes.md describes deliveries, their signature and the addresses that are allowed.")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Create a webhook and print its secret once; without options it sends all changes
    Create(Box<Shared<WebhookCreate>>),
    /// List the webhooks of the tenant, how far each has come, and its last error
    #[command(visible_alias = "ls")]
    List(Shared<WebhookList>),
    /// List the deliveries of a webhook that were given up
    Failed(Shared<WebhookFailed>),
    /// Send a delivery again that was given up
    Redeliver(Shared<WebhookRedeliver>),
    /// Delete a webhook and its secret permanently
    #[command(visible_alias = "rm")]
    Delete(Shared<WebhookDelete>),
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.what {
        What::Create(args) => {
            let created = args.call(door).await?;
            audit::<WebhookCreate>(&[created.webhook.id.as_str()], door)?;
            show(&created, door)
        }
        What::List(args) => args.run(door).await,
        What::Failed(args) => args.run(door).await,
        What::Redeliver(args) => args.run(door).await,
        What::Delete(args) => {
            let deleted = args.call(door).await?;
            audit::<WebhookDelete>(&[deleted.id.as_str()], door)?;
            show(&deleted, door)
        }
    }
}

impl Shown for CreatedWebhook {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let Webhook { id, url, .. } = &self.webhook;
        say!(door, "created webhook {id} to {}", text::one_line(url))?;
        say!(door, "\n{}\n", self.secret)?;
        door.out
            .line("Copy the secret now: it verifies the deliveries and is shown only once.")
    }
}

impl Shown for DeletedWebhook {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        say!(door, "deleted webhook {}", self.id)
    }
}

impl Shown for Redelivered {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        say!(
            door,
            "delivery {} of webhook {} has arrived",
            self.number,
            self.id
        )
    }
}

impl Shown for WebhookPage {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.webhooks.is_empty() {
            return door.out.line("there are no webhooks");
        }
        let head = [
            "ID",
            "URL",
            "REACHED",
            "GIVEN UP",
            "NEXT ATTEMPT",
            "LAST ERROR",
        ];
        door.out
            .table(&head, self.webhooks.iter().map(row).collect())
    }
}

fn row(webhook: &Webhook) -> Vec<String> {
    let given_up = webhook.dead_letters.len() as u64 + webhook.dropped_letters;
    let next = webhook.next_attempt.filter(|_| webhook.failures > 0);
    let error = webhook.last_error.as_deref().unwrap_or("-");
    vec![
        webhook.id.to_string(),
        text::cut(&webhook.url, 60),
        webhook.reached.to_string(),
        given_up.to_string(),
        next.map_or("-".to_owned(), |at: Time| text::local(at)),
        text::cut(error, 60),
    ]
}

impl Shown for FailedDeliveries {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.dead_letters.is_empty() {
            door.out.line("no delivery was given up")?;
        } else {
            let rows = self.dead_letters.iter().map(letter_row).collect();
            let head = ["NUMBER", "CHANGES", "GIVEN UP", "ATTEMPTS", "ERROR"];
            door.out.table(&head, rows)?;
        }
        match self.dropped_letters {
            0 => Ok(()),
            dropped => say!(
                door,
                "{} dropped: 100 are kept",
                text::count(dropped, "older delivery")
            ),
        }
    }
}

fn letter_row(letter: &DeadLetter) -> Vec<String> {
    vec![
        letter.number.to_string(),
        format!("{} to {}", letter.after + 1, letter.reached),
        text::local(letter.at),
        letter.attempts.to_string(),
        text::cut(&letter.error, 60),
    ]
}
