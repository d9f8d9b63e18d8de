//! The index in a search server, or in a folder or a bucket of tables.

use std::sync::Arc;

use mnemon_adapters::embed::Secret;
use mnemon_adapters::external_index::{
    ExternalIndex, IndexAccess, IndexKind, IndexServer, IndexUrl, OpenSearch,
};
use mnemon_core::{Ctx, Grant, Invalid, Policy, Right, SearchIndex, StoreError};

use crate::Error;
use crate::config::Config;

/// Stores that an index in a search server can follow: those that processes share.
const FOLLOWED: [&str; 3] = ["sqlite:", "postgres:", "postgresql:"];

/// The index in a search server that is configured, if any. Nothing is asked of the server here.
pub(super) fn configured(
    config: &Config,
    store: &str,
) -> Result<Option<Arc<dyn SearchIndex>>, Error> {
    match config.index.server() {
        Some(url) if store == config.store.value => Ok(Some(Arc::new(index(config, url)?))),
        // A store that does not exist yet is read as an empty one, which needs no server.
        _ => Ok(None),
    }
}

/// The same, for operations on the index itself.
pub(crate) fn external_index(config: &Config) -> Result<Option<ExternalIndex>, Error> {
    let url = config.index.server();
    url.map(|url| index(config, url)).transpose()
}

/// The right to read the tenant's records.
pub(crate) fn read_grant(ctx: &Ctx) -> Result<Grant, Error> {
    let grant = Policy::default().check(ctx, Right::Read);
    Ok(grant.map_err(StoreError::from)?)
}

/// The index at this URL, which follows the configured store.
fn index(config: &Config, url: &str) -> Result<ExternalIndex, Error> {
    let store = &config.store.value;
    if !FOLLOWED.iter().any(|scheme| store.starts_with(scheme)) {
        let what = "an index outside the store needs a store in SQLite or PostgreSQL; use the index \
                    \"builtin\" for other stores";
        return Err(Invalid::new("index", what).into());
    }
    let url = IndexUrl::parse(url)?;
    let access = IndexAccess {
        user: config.index.user.clone(),
        password: config
            .index
            .password
            .as_ref()
            .map(|password| Secret::new(password.reveal())),
        authorities: Vec::new(),
    };
    access.check(&url)?;
    let server: Arc<dyn IndexServer> = match url.kind {
        IndexKind::OpenSearch => Arc::new(OpenSearch::new(&url, access)?),
        IndexKind::Milvus => milvus(&url, &access)?,
        IndexKind::Lance => lance(&url)?,
    };
    let replica = mnemon_adapters::open_replica(store)?;
    Ok(ExternalIndex::new(replica, server))
}

#[cfg(feature = "milvus")]
fn milvus(url: &IndexUrl, access: &IndexAccess) -> Result<Arc<dyn IndexServer>, Error> {
    Ok(Arc::new(mnemon_milvus::Milvus::new(url, access)?))
}

#[cfg(not(feature = "milvus"))]
fn milvus(_: &IndexUrl, _: &IndexAccess) -> Result<Arc<dyn IndexServer>, Error> {
    Err(Error::NotBuilt {
        what: "Milvus",
        feature: "milvus",
    })
}

#[cfg(feature = "lance")]
fn lance(url: &IndexUrl) -> Result<Arc<dyn IndexServer>, Error> {
    Ok(Arc::new(mnemon_lance::Lance::new(url)?))
}

#[cfg(not(feature = "lance"))]
fn lance(_: &IndexUrl) -> Result<Arc<dyn IndexServer>, Error> {
    Err(Error::NotBuilt {
        what: "Lance",
        feature: "lance",
    })
}
