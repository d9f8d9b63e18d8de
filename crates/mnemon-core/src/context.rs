//! Text for a model within a budget: chunks, token counts, and marks around what is quoted.

pub mod budget;
pub mod chunk;
pub mod recall_marks;
