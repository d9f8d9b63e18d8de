//! The web pages that may call the server. A browser sends the origin of the page with every request
//! that could change something, so a page of another origin is refused by it.

use axum::http::{HeaderMap, StatusCode, Uri, header};

use super::problem::Problem;

/// The origins that are allowed, beside pages of this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Origins(Vec<String>);

impl Origins {
    pub(super) fn new(named: &[String]) -> Self {
        let named = named
            .iter()
            .map(|origin| origin.trim_end_matches('/').to_lowercase());
        Self(named.collect())
    }

    /// That the request comes from no web page, or from one that is allowed.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Box<Problem>> {
        let mut sent = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = sent.next() else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or_default().to_lowercase();
        let is_allowed = is_local(&origin) || self.0.contains(&origin);
        match is_allowed && sent.next().is_none() {
            true => Ok(()),
            false => {
                let said = "pages of this origin may not call the server; --allow-origin allows it";
                Err(Box::new(Problem::new(
                    StatusCode::FORBIDDEN,
                    "wrong-origin",
                    said,
                )))
            }
        }
    }
}

fn is_local(origin: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else {
        return false;
    };
    let is_http = uri.scheme_str() == Some("http");
    is_http && matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"))
}
