//! Reading: a pooled connection, one short read transaction each.

use mnemon_core::{Cause, Change, Changes, Grant, Group, Id, Record, Right, StoreError, Tally};
use rusqlite::{Row, params, params_from_iter};

use super::errors::{At, Query};
use super::pool::Reader;
use super::scans::Conditions;
use super::sums;
use super::tables::{key, seq, time, word};

/// The tenant's number; `None` when it never wrote anything.
pub(super) fn tenant(reader: &Reader<'_>, grant: &Grant) -> Result<Option<i64>, StoreError> {
    grant.require(Right::Read)?;
    let sql = "SELECT num FROM tenants WHERE name = ?1";
    let number = reader
        .connection
        .first(sql, [grant.tenant().as_str()], |row| row.get(0));
    number.at(reader.place)
}

/// The record of a row that begins with `doc` and `sum`.
pub(super) fn record(place: &str, row: &Row<'_>) -> Result<Record, StoreError> {
    let doc = row.get_ref(0).at(place)?;
    sums::record(
        place,
        doc.as_str().unwrap_or_default(),
        row.get(1).at(place)?,
    )
}

pub(super) fn get(
    reader: &Reader<'_>,
    grant: &Grant,
    ids: &[Id],
) -> Result<Vec<Option<Record>>, StoreError> {
    if ids.len() > grant.limits().page {
        return Err(StoreError::TooLarge {
            what: "ids in one get",
            count: ids.len(),
            most: grant.limits().page,
        });
    }
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(vec![None; ids.len()]);
    };
    let mut select = reader
        .connection
        .prepare_cached(
            "SELECT doc, sum FROM records WHERE tenant = ?1 AND id = ?2
             AND (expires IS NULL OR expires >= ?3)",
        )
        .at(reader.place)?;
    // One transaction, so that all come from the same moment.
    let _moment = reader.connection.unchecked_transaction().at(reader.place)?;
    ids.iter()
        .map(|id| {
            let values = params![tenant, id.as_str(), grant.now().millis()];
            let mut rows = select.query(values).at(reader.place)?;
            let row = rows.next().at(reader.place)?;
            row.map(|row| record(reader.place, row)).transpose()
        })
        .collect()
}

pub(super) fn ids_with_prefix(
    reader: &Reader<'_>,
    grant: &Grant,
    prefix: &str,
    limit: usize,
) -> Result<Vec<Id>, StoreError> {
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(Vec::new());
    };
    let mut select = reader
        .connection
        .prepare_cached(
            "SELECT id FROM records WHERE tenant = ?1 AND id >= ?2 AND id < ?3
             AND (expires IS NULL OR expires >= ?4) ORDER BY id LIMIT ?5",
        )
        .at(reader.place)?;
    // Ids are printable ASCII, so this comes behind all that begin with the prefix.
    let end = format!("{prefix}\u{7f}");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = params![tenant, prefix, end, grant.now().millis(), limit];
    let mut rows = select.query(values).at(reader.place)?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next().at(reader.place)? {
        let id: String = row.get(0).at(reader.place)?;
        ids.push(id.parse()?);
    }
    Ok(ids)
}

const COLUMNS: &str = "key, id, version, commit_seq, at, actor, cause, doc, sum";

/// A row of either table as a change, without what was there before.
fn change(row: &Row<'_>) -> rusqlite::Result<(Change, Option<String>, i64)> {
    let version = row.get::<_, i64>(2)?.cast_unsigned();
    let change = Change {
        seq: seq(row.get(0)?),
        id: word(row, 1)?,
        version,
        commit: row.get::<_, i64>(3)?.cast_unsigned(),
        at: time(row, 4)?,
        actor: row.get(5)?,
        cause: word::<Cause>(row, 6)?,
        before: None,
        before_known: version == 1,
        after: None,
    };
    Ok((change, row.get(7)?, row.get(8)?))
}

pub(super) fn changes(
    reader: &Reader<'_>,
    grant: &Grant,
    wanted: &Changes,
) -> Result<Vec<Change>, StoreError> {
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(Vec::new());
    };
    let _moment = reader.connection.unchecked_transaction().at(reader.place)?;
    let Conditions { sql, values } = select_changes(tenant, grant, wanted);
    let mut select = reader.connection.prepare_cached(&sql).at(reader.place)?;
    let mut rows = select.query(params_from_iter(values)).at(reader.place)?;
    let limit = wanted.limit.min(grant.limits().changes);
    let (mut found, mut weight) = (Vec::new(), 0);
    while found.len() < limit
        && weight < wanted.bytes
        && let Some(row) = rows.next().at(reader.place)?
    {
        let (mut change, doc, sum) = change(row).at(reader.place)?;
        let after = doc.map(|doc| sums::record(reader.place, &doc, sum));
        change.after = after.transpose()?;
        let change = with_before(reader, tenant, grant, change)?;
        if wanted.shows(&change) {
            weight += change.weight();
            found.push(change);
        }
    }
    Ok(found)
}

