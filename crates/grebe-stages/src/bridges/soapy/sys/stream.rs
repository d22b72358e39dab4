//! Streams of one or several channels, each channel in its own buffer.

use std::ffi::{c_int, c_long, c_void};
use std::ptr;
use std::time::Duration;

use super::device::{Device, Direction};
use super::library::{RawStream, c_text};

/// A receiving stream.
#[derive(Debug)]
pub(crate) struct RxStream {
    stream: Stream,
    /// Destination of each channel.
    places: Vec<*mut c_void>,
}

/// A transmitting stream.
#[derive(Debug)]
pub(crate) struct TxStream {
    stream: Stream,
    /// Source of each channel.
    places: Vec<*const c_void>,
}

// SAFETY: one thread at a time uses a stream, as its device. The pointers are only used within a call.
unsafe impl Send for RxStream {}
// SAFETY: as above.
unsafe impl Send for TxStream {}

/// Samples that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Read {
    /// Per channel, at least one.
    pub(crate) samples: usize,
    /// Time of the first sample by the device's clock, if the driver returns one.
    pub(crate) time_ns: Option<i64>,
}

/// Reason for a read or a write of no samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamError {
    /// Nothing within the timeout.
    Timeout,
    /// The device overwrote unread samples.
    Overflow,
    /// Damaged samples, or a wrong time.
    Damaged,
    /// No samples to transmit.
    Underflow,
    /// The driver does not support the call.
    NotSupported,
    /// Any other error: the driver's message.
    Failed(String),
}

#[derive(Debug)]
struct Stream {
    device: Device,
    raw: RawStream,
    sample_bytes: usize,
}

impl RxStream {
    /// A stopped stream of these channels, with `sample_bytes` per sample.
    ///
    /// # Errors
    /// The driver's message.
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

    /// Starts the stream.
    pub(crate) fn activate(&mut self) -> Result<(), String> {
        self.stream.activate()
    }

    /// Stops the stream until it is activated again.
    pub(crate) fn deactivate(&mut self) {
        self.stream.deactivate();
    }

    /// Reads up to `samples` samples per channel after the first `filled`. `payload` holds the channels one after
    /// another,
    /// `channel_bytes` each.
    ///
    /// # Errors
    /// The reason for no samples. [`StreamError::Failed`] if `payload` has no room.
    pub(crate) fn read(
        &mut self,
        payload: &mut [u8],
        channel_bytes: usize,
        filled: usize,
        samples: usize,
        timeout: Duration,
    ) -> Result<Read, StreamError> {
        let sample_bytes = self.stream.sample_bytes;
        let has_room = payload.len() >= self.places.len() * channel_bytes
            && channel_bytes >= (filled + samples) * sample_bytes;
        if !has_room || samples == 0 {
            return Err(StreamError::Failed("no room for samples".to_owned()));
        }
        let channels = payload.chunks_exact_mut(channel_bytes);
        for (place, channel) in self.places.iter_mut().zip(channels) {
            *place = channel[filled * sample_bytes..].as_mut_ptr().cast();
        }
        let (mut flags, mut time_ns) = (0, 0);
        // SAFETY: device and stream are open; the check above ensures room for `samples` at each pointer; the driver's
        // results go to variables of ours.
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

    /// Reads the driver's status without waiting. Some drivers report losses only here.
    pub(crate) fn status(&mut self) -> Result<(), StreamError> {
        self.stream.status()
    }
}

impl TxStream {
    /// As [`RxStream::open`].
    ///
    /// # Errors
    /// The driver's message.
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

    /// Writes the samples of `payload` after the first `done` of each channel, which has `channel_bytes`. Returns the
    /// number that the device accepted.
    ///
    /// # Errors
    /// The reason for no samples.
    pub(crate) fn write(
        &mut self,
        payload: &[u8],
        channel_bytes: usize,
        done: usize,
        timeout: Duration,
    ) -> Result<usize, StreamError> {
        let sample_bytes = self.stream.sample_bytes;
        let samples = (channel_bytes / sample_bytes).saturating_sub(done);
        if payload.len() < self.places.len() * channel_bytes || samples == 0 {
            return Err(StreamError::Failed("no samples to write".to_owned()));
        }
        for (place, channel) in self.places.iter_mut().zip(payload.chunks_exact(channel_bytes)) {
            *place = channel[done * sample_bytes..].as_ptr().cast();
        }
        let code = self.call_write(samples, 0, timeout);
        Ok(self.stream.judge(code)?.min(samples))
    }

    /// Ends the transmission. Some drivers ignore it.
    pub(crate) fn end(&mut self, timeout: Duration) {
        self.call_write(0, END_BURST, timeout);
    }

    /// Reads the driver's status without waiting.
    pub(crate) fn status(&mut self) -> Result<(), StreamError> {
        self.stream.status()
    }

    fn call_write(&mut self, samples: usize, mut flags: c_int, timeout: Duration) -> c_int {
        // SAFETY: device and stream are open; `samples` samples lie at each pointer, and with 0 the driver reads none.
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

    fn status(&mut self) -> Result<(), StreamError> {
        let (mut channels, mut flags, mut time_ns) = (0, 0, 0);
        // SAFETY: device and stream are open; the driver's results go to variables of ours.
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

    /// Number of samples from a return code. 0 counts as a timeout.
    fn judge(&self, code: c_int) -> Result<usize, StreamError> {
        match code {
            1.. => Ok(code as usize),
            0 => Err(StreamError::Timeout),
            // A driver's exception has one of these codes too.
            TIMEOUT => {
                Err(self.device.library.last_error().map_or(StreamError::Timeout, StreamError::Failed))
            }
            OVERFLOW => Err(StreamError::Overflow),
            CORRUPTION | TIME_ERROR => Err(StreamError::Damaged),
            UNDERFLOW => Err(StreamError::Underflow),
            NOT_SUPPORTED => Err(StreamError::NotSupported),
            _ => Err(StreamError::Failed(
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
