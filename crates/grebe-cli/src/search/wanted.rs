//! Target and source of a search.

use std::sync::Arc;

use anyhow::Result;
use grebe_frame::{ChannelDescription, Component, Description, SampleFormat};
use grebe_recording::SampleFile;
use grebe_scope::{Engineering, Slope};
use grebe_view::{LaneId, Part};

use crate::cli::{Conditions, EventKind};
use crate::ending::Usage;
use crate::units::exact;

/// Signal to search: format, channels, units.
#[derive(Debug, Clone)]
pub(crate) struct Signal {
    pub(crate) format: SampleFormat,
    pub(crate) channels: usize,
    /// 0: unknown.
    pub(crate) sample_rate_hz: f64,
    pub(crate) description: Option<Arc<Description>>,
}

impl Signal {
    pub(crate) fn of(file: &SampleFile) -> Self {
        Self {
            format: file.format(),
            channels: file.channels(),
            sample_rate_hz: file.rate_hz().unwrap_or(0.0),
            description: file.description(0).cloned(),
        }
    }

    /// The signal from a position of a recording on.
    pub(crate) fn at(file: &SampleFile, position: u64) -> Self {
        Self { description: file.description(position).cloned(), ..Self::of(file) }
    }

    /// Centre frequency, if known.
    pub(crate) fn centre_hz(&self) -> Option<f64> {
        self.description.as_ref()?.centre_frequency_hz
    }

    /// Checks that a recording has frequencies of this option's band, for the receiver may be tuned more than once.
    ///
    /// # Errors
    /// [`Usage`] if it has none.
    pub(crate) fn check_band_of(file: &SampleFile, option: &str, band: Option<(f64, f64)>) -> Result<()> {
        let mut position = 0;
        loop {
            let checked = Self::at(file, position).check_band(option, band);
            position = position.saturating_add(file.described_samples(position));
            if checked.is_ok() || position >= file.len_samples() {
                return checked;
            }
        }
    }

    /// Checks that the signal has frequencies of this option's band.
    ///
    /// # Errors
    /// [`Usage`] if it has none.
    pub(crate) fn check_band(&self, option: &str, band: Option<(f64, f64)>) -> Result<()> {
        let (centre_hz, half_hz) = (self.centre_hz().unwrap_or(0.0), self.sample_rate_hz / 2.0);
        let (low, high) =
            (centre_hz - if self.format.is_complex() { half_hz } else { 0.0 }, centre_hz + half_hz);
        match band {
            Some((from, to)) if half_hz > 0.0 && (to < low || from > high) => {
                let [from, to, low, high] = [from, to, low, high].map(|hertz| exact(hertz, "Hz"));
                let what = format!("{option} {from} to {to}: the signal covers {low} to {high}");
                Err(Usage(what).into())
            }
            _ => Ok(()),
        }
    }

    /// The duration of some samples in words.
    pub(crate) fn time(&self, samples: u64) -> String {
        match self.sample_rate_hz > 0.0 {
            true => Engineering::new(samples as f64 / self.sample_rate_hz, "s").digits(3).to_string(),
            false => format!("{samples} samples"),
        }
    }

    /// Amplitude of a full-scale sine.
    pub(super) fn full_scale(&self) -> f64 {
        let of_bits = self.description.as_ref().and_then(|description| description.full_scale(self.format));
        of_bits.unwrap_or_else(|| full_scale(self.format))
    }

    /// The lanes to search: the named ones, or all.
    ///
    /// # Errors
    /// [`Usage`] if a lane does not exist.
    pub(crate) fn lanes(&self, named: &[LaneId]) -> Result<Vec<LaneId>> {
        let is_complex = self.format.is_complex();
        let part = if is_complex { Part::Magnitude } else { Part::Real };
        if named.is_empty() {
            return Ok((0..self.channels).map(|channel| LaneId { channel, part }).collect());
        }
        let lane = |&lane: &LaneId| {
            let usage = |what: String| Err(Usage(format!("--channels {lane}: {what}")).into());
            match lane.part {
                Part::Math => usage("a recording has no such channel".to_owned()),
                _ if lane.channel >= self.channels => usage(match self.channels {
                    1 => "there is 1 channel".to_owned(),
                    channels => format!("there are {channels} channels"),
                }),
                Part::Real => Ok(LaneId { part, ..lane }),
                _ if !is_complex => usage(format!("{} samples have no parts", self.format)),
                _ => Ok(lane),
            }
        };
        named.iter().map(lane).collect()
    }
}

/// Conditions of a burst.
#[derive(Debug, Clone, Copy)]
pub(super) struct BurstConditions {
    /// Frequencies in which its centre lies.
    pub(super) band_hz: Option<(f64, f64)>,
    /// Minimum SNR.
    pub(super) above_db: f64,
    pub(super) false_alarms: f64,
    pub(super) transform_samples: usize,
}

/// Conditions in samples and counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(super) kind: EventKind,
    pub(super) slope: Slope,
    pub(super) level: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) hysteresis: f64,
    pub(super) least_samples: u64,
    pub(super) most_samples: u64,
    pub(super) window_samples: u64,
    pub(super) holdoff_samples: u64,
    /// Power of 0 dB.
    pub(super) full_power: f64,
    /// Zero level: the middle of `u8`.
    pub(super) middle: f32,
    pub(super) burst: Option<BurstConditions>,
    /// Threads that a search may use.
    pub(super) threads: usize,
}

