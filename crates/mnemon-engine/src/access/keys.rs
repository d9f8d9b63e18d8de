//! Access keys: records of the reserved tenant that hold a hash of the secret, never the secret.

mod cache;

use std::sync::Arc;

use mnemon_core::{
    Batch, Ctx, Expect, Filter, Grant, Id, Invalid, Kind, Op, Owner, Policy, Record, Right, Scan,
    StoreError, Tenant, Time, Upkept, check_line, limits,
};
use serde::{Deserialize, Serialize};

use super::secret::{self, RANDOM_BYTES};
use super::{Caller, Rights};
use crate::records::{Error, Records};
use cache::Cache;

/// The last use of a key is written at most this often.
const USE_WRITTEN_MS: i64 = 60_000;
/// After how many days upkeep drops old versions of keys. Each written use is a version.
const HISTORY_DAYS: i64 = 1;

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Identifies the key. It is part of the text that callers show, and not secret.
    pub prefix: String,
    /// A name for people; several keys may have the same.
    pub name: String,
    pub tenant: Tenant,
    pub rights: Rights,
    /// The only user that the holder may act for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The agent that the holder is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub created: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// Accurate to a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Time>,
    /// The prefix of the key that a rotation made in place of this one, which then expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

impl Key {
    /// Why the key is not valid at this moment, if it is not.
    pub fn refused(&self, now: Time) -> Option<Refused> {
        match (self.revoked, self.expires) {
            (Some(_), _) => Some(Refused::Revoked),
            (_, Some(expires)) if expires <= now => Some(Refused::Expired),
            _ => None,
        }
    }

    /// Until when the key is listed; `None` while it may be used without an end.
    fn listed_until(&self) -> Option<Time> {
        let ended = self.revoked.into_iter().chain(self.expires).min();
        ended.map(|ended| ended.plus_days(limits::KEY_LISTED_DAYS))
    }

    fn caller(&self) -> Caller {
        Caller {
            tenant: self.tenant.clone(),
            user: self.user.clone(),
            agent: self.agent.clone(),
            rights: self.rights,
            name: self.prefix.clone(),
        }
    }
}

/// A key that is to be created, for the tenant of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    pub name: String,
    pub rights: Rights,
    pub user: Option<String>,
    pub agent: Option<String>,
    pub expires: Option<Time>,
}

/// A new key with its text, which is shown once and stored nowhere.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedKey {
    pub key: Key,
    pub secret: String,
}

impl std::fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("CreatedKey");
        shown.field("key", &self.key).finish_non_exhaustive()
    }
}

/// The new key of a rotation, and the old one with the moment until which it is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RotatedKey {
    #[serde(flatten)]
    pub new: CreatedKey,
    pub replaced: Key,
}

/// Why a key is not accepted. Callers get the same answer for the first four, so that it does not
/// help to guess.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("the key is malformed or has a typo")]
    Malformed,
    #[error("the key is unknown")]
    Unknown,
    #[error("the key has expired")]
    Expired,
    #[error("the key was revoked")]
    Revoked,
    /// The store failed, so nothing is known about the key.
    #[error(transparent)]
    Unavailable(#[from] Error),
}

/// A key as the store holds it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredKey {
    #[serde(flatten)]
    key: Key,
    /// Of the whole text of the key, in hexadecimal digits.
    hash: String,
}

impl StoredKey {
    /// Compares hashes in constant time, as `blake3::Hash` does.
    fn is_shown(&self, digest: &blake3::Hash) -> bool {
        blake3::Hash::from_hex(&self.hash).is_ok_and(|stored| stored == *digest)
    }

    fn read(record: &Record) -> Result<Self, Error> {
        let body = record.body.clone().unwrap_or_default();
        serde_json::from_value(body).map_err(|error| {
            let corrupt = StoreError::Corrupt {
                place: format!("key record {}", record.id),
                what: error.to_string(),
            };
            corrupt.into()
        })
    }

    /// The record with this as its body.
    fn write(&self, mut record: Record, now: Time) -> Result<Record, Error> {
        let body = serde_json::to_value(self);
        let body = body.map_err(|error| Invalid::new("key", error.to_string()))?;
        record.body = Some(body);
        record.updated = now;
        record.expires = self.key.listed_until();
        Ok(record)
    }
}

