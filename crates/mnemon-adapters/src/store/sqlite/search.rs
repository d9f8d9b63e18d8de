//! Searching: an index in memory for each tenant, which follows the file.
//!
//! What the index is made of (analysed words, vectors) is kept beside each record, so that
//! making it needs neither analysis nor a model; and a large one is [`saved`] whole. Before every
//! search it catches up with what this or any other process has committed.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Instant;

use mnemon_core::embed::ModelId;
use mnemon_core::index::{Doc, Index, StoredVector, Terms};
use mnemon_core::ram::wrong_vector;
use mnemon_core::vector::Quantised;
use mnemon_core::{Answer, Filter, Grant, Order, Probe, Record, Scan, StoreError, Time, limits};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Reader;
use super::errors::At;
use super::reads;
use super::saved::{self, Saving};
use super::sums;
use super::tables::{key, seq, time, word};

/// Records among which a search takes no longer than waking a thread for it.
const AT_HAND: usize = 1000;
/// What a search that nothing else waits for may have to look at to be answered where it is asked:
/// two switches of threads cost 0.2 ms, and what comes after them finds its memory cold. Values of
/// vectors (of 150,000 of the built-in model's, which is below a millisecond), and words.
const VALUES_ALONE: usize = 150_000 * WIDTH;
const WORDS_ALONE: usize = 32;
/// Values of a vector of the built-in model; a record without one is no less work.
const WIDTH: usize = 256;

/// The indexes of the tenants that were searched.
pub(super) struct Indexes {
    saving: Saving,
    /// By the opening of the file that they follow, and the tenant's number in it.
    tenants: Mutex<HashMap<(u64, i64), SharedFollowed>>,
    /// Those who save one at the moment.
    savers: Mutex<Vec<JoinHandle<()>>>,
}

type SharedFollowed = Arc<RwLock<Followed>>;

/// An index, and the newest change that it has seen.
#[derive(Default)]
pub(super) struct Followed {
    pub(super) index: Index,
    pub(super) seq: u64,
    /// How many vectors had been given to records since they were written.
    pub(super) embedded: i64,
    /// The mark of the index that is saved beside the file.
    pub(super) mark: i64,
    /// Changes since it was saved.
    pub(super) unsaved: usize,
    pub(super) saving: bool,
    pub(super) saved_at: Option<Instant>,
}

/// A tenant as the file knows it at one moment.
struct Moment<'a> {
    connection: &'a Connection,
    place: &'a str,
    tenant: i64,
    last_seq: u64,
    records: usize,
    embedded: i64,
    mark: i64,
}

impl Indexes {
    pub(super) fn new(saving: Saving) -> Self {
        Self {
            saving,
            tenants: Mutex::default(),
            savers: Mutex::default(),
        }
    }

    /// Saves the index while nobody waits for it.
    fn save_soon(&self, reader: &Reader<'_>, tenant: i64, followed: Arc<RwLock<Followed>>) {
        let Some(database) = reader.connection.path().map(PathBuf::from) else {
            return;
        };
        let main = reader.main;
        let unsaved = Arc::clone(&followed);
        let save = move || saved::save(&database, main, tenant, &followed);
        if tokio::runtime::Handle::try_current().is_err() {
            // An executor of one thread, which has to do everything itself.
            return save();
        }
        let mut savers = self.savers.lock().unwrap_or_else(PoisonError::into_inner);
        savers.retain(|saver| !saver.is_finished());
        let thread = std::thread::Builder::new().name("mnemon-index".to_owned());
        match thread.spawn(save) {
            Ok(saver) => savers.push(saver),
            // Without a thread it is saved another time.
            Err(_) => {
                unsaved
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .saving = false
            }
        }
    }

