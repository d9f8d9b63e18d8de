//! The messages of Milvus' gRPC protocol that are used, with the numbers of its published
//! definition. Fields that are neither sent nor read are left out.

use prost::Message;

/// Answers hold a status, whatever else they hold.
pub(crate) trait Answer: Message + Default + 'static {
    fn status(&self) -> Option<&Status>;
}

macro_rules! answers {
    ($($name:ident)+) => { $(
        impl Answer for $name {
            fn status(&self) -> Option<&Status> {
                self.status.as_ref()
            }
        }
    )+ };
}

answers! { Description Collections Mutated Found Queried Version LoadState }

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    /// The code of servers before 2.3.
    #[prost(int32, tag = "1")]
    pub(crate) legacy_code: i32,
    #[prost(string, tag = "2")]
    pub(crate) reason: String,
    #[prost(int32, tag = "3")]
    pub(crate) code: i32,
    #[prost(bool, tag = "4")]
    pub(crate) retriable: bool,
}

impl Answer for Status {
    fn status(&self) -> Option<&Status> {
        Some(self)
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Pair {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

impl Pair {
    pub(crate) fn new(key: &str, value: impl ToString) -> Self {
        Self {
            key: key.to_owned(),
            value: value.to_string(),
        }
    }
}

/// Numbers of `schema.DataType`.
pub(crate) mod data_type {
    pub(crate) const INT64: i32 = 5;
    pub(crate) const FLOAT: i32 = 10;
    pub(crate) const VARCHAR: i32 = 21;
    pub(crate) const ARRAY: i32 = 22;
    pub(crate) const FLOAT_VECTOR: i32 = 101;
    pub(crate) const SPARSE_VECTOR: i32 = 104;
}

/// `GetVersionRequest`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Version {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

/// A request that names a collection only: describe, drop, load.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OfCollection {
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LoadStateOf {
    #[prost(string, tag = "2")]
    pub(crate) collection: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LoadState {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
    #[prost(int32, tag = "2")]
    pub(crate) state: i32,
}

impl LoadState {
    pub(crate) const LOADED: i32 = 3;
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NewCollection {
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
    /// An encoded [`Schema`].
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) schema: Vec<u8>,
    #[prost(int32, tag = "5")]
    pub(crate) shards: i32,
    /// 0 stands for strong.
    #[prost(int32, tag = "6")]
    pub(crate) consistency: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Schema {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) description: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Field {
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(bool, tag = "3")]
    pub(crate) is_primary: bool,
    #[prost(int32, tag = "5")]
    pub(crate) data_type: i32,
    #[prost(message, repeated, tag = "6")]
    pub(crate) params: Vec<Pair>,
    #[prost(int32, tag = "10")]
    pub(crate) element_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Description {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
    #[prost(message, optional, tag = "2")]
    pub(crate) schema: Option<Schema>,
    /// The name of the collection itself, also if an alias was asked for.
    #[prost(string, tag = "12")]
    pub(crate) collection: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Collections {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) names: Vec<String>,
}

/// Makes or moves an alias.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Alias {
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
    #[prost(string, tag = "4")]
    pub(crate) alias: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NewIndex {
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
    #[prost(string, tag = "4")]
    pub(crate) field: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) params: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Upsert {
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) columns: Vec<Column>,
    #[prost(uint32, tag = "7")]
    pub(crate) rows: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Delete {
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
    #[prost(string, tag = "5")]
    pub(crate) filter: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Mutated {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
}

/// The values of a field, one for each row.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Column {
    #[prost(int32, tag = "1")]
    pub(crate) data_type: i32,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) scalars: Option<Scalars>,
    #[prost(message, optional, tag = "4")]
    pub(crate) vectors: Option<Vectors>,
}

/// One of the kinds is set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scalars {
    #[prost(message, optional, tag = "3")]
    pub(crate) longs: Option<Longs>,
    #[prost(message, optional, tag = "4")]
    pub(crate) floats: Option<Floats>,
    #[prost(message, optional, tag = "6")]
    pub(crate) strings: Option<Strings>,
    #[prost(message, optional, tag = "8")]
    pub(crate) arrays: Option<Arrays>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Longs {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) data: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Floats {
    #[prost(float, repeated, tag = "1")]
    pub(crate) data: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Strings {
    #[prost(string, repeated, tag = "1")]
    pub(crate) data: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Arrays {
    #[prost(message, repeated, tag = "1")]
    pub(crate) data: Vec<Scalars>,
    #[prost(int32, tag = "2")]
    pub(crate) element_type: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Vectors {
    #[prost(int64, tag = "1")]
    pub(crate) dimension: i64,
    #[prost(message, optional, tag = "2")]
    pub(crate) dense: Option<Floats>,
    #[prost(message, optional, tag = "6")]
    pub(crate) sparse: Option<Sparse>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sparse {
    /// Pairs of an index and a value, little-endian, by index.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) rows: Vec<Vec<u8>>,
    #[prost(int64, tag = "2")]
    pub(crate) dimension: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Query {
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
    #[prost(string, tag = "4")]
    pub(crate) filter: String,
    #[prost(string, repeated, tag = "5")]
    pub(crate) fields: Vec<String>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) params: Vec<Pair>,
    /// 0 stands for strong.
    #[prost(int32, tag = "11")]
    pub(crate) consistency: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Queried {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) columns: Vec<Column>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Search {
    #[prost(string, tag = "3")]
    pub(crate) collection: String,
    #[prost(string, tag = "5")]
    pub(crate) filter: String,
    /// An encoded [`Placeholders`].
    #[prost(bytes = "vec", tag = "6")]
    pub(crate) placeholders: Vec<u8>,
    /// 1 stands for an expression.
    #[prost(int32, tag = "7")]
    pub(crate) filter_type: i32,
    #[prost(string, repeated, tag = "8")]
    pub(crate) fields: Vec<String>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) params: Vec<Pair>,
    #[prost(int64, tag = "12")]
    pub(crate) queries: i64,
    /// 0 stands for strong.
    #[prost(int32, tag = "14")]
    pub(crate) consistency: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Placeholders {
    #[prost(message, repeated, tag = "1")]
    pub(crate) placeholders: Vec<Placeholder>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Placeholder {
    #[prost(string, tag = "1")]
    pub(crate) tag: String,
    /// The number of the vector's type.
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(crate) values: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Found {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
    #[prost(message, optional, tag = "2")]
    pub(crate) results: Option<Results>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Results {
    #[prost(message, repeated, tag = "3")]
    pub(crate) columns: Vec<Column>,
    #[prost(float, repeated, tag = "4")]
    pub(crate) scores: Vec<f32>,
}
