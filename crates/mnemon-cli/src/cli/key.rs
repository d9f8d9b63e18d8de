//! `mnemon key`

use mnemon_core::Time;
use mnemon_engine::access::{CreatedKey, Key, Refused, RotatedKey};

use super::door::Door;
use super::shared::{Shared, Shown};
use super::text;
use mnemon_operations::operation::{KeyCreate, KeyList, KeyPage, KeyRevoke, KeyRotate, Operation};
use mnemon_operations::wiring::AuditEvent;
use mnemon_operations::{Error, wiring};

/// Create, list, revoke and rotate the access keys of a server
///
/// A key opens one tenant: the one of --tenant. The store keeps a hash of each key, never the key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon key create ci --rights write --expires 90d\n  \
    mnemon key create ann-laptop --rights write --user ann --tenant acme\n  \
    mnemon key list --all-tenants\n  \
    mnemon key rotate PREFIX --overlap 48h\n  \
    mnemon key revoke PREFIX\n\n\
    docs/server.md describes keys, rights and the audit log.")]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Create a key and print it once
    Create(Shared<KeyCreate>),
    /// List the keys of the tenant, without their secrets
    #[command(visible_alias = "ls")]
    List(Shared<KeyList>),
    /// Revoke a key permanently
    #[command(visible_alias = "rm")]
    Revoke(Shared<KeyRevoke>),
    /// Replace a key by a new one; the old one stays valid for a while
    Rotate(Shared<KeyRotate>),
}

pub(super) async fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    match args.what {
        What::Create(args) => {
            let created = args.call(door).await?;
            audit::<KeyCreate>(&[&created.key.prefix], door)?;
            show(&created, door)
        }
        What::List(args) => args.run(door).await,
        What::Revoke(args) => {
            let key = args.call(door).await?;
            audit::<KeyRevoke>(&[&key.prefix], door)?;
            show(&key, door)
        }
        What::Rotate(args) => {
            let rotated = args.call(door).await?;
            let prefixes = [&rotated.replaced.prefix, &rotated.new.key.prefix];
            audit::<KeyRotate>(&prefixes.map(String::as_str), door)?;
            show(&rotated, door)
        }
    }
}

/// Prints an answer that was called for before.
pub(super) fn show(answer: &impl Shown, door: &mut Door) -> Result<(), Error> {
    return_json!(door, answer);
    answer.show(door)
}

/// Who may use a server, and where it sends changes, is part of its audit log. The change was made by
/// now, so a log that cannot be written is only reported.
pub(super) fn audit<O: Operation>(ids: &[&str], door: &Door) -> Result<(), Error> {
    if door.remote.is_some() {
        // The server has its own log.
        return Ok(());
    }
    let ctx = door.ctx()?;
    let event = AuditEvent {
        at: ctx.now,
        caller: ctx.actor.clone(),
        tenant: ctx.tenant.clone(),
        operation: O::COMMAND.to_owned(),
        ids: ids.iter().map(|&id| id.to_owned()).collect(),
        status: 0,
    };
    let log = wiring::audit_log(&door.config);
    if let Some(Err(error)) = log.map(|log| log.append(&[event])) {
        ctx.notices
            .add(format!("this is missing in the audit log: {error}"));
    }
    Ok(())
}

/// The key, what its holder may do, and until when.
fn describe(key: &Key) -> String {
    let mut words = format!(
        "{} ({}): {}, tenant {}",
        key.prefix,
        text::one_line(&key.name),
        key.rights,
        key.tenant
    );
    let bound = [("user", &key.user), ("agent", &key.agent)];
    for (what, name) in bound {
        if let Some(name) = name {
            words.push_str(&format!(", {what} {}", text::one_line(name)));
        }
    }
    words + &text::expires(key.expires)
}

impl Shown for CreatedKey {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        say!(door, "created key {}", describe(&self.key))?;
        say!(door, "\n{}\n", self.secret)?;
        door.out
            .line("Copy the key now: it is shown only once and cannot be recovered.")
    }
}

impl Shown for RotatedKey {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        self.new.show(door)?;
        let Key {
            prefix, expires, ..
        } = &self.replaced;
        let until = expires.map(text::local).unwrap_or_default();
        say!(door, "The old key {prefix} is valid until {until}.")
    }
}

impl Shown for Key {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        let name = text::one_line(&self.name);
        say!(door, "revoked key {} ({name})", self.prefix)?;
        door.out.line("Running servers refuse it within a second.")
    }
}

impl Shown for KeyPage {
    fn show(&self, door: &mut Door) -> Result<(), Error> {
        if self.keys.is_empty() {
            return door.out.line("there are no keys");
        }
        let now = door.ctx()?.now;
        let rows = self.keys.iter().map(|key| row(key, now)).collect();
        let head = [
            "PREFIX",
            "NAME",
            "TENANT",
            "RIGHTS",
            "BOUND TO",
            "CREATED",
            "EXPIRES",
            "LAST USED",
            "STATUS",
        ];
        door.out.table(&head, rows)
    }
}

fn row(key: &Key, now: Time) -> Vec<String> {
    let time = |at: Option<Time>| at.map_or("-".to_owned(), text::local);
    let bound = [("user", &key.user), ("agent", &key.agent)];
    let bound = bound
        .iter()
        .filter_map(|(what, name)| Some(format!("{what} {}", name.as_ref()?)));
    let bound = match bound.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "-".to_owned(),
        bound => text::cut(&bound, 40),
    };
    let status = match (key.refused(now), &key.replaced_by) {
        (Some(Refused::Revoked), _) => "revoked".to_owned(),
        (Some(_), _) => "expired".to_owned(),
        (None, Some(new)) => format!("replaced by {new}"),
        (None, None) => "valid".to_owned(),
    };
    vec![
        key.prefix.clone(),
        text::cut(&key.name, 40),
        key.tenant.to_string(),
        key.rights.to_string(),
        bound,
        text::local(key.created),
        time(key.expires),
        time(key.last_used),
        status,
    ]
}
