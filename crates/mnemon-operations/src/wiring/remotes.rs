//! Memories and knowledge that other services keep.

use std::sync::Arc;
use std::time::Duration;

use mnemon_adapters::embed;
use mnemon_adapters::remote::{
    FieldMapping, Remote, RemoteConfig, Source, SourceConfig, is_same_service,
};
use mnemon_core::longterm::RemoteCheck;
use mnemon_core::{Invalid, Scope};
use mnemon_engine::Builder;

use crate::Error;
use crate::config::{Config, ExternalSettings, RemoteSettings, Secret};

/// Puts the memories and the knowledge of other services in. Nothing is asked of them here.
pub(super) fn put_in(config: &Config, mut builder: Builder) -> Result<Builder, Error> {
    let remotes = &config.remotes;
    match remote_config(&remotes.long_term) {
        Some(remote) => builder = builder.long_term(Arc::new(Remote::open(remote)?)),
        None if config.notes.in_long_term.value => {
            let what = "needs a service; set long_term.url, or MNEMON_LONG_TERM_URL";
            return Err(Invalid::new("notes.long_term", what).into());
        }
        None => {}
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
        scope: settings.scope,
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

/// The service at this URL, or the configured long-term memory without one. A key of the configuration
/// goes only to the address that it was configured with; other services get the key that is given here.
pub fn remote(
    config: &Config,
    url: Option<&str>,
    key: Option<Secret>,
) -> Result<Box<dyn RemoteCheck>, Error> {
    let long_term = &config.remotes.long_term;
    let configured = long_term.url.value.as_deref();
    let Some(url) = url.or(configured) else {
        let what = "is missing, and the configuration has no long_term.url";
        return Err(Invalid::new("url", what).into());
    };
    let mut known = config.remotes.external.iter();
    if let Some(source) = known.find(|source| source.url == url) {
        let mut source = source_config(source);
        source.key = adapted(key.as_ref()).or(source.key);
        return Ok(Box::new(Source::open(source)?));
    }
    let is_configured = configured.is_some_and(|known| is_same_service(known, url));
    let key = key.or_else(|| long_term.key.clone().filter(|_| is_configured));
    let has_key = key.is_some();
    let source = Source::open(SourceConfig {
        name: "check".to_owned(),
        url: url.to_owned(),
        key: adapted(key.as_ref()),
        timeout: Duration::from_secs(long_term.timeout_s.value),
        limit: 1,
        scope: Scope::Semantic,
        fields: FieldMapping::default(),
        tenants: None,
    });
    Ok(Box::new(source.map_err(|invalid| {
        match invalid.field == "key" && !has_key {
            true => Invalid::new("--key-env", NO_KEY),
            false => invalid,
        }
    })?))
}

const NO_KEY: &str = "this service needs a key, and the configuration has none for this address; name \
                      the variable that holds the key";
