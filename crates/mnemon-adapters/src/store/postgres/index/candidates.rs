//! The statements that choose candidates. Filters come first: each statement applies the whole
//! filter as far as columns decide it.

use mnemon_core::index::wrong_vector;
use mnemon_core::vector::quantise;
use mnemon_core::{Embedding, Filter, Grant};

use super::audience_name;
use super::keys::{self, Item, Space};
use super::near::HalfVector;
use crate::store::postgres::errors::Failure;
use crate::store::postgres::feed::{CREATED, DOC, TERMS};
use crate::store::postgres::pool::Call;
use crate::store::postgres::reads::{OWN, add_conditions, call};
use crate::store::postgres::view::count;

/// Of a conversation, so many records before and after a candidate lend to it and are loaded.
pub(super) const NEIGHBOURS: usize = 2;
/// So many are loaded if these neighbours may match, too, and need their own neighbours.
pub(super) const REACH: usize = 2 * NEIGHBOURS;
/// Vectors that are compared one by one at the most.
pub(super) const COMPARED: usize = 20_000;
const DAY_MILLIS: i64 = 86_400_000;

/// Whether the filter says nothing but who looks.
fn is_viewer_only(filter: &Filter) -> bool {
    *filter == Filter::seen_by(filter.viewer.clone())
}

/// Which records a statement may choose.
pub(super) struct Scope<'a> {
    pub(super) grant: &'a Grant,
    pub(super) filter: &'a Filter,
    pub(super) spaces: Vec<Space>,
    /// The tenant's number.
    tenant: i64,
}

impl<'a> Scope<'a> {
    pub(super) fn new(grant: &'a Grant, filter: &'a Filter, tenant: i64) -> Self {
        Self {
            grant,
            filter,
            spaces: Space::of_viewer(tenant, filter),
            tenant,
        }
    }

    /// The conditions of the filter on a row `s` of the table `search` and its record `r`, after
    /// some values; and the join with the record, which is spared where the filter says nothing
    /// but who looks.
    fn conditions(&self, start: Call) -> (Call, String) {
        let mut inner = start;
        if is_viewer_only(self.filter) {
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

    /// The nearest records by the vectors of one model: by the tenant's index and by comparing the newest of
    /// those that are not in it, or by comparing all of the tenant.
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
        let (dimension, number) = (query.model.dimension, self.tenant);
        // In a sub-select it is cast once, not for every row.
        let query = format!("(SELECT $2::halfvec::halfvec({dimension}))");
        let distance = format!("s.near::halfvec({dimension}) <=> {query}");
        // Additions keep the planner from other indexes.
        Ok(inner.with(count(most)).wrap(|conditions| match by_index {
            true => format!(
                "SELECT n.seq FROM (
                    (SELECT s.seq, {distance} AS distance FROM mnemon.search s {join}
                     WHERE s.tenant + 0 = {number} AND s.tenant + 0 = {OWN}
                        AND s.model + 0 = {model} AND s.indexed AND {conditions}
                     ORDER BY {distance} LIMIT ${limit})
                    UNION ALL
                    SELECT s.seq, {distance} FROM (
                        SELECT s.seq, s.near FROM mnemon.search s {join}
                        WHERE s.tenant = {OWN} AND s.model = {model} AND NOT s.indexed
                            AND {conditions}
                        ORDER BY s.seq DESC LIMIT {COMPARED}) s) n
                 ORDER BY n.distance LIMIT ${limit}"
            ),
            false => format!(
                "SELECT s.seq FROM mnemon.search s {join}
                 WHERE s.tenant = {OWN} AND s.model = {model} AND {conditions}
                 ORDER BY ({distance}) + 0 LIMIT ${limit}"
            ),
        }))
    }
}

/// The columns of a loaded record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Only those that ranking needs, all from one table: where the filter says nothing but who
    /// looks. Only neighbours of the same audience are loaded: the number of a conversation is a
    /// hash, and a session could be named so that it has that of another audience.
    Lean,
    /// Those of a document of an index, by which it decides the filter.
    Whole,
}

/// The columns of [`Layout::Lean`]: the number, the times and the speaker, then the terms, then the
/// vector.
const LEAN: &str = "s.seq, s.created, s.expires, s.speaker, s.terms, s.model, s.scale, s.codes";

impl Layout {
    pub(super) fn of(filter: &Filter) -> Self {
        match is_viewer_only(filter) {
            true => Self::Lean,
            false => Self::Whole,
        }
    }

    fn columns(self) -> String {
        let columns = match self {
            Self::Lean => LEAN,
            Self::Whole => DOC,
        };
        format!("{columns}, s.conversation")
    }

