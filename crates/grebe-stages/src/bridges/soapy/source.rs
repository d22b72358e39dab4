//! `soapy:` as a source: the driver writes samples straight into frames.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult, monotonic_ns};
use grebe_frame::{BatchMut, BatchPool, ClockReading, Description, HEADER_BYTES, Header};
use grebe_process::stream::{CHUNK_BYTES, block_length};

use super::device_time::{DeviceTime, Missing};
use super::radio::{self, Refusals};
use super::receive::{receive, reconnect, requested_tuning};
use super::sys::{Direction, Read, RxStream, StreamError};
use super::uri::Soapy;
use crate::error::Error;
use crate::session::{Bounded, Limit, Silence};
use crate::transport::Reconnect;
use crate::tuner::{Switch, Tuner, Tuning};

/// Receives with a radio.
///
/// Losses that the driver reports, or that its times show, become gaps at their place.
pub(crate) struct SoapySource {
    name: String,
    /// `None`: the device is lost.
    radio: Option<RxStream>,
    channels: Vec<usize>,
    pool: Option<BatchPool>,
    /// The next frame, without samples.
    next: Header,
    block_samples: usize,
    description: Arc<Description>,
    /// The requested tuning, and the number of its changes handled so far.
    tuner: Tuner,
    /// As last sent to the device.
    switches: BTreeMap<Switch, i32>,
    tuned: Tuning,
    seen: u64,
    time: DeviceTime,
    /// Samples read after a gap, for the frame after it.
    held: Option<(Read, u64)>,
    held_bytes: Vec<u8>,
    has_status: bool,
    /// Start of the silence of a connected device; time of its loss.
    silent: Option<Instant>,
    lost: Option<Instant>,
    why_lost: String,
    silence: Silence,
    reconnect: Option<Reconnect<RxStream>>,
    limit: Limit,
    counters: Counted,
}

impl SoapySource {
    /// Opens the device, applies the settings of its name, and starts it. `tuner` accepts later changes.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::Soapy`].
    pub(crate) fn open(name: &Soapy, tuner: Option<&Tuner>) -> Result<Self, Error> {
        let channels = if name.channels.is_empty() { vec![0] } else { name.channels.clone() };
        let (radio, format) = receive(name, &channels, None, &mut Refusals::End)?;
        let tuned = radio::tuning(radio.device(), Direction::Rx, channels[0], &requested_tuning(name));
        let header = Header {
            channel_count: channels.len() as u32,
            format,
            sample_rate_hz: tuned.rate_hz,
            ..Header::default()
        };
        let block_samples = block_length(CHUNK_BYTES, channels.len(), format, tuned.rate_hz) as usize;
        let tuner = Tuner::of_receiver(tuner, tuned);
        let reconnect = name.reconnects.then(|| reconnect(name, format, channels.clone(), tuner.clone()));
        Ok(Self {
            name: name.short(),
            description: Arc::new(radio::description(radio.device(), &channels, &tuned)),
            held_bytes: vec![0; header_of(header, block_samples).payload_bytes()],
            radio: Some(radio),
            channels,
            pool: None,
            next: header,
            block_samples,
            seen: tuner.changes(),
            switches: BTreeMap::new(),
            tuner,
            tuned,
            time: DeviceTime::default(),
            held: None,
            has_status: true,
            silent: None,
            lost: None,
            why_lost: String::new(),
            silence: Silence::begin(),
            reconnect,
            limit: Limit::default(),
            counters: Counted::default(),
        })
    }

    /// Declares that the driver drops samples without reporting it.
    pub(crate) fn loses_unseen(self) -> Self {
        self.counters.unseen_loss.set(1);
        self
    }

    pub(crate) fn tuner(&self) -> Tuner {
        self.tuner.clone()
    }

    /// Current tuning.
    pub(crate) fn tuned(&self) -> Tuning {
        self.tuned
    }

    /// Names of the driver and of the hardware.
    pub(crate) fn made_by(&self) -> (String, String) {
        let device = self.radio.as_ref().map(RxStream::device);
        device.map_or_else(Default::default, |device| (device.driver(), radio::hardware(device)))
    }

    /// Current settings as a text.
    pub(crate) fn words(&self) -> String {
        radio::words(self.next.format, &self.tuned, &self.description)
    }

