//! A record for each session, in whatever store keeps states.

use async_trait::async_trait;
use mnemon_core::{
    Ctx, Expect, Filter, Id, Kind, Order, Origin, Owner, Record, Scan, Scope, StoreError, limits,
};

use super::{Mark, SessionId, SessionInfo, SessionState, Sessions};
use crate::memory::Memory;
use crate::records::naming::{check_name, fixed_id};
use crate::records::{Draft, Error, Records};

/// Sessions as records: each is one, so that a save is whole or not at all, has a version, is in
/// the history and can be undone.
pub struct KeptSessions<'a> {
    records: &'a Records,
    user: Option<String>,
}

impl Memory {
    /// The saved sessions of a user, or those of nobody in particular.
    pub fn sessions(&self, user: Option<&str>) -> Result<KeptSessions<'_>, Error> {
        if let Some(user) = user {
            check_name("user", user, limits::NAME_CHARS)?;
        }
        Ok(KeptSessions {
            records: self.records_of(Scope::State),
            user: user.map(str::to_owned),
        })
    }
}

impl KeptSessions<'_> {
    fn id(&self, session: &SessionId) -> Id {
        let names = [self.user.as_deref(), Some(session.as_str())];
        fixed_id("session", &names)
    }

    async fn record(&self, ctx: &Ctx, session: &SessionId) -> Result<Option<Record>, Error> {
        self.records.find(ctx, &self.id(session)).await
    }
}

fn state(session: &SessionId, record: &Record) -> Result<SessionState, Error> {
    let body = record.body.clone().unwrap_or_default();
    SessionState::from_json(session, body, &format!("record {}", record.id))
}

#[async_trait]
impl Sessions for KeptSessions<'_> {
    async fn load(&self, ctx: &Ctx, id: &SessionId) -> Result<Option<(SessionState, Mark)>, Error> {
        let Some(record) = self.record(ctx, id).await? else {
            return Ok(None);
        };
        let mark = Mark::Version(record.version);
        Ok(Some((state(id, &record)?, mark)))
    }

    async fn save(
        &self,
        ctx: &Ctx,
        state: &SessionState,
        seen: Option<&Mark>,
    ) -> Result<(), Error> {
        let safety = self.records.safety;
        safety.check_identifier("session", state.session.as_str())?;
        let id = self.id(&state.session);
        let expect = match seen {
            None => Expect::Absent,
            Some(Mark::Version(version)) => Expect::Version(*version),
            Some(_) => {
                return Err(StoreError::Conflict {
                    id,
                    expected: "a session that was seen elsewhere".to_owned(),
                    current: None,
                }
                .into());
            }
        };
        let draft = Draft {
            id: Some(id),
            owner: Owner::of(self.user.as_deref(), Some(state.session.as_str())),
            scope: Some(Scope::State),
            kind: Some(Kind::Session),
            body: Some(state.to_json()),
            origin: Some(Origin::Agent),
            ..Draft::default()
        };
        self.records.put(ctx, vec![(draft, expect)], None).await?;
        Ok(())
    }

    async fn delete(&self, ctx: &Ctx, id: &SessionId) -> Result<bool, Error> {
        if self.record(ctx, id).await?.is_none() {
            return Ok(false);
        }
        self.records.forget(ctx, &[self.id(id)], None).await?;
        Ok(true)
    }

    async fn list(&self, ctx: &Ctx) -> Result<Vec<String>, Error> {
        let filter = Filter {
            owner: Owner::of(self.user.as_deref(), None),
            scopes: vec![Scope::State],
            kinds: vec![Kind::Session],
            ..Filter::all_of_tenant()
        };
        let limits = self.records.limits();
        let scan = Scan {
            order: Order::Oldest,
            ..Scan::new(filter, limits.page)
        };
        let mut names = Vec::new();
        let take = |page: Vec<Record>| {
            let ours = page.into_iter().filter(|one| one.owner.user == self.user);
            names.extend(ours.filter_map(|record| record.owner.session));
            names.len() < limits.sessions
        };
        self.records.each_page(ctx, scan, take).await?;
        names.sort();
        names.truncate(limits.sessions);
        Ok(names)
    }

    async fn info(&self, ctx: &Ctx, id: &SessionId) -> Result<Option<SessionInfo>, Error> {
        let Some(record) = self.record(ctx, id).await? else {
            return Ok(None);
        };
        Ok(Some(SessionInfo {
            session_id: id.to_string(),
            size: record.weight() as u64,
            last_modified: record.updated,
            component_count: state(id, &record)?.components.len(),
        }))
    }
}
