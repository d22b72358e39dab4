//! Saves files: the picture, samples and measurements as CSV, a recording.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use grebe_scope::{Quantity, Running};

use crate::data::descriptions::Descriptions;
use crate::data::extract::Extract;
use crate::data::lane::LaneId;
use crate::data::viewport::Region;
use crate::model::action::SaveWhat;
use crate::model::controls::TimeFrequencyBox;
use crate::model::open::ExtractReason;
use crate::model::options::CutBand;
use crate::model::readout::unit_of;
use crate::model::seen::stream_words::utc_name;
use crate::model::view_model::ViewModel;

impl ViewModel {
    /// Saves pictures and tables at once; samples are first requested from the history.
    pub(super) fn begin_save(&mut self, what: SaveWhat) {
        match what {
            SaveWhat::Picture => {
                let (width, height) = self.options.png_size;
                let drawn = (self.draw_png)(self, width, height).map_err(|error| error.to_string());
                let saved = drawn.and_then(|bytes| self.save_as("png", |file| file.write_all(&bytes)));
                self.say_saved(saved);
            }
            SaveWhat::Measurements if self.seen.picture.measured.is_empty() => {
                self.say("nothing is measured: switch measurements on first (v)".into());
            }
            SaveWhat::Measurements => {
                let text = self.measurements_csv();
                self.say_saved(self.save_as("csv", |file| file.write_all(text.as_bytes())));
            }
            SaveWhat::Box if self.options.export.is_none() => {
                self.say("nothing can be cut from here: run the command beside the box".into());
            }
            SaveWhat::Recording if self.options.export.is_none() => {
                self.say("recordings cannot be saved from here".into());
            }
            SaveWhat::Last | SaveWhat::Screen => self.begin_keep(what),
            SaveWhat::Box => {
                let Some(Region { samples, band, .. }) = self.region() else { return };
                self.open.asked = Some(ExtractReason::Save(what));
                // The filter needs what is beside the box.
                let reach = (FILTER_REACH / band.width()).min(FILTER_SAMPLES_MAX) as u64;
                self.link.request_extract(samples.start.saturating_sub(reach)..samples.end + reach);
            }
            SaveWhat::Samples | SaveWhat::Recording => {
                self.open.asked = Some(ExtractReason::Save(what));
                let (left, right) =
                    (self.seen.picture.left_index.max(0.0), self.seen.picture.right_index().max(0.0));
                self.link.request_extract(left as u64..right as u64);
            }
        }
    }

    /// Saves samples that arrived from the history.
    pub(super) fn end_save(&mut self, what: SaveWhat, extract: &Extract) {
        let saved = match what {
            // The history no longer holds these samples, so save the drawn extremes.
            SaveWhat::Samples if extract.len_samples() == 0 => {
                self.save_as("csv", |file| self.write_columns(file))
            }
            SaveWhat::Samples => self.save_as("csv", |file| self.write_samples(file, extract)),
            _ if extract.len_samples() == 0 => {
                Err("the history holds no single samples of this stretch".into())
            }
            _ => {
                let band = if what == SaveWhat::Box { self.band_to_cut() } else { None };
                match (&self.options.export, &band) {
                    (None, _) => return,
                    (_, Some(band)) if extract.range.start > band.samples.start => {
                        Err("the box has more samples than can be held at once: use the command beside it"
                            .into())
                    }
                    (Some(export), _) => {
                        let path = self.free_path("sigmf-meta");
                        path.and_then(|path| export(&path, &self.told(extract), band))
                    }
                }
            }
        };
        match saved {
            Ok(path) if extract.is_rounded() => {
                let path = std::path::absolute(&path).unwrap_or(path);
                let format = extract.format;
                self.say(format!("saved {}: its samples of {format} are rounded to 24 bits", path.display()));
            }
            saved => self.say_saved(saved),
        }
    }

    fn band_to_cut(&self) -> Option<CutBand> {
        let TimeFrequencyBox { samples: [start, end], frequencies: [low_hz, high_hz] } =
            self.controls.boxed?;
        Some(CutBand { samples: start..end, low_hz, high_hz })
    }