    /// The tenant's index of this opening of the file. Those of files that were replaced are
    /// dropped.
    fn followed(&self, generation: u64, tenant: i64) -> Arc<RwLock<Followed>> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.retain(|(of, _), _| *of >= generation);
        Arc::clone(tenants.entry((generation, tenant)).or_default())
    }

    /// Waits until what is being saved is saved.
    pub(super) fn finish(&self) {
        let mut savers = self.savers.lock().unwrap_or_else(PoisonError::into_inner);
        for saver in savers.drain(..) {
            // One that has panicked has saved nothing; nobody loses by it.
            let _ = saver.join();
        }
    }

    /// Runs a search on the tenant's index, brought up to the file; `None` if it has no records.
    fn with<T>(
        &self,
        reader: &Reader<'_>,
        grant: &Grant,
        work: impl FnOnce(&Index) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let Some(tenant) = reads::tenant(reader.connection, reader.place, grant)? else {
            return Ok(None);
        };
        let followed = self.followed(reader.generation, tenant);
        let _moment = reader.connection.unchecked_transaction().at(reader.place)?;
        let moment = Moment::look(reader.connection, reader.place, tenant)?;
        let read = followed.read().unwrap_or_else(PoisonError::into_inner);
        if moment.is_known_to(&read) {
            return work(&read.index).map(Some);
        }
        drop(read);
        let mut write = followed.write().unwrap_or_else(PoisonError::into_inner);
        // Another search may have come first, and may have seen more than our moment.
        if write.seq <= moment.last_seq && write.embedded <= moment.embedded {
            moment.follow(&mut write)?;
        }
        let due = self.saving.is_due(&write);
        write.saving |= due;
        let result = work(&write.index).map(Some);
        drop(write);
        if due {
            self.save_soon(reader, tenant, followed);
        }
        result
    }

    /// What is found among few, if the index is up to the file: sooner than a thread is woken.
    pub(super) fn find_at_hand(
        &self,
        reader: &Reader<'_>,
        grant: &Grant,
        probe: &Probe,
    ) -> Result<Option<Answer>, StoreError> {
        if probe.filter.needs_records() {
            return Ok(None);
        }
        let is_short = |index: &Index| {
            (probe.may_run_inline && is_short(probe, index))
                || index.is_among(&probe.filter, AT_HAND)
        };
        let find = |index: &Index| index.find(probe, grant.now(), None);
        let found = self.at_hand(reader, grant, is_short, find)?;
        let found = found.transpose();
        found.map_err(|error| wrong_vector(&error))
    }

    /// What the index has to say, if it is at hand, is asked something short, and is up to the
    /// file.
    fn at_hand<T>(
        &self,
        reader: &Reader<'_>,
        grant: &Grant,
        is_short: impl FnOnce(&Index) -> bool,
        work: impl FnOnce(&Index) -> T,
    ) -> Result<Option<T>, StoreError> {
        let Some(tenant) = reads::tenant(reader.connection, reader.place, grant)? else {
            return Ok(None);
        };
        let known = {
            let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
            tenants.get(&(reader.generation, tenant)).map(Arc::clone)
        };
        let Some(read) = known.as_ref().and_then(|known| known.try_read().ok()) else {
            return Ok(None);
        };
        if !is_short(&read.index) {
            return Ok(None);
        }
        let moment = Moment::look(reader.connection, reader.place, tenant)?;
        let current = moment.is_known_to(&read);
        Ok(current.then(|| work(&read.index)))
    }

    pub(super) fn find(
        &self,
        reader: &Reader<'_>,
        grant: &Grant,
        probe: &Probe,
    ) -> Result<Answer, StoreError> {
        let within = if probe.filter.needs_records() {
            Some(meant(
                reader.connection,
                reader.place,
                grant,
                &probe.filter,
            )?)
        } else {
            None
        };
        let found = self.with(reader, grant, |index| {
            let found = index.find(probe, grant.now(), within.as_ref());
            found.map_err(|error| wrong_vector(&error))
        })?;
        Ok(found.unwrap_or_default())
    }
}

/// Whether the whole index is looked through for this in about the time that it takes to have
/// another thread do it.
fn is_short(probe: &Probe, index: &Index) -> bool {
    let values: usize = probe.vectors.iter().map(|query| query.vector.len()).sum();
    let values = values.max(WIDTH).saturating_mul(index.len());
    values <= VALUES_ALONE && probe.terms.len() <= WORDS_ALONE
}

/// The records that a filter means which only whole records can answer.
fn meant(
    connection: &Connection,
    place: &str,
    grant: &Grant,
    filter: &Filter,
) -> Result<HashSet<u64>, StoreError> {
    let mut scan = Scan {
        order: Order::Written,
        ..Scan::new(filter.clone(), limits::PAGE)
    };
    let mut seqs = HashSet::new();
    loop {
        let page = reads::scan(connection, place, grant, &scan)?;
        seqs.extend(page.records.iter().map(|record| record.seq));
        match page.next {
            Some(next) => scan.after = Some(next),
            None => return Ok(seqs),
        }
    }
}

