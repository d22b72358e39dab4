//! Devices of Windows (WASAPI) and macOS (CoreAudio), which call back for samples. Both systems mix in `f32`.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cpal::traits::{DeviceTrait as _, HostTrait as _, StreamTrait as _};
use cpal::{BufferSize, ErrorKind, StreamConfig};

use super::error::SoundError;
use super::handover::{self, Captured, Playback, Status};
use super::settings::{Direction, NO_DEVICE, Settings};
use super::supported::{is_supported, list, supported};
use super::uri::{AudioStream, DEFAULT};
use super::{names, pcm};
use crate::Device;
use crate::error::Error;

/// A device that was opened and set.
pub(crate) struct SoundDevice {
    ends: Ends,
    settings: Settings,
    /// Copies of each sample: a stream of one channel plays on both loudspeakers.
    copies: usize,
    /// As the system has them, of the present read or write.
    samples: Vec<f32>,
    /// Ends when dropped.
    _stream: cpal::Stream,
}

enum Ends {
    Capture(Captured),
    Playback(Playback),
}

impl SoundDevice {
    /// The rate and the channels to capture, if the name gives none: the device's own, because nothing converts them.
    pub(super) fn usual(stream: &AudioStream) -> (u32, usize) {
        let usual = find(stream, Direction::Capture).ok().and_then(|it| it.default_input_config().ok());
        usual.map_or((48_000, 2), |usual| (usual.sample_rate(), usual.channels().into()))
    }

    /// Checks that the device exists.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn check(stream: &AudioStream, direction: Direction) -> Result<(), Error> {
        find(stream, direction).map(drop)
    }

    /// # Errors
    /// [`Error::Device`]: the device is missing, another program has it for itself, or it does not support a setting.
    pub(super) fn open(
        stream: &AudioStream,
        direction: Direction,
        settings: Settings,
    ) -> Result<Self, Error> {
        let device = find(stream, direction)?;
        let channels = settings.channels * settings.encoding.format.components();
        let supported = supported(&device, direction);
        let refused = |why: String| {
            let Settings { encoding, rate_hz, .. } = settings;
            let what = format!("it does not support {encoding} in {channels} channels at {rate_hz} S/s{why}");
            let source = io::Error::other(format!("{what}; it has {}", list(&supported)));
            failed(stream, "set", source, "; choose with channels= and rate=")
        };
        if !is_supported(&supported, direction, channels, settings.rate_hz) {
            return Err(refused(String::new()));
        }
        let has_two = || device.default_output_config().is_ok_and(|usual| usual.channels() >= 2);
        let copies = if direction == Direction::Playback && channels == 1 && has_two() { 2 } else { 1 };
        let config = StreamConfig {
            channels: (channels * copies) as u16,
            sample_rate: settings.rate_hz,
            buffer_size: buffer_size(settings.rate_hz),
        };
        let status = Arc::new(Status::default());
        let made = match direction {
            Direction::Capture => capture(&device, config, &status),
            Direction::Playback => playback(&device, config, &status),
        };
        let (ends, made) = made.map_err(|error| match error.kind() {
            ErrorKind::UnsupportedConfig | ErrorKind::InvalidInput => refused(format!(" ({error})")),
            _ => refused_to_open(stream, "open", &error),
        })?;
        made.play().map_err(|error| refused_to_open(stream, "start", &error))?;
        Ok(Self { ends, settings, copies, samples: Vec::new(), _stream: made })
    }

    /// Waits for up to 100 ms until there is something to read. Returns whether there is.
    pub(super) fn wait(&self) -> io::Result<bool> {
        Ok(match &self.ends {
            Ends::Capture(captured) => poll(|| captured.is_ready()),
            Ends::Playback(_) => false,
        })
    }

    /// Reads whole frames. Returns the number of bytes.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<usize, SoundError> {
        let Ends::Capture(captured) = &mut self.ends else { return Ok(0) };
        let encoding = self.settings.encoding;
        let sample_bytes = encoding.sample_bytes() / encoding.format.components();
        self.samples.resize(
            bytes.len() / self.settings.frame_bytes() * self.settings.frame_bytes() / sample_bytes,
            0.0,
        );
        let read = captured.read(&mut self.samples)?;
        let length = read * sample_bytes;
        pcm::encode(&self.samples[..read], encoding, &mut bytes[..length]);
        Ok(length)
    }

    /// Writes whole frames. Returns the number of bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<usize, SoundError> {
        let Ends::Playback(playback) = &mut self.ends else { return Ok(0) };
        let encoding = self.settings.encoding;
        let sample_bytes = encoding.sample_bytes() / encoding.format.components();
        let (length, copies) = (bytes.len() / sample_bytes, self.copies);
        self.samples.resize(length * copies, 0.0);
        pcm::decode(bytes, encoding, &mut self.samples);
        // From the last to the first, because the copies take the places of later samples.
        for at in (0..length * copies).rev() {
            self.samples[at] = self.samples[at / copies];
        }
        Ok(playback.write(&self.samples)? / copies * sample_bytes)
    }

    /// Waits for up to 100 ms until there is room to write. Starts a full device that does not play yet.
    pub(super) fn wait_for_room(&self) {
        if let Ends::Playback(playback) = &self.ends {
            poll(|| playback.has_room());
        }
    }

    /// Frames that wait to be read.
    pub(super) fn waiting_frames(&mut self) -> u64 {
        match &self.ends {
            Ends::Capture(captured) => captured.waiting_frames(),
            Ends::Playback(_) => 0,
        }
    }

    /// Nothing to do: the callbacks continue by themselves.
    pub(super) fn recover(&mut self, _: &io::Error, _: Direction) -> io::Result<()> {
        Ok(())
    }

    /// Waits until the device has played all frames.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        let Ends::Playback(playback) = &mut self.ends else { return Ok(()) };
        let begin = Instant::now();
        while !playback.drains()? {
            if begin.elapsed() > DRAIN_MAX {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the sound device has stopped"));
            }
            std::thread::sleep(POLL_EVERY);
        }
        std::thread::sleep(Duration::from_nanos(playback.latency_ns()).min(DRAIN_MAX));
        Ok(())
    }
}

