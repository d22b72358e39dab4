//! Makes sound of a modulated carrier.

use std::f64::consts::TAU;
use std::sync::Arc;

use grebe_flow::{Fault, Kind, Ports, RateHz, Site, Stage, StageResult, Time};
use grebe_frame::{ChannelDescription, Description, Header, SampleFormat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::at_rate::{AtRate, AtRateStage, Layout};
use super::convert::Conversion;
use crate::band::{Band, BandFilter, Cutter, Filter, LowPass, Oscillator, Resampler, hertz, per_second};
use crate::error::Error;
use crate::format::FrequencyHz;
use crate::grid::Grid;

/// Makes sound of a modulated carrier: real f32 samples at the rate of a sound device.
///
/// Cuts out the band of the modulation as `cut` does, and demodulates it. Full scale is full modulation of AM,
/// `deviation` of FM, and full scale of the stream for SSB and CW. Output sample n has exactly the time of input
/// sample n x input rate / rate. Samples before the stream, after its end and in gaps count as zero.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Demodulate {
    /// Modulation: am, fm, wfm, usb, lsb or cw.
    pub mode: Modulation,
    /// Frequency of the carrier, of SSB the suppressed one. On the air if the stream states its centre frequency,
    /// otherwise in the signal. By default the stream's centre.
    #[serde(default)]
    pub center: Option<FrequencyHz>,
    /// Width of the band: by default 10 kHz of AM, 12.5 kHz of fm, 200 kHz of wfm, 2.8 kHz of SSB, 500 Hz of CW.
    #[serde(default)]
    pub bandwidth: Option<RateHz>,
    /// Sample rate of the sound.
    #[serde(default = "default_rate")]
    pub rate: RateHz,
    /// Deviation of FM that becomes full scale: by default 5 kHz of fm, 75 kHz of wfm.
    #[serde(default)]
    pub deviation: Option<RateHz>,
    /// Time constant of FM's de-emphasis; 0: none. By default 50 us of wfm (75 us in America), none of fm.
    #[serde(default)]
    pub de_emphasis: Option<Time>,
    /// Tone of a carrier in CW.
    #[serde(default = "default_pitch")]
    pub pitch: RateHz,
    /// Bring SSB and CW to half of full scale, by their level of the last second, and by at most 60 dB.
    #[serde(default)]
    pub level: bool,
}

/// How a carrier is modulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Modulation {
    /// Amplitude modulation.
    Am,
    /// Narrow frequency modulation, as of handheld radios.
    Fm,
    /// Wide frequency modulation, as of broadcasts, in mono.
    Wfm,
    /// Upper sideband.
    Usb,
    /// Lower sideband.
    Lsb,
    /// A keyed carrier.
    Cw,
}

impl Demodulate {
    /// The defaults of a mode.
    pub fn new(mode: Modulation) -> Self {
        let (center, bandwidth, deviation, de_emphasis) = (None, None, None, None);
        let (rate, pitch, level) = (default_rate(), default_pitch(), false);
        Self { mode, center, bandwidth, rate, deviation, de_emphasis, pitch, level }
    }

    /// For the sound of this band alone: the carrier of SSB lies 200 Hz beside it, that of the other modes in its middle.
    pub fn of_band(mode: Modulation, low_hz: f64, high_hz: f64) -> Self {
        let kind = Self { bandwidth: Some(RateHz(high_hz - low_hz)), ..Self::new(mode) };
        let center = (low_hz + high_hz) / 2.0 - kind.middle_hz().0;
        let pitch = RateHz(kind.pitch.0.max(STOP_PART * kind.bandwidth_hz()));
        Self { center: Some(FrequencyHz(center)), pitch, ..kind }
    }

    /// With the lowest of some usual rates that keeps the whole sound; the highest is 48 kHz.
    pub fn at_lowest_rate(self) -> Self {
        let is_enough = |rate_hz: &f64| *rate_hz >= self.rate_hz_min();
        Self { rate: RateHz(RATES_HZ.into_iter().find(is_enough).unwrap_or(48e3)), ..self }
    }

    /// Lowest rate that keeps the whole sound.
    fn rate_hz_min(&self) -> f64 {
        let bandwidth_hz = self.bandwidth_hz();
        match self.mode {
            Modulation::Am | Modulation::Fm => bandwidth_hz / 2.0 / PASS_PART,
            Modulation::Wfm => WFM_SOUND_HZ / PASS_PART,
            Modulation::Usb | Modulation::Lsb | Modulation::Cw => {
                2.0 * (self.middle_hz().1.abs() + STOP_PART * bandwidth_hz)
            }
        }
    }

