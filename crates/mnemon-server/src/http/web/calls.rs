//! Operations in the name of the visitor of a page.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use mnemon_core::{Change, Changes, Ctx};
use mnemon_engine::access::{Caller, Rights};
use mnemon_operations::api::llm;
use mnemon_operations::config::Money;
use mnemon_operations::{Error, wiring};
use mnemon_web::Failure;
use serde_json::{Map, Value, json};

use super::Site;
use super::numbers::Numbers;
use crate::http::api;
use crate::http::problem::Problem;

/// Tenants that are counted.
const TENANTS: usize = 20;
/// Points of the chart of growth. Each is one look-up in the history.
const POINTS: u64 = 24;
/// Days of use of the language model that are shown.
const DAYS: usize = 14;
/// Accounts of the language model that are shown.
const ACCOUNTS: usize = 50;

/// Operations in the name of one caller.
pub(super) struct Calls<'a> {
    site: &'a Site,
    caller: Caller,
    /// Whether a refusal is in the audit log already.
    pub(super) has_recorded: AtomicBool,
}

impl<'a> Calls<'a> {
    pub(super) fn new(site: &'a Site, caller: Caller) -> Self {
        Self {
            site,
            caller,
            has_recorded: AtomicBool::new(false),
        }
    }

    fn check_admin(&self) -> Result<(), Failure> {
        let allowed = self.caller.require(Rights::Admin);
        allowed.map_err(|missing| Failure::new(403, "denied", &missing.to_string()))
    }

    /// Whether the caller is of the server's own tenant, and so may see values of all tenants.
    fn is_operator(&self) -> bool {
        self.caller.tenant == self.site.web.api.config().tenant.value
    }

    fn ctx(&self) -> Result<Ctx, Error> {
        let api = &self.site.web.api;
        let seat = api.seat(&self.caller.tenant)?;
        api.ctx(&seat, &self.caller)
    }

    /// The newest change before this number, or the newest of all.
    async fn change_before(&self, ctx: &Ctx, before: Option<u64>) -> Result<Option<Change>, Error> {
        let asked = Changes {
            before,
            ..Changes::all_of_tenant(1)
        };
        let records = self.site.web.api.memory.records();
        Ok(records.history(ctx, &asked).await?.pop())
    }

    /// Points in time with the number of changes up to each, oldest first.
    async fn points(&self) -> Result<Vec<Value>, Error> {
        let ctx = self.ctx()?;
        let records = self.site.web.api.memory.records();
        let newest = self.change_before(&ctx, None).await?;
        let oldest = records.history(&ctx, &Changes::feed(0, 1)).await?.pop();
        let Some((oldest, newest)) = oldest.zip(newest) else {
            return Ok(Vec::new());
        };
        let span = newest.seq.saturating_sub(oldest.seq);
        let steps = POINTS.min(span).max(1);
        let mut points = vec![json!({ "at": oldest.at, "count": oldest.seq })];
        // At once, as each of them waits for a thread.
        let between = (1..steps).map(|step| {
            let (seq, ctx) = (oldest.seq + span * step / steps, &ctx);
            async move {
                let change = self.change_before(ctx, Some(seq + 1)).await?;
                Ok::<_, Error>(change.map(|change| json!({ "at": change.at, "count": seq })))
            }
        });
        let between = futures::future::try_join_all(between).await?;
        points.extend(between.into_iter().flatten());
        points.push(json!({ "at": newest.at, "count": newest.seq }));
        Ok(points)
    }

    /// Records by tenant.
    async fn tenants(&self) -> Vec<Value> {
        let api = &self.site.web.api;
        let tenants = match self.is_operator() {
            true => api.tenants(),
            false => vec![self.caller.tenant.clone()],
        };
        let mut counted = Vec::new();
        for tenant in tenants.into_iter().take(TENANTS) {
            if let Ok(ctx) = api
                .seat(&tenant)
                .and_then(|seat| wiring::stamp(&seat.config))
                && let Ok(tally) = api.memory.records().stats(&ctx).await
            {
                let records = tally.records().saturating_sub(tally.expired);
                counted.push(json!({ "tenant": tenant, "records": records }));
            }
        }
        counted
    }

