//! Who somebody is and what they like.

use mnemon_core::json::{Schema, merge};
use mnemon_core::{
    Change, Changes, Ctx, Expect, Id, IdempotencyKey, Kind, Owner, Receipt, Record, Scope,
    StoreError, Time, Viewer, limits,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::state::object;
use crate::records::naming::{check_name, fixed_id};
use crate::records::{Draft, Error, Records};

/// The profiles of a memory.
#[derive(Clone, Copy)]
pub struct Profile<'a> {
    pub(crate) records: &'a Records,
}

/// A user's profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserProfile {
    pub id: Id,
    pub profile: Map<String, Value>,
    pub version: u64,
    pub updated: Time,
}

impl Profile<'_> {
    /// The user's profile, if there is one that the viewer may see.
    pub async fn get_profile(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        user: &str,
    ) -> Result<Option<UserProfile>, Error> {
        check_name("user", user, limits::NAME_CHARS)?;
        let record = self.one(ctx, profile_id(user)).await?;
        let record = record.filter(|record| viewer.sees(&record.audience()));
        Ok(record.map(|record| UserProfile {
            id: record.id,
            profile: object(record.body),
            version: record.version,
            updated: record.updated,
        }))
    }

    /// Changes the profile as a JSON Merge Patch says: a member that is `null` goes, an object
    /// changes what it names, anything else takes the place of what was there. Changes made at the
    /// same time all arrive, unless the caller names the version that it saw (0: none).
    pub async fn update_profile(
        &self,
        ctx: &Ctx,
        user: &str,
        changes: &Map<String, Value>,
        expected_version: Option<u64>,
        key: Option<IdempotencyKey>,
    ) -> Result<Receipt, Error> {
        check_name("user", user, limits::NAME_CHARS)?;
        let schema = self.schema(ctx).await?;
        let mut tries = 0;
        loop {
            let there = self.one(ctx, profile_id(user)).await?;
            let version = there.as_ref().map_or(0, |record| record.version);
            let created = there.as_ref().map(|record| record.created);
            let audience = there.as_ref().and_then(|record| record.audience.clone());
            let mut profile = Value::Object(object(there.and_then(|record| record.body)));
            merge(&mut profile, Value::Object(changes.clone()));
            if let Some(schema) = &schema {
                schema.check("profile", &profile)?;
            }
            let draft = Draft {
                created,
                audience,
                ..draft(user, profile)
            };
            let expect = match expected_version.unwrap_or(version) {
                0 => Expect::Absent,
                version => Expect::Version(version),
            };
            tries += 1;
            let again = expected_version.is_none() && tries < limits::CHANGE_TRIES;
            let put = vec![(draft, expect)];
            match self.records.put(ctx, put, key.clone()).await {
                Err(Error::Store(StoreError::Conflict { .. })) if again => {}
                done => return done,
            }
        }
    }

    /// What the profile was before, newest change first.
    pub async fn history(&self, ctx: &Ctx, user: &str, limit: usize) -> Result<Vec<Change>, Error> {
        let changes = Changes {
            id: Some(profile_id(user)),
            ..Changes::seen_by(Viewer::user(user), limit)
        };
        self.records.history(ctx, &changes).await
    }

    /// The schema that the tenant's profiles must fit, if there is one.
    pub async fn schema(&self, ctx: &Ctx) -> Result<Option<Schema>, Error> {
        let record = self.one(ctx, schema_id()).await?;
        let schema = record.and_then(|record| record.body).map(Schema::read);
        Ok(schema.transpose()?)
    }

    /// Demands from now on that the tenant's profiles fit; `None` demands nothing. Profiles that
    /// are there stay as they are until they are changed.
    pub async fn set_schema(&self, ctx: &Ctx, schema: Option<Schema>) -> Result<Receipt, Error> {
        let Some(schema) = schema else {
            return self.records.forget(ctx, &[schema_id()], None).await;
        };
        let draft = Draft {
            id: Some(schema_id()),
            scope: Some(Scope::Profile),
            kind: Some(Kind::Rule),
            body: Some(schema.as_json().clone()),
            ..Draft::default()
        };
        let put = vec![(draft, Expect::Anything)];
        self.records.put(ctx, put, None).await
    }

    async fn one(&self, ctx: &Ctx, id: Id) -> Result<Option<Record>, Error> {
        self.records.find(ctx, &id).await
    }
}

pub(crate) fn profile_id(user: &str) -> Id {
    fixed_id("profile", &[Some(user)])
}

fn schema_id() -> Id {
    fixed_id("profile schema", &[])
}

fn draft(user: &str, profile: Value) -> Draft {
    let mut content = String::new();
    if let Value::Object(members) = &profile {
        for (name, value) in members {
            tell(&mut content, name, value);
        }
    }
    Draft {
        id: Some(profile_id(user)),
        content,
        owner: Owner::of(Some(user), None),
        kind: Some(Kind::Profile),
        body: Some(profile),
        ..Draft::default()
    }
}

/// A line for each plain value, so that a search finds it: `food.drink: tea`.
fn tell(text: &mut String, path: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                tell(text, &format!("{path}.{name}"), value);
            }
        }
        Value::String(plain) => text.push_str(&format!("{path}: {plain}\n")),
        other => text.push_str(&format!("{path}: {other}\n")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_profile_is_told_in_lines() {
        let told = draft(
            "ann",
            json!({"name": "Ann", "food": {"drink": "tea", "n": [1]}}),
        );
        assert_eq!(told.content, "food.drink: tea\nfood.n: [1]\nname: Ann\n");
        assert_eq!(draft("ann", json!({})).content, "");
    }
}