/// The keys of a store. Clones share the cache by which keys are resolved.
#[derive(Clone)]
pub struct Keys {
    records: Records,
    policy: Policy,
    cache: Arc<Cache>,
}

impl Keys {
    pub fn new(records: &Records) -> Self {
        let policy = Policy {
            history_days: Some(HISTORY_DAYS),
            ..records.policy.clone()
        };
        Self {
            records: records.clone(),
            policy,
            cache: Arc::default(),
        }
    }

    /// Creates a key for the tenant of the call. The random bytes must be unpredictable.
    pub async fn create(
        &self,
        ctx: &Ctx,
        new: NewKey,
        random: [u8; RANDOM_BYTES],
    ) -> Result<CreatedKey, Error> {
        self.check(ctx, &new)?;
        let grant = self.grant(ctx, Right::Write)?;
        self.check_room(&grant).await?;
        let (created, record) = made(ctx, new, random)?;
        let batch = Batch::of(Op::append(record));
        self.records.store.apply(&grant, batch).await?;
        Ok(created)
    }

    /// The keys of a tenant, or of all tenants, the newest first.
    pub async fn list(&self, ctx: &Ctx, tenant: Option<&Tenant>) -> Result<Vec<Key>, Error> {
        let grant = self.grant(ctx, Right::Read)?;
        let mut filter = Filter::all_of_tenant();
        filter.kinds = vec![Kind::State];
        let mut scan = Scan::new(filter, self.records.limits().page);
        let mut keys = Vec::new();
        loop {
            let page = self.records.store.scan(&grant, &scan).await?;
            // Webhooks are records of the same tenant.
            let is_key = |record: &&Record| record.id.as_str().starts_with(ID);
            for record in page.records.iter().filter(is_key) {
                let key = StoredKey::read(record)?.key;
                keys.extend(Some(key).filter(|key| tenant.is_none_or(|own| key.tenant == *own)));
            }
            scan.after = page.next;
            if scan.after.is_none() {
                return Ok(keys);
            }
        }
    }

    /// Whether there is a key that is valid now.
    pub async fn has_valid(&self, ctx: &Ctx) -> Result<bool, Error> {
        let keys = self.list(ctx, None).await?;
        Ok(keys.iter().any(|key| key.refused(ctx.now).is_none()))
    }

    /// Revokes a key of the tenant of the call, at once and permanently. Other processes accept it
    /// for up to a second. A key that was revoked before stays as it is.
    pub async fn revoke(&self, ctx: &Ctx, prefix: &str) -> Result<Key, Error> {
        let change = |key: &mut Key| {
            key.revoked.get_or_insert(ctx.now);
            Ok(Vec::new())
        };
        self.change(ctx, prefix, change).await
    }

    /// Creates a key with another secret in place of a key of the tenant of the call. The old one
    /// stays valid for the overlap, so that its holders can change over without an interruption.
    /// The new key lives as long as the old one was to live when it was created.
    pub async fn rotate(
        &self,
        ctx: &Ctx,
        prefix: &str,
        overlap_ms: i64,
        random: [u8; RANDOM_BYTES],
    ) -> Result<RotatedKey, Error> {
        check_overlap(overlap_ms)?;
        self.check_room(&self.grant(ctx, Right::Write)?).await?;
        let mut created = None;
        let change = |old: &mut Key| {
            check_rotation(old, ctx.now)?;
            let life = old.expires.map(|end| end.millis() - old.created.millis());
            let new = NewKey {
                name: old.name.clone(),
                rights: old.rights,
                user: old.user.clone(),
                agent: old.agent.clone(),
                expires: life.map(|ms| ctx.now.plus_millis(ms)),
            };
            let (new, record) = made(ctx, new, random)?;
            let end = ctx.now.plus_millis(overlap_ms);
            old.expires = Some(old.expires.map_or(end, |expires| expires.min(end)));
            old.replaced_by = Some(new.key.prefix.clone());
            created = Some(new);
            Ok(vec![Op::append(record)])
        };
        let replaced = self.change(ctx, prefix, change).await?;
        let lost = || StoreError::Internal("a rotation made no key".to_owned());
        let new = created.ok_or_else(lost)?;
        Ok(RotatedKey { new, replaced })
    }

