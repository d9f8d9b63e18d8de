//! The verbs over records.

use std::collections::BTreeSet;

use mnemon_core::rank::Recipe;
use mnemon_core::{Changes, ErrorKind, Fate, Filter, Order, Owner, Receipt, Record, Scan};
use mnemon_engine::{Draft, Query};
use mnemon_testkit::simulator::{Random, UNIQUE};

use super::Work;
use super::actor::Actor;

/// An acknowledged addition is readable, whole, and done once for its key.
pub(super) fn add(actor: Actor, drafts: Vec<Draft>, key: Option<String>) -> (String, Work) {
    let name = format!(
        "add {} {}",
        drafts.len(),
        key.as_deref().unwrap_or_default()
    );
    let work = async move {
        let records = actor.memory.records();
        match records
            .add(&actor.ctx, drafts.clone(), key.as_deref())
            .await
        {
            Ok(receipt) => actor
                .check_embedder_notice()
                .and_then(|()| added(&actor, &drafts, &receipt)),
            Err(error) => {
                // A retry comes with what has expired since, or with what is there already.
                let retry = match key {
                    Some(_) => &[ErrorKind::TooLarge, ErrorKind::Invalid][..],
                    None => &[ErrorKind::TooLarge][..],
                };
                actor.explain(&error, retry)
            }
        }
    };
    (name, Box::pin(work))
}

fn added(actor: &Actor, drafts: &[Draft], receipt: &Receipt) -> Result<(), String> {
    if receipt.items.len() != drafts.len() {
        return Err(format!(
            "{} drafts were given, {} acknowledged",
            drafts.len(),
            receipt.items.len()
        ));
    }
    for (draft, item) in drafts.iter().zip(&receipt.items) {
        let Fate::Stored { version } = item.fate else {
            return Err(format!("the fate of a new record is {:?}", item.fate));
        };
        let live = actor
            .model_get(&item.id)
            .filter(|live| live.version == version);
        if let Some(live) = live
            && (live.content != draft.content || live.owner != draft.owner)
        {
            return Err(format!("{} is another record than was added", item.id));
        }
    }
    Ok(())
}

/// An acknowledged update is the next version; one that lost a race is refused.
pub(super) fn update(actor: Actor, random: &mut Random, word: String) -> (String, Work) {
    let id = actor.some_id(random);
    let name = format!("update {id:?}");
    let work = async move {
        let records = actor.memory.records();
        let Some(id) = id else { return Ok(()) };
        let found = match records.get(&actor.ctx, &[id]).await {
            Ok(found) => found,
            Err(error) => return actor.explain(&error, &[]),
        };
        let Some(mut record) = found.into_iter().flatten().next() else {
            return Ok(());
        };
        record.content = format!("{word} drinks black coffee");
        let (id, content, before) = (record.id.clone(), record.content.clone(), record.version);
        match records.update(&actor.ctx, record).await {
            Ok(_) => match actor.model_get(&id) {
                Some(live) if live.version == before + 1 && live.content != content => {
                    Err(format!("{id} does not say what it was changed to"))
                }
                _ => Ok(()),
            },
            Err(error) => actor.explain(&error, &[ErrorKind::Conflict]),
        }
    };
    (name, Box::pin(work))
}

/// What was forgotten is not live afterwards, unless somebody wrote it anew.
pub(super) fn forget(actor: Actor, random: &mut Random) -> (String, Work) {
    let ids = actor.some_ids(random, 2);
    let work = async move {
        let since = actor.begin();
        match actor.memory.records().forget(&actor.ctx, &ids, None).await {
            Ok(_) => {
                let is_left =
                    |id: &&_| actor.model_get(id).is_some() && !actor.was_touched(id, since);
                match ids.iter().find(is_left) {
                    Some(id) => Err(format!("{id} is still live")),
                    None => Ok(()),
                }
            }
            Err(error) => actor.explain(&error, &[ErrorKind::TooLarge]),
        }
    };
    ("forget".to_owned(), Box::pin(work))
}

