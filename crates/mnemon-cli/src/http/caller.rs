//! Who sends a request, and what they may do.

use axum::http::{HeaderMap, header};
use mnemon_core::Tenant;
use subtle::ConstantTimeEq;

use crate::config::Secret;
use crate::operation::routes::Right;

/// Who sends a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) tenant: Tenant,
    /// The only user whose memory it may see, beside what everybody may see.
    pub(crate) user: Option<String>,
    /// The only agent that it may name.
    pub(crate) agent: Option<String>,
    pub(crate) rights: Right,
    /// For the history, the logs and the metrics; never the key itself.
    pub(crate) name: String,
}

/// What a request must show.
#[derive(Debug, Clone)]
pub(crate) enum Lock {
    /// Nothing: everybody on this machine is this caller.
    Open(Caller),
    /// This key, whose holder is this caller.
    Key(Secret, Caller),
}

impl Lock {
    /// Who sent the request; `None` if it does not show a key that is known.
    pub(super) fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        match self {
            Self::Open(caller) => Some(caller.clone()),
            Self::Key(key, caller) => {
                let is_known = shown(headers)
                    .is_some_and(|shown| bool::from(shown.ct_eq(key.reveal().as_bytes())));
                is_known.then(|| caller.clone())
            }
        }
    }
}

/// What follows `Authorization: Bearer `.
pub(super) fn shown(headers: &HeaderMap) -> Option<&[u8]> {
    let shown = headers.get(header::AUTHORIZATION)?;
    let (scheme, shown) = shown.as_bytes().split_first_chunk::<7>()?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(shown)
}
