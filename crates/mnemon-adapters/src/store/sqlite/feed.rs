//! What changed in the file since an index followed it.

use std::collections::HashMap;

use mnemon_core::embed::ModelId;
use mnemon_core::index::{Cursor, Delta, Doc, Feed, StoredVector, Terms};
use mnemon_core::vector::Quantised;
use mnemon_core::{StoreError, Time};
use rusqlite::{Connection, Row, params};

use super::errors::{At, Query};
use super::tables::{key, seq, time, word};
use super::{removals, sums};

/// A tenant as the file knows it at one moment, which is that of the transaction around it.
pub(super) struct TenantSnapshot<'a> {
    pub(super) connection: &'a Connection,
    place: &'a str,
    pub(super) tenant: i64,
    newest: Cursor,
    /// The mark of the index that is saved beside the file.
    pub(super) mark: i64,
}

impl<'a> TenantSnapshot<'a> {
    pub(super) fn look(
        connection: &'a Connection,
        place: &'a str,
        tenant: i64,
    ) -> Result<Self, StoreError> {
        let (newest, mark) = connection
            .prepare_cached(
                "SELECT last_seq, embedded, saved,
                    (SELECT key FROM removals WHERE key > ?2 AND key < ?3
                        ORDER BY key DESC LIMIT 1),
                    (SELECT coalesce(sum(count), 0) FROM tally WHERE tenant = num)
                 FROM tenants WHERE num = ?1",
            )
            .and_then(|mut select| {
                select.query_row([tenant, key(tenant, 0), key(tenant + 1, 0)], |row| {
                    let newest = Cursor {
                        seq: row.get::<_, i64>(0)?.cast_unsigned(),
                        embedded: row.get::<_, i64>(1)?.cast_unsigned(),
                        removed: row.get::<_, Option<i64>>(3)?.map_or(0, seq),
                        records: usize::try_from(row.get::<_, i64>(4)?).unwrap_or(0),
                    };
                    Ok((newest, row.get(2)?))
                })
            })
            .at(place)?;
        Ok(Self {
            connection,
            place,
            tenant,
            newest,
            mark,
        })
    }

    fn add_written(
        &self,
        after: u64,
        models: &HashMap<i64, ModelId>,
        delta: &mut Delta<'_>,
    ) -> Result<(), StoreError> {
        let mut select = self
            .connection
            .prepare_cached(
                "SELECT r.key, r.id, r.user, r.agent, r.session, r.scope, r.kind, r.namespace,
                    r.created, r.expires, r.importance, s.speaker, s.tags, s.terms,
                    s.model, s.scale, s.codes, CASE WHEN s.key IS NULL THEN r.doc END, r.sum,
                    r.audience
                 FROM records r LEFT JOIN search s ON s.key = r.key
                 WHERE r.key > ?1 AND r.key < ?2 ORDER BY r.key",
            )
            .at(self.place)?;
        let range = params![key(self.tenant, after), key(self.tenant + 1, 0)];
        let mut rows = select.query(range).at(self.place)?;
        while let Some(row) = rows.next().at(self.place)? {
            self.add_row(row, models, delta)?;
        }
        Ok(())
    }

    fn add_row(
        &self,
        row: &Row<'_>,
        models: &HashMap<i64, ModelId>,
        delta: &mut Delta<'_>,
    ) -> Result<(), StoreError> {
        // A record whose row in `search` was lost: analyse it now.
        if let Some(doc) = row.get::<_, Option<String>>(17).at(self.place)? {
            let sum = row.get(18).at(self.place)?;
            let record = sums::record(self.place, &doc, sum)?;
            return delta.add(&Doc::of(&record), &Terms::of(&record), None);
        }
        let terms = row.get_ref(13).at(self.place)?;
        let terms = terms.as_blob().ok().and_then(Terms::from_bytes);
        let vector = vector(row, 14, models).at(self.place)?;
        let Some(terms) = terms else {
            // A process of an older version that is still running wrote its own form.
            let sql = "SELECT doc FROM records WHERE key = ?1";
            let key: i64 = row.get(0).at(self.place)?;
            let found = self.connection.query_row(sql, [key], |row| row.get(0));
            let json: String = found.at(self.place)?;
            let record = sums::record(self.place, &json, row.get(18).at(self.place)?)?;
            return delta.add(&Doc::of(&record), &Terms::of(&record), vector.as_ref());
        };
        let doc = doc(row).at(self.place)?;
        delta.add(&doc, &terms, vector.as_ref())
    }

