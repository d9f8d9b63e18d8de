//! Reading: a pooled connection, one short read transaction each.

use mnemon_core::{
    Audience, Cause, Change, Changes, Filter, Grant, Group, Id, Order, Page, Record, Right, Scan,
    SessionCount, StoreError, Tally, Viewer,
};
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};

use super::errors::{At, Query};
use super::pool::Reader;
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

/// A WHERE clause under construction.
struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    fn and(&mut self, sql: &str, value: impl Into<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.push(value.into());
    }

    fn derived(&mut self, tenant: i64, sources: &[Id]) {
        let sql = "key IN (SELECT r.key FROM links l
                JOIN records r ON r.tenant = l.tenant AND r.id = l.derived
                WHERE l.source IN (SELECT value FROM json_each(?)) AND l.tenant = ?)";
        // A list of plain texts always has a JSON form.
        self.and(sql, serde_json::to_string(sources).unwrap_or_default());
        self.values.push(tenant.into());
    }

    /// Records that the viewer may see: by their owner, or by an audience of their own.
    fn seen_by(&mut self, viewer: &Viewer) {
        let Some(mut audiences) = viewer.audiences() else {
            return;
        };
        let user = audiences.iter().find_map(Audience::user).map(str::to_owned);
        self.and(
            "(audience IS NULL AND (user IS NULL OR user = ?)
                OR audience IN (SELECT value FROM json_each(?)))",
            user,
        );
        audiences.push(Audience::Everyone);
        // A list of plain texts always has a JSON form.
        let audiences = serde_json::to_string(&audiences).unwrap_or_default();
        self.values.push(audiences.into());
    }

    fn among(&mut self, column: &str, words: impl ExactSizeIterator<Item = &'static str>) {
        if words.len() == 0 {
            return;
        }
        let marks = vec!["?"; words.len()].join(", ");
        self.sql.push_str(&format!(" AND {column} IN ({marks})"));
        let words = words.map(|word| Value::from(word.to_owned()));
        self.values.extend(words);
    }
}

/// The part of a scan that indexes and columns can decide.
fn conditions(tenant: i64, grant: &Grant, scan: &Scan) -> Conditions {
    let filter = &scan.filter;
    // With `+` no index on the tenant is used: the few derived records are looked up by their keys,
    // and what is read in the order of writing is read from the table itself, which has this order.
    // An index would have to be read whole, and sorted, for every page.
    let narrow = filter.owner.user.is_some()
        || filter.owner.session.is_some()
        || filter.since.is_some()
        || filter.until.is_some();
    let by_key = scan.order == Order::Written && !narrow;
    let own = match by_key || !filter.derived_from.is_empty() {
        true => "+tenant",
        false => "tenant",
    };
    let mut where_ = Conditions {
        sql: format!("{own} = ? AND (expires IS NULL OR expires >= ?)"),
        values: vec![tenant.into(), grant.now().millis().into()],
    };
    if !filter.derived_from.is_empty() {
        where_.derived(tenant, &filter.derived_from);
    }
    for (column, name) in filter.owner.parts() {
        // Flow and node have no column; the filter itself looks at them.
        if let (Some(name), "user" | "agent" | "session") = (name, column) {
            where_.and(&format!("{column} = ?"), name.to_owned());
        }
    }
    where_.seen_by(&filter.viewer);
    where_.among("scope", filter.scopes.iter().map(|word| word.as_str()));
    where_.among("kind", filter.kinds.iter().map(|word| word.as_str()));
    where_.among(
        "namespace",
        filter.namespaces.iter().map(|word| word.as_str()),
    );
    if let Some(since) = filter.since {
        where_.and("created >= ?", since.millis());
    }
    if let Some(until) = filter.until {
        where_.and("created < ?", until.millis());
    }
    where_
}