/// What was purged is nowhere; the history is compared with the model after every step.
pub(super) fn purge(actor: Actor, random: &mut Random, most: u64) -> (String, Work) {
    let ids = actor.some_ids(random, most);
    let name = format!("purge {ids:?}");
    let work = async move {
        let since = actor.begin();
        match actor.memory.records().purge(&actor.ctx, &ids, None).await {
            Ok(_) => {
                let is_left =
                    |id: &&_| actor.model_get(id).is_some() && !actor.was_touched(id, since);
                match ids.iter().find(is_left) {
                    Some(id) => Err(format!("{id} is still live")),
                    None => Ok(()),
                }
            }
            Err(error) => actor.explain(&error, &[ErrorKind::TooLarge]),
        }
    };
    (name, Box::pin(work))
}

/// An undo brings back all that its commit changed, or is refused.
pub(super) fn undo(actor: Actor, random: &mut Random) -> (String, Work) {
    let commits = actor.sim.lock().model.commits(&actor.ctx.tenant);
    let recent = commits.len().saturating_sub(8);
    let commit = random.pick(&commits[recent..]).copied();
    let name = format!("undo {commit:?}");
    let work = async move {
        let Some(commit) = commit else { return Ok(()) };
        match actor.memory.records().undo(&actor.ctx, commit).await {
            Ok(_) => {
                let by = actor.sim.running();
                let state = actor.sim.lock();
                let (tenant, now) = (&actor.ctx.tenant, actor.ctx.now);
                state.model.check_undone(tenant, commit, by, now)
            }
            Err(error) => {
                // It was changed since, is too old, was purged, or marks a purge.
                let reasons = [
                    ErrorKind::Conflict,
                    ErrorKind::NotFound,
                    ErrorKind::Invalid,
                    ErrorKind::TooLarge,
                ];
                actor.explain(&error, &reasons)
            }
        }
    };
    (name, Box::pin(work))
}

/// A record is found by its own words, and nothing is found that may not be shown.
pub(super) fn search(actor: Actor, random: &mut Random) -> (String, Work) {
    let live = actor.live();
    let is_mine = |record: &&Record| {
        record
            .owner
            .user
            .as_deref()
            .is_none_or(|user| user == actor.user)
    };
    let has_word = |record: &&Record| record.content.starts_with(UNIQUE);
    let mine: Vec<&Record> = live.iter().filter(is_mine).filter(has_word).collect();
    let wanted = random.pick(&mine).map(|record| (**record).clone());
    let text = match &wanted {
        Some(record) => record.content.split_whitespace().next().unwrap().to_owned(),
        None => "green tea".to_owned(),
    };
    let name = format!("search {text}");
    let query = Query {
        recipe: [Recipe::Hybrid, Recipe::Words][random.index(2)],
        limit: 4,
        ..Query::new(text, Filter::seen_by(mnemon_core::Viewer::user(actor.user)))
    };
    let work = async move {
        let since = actor.begin();
        let hits = match actor.memory.records().search(&actor.ctx, &query).await {
            Ok(hits) => hits,
            Err(error) => return actor.explain(&error, &[]),
        };
        actor.check_embedder_notice()?;
        for hit in &hits {
            actor.check_shown(since, &hit.record)?;
            if !query.filter.matches(&hit.record) {
                return Err(format!("{} was shown to another user", hit.record.id));
            }
        }
        // With the toy embedder the meaning arm may lift other records above an exact match.
        let wanted = wanted.filter(|_| query.recipe == Recipe::Words);
        let Some(wanted) = wanted.filter(|wanted| !actor.was_touched(&wanted.id, since)) else {
            return Ok(());
        };
        match hits.iter().any(|hit| hit.record.id == wanted.id) {
            true => Ok(()),
            false => {
                let hits = hits
                    .iter()
                    .map(|hit| (&hit.record.content, hit.score, &hit.parts));
                let hits: Vec<_> = hits.collect();
                let (id, recipe) = (&wanted.id, query.recipe);
                Err(format!(
                    "{id} is not found by its own word ({recipe:?})\n  {hits:?}"
                ))
            }
        }
    };
    (name, Box::pin(work))
}

