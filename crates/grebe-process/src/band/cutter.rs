//! One channel of a signal, cut into bands.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::{BandFilter, LowPass, Oscillator, Resampler};

/// Cuts bands out of one channel, for all of them in one pass: the transform of a block serves each of them.
///
/// ```
/// use grebe_process::{Band, Cutter};
///
/// let band = Band { centre_hz: 2_000.0, bandwidth_hz: 500.0, rate_hz: None }.of(10_000.0, false)?;
/// let mut cutter = Cutter::new(&[band], false);
/// cutter.begin(0);
/// let tone: Vec<f32> = (0..1_000).map(|at| (at as f32 * 0.4 * std::f32::consts::PI).cos()).collect();
/// cutter.push(&tone);
/// cutter.end();
/// // A tone in the middle becomes a constant.
/// let middle = &cutter.made(0)[60..62];
/// assert!((middle[0] - 1.0).abs() < 1e-3 && middle[1].abs() < 1e-3);
/// # Ok::<(), grebe_process::Error>(())
/// ```
pub struct Cutter {
    is_complex: bool,
    /// 0 if no band needs one.
    length: usize,
    forward: Arc<dyn Fft<f32>>,
    /// Samples for the next block, from this index on.
    line: Vec<Complex<f32>>,
    origin: i64,
    block: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    bands: Vec<Line>,
    invalid_numbers: u64,
}

/// One band.
struct Line {
    filter: BandFilter,
    /// Outputs to make.
    outputs: Range<i64>,
    coarse: Option<Coarse>,
    oscillator: Oscillator,
    resampler: Resampler,
}

/// The bins of a band, as samples of a lower rate.
struct Coarse {
    inverse: Arc<dyn Fft<f32>>,
    /// Bin that becomes 0 Hz.
    bin: usize,
    /// Response in the order of the inverse transform.
    response: Vec<f32>,
    block: Vec<Complex<f32>>,
}

impl Cutter {
    /// Prepares for these bands of a real or complex signal.
    pub fn new(bands: &[BandFilter], is_complex: bool) -> Self {
        let length = bands.iter().filter(|band| band.step > 1).map(|band| band.length).max().unwrap_or(0);
        let mut planner = FftPlanner::new();
        let forward = planner.plan_fft_forward(length.max(1));
        let bands: Vec<Line> = bands.iter().map(|band| Line::new(band, length, &mut planner)).collect();
        let inverse = bands.iter().filter_map(|band| band.coarse.as_ref());
        let scratch = inverse.map(|coarse| coarse.inverse.get_inplace_scratch_len()).max().unwrap_or(0);
        let scratch = scratch.max(forward.get_inplace_scratch_len());
        Self {
            is_complex,
            length,
            forward,
            line: Vec::with_capacity(2 * length),
            origin: 0,
            block: vec![Complex::ZERO; length],
            scratch: vec![Complex::ZERO; scratch],
            bands,
            invalid_numbers: 0,
        }
    }

    /// Makes only these outputs of a band.
    pub fn limit(&mut self, band: usize, outputs: Range<i64>) {
        self.bands[band].outputs = outputs;
    }

    /// Starts with the sample of this index. Samples before it count as zero.
    pub fn begin(&mut self, first: i64) {
        let (step, before) = (self.advance(), self.length as i64 / 4);
        self.origin = if self.length > 0 { (first - before).div_euclid(step) * step } else { first };
        self.line.clear();
        self.line.resize((first - self.origin) as usize, Complex::ZERO);
        for band in &mut self.bands {
            // The first block's results, or the samples themselves.
            let start = band.coarse.as_ref().map_or(first, |_| self.origin + self.length as i64 / 8);
            let next = band.outputs.start.max(band.filter.grid.first_at(first));
            band.resampler.begin(start.div_euclid(band.filter.step as i64), next);
        }
    }

    /// The next output of a band.
    pub fn next(&self, band: usize) -> i64 {
        self.bands[band].resampler.next()
    }

    /// Takes samples, of complex ones I and Q in turn. Numbers that are not finite count as zero.
    pub fn push(&mut self, numbers: &[f32]) {
        for piece in numbers.chunks(if self.is_complex { 2 * PUSHED } else { PUSHED }) {
            self.take(piece);
            self.make(None);
        }
    }

