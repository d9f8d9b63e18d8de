//! Who sends a request: what it shows decides, a key or a token.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, header};
use mnemon_core::{Tenant, Time};
use mnemon_engine::access::{Caller, ClaimNames, Keys};
use subtle::ConstantTimeEq;

use crate::config::Secret;
use crate::wiring::Tokens;

/// What a request must show.
pub(crate) struct Lock {
    /// The tenant of callers who need to show nothing, or show the one key of the environment.
    tenant: Tenant,
    /// The key of the environment.
    key: Option<Secret>,
    keys: Option<Keys>,
    tokens: Option<(Tokens, ClaimNames)>,
    /// Whether the store has keys, valid or not, so that a request must show one.
    has_keys: AtomicBool,
}

impl Lock {
    /// Open, until a key is set.
    pub(crate) fn new(tenant: Tenant) -> Self {
        Self {
            tenant,
            key: None,
            keys: None,
            tokens: None,
            has_keys: AtomicBool::new(false),
        }
    }

    /// With the key of the environment.
    #[must_use]
    pub(crate) fn key(mut self, key: Option<Secret>) -> Self {
        self.key = key;
        self
    }

    /// With the keys of the store.
    #[must_use]
    pub(crate) fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// With tokens, whose claims have these names.
    #[must_use]
    pub(crate) fn tokens(mut self, tokens: Option<(Tokens, ClaimNames)>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Whether a request must show something.
    pub(crate) fn is_closed(&self) -> bool {
        self.key.is_some() || self.tokens.is_some() || self.has_keys.load(Ordering::Relaxed)
    }

    /// Looks whether the store has keys. One that was revoked or has expired counts, so that the
    /// end of the last key opens the server to nobody.
    pub(crate) async fn look(&self, now: Time) -> Result<(), mnemon_engine::Error> {
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        let ctx = Caller::local(self.tenant.clone()).ctx(now);
        if !keys.list(&ctx, None).await?.is_empty() {
            self.has_keys.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How often a key was known without the store, and how often not.
    pub(super) fn cache_hits_and_misses(&self) -> (u64, u64) {
        let keys = self.keys.as_ref();
        keys.map(Keys::cache_hits_and_misses).unwrap_or_default()
    }

    /// Who sent the request; `None` if it shows nothing that is known. All refusals are alike.
    pub(crate) async fn caller(&self, headers: &HeaderMap, now: Time) -> Option<Caller> {
        let Some(shown) = shown(headers) else {
            let is_open = !self.is_closed() && !headers.contains_key(header::AUTHORIZATION);
            return is_open.then(|| Caller::local(self.tenant.clone()));
        };
        if let Some(key) = &self.key
            && bool::from(shown.ct_eq(key.reveal().as_bytes()))
        {
            let name = "environment".to_owned();
            let caller = Caller::local(self.tenant.clone());
            return Some(Caller { name, ..caller });
        }
        let shown = std::str::from_utf8(shown).ok()?;
        if let Some(keys) = &self.keys
            && let Ok(caller) = keys.resolve(now, shown).await
        {
            // That it was used is not worth a failed request.
            let _ = keys.note_use(now, &caller.name).await;
            return Some(caller);
        }
        let (tokens, names) = self.tokens.as_ref()?;
        let claims = tokens.verify(now, shown).ok()?;
        names.caller(&claims).ok()
    }
}

/// What follows `Authorization: Bearer `.
fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(shown), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, shown) = shown.as_bytes().split_first_chunk::<7>()?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(shown)
}
