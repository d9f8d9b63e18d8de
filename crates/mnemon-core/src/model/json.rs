//! Pure rules about JSON: changing a document by a patch, and checking it against a schema.

mod patch;
mod schema;

pub use crate::model::record::json_bytes as bytes;
pub use patch::merge;
pub use schema::Schema;