    /// Samples per second before the last low-pass filter, as a multiple of the rate of the sound.
    fn oversampling(&self) -> u64 {
        let per_bandwidth = match self.mode {
            Modulation::Am => 2.0,
            Modulation::Fm | Modulation::Wfm => 1.6,
            Modulation::Usb | Modulation::Lsb | Modulation::Cw => return 1,
        };
        (per_bandwidth * self.bandwidth_hz() / self.rate.0).ceil().max(1.0) as u64
    }

    fn bandwidth_hz(&self) -> f64 {
        self.bandwidth.map_or(self.mode.bandwidth_hz(), |bandwidth| bandwidth.0)
    }

    /// The band's place beside the carrier, and the sound's frequency of its middle.
    fn middle_hz(&self) -> (f64, f64) {
        let middle_hz = SIDEBAND_BEGIN_HZ + self.bandwidth_hz() / 2.0;
        match self.mode {
            Modulation::Usb => (middle_hz, middle_hz),
            // Seen from the carrier, the frequencies count downwards.
            Modulation::Lsb => (-middle_hz, -middle_hz),
            Modulation::Cw => (0.0, self.pitch.0),
            Modulation::Am | Modulation::Fm | Modulation::Wfm => (0.0, 0.0),
        }
    }

    fn filter(&self, header: &Header, centre_hz: Option<f64>) -> Result<BandFilter, Error> {
        let band = Band {
            centre_hz: self.center.map_or(0.0, |center| center.0 - centre_hz.unwrap_or(0.0))
                + self.middle_hz().0,
            bandwidth_hz: self.bandwidth_hz(),
            rate_hz: Some(self.rate.0 * self.oversampling() as f64),
        };
        band.of(header.sample_rate_hz, header.format.is_complex())
    }

    /// The filter of the sound, at a multiple of its rate.
    fn sound_filter(&self) -> Arc<Filter> {
        let oversampling = self.oversampling();
        let (bandwidth_hz, middle_hz) = (self.bandwidth_hz(), self.middle_hz().1.abs());
        let (pass_hz, stop_hz) = if middle_hz > 0.0 {
            // The filtered band, at its audible frequencies.
            (middle_hz + 0.5 * bandwidth_hz, middle_hz + STOP_PART * bandwidth_hz)
        } else {
            let widest_hz = if self.mode == Modulation::Wfm { WFM_SOUND_HZ } else { bandwidth_hz / 2.0 };
            let pass_hz = widest_hz.min(PASS_PART * self.rate.0);
            (pass_hz, (1.25 * pass_hz).min(0.5 * self.rate.0))
        };
        let rate_hz = self.rate.0 * oversampling as f64;
        let low_pass = LowPass::new(pass_hz / rate_hz, stop_hz / rate_hz, ATTENUATION_DB);
        Arc::new(Filter::new(&low_pass, Grid::every(oversampling), 1))
    }
}

impl Modulation {
    /// The usual width of its band.
    pub fn bandwidth_hz(self) -> f64 {
        match self {
            Self::Am => 10e3,
            Self::Fm => 12.5e3,
            Self::Wfm => 200e3,
            Self::Usb | Self::Lsb => 2.8e3,
            Self::Cw => 500.0,
        }
    }
}

impl Kind for Demodulate {
    const NAME: &'static str = "demodulate";
    const PORTS: Ports = Ports::STAGE;

    fn check(&self) -> Result<(), Fault> {
        let (rate_hz, bandwidth_hz) = (self.rate.0, self.bandwidth_hz());
        if !(1e3..=1e7).contains(&rate_hz) {
            return Err(Fault::new("rate", "give 1 kHz to 10 MHz, for example 48k"));
        }
        if !(1.0..=1e8).contains(&bandwidth_hz) {
            return Err(Fault::new("bandwidth", "give 1 Hz to 100 MHz"));
        }
        if self.middle_hz().1 != 0.0 && rate_hz < self.rate_hz_min() {
            let (highest_hz, rate_hz) = (self.rate_hz_min() / 2.0, self.rate_hz_min());
            let words =
                format!("the sound reaches {}: give at least {}", hertz(highest_hz), per_second(rate_hz));
            return Err(Fault::new("rate", words));
        }
        if self.mode == Modulation::Cw && self.pitch.0 < STOP_PART * bandwidth_hz {
            return Err(Fault::new("pitch", format!("give at least {}", hertz(STOP_PART * bandwidth_hz))));
        }
        if self.deviation.is_some_and(|deviation| deviation.0 <= 0.0) {
            return Err(Fault::new("deviation", "give a deviation above 0 Hz"));
        }
        Ok(())
    }