    /// The use of the language model by this tenant, or why it cannot be read.
    async fn model_use(&self) -> Value {
        let config = self.site.web.api.config().clone();
        let read = tokio::task::spawn_blocking(move || llm::usage(&config, DAYS)).await;
        let accounts = match read {
            Ok(Ok(accounts)) => accounts,
            Ok(Err(error)) => return json!({ "failure": error.to_string() }),
            Err(error) => return json!({ "failure": error.to_string() }),
        };
        let tenant = self.caller.tenant.to_string();
        let own = accounts.into_iter().filter(|one| one.tenant == tenant);
        let own: Vec<Value> = own
            .take(ACCOUNTS)
            .map(|one| {
                json!({
                    "day": one.day, "task": one.task, "calls": one.usage.calls,
                    "input_tokens": one.usage.input_tokens,
                    "output_tokens": one.usage.output_tokens,
                    "cost": Money(one.usage.nanos).to_string(),
                })
            })
            .collect();
        json!({ "accounts": own })
    }
}

pub(super) fn failure(problem: Problem) -> Failure {
    // In the words of the API, as its routes and the pages have no options.
    let problem = problem.to(None);
    Failure {
        status: problem.status,
        code: problem.code,
        detail: problem.detail,
        field: problem.field,
        hint: problem.hint,
        retry_seconds: problem.retry,
    }
}

#[async_trait]
impl mnemon_web::Api for Calls<'_> {
    async fn call(&self, route: &str, fields: Map<String, Value>) -> Result<Value, Failure> {
        let Some(endpoint) = self.site.endpoints.get(route) else {
            let what = format!("a page asks for `{route}`, which is not a route");
            return Err(Failure::new(500, "internal", &what));
        };
        let called = api::call(&self.site.web.api, endpoint, self.caller.clone(), fields).await;
        called.map_err(|(problem, is_recorded)| {
            self.has_recorded.fetch_or(is_recorded, Ordering::Relaxed);
            failure(problem)
        })
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Value, Failure> {
        self.check_admin()?;
        let Some(audit) = wiring::audit_log(&self.site.web.api.config()) else {
            return Ok(json!({ "is_kept": false }));
        };
        let tenant = self.caller.tenant.clone();
        let read = tokio::task::spawn_blocking(move || audit.page(&tenant, before, limit)).await;
        let page = match read {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => return Err(failure(api::problem_of(&error.into()))),
            Err(error) => return Err(Failure::new(500, "internal", &error.to_string())),
        };
        Ok(json!({
            "is_kept": true, "entries": page.entries, "next": page.next,
            "unreadable": page.unreadable,
        }))
    }

    async fn growth(&self) -> Result<Value, Failure> {
        if self.caller.user.is_some() {
            let what = "the history of the whole tenant is not for a key of one user";
            return Err(Failure::new(403, "denied", what));
        }
        let points = self.points().await;
        let points = points.map_err(|error| failure(api::problem_of(&error)))?;
        Ok(json!({ "points": points }))
    }

    async fn server(&self) -> Result<Value, Failure> {
        self.check_admin()?;
        let api = &self.site.web.api;
        let tenants = self.tenants().await;
        let quota = api.quotas().of(&self.caller.tenant);
        let state = json!({
            "tenants": tenants,
            "quota": {
                "records": quota.records, "bytes": quota.bytes,
                "requests_per_minute": quota.requests_per_minute,
                "model_tokens_per_day": quota.model_tokens_per_day,
            },
            "model": self.model_use().await,
            "upkeep": api.upkeeps.of(&self.caller.tenant),
            "has_audit_log": api.config().access.audit.is_some(),
        });
        Ok(match self.is_operator() {
            true => Numbers::of(&self.site.web.metrics).add_to(state),
            // Only the operator of the server sees values of all tenants together.
            false => state,
        })
    }
}
