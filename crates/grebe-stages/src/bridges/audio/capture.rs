//! A sound device as a stream.

use std::io::{self, Read};
use std::sync::Arc;

use grebe_flow::{UtcClock, monotonic_ns};
use grebe_frame::{Description, SampleFormat};
use grebe_recording::Encoding;
use grebe_ring::Cancel;

use crate::bridges::audio::AudioStream;
use crate::bridges::audio::device::SoundDevice;
use crate::bridges::audio::error::SoundError;
use crate::bridges::audio::settings::{Direction, Settings};
use crate::bridges::raw::{RawSource, RawStream, Retune, Retuned};
use crate::error::Error;
use crate::scheme::Scheme as _;
use crate::transport::Reconnect;

/// Captures from a device. An overrun becomes a gap, whose length the device or this machine's clock gives.
///
/// # Errors
/// The device cannot be opened, or refuses the settings of its name.
pub(crate) fn source(audio: &AudioStream) -> Result<(RawSource<Capture<SoundDevice>>, f64), Error> {
    let encoding = audio.encoding.unwrap_or(Encoding::of(SampleFormat::I16));
    let (usual_rate_hz, usual_channels) = SoundDevice::usual(audio);
    let rate_hz = audio.rate_hz.unwrap_or(usual_rate_hz);
    let settings = |channels| Settings { encoding, channels, rate_hz };
    let open = |channels| SoundDevice::open(audio, Direction::Capture, settings(channels));
    let wanted = audio.channels.unwrap_or(if encoding.format.is_complex() { 1 } else { usual_channels });
    let (device, channels) = match open(wanted) {
        Err(error) if audio.channels.is_some() || wanted == 1 => return Err(error),
        Err(error) => (open(1).map_err(|_| error)?, 1),
        Ok(device) => (device, wanted),
    };
    let settings = settings(channels);
    let raw = RawStream { channels, encoding, ..RawStream::plain(encoding.format, f64::from(rate_hz)) };
    let description = Description {
        hardware: Some(format!("sound device {}", audio.device)),
        clock: UtcClock::default().renewed(monotonic_ns()),
        ..Description::default()
    };
    let reconnect = audio.reconnects.then(|| {
        let audio = audio.clone();
        Reconnect::new(audio.uri(), move |_: &Cancel| {
            let device = SoundDevice::open(&audio, Direction::Capture, settings)?;
            Ok(Capture::new(device, settings))
        })
    });
    let source = RawSource::new(Capture::new(device, settings), Capture::wait, raw)
        .described(Arc::new(description))
        .retune(Box::new(Missed { rate_hz: f64::from(rate_hz) }))
        .by_the_clock()
        .reconnects(reconnect);
    Ok((source, f64::from(rate_hz)))
}

/// A device to capture from.
pub(crate) trait Input: Send + 'static {
    /// Waits for up to 100 ms until there is something to read. Returns whether there is.
    fn wait(&self) -> io::Result<bool>;
    /// Reads whole frames. Returns the number of bytes.
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, SoundError>;
    /// Frames that wait to be read.
    fn waiting_frames(&mut self) -> u64;
    /// Restarts after an overrun.
    fn recover(&mut self, error: &io::Error) -> io::Result<()>;
}

/// A capturing device, and its missed samples.
#[derive(Debug)]
pub(crate) struct Capture<I> {
    input: I,
    rate_hz: f64,
    frame_bytes: usize,
    /// Time of the next sample to read.
    next_ns: u64,
    missed_samples: u64,
}

impl<I: Input> Capture<I> {
    fn new(input: I, settings: Settings) -> Self {
        Self {
            input,
            rate_hz: f64::from(settings.rate_hz),
            frame_bytes: settings.frame_bytes(),
            next_ns: monotonic_ns(),
            missed_samples: 0,
        }
    }

    fn wait(&self) -> io::Result<bool> {
        // The read finds the error.
        Ok(self.input.wait().unwrap_or(true))
    }

