//! The recording that a box becomes.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use grebe_frame::{Complex, Description, SampleFormat};
use grebe_process::{BandFilter, Cutter};
use serde_json::{Map, Value, json};

use super::boxes::{BoxCut, CutBox};
use super::signal::Signal;
use crate::error::Error;
use crate::sample_file::RecordedAt;
use crate::sigmf::{SigmfSettings, SigmfWriter};

/// Samples of the signal, and the fields of a label there.
pub(super) type Label = (Range<u64>, Map<String, Value>);

/// The recording of a box, while it is written.
pub(super) struct Output {
    wanted: CutBox,
    /// In the signal.
    range: Range<u64>,
    to: PathBuf,
    labels: Vec<Label>,
    /// Name of the recording that is cut, and the number of its first sample.
    source: (String, u64),
    writer: Option<SigmfWriter>,
    place: Option<Place>,
    cut: BoxCut,
}

/// Where the next samples belong.
struct Place {
    filter: BandFilter,
    next: i64,
    /// Of the samples that come first.
    recorded_at: Option<RecordedAt>,
    /// None once the writer has it.
    description: Option<Arc<Description>>,
}

/// The outputs of a filter in a range of the signal: the first one, and the one after the last.
pub(super) fn outputs_of(filter: &BandFilter, range: &Range<u64>) -> [i64; 2] {
    [range.start, range.end].map(|at| filter.grid().first_at(at as i64))
}

impl Output {
    pub(super) fn new(
        wanted: CutBox,
        range: Range<u64>,
        to: PathBuf,
        outside_samples: u64,
        signal: &Signal,
        source: (String, u64),
    ) -> Self {
        let labels = signal.labels(range.clone());
        let cut = BoxCut { outside_samples, ..BoxCut::default() };
        Self { wanted, range, to, labels, source, writer: None, place: None, cut }
    }

    /// The next output belongs to these samples of the signal.
    pub(super) fn follow(
        &mut self,
        filter: &BandFilter,
        next: i64,
        held: &Range<u64>,
        description: Arc<Description>,
        signal: &Signal,
    ) {
        let grid = filter.grid();
        let (whole, rest) = grid.position(next);
        let rate_hz = signal.files[0].rate_hz().unwrap_or(0.0);
        let recorded_at = u64::try_from(whole)
            .ok()
            .filter(|whole| held.contains(whole))
            .and_then(|whole| signal.recorded_at(whole, (rest / rate_hz * 1e9).round() as u64));
        let reach = (filter.edge_samples() as f64 * grid.spacing()) as i64;
        let [first, last] = outputs_of(filter, &self.range);
        let settled = grid.first_at(held.start as i64 + reach).clamp(next, last.max(next));
        if self.writer.is_none() {
            let is_cut_off = held.start > 0 || self.range.start < reach as u64;
            self.cut.edge_samples.0 = if is_cut_off { (settled - next.max(first)) as u64 } else { 0 };
        }
        let unsettled = grid.first_at(held.end as i64 - reach).clamp(next, last.max(next));
        self.cut.edge_samples.1 = (last - unsettled) as u64;
        self.cut.rate_hz = filter.rate_hz();
        let filter = filter.clone();
        self.place = Some(Place { filter, next, recorded_at, description: Some(description) });
    }

