//! A checked graph whose queues exist: what the runtime puts on threads.

use std::sync::Arc;

use super::handles::Handles;
use super::worker::Worker;
use crate::stage::Flags;

/// A graph whose queues exist.
pub(crate) struct Assembly {
    pub(crate) handles: Handles,
    pub(crate) flags: Arc<Flags>,
    pub(crate) batches_in_flight: usize,
    /// One per thread.
    pub(crate) workers: Vec<Worker>,
}
