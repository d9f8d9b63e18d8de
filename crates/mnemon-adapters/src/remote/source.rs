//! A knowledge base that others fill, as the configuration describes it.

use std::time::Duration;

use async_trait::async_trait;
use mnemon_core::external::{ExternalHit, ExternalSource};
use mnemon_core::longterm::{LongTerm, LongTermError, RemoteCheck, RemoteReport};
use mnemon_core::{Ctx, Invalid, Owner, Scope, Tenant};
use serde_json::Value;

use super::address::{base_of, check_encrypted, http_url};
use super::client::{KeyHeader, RemoteClient};
use super::http_source::HttpSource;
use super::opensearch::OpenSearch;
use super::{Remote, RemoteConfig};
use crate::http::Secret;

/// Which fields of an answer hold what. A name with dots leads into inner objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldMapping {
    /// The text; without it a hit is not shown.
    pub text: String,
    pub title: Option<String>,
    /// Where a reader finds it.
    pub source: Option<String>,
    /// When it was written, in the form of RFC 3339.
    pub time: Option<String>,
    /// Only entries whose field has the name of the caller's tenant.
    pub tenant: Option<String>,
}

impl Default for FieldMapping {
    fn default() -> Self {
        Self {
            text: "text".to_owned(),
            title: None,
            source: None,
            time: None,
            tenant: None,
        }
    }
}

impl FieldMapping {
    /// The text of a field; `None` if it is absent or not a text.
    fn get<'v>(entry: &'v Value, field: Option<&str>) -> Option<&'v str> {
        let mut names = field?.split('.');
        let value = names.try_fold(entry, |value, name| value.get(name))?;
        value.as_str()
    }

    /// The hit in an entry; `None` without a text.
    pub(super) fn hit(&self, id: String, entry: &Value) -> Option<ExternalHit> {
        let text = Self::get(entry, Some(&self.text))?;
        let owned = |field: &Option<String>| {
            let text = Self::get(entry, field.as_deref())?;
            Some(text.to_owned())
        };
        Some(ExternalHit {
            id,
            text: text.to_owned(),
            title: owned(&self.title),
            source: owned(&self.source),
            created: owned(&self.time).and_then(|at| at.parse().ok()),
        })
    }
}

/// A source of the table `[external.NAME]`.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    pub name: String,
    /// `opensearch+https://HOST/INDEX`, `kb+https://HOST/PATH`, or a memory service.
    pub url: String,
    pub key: Option<Secret>,
    /// The longest that a search waits, however many requests it takes.
    pub timeout: Duration,
    /// The most hits that it is asked for.
    pub limit: usize,
    /// The scope whose searches ask it.
    pub scope: Scope,
    pub fields: FieldMapping,
    /// The tenants that may ask it; `None` stands for all.
    pub tenants: Option<Vec<Tenant>>,
}

/// A knowledge base that is only read.
pub struct Source {
    name: String,
    timeout: Duration,
    limit: usize,
    scope: Scope,
    tenants: Option<Vec<Tenant>>,
    backend: Backend,
}

enum Backend {
    OpenSearch(OpenSearch),
    Http(HttpSource),
    Memory(Remote),
}

impl Source {
    /// The source at this URL. Nothing is sent yet.
    pub fn open(config: SourceConfig) -> Result<Self, Invalid> {
        if !matches!(config.scope, Scope::Semantic | Scope::Procedural) {
            let what = "an external source is semantic (documents) or procedural (skills)";
            return Err(Invalid::new("scope", what));
        }
        let scheme = config.url.split_once('+').map_or("", |(scheme, _)| scheme);
        let backend = match scheme {
            "opensearch" => Backend::OpenSearch(OpenSearch::open(&config)?),
            "kb" => Backend::Http(HttpSource::open(&config)?),
            _ => Backend::Memory(Remote::open(RemoteConfig {
                url: config.url,
                key: config.key,
                timeout: config.timeout,
            })?),
        };
        Ok(Self {
            name: config.name,
            timeout: config.timeout,
            limit: config.limit,
            scope: config.scope,
            tenants: config.tenants,
            backend,
        })
    }

    async fn ask(
        &self,
        ctx: &Ctx,
        user: Option<&str>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        match &self.backend {
            Backend::OpenSearch(source) => source.find(ctx, query, limit).await,
            Backend::Http(source) => source.find(ctx, query, limit).await,
            Backend::Memory(remote) => {
                let owner = Owner::of(user, None);
                remote.find(ctx, &owner, query, limit).await
            }
        }
    }

    fn too_slow(&self) -> LongTermError {
        LongTermError::Unavailable {
            service: self.name.clone(),
            what: format!("no answer within {} s", self.timeout.as_secs_f64()),
            source: None,
        }
    }
}

/// The client of a source, and its path.
pub(super) fn client_of(
    config: &SourceConfig,
    service: &str,
    key_word: &'static str,
) -> Result<(RemoteClient, String), Invalid> {
    let (_, address) = config.url.split_once('+').unwrap_or_default();
    let url = http_url(address)?;
    if url.query().is_some() {
        return Err(Invalid::new("url", "must not contain a `?`"));
    }
    let origin = base_of(&url, "");
    let path = url.path().trim_end_matches('/').to_owned();
    let base = origin.strip_suffix(path.as_str()).unwrap_or(&origin);
    check_encrypted(base, config.key.as_ref())?;
    let header = KeyHeader::Authorization(key_word);
    let client = RemoteClient::at(service, base, config.key.clone(), header, config.timeout);
    Ok((client, path))
}

#[async_trait]
impl ExternalSource for Source {
    fn name(&self) -> &str {
        &self.name
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn serves(&self, ctx: &Ctx) -> bool {
        let tenants = self.tenants.as_ref();
        tenants.is_none_or(|tenants| tenants.contains(&ctx.tenant))
    }

    async fn find(
        &self,
        ctx: &Ctx,
        user: Option<&str>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let limit = limit.min(self.limit);
        // Some services take several requests, each with this limit.
        let asked = tokio::time::timeout(self.timeout, self.ask(ctx, user, query, limit)).await;
        let mut found = asked.map_err(|_| self.too_slow())??;
        found.truncate(limit);
        Ok(found)
    }
}

#[async_trait]
impl RemoteCheck for Source {
    async fn check(&self, ctx: &Ctx) -> Result<RemoteReport, LongTermError> {
        match &self.backend {
            Backend::OpenSearch(source) => source.check().await,
            Backend::Http(source) => source.check(ctx).await,
            Backend::Memory(remote) => remote.check(ctx).await,
        }
    }
}