impl std::fmt::Debug for SoundDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoundDevice").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Polls, because a callback that wakes a thread would lock.
fn poll(is_ready: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    while !is_ready() {
        if begin.elapsed() > WAIT {
            return false;
        }
        std::thread::sleep(POLL_EVERY);
    }
    true
}

fn capture(
    device: &cpal::Device,
    config: StreamConfig,
    status: &Arc<Status>,
) -> Result<(Ends, cpal::Stream), cpal::Error> {
    let (mut end, captured) = handover::capture(config.channels.into(), config.sample_rate, status);
    let stream = device.build_input_stream::<f32, _, _>(
        config,
        move |samples, info| end.take(samples, info.timestamp().capture.as_nanos() as u64),
        reports(status),
        None,
    )?;
    Ok((Ends::Capture(captured), stream))
}

fn playback(
    device: &cpal::Device,
    config: StreamConfig,
    status: &Arc<Status>,
) -> Result<(Ends, cpal::Stream), cpal::Error> {
    let (playback, mut end) = handover::playback(config.channels.into(), config.sample_rate, status);
    let stream = device.build_output_stream::<f32, _, _>(
        config,
        move |samples, info| {
            let at = info.timestamp();
            let first = at.playback.saturating_duration_since(at.callback);
            let frames = samples.len() / usize::from(config.channels);
            let last = first.as_secs_f64() + frames as f64 / f64::from(config.sample_rate);
            end.fill(samples, (last * 1e9) as u64);
        },
        reports(status),
        None,
    )?;
    Ok((Ends::Playback(playback), stream))
}

/// Passes on what the system reports of a stream.
fn reports(status: &Arc<Status>) -> impl FnMut(cpal::Error) + Send + 'static {
    let status = status.clone();
    move |error| match error.kind() {
        ErrorKind::Xrun => status.lost(),
        // The stream continues.
        ErrorKind::DeviceChanged | ErrorKind::RealtimeDenied => {}
        ErrorKind::DeviceNotAvailable | ErrorKind::StreamInvalidated => status.unplugged(),
        _ => status.failed(error.to_string()),
    }
}