/// The statements of a scan, to be run one after the other.
///
/// A page that goes on after a record has two: what was made in the same millisecond, and the rest.
/// Each enters the index where it begins, however many records share that millisecond; as one
/// condition with an OR it would walk over all of them for every page.
fn statements(tenant: i64, grant: &Grant, scan: &Scan) -> Vec<Conditions> {
    let order = match scan.order {
        Order::Newest => "created DESC, key DESC",
        Order::Oldest => "created, key",
        Order::Written => "key",
    };
    let whole = |parts: &[(&str, i64)]| {
        let mut where_ = conditions(tenant, grant, scan);
        for (sql, value) in parts {
            where_.and(sql, *value);
        }
        let sql = &where_.sql;
        where_.sql = format!("SELECT doc, sum FROM records WHERE {sql} ORDER BY {order}");
        where_
    };
    let after = scan.after.map(|after| (after.key, key(tenant, after.seq)));
    match (scan.order, after) {
        // The tenant's own range of keys, so that the table itself is the order.
        (Order::Written, after) => {
            let first = after.map_or(key(tenant, 0), |(_, last)| last.saturating_add(1));
            let end = key(tenant + 1, 0);
            vec![whole(&[("key >= ?", first), ("key < ?", end)])]
        }
        (_, None) => vec![whole(&[])],
        (Order::Newest, Some((created, last))) => vec![
            whole(&[("created = ?", created), ("key < ?", last)]),
            whole(&[("created < ?", created)]),
        ],
        (Order::Oldest, Some((created, last))) => vec![
            whole(&[("created = ?", created), ("key > ?", last)]),
            whole(&[("created > ?", created)]),
        ],
    }
}

/// Whether the tenant has records of these scopes and kinds at all. The counts tell at once what a
/// walk through a long session would find in the end.
fn has_any(reader: &Reader<'_>, tenant: i64, scan: &Scan) -> Result<bool, StoreError> {
    let mut where_ = Conditions {
        sql: "tenant = ? AND count > 0".to_owned(),
        values: vec![tenant.into()],
    };
    let filter = &scan.filter;
    where_.among("scope", filter.scopes.iter().map(|word| word.as_str()));
    where_.among("kind", filter.kinds.iter().map(|word| word.as_str()));
    let sql = format!("SELECT EXISTS (SELECT 1 FROM tally WHERE {})", where_.sql);
    let found = reader
        .connection
        .first(&sql, params_from_iter(where_.values), |row| row.get(0));
    Ok(found.at(reader.place)?.unwrap_or(false))
}

/// Whether the counts tell that there is nothing to be found.
pub(super) fn is_surely_empty(
    reader: &Reader<'_>,
    grant: &Grant,
    scan: &Scan,
) -> Result<bool, StoreError> {
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(true);
    };
    Ok(!scan.filter.kinds.is_empty() && !has_any(reader, tenant, scan)?)
}

pub(super) fn scan(reader: &Reader<'_>, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
    if is_surely_empty(reader, grant, scan)? {
        return Ok(Page::default());
    }
    walk(reader, grant, scan)
}

/// A scan of which the counts do not tell that it finds nothing.
pub(super) fn walk(reader: &Reader<'_>, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(Page::default());
    };
    let limit = scan.limit.min(grant.limits().page);
    let mut found = Vec::new();
    // One transaction, so that both statements see the same moment.
    let _moment = reader.connection.unchecked_transaction().at(reader.place)?;
    for Conditions { sql, values } in statements(tenant, grant, scan) {
        let mut select = reader.connection.prepare_cached(&sql).at(reader.place)?;
        let mut rows = select.query(params_from_iter(values)).at(reader.place)?;
        while found.len() <= limit
            && let Some(row) = rows.next().at(reader.place)?
        {
            let record = record(reader.place, row)?;
            if scan.filter.matches(&record) {
                found.push(record);
            }
        }
    }
    Ok(Page::cut(found, limit, scan.order))
}