    /// Makes the outputs up to the last sample. Samples after it count as zero.
    pub fn end(&mut self) {
        let end = self.origin + self.line.len() as i64;
        let zeros = [0.0; PUSHED];
        let is_left = |band: &Line| band.resampler.next() < band.last(Some(end));
        while self.bands.iter().any(is_left) {
            self.take(&zeros);
            self.make(Some(end));
        }
    }

    /// The outputs of a band so far, I and Q in turn, to be taken.
    pub fn made(&mut self, band: usize) -> &mut Vec<f32> {
        self.bands[band].resampler.made()
    }

    /// Whether a number counts as itself, and not as zero: it is finite, and at most 1e30.
    pub fn is_valid(number: f32) -> bool {
        number.abs() <= LARGEST
    }

    /// How many numbers were not finite.
    pub fn invalid_numbers(&self) -> u64 {
        self.invalid_numbers
    }

    /// Input samples per block.
    fn advance(&self) -> i64 {
        (self.length / 4 * 3) as i64
    }

    fn take(&mut self, numbers: &[f32]) {
        let mut invalid = 0u32;
        let mut number = |number: f32| {
            let is_valid = Self::is_valid(number);
            invalid += u32::from(!is_valid);
            if is_valid { number } else { 0.0 }
        };
        if self.is_complex {
            let (pairs, _) = numbers.as_chunks::<2>();
            self.line.extend(pairs.iter().map(|&[re, im]| Complex::new(number(re), number(im))));
        } else {
            self.line.extend(numbers.iter().map(|&re| Complex::new(number(re), 0.0)));
        }
        self.invalid_numbers += u64::from(invalid);
    }

    /// Processes what is complete in the line.
    fn make(&mut self, end: Option<i64>) {
        if self.length == 0 {
            for band in &mut self.bands {
                band.take(self.line.iter(), self.origin, end, self.is_complex);
            }
            self.origin += self.line.len() as i64;
            self.line.clear();
            return;
        }
        while self.line.len() >= self.length {
            let advance = self.advance();
            let lead = self.length / 8;
            if self.bands.iter().any(|band| band.coarse.is_some() && !band.is_done(end)) {
                self.block.copy_from_slice(&self.line[..self.length]);
                self.forward.process_with_scratch(&mut self.block, &mut self.scratch);
            }
            for band in &mut self.bands {
                if band.is_done(end) {
                    continue;
                }
                if band.coarse.is_some() {
                    band.take_bins(&self.block, self.origin, end, &mut self.scratch);
                } else {
                    // As far as the others are.
                    let from = (band.resampler.reached() - self.origin).max(0) as usize;
                    let until = lead + advance as usize;
                    let samples = self.line[from.min(until)..until].iter();
                    band.take(samples, self.origin + from as i64, end, self.is_complex);
                }
            }
            self.line.drain(..advance as usize);
            self.origin += advance;
        }
    }
}

impl Line {
    fn new(filter: &BandFilter, length: usize, planner: &mut FftPlanner<f32>) -> Self {
        let BandFilter { input_hz, band, step, .. } = *filter;
        let bins = if step > 1 { (band.centre_hz / input_hz * length as f64).round() } else { 0.0 };
        let coarse = (step > 1).then(|| Coarse::new(filter, bins as i64, length, planner));
        let rest_hz = band.centre_hz - bins * (input_hz / length.max(1) as f64);
        Self {
            filter: filter.clone(),
            outputs: i64::MIN..i64::MAX,
            coarse,
            oscillator: Oscillator::new(-rest_hz / (input_hz / step as f64)),
            resampler: Resampler::new(filter.filter()),
        }
    }

    /// Index after the last output to make, of a signal that ends here.
    fn last(&self, end: Option<i64>) -> i64 {
        end.map_or(self.outputs.end, |end| self.outputs.end.min(self.filter.grid.first_at(end)))
    }

    fn is_done(&self, end: Option<i64>) -> bool {
        self.resampler.next() >= self.last(end)
    }

