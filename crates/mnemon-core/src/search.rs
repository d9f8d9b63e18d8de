//! Finding: text to terms, the built-in index, vectors, and the order of what was found.

pub(crate) mod column_file;
pub mod dates;
pub mod index;
pub mod rank;
pub mod speakers;
pub mod text;
pub mod vector;

pub use rank::Candidate;

/// Makes room for more values in a list that stays. Growing by a sixteenth leaves a thirtieth of the
/// memory unused on average, where doubling leaves a quarter.
fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 16).max(4));
    }
}

/// Adds a value to a list that stays.
fn push<T>(list: &mut Vec<T>, value: T) {
    make_room(list, 1);
    list.push(value);
}
