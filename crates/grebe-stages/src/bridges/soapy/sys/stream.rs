//! Streams: samples of one or several channels, each channel in a place of its own.

use std::ffi::{c_int, c_long, c_void};
use std::ptr;
use std::time::Duration;

use super::device::{Device, Direction};
use super::library::{RawStream, c_text};

/// What a device sends.
#[derive(Debug)]
pub(crate) struct RxStream {
    stream: Stream,
    /// Where each channel goes.
    places: Vec<*mut c_void>,
}

/// What a device is sent.
#[derive(Debug)]
pub(crate) struct TxStream {
    stream: Stream,
    /// Where each channel lies.
    places: Vec<*const c_void>,
}

// SAFETY: a stream is used by one thread at a time, as its device is; the places are only used within a call.
unsafe impl Send for RxStream {}
// SAFETY: as above.
unsafe impl Send for TxStream {}

/// Samples that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Read {
    /// Per channel, one at least.
    pub(crate) samples: usize,
    /// When the first was made, by the device's clock, where the driver says so.
    pub(crate) time_ns: Option<i64>,
}

/// Why nothing was read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing in that time.
    Timeout,
    /// Nobody took what was received: some of it is gone.
    Overflow,
    /// What came was damaged, or not of its time.
    Damaged,
    /// Nothing was there to be sent.
    Underflow,
    /// The driver does not do this.
    NotSupported,
    /// Anything else, in the driver's words.
    Failed(String),
}

#[derive(Debug)]
struct Stream {
    device: Device,
    raw: RawStream,
    sample_bytes: usize,
}

impl RxStream {
    /// A stream of these channels in this format, which has so many bytes a sample; it does not run yet.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn open(
        device: Device,
        format: &str,
        sample_bytes: usize,
        channels: &[usize],
        args: &[(String, String)],
    ) -> Result<Self, String> {
        let stream = Stream::open(device, Direction::Rx, format, sample_bytes, channels, args)?;
        Ok(Self { stream, places: vec![ptr::null_mut(); channels.len()] })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.stream.device
    }

    /// Lets it run.
    pub(crate) fn activate(&mut self) -> Result<(), String> {
        self.stream.activate()
    }

    /// Stops it, until it is activated again.
    pub(crate) fn deactivate(&mut self) {
        self.stream.deactivate();
    }

    /// Reads up to `samples` samples of each channel behind the `filled` that are there: in `payload` each channel has
    /// `channel_bytes`, one behind the other.
    ///
    /// # Errors
    /// Why nothing came. [`Trouble::Failed`] also where there is no room for so many samples.
    pub(crate) fn read(
        &mut self,
        payload: &mut [u8],
        channel_bytes: usize,
        filled: usize,
        samples: usize,
        timeout: Duration,
    ) -> Result<Read, Trouble> {
        let sample_bytes = self.stream.sample_bytes;
        let has_room = payload.len() >= self.places.len() * channel_bytes
            && channel_bytes >= (filled + samples) * sample_bytes;
        if !has_room || samples == 0 {
            return Err(Trouble::Failed("there is no room for samples".to_owned()));
        }
        let channels = payload.chunks_exact_mut(channel_bytes);
        for (place, channel) in self.places.iter_mut().zip(channels) {
            *place = channel[filled * sample_bytes..].as_mut_ptr().cast();
        }
        let (mut flags, mut time_ns) = (0, 0);
        // SAFETY: device and stream are open; each place has room for so many samples, as was looked at above; what the driver
        // says goes to places that are ours.
        let code = unsafe {
            (self.stream.device.library.functions.read_stream)(
                self.stream.device.raw,
                self.stream.raw,
                self.places.as_ptr(),
                samples,
                &mut flags,
                &mut time_ns,
                timeout.as_micros() as c_long,
            )
        };
        let samples = self.stream.judge(code)?.min(samples);
        Ok(Read { samples, time_ns: (flags & HAS_TIME != 0).then_some(time_ns) })
    }

    /// What the driver tells beside the samples, without waiting: some tell only here that they lost some.
    pub(crate) fn status(&mut self) -> Result<(), Trouble> {
        self.stream.status()
    }
}

impl TxStream {
    /// As [`RxStream::open`].
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn open(
        device: Device,
        format: &str,
        sample_bytes: usize,
        channels: &[usize],
        args: &[(String, String)],
    ) -> Result<Self, String> {
        let mut stream = Stream::open(device, Direction::Tx, format, sample_bytes, channels, args)?;
        stream.activate()?;
        Ok(Self { stream, places: vec![ptr::null(); channels.len()] })
    }

