//! A box of time and frequency on the waterfall: its numbers, its actions, and the command that cuts it.

use grebe_scope::Engineering;

use super::action::{Action, AnnotatedPart, BoxDeed, SaveWhat};
use super::annotations::WaterfallMark;
use super::open::Entry;
use super::readout::Row;
use super::view_model::ViewModel;
use crate::data::region::RegionMeasurements;
use crate::data::viewport::Region;
use crate::model::controls::TimeFrequencyBox;

impl ViewModel {
    /// Takes a box that was drawn on the waterfall. Without a height or a width there is none.
    pub(super) fn draw_box(&mut self, part: AnnotatedPart) {
        let Some((from, to, Some((low, high)))) = self.part_of_signal(part) else { return };
        self.set_box([from, to], [low, high]);
    }

    /// The box between the time cursors and the markers of the spectrum, or its visible part.
    fn box_between_marks(&mut self) {
        let Some(samples) = self.between_cursors() else {
            self.act(Action::Cursors);
            return self.say("move the cursors to both ends of the box (, . x), then again".into());
        };
        let (from, to, ..) = self.spectrum_axis(2);
        let markers = self.controls.markers.map(|markers| markers.map(|cycles| self.frequency_of(cycles)));
        let [a, b] = markers.unwrap_or([from, to]);
        self.controls.show.waterfall = true;
        self.set_box(samples, [a.min(b), a.max(b)]);
    }

    fn set_box(&mut self, samples: [u64; 2], frequencies: [f64; 2]) {
        if samples[0] < samples[1] && frequencies[0] < frequencies[1] {
            self.controls.boxed = Some(TimeFrequencyBox { samples, frequencies });
        }
        self.seen.hud_made_ns = 0;
    }

    /// Takes the box of the options, or of a link to a view, once its place is known.
    pub(super) fn take_initial_box(&mut self) {
        let picture = &self.seen.picture;
        let Some(rate_hz) = picture.stream.map(|stream| stream.rate_hz).filter(|rate_hz| *rate_hz > 0.0)
        else {
            return;
        };
        if self.seen.began.0 != picture.streams {
            // Another stream has other indices.
            self.controls.boxed = self.controls.boxed.filter(|_| self.seen.began.0 == 0);
            self.seen.began = (picture.streams, picture.oldest_index);
        }
        if let Some([start, end, low, high]) = self.options.initial.time_frequency_box.take() {
            let index = |time_s: f64| self.seen.began.1 + (time_s * rate_hz).round().max(0.0) as u64;
            self.set_box([index(start), index(end)], [low, high]);
        }
    }

    /// The box in seconds since the first sample, and hertz.
    pub(crate) fn box_place(&self) -> Option<[f64; 4]> {
        let TimeFrequencyBox { samples, frequencies: [low, high], .. } = self.controls.boxed?;
        let rate_hz =
            self.seen.picture.stream.map(|stream| stream.rate_hz).filter(|rate_hz| *rate_hz > 0.0)?;
        let [start, end] = samples.map(|index| index.saturating_sub(self.seen.began.1) as f64 / rate_hz);
        Some([start, end, low, high])
    }

    /// The box for the viewport.
    pub(super) fn region(&self) -> Option<Region> {
        let TimeFrequencyBox { samples: [start, end], frequencies } = self.controls.boxed?;
        self.seen.picture.stream?;
        let channel = self.selected().channel;
        let [low, high] = frequencies.map(|frequency| self.cycles_of(frequency));
        Some(Region { channel, samples: start..end, band: (low, high).into() })
    }

    /// Its measurements, once they are there.
    pub(crate) fn box_measured(&self) -> Option<&RegionMeasurements> {
        let region = self.region()?;
        self.seen.picture.region.as_ref().filter(|measured| measured.region == region)
    }

    /// Moves the box to the burst under it.
    fn snap_box(&mut self) {
        let Some(measured) = self.box_measured() else {
            return self.say("the box is not measured yet".into());
        };
        match measured.burst.clone() {
            Some(Region { samples, band, .. }) => {
                let frequencies = [band.low, band.high].map(|cycles| self.frequency_of(cycles));
                self.set_box([samples.start, samples.end], frequencies);
            }
            None if measured.is_long() => {
                self.say(
                    "a box of more than 1,048,576 samples is not searched: draw a shorter one over the burst"
                        .into(),
                );
            }
            None => self.say("no burst under the box".into()),
        }
    }

    /// Annotates the box; returns whether there is one.
    pub(super) fn annotate_box(&mut self) -> bool {
        let Some(TimeFrequencyBox { samples: [from, to], frequencies: [low, high], .. }) =
            self.controls.boxed
        else {
            return false;
        };
        self.begin_annotation(from, to, Some((low, high)));
        true
    }