    fn format(&self, _: Option<SampleFormat>) -> Result<Option<SampleFormat>, Fault> {
        Ok(Some(SampleFormat::F32))
    }

    fn rate_hz(&self, _: Option<f64>) -> Option<f64> {
        Some(self.rate.0)
    }

    fn build(self, _: &mut Site) -> StageResult<Box<dyn Stage>> {
        Ok(Box::new(stage(self)))
    }
}

fn stage(demodulate: Demodulate) -> AtRateStage<DemodulateAtRate> {
    let sound = demodulate.sound_filter();
    AtRateStage::new(DemodulateAtRate {
        demodulate,
        sound,
        prepared: None,
        channels: Vec::new(),
        numbers: Vec::new(),
    })
}

#[derive(Debug)]
struct DemodulateAtRate {
    demodulate: Demodulate,
    sound: Arc<Filter>,
    prepared: Option<Prepared>,
    channels: Vec<Channel>,
    /// Samples on their way.
    numbers: Vec<f32>,
}

/// For samples of one kind.
#[derive(Debug)]
struct Prepared {
    filter: BandFilter,
    conversion: Conversion,
    grid: Grid,
}

#[derive(Debug)]
struct Channel {
    cutter: Cutter,
    detector: Detector,
    sound: Resampler,
}

impl AtRate for DemodulateAtRate {
    fn begin(&mut self, header: &Header, description: Option<&Description>) -> Result<Layout, Error> {
        let format = header.format;
        let filter = self.demodulate.filter(header, description.and_then(|it| it.centre_frequency_hz))?;
        let grid = Grid::between(header.sample_rate_hz, self.demodulate.rate.0)?;
        let first = header.first_sample_index as i64;
        self.channels.clear();
        for _ in 0..header.channel_count {
            let mut cutter = Cutter::new(std::slice::from_ref(&filter), format.is_complex());
            let mut sound = Resampler::new(self.sound.clone());
            cutter.begin(first);
            sound.begin(cutter.next(0), grid.first_at(first));
            let detector = Detector::new(&self.demodulate, cutter.next(0));
            self.channels.push(Channel { cutter, detector, sound });
        }
        self.prepared =
            Some(Prepared { filter, conversion: Conversion::to_floats(format, description), grid });
        Ok(Layout { grid, format: SampleFormat::F32, rate_hz: self.demodulate.rate.0 })
    }

    fn push(&mut self, channel: usize, _: SampleFormat, bytes: &[u8]) {
        if let Some(prepared) = &self.prepared {
            prepared.conversion.floats(bytes, &mut self.numbers);
            self.channels[channel].cutter.push(&self.numbers);
            self.channels[channel].listen();
        }
    }

    fn end(&mut self, channel: usize, end: i64) {
        if let Some(prepared) = &self.prepared {
            let channel = &mut self.channels[channel];
            channel.cutter.end();
            channel.listen();
            channel.sound.end(prepared.grid.first_at(end));
        }
    }

    fn made(&mut self, channel: usize) -> &mut Vec<f32> {
        self.channels[channel].sound.made()
    }

    fn describe(&self, described: &mut Description) {
        if let Some(prepared) = &self.prepared {
            let signal_hz = described.centre_frequency_hz.unwrap_or(0.0);
            let carrier_hz = prepared.filter.band().centre_hz - self.demodulate.middle_hz().0;
            described.centre_frequency_hz = Some(signal_hz + carrier_hz);
        }
        described.bandwidth_hz = None;
        described.rest.remove(Description::BITS);
        // Sound does not have the input's unit.
        for channel in &mut described.channels {
            *channel = ChannelDescription {
                name: std::mem::take(&mut channel.name),
                ..ChannelDescription::default()
            };
        }
    }

    fn invalid_numbers(&self) -> u64 {
        self.channels.iter().map(|channel| channel.cutter.invalid_numbers()).sum()
    }
}

impl Channel {
    /// Demodulates what was cut out.
    fn listen(&mut self) {
        let Self { cutter, detector, sound } = self;
        let cut = cutter.made(0);
        detector.prepare(cut);
        let (pairs, _) = cut.as_chunks::<2>();
        sound.extend(pairs.iter().map(|&pair| detector.sound(pair)));
        cut.clear();
        sound.make(i64::MAX);
    }
}

/// From a band around 0 Hz to sound.
#[derive(Debug)]
enum Detector {
    Am { mean: f64, count: f64, memory: f64 },
    Fm { last: [f64; 2], scale: f32, de_emphasis: Option<DeEmphasis> },
    Sideband { oscillator: Oscillator, next: u64, level: Option<Level> },
}

