//! Operations on the access keys of a server. They concern the keys of the tenant of the call, so
//! that the administrator of one tenant never reaches those of another.

use mnemon_core::{Tenant, limits};
use mnemon_engine::access::{CreatedKey, Key, Keys, NewKey, Rights, RotatedKey};
use serde::{Deserialize, Serialize};

use super::{
    Access, Arguments, Field, Interface, KeyCreate, KeyList, KeyRevoke, KeyRotate, Operation,
    Spelling, when,
};
use crate::{Error, wiring};

/// How long the old key of a rotation stays valid.
const OVERLAP: &str = "24h";

/// Keys, the newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeyPage {
    pub keys: Vec<Key>,
}

fn keys(access: &Access<'_>) -> Keys {
    Keys::new(access.memory.records())
}

fn prefix() -> Field {
    let about = "The prefix of the key, as `mnemon key list` shows it";
    let field = Field::text("prefix", limits::KEY_NAME_CHARS, about).required();
    field.positional(Spelling::Positional, "PREFIX")
}

fn duration(name: &'static str, about: &'static str) -> Field {
    Field::text(name, 20, about).value("DURATION")
}

impl Operation for KeyCreate {
    const COMMAND: &'static str = "key create";
    type Answer = CreatedKey;

    fn fields() -> Vec<Field> {
        let rights = Rights::ALL.into_iter().map(Rights::as_str);
        let owner = |name, about| Field::text(name, limits::NAME_CHARS, about).value("NAME");
        let about = "Rights of its holder; each includes the previous one";
        vec![
            Field::text(
                "name",
                limits::KEY_NAME_CHARS,
                "A name for the list of keys",
            )
            .required()
            .positional(Spelling::Positional, "NAME"),
            Field::one_of("rights", rights, about).required(),
            owner("user", "The only user whose records the holder may use"),
            owner("agent", "The agent that the holder is"),
            duration(
                "expires",
                "How long it is valid, such as 90d; without it, until it is revoked",
            ),
        ]
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<CreatedKey, Error> {
        let expires = arguments.text("expires");
        let expires = expires.map(|text| when::ahead("expires", &text, access.ctx.now));
        let new = NewKey {
            name: arguments.needed("name"),
            rights: arguments.needed("rights").parse()?,
            user: arguments.text("user"),
            agent: arguments.text("agent"),
            expires: expires.transpose()?,
        };
        let random = wiring::random_bytes();
        Ok(keys(access).create(access.ctx, new, random).await?)
    }
}

impl Operation for KeyList {
    const COMMAND: &'static str = "key list";
    type Answer = KeyPage;

    fn fields() -> Vec<Field> {
        let all = Field::flag("all_tenants", "List the keys of all tenants");
        vec![all.only(Interface::CommandLine).local()]
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<KeyPage, Error> {
        let own: &Tenant = &access.ctx.tenant;
        let all = arguments.flag("all_tenants").unwrap_or(false);
        let keys = keys(access).list(access.ctx, (!all).then_some(own)).await?;
        Ok(KeyPage { keys })
    }
}

impl Operation for KeyRevoke {
    const COMMAND: &'static str = "key revoke";
    type Answer = Key;

    fn fields() -> Vec<Field> {
        vec![prefix()]
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Key, Error> {
        let prefix = arguments.needed("prefix");
        Ok(keys(access).revoke(access.ctx, &prefix).await?)
    }
}

impl Operation for KeyRotate {
    const COMMAND: &'static str = "key rotate";
    type Answer = RotatedKey;

    fn fields() -> Vec<Field> {
        let overlap = duration("overlap", "How long the old key stays valid, at most 90d");
        vec![prefix(), overlap.default(OVERLAP)]
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<RotatedKey, Error> {
        let prefix = arguments.needed("prefix");
        let overlap = arguments.text("overlap");
        let overlap = when::duration("overlap", overlap.as_deref().unwrap_or(OVERLAP))?;
        let random = wiring::random_bytes();
        let keys = keys(access);
        Ok(keys.rotate(access.ctx, &prefix, overlap, random).await?)
    }
}
