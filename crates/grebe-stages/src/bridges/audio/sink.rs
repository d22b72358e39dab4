//! Playback of a stream.

use std::io;
use std::time::Duration;

use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::Header;
use grebe_recording::Encoding;
use grebe_ring::Cancel;

use crate::bridges::audio::AudioStream;
use crate::bridges::audio::device::SoundDevice;
use crate::bridges::audio::error::SoundError;
use crate::bridges::audio::settings::{Direction, Settings};
use crate::bridges::audio::uri::whole_rate;
use crate::bridges::raw::{RawStream, interleaved};
use crate::error::Error;
use crate::scheme::Scheme as _;
use crate::session::Gaps;
use crate::transport::Reconnect;

/// Plays a stream at the rate of the device. Counts the gaps of the stream, which it skips, and the underruns.
pub(crate) struct AudioSink {
    audio: AudioStream,
    /// `None` before the first frame, and while the device is unplugged.
    device: Option<SoundDevice>,
    stream: Option<(Settings, RawStream)>,
    reconnect: Option<Reconnect<SoundDevice>>,
    bytes: Vec<u8>,
    gaps: Gaps,
    counters: Counted,
}

impl AudioSink {
    /// Checks that the device exists. The first frame opens it, because its settings come from the frame.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(crate) fn new(audio: AudioStream) -> Result<Self, Error> {
        SoundDevice::check(&audio, Direction::Playback)?;
        Ok(Self {
            audio,
            device: None,
            stream: None,
            reconnect: None,
            bytes: Vec::new(),
            gaps: Gaps::default(),
            counters: Counted::default(),
        })
    }

    /// Settings of the device for such frames.
    fn settings(&self, header: &Header) -> Result<(Settings, RawStream), Error> {
        let encoding = self.audio.encoding.unwrap_or(Encoding::of(header.format));
        let channels = self.audio.channels.unwrap_or(header.channel_count as usize);
        let no_rate = || grebe_process::Error::Takes {
            what: format!(
                "the stream has {} S/s, which sound devices do not support: give a rate, as in {}{}rate=48k",
                header.sample_rate_hz,
                self.audio.uri(),
                if self.audio.uri().contains('?') { '&' } else { '?' }
            ),
        };
        let rate_hz = self.audio.rate_hz.or_else(|| whole_rate(header.sample_rate_hz)).ok_or_else(no_rate)?;
        let raw = RawStream { channels, encoding, ..RawStream::plain(encoding.format, f64::from(rate_hz)) };
        Ok((Settings { encoding, channels, rate_hz }, raw))
    }

    /// Opens the device for such frames, unless it is open for them.
    fn prepare(&mut self, header: &Header, ctx: &Context) -> Result<(), Error> {
        let (settings, raw) = self.settings(header)?;
        if self.stream.as_ref().is_none_or(|(before, _)| *before != settings) {
            if let Some(mut device) = self.device.take() {
                // On an error the rest is cut.
                let _ = device.drain();
            }
            self.device = Some(SoundDevice::open(&self.audio, Direction::Playback, settings)?);
            self.reconnect = self.audio.reconnects.then(|| {
                let audio = self.audio.clone();
                Reconnect::new(audio.uri(), move |_: &Cancel| {
                    SoundDevice::open(&audio, Direction::Playback, settings)
                })
            });
            self.stream = Some((settings, raw));
        }
        if self.device.is_none()
            && let Some(reconnect) = &mut self.reconnect
        {
            self.device = reconnect.poll(Duration::ZERO, |words| ctx.note(words))?;
            self.counters.reconnects.add(u64::from(self.device.is_some()));
        }
        Ok(())
    }
}

/// A device to play on.
trait Output {
    /// Plays whole frames. Returns the number of bytes played.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, SoundError>;
    /// Restarts after an underrun.
    fn recover(&mut self, error: &io::Error) -> io::Result<()>;
}

impl Output for SoundDevice {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, SoundError> {
        SoundDevice::write(self, bytes)
    }

