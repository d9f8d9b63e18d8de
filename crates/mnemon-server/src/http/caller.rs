//! Who sends a request: what it shows decides, a key or a token.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::{HeaderMap, header};
use mnemon_core::{Tenant, Time};
use mnemon_engine::access::{Caller, ClaimNames, Keys, Refused};
use subtle::ConstantTimeEq;

use mnemon_operations::config::Secret;
use mnemon_operations::wiring::{self, TokenRefused, Tokens};

/// What a request must show.
pub(super) struct Lock {
    /// The tenant of callers who need to show nothing, or show the one key of the environment.
    tenant: Tenant,
    /// The key of the environment.
    key: Option<Secret>,
    keys: Option<Keys>,
    tokens: RwLock<Option<Arc<Accepted>>>,
    /// Whether there are or were keys or tokens, valid or not, so that a request must show one.
    is_closed: AtomicBool,
}

/// The tokens that are accepted, and the names of their claims.
pub(super) type Accepted = (Tokens, ClaimNames);

/// How often a token with an unknown key makes the server ask for the keys.
const UNKNOWN_KEY_MS: i64 = 30_000;

impl Lock {
    /// Open, until a key is set.
    pub(super) fn new(tenant: Tenant) -> Self {
        Self {
            tenant,
            key: None,
            keys: None,
            tokens: RwLock::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// With the key of the environment.
    #[must_use]
    pub(super) fn key(mut self, key: Option<Secret>) -> Self {
        self.is_closed = AtomicBool::new(key.is_some());
        self.key = key;
        self
    }

    /// With the keys of the store.
    #[must_use]
    pub(super) fn keys(mut self, keys: Keys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Accepts these tokens, and no others, from now on.
    pub(super) fn accept(&self, tokens: Option<Accepted>) {
        if tokens.is_some() {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        let tokens = tokens.map(Arc::new);
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// The tokens that are accepted.
    pub(super) fn accepted(&self) -> Option<Arc<Accepted>> {
        let tokens = self.tokens.read();
        tokens.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a request must show something. A server that was closed once never opens.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Looks whether the store has keys. One that was revoked or has expired counts, so that the
    /// end of the last key opens the server to nobody.
    pub(super) async fn look(&self, now: Time) -> Result<(), mnemon_engine::Error> {
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        let ctx = Caller::local(self.tenant.clone()).ctx(now);
        if !keys.list(&ctx, None).await?.is_empty() {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How often a key was known without the store, and how often not.
    pub(super) fn cache_hits_and_misses(&self) -> (u64, u64) {
        let keys = self.keys.as_ref();
        keys.map(Keys::cache_hits_and_misses).unwrap_or_default()
    }

    /// Whether a request that goes on for long is still one of this caller.
    pub(super) async fn still_allows(&self, headers: &HeaderMap, caller: &Caller) -> bool {
        let Ok(now) = wiring::now() else {
            return false;
        };
        let now = self.caller(headers, now).await;
        // The name is for logs: the Python package calls itself `python`.
        now.is_ok_and(|mut now| {
            now.name.clone_from(&caller.name);
            now == *caller
        })
    }

    /// Who sent the request, or why its credential is refused. The reason is for the log alone:
    /// clients get the same answer for each, so that it does not help to guess.
    pub(super) async fn caller(&self, headers: &HeaderMap, now: Time) -> Result<Caller, String> {
        let Some(shown) = shown(headers) else {
            return match (
                headers.contains_key(header::AUTHORIZATION),
                self.is_closed(),
            ) {
                (false, false) => Ok(Caller::local(self.tenant.clone())),
                (false, true) => Err("no key was sent".to_owned()),
                (true, _) => Err("the Authorization header is not one `Bearer KEY`".to_owned()),
            };
        };
        if let Some(key) = &self.key
            && bool::from(shown.ct_eq(key.reveal().as_bytes()))
        {
            let name = "environment".to_owned();
            let caller = Caller::local(self.tenant.clone());
            return Ok(Caller { name, ..caller });
        }
        let shown = std::str::from_utf8(shown).map_err(|_| "the key is not UTF-8".to_owned())?;
        let refused = match &self.keys {
            Some(keys) => match keys.resolve(now, shown).await {
                Ok(caller) => {
                    // That it was used is not worth a failed request.
                    let _ = keys.note_use(now, &caller.name).await;
                    return Ok(caller);
                }
                Err(refused) => refused,
            },
            None => Refused::Malformed,
        };
        match (self.accepted(), refused) {
            // It does not look like a key of ours, so a token was meant.
            (Some(accepted), Refused::Malformed) => {
                let caller = token_caller(&accepted, shown, now).await;
                caller.map_err(|reason| format!("token: {reason}"))
            }
            (_, refused) => Err(refused.to_string()),
        }
    }
}

/// The caller of a token, or why it is refused.
async fn token_caller(accepted: &Arc<Accepted>, shown: &str, now: Time) -> Result<Caller, String> {
    let (tokens, names) = accepted.as_ref();
    let mut claims = tokens.verify(now, shown);
    if claims == Err(TokenRefused::UnknownKey) {
        let asking = accepted.clone();
        // In a separate task, as a client that hangs up must not cancel it. The known keys stay in use
        // if it fails.
        let asked = tokio::spawn(async move { asking.0.refresh(now, UNKNOWN_KEY_MS).await });
        let _ = asked.await;
        claims = tokens.verify(now, shown);
    }
    let claims = claims.map_err(|refused| refused.to_string())?;
    let caller = names.caller(&claims);
    // The value of a claim is somebody's name, which the log does not hold.
    caller.map_err(|wrong| format!("its claim `{}` cannot be used", wrong.field))
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
