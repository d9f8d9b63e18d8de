//! What a store shows, compared with the model.

use std::collections::BTreeSet;

use mnemon_core::{
    Backend, Changes, Filter, Grant, Id, Order, Owner, Policy, Probe, QueryTerm, Record, Right,
    Scan, Store, Tenant,
};

use super::{Random, Sim};
use crate::make::Caller;

/// Compares everything that a tenant sees with the model. Reads the store directly: no faults, no
/// other operation in between.
pub(super) async fn check_tenant(
    sim: &Sim,
    backend: &Backend,
    tenant: &Tenant,
    random: &mut Random,
) -> Result<(), String> {
    let grant = grant(sim, tenant);
    let store = backend.store.as_ref();
    let order = [Order::Newest, Order::Oldest, Order::Written][random.index(3)];
    let users = [None, Some("ann"), Some("bob")];
    let filter = Filter {
        owner: Owner {
            user: users[random.index(3)].map(str::to_owned),
            ..Owner::default()
        },
        ..Filter::all_of_tenant()
    };
    check_list(sim, store, &grant, filter, order).await?;
    check_get(sim, store, &grant).await?;
    check_tally(sim, store, &grant).await?;
    let ids = sim.lock().model.ids(tenant);
    if let Some(id) = random.pick(&ids) {
        check_history(sim, store, &grant, id).await?;
        check_found(sim, backend, &grant, id).await?;
    }
    Ok(())
}

fn grant(sim: &Sim, tenant: &Tenant) -> Grant {
    let state = sim.lock();
    let caller = Caller::default().at(state.now).on(tenant.as_str());
    let policy = Policy {
        limits: state.limits,
        ..Policy::default()
    };
    policy.check(caller.ctx(), Right::Read).unwrap()
}

fn failed(what: &str, error: &mnemon_core::StoreError) -> String {
    format!("{what} failed without reason: {error}")
}

/// Lists show all live records that the filter means, and nothing else.
async fn check_list(
    sim: &Sim,
    store: &dyn Store,
    grant: &Grant,
    filter: Filter,
    order: Order,
) -> Result<(), String> {
    let since = sim.lock().model.begin();
    let mut scan = Scan {
        filter,
        order,
        after: None,
        limit: grant.limits().page,
    };
    let mut shown = BTreeSet::new();
    loop {
        let page = store.scan(grant, &scan).await;
        let page = page.map_err(|error| failed("list", &error))?;
        for record in &page.records {
            let state = sim.lock();
            let model = &state.model;
            model
                .check_shown(since, grant.tenant(), state.now, record)
                .map_err(|what| format!("list: {what}"))?;
            if !scan.filter.matches(record) {
                return Err(format!(
                    "list showed {} which the filter excludes",
                    record.id
                ));
            }
            if !shown.insert(record.id.clone()) {
                return Err(format!("list showed {} twice", record.id));
            }
        }
        match page.next {
            Some(next) => scan.after = Some(next),
            None => break,
        }
    }
    let state = sim.lock();
    let is_meant = |record: &Record| scan.filter.matches(record);
    state
        .model
        .check_complete(since, grant.tenant(), state.now, is_meant, &shown)
        .map_err(|what| format!("list: {what}"))
}

/// Every id shows its live version, or nothing.
async fn check_get(sim: &Sim, store: &dyn Store, grant: &Grant) -> Result<(), String> {
    let (ids, since) = {
        let state = sim.lock();
        (state.model.ids(grant.tenant()), state.model.begin())
    };
    for page in ids.chunks(grant.limits().page) {
        let found = store.get(grant, page).await;
        let found = found.map_err(|error| failed("get", &error))?;
        if found.len() != page.len() {
            return Err(format!(
                "get of {} ids gave {} answers",
                page.len(),
                found.len()
            ));
        }
        let state = sim.lock();
        for (id, found) in page.iter().zip(&found) {
            match (found, state.model.get(grant.tenant(), id, state.now)) {
                (Some(shown), _) => state
                    .model
                    .check_shown(since, grant.tenant(), state.now, shown)
                    .map_err(|what| format!("get: {what}"))?,
                (None, Some(_)) => return Err(format!("get: {id} is missing, it is live")),
                (None, None) => {}
            }
        }
    }
    Ok(())
}

/// Counts agree with lists.
async fn check_tally(sim: &Sim, store: &dyn Store, grant: &Grant) -> Result<(), String> {
    let tally = store.tally(grant).await;
    let tally = tally.map_err(|error| failed("tally", &error))?;
    let state = sim.lock();
    let live = state.model.live(grant.tenant(), state.now).count() as u64;
    let counted = tally.records() - tally.expired;
    match counted == live {
        true => Ok(()),
        false => Err(format!("{counted} records are counted, {live} are live")),
    }
}

/// The history of a live record ends with what is shown; a purged one has none.
async fn check_history(sim: &Sim, store: &dyn Store, grant: &Grant, id: &Id) -> Result<(), String> {
    let newest = Changes {
        id: Some(id.clone()),
        limit: 1,
        ..Changes::all_of_tenant(0)
    };
    let changes = store.changes(grant, &newest).await;
    let changes = changes.map_err(|error| failed("history", &error))?;
    let state = sim.lock();
    let model = &state.model;
    if model.is_purged(grant.tenant(), id) && !changes.is_empty() {
        return Err(format!("{id} is purged and still has a history"));
    }
    let newest = changes.first();
    if model.is_deleted(grant.tenant(), id, state.now) {
        return match newest {
            Some(change) if change.after.is_none() => Ok(()),
            _ => Err(format!(
                "the history of the deleted {id} does not end with a deletion"
            )),
        };
    }
    let Some(live) = model.get(grant.tenant(), id, state.now) else {
        return Ok(());
    };
    let last = newest.and_then(|change| change.after.as_ref());
    match last.is_some_and(|last| last.version == live.version && last.content == live.content) {
        true => Ok(()),
        false => Err(format!(
            "the history of {id} does not end with its live version"
        )),
    }
}

/// A live record is found by a word that only it has.
async fn check_found(sim: &Sim, backend: &Backend, grant: &Grant, id: &Id) -> Result<(), String> {
    let word = {
        let state = sim.lock();
        let live = state.model.get(grant.tenant(), id, state.now);
        match live.and_then(|record| record.content.split_whitespace().next()) {
            Some(word) if word.starts_with(UNIQUE) => word.to_owned(),
            _ => return Ok(()),
        }
    };
    let probe = Probe {
        terms: QueryTerm::words_of(&word),
        depth: grant.limits().search_depth,
        ..Probe::new(Filter::all_of_tenant(), 0)
    };
    let found = backend.index.find(grant, &probe).await;
    let found = found.map_err(|error| failed("search", &error))?;
    match found.matches.iter().any(|found| found.id == *id) {
        true => Ok(()),
        false => Err(format!("{id} is not found by its own word {word}")),
    }
}

/// How words begin that only one version of one record has.
pub const UNIQUE: &str = "zq";