impl Wanted {
    /// The conditions for a lane of this signal; `option` is the option that names the kind.
    ///
    /// # Errors
    /// [`Usage`] if a level or a time is missing.
    pub(crate) fn of(
        option: &str,
        kind: EventKind,
        options: &Conditions,
        lane: LaneId,
        signal: &Signal,
    ) -> Result<Self> {
        use EventKind::{Burst, Dropout, Edge, Level, Power, Pulse, Runt, Silence, Window};
        let usage = |what: &str| Usage(format!("{option} {} needs {what}", kind.name()));
        let needs = |value: Option<f64>, what| value.ok_or_else(|| usage(what));
        let rate_hz = signal.sample_rate_hz;
        let samples = |time: std::time::Duration| {
            if rate_hz <= 0.0 && !time.is_zero() {
                let what = "unknown sample rate: give it, as in 'x.cu8?rate=2.4M'";
                return Err(Usage(what.to_owned()));
            }
            Ok((time.as_secs_f64() * rate_hz).round() as u64)
        };
        let (mut level, mut low, mut high) = (0.0, 0.0, 0.0);
        match kind {
            Edge | Pulse | Dropout | Level => level = needs(options.level, "--level VALUE")?,
            Power | Silence => level = needs(options.level, "--level DB, as in --level -30")?,
            Runt | Window => {
                low = needs(options.low, "--low VALUE and --high VALUE")?;
                high = needs(options.high, "--low VALUE and --high VALUE")?;
            }
            EventKind::Gap | Burst => {}
        }
        let burst = BurstConditions {
            band_hz: options.band,
            above_db: options.above.unwrap_or(f64::NEG_INFINITY),
            false_alarms: options.false_alarms.unwrap_or(FALSE_ALARMS),
            transform_samples: options.transform.unwrap_or(TRANSFORM_SAMPLES),
        };
        match (kind, options.given_of_burst(), options.given_level()) {
            (Burst, _, Some(name)) => {
                return Err(
                    Usage(format!("{name} has no effect on bursts: give --above DB over the noise")).into()
                );
            }
            (Burst, ..) | (_, None, _) => {}
            (_, Some(name), _) => return Err(Usage(format!("{name} needs {option} burst")).into()),
        }
        if kind == Dropout && options.longer.is_none() {
            return Err(usage("--longer TIME").into());
        }
        let is_power = matches!(kind, Power | Silence);
        let units = Units::of(lane, signal);
        let (format, full_scale) = (signal.format, signal.full_scale());
        let is_tone = lane.part == Part::Magnitude;
        let window_samples = if rate_hz > 0.0 { samples(options.window)? } else { WINDOW_SAMPLES };
        Ok(Self {
            kind,
            slope: options.slope,
            level: if is_power { level } else { units.counts(level) },
            low: units.counts(low),
            high: units.counts(high),
            hysteresis: units.distance(options.hysteresis).abs(),
            least_samples: options.longer.map(samples).transpose()?.unwrap_or(0).max(1),
            most_samples: options.shorter.map(samples).transpose()?.unwrap_or(u64::MAX),
            window_samples: window_samples.max(1),
            holdoff_samples: samples(options.holdoff)?,
            full_power: full_scale * full_scale * if is_tone { 1.0 } else { 0.5 },
            middle: if (is_power || kind == Burst) && format == SampleFormat::U8 { 128.0 } else { 0.0 },
            burst: (kind == Burst).then_some(burst),
            threads: 1,
        })
    }

    /// Lets the search use threads of its own; 1 by default.
    pub(crate) fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Whether all levels are in the range of 16 bits.
    pub(super) fn fits_i16(&self) -> bool {
        let levels = if matches!(self.kind, EventKind::Power | EventKind::Silence) {
            [0.0; 3]
        } else {
            [self.level, self.low, self.high]
        };
        levels.iter().all(|level| (-32_768.0..=32_767.0).contains(level)) && self.hysteresis <= 65_535.0
    }
}

/// Scale of a lane.
struct Units {
    scale: f64,
    offset: f64,
}

impl Units {
    fn of(lane: LaneId, signal: &Signal) -> Self {
        let said = signal.description.as_ref().and_then(|description| description.channels.get(lane.channel));
        let ChannelDescription { scale, offset, .. } = said.cloned().unwrap_or_default();
        match lane.part {
            Part::Real | Part::I | Part::Q => Self { scale, offset },
            Part::Magnitude => Self { scale: scale.abs(), offset: 0.0 },
            _ => Self { scale: 1.0, offset: 0.0 },
        }
    }

    fn counts(&self, value: f64) -> f64 {
        (value - self.offset) / self.scale
    }

    fn distance(&self, value: f64) -> f64 {
        value / self.scale
    }
}

/// Amplitude of a full-scale sine.
fn full_scale(format: SampleFormat) -> f64 {
    match format.component() {
        Component::I8 | Component::U8 => 128.0,
        Component::I16 => 32_768.0,
        Component::I32 => 2_147_483_648.0,
        Component::F32 | Component::F64 => 1.0,
    }
}

/// Window of powers if the rate is unknown.
const WINDOW_SAMPLES: u64 = 1_000;
const FALSE_ALARMS: f64 = 1e-7;
const TRANSFORM_SAMPLES: usize = 1024;