    /// Fills a frame, or the part that arrives in time. Empty if nothing arrives.
    fn fill(&mut self, batch: &mut BatchMut, ctx: &mut Context) -> Result<(), Lost> {
        let Some(radio) = &mut self.radio else { return Ok(()) };
        let sample_bytes = self.next.format.bytes();
        let channel_bytes = self.block_samples * sample_bytes;
        let rate_hz = self.next.sample_rate_hz;
        let place = HEADER_BYTES..HEADER_BYTES + channel_bytes * self.channels.len();
        let (mut filled, mut stamp_ns) = (0, 0);
        if let Some((read, stamp)) = self.held.take() {
            // Held because the previous frame ended before them.
            let held = self.held_bytes.chunks_exact(channel_bytes);
            for (to, from) in batch.chunk()[place.clone()].chunks_exact_mut(channel_bytes).zip(held) {
                let bytes = read.samples * sample_bytes;
                to[..bytes].copy_from_slice(&from[..bytes]);
            }
            ctx.count_copied(1);
            (filled, stamp_ns) = (read.samples, stamp);
        }
        let ended = loop {
            let left = self.block_samples - filled;
            if left == 0 {
                break Ok(());
            }
            // The first samples may take long. The rest of a block takes no longer than its duration.
            let timeout = match filled {
                0 => READ_WITHIN,
                _ if rate_hz > 0.0 => Duration::from_secs_f64(left as f64 / rate_hz).min(READ_WITHIN),
                _ => Duration::ZERO,
            };
            let payload = &mut batch.chunk()[place.clone()];
            let began = Instant::now();
            let got = radio.read(payload, channel_bytes, filled, left, timeout);
            let took = began.elapsed();
            ctx.count_waited(took);
            let read = match got {
                Ok(read) => read,
                Err(StreamError::Timeout) => {
                    // Some drivers return at once without samples.
                    if filled == 0 && took < SPIN_BELOW {
                        ctx.sleep_until(began + SPIN_BELOW);
                    }
                    break Ok(());
                }
                Err(StreamError::Overflow | StreamError::Damaged) => {
                    self.counters.overflows.add(1);
                    self.time.suspect();
                    break Ok(());
                }
                Err(StreamError::Failed(why)) => break Err(Lost(why)),
                Err(StreamError::NotSupported | StreamError::Underflow) => {
                    break Err(Lost("its driver does not receive".to_owned()));
                }
            };
            let missing = self.time.step(&read, rate_hz);
            let index = self.next.first_sample_index + filled as u64;
            let stamp = self.time.stamp_ns(&read, index, rate_hz, monotonic_ns());
            if missing == Missing::Nothing || filled == 0 {
                if filled == 0 {
                    leave_out(&mut self.next, missing, &self.counters);
                    stamp_ns = stamp;
                }
                filled += read.samples;
                continue;
            }
            // These samples follow a gap, so the frame ends before them.
            let held = self.held_bytes.chunks_exact_mut(channel_bytes);
            for (to, from) in held.zip(batch.chunk()[place.clone()].chunks_exact(channel_bytes)) {
                let from = &from[filled * sample_bytes..][..read.samples * sample_bytes];
                to[..from.len()].copy_from_slice(from);
            }
            self.held = Some((read, stamp));
            self.enter(batch, filled, stamp_ns, ctx);
            leave_out(&mut self.next, missing, &self.counters);
            return Ok(());
        };
        self.enter(batch, filled, stamp_ns, ctx);
        ended
    }

    /// Makes a frame of the samples after the space for its header.
    fn enter(&mut self, batch: &mut BatchMut, samples: usize, stamp_ns: u64, ctx: &Context) {
        if samples == 0 {
            return;
        }
        let format = self.next.format;
        let header = Header { producer_ts_ns: stamp_ns, ..header_of(self.next, samples) };
        let channel_bytes = self.block_samples * format.bytes();
        let taken = samples * format.bytes();
        let chunk = batch.chunk();
        let Some((head, payload)) = chunk.split_first_chunk_mut::<HEADER_BYTES>() else { return };
        header.write(head);
        if samples < self.block_samples && self.channels.len() > 1 {
            // A short frame closes up its channels.
            for channel in 1..self.channels.len() {
                payload
                    .copy_within(channel * channel_bytes..channel * channel_bytes + taken, channel * taken);
            }
            ctx.count_copied(1);
        }
        format.swap_to_host(&mut payload[..taken * self.channels.len()]);
        // It has room for a whole block.
        if batch.adopt(0, &header).is_ok() {
            self.next.sequence += 1;
            self.next.first_sample_index = header.next_sample_index();
            self.silent = None;
            self.silence.reset(Instant::now());
        }
    }