/// The statement that reads the changes in order. Numbers are given out inside the write
/// transaction and SQLite has one writer at a time, so the changes that a reader sees are all
/// those up to a number: none of a lower number is added later.
fn select_changes(tenant: i64, grant: &Grant, wanted: &Changes) -> Conditions {
    let mut where_ = Conditions {
        sql: "(expires IS NULL OR expires >= ?)".to_owned(),
        values: vec![grant.now().millis().into()],
    };
    match wanted.after {
        Some(after) => where_.and("key > ?", key(tenant, after)),
        None => where_.and("key >= ?", key(tenant, wanted.commit.unwrap_or(0))),
    }
    if let Some(commit) = wanted.commit {
        // Changes of others may stand between those of one commit.
        where_.and("commit_seq = ?", commit.cast_signed());
    }
    let mut upper = key(tenant + 1, 0);
    if let Some(before) = wanted.before {
        upper = upper.min(key(tenant, before));
    }
    where_.and("key < ?", upper);
    if let Some(id) = &wanted.id {
        where_.and("tenant = ?", tenant);
        where_.and("id = ?", id.as_str().to_owned());
    }
    let order = match wanted.after {
        Some(_) => "ASC",
        None => "DESC",
    };
    Conditions {
        sql: format!(
            "SELECT {COLUMNS} FROM records WHERE {0}
             UNION ALL SELECT {COLUMNS} FROM history WHERE {0} ORDER BY 1 {order}",
            where_.sql
        ),
        values: [where_.values.clone(), where_.values].concat(),
    }
}

pub(super) fn newest_change(reader: &Reader<'_>, grant: &Grant) -> Result<u64, StoreError> {
    grant.require(Right::Read)?;
    let sql = "SELECT last_seq FROM tenants WHERE name = ?1";
    let newest = reader
        .connection
        .first(sql, [grant.tenant().as_str()], |row| row.get::<_, i64>(0));
    Ok(newest.at(reader.place)?.unwrap_or(0).cast_unsigned())
}

/// The change with the version before it, if that is known.
fn with_before(
    reader: &Reader<'_>,
    tenant: i64,
    grant: &Grant,
    mut change: Change,
) -> Result<Change, StoreError> {
    let sql = "SELECT doc, sum FROM (SELECT doc, sum, version, expires FROM history
            WHERE tenant = ?1 AND id = ?2 AND key < ?3 ORDER BY key DESC LIMIT 1)
         WHERE version = ?4 AND (expires IS NULL OR expires >= ?5)";
    let values = params![
        tenant,
        change.id.as_str(),
        key(tenant, change.seq),
        change.version.cast_signed() - 1,
        grant.now().millis(),
    ];
    let columns = |row: &Row<'_>| Ok((row.get::<_, Option<String>>(0)?, row.get(1)?));
    if let Some((doc, sum)) = reader
        .connection
        .first(sql, values, columns)
        .at(reader.place)?
    {
        change.before_known = true;
        let before = doc.map(|doc| sums::record(reader.place, &doc, sum));
        change.before = before.transpose()?;
    }
    Ok(change)
}

pub(super) fn tally(reader: &Reader<'_>, grant: &Grant) -> Result<Tally, StoreError> {
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(Tally::default());
    };
    let _moment = reader.connection.unchecked_transaction().at(reader.place)?;
    let sql = "SELECT scope, kind, namespace, count FROM tally WHERE tenant = ?1 AND count > 0";
    let groups = reader.connection.all(sql, [tenant], |row| {
        Ok(Group {
            scope: word(row, 0)?,
            kind: word(row, 1)?,
            namespace: word(row, 2)?,
            count: row.get::<_, i64>(3)?.cast_unsigned(),
        })
    });
    let mut groups = groups.at(reader.place)?;
    groups.sort();
    let sql = "SELECT history, last_seq,
            (SELECT count(*) FROM records WHERE tenant = ?1 AND expires < ?2)
         FROM tenants WHERE num = ?1";
    let tally = reader
        .connection
        .first(sql, [tenant, grant.now().millis()], |row| {
            Ok(Tally {
                groups,
                history: row.get::<_, i64>(0)?.cast_unsigned(),
                seq: row.get::<_, i64>(1)?.cast_unsigned(),
                expired: row.get::<_, i64>(2)?.cast_unsigned(),
            })
        });
    Ok(tally.at(reader.place)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::scans::tests::explain;

    /// A listener of the change feed reads what is new, however much there is before it; nothing
    /// is sorted.
    #[test]
    fn a_feed_enters_both_tables_at_its_number() {
        for after in [Some(7), None] {
            let wanted = Changes {
                after,
                ..Changes::all_of_tenant(10)
            };
            let plan = explain(|grant| vec![select_changes(1, grant, &wanted)]);
            let seek = "INTEGER PRIMARY KEY (rowid>? AND rowid<?)";
            let seeks = plan.iter().filter(|step| step.contains(seek));
            assert_eq!(seeks.count(), 2, "{plan:?}");
            assert!(!plan.concat().contains("TEMP B-TREE"), "{plan:?}");
        }
    }
}