/// A low-pass filter of one pole, as the analogue one, by the bilinear transform.
#[derive(Debug)]
struct DeEmphasis {
    gain: f64,
    pole: f64,
    last: [f64; 2],
}

/// Peak level with a slow decay.
#[derive(Debug)]
struct Level {
    peak: f32,
    decay: f32,
}

impl Detector {
    fn new(demodulate: &Demodulate, first: i64) -> Self {
        let rate_hz = demodulate.rate.0 * demodulate.oversampling() as f64;
        let fm = |deviation_hz: f64, de_emphasis_s: f64| {
            let deviation_hz = demodulate.deviation.map_or(deviation_hz, |deviation| deviation.0);
            let time_s = demodulate.de_emphasis.map_or(de_emphasis_s, |time| time.0.as_secs_f64());
            let de_emphasis = (time_s > 0.0).then(|| DeEmphasis::new(time_s, rate_hz));
            Self::Fm { last: [0.0; 2], scale: (rate_hz / TAU / deviation_hz) as f32, de_emphasis }
        };
        match demodulate.mode {
            Modulation::Am => Self::Am { mean: 0.0, count: 0.0, memory: CARRIER_S * rate_hz },
            Modulation::Fm => fm(5e3, 0.0),
            Modulation::Wfm => fm(75e3, 50e-6),
            Modulation::Usb | Modulation::Lsb | Modulation::Cw => Self::Sideband {
                oscillator: Oscillator::new(demodulate.middle_hz().1 / rate_hz),
                next: first as u64,
                level: demodulate.level.then(|| Level { peak: 0.0, decay: (-1.0 / rate_hz).exp() as f32 }),
            },
        }
    }

    /// Processes a block of samples at once.
    fn prepare(&mut self, numbers: &mut [f32]) {
        if let Self::Sideband { oscillator, next, .. } = self {
            oscillator.turn(*next, numbers);
            *next = next.wrapping_add(numbers.len() as u64 / 2);
        }
    }

    fn sound(&mut self, [re, im]: [f32; 2]) -> f32 {
        match self {
            Self::Am { mean, count, memory } => {
                let size = f64::from(re.hypot(im));
                // A plain mean at first.
                *count = (*count + 1.0).min(*memory);
                *mean += (size - *mean) / *count;
                if *mean > 0.0 { (size / *mean - 1.0) as f32 } else { 0.0 }
            }
            Self::Fm { last, scale, de_emphasis } => {
                let [re, im] = [f64::from(re), f64::from(im)];
                let [last_re, last_im] = std::mem::replace(last, [re, im]);
                let turned = (im * last_re - re * last_im).atan2(re * last_re + im * last_im);
                let sound = turned as f32 * *scale;
                de_emphasis.as_mut().map_or(sound, |filter| filter.next(sound))
            }
            Self::Sideband { level, .. } => match level {
                Some(level) => re * level.gain(re.hypot(im)),
                None => re,
            },
        }
    }
}

impl DeEmphasis {
    fn new(time_s: f64, rate_hz: f64) -> Self {
        let warped = (1.0 / time_s / (2.0 * rate_hz)).tan();
        Self { gain: warped / (1.0 + warped), pole: (1.0 - warped) / (1.0 + warped), last: [0.0; 2] }
    }

    fn next(&mut self, number: f32) -> f32 {
        let [last_in, last_out] = self.last;
        let out = self.gain * (f64::from(number) + last_in) + self.pole * last_out;
        self.last = [number.into(), out];
        out as f32
    }
}

impl Level {
    fn gain(&mut self, size: f32) -> f32 {
        self.peak = (self.peak * self.decay).max(size);
        (0.5 / self.peak.max(f32::MIN_POSITIVE)).min(GAIN_MAX)
    }
}

fn default_rate() -> RateHz {
    RateHz(48e3)
}

fn default_pitch() -> RateHz {
    RateHz(700.0)
}

/// Lowest frequency of the sound of a sideband.
const SIDEBAND_BEGIN_HZ: f64 = 200.0;
/// Below the pilot tone.
const WFM_SOUND_HZ: f64 = 15e3;
/// Over which AM's carrier is a mean.
const CARRIER_S: f64 = 0.2;
const ATTENUATION_DB: f64 = 80.0;
/// Pass band of the sound at most, as a part of its rate.
const PASS_PART: f64 = 0.42;
/// Half the width of a filtered sideband up to its stop band, as a part of the bandwidth.
const STOP_PART: f64 = 0.625;
const RATES_HZ: [f64; 5] = [8e3, 12e3, 16e3, 24e3, 32e3];
/// 60 dB.
const GAIN_MAX: f32 = 1_000.0;

#[cfg(test)]
mod tests;