    /// Repeats the description if the device's clock turns out to be UTC.
    fn describe_clock(&mut self, stamp_ns: u64) {
        let reading = ClockReading {
            producer_ts_ns: stamp_ns,
            unix_time_ns: stamp_ns as i64,
            error_ns: None,
            clock: None,
        };
        let known = self.description.clock;
        if known.is_none_or(|known| known.unix_time_ns != known.producer_ts_ns as i64) {
            let clock = Some(reading);
            self.description = Arc::new(Description { clock, ..(*self.description).clone() });
        }
    }

    /// Applies changes of the tuning, and notes the sample at which they take effect.
    fn retune(&mut self, ctx: &Context) {
        let changes = self.tuner.changes();
        // Held samples belong to the previous rate.
        let may = changes != self.seen && self.held.is_none();
        let Some(radio) = self.radio.as_mut().filter(|_| may) else { return };
        self.seen = changes;
        let wanted = self.tuner.tuning();
        let new_rate = wanted.rate_hz != self.tuned.rate_hz;
        if new_rate {
            // Few drivers change the rate while running.
            radio.deactivate();
        }
        let (accepted, refused) = radio::retune(radio.device(), &self.channels, &self.tuned, &wanted);
        if new_rate && let Err(why) = radio.activate() {
            self.lose(why, ctx);
            return;
        }
        let switches = self.tuner.switches();
        let mut refusals = refused.len();
        for (switch, value) in &switches {
            if self.switches.get(switch) != Some(value)
                && radio::switch(radio.device(), &self.channels, *switch, *value).is_err()
            {
                refusals += 1;
            }
        }
        self.switches = switches;
        self.counters.refused_changes.add(refusals as u64);
        self.tuned = accepted;
        self.tuner.settle(accepted, changes);
        let device = radio.device();
        let is = radio::tuning(device, Direction::Rx, self.channels[0], &accepted);
        let ahead = match device.time_ns().filter(|_| !new_rate) {
            Some(now_ns) => self.time.samples_until(now_ns, self.next.sample_rate_hz),
            None => 0,
        };
        let said = radio::description(device, &self.channels, &is);
        if new_rate && is.rate_hz > 0.0 {
            self.time.forget();
            self.next.sample_rate_hz = is.rate_hz;
            let block = block_length(CHUNK_BYTES, self.channels.len(), self.next.format, is.rate_hz) as usize;
            self.block_samples = block;
            self.held_bytes.resize(header_of(self.next, block).payload_bytes(), 0);
        }
        let first_sample_index = self.next.first_sample_index + ahead;
        let clock = self.description.clock;
        self.description = Arc::new(Description { first_sample_index, clock, ..said });
    }

    /// Handles the loss of the device.
    fn lose(&mut self, why: String, ctx: &Context) {
        if let Some(reconnect) = &mut self.reconnect {
            reconnect.lost(Some(&why), |words| ctx.note(words));
        }
        self.held = None;
        self.radio = None;
        // The loss may have happened some time before it was noticed.
        (self.lost, self.silent) = (Some(self.silence.since()), None);
        self.why_lost = why;
    }

    /// Continues after a gap as long as the device was lost by this machine's clock.
    fn go_on(&mut self, radio: RxStream, since: Instant) {
        let away = (since.elapsed().as_secs_f64() * self.next.sample_rate_hz) as u64;
        self.next.sequence += 1;
        self.next.first_sample_index += away.max(1);
        self.counters.lost_frames.add(1);
        self.counters.lost_samples.add(away.max(1));
        self.counters.reconnects.add(1);
        self.time.forget();
        self.has_status = true;
        if !self.switches.is_empty() {
            // The device gets all settings anew.
            self.switches.clear();
            self.seen = self.seen.wrapping_sub(1);
        }
        self.tuned = radio::tuning(radio.device(), Direction::Rx, self.channels[0], &self.tuner.tuning());
        self.next.sample_rate_hz = self.tuned.rate_hz;
        let clock = self.description.clock;
        let said = radio::description(radio.device(), &self.channels, &self.tuned);
        let first_sample_index = self.next.first_sample_index;
        self.description = Arc::new(Description { first_sample_index, clock, ..said });
        (self.radio, self.lost) = (Some(radio), None);
        self.silence.reset(Instant::now());
    }