/// Counts the records of each session by columns and indexes alone, without reading any of them.
/// `None` if the filter asks for something that only whole records tell.
pub(super) fn sessions(
    reader: &Reader<'_>,
    grant: &Grant,
    filter: &Filter,
) -> Result<Option<Vec<SessionCount>>, StoreError> {
    if filter.needs_records() || !filter.tags.is_empty() {
        return Ok(None);
    }
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(Some(Vec::new()));
    };
    let where_ = conditions(tenant, grant, &Scan::new(filter.clone(), 1));
    let sql = format!(
        "SELECT user, session, count(*), max(created) FROM records
         WHERE {} AND session IS NOT NULL GROUP BY user, session
         ORDER BY 4 DESC, user, session LIMIT {}",
        where_.sql,
        grant.limits().sessions
    );
    let values = params_from_iter(where_.values);
    let sessions = reader.connection.all(&sql, values, |row| {
        Ok(SessionCount {
            user: row.get(0)?,
            session: row.get(1)?,
            records: row.get::<_, i64>(2)?.cast_unsigned(),
            last: time(row, 3)?,
        })
    });
    sessions.at(reader.place).map(Some)
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
    use mnemon_core::{Ctx, Cursor, Filter, Owner, Policy, Tenant, Time};

    use super::*;
    use crate::store::sqlite::schema;

    /// The steps of SQLite's plan for a scan.
    fn plans(scan: &Scan) -> Vec<String> {
        explain(|grant| statements(1, grant, scan))
    }

    fn explain(statements: impl FnOnce(&Grant) -> Vec<Conditions>) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let connection = schema::open(&folder.path().join("m.db")).unwrap();
        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
        let grant = Policy::default().check(&ctx, Right::Read).unwrap();
        let mut steps = Vec::new();
        for Conditions { sql, values } in statements(&grant) {
            let mut plan = connection
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
                .unwrap();
            let rows = plan.query_map(params_from_iter(values), |row| row.get(3));
            steps.extend(rows.unwrap().map(Result::unwrap));
        }
        steps
    }

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

    /// Whoever follows the log reads what is new, however much there is before it.
    #[test]
    fn what_was_written_since_is_read_from_the_table_itself() {
        let steps = Filter {
            scopes: vec![mnemon_core::Scope::Experience],
            kinds: vec![mnemon_core::Kind::Step],
            ..Filter::all_of_tenant()
        };
        for filter in [steps, Filter::all_of_tenant()] {
            for after in [None, Some(Cursor { key: 7, seq: 7 })] {
                let scan = Scan {
                    order: Order::Written,
                    after,
                    ..Scan::new(filter.clone(), 10)
                };
                let plan = plans(&scan);
                assert_eq!(plan.len(), 1, "{plan:?}");
                assert!(
                    plan[0].contains("INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
                    "{plan:?}"
                );
            }
        }
        let mut session = Filter::all_of_tenant();
        session.owner.session = Some("s1".to_owned());
        let scan = Scan {
            order: Order::Written,
            ..Scan::new(session, 10)
        };
        assert!(plans(&scan)[0].contains("records_session"));
    }

    /// A page goes on at the very record, also when thousands were made in one millisecond.
    #[test]
    fn a_cursor_enters_the_index_at_its_record() {
        let session = Filter {
            owner: Owner {
                session: Some("s1".to_owned()),
                ..Owner::default()
            },
            ..Filter::all_of_tenant()
        };
        for filter in [session, Filter::all_of_tenant()] {
            for order in [Order::Newest, Order::Oldest] {
                let scan = Scan {
                    order,
                    after: Some(Cursor { key: 5, seq: 7 }),
                    ..Scan::new(filter.clone(), 10)
                };
                let steps = plans(&scan);
                assert!(steps[0].contains("created=? AND rowid"), "{steps:?}");
                assert!(steps[1].contains("AND created"), "{steps:?}");
                assert!(!steps.concat().contains("TEMP B-TREE"), "{steps:?}");
            }
        }
    }
}
