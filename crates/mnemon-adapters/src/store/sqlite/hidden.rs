//! Records that a scan does not show: deleted, expired, or changed since.
//!
//! The history has no columns for owners. What the filter asks of them is read from the document of
//! each version with `json_extract`, in the order of the index on ids: one pass over the tenant's
//! history, however many pages it is read in.

use mnemon_core::{Grant, Hidden, HiddenScan, Id, Record, StoreError};
use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};

use super::errors::At;
use super::pool::Reader;
use super::reads::{record, tenant};

pub(super) fn hidden(
    reader: &Reader<'_>,
    grant: &Grant,
    scan: &HiddenScan,
) -> Result<Vec<Hidden>, StoreError> {
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(Vec::new());
    };
    // One transaction, so that candidates and their versions come from the same moment.
    let _moment = reader.connection.unchecked_transaction().at(reader.place)?;
    let (sql, values) = candidates(tenant, grant, scan);
    let mut select = reader.connection.prepare_cached(&sql).at(reader.place)?;
    let mut rows = select.query(params_from_iter(values)).at(reader.place)?;
    let limit = scan.limit.min(grant.limits().page);
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next().at(reader.place)?
    {
        let id: String = row.get(0).at(reader.place)?;
        let (versions, is_live) = versions(reader, grant, tenant, &id)?;
        found.extend(Hidden::of(&scan.filter, versions, is_live));
    }
    Ok(found)
}

/// The ids that may be meant, in order: more than the filter means, never fewer.
fn candidates(tenant: i64, grant: &Grant, scan: &HiddenScan) -> (String, Vec<Value>) {
    let filter = &scan.filter;
    let after = scan.after.as_ref().map_or("", Id::as_str).to_owned();
    if !filter.derived_from.is_empty() {
        let sql = "SELECT DISTINCT derived FROM links
            WHERE tenant = ? AND source IN (SELECT value FROM json_each(?)) AND derived > ?
            ORDER BY derived";
        // A list of plain texts always has a JSON form.
        let sources = serde_json::to_string(&filter.derived_from).unwrap_or_default();
        return (
            sql.to_owned(),
            vec![tenant.into(), sources.into(), after.into()],
        );
    }
    let mut past = String::from("tenant = ? AND id > ? AND doc IS NOT NULL");
    let mut values: Vec<Value> = vec![tenant.into(), after.clone().into()];
    for (column, name) in filter.owner.parts() {
        if let Some(name) = name {
            past.push_str(&format!(" AND json_extract(doc, '$.owner.{column}') = ?"));
            values.push(name.to_owned().into());
        }
    }
    let scopes = filter.scopes.iter().map(|word| word.as_str()).collect();
    let kinds = filter.kinds.iter().map(|word| word.as_str()).collect();
    for (column, words) in [("scope", scopes), ("kind", kinds)] {
        let words: Vec<&str> = words;
        if !words.is_empty() {
            let marks = vec!["?"; words.len()].join(", ");
            past.push_str(&format!(
                " AND json_extract(doc, '$.{column}') IN ({marks})"
            ));
            values.extend(words.into_iter().map(|word| Value::from(word.to_owned())));
        }
    }
    values.extend([tenant.into(), after.into(), grant.now().millis().into()]);
    let sql = format!(
        "SELECT id FROM history WHERE {past}
         UNION SELECT id FROM records WHERE tenant = ? AND id > ? AND expires < ?
         ORDER BY id"
    );
    (sql, values)
}

/// The versions of a record that have content, the newest first, and whether the first of them is
/// current and has not expired.
fn versions(
    reader: &Reader<'_>,
    grant: &Grant,
    tenant: i64,
    id: &str,
) -> Result<(Vec<Record>, bool), StoreError> {
    let mut select = reader
        .connection
        .prepare_cached(
            "SELECT doc, sum, key, 1 FROM records WHERE tenant = ?1 AND id = ?2
             UNION ALL
             SELECT doc, sum, key, 0 FROM history WHERE tenant = ?1 AND id = ?2 AND doc IS NOT NULL
             ORDER BY key DESC",
        )
        .at(reader.place)?;
    let mut rows = select.query(params![tenant, id]).at(reader.place)?;
    let (mut versions, mut is_live) = (Vec::new(), false);
    while let Some(row) = rows.next().at(reader.place)? {
        let version = record(reader.place, row)?;
        let is_current: bool = row.get(3).at(reader.place)?;
        is_live |= is_current && version.is_live(grant.now());
        versions.push(version);
    }
    Ok((versions, is_live))
}
