//! Copies a store to another one while it is in use, and verifies the copy.

use mnemon_core::{Invalid, Tenant};
use mnemon_engine::{Migration, MigrationWatch, Sums, TenantState};
use serde::Serialize;

use crate::Error;

/// A tenant that appears while others are copied is copied, too; this often at the most.
const ROUNDS: usize = 100;

/// What was copied, or what a dry run would copy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Response {
    pub dry_run: bool,
    pub tenants: u64,
    pub records: u64,
    /// Past versions and tombstones.
    pub history: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts: Option<u64>,
    /// Changes that this call copied.
    pub copied: u64,
    /// Changes that the target does not have yet.
    pub behind: u64,
    /// Whether vectors are copied; otherwise they are computed again.
    pub vectors: bool,
    /// The hash that source and target have in common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The newest change of each tenant that the target has.
    pub copies: Vec<Copied>,
}

/// How far the copy of a tenant has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Copied {
    pub tenant: Tenant,
    pub seq: u64,
}

/// Checks both stores, and says what there is to copy.
pub async fn check(
    migration: &Migration,
    only: Option<&Tenant>,
) -> Result<(Response, Vec<TenantState>), Error> {
    let states = migration.check(only).await?;
    let sum = |of: fn(&TenantState) -> u64| states.iter().map(of).sum::<u64>();
    let copies = states.iter().map(|state| Copied {
        tenant: state.tenant.clone(),
        seq: state.copied_to,
    });
    let planned = Response {
        dry_run: true,
        tenants: states.len() as u64,
        records: sum(|state| state.records),
        history: sum(|state| state.versions),
        behind: sum(|state| state.seq - state.copied_to),
        vectors: migration.keeps_vectors(),
        copies: copies.collect(),
        ..Response::default()
    };
    Ok((planned, states))
}

/// Copies what the target does not have yet, and compares everything. Every change is watched
/// twice: when it is copied, and when it is compared.
pub async fn run(
    migration: &Migration,
    only: Option<&Tenant>,
    watch: MigrationWatch<'_>,
) -> Result<Response, Error> {
    let mut all: Vec<Sums> = Vec::new();
    let mut copied = 0;
    for _ in 0..ROUNDS {
        let (planned, states) = check(migration, only).await?;
        let is_known = |state: &&TenantState| all.iter().any(|it| it.tenant == state.tenant);
        let new: Vec<&TenantState> = states.iter().filter(|state| !is_known(state)).collect();
        if new.is_empty() {
            return Ok(response(all, planned, copied));
        }
        let mut verified = Vec::with_capacity(new.len());
        for state in new {
            let before = state.copied_to;
            migration.catch_up(&state.tenant, watch).await?;
            let sums = migration.verify(&state.tenant, watch).await?;
            copied += sums.seq - before;
            verified.push(sums);
        }
        all.append(&mut verified);
    }
    let what = "new tenants appear faster than they are copied; stop the writers and run it again";
    Err(Invalid::new("--from", what).into())
}

fn response(mut all: Vec<Sums>, planned: Response, copied: u64) -> Response {
    all.sort_by(|a, b| a.tenant.as_str().cmp(b.tenant.as_str()));
    let sum = |of: fn(&Sums) -> u64| all.iter().map(of).sum::<u64>();
    let copies = all.iter().map(|sums| Copied {
        tenant: sums.tenant.clone(),
        seq: sums.seq,
    });
    Response {
        dry_run: false,
        records: sum(|sums| sums.records),
        history: sum(|sums| sums.versions),
        receipts: Some(sum(|sums| sums.receipts)),
        copied,
        hash: Some(Sums::hash_of(&all)),
        copies: copies.collect(),
        ..planned
    }
}

/// Copies what is new once; how many changes.
pub async fn follow(migration: &Migration, only: Option<&Tenant>) -> Result<Response, Error> {
    let (mut planned, states) = check(migration, only).await?;
    planned.dry_run = false;
    for (state, copied) in states.iter().zip(&mut planned.copies) {
        if state.seq > state.copied_to {
            copied.seq = migration.catch_up(&state.tenant, &|_| ()).await?;
            planned.copied += copied.seq - state.copied_to;
        }
    }
    planned.behind = 0;
    Ok(planned)
}
