//! Sound of boxes of a recording or a stream, as `grebe play --demodulate --box` plays it.
//!
//! The thread of a sound has the lowest priority. All sounds of a source together use at most one processor.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use grebe_flow::StageBench;
use grebe_frame::{Batch, BatchPool, Header};
use grebe_recording::{Block, SampleFile, ring_parts};
use grebe_scope::Engineering;
use grebe_view::{HeardBox, Listener, Listening, ListeningSide, ScopeLink, Sound};

use super::box_sound::{demodulator, sound_sample};
use super::held::{BLOCK_SAMPLES, Frames, Held, lend, lower_priority, parts_of, ring_of, within};
use super::{RingSaver, speaker};
use crate::cli::MODES;
use crate::search::Signal;

impl Held {
    /// Makes sound of this source.
    pub(crate) fn listener(self) -> Listener {
        let turn = Arc::new(Mutex::new(()));
        let modulations = MODES.map(|(name, _, mode)| (name.to_uppercase(), mode.bandwidth_hz()));
        let live = match &self {
            Self::Stream(link, _) => Some((link.clone(), Arc::new(()))),
            Self::File(_) | Self::Ring(_) => None,
        };
        let listener = Listener::new(modulations.to_vec(), move |heard| {
            let (side, listening) = Listening::begin();
            let (held, turn) = (self.clone(), Arc::clone(&turn));
            let make = move || {
                lower_priority();
                let sound = SoundMaker::new(&heard, &side, &turn).and_then(|maker| maker.make(&held));
                side.end(sound.map_err(|error| format!("{error:#}")));
            };
            // Without a thread, the side reports that nothing came.
            let _ = std::thread::Builder::new().name("grebe-listen".into()).spawn(make);
            listening
        });
        match live {
            Some((link, turn)) => {
                listener.with_live(move |heard, tell| speaker::tell_live(&link, &heard, tell, &turn))
            }
            None => listener,
        }
    }
}

/// The sound of one box.
struct SoundMaker<'a> {
    heard: &'a HeardBox,
    side: &'a ListeningSide,
    turn: &'a Mutex<()>,
    stage: StageBench,
    rate_hz: f64,
    pool: BatchPool,
    /// The audible part of the box.
    range: Range<u64>,
    /// Index of the first sample of sound, and the samples from it on.
    first: Option<u64>,
    samples: Vec<i16>,
    /// Samples of the signal that became sound.
    taken: u64,
}

impl<'a> SoundMaker<'a> {
    fn new(heard: &'a HeardBox, side: &'a ListeningSide, turn: &'a Mutex<()>) -> Result<Self> {
        let (rate_hz, stage) = demodulator(heard)?;
        let stage = StageBench::boxed(stage)?;
        let pool = BatchPool::new(POOL_BATCHES, 2 * BATCH_BYTES);
        let (range, first, samples) = (0..0, None, Vec::new());
        Ok(Self { heard, side, turn, stage, rate_hz, pool, range, first, samples, taken: 0 })
    }

    fn make(mut self, held: &Held) -> Result<Sound> {
        let rate_hz = match held {
            Held::File(path) => {
                let mut file = SampleFile::open(path)?;
                let rate_hz = file.rate_hz().unwrap_or(0.0);
                let range = self.limit(rate_hz)?;
                self.recording(&mut file, &range)?;
                rate_hz
            }
            Held::Ring(folder) => self.ring(folder)?,
            Held::Stream(link, keeper) => self.stream(link, keeper.as_ref())?,
        };
        let made = self.stage.end().map_err(why)?;
        self.hear(&made)?;
        ensure!(self.taken > 0, "no single samples of the box are held any more");
        let missing = self.missing(rate_hz);
        Ok(Sound { rate_hz: self.rate_hz as u32, samples: self.samples, missing, is_live: false })
    }

    /// Limits the box to its audible part, and returns that.
    fn limit(&mut self, rate_hz: f64) -> Result<Range<u64>> {
        ensure!(rate_hz > 0.0, "the sample rate of the stream is unknown");
        let Range { start, end } = self.heard.samples;
        let length = (rate_hz * Listener::SECONDS_MAX as f64) as u64;
        self.range = start..end.min(start.saturating_add(length));
        Ok(self.range.clone())
    }

    fn ring(&mut self, folder: &Path) -> Result<f64> {
        let parts = ring_parts(folder)?;
        let signal = parts.last().map(Signal::of).context("no samples yet")?;
        let range = self.limit(signal.sample_rate_hz)?;
        for mut part in parts_of(parts, &signal, u64::MAX) {
            self.recording(&mut part, &range)?;
        }
        Ok(signal.sample_rate_hz)
    }