impl<'a> Moment<'a> {
    fn look(connection: &'a Connection, place: &'a str, tenant: i64) -> Result<Self, StoreError> {
        let (last_seq, records, embedded, mark): (i64, i64, i64, i64) = connection
            .prepare_cached(
                "SELECT last_seq, (SELECT coalesce(sum(count), 0) FROM tally WHERE tenant = num),
                    embedded, saved
                 FROM tenants WHERE num = ?1",
            )
            .and_then(|mut select| {
                select.query_row([tenant], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })
            })
            .at(place)?;
        Ok(Self {
            connection,
            place,
            tenant,
            last_seq: last_seq.cast_unsigned(),
            records: usize::try_from(records).unwrap_or(0),
            embedded,
            mark,
        })
    }

    /// Whether the index has seen all that there is.
    fn is_known_to(&self, followed: &Followed) -> bool {
        followed.seq == self.last_seq
            && followed.index.len() == self.records
            && followed.embedded == self.embedded
    }

    /// Brings the index to this moment.
    fn follow(&self, followed: &mut Followed) -> Result<(), StoreError> {
        if followed.index.is_stale() || followed.embedded != self.embedded {
            *followed = Followed {
                saving: followed.saving,
                saved_at: followed.saved_at,
                ..Followed::default()
            };
        } else if followed.index.is_empty() {
            let saved = saved::load(self.connection, self.tenant, self.mark, self.embedded)
                .filter(|saved| saved.seq <= self.last_seq);
            *followed = Followed {
                saving: followed.saving,
                saved_at: followed.saved_at,
                ..saved.unwrap_or_default()
            };
        }
        followed.embedded = self.embedded;
        let before = followed.index.len();
        self.add_new(followed)?;
        followed.unsaved += followed.index.len() - before;
        if before > 0 {
            for gone in self.replaced_since(followed.seq)? {
                followed.remove(gone);
            }
        }
        followed.seq = self.last_seq;
        // What was purged or has expired leaves no trace: look for what is not there any more.
        if followed.index.len() != self.records {
            let mut there = self.seqs()?.into_iter().peekable();
            for seq in followed.index.seqs() {
                while there.next_if(|there| *there < seq).is_some() {}
                if there.peek() != Some(&seq) {
                    followed.remove(seq);
                }
            }
        }
        // Only now it knows of every purge under this mark, and may be saved.
        followed.mark = self.mark;
        Ok(())
    }

    fn add_new(&self, followed: &mut Followed) -> Result<(), StoreError> {
        let models = models(self.connection, self.place)?;
        let mut select = self
            .connection
            .prepare_cached(
                "SELECT r.key, r.id, r.user, r.agent, r.session, r.scope, r.kind, r.namespace,
                    r.created, r.expires, r.importance, s.speaker, s.tags, s.terms,
                    s.model, s.scale, s.codes, CASE WHEN s.key IS NULL THEN r.doc END, r.sum
                 FROM records r LEFT JOIN search s ON s.key = r.key
                 WHERE r.key > ?1 AND r.key < ?2 ORDER BY r.key",
            )
            .at(self.place)?;
        let range = params![key(self.tenant, followed.seq), key(self.tenant + 1, 0)];
        let mut rows = select.query(range).at(self.place)?;
        while let Some(row) = rows.next().at(self.place)? {
            self.add_row(&mut followed.index, row, &models)?;
        }
        Ok(())
    }

    fn add_row(
        &self,
        index: &mut Index,
        row: &Row<'_>,
        models: &HashMap<i64, ModelId>,
    ) -> Result<(), StoreError> {
        // A record from before there was a search: analyse it now.
        if let Some(doc) = row.get::<_, Option<String>>(17).at(self.place)? {
            let sum = row.get(18).at(self.place)?;
            let record = sums::record(self.place, &doc, sum)?;
            let added = index.add(&Doc::of(&record), &Terms::of(&record), None);
            return added.map_err(|error| wrong_vector(&error));
        }
        let terms = row.get_ref(13).at(self.place)?;
        let terms = terms.as_blob().ok().and_then(Terms::from_bytes);
        let terms = terms.ok_or_else(|| StoreError::Corrupt {
            place: self.place.to_owned(),
            what: "the words of a record cannot be read; rebuild the index".to_owned(),
        })?;
        let vector = vector(row, models).at(self.place)?;
        let doc = doc(row).at(self.place)?;
        let added = index.add(&doc, &terms, vector.as_ref());
        added.map_err(|error| wrong_vector(&error))
    }

    /// What was there at this change, of all that was updated or deleted since. It is the version of
    /// that time that an index holds, however often the record was changed since; with one that
    /// stays behind the numbers would not agree, and all records would be looked through.
    fn replaced_since(&self, seq: u64) -> Result<Vec<u64>, StoreError> {
        let sql = "
            SELECT (SELECT max(p.key) FROM history p
                WHERE p.tenant = r.tenant AND p.id = r.id AND p.key <= ?1)
            FROM records r WHERE r.key > ?1 AND r.key < ?2 AND r.version > 1
            UNION ALL
            SELECT (SELECT max(p.key) FROM history p
                WHERE p.tenant = h.tenant AND p.id = h.id AND p.key <= ?1)
            FROM history h WHERE h.key > ?1 AND h.key < ?2 AND h.doc IS NULL";
        let range = params![key(self.tenant, seq), key(self.tenant + 1, 0)];
        let keys: Vec<Option<i64>> = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_map(range, |row| row.get(0))?.collect())
            .at(self.place)?;
        Ok(keys.into_iter().flatten().map(super::tables::seq).collect())
    }

    /// The changes that made the records that are there, in order.
    fn seqs(&self) -> Result<Vec<u64>, StoreError> {
        // By an index that holds the keys: the records themselves would have to be walked past.
        let sql = "SELECT key FROM records INDEXED BY records_created WHERE tenant = ?1";
        let seqs: rusqlite::Result<Vec<u64>> =
            self.connection.prepare_cached(sql).and_then(|mut select| {
                let rows = select.query_map([self.tenant], |row| Ok(seq(row.get(0)?)))?;
                rows.collect()
            });
        let mut seqs = seqs.at(self.place)?;
        seqs.sort_unstable();
        Ok(seqs)
    }
}

