//! Intervals of days: those that records name and those that queries ask for.

/// Days without a gap, by their number since 1970-01-01; the first and the last are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Days {
    pub from: i32,
    pub to: i32,
}

/// Days that a record tells of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Told {
    pub days: Days,
    /// From 0 to 1: how sure it is that these days are meant.
    pub certainty: f32,
}

/// Days that a query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub days: Days,
    /// No year was given: every year's are meant.
    pub any_year: bool,
}
