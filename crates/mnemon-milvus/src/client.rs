//! Calls to Milvus: attempts, time limits, and what a refusal means.

use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use mnemon_adapters::external_index::{IndexAccess, IndexUrl, ServerError, unavailable};
use mnemon_core::StoreError;
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request};
use tonic_prost::ProstCodec;

use crate::proto::{Answer, LoadState, LoadStateOf, OfCollection, Status};

/// Calls for one answer, the first included. Every call may be repeated.
const ATTEMPTS: u32 = 4;
/// The wait before the second attempt; it doubles with each one.
const BACKOFF_MS: u64 = 100;
/// Bytes of an answer, which is the limit of Milvus itself.
const ANSWER_BYTES: usize = 256 << 20;
/// The wait between two questions whether a collection is loaded.
const LOADING_MS: u64 = 50;
/// Characters of the server's own words in an error.
const SAID_CHARS: usize = 300;

/// A server that is asked over gRPC.
pub(crate) struct Client {
    endpoint: Endpoint,
    /// Made by the first call, which runs inside a runtime.
    channel: OnceLock<Channel>,
    place: String,
    timeout: Duration,
    authorization: Option<MetadataValue<Ascii>>,
}

/// Why a call failed.
pub(crate) enum Failure {
    /// The collection or alias does not exist.
    Missing,
    /// The collection has to be loaded, as after a restart of the server.
    NotLoaded,
    Store(StoreError),
}

