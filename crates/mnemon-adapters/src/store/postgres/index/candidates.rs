//! The statements that choose candidates. Filters come first: each statement applies the whole
//! filter as far as columns decide it.

use mnemon_core::index::wrong_vector;
use mnemon_core::vector::quantise;
use mnemon_core::{Embedding, Filter, Grant};

use super::audience_name;
use super::keys::{self, Item, Space};
use super::near::HalfVector;
use crate::store::postgres::errors::Failure;
use crate::store::postgres::pool::Call;
use crate::store::postgres::reads::{OWN, add_conditions, call};
use crate::store::postgres::view::count;

/// Of a conversation, so many records before and after a candidate are loaded: its neighbours may
/// match, too, and need their own neighbours.
const REACH: usize = 4;
/// Of these, the nearest may match.
const NEIGHBOURS: usize = 2;
const DAY_MILLIS: i64 = 86_400_000;

/// Which records a statement may choose.
pub(super) struct Scope<'a> {
    pub(super) grant: &'a Grant,
    pub(super) filter: &'a Filter,
    pub(super) spaces: Vec<Space>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(grant: &'a Grant, filter: &'a Filter, tenant: i64) -> Self {
        Self {
            grant,
            filter,
            spaces: Space::of_viewer(tenant, filter),
        }
    }

    /// The conditions of the filter on a row `s` of the table `search` and its record `r`, after
    /// some values; and the join with the record, which is spared where the filter says nothing
    /// but who looks.
    fn conditions(&self, start: Call) -> (Call, String) {
        let mut inner = start;
        if *self.filter == Filter::seen_by(self.filter.viewer.clone()) {
            inner.push("true");
            inner.and(
                "(s.expires IS NULL OR s.expires >= ?)",
                self.grant.now().millis(),
            );
            if let Some(names) = self.audiences() {
                inner.and("s.audience = ANY(?)", names);
            }
            return (inner, String::new());
        }
        add_conditions(&mut inner, self.grant, self.filter);
        if let Some(keys) = keys::tags(&self.spaces, self.filter) {
            inner.and("s.words && ?::integer[]", keys);
        }
        let join = format!("JOIN mnemon.records r ON r.tenant = {OWN} AND r.seq = s.seq");
        (inner, join)
    }

    /// The audiences of a viewer who is not the tenant.
    fn audiences(&self) -> Option<Vec<String>> {
        let audiences = self.filter.viewer.audiences()?;
        let names = audiences.iter().map(audience_name);
        Some(names.chain([String::new()]).collect())
    }

    /// Records that the filter may mean, at most so many: by the part of it that has an index. All
    /// that it means are among them if they are fewer.
    pub(super) fn few(&self, most: usize) -> Result<Call, Failure> {
        let mut select = call(self.grant, "")?.with(count(most));
        let owner = &self.filter.owner;
        if let Some(keys) = keys::tags(&self.spaces, self.filter) {
            select.push(&format!(
                "SELECT s.seq FROM mnemon.search s WHERE s.tenant + 0 = {OWN}"
            ));
            select.and("s.words && ?::integer[]", keys);
        } else if let Some((column, name)) =
            [("session_id", &owner.session), ("user_id", &owner.user)]
                .into_iter()
                .find_map(|(column, name)| Some((column, name.clone()?)))
        {
            select.push(&format!(
                "SELECT r.seq FROM mnemon.records r WHERE r.tenant = {OWN}"
            ));
            select.and(&format!("r.{column} = ?"), name);
        } else if let Some(names) = self.audiences() {
            select.push(&format!(
                "SELECT x.seq FROM unnest($3::text[]) AS a(name), LATERAL (
                    SELECT s.seq FROM mnemon.search s
                    WHERE s.tenant = {OWN} AND s.audience = a.name LIMIT $2) x"
            ));
            select.add(names);
        } else {
            select.push(&format!(
                "SELECT r.seq FROM mnemon.records r WHERE r.tenant = {OWN}"
            ));
            if let Some(since) = self.filter.since {
                select.and("r.created >= ?", since.millis());
            }
            if let Some(until) = self.filter.until {
                select.and("r.created < ?", until.millis());
            }
        }
        select.push(" LIMIT $2");
        Ok(select)
    }

    /// Records with any of these items, and their terms.
    pub(super) fn with_any(&self, items: &[Item], most: usize) -> Result<Call, Failure> {
        let keys = keys::keys(&self.spaces, items);
        let start = call(self.grant, "")?.with(keys);
        Ok(self.by_words(start, "x.words && $2::integer[]", most))
    }

    /// Records with all of these items.
    pub(super) fn with_all(&self, items: &[Item], most: usize) -> Result<Call, Failure> {
        let mut start = call(self.grant, "")?;
        let mut parts = Vec::new();
        for space in &self.spaces {
            parts.push(format!("x.words @> ${}::integer[]", start.next()));
            start.add(keys::keys(&[*space], items));
        }
        Ok(self.by_words(start, &parts.join(" OR "), most))
    }

    /// The inverted index is the only one that may be used: an addition to the tenant's number
    /// keeps the planner from reading the whole tenant.
    fn by_words(&self, start: Call, words: &str, most: usize) -> Call {
        let (inner, join) = self.conditions(start);
        let limit = inner.next();
        inner.with(count(most)).wrap(|conditions| {
            format!(
                "SELECT s.seq, s.terms FROM (
                    SELECT x.seq, x.terms, x.words, x.expires, x.audience FROM mnemon.search x
                    WHERE ({words}) AND x.tenant + 0 = {OWN} OFFSET 0) s {join}
                 WHERE {conditions} LIMIT ${limit}"
            )
        })
    }

    /// Records by their drawn numbers, and their terms: those that the filter means of the first so
    /// many of the tenant.
    pub(super) fn drawn(&self, most: usize) -> Result<Call, Failure> {
        let (inner, join) = self.conditions(call(self.grant, "")?.with(count(most)));
        Ok(inner.wrap(|conditions| {
            format!(
                "SELECT s.seq, s.terms FROM (
                    SELECT x.seq, x.terms, x.words, x.expires, x.audience FROM mnemon.search x
                    WHERE x.tenant = {OWN} AND x.draw < 536870912
                    ORDER BY x.draw LIMIT $2) s {join}
                 WHERE {conditions}"
            )
        }))
    }

    /// The vectors of one model, those of the newest records first.
    pub(super) fn vectors(&self, model: i64, most: usize) -> Result<Call, Failure> {
        let (inner, join) = self.conditions(call(self.grant, "")?.with(count(most)));
        Ok(inner.wrap(|conditions| {
            format!(
                "SELECT s.seq, s.model, s.scale, s.codes FROM mnemon.search s {join}
                 WHERE s.tenant = {OWN} AND s.model = {model} AND {conditions}
                 ORDER BY s.seq DESC LIMIT $2"
            )
        }))
    }

    /// The vectors of one model that these records have.
    pub(super) fn vectors_of(&self, model: i64, seqs: Vec<i64>) -> Result<Call, Failure> {
        let sql = format!(
            "SELECT s.seq, s.model, s.scale, s.codes FROM mnemon.search s
             WHERE s.tenant = {OWN} AND s.seq = ANY($2) AND s.model = {model}"
        );
        Ok(call(self.grant, sql)?.with(seqs))
    }

    /// Records that were created from one day to another, the newest first.
    pub(super) fn of_days(&self, from: i32, to: i32, most: usize) -> Result<Call, Failure> {
        let start = call(self.grant, "")?
            .with(i64::from(from) * DAY_MILLIS)
            .with((i64::from(to) + 1) * DAY_MILLIS);
        let (inner, _) = self.conditions(start);
        let limit = inner.next();
        Ok(inner.with(count(most)).wrap(|conditions| {
            format!(
                "SELECT r.seq, s.terms FROM mnemon.records r
                 JOIN mnemon.search s ON s.tenant = r.tenant AND s.seq = r.seq
                 WHERE r.tenant = {OWN} AND r.created >= $2 AND r.created < $3 AND {conditions}
                 ORDER BY r.created DESC, r.seq DESC LIMIT ${limit}"
            )
        }))
    }

    /// The nearest records by the vectors of one model: by its index, or by comparing all of the
    /// tenant.
    pub(super) fn nearest(
        &self,
        query: &Embedding,
        model: i64,
        by_index: bool,
        most: usize,
    ) -> Result<Call, Failure> {
        let quantised = quantise(&query.vector);
        let quantised = quantised.map_err(|error| wrong_vector(&error))?;
        let start = call(self.grant, "")?.with(HalfVector::from(&quantised));
        let (inner, join) = self.conditions(start);
        let limit = inner.next();
        let dimension = query.model.dimension;
        // In a sub-select it is cast once, not for every row.
        let query = format!("(SELECT $2::halfvec::halfvec({dimension}))");
        let distance = format!("s.near::halfvec({dimension}) <=> {query}");
        // An addition keeps the planner from the other way.
        let (tenant, order) = match by_index {
            true => (format!("s.tenant + 0 = {OWN}"), distance),
            false => (format!("s.tenant = {OWN}"), format!("({distance}) + 0")),
        };
        Ok(inner.with(count(most)).wrap(|conditions| {
            format!(
                "SELECT s.seq FROM mnemon.search s {join}
                 WHERE {tenant} AND s.model = {model} AND {conditions}
                 ORDER BY {order} LIMIT ${limit}"
            )
        }))
    }
}

