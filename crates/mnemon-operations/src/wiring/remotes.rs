//! Memories and knowledge that other services keep.

use std::sync::Arc;
use std::time::Duration;

use mnemon_adapters::embed;
use mnemon_adapters::remote::{FieldMapping, Remote, RemoteConfig, Source, SourceConfig};
use mnemon_core::Invalid;
use mnemon_core::longterm::RemoteCheck;
use mnemon_engine::Builder;

use crate::Error;
use crate::config::{Config, ExternalSettings, RemoteSettings, Secret};

/// Services whose key is never the one of the long-term memory.
const SOURCES: [&str; 2] = ["opensearch+", "kb+"];

/// Puts the memories and the knowledge of other services in. Nothing is asked of them here.
pub(super) fn put_in(config: &Config, mut builder: Builder) -> Result<Builder, Error> {
    let remotes = &config.remotes;
    if let Some(remote) = remote_config(&remotes.long_term) {
        builder = builder.long_term(Arc::new(Remote::open(remote)?));
    }
    for source in &remotes.external {
        builder = builder.external(Arc::new(Source::open(source_config(source))?));
    }
    Ok(builder)
}

fn remote_config(settings: &RemoteSettings) -> Option<RemoteConfig> {
    Some(RemoteConfig {
        url: settings.url.value.clone()?,
        key: adapted(settings.key.as_ref()),
        timeout: Duration::from_secs(settings.timeout_s.value),
    })
}

fn source_config(settings: &ExternalSettings) -> SourceConfig {
    SourceConfig {
        name: settings.name.clone(),
        url: settings.url.clone(),
        key: adapted(settings.key.as_ref()),
        timeout: Duration::from_millis(settings.timeout_ms),
        limit: settings.limit,
        fields: FieldMapping {
            text: settings.text.clone(),
            title: settings.title.clone(),
            source: settings.source.clone(),
            time: settings.time.clone(),
            tenant: settings.tenant_field.clone(),
        },
        tenants: settings.tenants.clone(),
    }
}

fn adapted(key: Option<&Secret>) -> Option<embed::Secret> {
    key.map(|key| embed::Secret::new(key.reveal()))
}

/// The service at this URL, or the configured long-term memory without one. An external source of the
/// configuration has its own key and time limit; other memory services get the key of the long-term
/// memory.
pub fn remote(config: &Config, url: Option<&str>) -> Result<Box<dyn RemoteCheck>, Error> {
    let long_term = &config.remotes.long_term;
    let url = url.or(long_term.url.value.as_deref());
    let Some(url) = url else {
        let what = "is missing, and the configuration has no long_term.url";
        return Err(Invalid::new("url", what).into());
    };
    let mut known = config.remotes.external.iter();
    if let Some(source) = known.find(|source| source.url == url) {
        return Ok(Box::new(Source::open(source_config(source))?));
    }
    let is_source = SOURCES.iter().any(|scheme| url.starts_with(scheme));
    let key = long_term.key.as_ref().filter(|_| !is_source);
    let source = Source::open(SourceConfig {
        name: "check".to_owned(),
        url: url.to_owned(),
        key: adapted(key),
        timeout: Duration::from_secs(long_term.timeout_s.value),
        limit: 1,
        fields: FieldMapping::default(),
        tenants: None,
    })?;
    Ok(Box::new(source))
}
