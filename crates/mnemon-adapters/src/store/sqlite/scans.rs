//! Lists of records: which index each one enters, and the statements that read it.

use mnemon_core::{
    Audience, Filter, Grant, Id, Kind, Order, Page, Scan, SessionCount, SessionCounts, StoreError,
    Time, Viewer,
};
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::errors::{At, Query};
use super::pool::Reader;
use super::reads::{record, tenant};
use super::tables::{key, time};

/// A WHERE clause under construction.
pub(super) struct Conditions {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    pub(super) fn and(&mut self, sql: &str, value: impl Into<Value>) {
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

/// Where a scan enters the table. SQLite has no statistics to choose an index by, so all columns but
/// those of the entry are kept from indexes with `+`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// The index on this part of the owner.
    Owner(&'static str),
    /// The keys: of a few derived records, or in the order of writing, which is that of the table. An
    /// index would have to be read whole, and sorted, for every page.
    Keys,
    /// The index on kinds, once for each kind; the parts are merged by creation.
    Kinds,
}

impl Entry {
    fn of(scan: &Scan) -> Self {
        let Filter { owner, .. } = &scan.filter;
        let is_written = scan.order == Order::Written;
        let has_range = scan.filter.since.is_some() || scan.filter.until.is_some();
        if !scan.filter.derived_from.is_empty() {
            Self::Keys
        } else if owner.session.is_some() {
            Self::Owner("session")
        } else if owner.user.is_some() {
            Self::Owner("user")
        } else if is_written && !has_range {
            Self::Keys
        } else if owner.agent.is_some() {
            Self::Owner("agent")
        } else {
            Self::Kinds
        }
    }

