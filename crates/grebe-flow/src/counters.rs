//! Counters of a running graph, readable at any time without slowing it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use grebe_frame::Header;

use crate::snapshot::{Latency, LatencyTotals, StageSnapshot};

/// A stage's own counters, by name. Only the stage's thread writes them; any thread may read them.
///
/// ```
/// let counters = grebe_flow::Counters::new(&["refused", "late"]);
/// let reader = counters.clone();
/// counters.add(1, 3);
/// assert_eq!(reader.iter().collect::<Vec<_>>(), [("refused", 0), ("late", 3)]);
/// ```
#[derive(Debug, Clone)]
pub struct Counters {
    names: &'static [&'static str],
    gauges: &'static [&'static str],
    values: Arc<[AtomicU64]>,
}

impl Counters {
    /// Makes one counter per name, all zero.
    pub fn new(names: &'static [&'static str]) -> Self {
        Self { names, gauges: &[], values: names.iter().map(|_| AtomicU64::new(0)).collect() }
    }

    /// Marks counters as gauges: states that may decrease and have no meaningful rate.
    ///
    /// ```
    /// let counters = grebe_flow::Counters::new(&["clients", "refused_clients"]).with_gauges(&["clients"]);
    /// ```
    pub fn with_gauges(self, gauges: &'static [&'static str]) -> Self {
        Self { gauges, ..self }
    }

    /// Sets the counter at this position in the names.
    pub fn set(&self, position: usize, value: u64) {
        self.values[position].store(value, Ordering::Relaxed);
    }

    /// Sets the first counters, in the order of the names.
    ///
    /// ```
    /// let counters = grebe_flow::Counters::new(&["refused", "late", "copied"]);
    /// counters.set_all([7, 1]);
    /// assert_eq!(counters.iter().collect::<Vec<_>>(), [("refused", 7), ("late", 1), ("copied", 0)]);
    /// ```
    pub fn set_all(&self, values: impl IntoIterator<Item = u64>) {
        values.into_iter().enumerate().for_each(|(position, value)| self.set(position, value));
    }

    /// Adds to the counter at this position in the names.
    pub fn add(&self, position: usize, value: u64) {
        add(&self.values[position], value);
    }

    /// Counter at this position, for the stage's thread only.
    #[doc(hidden)]
    pub fn counter(&self, position: usize) -> Counter {
        Counter { values: self.values.clone(), position }
    }

    /// The counter of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.names.iter().zip(self.values.iter()).map(|(name, value)| (*name, value.load(Ordering::Relaxed)))
    }
}

/// One of a stage's [`Counters`]: a field of the struct that [`counters!`](crate::counters) generates.
#[derive(Debug, Clone)]
pub struct Counter {
    values: Arc<[AtomicU64]>,
    position: usize,
}

impl Counter {
    /// Adds to the counter.
    pub fn add(&self, value: u64) {
        add(&self.values[self.position], value);
    }

    /// Sets the counter.
    pub fn set(&self, value: u64) {
        self.values[self.position].store(value, Ordering::Relaxed);
    }

    /// Present value.
    pub fn get(&self) -> u64 {
        self.values[self.position].load(Ordering::Relaxed)
    }
}

/// Declares a stage's counters: a struct with a [`Counter`] per name, zero by default, and the [`Counters`]
/// for readers. `gauge` marks a counter that may decrease.
///
/// ```
/// grebe_flow::counters! {
///     /// What a server counts.
///     struct Counted { gauge clients, refused_clients }
/// }
///
/// let counted = Counted::default();
/// counted.clients.set(2);
/// counted.refused_clients.add(1);
/// assert_eq!(counted.all().iter().collect::<Vec<_>>(), [("clients", 2), ("refused_clients", 1)]);
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$about:meta])* $vis:vis struct $counted:ident { $($names:tt)* }) => {
        $crate::counters!(@split ($(#[$about])* $vis $counted) [] [] $($names)*);
    };
    (@split $head:tt [$($name:ident)*] [$($gauge:ident)*] gauge $next:ident $(, $($rest:tt)*)?) => {
        $crate::counters!(@split $head [$($name)* $next] [$($gauge)* $next] $($($rest)*)?);
    };
    (@split $head:tt [$($name:ident)*] [$($gauge:ident)*] $next:ident $(, $($rest:tt)*)?) => {
        $crate::counters!(@split $head [$($name)* $next] [$($gauge)*] $($($rest)*)?);
    };
    (@split ($(#[$about:meta])* $vis:vis $counted:ident) [$($name:ident)*] [$($gauge:ident)*]) => {
        $(#[$about])*
        #[derive(Debug, Clone)]
        $vis struct $counted {
            all: $crate::Counters,
            $($vis $name: $crate::Counter,)*
        }

        impl $counted {
            /// All counters, for readers.
            $vis fn all(&self) -> $crate::Counters {
                self.all.clone()
            }
        }

        impl ::std::default::Default for $counted {
            fn default() -> Self {
                let all = $crate::Counters::new(&[$(stringify!($name)),*]).with_gauges(&[$(stringify!($gauge)),*]);
                let mut positions = 0..;
                Self { $($name: all.counter(positions.next().unwrap_or_default()),)* all }
            }
        }
    };
}

/// On separate cache lines, because every stage writes its own for each batch.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct StageCounts {
    pub(crate) frames_in: AtomicU64,
    pub(crate) samples_in: AtomicU64,
    pub(crate) frames_out: AtomicU64,
    pub(crate) samples_out: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) waited_ns: AtomicU64,
    pub(crate) copied_frames: AtomicU64,
    /// Written once per second.
    pub(crate) latency: Mutex<Option<(Latency, LatencyTotals)>>,
    /// End of the stage's output stream, once it has ended.
    pub(crate) end: OnceLock<Header>,
    /// The stage is in its last call.
    pub(crate) is_finishing: AtomicBool,
}

impl StageCounts {
    pub(crate) fn snapshot(&self, name: &str, own: Option<&Counters>) -> StageSnapshot {
        let own_values: Vec<(&'static str, u64)> = own.map(|own| own.iter().collect()).unwrap_or_default();
        let copied =
            own_values.iter().find(|(name, _)| *name == "copied_frames").map_or(0, |&(_, copied)| copied);
        let latency = *self.latency.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        StageSnapshot {
            name: name.to_owned(),
            frames_in: self.frames_in.load(Ordering::Relaxed),
            samples_in: self.samples_in.load(Ordering::Relaxed),
            frames_out: self.frames_out.load(Ordering::Relaxed),
            samples_out: self.samples_out.load(Ordering::Relaxed),
            busy_ns: self.busy_ns.load(Ordering::Relaxed),
            waited_ns: self.waited_ns.load(Ordering::Relaxed),
            copied_frames: self.copied_frames.load(Ordering::Relaxed) + copied,
            latency: latency.map(|(latency, _)| latency),
            latency_totals: latency.map(|(_, totals)| totals),
            own: own_values.into_iter().map(|(name, count)| (name.into(), count)).collect(),
            own_gauges: own.map(|own| own.gauges).into_iter().flatten().map(|&name| name.into()).collect(),
        }
    }
}

/// A counter with one writer needs no locked instruction.
#[inline]
pub(crate) fn add(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
}
