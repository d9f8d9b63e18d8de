//! What changed in the database since an index followed it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use mnemon_core::embed::ModelId;
use mnemon_core::index::{Cursor, Delta, Doc, Feed, StoredVector, Terms};
use mnemon_core::vector::Quantised;
use mnemon_core::{StoreError, Tenant};
use tokio_postgres::Row;

use super::errors::Failure;
use super::pool::{Call, Lease};
use super::reads::record;
use super::view::{count, maybe_time, number, time, word};

/// Records that are read at once: about 4 MB of terms and vectors.
const PART: usize = 4096;

/// The columns of a document of an index: those of [`doc`], then its terms, then its vector.
pub(super) const DOC: &str = "r.seq, r.id, r.user_id, r.agent_id, r.session_id, r.audience,
    r.scope, r.kind, r.namespace, r.created, r.expires, r.importance, s.speaker, s.tags,
    s.terms, s.model, s.scale, s.codes";
/// The place of the time of creation among them.
pub(super) const CREATED: usize = 9;
/// The place of the terms among them.
pub(super) const TERMS: usize = 14;
/// The place of the vector's first column.
pub(super) const VECTOR: usize = 15;

/// The cursor of an index that has seen everything, and the tenant's number.
pub(super) async fn newest(
    lease: &mut Lease,
    tenant: &Tenant,
) -> Result<Option<(i64, Cursor)>, Failure> {
    let sql =
        "SELECT num, last_seq, embedded, removed, records FROM mnemon.tenants WHERE name = $1";
    let rows = lease.all(Call::about(tenant, sql)).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let cursor = Cursor {
        seq: number(row, 1)?,
        embedded: number(row, 2)?,
        removed: number(row, 3)?,
        records: usize::try_from(number(row, 4)?).unwrap_or(usize::MAX),
    };
    Ok(Some((row.try_get(0)?, cursor)))
}

/// A moment of which only the numbers are known: enough to decide whether an index is behind it.
pub(super) struct Numbers(pub(super) Cursor);

impl Feed for Numbers {
    fn newest(&self) -> Cursor {
        self.0
    }

    fn since(&self, _: Cursor, _: &mut Delta<'_>) -> Result<(), StoreError> {
        Err(StoreError::Internal("only numbers are known".to_owned()))
    }

    fn present(&self) -> Result<Vec<u64>, StoreError> {
        Err(StoreError::Internal("only numbers are known".to_owned()))
    }
}

/// A tenant at the moment of the lease's transaction. For threads that may block.
pub(super) struct Moment<'a> {
    pub(super) lease: RefCell<&'a mut Lease>,
    pub(super) tenant: i64,
    pub(super) newest: Cursor,
}

impl Moment<'_> {
    fn all(&self, call: Call) -> Result<Vec<Row>, StoreError> {
        let mut lease = self.lease.borrow_mut();
        let place = lease.place().to_owned();
        wait(lease.all(call)).map_err(|failure| failure.at(&place))
    }

    fn at<T>(&self, outcome: Result<T, Failure>) -> Result<T, StoreError> {
        outcome.map_err(|failure| failure.at(self.lease.borrow().place()))
    }

    fn models(&self) -> Result<HashMap<i64, ModelId>, StoreError> {
        let rows = self.all(Call::new("SELECT num, name, dimension FROM mnemon.models"))?;
        let models = rows.iter().map(|row| {
            let model = ModelId {
                name: row.try_get(1)?,
                dimension: usize::try_from(number(row, 2)?).unwrap_or(0),
            };
            Ok((row.try_get(0)?, model))
        });
        self.at(models.collect())
    }

    fn add_written(
        &self,
        mut after: u64,
        models: &HashMap<i64, ModelId>,
        delta: &mut Delta<'_>,
    ) -> Result<(), StoreError> {
        loop {
            let sql = format!(
                "SELECT {DOC} FROM mnemon.records r
                 JOIN mnemon.search s ON s.tenant = r.tenant AND s.seq = r.seq
                 WHERE r.tenant = $1 AND r.seq > $2 AND s.seq > $2 ORDER BY r.seq LIMIT $3"
            );
            let call = Call::new(sql).with(self.tenant).with(after.cast_signed());
            let rows = self.all(call.with(count(PART)))?;
            for row in &rows {
                after = self.at(number(row, 0))?;
                self.add_row(row, models, delta)?;
            }
            if rows.len() < PART {
                return Ok(());
            }
        }
    }

    fn add_row(
        &self,
        row: &Row,
        models: &HashMap<i64, ModelId>,
        delta: &mut Delta<'_>,
    ) -> Result<(), StoreError> {
        let terms: &[u8] = self.at(row.try_get(TERMS).map_err(Failure::from))?;
        let vector = self.at(vector(row, VECTOR, models))?;
        if let Some(terms) = Terms::from_bytes(terms) {
            let doc = self.at(doc(row))?;
            return delta.add(&doc, &terms, vector.as_ref());
        }
        // A server of another version wrote its own form.
        let sql = "SELECT doc FROM mnemon.records WHERE tenant = $1 AND seq = $2";
        let seq: i64 = self.at(row.try_get(0).map_err(Failure::from))?;
        for row in self.all(Call::new(sql).with(self.tenant).with(seq))? {
            let place = self.lease.borrow().place().to_owned();
            let text: &str = self.at(row.try_get(0).map_err(Failure::from))?;
            let record = self.at(record(&place, text))?;
            delta.add(&Doc::of(&record), &Terms::of(&record), vector.as_ref())?;
        }
        Ok(())
    }

    /// Vectors given to records up to `cursor.seq`; later records bring theirs along.
    fn embed_late(
        &self,
        cursor: Cursor,
        models: &HashMap<i64, ModelId>,
        delta: &mut Delta<'_>,
    ) -> Result<(), StoreError> {
        let mut after = cursor.embedded;
        loop {
            let sql = "SELECT seq, embedded, model, scale, codes FROM mnemon.search
                 WHERE tenant = $1 AND embedded > $2 ORDER BY embedded LIMIT $3";
            let call = Call::new(sql).with(self.tenant).with(after.cast_signed());
            let rows = self.all(call.with(count(PART)))?;
            for row in &rows {
                let seq = self.at(number(row, 0))?;
                after = self.at(number(row, 1))?;
                let vector = self.at(vector(row, 2, models))?;
                if let Some(vector) = vector.filter(|_| seq <= cursor.seq) {
                    delta.embed(seq, &vector)?;
                }
            }
            if rows.len() < PART {
                return Ok(());
            }
        }
    }

    fn seqs(&self, call: Call) -> Result<Vec<u64>, StoreError> {
        let rows = self.all(call)?;
        self.at(rows.iter().map(|row| number(row, 0)).collect())
    }
}

