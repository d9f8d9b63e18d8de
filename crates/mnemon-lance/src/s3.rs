//! The client of an object store that speaks the protocol of S3, and how Lance uses it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lance::session::Session;
use lance_io::object_store::{ObjectStoreParams, ObjectStoreProvider, ObjectStoreRegistry};
use lance_table::format::pb::transaction::Operation;
use lance_table::format::{IndexMetadata, Manifest, Transaction};
use lance_table::io::commit::{
    CommitError, CommitHandler, ConditionalPutCommitHandler, ManifestLocation,
    ManifestNamingScheme, ManifestWriter,
};
use mnemon_core::Invalid;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpClient, HttpConnector};
use object_store::path::Path;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use crate::home;

pub(crate) const SCHEME: &str = "s3";

/// Requests that are repeated at the most, and objects that are read at the same time.
const RETRIES: usize = 3;
const PARALLEL: usize = 16;

/// The settings of the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
/// `AWS_ENDPOINT` and others of `object_store`.
pub(crate) fn settings() -> AmazonS3Builder {
    AmazonS3Builder::from_env()
}

/// A client for this bucket.
pub(crate) fn client(
    settings: AmazonS3Builder,
    bucket: &str,
    timeout: Duration,
) -> Result<AmazonS3, Invalid> {
    check_encryption(&settings)?;
    let http = mnemon_adapters::http_client_of(timeout, &[]);
    let http = http.map_err(|error| invalid(error.to_string()))?;
    let retry = RetryConfig {
        max_retries: RETRIES,
        retry_timeout: timeout,
        ..RetryConfig::default()
    };
    let built = settings
        .with_bucket_name(bucket)
        .with_retry(retry)
        .with_http_connector(Connector(HttpClient::new(http)))
        .build();
    built.map_err(|error| invalid(format!("cannot use the settings AWS_…: {error}")))
}

fn invalid(what: String) -> Invalid {
    Invalid::new("index", what)
}

/// Vectors and session tokens go over the network only if the connection is encrypted.
fn check_encryption(settings: &AmazonS3Builder) -> Result<(), Invalid> {
    let value = |key| settings.get_config_value(&key).unwrap_or_default();
    let is_allowed = value(AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp)) == "true";
    for key in [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint] {
        let Ok(endpoint) = Url::parse(&value(key)) else {
            continue;
        };
        let is_local = match endpoint.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
            Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        };
        if endpoint.scheme() == "http" && !is_local && !is_allowed {
            return Err(invalid(
                "the endpoint of AWS_ENDPOINT is not encrypted; use https://, or set \
                 AWS_ALLOW_HTTP=true"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

/// Hands out the client that all requests use. It follows no redirects.
#[derive(Debug)]
struct Connector(HttpClient);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(self.0.clone())
    }
}

/// The caches of a process, for tables in this object store.
pub(crate) fn session(store: Arc<dyn ObjectStore>) -> Arc<Session> {
    let registry = ObjectStoreRegistry::empty();
    registry.insert(SCHEME, Arc::new(Provider(store)));
    home::session(registry)
}

#[derive(Debug)]
struct Provider(Arc<dyn ObjectStore>);

#[async_trait]
impl ObjectStoreProvider for Provider {
    async fn new_store(
        &self,
        base: Url,
        params: &ObjectStoreParams,
    ) -> lance::Result<lance::io::ObjectStore> {
        let (has_equal_parts, lists_in_order) = (false, true);
        Ok(lance::io::ObjectStore::new(
            self.0.clone(),
            base,
            params.block_size,
            params.object_store_wrapper.clone(),
            has_equal_parts,
            lists_in_order,
            PARALLEL,
            RETRIES,
            None,
        ))
    }
}

/// Commits a version only as the next one after the version that was read. Lance itself would let two
/// processes append at the same moment, and a document would be there twice. The commits of a compaction
/// change no document, so the rules of Lance are enough for them.
#[derive(Debug)]
pub(crate) struct Succession;

#[async_trait]
impl CommitHandler for Succession {
    fn is_version_not_found_definitive(&self) -> bool {
        ConditionalPutCommitHandler.is_version_not_found_definitive()
    }

    fn propagate_commit_error_after_success(&self) -> bool {
        ConditionalPutCommitHandler.propagate_commit_error_after_success()
    }

    async fn commit(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base_path: &Path,
        object_store: &lance::io::ObjectStore,
        manifest_writer: ManifestWriter,
        naming_scheme: ManifestNamingScheme,
        transaction: Option<Transaction>,
    ) -> Result<ManifestLocation, CommitError> {
        let is_next = transaction.as_ref().is_some_and(|transaction| {
            let transaction = transaction.as_pb();
            let is_compaction = matches!(
                transaction.operation,
                Some(Operation::Rewrite(_) | Operation::ReserveFragments(_))
            );
            is_compaction || transaction.read_version + 1 == manifest.version
        });
        if !is_next {
            let what = "another process has committed a version meanwhile";
            let error = lance::Error::commit_conflict_source(manifest.version, what.into());
            return Err(CommitError::OtherError(error));
        }
        ConditionalPutCommitHandler
            .commit(
                manifest,
                indices,
                base_path,
                object_store,
                manifest_writer,
                naming_scheme,
                transaction,
            )
            .await
    }
}

/// Whether a commit came too late, so that its work has to be done again.
pub(crate) fn is_conflict(error: &lance::Error) -> bool {
    matches!(
        error,
        lance::Error::CommitConflict { .. }
            | lance::Error::RetryableCommitConflict { .. }
            | lance::Error::IncompatibleTransaction { .. }
            | lance::Error::TooMuchWriteContention { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(settings: &[(AmazonS3ConfigKey, &str)]) -> Result<AmazonS3, Invalid> {
        let builder = settings
            .iter()
            .fold(AmazonS3Builder::new(), |builder, (key, value)| {
                builder.with_config(*key, *value)
            });
        client(builder, "bucket", Duration::from_secs(1))
    }

    #[test]
    fn other_machines_are_reached_over_tls_only() {
        use AmazonS3ConfigKey::{Client, Endpoint, S3Endpoint};
        for endpoint in ["https://minio.example", "http://127.0.0.1:9000"] {
            with(&[(Endpoint, endpoint)]).unwrap();
        }
        let open = "http://minio.example";
        for key in [Endpoint, S3Endpoint] {
            let error = with(&[(key, open)]).unwrap_err().to_string();
            assert!(error.contains("AWS_ALLOW_HTTP=true"), "{error}");
        }
        let allowed = (Client(ClientConfigKey::AllowHttp), "true");
        with(&[(Endpoint, open), allowed]).unwrap();
    }
}