/// The device that a name means.
///
/// # Errors
/// [`Error::Device`].
fn find(stream: &AudioStream, direction: Direction) -> Result<cpal::Device, Error> {
    let host = cpal::default_host();
    let missing =
        |what: String, advice| failed(stream, "open", io::Error::new(io::ErrorKind::NotFound, what), advice);
    let none = || {
        let what = format!("this machine has no sound device {}", purpose(direction));
        missing(what, "; is it plugged in? grebe devices lists the sound devices")
    };
    let refused = |error| refused_to_open(stream, "open", &error);
    if stream.device == DEFAULT {
        let default = match direction {
            Direction::Capture => host.default_input_device(),
            Direction::Playback => host.default_output_device(),
        };
        // As a device of its own it stays when the default changes.
        let id = default.ok_or_else(none)?.id().map_err(refused)?;
        return host.device_by_id(&id).ok_or_else(none);
    }
    let devices: Vec<(String, cpal::Device)> = described(&host, direction).collect();
    if devices.is_empty() {
        return Err(none());
    }
    let descriptions: Vec<String> = devices.iter().map(|(description, _)| description.clone()).collect();
    let found = names::find(&names::names(&descriptions), &stream.device).and_then(|at| {
        devices.into_iter().nth(at).map(|(_, device)| device).ok_or_else(|| "it has gone".to_owned())
    });
    found.map_err(|why| missing(why, NO_DEVICE))
}

/// The devices that listen, or that play.
fn described(host: &cpal::Host, direction: Direction) -> impl Iterator<Item = (String, cpal::Device)> {
    let devices = host.devices().into_iter().flatten().filter(move |device| match direction {
        Direction::Capture => device.supports_input(),
        Direction::Playback => device.supports_output(),
    });
    devices.filter_map(|device| Some((device.description().ok()?.name().to_owned(), device)))
}

/// The devices for capture and playback, the default ones first.
pub fn sound_devices() -> Vec<Device> {
    let host = cpal::default_host();
    let mut devices = Vec::new();
    for direction in [Direction::Capture, Direction::Playback] {
        let descriptions: Vec<String> =
            described(&host, direction).map(|(description, _)| description).collect();
        let purpose = if direction == Direction::Capture { "listening" } else { "playing" };
        for (name, description) in names::names(&descriptions).into_iter().zip(descriptions) {
            devices.push(Device { uri: format!("audio:{name}"), what: format!("{description} ({purpose})") });
        }
    }
    if !devices.is_empty() {
        devices.insert(0, Device { uri: "audio:".to_owned(), what: "the system's default".to_owned() });
    }
    devices
}

/// Sound is a part of the system.
///
/// # Errors
/// Never.
pub fn sound_library() -> io::Result<String> {
    Ok("part of the system".to_owned())
}

/// The buffer of the system. On macOS all programs share it.
fn buffer_size(rate_hz: u32) -> BufferSize {
    if cfg!(windows) { BufferSize::Fixed((rate_hz / 10).max(1)) } else { BufferSize::Default }
}

fn purpose(direction: Direction) -> &'static str {
    match direction {
        Direction::Capture => "to record from",
        Direction::Playback => "to play on",
    }
}

fn refused_to_open(stream: &AudioStream, action: &'static str, error: &cpal::Error) -> Error {
    let is_denied = error.kind() == ErrorKind::PermissionDenied || is_access_denied(error);
    let (kind, advice) = match error.kind() {
        _ if is_denied => (io::ErrorKind::PermissionDenied, PERMISSION),
        ErrorKind::DeviceNotAvailable => (io::ErrorKind::NotFound, NO_DEVICE),
        ErrorKind::DeviceBusy => {
            (io::ErrorKind::ResourceBusy, "; another program has it: end that one first")
        }
        ErrorKind::HostUnavailable => (io::ErrorKind::Other, "; the system's sound service does not run"),
        _ => (io::ErrorKind::Other, ""),
    };
    failed(stream, action, io::Error::new(kind, error.to_string()), advice)
}

/// `E_ACCESSDENIED` of Windows, which comes without a kind.
fn is_access_denied(error: &impl Display) -> bool {
    cfg!(windows) && error.to_string().contains("-2147024891")
}

fn failed(stream: &AudioStream, action: &'static str, source: io::Error, advice: &'static str) -> Error {
    Error::Device { action, name: format!("audio:{}", stream.device), source, advice }
}