    fn recover(&mut self, error: &io::Error) -> io::Result<()> {
        SoundDevice::recover(self, error, Direction::Playback)
    }
}

/// Writes all bytes. `wait` waits for room, and returns whether to continue.
fn write<D: Output>(
    device: &mut D,
    mut bytes: &[u8],
    counters: &Counted,
    wait: impl Fn(&mut D) -> bool,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match device.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(SoundError::Other(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                if !wait(device) {
                    return Ok(());
                }
            }
            Err(SoundError::Xrun { source, .. }) => {
                counters.underruns.add(1);
                device.recover(&source)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Stage for AudioSink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            let header = frame.header();
            let samples = u64::from(header.block_length_samples);
            if samples == 0 {
                continue;
            }
            self.prepare(&header, ctx)?;
            let gap = self.gaps.before(&header);
            self.counters.unmarked_gap_samples.add(gap);
            let Some((_, raw)) = &self.stream else { continue };
            let bytes = interleaved(raw, &frame, &mut self.bytes)?;
            let Some(device) = &mut self.device else {
                self.counters.absent_samples.add(samples);
                continue;
            };
            let wait = |device: &mut SoundDevice| {
                ctx.waiting(|| device.wait_for_room());
                !ctx.is_stopping()
            };
            match write(device, bytes, &self.counters, wait) {
                Ok(()) => {}
                Err(error) => match &mut self.reconnect {
                    Some(reconnect) if error.kind() == io::ErrorKind::NotConnected => {
                        reconnect.lost(None, |words| ctx.note(words));
                        self.device = None;
                        self.counters.absent_samples.add(samples);
                    }
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        match &mut self.device {
            Some(device) => Ok(ctx.waiting(|| device.drain())?),
            None => Ok(()),
        }
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

impl std::fmt::Debug for AudioSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AudioSink").field("audio", &self.audio).finish_non_exhaustive()
    }
}

grebe_flow::counters! {
    struct Counted { underruns, unmarked_gap_samples, absent_samples, reconnects }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that takes three bytes at a time, and fails some writes.
    #[derive(Default)]
    struct Device {
        played: Vec<u8>,
        writes: usize,
        fails: Vec<(usize, fn() -> SoundError)>,
        recovered: u32,
    }

    impl Output for Device {
        fn write(&mut self, bytes: &[u8]) -> Result<usize, SoundError> {
            self.writes += 1;
            if let Some((_, why)) = self.fails.iter().find(|(at, _)| *at == self.writes) {
                return Err(why());
            }
            let length = bytes.len().min(3);
            self.played.extend(&bytes[..length]);
            Ok(length)
        }

        fn recover(&mut self, _: &io::Error) -> io::Result<()> {
            self.recovered += 1;
            Ok(())
        }
    }

    const UNDERRUN: fn() -> SoundError =
        || SoundError::Xrun { missed_samples: None, source: io::Error::other("underrun") };
    const UNPLUGGED: fn() -> SoundError = || SoundError::Unplugged;
    const FULL: fn() -> SoundError = SoundError::would_block;

    #[test]
    fn an_underrun_is_counted_and_plays_on_with_the_next_sample() {
        let counters = Counted::default();
        let mut device = Device { fails: vec![(2, UNDERRUN), (3, UNDERRUN), (5, FULL)], ..Device::default() };
        let bytes: Vec<u8> = (0..20).collect();
        write(&mut device, &bytes, &counters, |_| true).unwrap();
        assert_eq!((device.played, device.recovered), (bytes, 2));
        assert_eq!(counters.underruns.get(), 2);
    }

    #[test]
    fn an_unplugged_device_is_reported_and_a_full_one_does_not_delay_the_stop() {
        let counters = Counted::default();
        let mut gone = Device { fails: vec![(2, UNPLUGGED)], ..Device::default() };
        let error = write(&mut gone, &[0; 9], &counters, |_| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        let mut full = Device { fails: vec![(2, FULL)], ..Device::default() };
        write(&mut full, &[0; 9], &counters, |_| false).unwrap();
        assert_eq!((full.played.len(), counters.underruns.get()), (3, 0));
    }
}
