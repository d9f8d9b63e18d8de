//! What is asked of evidence before something is learnt from it.

/// Thresholds. The defaults are those that `docs/learning.md` was measured with.
#[derive(Debug, Clone, PartialEq)]
pub struct LearnSettings {
    /// Successful runs that must have followed a procedure before it is proposed.
    pub candidate_runs: usize,
    /// Successful runs from which on a procedure is active by itself.
    pub active_runs: usize,
    /// The part of the successful runs that a procedure must be found in.
    pub support: f64,
    /// The part of the runs with it that must have succeeded.
    pub confidence: f64,
    /// What the complexity rule must yield; see [`super::complexity`].
    pub complexity: u32,
    /// Whether a person must approve before anything is active.
    pub approval: bool,
    /// How long a trace must have been silent before it counts as ended.
    pub settle_ms: i64,
}

impl Default for LearnSettings {
    fn default() -> Self {
        Self {
            candidate_runs: 5,
            active_runs: 10,
            support: 0.4,
            confidence: 0.6,
            complexity: 2,
            approval: false,
            settle_ms: 30 * 60 * 1000,
        }
    }
}
