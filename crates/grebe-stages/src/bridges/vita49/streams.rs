//! Contexts of the streams on a port, and the selected stream.

use std::sync::Arc;

use grebe_frame::{ClockReading, Description};
use serde_json::{Map, Value};

use super::class::Class;
use super::context::SignalContext;
use super::stamp::Stamp;

/// The known streams.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// By stream identifier.
    contexts: Vec<(u32, SignalContext)>,
    /// Other streams of samples than the selected one.
    others: Vec<u32>,
}

impl Streams {
    /// Handles a context packet of a stream.
    pub(crate) fn take(&mut self, stream_id: u32, context: &SignalContext) {
        if let Some((_, known)) = self.contexts.iter_mut().find(|(id, _)| *id == stream_id) {
            known.hear(context);
        } else if self.contexts.len() < STREAMS_MAX {
            self.contexts.push((stream_id, *context));
        }
    }

    /// The context of a stream. Without an identifier, the first context received.
    pub(crate) fn of(&self, stream_id: Option<u32>) -> Option<&SignalContext> {
        let mut contexts = self.contexts.iter();
        let found = match stream_id {
            Some(stream_id) => contexts.find(|(id, _)| *id == stream_id),
            None => contexts.next(),
        };
        found.map(|(_, context)| context)
    }

    /// Notes a packet of another stream. Returns whether it is that stream's first.
    pub(crate) fn note_other(&mut self, stream_id: u32) -> bool {
        let is_new = self.others.len() < STREAMS_MAX && !self.others.contains(&stream_id);
        if is_new {
            self.others.push(stream_id);
        }
        is_new
    }

    /// Number of other streams of samples.
    pub(crate) fn others(&self) -> usize {
        self.others.len()
    }

    /// Forgets all streams, for a new sender.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Description of the stream from `first_sample_index` on. `stamp` is that of a packet of samples.
    pub(crate) fn describe(
        &self,
        stream_id: Option<u32>,
        class: Option<Class>,
        stamp: &Stamp,
        first_sample_index: u64,
    ) -> Arc<Description> {
        let context = self.of(stream_id).copied().unwrap_or_default();
        let flavour = class.map_or_else(|| "VITA-49 (no class)".to_owned(), |class| class.to_string());
        let stream = stream_id.map_or_else(|| "without an identifier".to_owned(), |id| format!("0x{id:08x}"));
        let mut rest = Map::new();
        if let Some(level) = context.reference_level_dbm {
            rest.insert(REFERENCE_LEVEL.to_owned(), Value::from(level));
        }
        if !self.others.is_empty() {
            let others: Vec<Value> =
                self.others.iter().map(|id| Value::from(format!("0x{id:08x}"))).collect();
            rest.insert("grebe:vita49_other_streams".to_owned(), Value::from(others));
        }
        Arc::new(Description {
            first_sample_index,
            centre_frequency_hz: context.centre_frequency_hz(),
            bandwidth_hz: context.bandwidth_hz,
            gain_db: context.gain_db,
            hardware: Some(format!("{flavour}, stream {stream}, {stamp}")),
            // Frames carry the packets' own time.
            clock: stamp.unix_time_ns().map(|time_ns| ClockReading {
                producer_ts_ns: time_ns,
                unix_time_ns: time_ns as i64,
                error_ns: None,
                clock: None,
            }),
            rest,
            ..Description::default()
        })
    }
}

/// Description key of the power of a full-scale sine, in dBm.
pub(crate) const REFERENCE_LEVEL: &str = "grebe:reference_level_dbm";
/// Limits the memory for invented identifiers.
const STREAMS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_its_context_and_none_of_them_fills_memory() {
        let mut streams = Streams::default();
        for id in 0..1_000 {
            streams.take(id, &SignalContext { gain_db: Some(f64::from(id)), ..Default::default() });
            streams.take(id, &SignalContext { bandwidth_hz: Some(5.0), ..Default::default() });
            streams.note_other(id);
        }
        assert_eq!(streams.of(Some(7)).map(|it| (it.gain_db, it.bandwidth_hz)), Some((Some(7.0), Some(5.0))));
        assert_eq!(streams.of(None).and_then(|it| it.gain_db), Some(0.0));
        assert_eq!((streams.of(Some(999)), streams.others()), (None, STREAMS_MAX));
        assert!(!streams.note_other(3));
    }

    #[test]
    fn a_stream_is_called_by_its_profile() {
        let mut streams = Streams::default();
        streams.take(
            9,
            &SignalContext {
                rf_reference_hz: Some(1e9),
                reference_level_dbm: Some(-10.0),
                ..Default::default()
            },
        );
        let stamp = Stamp::at(super::super::stamp::Seconds::Utc, 1_700_000_000, 0);
        let described = streams.describe(Some(9), Some(Class::DIFI_DATA), &stamp, 5);
        assert_eq!(
            described.hardware.as_deref(),
            Some("DIFI (class 6A-62-1E 0000:0000), stream 0x00000009, UTC in picoseconds")
        );
        assert_eq!((described.centre_frequency_hz, described.first_sample_index), (Some(1e9), 5));
        assert_eq!(described.rest[REFERENCE_LEVEL], -10.0);
        let nothing = streams.describe(None, None, &Stamp::default(), 0);
        assert_eq!(
            nothing.hardware.as_deref(),
            Some("VITA-49 (no class), stream without an identifier, no clock")
        );
        assert_eq!(nothing.clock, None);
    }
}