    /// The caller that shows this key. The store is asked about each key at most once a second: a
    /// key that another process revoked is accepted for that long.
    pub async fn resolve(&self, now: Time, shown: &str) -> Result<Caller, Refused> {
        let shown = secret::parse(shown).ok_or(Refused::Malformed)?;
        let stored = match self.cache.get_counted(shown.prefix, now) {
            Some(known) => known,
            None => self.read(now, shown.prefix).await?,
        };
        let stored = stored.filter(|stored| stored.is_shown(&shown.digest));
        let stored = stored.ok_or(Refused::Unknown)?;
        match stored.key.refused(now) {
            Some(refused) => Err(refused),
            None => Ok(stored.key.caller()),
        }
    }

    /// How often a key was resolved without the store, and how often with it.
    pub fn cache_hits_and_misses(&self) -> (u64, u64) {
        self.cache.hits_and_misses()
    }

    /// Writes that the key is in use, at most once a minute. Whether it was written.
    pub async fn note_use(&self, now: Time, prefix: &str) -> Result<bool, Error> {
        let is_recent = |key: &Key| {
            let used = key.last_used.map(|used| now.millis() - used.millis());
            used.is_some_and(|ago| (0..USE_WRITTEN_MS).contains(&ago))
        };
        let known = self.cache.get(prefix, now).flatten();
        if known.is_some_and(|stored| is_recent(&stored.key)) {
            return Ok(false);
        }
        let ctx = system(now);
        let grant = self.grant(&ctx, Right::Write)?;
        let Some((record, mut stored)) = self.find(&grant, prefix).await? else {
            return Ok(false);
        };
        if is_recent(&stored.key) {
            return Ok(false);
        }
        stored.key.last_used = Some(now);
        let version = record.version;
        let record = stored.write(record, now)?;
        let batch = Batch::of(Op::put_if(record, Expect::Version(version)));
        match self.records.store.apply(&grant, batch).await {
            // Another process wrote a use, or revoked the key.
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
            Ok(_) => {
                self.cache.put(prefix, now, Some(Arc::new(stored)));
                Ok(true)
            }
        }
    }

    /// Drops old versions of keys, and keys that ended long ago. A server calls this with its other
    /// upkeep.
    pub async fn upkeep(&self, now: Time, limit: usize) -> Result<Upkept, Error> {
        let grant = self.grant(&system(now), Right::Write)?;
        Ok(self.records.store.upkeep(&grant, limit).await?)
    }

    fn grant(&self, ctx: &Ctx, right: Right) -> Result<Grant, Error> {
        Ok(self.policy.check_system(ctx, right)?)
    }

    fn check(&self, ctx: &Ctx, new: &NewKey) -> Result<(), Error> {
        // The tenant that the key opens must be one that is served.
        self.policy.check(ctx, Right::Write)?;
        check_line("name", &new.name, limits::KEY_NAME_CHARS)?;
        self.records.safety.check_identifier("name", &new.name)?;
        let owner = Owner {
            user: new.user.clone(),
            agent: new.agent.clone(),
            ..Owner::default()
        };
        owner.check()?;
        if owner.agent.is_some() && owner.user.is_none() {
            let what =
                "needs a user, too: a key that is bound to an agent alone would see all users";
            return Err(Invalid::new("agent", what).into());
        }
        if new.rights == Rights::Admin && !owner.is_empty() {
            let what = "a key with the right `admin` cannot be bound to a user or an agent; \
                        choose read or write";
            return Err(Invalid::new("rights", what).into());
        }
        match new.expires {
            Some(expires) if expires <= ctx.now => {
                Err(Invalid::new("expires", "is in the past").into())
            }
            Some(expires) if expires > ctx.now.plus_days(limits::TTL_DAYS) => {
                Err(Invalid::new("expires", "is more than 100 years ahead").into())
            }
            _ => Ok(()),
        }
    }

    async fn check_room(&self, grant: &Grant) -> Result<(), Error> {
        let tally = self.records.store.tally(grant).await?;
        let keys = tally
            .groups
            .iter()
            .filter(|group| group.kind == Kind::State);
        let count = keys.map(|group| group.count).sum::<u64>() + 1;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > limits::KEYS {
            let (what, most) = ("keys", limits::KEYS);
            return Err(StoreError::TooLarge { what, count, most }.into());
        }
        Ok(())
    }

    /// The key as it is now, for the cache.
    async fn read(&self, now: Time, prefix: &str) -> Result<Option<Arc<StoredKey>>, Error> {
        let grant = self.grant(&system(now), Right::Read)?;
        let found = self.find(&grant, prefix).await?;
        let stored = found.map(|(_, stored)| Arc::new(stored));
        self.cache.put(prefix, now, stored.clone());
        Ok(stored)
    }