impl Followed {
    fn remove(&mut self, seq: u64) {
        self.index.remove(seq);
        self.unsaved += 1;
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

fn vector(row: &Row<'_>, models: &HashMap<i64, ModelId>) -> rusqlite::Result<Option<StoredVector>> {
    let model: Option<i64> = row.get(14)?;
    let Some(model) = model.and_then(|model| models.get(&model)) else {
        return Ok(None);
    };
    let codes = row.get_ref(16)?.as_blob_or_null()?.unwrap_or_default();
    Ok(Some(StoredVector {
        model: model.clone(),
        vector: Quantised::from_bytes(codes, model.dimension, row.get::<_, f64>(15)? as f32),
    }))
}

fn models(connection: &Connection, place: &str) -> Result<HashMap<i64, ModelId>, StoreError> {
    connection
        .prepare_cached("SELECT num, name, dimension FROM models")
        .and_then(|mut select| {
            let rows = select.query_map([], |row| {
                let model = ModelId {
                    name: row.get(1)?,
                    dimension: usize::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
                };
                Ok((row.get(0)?, model))
            })?;
            rows.collect()
        })
        .at(place)
}

/// The number of a model, if any record has a vector of it.
pub(super) fn model_number(
    connection: &Connection,
    place: &str,
    model: &ModelId,
) -> Result<Option<i64>, StoreError> {
    connection
        .prepare_cached("SELECT num FROM models WHERE name = ?1 AND dimension = ?2")
        .and_then(|mut select| {
            let values = params![model.name, model.dimension as i64];
            select.query_row(values, |row| row.get(0)).optional()
        })
        .at(place)
}

/// Live records without a vector of this model.
pub(super) fn lacking(
    connection: &Connection,
    place: &str,
    grant: &Grant,
    model: &ModelId,
    after: u64,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let Some(tenant) = reads::tenant(connection, place, grant)? else {
        return Ok(Vec::new());
    };
    let number = model_number(connection, place, model)?.unwrap_or(-1);
    let docs: Vec<(String, i64)> = connection
        .prepare_cached(
            "SELECT r.doc, r.sum FROM records r LEFT JOIN search s ON s.key = r.key
             WHERE r.key > ?1 AND r.key < ?2 AND (s.model IS NULL OR s.model <> ?3)
             AND (r.expires IS NULL OR r.expires >= ?4) ORDER BY r.key LIMIT ?5",
        )
        .and_then(|mut select| {
            let values = params![
                key(tenant, after),
                key(tenant + 1, 0),
                number,
                grant.now().millis(),
                limit.min(limits::PAGE) as i64
            ];
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            select.query_map(values, row)?.collect()
        })
        .at(place)?;
    let docs = docs.iter();
    docs.map(|(doc, sum)| sums::record(place, doc, *sum))
        .collect()
}
