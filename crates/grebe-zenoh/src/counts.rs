use std::sync::Arc;
use std::time::Instant;

/// The last counts of a process in the lab.
#[derive(Debug, Clone)]
pub struct Counts {
    /// Its session, and the number of the counts.
    pub of: (String, String),
    /// The counts; empty before the first.
    pub bytes: Arc<[u8]>,
    /// Time of their arrival, or of the process's first appearance.
    pub at: Instant,
}
