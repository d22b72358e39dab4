//! Signal measurements of the channels, as rows of a table.

use grebe_scope::Engineering;

use crate::data::signal::SignalMeasurements;
use crate::model::levels::LEVEL_UNIT;
use crate::model::readout::Row;
use crate::model::view_model::ViewModel;

impl ViewModel {
    /// One row per channel, under [`SIGNAL_COLUMNS`]; empty without measurements or without a spectrum.
    pub(crate) fn signal_rows(&self) -> Vec<Row> {
        self.seen.picture.signals.iter().map(|measured| self.signal_row(measured)).collect()
    }

    fn signal_row(&self, measured: &SignalMeasurements) -> Row {
        let rate_hz = self.seen.picture.stream.map_or(0.0, |stream| stream.rate_hz);
        let db =
            |value: Option<f64>, unit| value.map_or(NOTHING.into(), |value| format!("{value:.2} {unit}"));
        let width = measured.occupied.map(|band| match rate_hz > 0.0 {
            true => Engineering::new(band.width() * rate_hz, "Hz").digits(4).to_string(),
            false => format!("{:.5} c/S", band.width()),
        });
        let centre = measured.occupied.map(|band| self.frequency_words(band.center()));
        let tone = measured.tone;
        let cells = vec![
            self.channel_label(measured.channel),
            db(measured.power_dbfs, LEVEL_UNIT),
            db(measured.peak_to_average_db, "dB"),
            db(measured.channel_power_dbfs, LEVEL_UNIT),
            db(measured.channel_snr_db, "dB"),
            width.unwrap_or(NOTHING.into()),
            centre.unwrap_or(NOTHING.into()),
            db(tone.map(|tone| tone.snr_db), "dB"),
            db(tone.map(|tone| tone.sinad_db), "dB"),
            db(tone.and_then(|tone| tone.thd_db), "dB"),
            tone.map_or(NOTHING.into(), |tone| format!("{:.2}", tone.enob)),
        ];
        Row { lane: Some(self.channel_lane(measured.channel)), cells }
    }
}

/// Of the whole signal, of the visible part of the spectrum, and of its highest tone.
pub(crate) const SIGNAL_COLUMNS: [&str; 11] = [
    "",
    "power",
    "peak/average",
    "shown band",
    "its SNR",
    "occupied 99 %",
    "around",
    "tone SNR",
    "SINAD",
    "THD",
    "ENOB",
];
const NOTHING: &str = "\u{2013}";