    /// Vectors given to records up to `cursor.seq`; later records bring theirs along.
    fn embed_late(
        &self,
        cursor: Cursor,
        models: &HashMap<i64, ModelId>,
        delta: &mut Delta<'_>,
    ) -> Result<(), StoreError> {
        let mut select = self
            .connection
            .prepare_cached(
                "SELECT key, model, scale, codes FROM search INDEXED BY search_embedded
                 WHERE embedded > ?1 AND embedded < ?2 AND key <= ?3",
            )
            .at(self.place)?;
        let tenant = self.tenant;
        let range = params![
            key(tenant, cursor.embedded),
            key(tenant + 1, 0),
            key(tenant, cursor.seq)
        ];
        let mut rows = select.query(range).at(self.place)?;
        while let Some(row) = rows.next().at(self.place)? {
            let seq = row.get(0).map(seq).at(self.place)?;
            if let Some(vector) = vector(row, 1, models).at(self.place)? {
                delta.embed(seq, &vector)?;
            }
        }
        Ok(())
    }
}

impl Feed for TenantSnapshot<'_> {
    fn newest(&self) -> Cursor {
        self.newest
    }

    fn since(&self, cursor: Cursor, delta: &mut Delta<'_>) -> Result<(), StoreError> {
        let models = models(self.connection).at(self.place)?;
        self.add_written(cursor.seq, &models, delta)?;
        if cursor.seq == 0 {
            return Ok(());
        }
        if cursor.embedded < self.newest.embedded {
            self.embed_late(cursor, &models, delta)?;
        }
        if cursor.removed < self.newest.removed {
            let removed = removals::since(self.connection, self.tenant, cursor.removed);
            removed
                .at(self.place)?
                .into_iter()
                .for_each(|seq| delta.remove(seq));
        }
        Ok(())
    }

    fn present(&self) -> Result<Vec<u64>, StoreError> {
        // By an index that holds the keys: the records themselves would have to be walked past.
        let sql = "SELECT key FROM records INDEXED BY records_kind WHERE tenant = ?1";
        let seqs = |row: &Row<'_>| Ok(seq(row.get(0)?));
        let seqs = self.connection.all(sql, [self.tenant], seqs);
        let mut seqs = seqs.at(self.place)?;
        seqs.sort_unstable();
        Ok(seqs)
    }
}

fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Option<&'a str>> {
    row.get_ref(column)?.as_str_or_null().map_err(Into::into)
}

fn doc<'a>(row: &'a Row<'_>) -> rusqlite::Result<Doc<'a>> {
    let tags = text(row, 12)?.unwrap_or_default();
    Ok(Doc {
        seq: seq(row.get(0)?),
        id: text(row, 1)?.unwrap_or_default(),
        user: text(row, 2)?,
        agent: text(row, 3)?,
        session: text(row, 4)?,
        audience: match text(row, 19)? {
            Some(_) => Some(word(row, 19)?),
            None => None,
        },
        scope: word(row, 5)?,
        kind: word(row, 6)?,
        namespace: word(row, 7)?,
        created: time(row, 8)?,
        expires: row
            .get::<_, Option<i64>>(9)?
            .map(|ms| Time::EPOCH.plus_millis(ms)),
        importance: row.get(10)?,
        speaker: text(row, 11)?,
        tags: tags.split('\n').filter(|tag| !tag.is_empty()).collect(),
    })
}

/// The vector in the columns model, scale and codes, the first of which is `column`.
pub(super) fn vector(
    row: &Row<'_>,
    column: usize,
    models: &HashMap<i64, ModelId>,
) -> rusqlite::Result<Option<StoredVector>> {
    let model: Option<i64> = row.get(column)?;
    let Some(model) = model.and_then(|model| models.get(&model)) else {
        return Ok(None);
    };
    let scale = row.get::<_, f64>(column + 1)? as f32;
    let codes = row.get_ref(column + 2)?.as_blob_or_null()?;
    Ok(Some(StoredVector {
        model: model.clone(),
        vector: Quantised::from_bytes(codes.unwrap_or_default(), model.dimension, scale),
    }))
}

pub(super) fn models(connection: &Connection) -> rusqlite::Result<HashMap<i64, ModelId>> {
    let models = connection.all("SELECT num, name, dimension FROM models", [], |row| {
        let model = ModelId {
            name: row.get(1)?,
            dimension: usize::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
        };
        Ok((row.get(0)?, model))
    })?;
    Ok(models.into_iter().collect())
}
