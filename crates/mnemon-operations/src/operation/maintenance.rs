//! Operations on a store as a whole, and on the configuration.

use mnemon_core::{Ctx, limits};
use serde::{Deserialize, Serialize};

use super::{Access, Arguments, Doctor, Field, Operation, PolicyShow, Reembed, Spelling, Upkeep};
use crate::config::{Config, without_passwords};
use crate::{Error, api, wiring};

/// The call of the next slice, which begins now.
fn slice<On>(access: &Access<'_, On>) -> Result<Ctx, Error> {
    Ok(Ctx {
        now: wiring::now()?,
        ..access.ctx.clone()
    })
}

impl Operation for Upkeep {
    const COMMAND: &'static str = "upkeep";
    type Answer = api::upkeep::Response;

    fn fields() -> Vec<Field> {
        let most = u64::from(u32::MAX);
        let clock = "Erase expired records although the clock is far ahead of the newest write";
        vec![
            Field::whole("limit", 1, most, "Maximum number of pieces of work")
                .default("all that is due"),
            Field::flag("accept_clock", clock),
        ]
    }

    /// In slices, so that other processes get their turn in between.
    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Self::Answer, Error> {
        let accept_clock = arguments.flag("accept_clock").unwrap_or(false);
        let mut all = Self::Answer {
            swept: wiring::sweep(access.config).await?,
            ..Self::Answer::default()
        };
        let mut left = arguments.whole("limit").unwrap_or(usize::MAX);
        loop {
            let limit = left.min(api::upkeep::LIMIT);
            let ctx = slice(access)?;
            let slice = api::upkeep::run(access.memory, &ctx, limit, accept_clock).await?;
            all.add(&slice);
            (access.watch)(all.pieces(), None);
            left -= limit;
            if !slice.more || left == 0 || slice.pieces() == 0 {
                return Ok(all);
            }
        }
    }
}

/// Records that got a vector.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reembedded {
    pub embedded: u64,
    pub embedder: String,
}

impl Operation for Reembed {
    const COMMAND: &'static str = "reembed";
    type Answer = Reembedded;

    /// In slices, so that other processes get their turn in between.
    async fn run(access: &Access<'_>, _: Arguments) -> Result<Reembedded, Error> {
        let records = api::stats::run(access.memory, access.ctx).await?.records;
        let (mut embedded, mut reached) = (0, 0);
        loop {
            let ctx = slice(access)?;
            let slice = api::reembed::run(access.memory, &ctx, reached, api::reembed::LIMIT);
            let slice = slice.await?;
            embedded += slice.embedded;
            (access.watch)(embedded, Some(records));
            reached = slice.reached;
            if !slice.more {
                let embedder = without_passwords(&access.config.embedder.value.to_string());
                return Ok(Reembedded { embedded, embedder });
            }
        }
    }
}

impl Operation<Config> for Doctor {
    const COMMAND: &'static str = "doctor";
    type Answer = api::doctor::Response;

    /// It reads the whole store, on a thread on which that keeps nobody waiting.
    async fn run(access: &Access<'_, Config>, _: Arguments) -> Result<Self::Answer, Error> {
        let config = access.memory.clone();
        let examined = tokio::task::spawn_blocking(move || api::doctor::run(&config, false));
        examined
            .await
            .map_err(|error| Error::Internal(error.to_string()))?
    }
}

impl Operation<Config> for PolicyShow {
    const COMMAND: &'static str = "policy show";
    type Answer = api::policy::Response;

    fn fields() -> Vec<Field> {
        let name = |name, about| Field::text(name, limits::NAME_CHARS, about);
        vec![
            name("flow", "Name of the flow").positional(Spelling::Positional, "FLOW"),
            name("agent", "Name of the agent").value("NAME"),
        ]
    }

    async fn run(access: &Access<'_, Config>, arguments: Arguments) -> Result<Self::Answer, Error> {
        let [flow, agent] = ["flow", "agent"].map(|name| arguments.text(name));
        Ok(api::policy::run(access.memory, flow, agent))
    }
}