    /// The place of the terms among the columns, of which the number is the first.
    pub(super) fn terms(self) -> usize {
        match self {
            Self::Lean => 4,
            Self::Whole => TERMS,
        }
    }

    /// The place of the vector's first column.
    pub(super) fn vector(self) -> usize {
        self.terms() + 1
    }

    /// The place of the conversation.
    pub(super) fn conversation(self) -> usize {
        self.vector() + 3
    }

    /// The place of the time of creation.
    pub(super) fn created(self) -> usize {
        match self {
            Self::Lean => 1,
            Self::Whole => CREATED,
        }
    }

    fn join(self) -> String {
        match self {
            Self::Lean => String::new(),
            Self::Whole => {
                format!("JOIN mnemon.records r ON r.tenant = {OWN} AND r.seq = s.seq")
            }
        }
    }

    /// These records.
    pub(super) fn rows(self, grant: &Grant, seqs: Vec<i64>) -> Result<Call, Failure> {
        let (columns, join) = (self.columns(), self.join());
        let sql = format!(
            "SELECT {columns} FROM mnemon.search s {join}
             WHERE s.tenant = {OWN} AND s.seq = ANY($2)"
        );
        Ok(call(grant, sql)?.with(seqs))
    }

    /// These records, each with so many records before and after it in its conversation. A record
    /// that is a neighbour of several comes several times: to read it again costs less than to
    /// look it up by its number.
    pub(super) fn windows(
        self,
        grant: &Grant,
        seqs: Vec<i64>,
        reaches: Vec<i32>,
    ) -> Result<Call, Failure> {
        let (columns, join) = (self.columns(), self.join());
        let read = |table: &str| {
            let columns = [
                "seq",
                "conversation",
                "audience",
                "created",
                "expires",
                "speaker",
                "tags",
                "terms",
                "model",
                "scale",
                "codes",
            ];
            columns.map(|column| format!("{table}.{column}")).join(", ")
        };
        let (own, near) = (read("c"), read("n"));
        let beside = |beyond: &str, order: &str| {
            format!(
                "(SELECT {near} FROM mnemon.search n
                    WHERE n.tenant = {OWN} AND n.conversation = c.conversation
                        AND n.audience = c.audience AND (n.created, n.seq) {beyond} (c.created, c.seq)
                    ORDER BY n.created {order}, n.seq {order} LIMIT c.reach)"
            )
        };
        let (before, after) = (beside("<", "DESC"), beside(">", "ASC"));
        let chosen = read("x");
        let sql = format!(
            "SELECT {columns} FROM (
                SELECT {chosen}, u.reach FROM unnest($2::bigint[], $3::integer[]) AS u(seq, reach)
                JOIN mnemon.search x ON x.tenant = {OWN} AND x.seq = u.seq OFFSET 0) c,
             LATERAL (SELECT {own} UNION ALL {before} UNION ALL {after}) s {join}"
        );
        Ok(call(grant, sql)?.with(seqs).with(reaches))
    }

    /// These records and their neighbours, each once.
    pub(super) fn surroundings(self, grant: &Grant, seqs: Vec<i64>) -> Result<Call, Failure> {
        let (columns, join) = (self.columns(), self.join());
        let beside = |beyond: &str, order: &str| {
            format!(
                "(SELECT n.seq FROM mnemon.search n
                    WHERE n.tenant = {OWN} AND n.conversation = c.conversation
                        AND n.audience = c.audience AND (n.created, n.seq) {beyond} (c.created, c.seq)
                    ORDER BY n.created {order}, n.seq {order} LIMIT {REACH})"
            )
        };
        let (before, after) = (beside("<", "DESC"), beside(">", "ASC"));
        let sql = format!(
            "WITH c AS MATERIALIZED (
                SELECT s.seq, s.conversation, s.audience, s.created FROM mnemon.search s
                WHERE s.tenant = {OWN} AND s.seq = ANY($2)),
             w AS MATERIALIZED (
                SELECT c.seq FROM c
                UNION
                SELECT n.seq FROM c, LATERAL ({before} UNION ALL {after}) n
                WHERE c.conversation IS NOT NULL)
             SELECT {columns} FROM w JOIN mnemon.search s ON s.tenant = {OWN} AND s.seq = w.seq
                {join}"
        );
        Ok(call(grant, sql)?.with(seqs))
    }
}

/// Columns of the matches that ranking inside the index does without.
pub(super) fn described(grant: &Grant, seqs: Vec<i64>) -> Result<Call, Failure> {
    let sql = format!(
        "SELECT r.seq, r.id, r.importance FROM mnemon.records r
         WHERE r.tenant = {OWN} AND r.seq = ANY($2)"
    );
    Ok(call(grant, sql)?.with(seqs))
}