impl Feed for Moment<'_> {
    fn newest(&self) -> Cursor {
        self.newest
    }

    fn since(&self, cursor: Cursor, delta: &mut Delta<'_>) -> Result<(), StoreError> {
        let models = self.models()?;
        self.add_written(cursor.seq, &models, delta)?;
        if cursor.seq == 0 {
            return Ok(());
        }
        if cursor.embedded < self.newest.embedded {
            self.embed_late(cursor, &models, delta)?;
        }
        if cursor.removed < self.newest.removed {
            let sql = "SELECT seq FROM mnemon.removals WHERE tenant = $1 AND number > $2";
            let call = Call::new(sql).with(self.tenant);
            let removed = self.seqs(call.with(cursor.removed.cast_signed()))?;
            removed.into_iter().for_each(|seq| delta.remove(seq));
        }
        Ok(())
    }

    fn present(&self) -> Result<Vec<u64>, StoreError> {
        let sql = "SELECT seq FROM mnemon.records WHERE tenant = $1 ORDER BY seq";
        self.seqs(Call::new(sql).with(self.tenant))
    }
}

pub(super) fn doc(row: &Row) -> Result<Doc<'_>, Failure> {
    let tags: Option<&str> = row.try_get(13)?;
    let tags = tags.unwrap_or_default().split('\n');
    Ok(Doc {
        seq: number(row, 0)?,
        id: row.try_get(1)?,
        user: row.try_get(2)?,
        agent: row.try_get(3)?,
        session: row.try_get(4)?,
        audience: match row.try_get::<_, Option<&str>>(5)? {
            Some(_) => Some(word(row, 5)?),
            None => None,
        },
        scope: word(row, 6)?,
        kind: word(row, 7)?,
        namespace: word(row, 8)?,
        created: time(row, 9)?,
        expires: maybe_time(row, 10)?,
        importance: row.try_get(11)?,
        speaker: row.try_get(12)?,
        tags: tags.filter(|tag| !tag.is_empty()).collect(),
    })
}

/// The vector in the columns model, scale and codes, the first of which is `column`.
pub(super) fn vector(
    row: &Row,
    column: usize,
    models: &HashMap<i64, ModelId>,
) -> Result<Option<StoredVector>, Failure> {
    let model: Option<i64> = row.try_get(column)?;
    let Some(model) = model.and_then(|model| models.get(&model)) else {
        return Ok(None);
    };
    let scale: Option<f32> = row.try_get(column + 1)?;
    let codes: Option<&[u8]> = row.try_get(column + 2)?;
    let (codes, scale) = (codes.unwrap_or_default(), scale.unwrap_or_default());
    Ok(Some(StoredVector {
        model: model.clone(),
        vector: Quantised::from_bytes(codes, model.dimension, scale),
    }))
}

/// Wakes a thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future on this thread. What it waits for runs on the store's own runtime, so this
/// works inside and outside of any executor.
pub(super) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