/// A list shows each record of the user once, whatever happens meanwhile.
pub(super) fn list(actor: Actor, random: &mut Random) -> (String, Work) {
    let order = [Order::Newest, Order::Oldest, Order::Written][random.index(3)];
    let work = async move {
        let since = actor.begin();
        let mut scan = Scan {
            filter: Filter {
                owner: Owner {
                    user: Some(actor.user.to_owned()),
                    ..Owner::default()
                },
                ..Filter::all_of_tenant()
            },
            order,
            after: None,
            limit: actor.sim.lock().limits.page,
        };
        let mut shown = BTreeSet::new();
        loop {
            let page = match actor.memory.records().list(&actor.ctx, &scan).await {
                Ok(page) => page,
                Err(error) => return actor.explain(&error, &[]),
            };
            for record in page.records {
                actor.check_shown(since, &record)?;
                if !scan.filter.matches(&record) {
                    return Err(format!("{} was shown to another user", record.id));
                }
                shown.insert(record.id);
            }
            match page.next {
                Some(next) => scan.after = Some(next),
                None => break,
            }
        }
        let state = actor.sim.lock();
        let is_meant = |record: &Record| scan.filter.matches(record);
        let (tenant, now) = (&actor.ctx.tenant, actor.ctx.now);
        state
            .model
            .check_complete(since, tenant, now, is_meant, &shown)
    };
    (format!("list {order:?}"), Box::pin(work))
}

pub(super) fn get(actor: Actor, random: &mut Random) -> (String, Work) {
    let ids = actor.some_ids(random, 3);
    let work = async move {
        let since = actor.begin();
        let found = match actor.memory.records().get(&actor.ctx, &ids).await {
            Ok(found) => found,
            Err(error) => return actor.explain(&error, &[]),
        };
        for (id, found) in ids.iter().zip(found) {
            match found {
                Some(record) => actor.check_shown(since, &record)?,
                None if actor.model_get(id).is_some() && !actor.was_touched(id, since) => {
                    return Err(format!("{id} is missing, it is live"));
                }
                None => {}
            }
        }
        Ok(())
    };
    ("get".to_owned(), Box::pin(work))
}

/// The history names nothing that was purged.
pub(super) fn history(actor: Actor, random: &mut Random) -> (String, Work) {
    let id = actor.some_id(random).filter(|_| random.chance(50));
    let work = async move {
        let since = actor.begin();
        let wanted = Changes {
            id,
            limit: 3,
            ..Changes::all_of_tenant(0)
        };
        let changes = match actor.memory.records().history(&actor.ctx, &wanted).await {
            Ok(changes) => changes,
            Err(error) => return actor.explain(&error, &[]),
        };
        let state = actor.sim.lock();
        let tenant = &actor.ctx.tenant;
        let is_purged = |id: &_| {
            state.model.is_purged(tenant, id) && !state.model.was_touched(tenant, id, since)
        };
        match changes.iter().find(|change| is_purged(&change.id)) {
            Some(change) => Err(format!("{} is purged and has a history", change.id)),
            None => Ok(()),
        }
    };
    ("history".to_owned(), Box::pin(work))
}

pub(super) fn upkeep(actor: Actor, random: &mut Random) -> (String, Work) {
    let limit = random.index(6);
    let embeds = random.chance(50);
    let work = async move {
        let records = actor.memory.records();
        let done = match embeds {
            true => records.embed_missing(&actor.ctx, limit).await.map(drop),
            false => records.upkeep(&actor.ctx, limit).await.map(drop),
        };
        done.or_else(|error| actor.explain(&error, &[]))
    };
    ("upkeep".to_owned(), Box::pin(work))
}