    /// Takes samples as they are.
    fn take<'a>(
        &mut self,
        samples: impl ExactSizeIterator<Item = &'a Complex<f32>>,
        first: i64,
        end: Option<i64>,
        is_complex: bool,
    ) {
        if !self.resampler.pass(samples.len() as i64) {
            // A real tone has half of its amplitude on either side of 0 Hz.
            let gain = if is_complex { 1.0 } else { 2.0 };
            let numbers = self.resampler.extend(samples.flat_map(|it| [it.re * gain, it.im * gain]));
            self.oscillator.turn(first as u64, numbers);
        }
        let last = self.last(end);
        self.resampler.make(last);
    }

    /// Takes its bins of a block that begins at this sample.
    fn take_bins(
        &mut self,
        spectrum: &[Complex<f32>],
        start: i64,
        end: Option<i64>,
        scratch: &mut [Complex<f32>],
    ) {
        let Some(coarse) = &mut self.coarse else { return };
        let (length, step) = (spectrum.len(), self.filter.step);
        let (lead, count) = (length / 8 / step, length / 4 * 3 / step);
        if !self.resampler.pass(count as i64) {
            coarse.fill(spectrum, start);
            coarse.inverse.process_with_scratch(&mut coarse.block, scratch);
            let made = coarse.block[lead..lead + count].iter();
            let numbers = self.resampler.extend(made.flat_map(|it| [it.re, it.im]));
            let first = start.div_euclid(step as i64) + lead as i64;
            self.oscillator.turn(first as u64, numbers);
        }
        let last = self.last(end);
        self.resampler.make(last);
    }
}

impl Coarse {
    fn new(filter: &BandFilter, bin: i64, length: usize, planner: &mut FftPlanner<f32>) -> Self {
        let BandFilter { input_hz, stop_hz, step, is_complex, .. } = *filter;
        let half_rate_hz = input_hz / step as f64 / 2.0;
        let reach = length / 8;
        let low_pass =
            LowPass::reaching((stop_hz + half_rate_hz) / 2.0 / input_hz, reach as f64, ATTENUATION_DB);
        let mut taps = Vec::new();
        low_pass.taps(0.0, 2 * reach + 1, &mut taps);
        // The middle tap stands at 0, so that nothing is delayed and the response is real.
        let mut response = vec![Complex::ZERO; length];
        let gain = if is_complex { 1.0 } else { 2.0 } / length as f64;
        for (at, tap) in taps.into_iter().enumerate() {
            response[(at + length - reach) % length].re = (tap * gain) as f32;
        }
        planner.plan_fft_forward(length).process(&mut response);
        let bins = length / step;
        let response = (0..bins).map(|at| response[place(at, bins, 0, length)].re).collect();
        Self {
            inverse: planner.plan_fft_inverse(bins),
            bin: bin.rem_euclid(length as i64) as usize,
            response,
            block: vec![Complex::ZERO; bins],
        }
    }

    /// The bins around its own, which becomes 0 Hz, times the response.
    fn fill(&mut self, spectrum: &[Complex<f32>], start: i64) {
        let (length, bins) = (spectrum.len(), self.block.len());
        // The block begins at a multiple of a quarter of its length, so the shift begins at a quarter turn.
        let quarters = (start / (length as i64 / 4)).rem_euclid(4) * self.bin as i64;
        let turn = match quarters.rem_euclid(4) {
            0 => Complex::new(1.0, 0.0),
            1 => Complex::new(0.0, -1.0),
            2 => Complex::new(-1.0, 0.0),
            _ => Complex::new(0.0, 1.0),
        };
        let mut from = self.bin;
        for (at, (out, response)) in self.block.iter_mut().zip(&self.response).enumerate() {
            if at == bins.div_ceil(2) {
                from = place(at, bins, self.bin, length);
            }
            *out = spectrum[from] * turn * *response;
            from = if from + 1 == length { 0 } else { from + 1 };
        }
    }
}

/// Bin of a long transform that the bin `at` of a short one of `bins` stands for, around `middle`.
fn place(at: usize, bins: usize, middle: usize, length: usize) -> usize {
    let below = if at < bins.div_ceil(2) { 0 } else { bins };
    (at + middle + length - below) % length
}

impl fmt::Debug for Cutter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cutter").field("length", &self.length).field("bands", &self.bands.len()).finish()
    }
}

/// Of the first filter.
const ATTENUATION_DB: f64 = 100.0;
/// Numbers to take at once.
const PUSHED: usize = 4_096;
/// Larger numbers might overflow within a block.
const LARGEST: f32 = 1e30;
