//! `soapy:` as a sink: a radio sends the samples without a copy.

use std::time::{Duration, Instant};

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, Header, SampleFormat};
use grebe_ring::Cancel;

use super::radio::{self, Refusals};
use super::sys::{Device, Direction, StreamError, TxStream};
use super::uri::Soapy;
use crate::error::Error;
use crate::scheme::Scheme as _;
use crate::session::Gaps;
use crate::transport::Reconnect;

/// Transmits a stream at the radio's rate.
///
/// A radio cannot represent a gap: the sink skips the gaps of the stream and counts them. During an underrun the radio
/// is silent, and the sink counts underruns that the driver reports.
pub(crate) struct SoapySink {
    name: Soapy,
    /// The device, until the first frame gives its settings.
    device: Option<Device>,
    radio: Option<TxStream>,
    /// The stream properties that the radio is set up for.
    shape: Option<Shape>,
    /// A batch, the number of its frames sent, and the samples sent of the next frame.
    batch: Option<(Batch, usize, usize)>,
    gaps: Gaps,
    scratch: Vec<u8>,
    began: Option<Instant>,
    sent_samples: u64,
    has_status: bool,
    stuck: Option<Instant>,
    reconnect: Option<Reconnect<TxStream>>,
    is_lost: bool,
    counters: Counted,
}

/// The stream properties that a radio depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    format: SampleFormat,
    channels: usize,
    rate_hz: f64,
}

impl SoapySink {
    /// Opens the device. The first samples determine its rate and format.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::Soapy`]; the name states no frequency.
    pub(crate) fn open(name: &Soapy) -> Result<Self, Error> {
        let channels = if name.channels.is_empty() { vec![0] } else { name.channels.clone() };
        let device = radio::open(name, Direction::Tx, &channels, &mut Refusals::End)?;
        if name.frequency_hz.is_none() && device.is_tunable(Direction::Tx, channels[0]) {
            let reason = "has no frequency: add frequency=, as in frequency=433.92M".to_owned();
            return Err(Error::Name { name: name.uri(), reason });
        }
        Ok(Self {
            name: name.clone(),
            device: Some(device),
            radio: None,
            shape: None,
            batch: None,
            gaps: Gaps::default(),
            scratch: Vec::new(),
            began: None,
            sent_samples: 0,
            has_status: true,
            stuck: None,
            reconnect: None,
            is_lost: false,
            counters: Counted::default(),
        })
    }

    /// Sets the radio up for a stream: at the start, and at each change of rate.
    fn fit(&mut self, header: &Header) -> Result<(), Error> {
        let (format, channels) = (header.format, header.channel_count as usize);
        let rate_hz = self.name.rate_hz.unwrap_or(header.sample_rate_hz);
        let shape = Shape { format, channels, rate_hz };
        if self.shape == Some(shape) {
            return Ok(());
        }
        if self.shape.is_some_and(|shape| (shape.format, shape.channels) != (format, channels)) {
            let what =
                format!("the stream changed to {format} in {channels} channels, which a radio cannot follow");
            return Err(grebe_process::Error::Takes { what }.into());
        }
        if rate_hz <= 0.0 {
            let reason = "needs rate=: the stream has no rate".to_owned();
            return Err(Error::Name { name: self.name.uri(), reason });
        }
        if !self.name.channels.is_empty() && self.name.channels.len() != channels {
            let (named, uri) = (self.name.channels.len(), self.name.short());
            let what =
                format!("the stream has {channels} channels, and {uri} names {named}: put select before it");
            return Err(grebe_process::Error::Takes { what }.into());
        }
        let mut name = self.name.clone();
        (name.rate_hz, name.format) = (Some(rate_hz), Some(format));
        if name.channels.is_empty() {
            name.channels = (0..channels).collect();
        }
        // At a change of rate it is closed and reopened.
        self.radio = None;
        self.radio = Some(transmit(&name, self.device.take())?);
        self.reconnect = name.reconnects.then(|| {
            Reconnect::new(name.short(), move |cancel: &Cancel| {
                if cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                transmit(&name, None)
            })
        });
        (self.shape, self.began, self.sent_samples, self.has_status) = (Some(shape), None, 0, true);
        Ok(())
    }