    /// Writes what stands in `payload` behind the first `done` samples of each channel; each has `channel_bytes` there. How many of
    /// them the device took.
    ///
    /// # Errors
    /// Why it took none.
    pub(crate) fn write(
        &mut self,
        payload: &[u8],
        channel_bytes: usize,
        done: usize,
        timeout: Duration,
    ) -> Result<usize, Trouble> {
        let sample_bytes = self.stream.sample_bytes;
        let samples = (channel_bytes / sample_bytes).saturating_sub(done);
        if payload.len() < self.places.len() * channel_bytes || samples == 0 {
            return Err(Trouble::Failed("there are no samples to write".to_owned()));
        }
        for (place, channel) in self.places.iter_mut().zip(payload.chunks_exact(channel_bytes)) {
            *place = channel[done * sample_bytes..].as_ptr().cast();
        }
        let code = self.call_write(samples, 0, timeout);
        Ok(self.stream.judge(code)?.min(samples))
    }

    /// Says that nothing more comes. Not every driver wants to hear that.
    pub(crate) fn end(&mut self, timeout: Duration) {
        self.call_write(0, END_BURST, timeout);
    }

    /// What the driver tells beside the samples, without waiting.
    pub(crate) fn status(&mut self) -> Result<(), Trouble> {
        self.stream.status()
    }

    fn call_write(&mut self, samples: usize, mut flags: c_int, timeout: Duration) -> c_int {
        // SAFETY: device and stream are open; so many samples lie at each place, and where there are none, none is read.
        unsafe {
            (self.stream.device.library.functions.write_stream)(
                self.stream.device.raw,
                self.stream.raw,
                self.places.as_ptr(),
                samples,
                &mut flags,
                0,
                timeout.as_micros() as c_long,
            )
        }
    }
}

impl Stream {
    fn open(
        device: Device,
        direction: Direction,
        format: &str,
        sample_bytes: usize,
        channels: &[usize],
        args: &[(String, String)],
    ) -> Result<Self, String> {
        let format = c_text(format);
        let raw = device.library.with_kwargs(args, |args| {
            // SAFETY: the device is open; text, channels and arguments last as long as the call.
            unsafe {
                (device.library.functions.setup_stream)(
                    device.raw,
                    direction as c_int,
                    format.as_ptr(),
                    channels.as_ptr(),
                    channels.len(),
                    args,
                )
            }
        });
        if raw.is_null() {
            return Err(device.library.last_error().unwrap_or_else(|| "it gives none".to_owned()));
        }
        Ok(Self { device, raw, sample_bytes })
    }

    fn activate(&mut self) -> Result<(), String> {
        // SAFETY: device and stream are open.
        let code =
            unsafe { (self.device.library.functions.activate_stream)(self.device.raw, self.raw, 0, 0, 0) };
        match self.device.library.last_error() {
            Some(error) => Err(error),
            None if code < 0 => Err(self.device.words(code)),
            None => Ok(()),
        }
    }

    fn deactivate(&mut self) {
        // SAFETY: device and stream are open.
        unsafe { (self.device.library.functions.deactivate_stream)(self.device.raw, self.raw, 0, 0) };
    }

    fn status(&mut self) -> Result<(), Trouble> {
        let (mut channels, mut flags, mut time_ns) = (0, 0, 0);
        // SAFETY: device and stream are open; what the driver says goes to places that are ours.
        let code = unsafe {
            (self.device.library.functions.read_stream_status)(
                self.device.raw,
                self.raw,
                &mut channels,
                &mut flags,
                &mut time_ns,
                0,
            )
        };
        if code == 0 { Ok(()) } else { self.judge(code).map(drop) }
    }

    /// How many samples passed; none is no better than a timeout.
    fn judge(&self, code: c_int) -> Result<usize, Trouble> {
        match code {
            1.. => Ok(code as usize),
            0 => Err(Trouble::Timeout),
            // What a driver throws comes as one of these numbers too.
            TIMEOUT => Err(self.device.library.last_error().map_or(Trouble::Timeout, Trouble::Failed)),
            OVERFLOW => Err(Trouble::Overflow),
            CORRUPTION | TIME_ERROR => Err(Trouble::Damaged),
            UNDERFLOW => Err(Trouble::Underflow),
            NOT_SUPPORTED => Err(Trouble::NotSupported),
            _ => Err(Trouble::Failed(
                self.device.library.last_error().unwrap_or_else(|| self.device.words(code)),
            )),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.deactivate();
        // SAFETY: device and stream are open, and nobody has the stream any more.
        unsafe { (self.device.library.functions.close_stream)(self.device.raw, self.raw) };
    }
}

const TIMEOUT: c_int = -1;
const CORRUPTION: c_int = -3;
const OVERFLOW: c_int = -4;
const NOT_SUPPORTED: c_int = -5;
const TIME_ERROR: c_int = -6;
const UNDERFLOW: c_int = -7;
const END_BURST: c_int = 1 << 1;
const HAS_TIME: c_int = 1 << 2;