    fn stream(&mut self, link: &ScopeLink, keeper: Option<&RingSaver>) -> Result<f64> {
        let (reader, side) = (link.reader(), self.side);
        let goes_on = || side.is_wanted();
        let picture = reader.picture(goes_on).context("stopped")?;
        let stream = picture.stream.context("no samples yet")?;
        let signal = Signal {
            format: stream.format,
            channels: stream.channels,
            sample_rate_hz: stream.rate_hz,
            description: picture.description.clone(),
        };
        let range = self.limit(stream.rate_hz)?;
        let held = reader.read(picture.next_index..picture.next_index, goes_on).context("stopped")?.held;
        let from = held.start.clamp(range.start, range.end);
        // Older samples are in the ring.
        let keeper = keeper.filter(|_| from > range.start);
        for mut file in keeper.map_or(Vec::new(), |keeper| ring_of(keeper, &signal, picture.next_index)) {
            self.recording(&mut file, &(range.start..from))?;
        }
        let (mut frames, streams) = (Frames::new(&signal), picture.streams);
        let lanes = signal.channels * signal.format.components();
        lend(&reader, from..range.end, lanes, goes_on, |piece, extract| {
            if extract.streams != streams {
                bail!("a new stream began");
            }
            let description = extract.descriptions.first().cloned().map(Arc::new);
            frames.each(extract, |first_index, block| {
                let signal = Signal { description: description.clone(), ..signal.clone() };
                self.take(first_index, block, &signal)
            })?;
            self.tell(piece.end);
            Ok(())
        })?;
        Ok(stream.rate_hz)
    }

    /// Takes the samples of a recording with indices in a range.
    fn recording(&mut self, file: &mut SampleFile, range: &Range<u64>) -> Result<()> {
        for segment in file.segments().to_vec() {
            let inside = within(&segment, range);
            let mut at = inside.start;
            while at < inside.end && self.side.is_wanted() {
                let length = BLOCK_SAMPLES.min(inside.end - at);
                let signal = Signal::at(file, segment.position + at);
                let block = file.block(segment.position + at, length as usize)?;
                self.take(segment.first_sample_index + at, &block, &signal)?;
                at += length;
                self.tell(segment.first_sample_index + at);
            }
        }
        Ok(())
    }

    /// Demodulates the box's channel of a block.
    fn take(&mut self, first_index: u64, block: &Block<'_>, signal: &Signal) -> Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let format = block.format();
        let piece = BATCH_BYTES / format.bytes();
        for (bytes, number) in
            block.channel_bytes(self.heard.channel)?.chunks(piece * format.bytes()).zip(0..)
        {
            let header = Header {
                format,
                channel_count: 1,
                block_length_samples: (bytes.len() / format.bytes()) as u32,
                sample_rate_hz: signal.sample_rate_hz,
                first_sample_index: first_index + number * piece as u64,
                ..Header::default()
            };
            let mut batch = self.pool.acquire().context("no memory is left")?;
            batch.describe(signal.description.as_ref());
            batch.push_bytes(&header, |_, out| out.copy_from_slice(bytes))?;
            let made = self.stage.feed(batch.freeze()).map_err(why)?;
            self.hear(&made)?;
            self.taken += u64::from(header.block_length_samples);
        }
        Ok(())
    }

    /// Keeps finished sound; missing samples are silence.
    fn hear(&mut self, made: &[Batch]) -> Result<()> {
        for frame in made.iter().flat_map(Batch::frames) {
            let header = frame.header();
            let first = *self.first.get_or_insert(header.first_sample_index);
            let place = header.first_sample_index.saturating_sub(first) as usize;
            self.samples.resize(place.max(self.samples.len()), 0);
            let sound = frame.channel::<f32>(0)?;
            self.samples.extend(sound.iter().map(|&it| sound_sample(it)));
        }
        Ok(())
    }

    /// Reports progress up to an index.
    fn tell(&self, index: u64) {
        let Range { start, end } = self.range;
        let done = index.saturating_sub(start) as f64 / end.saturating_sub(start).max(1) as f64;
        self.side.tell((done.min(1.0) * 100.0) as u8);
    }

    fn missing(&self, rate_hz: f64) -> String {
        let time = |samples: u64| Engineering::new(samples as f64 / rate_hz, "s").digits(3).to_string();
        let length = self.range.end - self.range.start;
        let is_cut = self.range.end < self.heard.samples.end;
        let cut = is_cut.then(|| format!("the sound is that of the first {}", time(length)));
        let lost = length.saturating_sub(self.taken);
        let lost = (lost > 0).then(|| format!("{} of the box are missing", time(lost)));
        cut.into_iter().chain(lost).collect::<Vec<_>>().join("; ")
    }
}

