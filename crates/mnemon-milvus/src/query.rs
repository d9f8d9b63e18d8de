//! Questions to one collection.

use mnemon_adapters::external_index::Found;
use mnemon_core::StoreError;
use prost::Message;

use crate::client::{Client, Failure};
use crate::proto::{
    self, Column, Pair, Placeholder, Placeholders, Queried, Query, Scalars, Search, data_type,
};
use crate::schema::{MEANING, WORDS};

/// Rows of one answer, which is Milvus' own limit.
pub(crate) const ROWS: usize = 16_384;

/// What a search compares with.
pub(crate) enum Target {
    /// A sparse vector, encoded.
    Words(Vec<u8>),
    Meaning(Vec<f32>),
}

impl Client {
    /// The columns of the rows that a filter means.
    pub(crate) async fn rows(
        &self,
        collection: &str,
        filter: String,
        fields: &[&str],
        limit: usize,
    ) -> Result<Vec<Column>, Failure> {
        let params = vec![Pair::new("limit", limit)];
        self.query(collection, filter, fields, params).await
    }

    /// The same, by key.
    pub(crate) async fn rows_by_key(
        &self,
        collection: &str,
        filter: String,
        fields: &[&str],
        limit: usize,
    ) -> Result<Vec<Column>, Failure> {
        let params = vec![
            Pair::new("limit", limit),
            Pair::new("iterator", "True"),
            Pair::new("reduce_stop_for_best", "True"),
        ];
        self.query(collection, filter, fields, params).await
    }

    async fn query(
        &self,
        collection: &str,
        filter: String,
        fields: &[&str],
        params: Vec<Pair>,
    ) -> Result<Vec<Column>, Failure> {
        let query = Query {
            collection: collection.to_owned(),
            filter,
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            params,
            consistency: 0,
        };
        let found: Queried = self.ask(collection, "Query", &query).await?;
        Ok(found.columns)
    }

    /// How many rows a filter means.
    pub(crate) async fn count(&self, collection: &str, filter: String) -> Result<u64, Failure> {
        let columns = self.query(collection, filter, &["count(*)"], Vec::new());
        let columns = columns.await?;
        let counts = self.longs(&columns, "count(*)")?;
        let count = counts.first().and_then(|it| u64::try_from(*it).ok());
        Ok(count.ok_or_else(|| self.unreadable("a count"))?)
    }

    /// The best rows of those that a filter means.
    pub(crate) async fn search(
        &self,
        collection: &str,
        filter: String,
        target: &Target,
        depth: usize,
    ) -> Result<Vec<Found>, Failure> {
        let (field, metric, data_type, bytes) = match target {
            Target::Words(sparse) => (WORDS, "IP", data_type::SPARSE_VECTOR, sparse.clone()),
            Target::Meaning(values) => {
                let bytes = values.iter().flat_map(|value| value.to_le_bytes());
                let bytes = bytes.collect();
                (MEANING, "COSINE", data_type::FLOAT_VECTOR, bytes)
            }
        };
        let placeholders = Placeholders {
            placeholders: vec![Placeholder {
                tag: "$0".to_owned(),
                data_type,
                values: vec![bytes],
            }],
        };
        let search = Search {
            collection: collection.to_owned(),
            filter,
            placeholders: placeholders.encode_to_vec(),
            filter_type: 1,
            fields: vec!["id".to_owned(), "version".to_owned()],
            params: vec![
                Pair::new("anns_field", field),
                Pair::new("topk", depth.clamp(1, ROWS)),
                Pair::new("metric_type", metric),
                Pair::new("params", "{}"),
                Pair::new("round_decimal", -1),
            ],
            queries: 1,
            consistency: 0,
        };
        let found: proto::Found = self.ask(collection, "Search", &search).await?;
        let results = found.results.unwrap_or_default();
        if results.scores.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.found(&results.columns, &results.scores)?;
        Ok(found)
    }

    /// Rows with an id and a version, and their scores.
    pub(crate) fn found(
        &self,
        columns: &[Column],
        scores: &[f32],
    ) -> Result<Vec<Found>, StoreError> {
        let unreadable = || self.unreadable("rows with an id and a version");
        let ids = self.strings(columns, "id")?;
        let versions = self.longs(columns, "version")?;
        if ids.len() != versions.len() || ids.len() != scores.len() {
            return Err(unreadable());
        }
        let rows = ids.iter().zip(versions).zip(scores);
        rows.map(|((id, version), score)| {
            let version = u64::try_from(*version).map_err(|_| unreadable())?;
            Ok(Found {
                id: id.parse().map_err(|_| unreadable())?,
                seq: version / 2,
                score: *score,
            })
        })
        .collect()
    }

    pub(crate) fn strings<'a>(
        &self,
        columns: &'a [Column],
        name: &str,
    ) -> Result<&'a [String], StoreError> {
        self.values(columns, name, |data| Some(&data.strings.as_ref()?.data))
    }

    pub(crate) fn longs<'a>(
        &self,
        columns: &'a [Column],
        name: &str,
    ) -> Result<&'a [i64], StoreError> {
        self.values(columns, name, |data| Some(&data.longs.as_ref()?.data))
    }

    pub(crate) fn floats<'a>(
        &self,
        columns: &'a [Column],
        name: &str,
    ) -> Result<&'a [f32], StoreError> {
        self.values(columns, name, |data| Some(&data.floats.as_ref()?.data))
    }

    /// Vectors of this length, one for each row.
    pub(crate) fn dense(
        &self,
        columns: &[Column],
        name: &str,
        dimension: usize,
    ) -> Result<Vec<Vec<f32>>, StoreError> {
        let Some(column) = columns.iter().find(|column| column.name == name) else {
            return self.empty(columns, name).map(<[Vec<f32>]>::to_vec);
        };
        let dense = column.vectors.as_ref().and_then(|it| it.dense.as_ref());
        let numbers = dense.map_or(&[][..], |dense| dense.data.as_slice());
        let vectors = numbers.chunks(dimension.max(1));
        Ok(vectors.map(<[f32]>::to_vec).collect())
    }

    fn values<'a, T>(
        &self,
        columns: &'a [Column],
        name: &str,
        of: fn(&'a Scalars) -> Option<&'a Vec<T>>,
    ) -> Result<&'a [T], StoreError> {
        let Some(column) = columns.iter().find(|column| column.name == name) else {
            return self.empty(columns, name);
        };
        let data = column.scalars.as_ref().and_then(of);
        Ok(data.map_or(&[], Vec::as_slice))
    }

    /// An answer without rows need not have columns.
    fn empty<'a, T>(&self, columns: &[Column], name: &str) -> Result<&'a [T], StoreError> {
        match columns.is_empty() {
            true => Ok(&[]),
            false => Err(self.unreadable(&format!("the field `{name}`"))),
        }
    }
}
