//! Memories that other services keep: Mem0, Zep, ReMe and Acontext as long-term memories, and
//! knowledge bases that are only read.
//!
//! Each service is one file that knows its requests; [`client`] sends them with a time limit, a limit
//! on the answer and typed errors. A service is named by a URL such as `mem0+https://api.mem0.ai`.

mod acontext;
mod address;
mod client;
mod http_source;
mod mem0;
mod opensearch;
mod reme;
mod source;
mod subject;
mod zep;

use std::time::Duration;

use async_trait::async_trait;
use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTerm, LongTermError, RemoteCheck, RemoteReport};
use mnemon_core::{Ctx, Invalid, Message, Owner, limits};

use crate::http::Secret;
use address::{Address, Service};
use client::RemoteClient;
use subject::{Said, Subject};

pub use source::{FieldMapping, Source, SourceConfig};

/// Texts that are retrieved for one message.
const TOP: usize = 5;

/// How a service is reached.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    /// Such as `mem0+https://api.mem0.ai`.
    pub url: String,
    /// From the environment only.
    pub key: Option<Secret>,
    /// The longest that one request may take, its answer included.
    pub timeout: Duration,
}

/// Whether both URLs name the same service at the same address, so that a key for one is for the other.
pub fn is_same_service(one: &str, other: &str) -> bool {
    let place = |url: &str| {
        let Address { service, base, .. } = Address::parse(url).ok()?;
        Some((service, base))
    };
    place(one).is_some_and(|one| place(other) == Some(one))
}

/// The requests of one service.
#[async_trait]
trait Protocol: Send + Sync {
    /// Hands over messages, of which there is at least one.
    async fn record(&self, subject: &Subject, said: &[Said]) -> Result<(), LongTermError>;

    /// The texts that fit the query best, at most `limit`.
    async fn find(
        &self,
        subject: &Subject,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError>;

    /// Sends a request that changes nothing and needs the key.
    async fn check(&self) -> Result<RemoteReport, LongTermError>;
}

/// A memory that another service keeps.
pub struct Remote {
    service: String,
    protocol: Box<dyn Protocol>,
}

impl Remote {
    /// The memory at this URL. Nothing is sent yet.
    pub fn open(config: RemoteConfig) -> Result<Self, Invalid> {
        let address = Address::parse(&config.url)?;
        address.check_key(config.key.as_ref())?;
        let client = RemoteClient::at(
            address.service.name(),
            &address.base,
            config.key,
            address.service.key_header(),
            config.timeout,
        );
        let service = client.service().to_owned();
        let protocol: Box<dyn Protocol> = match address.service {
            Service::Mem0(version) => Box::new(mem0::Mem0::new(client, version)),
            Service::Zep => Box::new(zep::Zep::new(client)),
            Service::Reme => Box::new(reme::Reme::new(client)),
            Service::RemeJobs => Box::new(reme::RemeJobs::new(client, address.user)),
            Service::Acontext => Box::new(acontext::Acontext::new(client, address.space)),
        };
        Ok(Self { service, protocol })
    }
}

#[async_trait]
impl LongTerm for Remote {
    async fn record(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        messages: &[Message],
    ) -> Result<(), LongTermError> {
        let said: Vec<Said> = messages.iter().filter_map(Said::of).collect();
        match said.is_empty() {
            true => Ok(()),
            false => {
                let subject = Subject::of(ctx, owner);
                self.protocol.record(&subject, &said).await
            }
        }
    }

    async fn retrieve(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        message: &Message,
    ) -> Result<String, LongTermError> {
        let found = self.find(ctx, owner, &message.text_content(), TOP).await?;
        let texts: Vec<&str> = found.iter().map(|hit| hit.text.trim()).collect();
        Ok(texts.join("\n"))
    }

    async fn find(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let end = query.floor_char_boundary(limits::QUERY_BYTES);
        let query = query.get(..end).unwrap_or_default().trim();
        if query.is_empty() {
            return Ok(Vec::new());
        }
        let subject = Subject::of(ctx, owner);
        let mut found = self.protocol.find(&subject, query, limit).await?;
        found.retain(|hit| !hit.text.trim().is_empty());
        found.truncate(limit);
        Ok(found)
    }

    fn service(&self) -> &str {
        &self.service
    }
}

#[async_trait]
impl RemoteCheck for Remote {
    async fn check(&self, _ctx: &Ctx) -> Result<RemoteReport, LongTermError> {
        self.protocol.check().await
    }
}
