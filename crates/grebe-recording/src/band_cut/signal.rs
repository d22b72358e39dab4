//! Recordings one behind the other as one signal, in which gaps take their time.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::error::Error;
use crate::sample_file::{Annotation, Block, RecordedAt, SampleFile};

/// Recordings as one signal. Its samples count from its first one, missing ones included.
#[derive(Debug)]
pub(super) struct Signal {
    pub(super) files: Vec<SampleFile>,
    pub(super) stretches: Vec<Stretch>,
}

/// Samples without a gap, with one centre frequency.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) centre_hz: Option<f64>,
    pieces: Vec<Piece>,
}

/// A part of a stretch in a file.
#[derive(Debug)]
struct Piece {
    file: usize,
    /// In the file.
    position: u64,
    /// In the signal.
    begin: u64,
    length: u64,
}

impl Signal {
    /// The recordings must be of one kind and rate.
    pub(super) fn new(files: Vec<SampleFile>) -> Self {
        let mut stretches: Vec<Stretch> = Vec::new();
        let (mut at, mut index) = (0u64, None);
        for (file, recording) in files.iter().enumerate() {
            for segment in recording.segments() {
                let missing = index.and_then(|index| segment.first_sample_index.checked_sub(index));
                // Another stream follows at once, which does not continue this one.
                let follows = missing == Some(0);
                at = at.saturating_add(missing.unwrap_or(0));
                index = Some(segment.first_sample_index + segment.length_samples);
                let mut position = segment.position;
                while position < segment.end() {
                    let centre_hz = recording.description(position).and_then(|it| it.centre_frequency_hz);
                    let length = recording.described_samples(position).min(segment.end() - position);
                    let piece = Piece { file, position, begin: at, length };
                    position += length;
                    at = at.saturating_add(length);
                    match stretches.last_mut() {
                        Some(last)
                            if last.centre_hz == centre_hz
                                && (follows || position - length > segment.position) =>
                        {
                            last.end = at;
                            last.pieces.push(piece);
                        }
                        _ => stretches.push(Stretch {
                            begin: piece.begin,
                            end: at,
                            centre_hz,
                            pieces: vec![piece],
                        }),
                    }
                }
            }
        }
        Self { files, stretches }
    }

    /// Samples, missing ones included.
    pub(super) fn len_samples(&self) -> u64 {
        self.stretches.last().map_or(0, |stretch| stretch.end)
    }

    /// File and position of a sample, which is there.
    pub(super) fn place(&self, sample: u64) -> (usize, u64) {
        let stretch = self.stretches.partition_point(|stretch| stretch.begin <= sample).saturating_sub(1);
        let pieces = &self.stretches[stretch].pieces;
        let piece = &pieces[pieces.partition_point(|piece| piece.begin <= sample).saturating_sub(1)];
        (piece.file, piece.position + (sample - piece.begin))
    }

    /// The annotations of these samples, with their place in the signal.
    pub(super) fn labels(&self, samples: Range<u64>) -> Vec<(Range<u64>, Map<String, Value>)> {
        let mut labels = Vec::new();
        for piece in self.stretches.iter().flat_map(|stretch| &stretch.pieces) {
            for Annotation { position, length_samples, fields } in self.files[piece.file].annotations() {
                if !(piece.position..piece.position + piece.length).contains(position) {
                    continue;
                }
                let begin = piece.begin + (position - piece.position);
                let end = begin.saturating_add(*length_samples);
                if begin < samples.end && end.max(begin + 1) > samples.start {
                    labels.push((begin..end, fields.clone()));
                }
            }
        }
        labels
    }

    /// When a moment behind a sample was recorded, where the files say so.
    pub(super) fn recorded_at(&self, sample: u64, rest_ns: u64) -> Option<RecordedAt> {
        let (file, position) = self.place(sample);
        let recording = &self.files[file];
        let time = recording.time_at(position)?.checked_add(Duration::from_nanos(rest_ns))?;
        let axis = recording.axis_at(position).map(|axis| axis.after(rest_ns as i64));
        Some(RecordedAt { time, error_ns: recording.segment_at(position).recorded_error_ns, axis })
    }

    /// Calls `work` with the blocks of these samples of a stretch.
    ///
    /// # Errors
    /// Those of reading, and of `work`.
    pub(super) fn read(
        &mut self,
        stretch: usize,
        samples: Range<u64>,
        mut work: impl FnMut(&Block<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for piece in &self.stretches[stretch].pieces {
            let begin = samples.start.clamp(piece.begin, piece.begin + piece.length);
            let end = samples.end.clamp(begin, piece.begin + piece.length);
            let file = &mut self.files[piece.file];
            let (mut position, end) =
                (piece.position + (begin - piece.begin), piece.position + (end - piece.begin));
            if position < end {
                file.expect(position..end, false);
            }
            while position < end {
                let length = file.block_samples().min(end - position);
                work(&file.block(position, length as usize)?)?;
                position += length;
            }
        }
        Ok(())
    }
}