    /// Sends what the radio accepts of the batch within a step. Returns whether that was all.
    fn send(&mut self, ctx: &Context) -> StageResult<bool> {
        let began = Instant::now();
        while let Some((batch, frame_at, done)) = self.batch.take() {
            let Some(frame) = batch.frames().nth(frame_at) else { return Ok(true) };
            let header = frame.header();
            if done == 0 {
                let gap = self.gaps.before(&header);
                self.counters.unmarked_gap_samples.add(gap);
                self.fit(&header)?;
            }
            let block = header.block_length_samples as usize;
            if !self.has_radio(ctx)? {
                self.counters.absent_samples.add((block - done) as u64);
                self.batch = Some((batch, frame_at + 1, 0));
                continue;
            }
            let Some(radio) = &mut self.radio else { return Ok(true) };
            let mut payload = frame.payload();
            if cfg!(target_endian = "big") {
                self.scratch.clear();
                self.scratch.extend_from_slice(payload);
                header.format.swap_to_host(&mut self.scratch);
                payload = &self.scratch;
            }
            let written =
                ctx.waiting(|| radio.write(payload, block * header.format.bytes(), done, WRITE_WITHIN));
            let mut next = (frame_at, done);
            let failed = match written {
                Ok(samples) => {
                    self.began.get_or_insert_with(Instant::now);
                    (self.stuck, self.sent_samples) = (None, self.sent_samples + samples as u64);
                    let done = done + samples;
                    next = if done < block { (frame_at, done) } else { (frame_at + 1, 0) };
                    None
                }
                Err(StreamError::Underflow) => {
                    self.counters.underflows.add(1);
                    None
                }
                Err(StreamError::Timeout | StreamError::Overflow | StreamError::Damaged) => {
                    let stuck = self.stuck.get_or_insert_with(Instant::now).elapsed();
                    let why = || format!("it has accepted no sample for {} s", STUCK_MAX.as_secs());
                    (stuck >= STUCK_MAX).then(why)
                }
                Err(StreamError::NotSupported) => Some("its driver does not send".to_owned()),
                Err(StreamError::Failed(why)) => Some(why),
            };
            if failed.is_some() {
                self.counters.absent_samples.add((block - done) as u64);
                next = (frame_at + 1, 0);
            }
            self.batch = Some((batch, next.0, next.1));
            failed.map_or(Ok(()), |why| self.lose(why, ctx))?;
            if began.elapsed() >= STEP {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the radio is open, after trying to reopen it.
    fn has_radio(&mut self, ctx: &Context) -> Result<bool, Error> {
        if self.is_lost
            && let Some(reconnect) = &mut self.reconnect
            && let Some(radio) = ctx.waiting(|| reconnect.poll(Duration::ZERO, |words| ctx.note(words)))?
        {
            (self.radio, self.is_lost, self.has_status) = (Some(radio), false, true);
            self.counters.reconnects.add(1);
        }
        Ok(!self.is_lost)
    }

    /// Handles the loss of the device.
    fn lose(&mut self, why: String, ctx: &Context) -> Result<(), Error> {
        (self.radio, self.stuck, self.is_lost) = (None, None, true);
        match &mut self.reconnect {
            Some(reconnect) => {
                reconnect.lost(Some(&why), |words| ctx.note(words));
                Ok(())
            }
            None => Err(Error::DeviceGone { uri: self.name.short(), why }),
        }
    }

    /// Reads the driver's status: underruns.
    fn hear_status(&mut self) {
        let Some(radio) = self.radio.as_mut().filter(|_| self.has_status) else { return };
        match radio.status() {
            Err(StreamError::Underflow) => self.counters.underflows.add(1),
            Err(StreamError::NotSupported | StreamError::Failed(_)) => self.has_status = false,
            Ok(()) | Err(_) => {}
        }
    }
}

/// Opens a stream to the device, and the device if needed. A refused setting is an error, also after a reconnect,
/// because a transmitter on a wrong frequency does harm.
fn transmit(name: &Soapy, device: Option<Device>) -> Result<TxStream, Error> {
    let failed = |action: &str, why| Error::Soapy { action: action.to_owned(), uri: name.short(), why };
    let device = match device {
        // The rate and all channels are known now.
        Some(device) => {
            radio::set(name, &device, Direction::Tx, &name.channels, &mut Refusals::End)?;
            device
        }
        None => radio::open(name, Direction::Tx, &name.channels, &mut Refusals::End)?,
    };
    let format = radio::format(&device, Direction::Tx, name.channels[0], name.format);
    let format = format.map_err(|why| failed("send to", format!("{why}: put convert before it")))?;
    let args = &name.stream_args;
    TxStream::open(device, radio::to_soapy(format), format.bytes(), &name.channels, args)
        .map_err(|why| failed("send to", why))
}

impl Stage for SoapySink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.batch.is_none() {
            let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
            self.batch = Some((batch, 0, 0));
        }
        let is_sent = self.send(ctx)?;
        self.hear_status();
        Ok(if is_sent { Outcome::Produced } else { Outcome::Again })
    }

    /// Lets the radio play out its buffer, estimated from the rate.
    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let Some(mut radio) = self.radio.take() else { return Ok(()) };
        radio.end(WRITE_WITHIN);
        if let (Some(began), Some(shape)) = (self.began, self.shape) {
            let takes_s = self.sent_samples as f64 / shape.rate_hz;
            let left = Duration::from_secs_f64(takes_s.min(1e9)).saturating_sub(began.elapsed());
            ctx.waiting(|| std::thread::sleep(left.min(LINGER_MAX)));
        }
        self.radio = Some(radio);
        self.hear_status();
        ctx.waiting(|| self.radio = None);
        Ok(())
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

impl std::fmt::Debug for SoapySink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoapySink").field("name", &self.name).finish_non_exhaustive()
    }
}

grebe_flow::counters! {
    struct Counted { unmarked_gap_samples, absent_samples, reconnects, underflows }
}
const WRITE_WITHIN: Duration = Duration::from_millis(100);
/// Limit of a step's duration.
const STEP: Duration = Duration::from_millis(100);
/// A radio that accepts nothing for this long is unplugged, although its driver does not report it.
const STUCK_MAX: Duration = Duration::from_secs(5);
const LINGER_MAX: Duration = Duration::from_secs(2);