/// These records with their neighbours in their conversations, by `seq`; the last column is whether
/// the record may match.
pub(super) fn load(grant: &Grant, columns: &str, seqs: Vec<i64>) -> Result<Call, Failure> {
    let beside = |beyond: &str, order: &str| {
        format!(
            "(SELECT n.seq, row_number() OVER (ORDER BY n.created {order}, n.seq {order}) AS place
                FROM mnemon.search n WHERE n.tenant = {OWN} AND n.conversation = c.conversation
                    AND (n.created, n.seq) {beyond} (c.created, c.seq)
                ORDER BY n.created {order}, n.seq {order} LIMIT {REACH})"
        )
    };
    let (before, after) = (beside("<", "DESC"), beside(">", "ASC"));
    let sql = format!(
        "WITH c AS MATERIALIZED (
            SELECT s.seq, s.conversation, s.created FROM mnemon.search s
            WHERE s.tenant = {OWN} AND s.seq = ANY($2)),
         w AS MATERIALIZED (
            SELECT a.seq, bool_or(a.place <= {NEIGHBOURS}) AS may_match FROM (
                SELECT c.seq, 0 AS place FROM c
                UNION ALL
                SELECT n.seq, n.place FROM c, LATERAL ({before} UNION ALL {after}) n
                WHERE c.conversation IS NOT NULL) a
            GROUP BY a.seq)
         SELECT {columns}, w.may_match FROM w
            JOIN mnemon.records r ON r.tenant = {OWN} AND r.seq = w.seq
            JOIN mnemon.search s ON s.tenant = {OWN} AND s.seq = w.seq
         ORDER BY w.seq"
    );
    Ok(call(grant, sql)?.with(seqs))
}
