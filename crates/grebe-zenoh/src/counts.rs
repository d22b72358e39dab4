use std::sync::Arc;
use std::time::Instant;

/// The last that a process of the lab has told of what it counts.
#[derive(Debug, Clone)]
pub struct Counts {
    /// Its session, and the number of what it tells.
    pub of: (String, String),
    /// What it told; empty until something has come.
    pub bytes: Arc<[u8]>,
    /// When that came, or when the process was seen first.
    pub at: Instant,
}