/// The stage's own words.
fn why(error: grebe_flow::Error) -> anyhow::Error {
    anyhow!("{}", anyhow::Error::new(error).root_cause())
}

const POOL_BATCHES: usize = 4;
const BATCH_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use clap::Parser as _;
    use grebe_frame::{Complex, Description};
    use grebe_recording::{SigmfSettings, SigmfWriter};
    use grebe_view::ScopeFeed;

    use super::*;
    use crate::cli::Cli;

    const RATE_HZ: f64 = 200e3;
    const SAMPLES: u64 = 100_000;
    const FIRST: u64 = 5_000;

    /// A station of FM at 20 kHz with a tone of 1 kHz, and one of AM at -30 kHz with 600 Hz.
    fn sample(index: u64) -> Complex<f32> {
        let turns = |hz: f64| TAU * (hz * index as f64 / RATE_HZ).fract();
        let (fm, am) = (turns(20e3) - 2.5 * turns(1e3).cos(), turns(-30e3));
        let size = 0.3 * (1.0 + 0.5 * turns(600.0).sin());
        Complex::new((0.5 * fm.cos() + size * am.cos()) as f32, (0.5 * fm.sin() + size * am.sin()) as f32)
    }

    fn on_the_air() -> Arc<Description> {
        Arc::new(Description { centre_frequency_hz: Some(100e6), ..Description::default() })
    }

    fn recorded(path: &Path) -> std::path::PathBuf {
        let settings = SigmfSettings {
            sample_rate_hz: RATE_HZ,
            format: grebe_frame::SampleFormat::Cf32,
            ..SigmfSettings::default()
        };
        let mut writer = SigmfWriter::create(path, &settings).unwrap();
        writer.describe(Some(Arc::new(Description { first_sample_index: FIRST, ..(*on_the_air()).clone() })));
        writer.write(FIRST, &[&(FIRST..FIRST + SAMPLES).map(sample).collect::<Vec<_>>()]).unwrap();
        writer.finish().unwrap().files.remove(0)
    }

    /// The same, in the last of these channels.
    fn streamed(history_bytes: usize, channel_count: u32) -> ScopeLink {
        let (mut feed, link) = ScopeFeed::new(history_bytes);
        for first in (FIRST..FIRST + SAMPLES).step_by(5_000) {
            let header = Header {
                sequence: (first - FIRST) / 5_000,
                format: grebe_frame::SampleFormat::Cf32,
                channel_count,
                block_length_samples: 5_000,
                sample_rate_hz: RATE_HZ,
                first_sample_index: first,
                ..Header::default()
            };
            let mut batch = BatchPool::new(1, 1 << 18).acquire().unwrap();
            batch.describe(Some(&on_the_air()));
            let fill = |channel: usize, out: &mut [Complex<f32>]| {
                out.iter_mut().zip(first..).for_each(|(it, n)| {
                    *it = if channel as u32 + 1 == channel_count { sample(n) } else { Complex::ZERO }
                });
            };
            batch.push(&header, fill).unwrap();
            feed.ingest(&batch.freeze()).unwrap();
        }
        feed.finish();
        link
    }

    fn made(held: &Held, heard: HeardBox) -> Result<Sound, String> {
        let listening = held.clone().listener().listen(heard);
        loop {
            if let Some(ended) = listening.take() {
                return ended;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn heard(channel: usize, mode: &str, [low_hz, high_hz]: [f64; 2]) -> HeardBox {
        let modulation = MODES.iter().position(|it| it.0 == mode).unwrap();
        HeardBox { channel, samples: FIRST + 20_000..FIRST + 80_000, low_hz, high_hz, modulation }
    }

    #[test]
    fn a_box_of_a_file_and_of_a_stream_sounds_as_what_play_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = recorded(&folder.path().join("stations.sigmf-meta"));
        let stream = Held::Stream(streamed(64 << 20, 2), None);
        for (mode, band, rate_hz, tone_hz) in
            [("fm", [100.01e6, 100.03e6], 24_000, 1e3), ("am", [99.964e6, 99.976e6], 16_000, 600.0)]
        {
            let sound = made(&Held::File(path.clone()), heard(0, mode, band)).unwrap();
            assert_eq!(
                (sound.rate_hz, sound.samples.len(), sound.missing.as_str()),
                (rate_hz, rate_hz as usize * 3 / 10, "")
            );
            let written = folder.path().join(format!("{mode}.sigmf-meta"));
            let box_of = format!("0.1,0.4,{},{}", band[0], band[1]);
            let (rate, written, from) =
                (rate_hz.to_string(), written.to_str().unwrap(), path.to_str().unwrap());
            let words = [
                "grebe",
                "play",
                from,
                "--free-run",
                "--to",
                written,
                "--demodulate",
                mode,
                "--rate",
                &rate,
                "--box",
                &box_of,
            ];
            crate::dispatch(Cli::try_parse_from(words).unwrap()).unwrap();
            let mut file = SampleFile::open(written).unwrap();
            let length = file.len_samples() as usize;
            let played = file.block(0, length).unwrap().channel::<f32>(0).unwrap().into_owned();
            let counts = played.iter().map(|it| (it * 32_768.0).round_ties_even() as i16).collect::<Vec<_>>();
            assert!(sound.samples == counts, "{mode}: {:?}, {:?}", &sound.samples[..9], &counts[..9]);
            let crossings = counts
                .windows(2)
                .skip(length / 4)
                .take(length / 2)
                .filter(|it| it[0] < 0 && it[1] >= 0)
                .count();
            let hz = crossings as f64 / (length / 2) as f64 * f64::from(rate_hz);
            assert!((hz - tone_hz).abs() < 10.0, "{mode}: {hz} Hz");
            assert_eq!(made(&stream, heard(1, mode, band)), Ok(sound), "{mode}");
            assert_ne!(made(&stream, heard(0, mode, band)).unwrap().samples, counts, "another channel");
        }
    }

    #[test]
    fn what_cannot_be_heard_or_only_in_part_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let held = Held::File(recorded(&folder.path().join("stations.sigmf-meta")));
        let band = [100.01e6, 100.03e6];
        let late = HeardBox { samples: FIRST + 90_000..FIRST + 20_000_000, ..heard(0, "fm", band) };
        let sound = made(&held, late.clone()).unwrap();
        assert_eq!(
            (sound.samples.len(), sound.missing.as_str()),
            (1_200, "the sound is that of the first 60 s; 60 s of the box are missing")
        );
        let stream = Held::Stream(streamed(64 << 20, 2), None);
        assert_eq!(made(&stream, HeardBox { channel: 1, ..late }), Ok(sound));
        let gone = HeardBox { samples: 0..100, ..heard(0, "fm", band) };
        let empty = ScopeFeed::new(1 << 20).1;
        for held in [held.clone(), stream, Held::Stream(empty, None)] {
            let says = made(&held, gone.clone()).unwrap_err();
            assert!(says.contains("held any more") || says.contains("no samples yet"), "{says}");
        }
        for (heard, says) in [
            (heard(0, "usb", [100e6, 100.05e6]), "a box of 50 kHz does not fit USB"),
            (HeardBox { channel: 7, ..heard(0, "fm", band) }, "channel 7"),
            (HeardBox { modulation: 9, ..heard(0, "fm", band) }, "unknown modulation"),
            (heard(0, "fm", [90e6, 90.02e6]), "the band from -10 MHz to -9.98 MHz lies outside"),
        ] {
            let error = made(&held, heard).unwrap_err();
            assert_eq!(error.matches(says).count(), 1, "{error}");
        }
        assert!(made(&Held::File(folder.path().join("none")), heard(0, "fm", band)).is_err());
    }

    #[test]
    fn samples_that_left_the_history_are_heard_from_the_ring() {
        let folder = tempfile::tempdir().unwrap();
        let path = recorded(&folder.path().join("ring_000001"));
        let link = streamed(4 << 20, 1);
        let held = link.reader().read(0..0, || true).unwrap().held;
        assert!((FIRST + 30_000..FIRST + 75_000).contains(&held.start), "{held:?}");
        let keeper = RingSaver::of_stream(&"shm://adc".parse().unwrap(), Some(folder.path()), None).unwrap();
        let heard = heard(0, "fm", [100.01e6, 100.03e6]);
        let part = made(&Held::Stream(link.clone(), None), heard.clone()).unwrap();
        assert!(part.missing.ends_with("of the box are missing"), "{}", part.missing);
        let whole = made(&Held::Stream(link, Some(keeper)), heard.clone());
        assert_eq!(whole, made(&Held::File(path), heard.clone()));
        assert_eq!(whole, made(&Held::Ring(folder.path().into()), heard));
    }

    #[test]
    fn nobody_waits_for_a_sound_that_is_not_wanted() {
        let (_feed, link) = ScopeFeed::new(1 << 20);
        let ((side, listening), turn) = (Listening::begin(), Mutex::new(()));
        drop(listening);
        let heard = heard(0, "fm", [0.0, 1e4]);
        // The scope never answers.
        let made = SoundMaker::new(&heard, &side, &turn).unwrap().make(&Held::Stream(link, None));
        assert_eq!(made.unwrap_err().to_string(), "stopped");
    }
}