const PERMISSION: &str = if cfg!(windows) {
    "; allow desktop apps the microphone: Settings, Privacy & security, Microphone"
} else {
    "; allow your terminal the microphone: System Settings, Privacy & Security, Microphone"
};
const WAIT: Duration = Duration::from_millis(100);
const POLL_EVERY: Duration = Duration::from_millis(5);
/// Much longer than any buffer.
const DRAIN_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use grebe_recording::Encoding;

    use super::*;

    /// On a machine without sound, too.
    #[test]
    fn a_missing_device_is_an_error_with_a_remedy() {
        let stream = AudioStream::parse("no-such-device").unwrap();
        for direction in [Direction::Capture, Direction::Playback] {
            let error = SoundDevice::check(&stream, direction).unwrap_err();
            assert!(crate::transport::is_absent(&error), "{error}");
            let error = error.to_string();
            assert!(error.starts_with("cannot open audio:no-such-device: "), "{error}");
            assert!(error.contains("no sound device"), "{error}");
            assert!(error.contains("grebe devices lists the sound devices"), "{error}");
        }
    }

    /// Whether to use the default devices of this machine, which makes a sound.
    fn has_sound() -> bool {
        let is_wanted = std::env::var_os("GREBE_TEST_SOUND").is_some();
        if !is_wanted {
            println!("skipped: GREBE_TEST_SOUND is not set, which allows the sound devices");
        }
        is_wanted
    }

    fn settings(encoding: &str, channels: usize, rate_hz: u32) -> Settings {
        Settings { encoding: Encoding::named(encoding).unwrap(), channels, rate_hz }
    }

    #[test]
    fn the_default_device_is_recorded() {
        if !has_sound() {
            return;
        }
        let stream = AudioStream::parse("").unwrap();
        let (rate_hz, channels) = SoundDevice::usual(&stream);
        let settings = settings("i16", channels, rate_hz);
        let mut device = SoundDevice::open(&stream, Direction::Capture, settings).unwrap();
        let (mut got, mut bytes) = (Vec::new(), vec![0; 10_001]);
        let begin = Instant::now();
        // Half a second, during which a reader may also be late.
        while got.len() < settings.frame_bytes() * rate_hz as usize / 2 {
            assert!(begin.elapsed() < Duration::from_secs(20), "only {} bytes", got.len());
            if !device.wait().unwrap() {
                continue;
            }
            match device.read(&mut bytes) {
                Ok(read) => got.extend_from_slice(&bytes[..read]),
                Err(SoundError::Xrun { missed_samples, .. }) => println!("missed {missed_samples:?}"),
                Err(SoundError::Other(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(got.len() % settings.frame_bytes(), 0);
        let samples = got.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample));
        println!("{rate_hz} S/s, {channels} channels, {:?}", samples.clone().min().zip(samples.max()));
        let odd = Settings { rate_hz: 12_345, ..settings };
        let error = SoundDevice::open(&stream, Direction::Capture, odd).unwrap_err().to_string();
        assert!(error.contains(&format!("{rate_hz}")) && error.contains("; it has "), "{error}");
        println!("{error}");
    }

    #[test]
    fn the_default_device_plays() {
        if !has_sound() {
            return;
        }
        let stream = AudioStream::parse("").unwrap();
        for (encoding, channels, rate_hz) in [("i16", 1, 48_000), ("f32", 2, 44_100)] {
            let settings = settings(encoding, channels, rate_hz);
            let mut device = SoundDevice::open(&stream, Direction::Playback, settings).unwrap();
            let wave =
                (0..rate_hz).map(|at| (f64::from(at) / 48.0 * std::f64::consts::TAU).sin() as f32 / 8.0);
            let samples: Vec<f32> = wave.flat_map(|sample| std::iter::repeat_n(sample, channels)).collect();
            let mut bytes = vec![0; settings.frame_bytes() * rate_hz as usize];
            pcm::encode(&samples, settings.encoding, &mut bytes);
            let (begin, mut rest, mut underruns) = (Instant::now(), &bytes[..], 0);
            while !rest.is_empty() {
                assert!(begin.elapsed() < Duration::from_secs(20), "{} bytes are left", rest.len());
                match device.write(rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(SoundError::Xrun { .. }) => underruns += 1,
                    Err(SoundError::Other(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                        device.wait_for_room();
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            device.drain().unwrap();
            println!("{encoding}: {underruns} underruns, {:?}", begin.elapsed());
            assert!(begin.elapsed() > Duration::from_millis(700), "the device sets the pace");
        }
    }
}