    /// Writes what was made of its band.
    pub(super) fn take(&mut self, cutters: &mut [Cutter], band: usize) -> Result<(), Error> {
        let Some(place) = &mut self.place else { return Ok(()) };
        let count = cutters.first_mut().map_or(0, |cutter| cutter.made(band).len() / 2);
        if count == 0 {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let settings = SigmfSettings {
                    format: SampleFormat::Cf32,
                    channels: cutters.len(),
                    sample_rate_hz: place.filter.rate_hz(),
                    buffer_bytes: BUFFER_BYTES,
                    checksum: false,
                    summary: false,
                    ..SigmfSettings::default()
                };
                self.writer.insert(SigmfWriter::create(&self.to, &settings)?)
            }
        };
        if let Some(description) = place.description.take() {
            writer.describe(Some(Arc::new(Description {
                centre_frequency_hz: Some(self.wanted.centre_hz),
                bandwidth_hz: Some(self.wanted.bandwidth_hz),
                ..(*description).clone()
            })));
        }
        let channels: Vec<&[Complex<f32>]> =
            cutters.iter_mut().map(|cutter| bytemuck::cast_slice(cutter.made(band))).collect();
        let recorded_at = place.recorded_at.take();
        writer.write_recorded(place.next as u64, &channels, recorded_at)?;
        cutters.iter_mut().for_each(|cutter| cutter.made(band).clear());
        place.next += count as i64;
        self.cut.samples += count as u64;
        if place.next >= outputs_of(&place.filter, &self.range)[1] {
            self.close()?;
        }
        Ok(())
    }

    /// Counts the samples that are not finite among these of one channel, whose first one has this index.
    #[cold]
    pub(super) fn count_invalid(&mut self, first: u64, numbers: &[f32], components: usize) {
        let invalid = numbers.chunks_exact(components).zip(first..).filter(|(sample, index)| {
            self.range.contains(index) && !sample.iter().all(|number| Cutter::is_valid(*number))
        });
        self.cut.invalid_samples += invalid.count() as u64;
    }

    /// Ends the recording; what became of the box.
    pub(super) fn finish(mut self) -> Result<BoxCut, Error> {
        self.close()?;
        Ok(self.cut)
    }

    fn close(&mut self) -> Result<(), Error> {
        let (Some(mut writer), Some(place)) = (self.writer.take(), &self.place) else { return Ok(()) };
        let grid = place.filter.grid();
        let [first, last] = outputs_of(&place.filter, &self.range);
        writer.annotate_with(first.max(0) as u64, (last - first) as u64, self.fields(&place.filter))?;
        for (samples, fields) in self.labels.iter().filter(|(_, fields)| self.is_within(fields)) {
            let at = |sample: u64| grid.first_at(sample.clamp(self.range.start, self.range.end) as i64);
            let (begin, end) = (at(samples.start).min(last - 1), at(samples.end));
            let length = if samples.is_empty() { 0 } else { (end - begin).max(1) };
            writer.annotate_with(begin.max(0) as u64, length as u64, fields.clone())?;
        }
        writer.finish()?;
        Ok(())
    }

    /// Whether a label has no frequencies, or some of the band.
    fn is_within(&self, fields: &Map<String, Value>) -> bool {
        let edge_hz = |name: &str| fields.get(name).and_then(Value::as_f64);
        let (low_hz, high_hz) = self.edges_hz();
        edge_hz("core:freq_lower_edge").is_none_or(|edge_hz| edge_hz < high_hz)
            && edge_hz("core:freq_upper_edge").is_none_or(|edge_hz| edge_hz > low_hz)
    }

    fn edges_hz(&self) -> (f64, f64) {
        let CutBox { centre_hz, bandwidth_hz, .. } = self.wanted;
        (centre_hz - bandwidth_hz / 2.0, centre_hz + bandwidth_hz / 2.0)
    }

    /// Source, place and filter, as an annotation.
    fn fields(&self, filter: &BandFilter) -> Map<String, Value> {
        let (low_hz, high_hz) = self.edges_hz();
        let (source, first) = &self.source;
        let (start, end) = (first + self.range.start, first + self.range.end);
        let (before, after) = self.cut.edge_samples;
        let edges = match (before, after) {
            (0, 0) => "its edges are whole".to_owned(),
            (before, 0) => format!("zeros reach into its first {before} samples"),
            (0, after) => format!("zeros reach into its last {after} samples"),
            (before, after) => format!("zeros reach into its first {before} and last {after} samples"),
        };
        let half_hz = self.wanted.bandwidth_hz / 2.0;
        let comment = format!(
            "cut from {source}, samples {start} to {end}; flat to {half_hz} Hz from the centre, 80 dB down from {} Hz, no delay; {edges}",
            filter.stop_hz(),
        );
        let fields = json!({
            "core:label": "cut",
            "core:comment": comment,
            "core:generator": "grebe",
            "core:freq_lower_edge": low_hz,
            "core:freq_upper_edge": high_hz,
        });
        if let Value::Object(fields) = fields { fields } else { Map::new() }
    }
}

/// Boxes are small, and many may be written at once.
const BUFFER_BYTES: usize = 4 << 20;