    async fn find(
        &self,
        grant: &Grant,
        prefix: &str,
    ) -> Result<Option<(Record, StoredKey)>, Error> {
        if !secret::is_prefix(prefix) {
            return Ok(None);
        }
        let found = self.records.store.get(grant, &[id(prefix)?]).await?;
        let Some(record) = found.into_iter().flatten().next() else {
            return Ok(None);
        };
        let stored = StoredKey::read(&record)?;
        Ok(Some((record, stored)))
    }

    /// Changes a key of the tenant of the call together with other operations. It is tried again
    /// when the key was changed meanwhile, for example because its use was written.
    async fn change(
        &self,
        ctx: &Ctx,
        prefix: &str,
        mut change: impl FnMut(&mut Key) -> Result<Vec<Op>, Error>,
    ) -> Result<Key, Error> {
        let grant = self.grant(ctx, Right::Write)?;
        let mut tries = limits::CHANGE_TRIES;
        loop {
            let found = self.find(&grant, prefix.trim()).await?;
            // A key of another tenant does not exist for this caller.
            let found = found.filter(|(_, stored)| stored.key.tenant == ctx.tenant);
            let (record, mut stored) = found.ok_or_else(|| no_key(ctx, prefix))?;
            let mut ops = change(&mut stored.key)?;
            let version = record.version;
            let record = stored.write(record, ctx.now)?;
            ops.push(Op::put_if(record, Expect::Version(version)));
            match self.records.store.apply(&grant, Batch::from(ops)).await {
                Err(StoreError::Conflict { .. }) if tries > 0 => tries -= 1,
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    let key = stored.key.clone();
                    self.cache.put(&key.prefix, ctx.now, Some(Arc::new(stored)));
                    return Ok(key);
                }
            }
        }
    }
}

/// The engine itself as the one who acts.
fn system(now: Time) -> Ctx {
    Ctx::new(Tenant::system(), "mnemon", now)
}

/// How the ids of keys begin.
const ID: &str = "key-";

fn id(prefix: &str) -> Result<Id, Invalid> {
    format!("{ID}{prefix}").parse()
}

fn no_key(ctx: &Ctx, prefix: &str) -> Error {
    Error::NoKey {
        prefix: prefix.escape_debug().to_string(),
        tenant: ctx.tenant.clone(),
    }
}

/// A new key and its record.
fn made(ctx: &Ctx, new: NewKey, random: [u8; RANDOM_BYTES]) -> Result<(CreatedKey, Record), Error> {
    let (prefix, secret) = secret::make(random);
    let key = Key {
        prefix,
        name: new.name,
        tenant: ctx.tenant.clone(),
        rights: new.rights,
        user: new.user,
        agent: new.agent,
        created: ctx.now,
        expires: new.expires,
        last_used: None,
        revoked: None,
        replaced_by: None,
    };
    let system = Ctx {
        tenant: Tenant::system(),
        ..ctx.clone()
    };
    let record = Record::new(id(&key.prefix)?, &system, Kind::State, key.name.clone());
    let stored = StoredKey {
        hash: secret::digest(&secret).to_hex().to_string(),
        key: key.clone(),
    };
    let record = stored.write(record, ctx.now)?;
    Ok((CreatedKey { key, secret }, record))
}

fn check_overlap(overlap_ms: i64) -> Result<(), Invalid> {
    let most = limits::KEY_OVERLAP_DAYS;
    match (0..=most * 86_400_000).contains(&overlap_ms) {
        true => Ok(()),
        false => Err(Invalid::new(
            "overlap",
            format!("is too long; at most {most}d is allowed"),
        )),
    }
}

fn check_rotation(key: &Key, now: Time) -> Result<(), Invalid> {
    let prefix = &key.prefix;
    let what = match (key.refused(now), &key.replaced_by) {
        (Some(Refused::Revoked), _) => format!("key `{prefix}` was revoked; create a new one"),
        (Some(_), None) => format!("key `{prefix}` has expired; create a new one"),
        (_, Some(new)) => {
            format!("key `{prefix}` was already replaced by `{new}`; rotate that one")
        }
        (None, None) => return Ok(()),
    };
    Err(Invalid::new("prefix", what))
}
