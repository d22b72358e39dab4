//! Primitives that the model checker replaces, under common names.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(not(loom))]
pub(crate) use crate::map::Words;

#[cfg(loom)]
pub(crate) use model::Words;

#[cfg(loom)]
mod model {
    use std::sync::Arc;

    use super::AtomicU64;

    /// Stand-in for shared memory under the model checker, whose atomics are not plain words.
    #[derive(Debug, Clone)]
    pub(crate) struct Words(Arc<[AtomicU64]>);

    impl Words {
        /// Makes `count` zeroed words.
        pub(crate) fn model(count: usize) -> Self {
            Self((0..count).map(|_| AtomicU64::new(0)).collect())
        }

        pub(crate) fn at(&self, index: usize) -> &AtomicU64 {
            &self.0[index]
        }

        pub(crate) fn len(&self) -> usize {
            self.0.len()
        }
    }
}