    /// The column of a condition; with `+` where its index is not the one to enter.
    fn column(self, column: &str) -> String {
        let is_entered = match self {
            Self::Owner(part) => column == part || column == "tenant",
            Self::Keys => false,
            Self::Kinds => column == "kind" || column == "tenant",
        };
        format!("{}{column}", if is_entered { "" } else { "+" })
    }
}

/// The part of a scan that indexes and columns can decide.
fn conditions(tenant: i64, grant: &Grant, filter: &Filter, entry: Entry) -> Conditions {
    let own = entry.column("tenant");
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
            where_.and(&format!("{} = ?", entry.column(column)), name.to_owned());
        }
    }
    where_.seen_by(&filter.viewer);
    where_.among("scope", filter.scopes.iter().map(|word| word.as_str()));
    if entry != Entry::Kinds {
        where_.among("+kind", filter.kinds.iter().map(|word| word.as_str()));
    }
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

/// The statements of a scan through these kinds, to be run one after the other.
///
/// A page that goes on after a record has two: what was made in the same millisecond, and the rest.
/// Each enters the index where it begins, however many records share that millisecond; as one
/// condition with an OR it would walk over all of them for every page.
fn statements(tenant: i64, grant: &Grant, scan: &Scan, kinds: &[Kind]) -> Vec<Conditions> {
    let after = scan.after.map(|after| (after.key, key(tenant, after.seq)));
    let whole = |parts: &[(&str, i64)]| statement(tenant, grant, scan, kinds, parts);
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

/// A statement of a scan, with more conditions. By kinds it has one part for each, and SQLite merges
/// them without sorting, as each part is read in order.
fn statement(
    tenant: i64,
    grant: &Grant,
    scan: &Scan,
    kinds: &[Kind],
    more: &[(&str, i64)],
) -> Conditions {
    let entry = Entry::of(scan);
    let mut where_ = conditions(tenant, grant, &scan.filter, entry);
    for (sql, value) in more {
        where_.and(sql, *value);
    }
    let select = "SELECT doc, sum, created, key FROM records WHERE";
    let (parts, values) = match entry {
        Entry::Kinds => {
            let part = format!("{select} {} AND kind = ?", where_.sql);
            let values = kinds.iter().flat_map(|kind| {
                let kind = Value::from(kind.as_str().to_owned());
                where_.values.iter().cloned().chain([kind])
            });
            (vec![part; kinds.len()], values.collect())
        }
        Entry::Owner(_) | Entry::Keys => (vec![format!("{select} {}", where_.sql)], where_.values),
    };
    let order = match scan.order {
        Order::Newest => "created DESC, key DESC",
        Order::Oldest => "created, key",
        Order::Written => "key",
    };
    Conditions {
        sql: format!("{} ORDER BY {order}", parts.join(" UNION ALL ")),
        values,
    }
}

/// The kinds that a scan has to look through. The counts tell at once what a walk through many
/// records would find in the end.
fn kinds(reader: &Reader<'_>, tenant: i64, filter: &Filter) -> Result<Vec<Kind>, StoreError> {
    let is_restricted =
        !(filter.scopes.is_empty() && filter.kinds.is_empty() && filter.namespaces.is_empty());
    if !is_restricted {
        return Ok(Kind::ALL.to_vec());
    }
    let mut where_ = Conditions {
        sql: "tenant = ? AND count > 0".to_owned(),
        values: vec![tenant.into()],
    };
    where_.among("scope", filter.scopes.iter().map(|word| word.as_str()));
    where_.among("kind", filter.kinds.iter().map(|word| word.as_str()));
    where_.among(
        "namespace",
        filter.namespaces.iter().map(|word| word.as_str()),
    );
    let sql = format!("SELECT DISTINCT kind FROM tally WHERE {}", where_.sql);
    let values = params_from_iter(where_.values);
    let found = reader.connection.all(&sql, values, |row| row.get(0));
    let found: Vec<String> = found.at(reader.place)?;
    let is_there = |kind: &&Kind| found.iter().any(|word| word == kind.as_str());
    Ok(Kind::ALL.iter().filter(is_there).copied().collect())
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
    Ok(kinds(reader, tenant, &scan.filter)?.is_empty())
}

pub(super) fn scan(reader: &Reader<'_>, grant: &Grant, scan: &Scan) -> Result<Page, StoreError> {
    let Some(tenant) = tenant(reader, grant)? else {
        return Ok(Page::default());
    };
    let limit = scan.limit.min(grant.limits().page);
    let mut found = Vec::new();
    // One transaction, so that counts and statements see the same moment.
    let _moment = reader.connection.unchecked_transaction().at(reader.place)?;
    let kinds = kinds(reader, tenant, &scan.filter)?;
    if kinds.is_empty() {
        return Ok(Page::default());
    }
    for Conditions { sql, values } in statements(tenant, grant, scan, &kinds) {
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

/// Counts the records of each session without reading any of them. `None` if the filter asks for
/// something that only whole records tell.
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
    let Conditions { sql, values } = select_sessions(tenant, grant, filter);
    let mut select = reader.connection.prepare_cached(&sql).at(reader.place)?;
    let mut rows = select.query(params_from_iter(values)).at(reader.place)?;
    let mut counts = SessionCounts::default();
    while let Some(row) = rows.next().at(reader.place)? {
        let (user, session, created) = session(row).at(reader.place)?;
        counts.add(user, session, created);
    }
    Ok(Some(counts.newest_first(grant.limits().sessions)))
}

fn session<'a>(row: &'a Row<'_>) -> rusqlite::Result<(Option<&'a str>, &'a str, Time)> {
    let (user, session) = (row.get_ref(0)?, row.get_ref(1)?);
    Ok((user.as_str_or_null()?, session.as_str()?, time(row, 2)?))
}

/// The statement that reads the sessions of records. The index on sessions has all columns that it
/// needs; grouped by SQLite, 15,000 messages would be sorted first, which took 15 ms instead of 6.
fn select_sessions(tenant: i64, grant: &Grant, filter: &Filter) -> Conditions {
    let entry = match Entry::of(&Scan::new(filter.clone(), 1)) {
        Entry::Kinds => Entry::Owner("session"),
        entry => entry,
    };
    let where_ = conditions(tenant, grant, filter, entry);
    let session = entry.column("session");
    let sql = where_.sql;
    Conditions {
        sql: format!(
            "SELECT user, session, created FROM records WHERE {sql} AND {session} IS NOT NULL"
        ),
        ..where_
    }
}

#[cfg(test)]
pub(super) mod tests {
    use mnemon_core::{Ctx, Cursor, Owner, Policy, Right, Scope, Tenant};

    use super::*;
    use crate::store::sqlite::schema;

    /// The steps of SQLite's plan for a scan.
    fn plans(scan: &Scan) -> Vec<String> {
        let kinds = match scan.filter.kinds.as_slice() {
            [] => Kind::ALL,
            kinds => kinds,
        };
        explain(|grant| statements(1, grant, scan, kinds))
    }

    /// The steps of SQLite's plan for statements.
    pub(in crate::store::sqlite) fn explain(
        statements: impl FnOnce(&Grant) -> Vec<Conditions>,
    ) -> Vec<String> {
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

    /// Whoever follows the log reads what is new, however much there is before it.
    #[test]
    fn what_was_written_since_is_read_from_the_table_itself() {
        let steps = Filter {
            scopes: vec![Scope::Experience],
            kinds: vec![Kind::Step],
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
                let reads = |part: &str| steps.iter().filter(|step| step.contains(part)).count();
                let at_the_record = reads("created=? AND rowid") + reads("created=? AND key");
                assert_eq!(at_the_record * 2, reads("SEARCH"), "{steps:?}");
                assert_eq!(reads("AND created"), reads("SEARCH"), "{steps:?}");
                assert_eq!(reads("TEMP B-TREE"), 0, "{steps:?}");
            }
        }
    }

    /// Lists by kind, agent or time read their own records alone, in order, from whichever place they
    /// go on.
    #[test]
    fn a_list_reads_only_the_records_of_its_kinds_or_its_agent() {
        let of_kinds = |kinds: &[Kind]| Filter {
            kinds: kinds.to_vec(),
            ..Filter::all_of_tenant()
        };
        let since = Filter {
            since: Some(Time::EPOCH),
            ..Filter::all_of_tenant()
        };
        let agent = Filter {
            owner: Owner {
                agent: Some("a1".to_owned()),
                ..Owner::default()
            },
            ..of_kinds(&[Kind::Decision])
        };
        let cases = [
            (
                of_kinds(&[Kind::Skill, Kind::Rule]),
                "records_kind (tenant=? AND kind=?",
            ),
            (
                of_kinds(&[Kind::Message]),
                "records_kind (tenant=? AND kind=?",
            ),
            (Filter::all_of_tenant(), "records_kind (tenant=? AND kind=?"),
            (since, "records_kind (tenant=? AND kind=? AND created"),
            (agent, "records_agent (tenant=? AND agent=?"),
        ];
        for (filter, expected) in cases {
            for order in [Order::Newest, Order::Oldest] {
                for after in [None, Some(Cursor { key: 5, seq: 7 })] {
                    let scan = Scan {
                        order,
                        after,
                        ..Scan::new(filter.clone(), 10)
                    };
                    let steps = plans(&scan);
                    let reads: Vec<_> = steps
                        .iter()
                        .filter(|step| step.contains("records"))
                        .collect();
                    assert!(!reads.is_empty());
                    assert!(
                        reads.iter().all(|step| step.contains(expected)),
                        "{steps:?}"
                    );
                    assert!(!steps.concat().contains("TEMP B-TREE"), "{steps:?}");
                }
            }
        }
    }

    /// A conversation of a user who has many records is entered by its session.
    #[test]
    fn a_list_of_a_session_enters_by_the_session() {
        let filter = Filter {
            owner: Owner::of(Some("u1"), Some("s1")),
            kinds: vec![Kind::Message],
            ..Filter::all_of_tenant()
        };
        let steps = plans(&Scan::new(filter, 10));
        let expected = "SEARCH records USING INDEX records_session (tenant=? AND session=?)";
        assert_eq!(steps, [expected]);
    }

    /// The list of conversations reads no record, and that of a user only the records of the user.
    #[test]
    fn sessions_are_counted_by_an_index() {
        let of_user = |user: Option<&str>| Filter {
            owner: Owner::of(user, None),
            scopes: vec![Scope::Dialog],
            kinds: vec![Kind::Message],
            ..Filter::all_of_tenant()
        };
        let plan = |filter: Filter| explain(|grant| vec![select_sessions(1, grant, &filter)]);
        assert_eq!(
            plan(of_user(None)),
            ["SEARCH records USING COVERING INDEX records_session (tenant=? AND session>?)"]
        );
        assert_eq!(
            plan(of_user(Some("u1"))),
            ["SEARCH records USING INDEX records_user (tenant=? AND user=?)"]
        );
    }
}