    /// Adds the description from the picture to samples of another host, which come without one.
    fn told<'a>(&self, extract: &'a Extract) -> Cow<'a, Extract> {
        if !extract.descriptions.is_empty() {
            return Cow::Borrowed(extract);
        }
        let annotations: Vec<_> = self.seen.picture.annotations.iter().map(|it| (**it).clone()).collect();
        let mut told = Descriptions::default();
        told.take_all(self.seen.picture.description.as_slice(), &annotations);
        Cow::Owned(extract.clone().told(&told, &self.seen.picture.newest_header()))
    }

    fn say_saved(&mut self, saved: Result<PathBuf, String>) {
        self.say(match saved {
            // The whole path, because the person may not know the current folder.
            Ok(path) if self.options.store.is_some() => format!("saved {}", path.display()),
            Ok(path) => format!("saved {}", std::path::absolute(&path).unwrap_or(path).display()),
            Err(why) => format!("not saved: {why}"),
        });
    }

    /// Writes a new file; removes it if that fails.
    fn save_as(
        &self,
        extension: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, String> {
        if let Some(store) = &self.options.store {
            let mut bytes = Vec::new();
            write(&mut bytes).map_err(|error| error.to_string())?;
            let name = format!("grebe.{extension}");
            return store(&name, bytes).map(|()| name.into());
        }
        let path = self.free_path(extension)?;
        let failed = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let mut file = BufWriter::new(fs::File::create_new(&path).map_err(failed)?);
        let written = write(&mut file).and_then(|()| file.flush());
        if let Err(error) = written {
            let _ = fs::remove_file(&path);
            return Err(failed(error));
        }
        Ok(path)
    }

    /// A free path such as `udp_5000_20261127T215400Z.csv`: the source, and the time of the left edge, if known.
    fn free_path(&self, extension: &str) -> Result<PathBuf, String> {
        let folder = &self.options.folder;
        let source = file_name(&self.seen.hud.source);
        let first = self.seen.picture.left_index.max(self.seen.picture.oldest_index as f64);
        let stem = match utc_name(&self.seen.picture, first) {
            Some(time) => format!("{source}_{time}"),
            None => source,
        };
        let name = |number: u32| if number == 1 { stem.clone() } else { format!("{stem}-{number}") };
        let taken = |number: &u32| {
            // A recording of several channels consists of files with other names.
            ["png", "csv", "sigmf-meta", "sigmf-collection"]
                .iter()
                .any(|extension| folder.join(format!("{}.{extension}", name(*number))).exists())
        };
        let number = (1..10_000).find(|number| !taken(number));
        let number = number.ok_or("10,000 files exist already: remove some")?;
        Ok(folder.join(format!("{}.{extension}", name(number))))
    }

    fn write_samples(&self, file: &mut dyn Write, extract: &Extract) -> io::Result<()> {
        let rate_hz = extract.rate_hz;
        let (start, unit) = (self.controls.time.start(&self.seen.picture), self.seen.picture.axis_unit());
        let setups: Vec<_> = extract.lanes.iter().map(|&lane| self.setup(lane)).collect();
        let names = extract.lanes.iter().zip(&setups);
        let names: Vec<_> = names.map(|(&lane, setup)| heading(&setup.label(lane), &setup.unit)).collect();
        writeln!(file, "sample,time ({unit}),{}", names.join(","))?;
        let seconds = |index: u64| {
            (index as f64 - self.seen.picture.left_index) / if rate_hz > 0.0 { rate_hz } else { 1.0 } + start
        };
        for run in &extract.runs {
            for place in 0..run.samples.len() {
                let index = run.first_sample_index + place as u64;
                write!(file, "{index},{}", plain(seconds(index)))?;
                for (lane, setup) in setups.iter().enumerate() {
                    let value = run.samples.value(lane, place).map(|sample| plain(setup.value(sample)));
                    write!(file, ",{}", value.unwrap_or_default())?;
                }
                writeln!(file)?;
            }
        }
        Ok(())
    }

    fn write_columns(&self, file: &mut dyn Write) -> io::Result<()> {
        let (start, end, _) = self.axis();
        let setups: Vec<_> = self.seen.picture.lanes.iter().map(|data| self.setup(data.lane)).collect();
        write!(file, "time ({})", self.seen.picture.axis_unit())?;
        for (data, setup) in self.seen.picture.lanes.iter().zip(&setups) {
            let heading = |end: &str| heading(&format!("{} {end}", setup.label(data.lane)), &setup.unit);
            write!(file, ",{},{}", heading("min"), heading("max"))?;
        }
        writeln!(file)?;
        let count = self.seen.picture.lanes.first().map_or(0, |data| data.columns.len());
        for place in 0..count {
            write!(file, "{}", plain(start + (end - start) * place as f64 / count as f64))?;
            for (data, setup) in self.seen.picture.lanes.iter().zip(&setups) {
                match data.columns.get(place).filter(|column| !column.is_empty()) {
                    Some(column) => {
                        let (a, b) = (setup.value(column.min.into()), setup.value(column.max.into()));
                        write!(file, ",{},{}", plain(a.min(b)), plain(a.max(b)))?;
                    }
                    None => write!(file, ",,")?,
                }
            }
            writeln!(file)?;
        }
        Ok(())
    }

    fn measurements_csv(&self) -> String {
        let mut lines = vec!["channel,quantity,unit,value,min,max,mean,deviation,count".to_owned()];
        let cell = |value: Option<f64>| value.map_or(String::new(), plain);
        let mut line =
            |lane: LaneId, quantity: &str, unit: &str, value: Option<f64>, over: &[Option<f64>; 4], count| {
                let name = quoted(&self.setup(lane).label(lane));
                let over = over.map(cell).join(",");
                lines.push(format!("{name},{quantity},{},{},{over},{count}", quoted(unit), cell(value)));
            };
        let over = |of: &Running| [of.min(), of.max(), of.mean(), of.deviation()];
        for measured in &self.seen.picture.measured {
            let unit = self.setup(measured.lane).unit;
            for quantity in Quantity::ALL {
                let none = Running::default();
                let running = self.seen.statistics.get(measured.lane).map_or(&none, |it| it.get(quantity));
                let (value, unit) = (self.measured_value(measured, quantity), unit_of(quantity, &unit));
                line(measured.lane, quantity.name(), unit, value, &over(running), running.count());
            }
        }
        if let Some(trigger) = self.seen.picture.trigger {
            let (rate, unit) = (trigger.rate, self.seen.picture.axis_unit());
            let (lane, count) = (trigger.settings.lane, rate.intervals.count());
            line(lane, "trigger interval", unit, None, &over(&rate.intervals), count);
            if unit == "s" {
                line(lane, "trigger rate", "Hz", rate.rate_hz(), &[None; 4], count);
            }
            if let Some(per_minute) = rate.per_minute().filter(|_| unit == "s") {
                line(lane, "trigger rate", "1/min", Some(per_minute), &[None; 4], count);
            }
        }
        lines.join("\n") + "\n"
    }
}