    /// Reads the driver's status.
    fn hear_status(&mut self) {
        let Some(radio) = self.radio.as_mut().filter(|_| self.has_status) else { return };
        match radio.status() {
            Err(StreamError::Overflow | StreamError::Damaged) if !self.time.is_suspect() => {
                self.counters.overflows.add(1);
                self.time.suspect();
            }
            Err(StreamError::NotSupported | StreamError::Failed(_)) => self.has_status = false,
            Ok(()) | Err(_) => {}
        }
    }

    /// Handles a step without samples.
    fn check_silence(&mut self, ctx: &Context) -> StageResult {
        self.silence.check()?;
        if self.radio.is_some() && self.silent.get_or_insert_with(Instant::now).elapsed() >= SILENT_MAX {
            self.lose(format!("it has delivered no sample for {} s", SILENT_MAX.as_secs()), ctx);
        }
        self.check_lost()
    }

    /// Whether the device may reconnect.
    fn check_lost(&self) -> StageResult {
        if self.radio.is_none() && self.reconnect.is_none() {
            return Err(Error::DeviceGone { uri: self.name.clone(), why: self.why_lost.clone() }.into());
        }
        Ok(Outcome::Produced)
    }
}

/// The device no longer answers, with the reason.
struct Lost(String);

/// Header of a frame of `samples` samples.
fn header_of(next: Header, samples: usize) -> Header {
    Header { block_length_samples: samples as u32, ..next }
}

/// Adds a gap before the next sample. A gap of unknown length counts as one sample.
fn leave_out(next: &mut Header, missing: Missing, counters: &Counted) {
    let samples = match missing {
        Missing::Nothing => return,
        Missing::Samples(samples) => samples,
        Missing::Unknown => {
            counters.unknown_gaps.add(1);
            1
        }
    };
    next.first_sample_index += samples;
    next.sg_drops_total += samples;
    counters.generator_samples.add(samples);
}

impl Bounded for SoapySource {
    fn limit(&mut self) -> &mut Limit {
        &mut self.limit
    }

    fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }
}

impl Stage for SoapySource {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if let (Some(since), Some(reconnect)) = (self.lost, &mut self.reconnect) {
            return match ctx.waiting(|| reconnect.poll(RECONNECT_WAIT, |words| ctx.note(words)))? {
                Some(radio) => {
                    self.go_on(radio, since);
                    Ok(Outcome::Produced)
                }
                None => self.check_silence(ctx),
            };
        }
        self.retune(ctx);
        let pool = self.pool.get_or_insert_with(|| ctx.pool(ctx.batches_in_flight(), CHUNK_BYTES));
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        let filled = self.fill(&mut batch, ctx);
        self.hear_status();
        let stamp_ns = batch.frames().next().map(|frame| frame.header().producer_ts_ns);
        if let Some(stamp_ns) = stamp_ns {
            if self.time.is_utc() {
                self.describe_clock(stamp_ns);
            }
            batch.describe(Some(&self.description));
            self.limit.send(batch.freeze(), output, ctx);
        }
        if self.limit.is_reached() {
            return Ok(Outcome::End);
        }
        match filled {
            Err(Lost(why)) => {
                ctx.waiting(|| self.lose(why, ctx));
                self.check_lost()
            }
            Ok(()) if stamp_ns.is_none() => self.check_silence(ctx),
            Ok(()) => Ok(Outcome::Produced),
        }
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        ctx.set_end_of_stream(header_of(self.next, 0));
        // Closed here, not in the thread that happens to drop the graph.
        ctx.waiting(|| self.radio = None);
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

impl std::fmt::Debug for SoapySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoapySource")
            .field("name", &self.name)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

grebe_flow::counters! {
    struct Counted { overflows, generator_samples, unknown_gaps, lost_frames, lost_samples, reconnects, refused_changes, gauge unseen_loss }
}
const READ_WITHIN: Duration = Duration::from_millis(100);
/// Maximum wait of a step for a lost device.
const RECONNECT_WAIT: Duration = Duration::from_millis(100);
const SPIN_BELOW: Duration = Duration::from_millis(1);
/// A receiver that delivers nothing for this long is unplugged, although its driver does not report it.
const SILENT_MAX: Duration = Duration::from_secs(5);
