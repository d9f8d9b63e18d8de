//! Lance tables as the search index of a store: `index = "lance:FOLDER"`.
#![cfg(feature = "tables")]