/// A file name for a source: the stream's name, or the last part of its path or URI, with portable letters.
fn file_name(source: &str) -> String {
    let name = source.split(" \u{b7} ").next().unwrap_or_default();
    let name = name.strip_prefix("file:").unwrap_or(name);
    let is_path = !name.contains(':') && name.contains(['/', '.', '\\']);
    let path = Path::new(name);
    let last = if is_path { path.file_stem().and_then(OsStr::to_str).unwrap_or(name) } else { name };
    let parts = last.split(|letter: char| !(letter.is_alphanumeric() || "-_.".contains(letter)));
    let plain: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let plain: String = plain.join("_").chars().take(FILE_NAME_MAX).collect();
    let plain = plain.trim_matches(['.', '_']);
    if plain.is_empty() { "grebe".to_owned() } else { plain.to_owned() }
}

const FILE_NAME_MAX: usize = 60;
/// Samples beside a box that a filter may need, times its bandwidth as a part of the rate.
const FILTER_REACH: f64 = 256.0;
const FILTER_SAMPLES_MAX: f64 = 1e6;

fn heading(name: &str, unit: &str) -> String {
    quoted(&if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") })
}

/// A CSV field, in quotes if necessary.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// The shortest number that is equal to nine digits.
fn plain(value: f64) -> String {
    let digits = format!("{value:.8e}");
    digits.parse::<f64>().map_or(digits, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_after_their_source() {
        for (source, name) in [
            ("udp://:5000", "udp_5000"),
            ("/data/night/run7.sigmf-meta", "run7"),
            ("file:/data/night/run7.sigmf-meta", "run7"),
            ("synth:sine?rate=10k", "synth_sine_rate_10k"),
            ("ECG lead II \u{b7} shm://ward", "ECG_lead_II"),
            ("../..", "grebe"),
            ("", "grebe"),
        ] {
            assert_eq!(file_name(source), name, "{source}");
        }
    }
}