    /// Restarts after an overrun. Without a number from the device, the samples between the last read and now are lost.
    fn recover(
        &mut self,
        missed_samples: Option<u64>,
        error: &io::Error,
        now_ns: impl Fn() -> u64,
    ) -> io::Result<()> {
        self.input.recover(error)?;
        let now_ns = now_ns();
        let by_clock = || (now_ns.saturating_sub(self.next_ns) as f64 * 1e-9 * self.rate_hz) as u64;
        self.missed_samples += missed_samples.unwrap_or_else(by_clock).max(1);
        self.next_ns = now_ns;
        Ok(())
    }

    fn read_at(&mut self, bytes: &mut [u8], now_ns: impl Fn() -> u64) -> io::Result<usize> {
        if self.missed_samples > 0 {
            // Reports the gap before the samples after it.
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let whole = bytes.len() - bytes.len() % self.frame_bytes;
        match self.input.read(&mut bytes[..whole]) {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            Ok(read) => {
                let age_ns = self.input.waiting_frames() as f64 / self.rate_hz * 1e9;
                self.next_ns = now_ns().saturating_sub(age_ns as u64);
                Ok(read)
            }
            Err(SoundError::Xrun { missed_samples, source }) => {
                self.recover(missed_samples, &source, now_ns)?;
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl<I: Input> Read for Capture<I> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read_at(bytes, monotonic_ns)
    }
}

impl Input for SoundDevice {
    fn wait(&self) -> io::Result<bool> {
        SoundDevice::wait(self)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, SoundError> {
        SoundDevice::read(self, bytes)
    }

    fn waiting_frames(&mut self) -> u64 {
        SoundDevice::waiting_frames(self)
    }

    fn recover(&mut self, error: &io::Error) -> io::Result<()> {
        SoundDevice::recover(self, error, Direction::Capture)
    }
}

/// Turns missed samples into gaps.
struct Missed {
    rate_hz: f64,
}

impl<I: Input> Retune<Capture<I>> for Missed {
    fn retune(&mut self, from: &mut Capture<I>) -> io::Result<Option<Retuned>> {
        Ok(match std::mem::take(&mut from.missed_samples) {
            0 => None,
            gap_samples => {
                Some(Retuned { gap_samples, odd_messages: 0, rate_hz: self.rate_hz, description: None })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use grebe_flow::{Stage as _, StageBench};

    use super::*;
    use crate::session::Bounded as _;

    /// A device that counts up, and reports an overrun at the given reads.
    struct Device {
        next: i16,
        reads: u32,
        overruns: Vec<u32>,
        /// The number of samples that the device says it lost.
        missed_samples: Option<u64>,
        length: u32,
    }

    impl Input for Device {
        fn wait(&self) -> io::Result<bool> {
            Ok(true)
        }

        fn read(&mut self, bytes: &mut [u8]) -> Result<usize, SoundError> {
            self.reads += 1;
            if self.overruns.contains(&self.reads) {
                let source = io::Error::other("overrun");
                return Err(SoundError::Xrun { missed_samples: self.missed_samples, source });
            }
            if self.reads > self.length {
                return Err(SoundError::Unplugged);
            }
            for sample in bytes[..200].as_chunks_mut::<2>().0 {
                *sample = self.next.to_le_bytes();
                self.next += 1;
            }
            Ok(200)
        }

        fn waiting_frames(&mut self) -> u64 {
            10
        }

        fn recover(&mut self, _: &io::Error) -> io::Result<()> {
            Ok(())
        }
    }

    fn settings() -> Settings {
        Settings { encoding: Encoding::of(SampleFormat::I16), channels: 1, rate_hz: 1_000 }
    }

    #[test]
    fn a_capture_gap_has_the_length_by_the_clock() {
        let device = Device { next: 0, reads: 0, overruns: vec![2], missed_samples: None, length: 9 };
        let mut capture = Capture::new(device, settings());
        let now_ns = Cell::new(1_000_000_000);
        let mut bytes = [0; 1_000];
        assert_eq!(capture.read_at(&mut bytes, || now_ns.get()).unwrap(), 200);
        // Ten samples wait, so the next is 10 ms old. Half a second later they are found overwritten.
        now_ns.set(1_500_000_000);
        assert_eq!(
            capture.read_at(&mut bytes, || now_ns.get()).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert_eq!(capture.missed_samples, 510);
        let gap = Missed { rate_hz: 1e3 }.retune(&mut capture).unwrap().map(|it| it.gap_samples);
        assert_eq!(gap, Some(510));
        assert_eq!(capture.read_at(&mut bytes, || now_ns.get()).unwrap(), 200);
    }

    #[test]
    fn a_device_that_counts_its_lost_samples_is_believed() {
        let device = Device { next: 0, reads: 0, overruns: vec![2], missed_samples: Some(37), length: 9 };
        let mut capture = Capture::new(device, settings());
        let mut bytes = [0; 1_000];
        assert_eq!(capture.read_at(&mut bytes, || 1_000_000_000).unwrap(), 200);
        capture.read_at(&mut bytes, || 1_500_000_000).unwrap_err();
        assert_eq!(capture.missed_samples, 37);
    }

    #[test]
    fn an_overrun_is_a_gap_and_an_unplugged_device_the_end() {
        let device = Device { next: 0, reads: 0, overruns: vec![3, 4], missed_samples: None, length: 7 };
        let raw = RawStream::plain(SampleFormat::I16, 1e3);
        let source = RawSource::new(Capture::new(device, settings()), Capture::wait, raw)
            .retune(Box::new(Missed { rate_hz: 1e3 }))
            .samples(Some(400));
        let made = StageBench::new(source).unwrap().end().unwrap();
        let frames: Vec<(u64, Vec<i16>)> = made
            .iter()
            .flat_map(|batch| batch.frames())
            .map(|frame| (frame.header().first_sample_index, frame.channel::<i16>(0).unwrap().into_owned()))
            .collect();
        let samples: Vec<i16> = frames.iter().flat_map(|(_, samples)| samples.clone()).collect();
        assert_eq!(samples, (0..400).collect::<Vec<i16>>());
        let gaps: Vec<u64> = frames
            .windows(2)
            .filter_map(|pair| (pair[1].0 - pair[0].0).checked_sub(pair[0].1.len() as u64 + 1))
            .collect();
        // Two overruns after the second read, of at least a sample each.
        assert_eq!(gaps.len(), 1, "{gaps:?}");
        let device = Device { next: 0, reads: 0, overruns: vec![], missed_samples: None, length: 1 };
        let raw = RawStream::plain(SampleFormat::I16, 1e3);
        let source = RawSource::new(Capture::new(device, settings()), Capture::wait, raw);
        let error = StageBench::new(source).unwrap().end().unwrap_err().to_string();
        assert!(error.contains("was unplugged"), "{error}");
    }

    #[test]
    fn a_device_plugged_in_again_continues_after_a_gap() {
        let device = |next| Device { next, reads: 0, overruns: vec![], missed_samples: None, length: 2 };
        let raw = RawStream::plain(SampleFormat::I16, 1e3);
        let reconnect = Reconnect::new("audio:", move |_: &Cancel| Ok(Capture::new(device(500), settings())));
        let source = RawSource::new(Capture::new(device(0), settings()), Capture::wait, raw)
            .reconnects(Some(reconnect))
            .samples(Some(400));
        let counters = source.counters().unwrap();
        let made = StageBench::new(source).unwrap().end().unwrap();
        let frames = made.iter().flat_map(|batch| batch.frames());
        let samples: Vec<(u64, i16)> = frames
            .flat_map(|frame| {
                (frame.header().first_sample_index..).zip(frame.channel::<i16>(0).unwrap().into_owned())
            })
            .collect();
        let lost = counters.get("lost_samples").unwrap();
        let expected =
            (0..200).map(|at| (at, at as i16)).chain((200..400).map(|at| (at + lost, at as i16 + 300)));
        assert!(lost >= 1 && samples == expected.collect::<Vec<_>>());
        assert_eq!(counters.get("reconnects"), Some(1));
    }
}