    /// One row under [`BOX_COLUMNS`], and the title of the first column; empty without a box.
    pub(crate) fn box_rows(&self) -> (String, Vec<Row>) {
        let Some(TimeFrequencyBox { samples: [start, end], frequencies: [low, high] }) = self.controls.boxed
        else {
            return (String::new(), Vec::new());
        };
        let (rate, unit) = (self.seen.picture.rate_or_one(), self.seen.picture.axis_unit());
        let width = |width: f64| Engineering::new(width, self.frequency_unit()).digits(4).to_string();
        let db = |value: f64, unit: &str| format!("{value:.2} {unit}");
        let peak = self.box_measured().and_then(|it| it.peak);
        let measured = self.box_measured().map(|measured| measured.signal);
        let cell = |words: Option<String>| words.unwrap_or(NOTHING.into());
        let cells =
            vec![
                self.channel_label(self.selected().channel),
                Engineering::new((end - start) as f64 / rate, unit).digits(4).to_string(),
                self.frequency_text((low + high) / 2.0),
                width(high - low),
                cell(measured.and_then(|it| it.channel_power_dbfs).map(|power| db(power, "dBFS"))),
                cell(peak.map(|(_, dbfs)| db(dbfs, "dBFS"))),
                cell(peak.map(|(cycles, _)| self.frequency_words(cycles))),
                cell(measured.and_then(|it| it.channel_snr_db).map(|snr| db(snr, "dB"))),
                cell(measured.and_then(|it| it.occupied).map(|band| {
                    width(band.width() * if self.frequency_unit() == "Hz" { rate } else { 1.0 })
                })),
                self.box_command().unwrap_or(NOTHING.into()),
            ];
        let used = measured.map(|it| it.samples).filter(|used| *used < end - start);
        let title =
            used.map_or("box".into(), |used| format!("box, {} of it", Engineering::new(used as f64, "S")));
        (title, vec![Row { lane: Some(self.channel_lane(self.selected().channel)), cells }])
    }

    /// Searches for bursts in the band of the box, of half to twice its duration.
    fn find_like_box(&mut self) {
        let Some([start, end, low, high]) = self.box_place() else {
            return self.say("a search needs the sample rate of the stream".into());
        };
        let (longer, shorter) = ((end - start) / 2.0, (end - start) * 2.0);
        let [low, high] = [low, high].map(hertz);
        let words = format!("burst --band {low},{high} --longer {longer:.9}s --shorter {shorter:.9}s");
        let told = self.begin_find(&words);
        self.say_refusal(told);
    }

    /// The command that cuts the box out of the recording.
    pub(crate) fn box_command(&self) -> Option<String> {
        let [start, end, low, high] = self.box_place()?;
        let second =
            |second: f64| format!("{second:.9}").trim_end_matches('0').trim_end_matches('.').to_owned();
        let status = (self.options.status)();
        let from = if status.is_recording { quoted(&status.name) } else { "RECORDING".into() };
        let place = [second(start), second(end), hertz(low), hertz(high)].join(",");
        Some(format!("grebe convert {from} box.sigmf-meta --box {place}"))
    }

    /// The box on the waterfall, with its most important numbers.
    pub(super) fn box_mark(&self) -> Option<WaterfallMark> {
        let TimeFrequencyBox { samples, frequencies, .. } = self.controls.boxed?;
        let (rows, parts) = self.waterfall_place(samples, frequencies.map(Some))?;
        let (_, table) = self.box_rows();
        let shown = [1, 2, 3, 4, 7].into_iter().filter_map(|column| {
            let cell = table.first()?.cells.get(column).filter(|cell| *cell != NOTHING)?;
            Some(if column == 7 { format!("SNR {cell}") } else { cell.clone() })
        });
        let words = shown.collect::<Vec<_>>().join(", ");
        Some(WaterfallMark { rows, parts, words, color: None, is_chosen: true })
    }

    /// The box's commands, for lists and buttons.
    pub(super) fn box_entries(&self) -> Vec<Entry> {
        self.box_deeds().into_iter().map(|(text, _)| Entry { text, is_on: false }).collect()
    }

    pub(super) fn choose_box(&mut self, place: usize) {
        if let Some((_, action)) = self.box_deeds().get(place) {
            self.open.list = None;
            self.act(*action);
        }
    }

    fn box_deeds(&self) -> Vec<(String, Action)> {
        let deed = |(words, deed): (&str, BoxDeed)| (words.to_owned(), Action::Box(deed));
        DEEDS.map(deed).into_iter().chain(self.sound_deeds()).collect()
    }

    pub(super) fn act_on_box(&mut self, deed: BoxDeed) {
        match deed {
            BoxDeed::BetweenMarks => self.box_between_marks(),
            BoxDeed::Remove => self.controls.boxed = None,
            _ if self.controls.boxed.is_none() => {
                self.say("no box yet: draw one on the waterfall with shift, or between the cursors".into());
            }
            BoxDeed::Snap => self.snap_box(),
            BoxDeed::Annotate => drop(self.annotate_box()),
            BoxDeed::Cut => self.begin_save(SaveWhat::Box),
            BoxDeed::Listen => self.listen(),
            BoxDeed::ListenLive => self.listen_live(),
            BoxDeed::FindLike => self.find_like_box(),
        }
    }
}

/// A frequency as in a command: `433.92M`.
fn hertz(hertz: f64) -> String {
    Engineering::new(hertz, "").digits(12).to_string().replace(' ', "")
}

/// A path as a word of a shell.
fn quoted(path: &str) -> String {
    let path = path.strip_prefix("file:").unwrap_or(path);
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-+:@%=".contains(it);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Columns of the box's numbers; the first has a title of its own.
pub(crate) const BOX_COLUMNS: [&str; 9] =
    ["duration", "centre", "bandwidth", "power", "peak", "at", "SNR", "occupied 99 %", "cut by"];
const DEEDS: [(&str, BoxDeed); 6] = [
    ("new, between the cursors and markers", BoxDeed::BetweenMarks),
    ("snap to the burst under it", BoxDeed::Snap),
    ("annotate it  (F2)", BoxDeed::Annotate),
    ("cut it into a recording", BoxDeed::Cut),
    ("find the like", BoxDeed::FindLike),
    ("remove it  (esc)", BoxDeed::Remove),
];
const NOTHING: &str = "\u{2013}";

#[cfg(test)]
mod tests;