impl From<Failure> for ServerError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Missing => Self::Gone,
            Failure::NotLoaded => Self::Store(StoreError::Internal(
                "a collection of Milvus is not loaded".to_owned(),
            )),
            Failure::Store(error) => Self::Store(error),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Client {
    pub(crate) fn new(url: &IndexUrl, access: &IndexAccess) -> Result<Self, StoreError> {
        access.check(url)?;
        let unusable = |error: tonic::transport::Error| {
            let what = format!("no connection can be set up: {error}");
            unavailable(url.as_str(), what, error)
        };
        let scheme = if url.uses_tls { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}", url.address))
            .map_err(unusable)?
            .connect_timeout(url.timeout)
            .timeout(url.timeout);
        if url.uses_tls {
            let mut tls = ClientTlsConfig::new().with_native_roots();
            if !access.authorities.is_empty() {
                tls = tls.ca_certificate(Certificate::from_pem(&access.authorities));
            }
            endpoint = endpoint.tls_config(tls).map_err(unusable)?;
        }
        Ok(Self {
            endpoint,
            channel: OnceLock::new(),
            place: url.as_str().to_owned(),
            timeout: url.timeout,
            authorization: authorization(access),
        })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// The answer to a call that reads or writes this collection. It is loaded if it has to be.
    pub(crate) async fn ask<Q, A>(
        &self,
        collection: &str,
        method: &str,
        question: &Q,
    ) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Answer,
    {
        match self.call(method, question).await {
            Err(Failure::NotLoaded) => {
                self.load(collection).await?;
                self.call(method, question).await
            }
            other => other,
        }
    }

    /// Loads a collection, and waits until it can be searched.
    pub(crate) async fn load(&self, collection: &str) -> Result<(), Failure> {
        let of = OfCollection {
            collection: collection.to_owned(),
        };
        let _: Status = self.call("LoadCollection", &of).await?;
        let of = LoadStateOf {
            collection: collection.to_owned(),
        };
        let loaded = async {
            loop {
                let state: LoadState = self.call("GetLoadState", &of).await?;
                if state.state == LoadState::LOADED {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(LOADING_MS)).await;
            }
        };
        let late = || self.failed("did not load the collection in time", "timeout");
        let loaded = tokio::time::timeout(self.timeout, loaded).await;
        loaded.unwrap_or_else(|_| Err(late().into()))
    }

    /// The answer to a call.
    pub(crate) async fn call<Q, A>(&self, method: &str, question: &Q) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Answer,
    {
        let mut attempt = 1;
        loop {
            let (failure, is_passing) = match self.attempt(method, question).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            if !is_passing || attempt == ATTEMPTS {
                return Err(failure);
            }
            let wait = BACKOFF_MS << (attempt - 1);
            tokio::time::sleep(Duration::from_millis(wait)).await;
            attempt += 1;
        }
    }

    /// One attempt. A failure says whether another one may succeed.
    async fn attempt<Q, A>(&self, method: &str, question: &Q) -> Result<A, (Failure, bool)>
    where
        Q: Message + Clone + 'static,
        A: Answer,
    {
        let channel = self.channel.get_or_init(|| self.endpoint.connect_lazy());
        let mut grpc = Grpc::new(channel.clone())
            .max_decoding_message_size(ANSWER_BYTES)
            .max_encoding_message_size(ANSWER_BYTES);
        let mut request = Request::new(question.clone());
        if let Some(authorization) = &self.authorization {
            let metadata = request.metadata_mut();
            metadata.insert("authorization", authorization.clone());
        }
        let path = format!("/milvus.proto.milvus.MilvusService/{method}");
        let path = PathAndQuery::try_from(path).map_err(|error| {
            let error = self.failed("a method has no valid name", error);
            (error.into(), false)
        })?;
        if let Err(error) = grpc.ready().await {
            return Err(self.unreached(&tonic::Status::from_error(error.into())));
        }
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.unary(request, path, codec).await;
        let answer = answer.map_err(|status| self.unreached(&status))?;
        let answer = answer.into_inner();
        let status = answer.status().cloned().unwrap_or_default();
        match status.code == 0 && status.legacy_code == 0 {
            true => Ok(answer),
            false => Err(self.refused(method, &status)),
        }
    }

    /// A call that got no answer of Milvus.
    fn unreached(&self, status: &tonic::Status) -> (Failure, bool) {
        let said = said(status.message());
        let (what, is_passing) = match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => (
                format!(
                    "refused the credentials ({said}); check MNEMON_INDEX_USER, \
                     MNEMON_INDEX_PASSWORD and the user's permissions"
                ),
                false,
            ),
            Code::DeadlineExceeded | Code::Cancelled => (
                "did not answer in time; is the server overloaded? ?timeout_s=N in the URL waits \
                 longer"
                    .to_owned(),
                false,
            ),
            Code::Unavailable | Code::Unknown => (
                "cannot be reached; start the server, or correct `index` in mnemon.toml".to_owned(),
                true,
            ),
            code => (
                format!("answered with {code:?}: {said}; is it a Milvus server?"),
                false,
            ),
        };
        (self.failed(what, said).into(), is_passing)
    }

    /// An answer of Milvus that is not one of success.
    fn refused(&self, method: &str, status: &Status) -> (Failure, bool) {
        let said = said(&status.reason);
        match (status.code, status.legacy_code) {
            (100, _) | (0 | 1, 4) => (Failure::Missing, false),
            (101 | 103, _) => (Failure::NotLoaded, false),
            (code, legacy) => {
                let code = if code == 0 { legacy } else { code };
                let what = format!("refused {method} with code {code}: {said}");
                (self.failed(what, "refused").into(), status.retriable)
            }
        }
    }

    /// The error for an answer that lacks something.
    pub(crate) fn unreadable(&self, lacks: &str) -> StoreError {
        let what = format!("answered without {lacks}; is it a Milvus server?");
        self.failed(what, "unexpected answer")
    }

    pub(crate) fn foreign(&self, what: String) -> StoreError {
        StoreError::Foreign {
            place: self.place.clone(),
            what,
        }
    }

    pub(crate) fn failed(
        &self,
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> StoreError {
        unavailable(&self.place, what, source)
    }
}

fn said(text: &str) -> String {
    text.chars().take(SAID_CHARS).collect()
}

/// The header that names the user; it is never shown.
fn authorization(access: &IndexAccess) -> Option<MetadataValue<Ascii>> {
    let text = base64::engine::general_purpose::STANDARD.encode(access.credentials()?);
    let mut value: MetadataValue<Ascii> = text.parse().ok()?;
    value.set_sensitive(true);
    Some(value)
}
