//! Samples between a callback of the system, which must not wait, and a thread that reads or writes.
//!
//! ```text
//!  capture     callback: CaptureEnd --[pieces]--> Captured: thread
//!  playback    thread: Playback     --[pieces]--> PlaybackEnd: callback
//! ```
//!
//! The callback neither locks nor allocates. While the ring is full, the callback of a capture counts the samples that
//! it drops, and the next piece carries their number, so a gap has its exact place and length.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use grebe_ring::{Consumer, Policy, Producer, ring};

use super::error::SoundError;

/// Whole frames, interleaved.
struct Piece {
    /// Lost before it.
    missed_frames: u64,
    len: usize,
    samples: [f32; PIECE_SAMPLES],
}

impl Piece {
    fn new(samples: &[f32], missed_frames: u64) -> Self {
        let mut piece = Self { missed_frames, len: samples.len(), samples: [0.0; PIECE_SAMPLES] };
        piece.samples[..samples.len()].copy_from_slice(samples);
        piece
    }
}

/// A ring for 200 ms in pieces of `piece_frames` frames.
fn pieces(rate_hz: u32, piece_frames: usize) -> (Producer<Piece>, Consumer<Piece>) {
    ring((rate_hz as usize / RINGS_PER_S / piece_frames).clamp(PIECES_MIN, PIECES_MAX), Policy::Block)
}

/// State that a callback and its thread share.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// The stream has ended: the device was unplugged, or failed for this reason.
    ended: OnceLock<Option<String>>,
    /// The system reports that it has lost samples.
    has_lost: AtomicBool,
    captured_frames: AtomicU64,
    /// Playback has begun, or goes on after an underrun.
    is_started: AtomicBool,
    is_draining: AtomicBool,
    is_drained: AtomicBool,
    underruns: AtomicU64,
    /// From the callback until its last sample is heard.
    latency_ns: AtomicU64,
}

impl Status {
    /// Reports that the device was unplugged.
    pub(super) fn unplugged(&self) {
        let _ = self.ended.set(None);
    }

    /// Reports that the device has failed.
    pub(super) fn failed(&self, why: String) {
        let _ = self.ended.set(Some(why));
    }

    /// Reports that the system has lost samples before those of the next callback.
    pub(super) fn lost(&self) {
        self.has_lost.store(true, Ordering::Relaxed);
    }

    fn error(&self) -> Option<SoundError> {
        Some(match self.ended.get()? {
            None => SoundError::Unplugged,
            Some(why) => SoundError::Other(io::Error::other(why.clone())),
        })
    }
}

/// Makes the two ends of a capture.
pub(super) fn capture(channels: usize, rate_hz: u32, status: &Arc<Status>) -> (CaptureEnd, Captured) {
    let piece_frames = PIECE_SAMPLES / channels;
    let (to, from) = pieces(rate_hz, piece_frames.min(CALLBACK_FRAMES_MIN));
    let rate_hz = f64::from(rate_hz);
    let end = CaptureEnd {
        to,
        status: status.clone(),
        channels,
        piece_samples: piece_frames * channels,
        rate_hz,
        next_ns: None,
        missed_frames: 0,
    };
    let status = status.clone();
    let captured = Captured { from, status, channels, piece: Piece::new(&[], 0), at: 0, read_frames: 0 };
    (end, captured)
}

/// The callback's end of a capture.
pub(super) struct CaptureEnd {
    to: Producer<Piece>,
    status: Arc<Status>,
    channels: usize,
    piece_samples: usize,
    rate_hz: f64,
    /// Time of the next sample by the device's clock.
    next_ns: Option<u64>,
    missed_frames: u64,
}

impl CaptureEnd {
    /// Takes interleaved samples, the first of which was captured at this time.
    pub(super) fn take(&mut self, samples: &[f32], first_ns: u64) {
        if self.status.has_lost.swap(false, Ordering::Relaxed)
            && let Some(next_ns) = self.next_ns
        {
            let missed = first_ns.saturating_sub(next_ns) as f64 * 1e-9 * self.rate_hz;
            self.missed_frames += missed.round() as u64;
        }
        let frames = samples.len() / self.channels;
        self.next_ns = Some(first_ns + (frames as f64 / self.rate_hz * 1e9) as u64);
        for part in samples.chunks(self.piece_samples) {
            let frames = (part.len() / self.channels) as u64;
            match self.to.push(Piece::new(part, self.missed_frames)) {
                Ok(()) => {
                    self.missed_frames = 0;
                    self.status.captured_frames.fetch_add(frames, Ordering::Relaxed);
                }
                Err(_) => self.missed_frames += frames,
            }
        }
    }
}

/// The reader's end of a capture.
pub(super) struct Captured {
    from: Consumer<Piece>,
    status: Arc<Status>,
    channels: usize,
    piece: Piece,
    /// Next sample of the piece.
    at: usize,
    read_frames: u64,
}

impl Captured {
    /// Whether a read returns at once with something other than [`WouldBlock`](io::ErrorKind::WouldBlock).
    pub(super) fn is_ready(&self) -> bool {
        self.at < self.piece.len || self.from.has_value() || self.status.ended.get().is_some()
    }

    /// Frames that wait to be read.
    pub(super) fn waiting_frames(&self) -> u64 {
        self.status.captured_frames.load(Ordering::Relaxed).saturating_sub(self.read_frames)
    }

    /// Reads whole frames, up to the next gap. Returns the number of samples.
    ///
    /// # Errors
    /// A gap, before the samples after it; the end of the stream, after its last sample.
    pub(super) fn read(&mut self, out: &mut [f32]) -> Result<usize, SoundError> {
        // Before the ring: samples that precede the end are there by then.
        let ended = self.status.error();
        let mut filled = 0;
        while filled < out.len() {
            if self.at == self.piece.len {
                let Some(piece) = self.from.pop() else { break };
                (self.piece, self.at) = (piece, 0);
            }
            if self.piece.missed_frames > 0 {
                if filled > 0 {
                    break;
                }
                let missed_samples = Some(std::mem::take(&mut self.piece.missed_frames));
                return Err(SoundError::Xrun { missed_samples, source: io::Error::other("overrun") });
            }
            let length = (self.piece.len - self.at).min(out.len() - filled);
            out[filled..filled + length].copy_from_slice(&self.piece.samples[self.at..self.at + length]);
            (filled, self.at) = (filled + length, self.at + length);
        }
        self.read_frames += (filled / self.channels) as u64;
        match ended {
            _ if filled > 0 => Ok(filled),
            Some(error) => Err(error),
            None => Err(SoundError::would_block()),
        }
    }
}

/// Makes the two ends of a playback.
pub(super) fn playback(channels: usize, rate_hz: u32, status: &Arc<Status>) -> (Playback, PlaybackEnd) {
    let piece_frames = PIECE_SAMPLES / channels;
    let (to, from) = pieces(rate_hz, piece_frames);
    let (status_end, piece_samples) = (status.clone(), piece_frames * channels);
    let playback = Playback { to, status: status_end, piece_samples, piece: Piece::new(&[], 0) };
    let end =
        PlaybackEnd { from, status: status.clone(), piece: Piece::new(&[], 0), at: 0, is_playing: false };
    (playback, end)
}

/// The writer's end of a playback.
pub(super) struct Playback {
    to: Producer<Piece>,
    status: Arc<Status>,
    piece_samples: usize,
    /// The next, which fills up: pieces of few samples would make a short ring.
    piece: Piece,
}

impl Playback {
    /// Writes whole frames. Returns the number of samples.
    ///
    /// # Errors
    /// The device ran out of samples since the last call, the ring is full, or the stream has ended.
    pub(super) fn write(&mut self, samples: &[f32]) -> Result<usize, SoundError> {
        if let Some(error) = self.status.error() {
            return Err(error);
        }
        if self.status.underruns.load(Ordering::Relaxed) > 0 {
            self.status.underruns.fetch_sub(1, Ordering::Relaxed);
            return Err(SoundError::Xrun { missed_samples: None, source: io::Error::other("underrun") });
        }
        let mut written = 0;
        while written < samples.len() && (self.piece.len < self.piece_samples || self.push()) {
            let length = (self.piece_samples - self.piece.len).min(samples.len() - written);
            let place = &mut self.piece.samples[self.piece.len..self.piece.len + length];
            place.copy_from_slice(&samples[written..written + length]);
            (written, self.piece.len) = (written + length, self.piece.len + length);
        }
        if written == 0 && !samples.is_empty() { Err(SoundError::would_block()) } else { Ok(written) }
    }

    /// Whether a write returns at once with something other than [`WouldBlock`](io::ErrorKind::WouldBlock). Starts a
    /// full ring that does not play yet.
    pub(super) fn has_room(&self) -> bool {
        let has_room = self.piece.len < self.piece_samples || self.to.has_room();
        if !has_room {
            self.status.is_started.store(true, Ordering::Release);
        }
        has_room || self.status.ended.get().is_some()
    }

    /// Pushes the piece, unless the ring is full.
    fn push(&mut self) -> bool {
        match self.to.push(std::mem::replace(&mut self.piece, Piece::new(&[], 0))) {
            Ok(()) => true,
            Err(piece) => {
                self.piece = piece;
                false
            }
        }
    }

    /// Lets the device play the rest without an underrun. To be called until it has.
    ///
    /// # Errors
    /// It never will: the stream has ended.
    pub(super) fn drains(&mut self) -> Result<bool, SoundError> {
        if let Some(error) = self.status.error() {
            return Err(error);
        }
        if self.piece.len == 0 || self.push() {
            self.status.is_draining.store(true, Ordering::Release);
        }
        self.status.is_started.store(true, Ordering::Release);
        Ok(self.status.is_drained.load(Ordering::Acquire))
    }

    /// From the last callback until its last sample is heard.
    pub(super) fn latency_ns(&self) -> u64 {
        self.status.latency_ns.load(Ordering::Relaxed)
    }
}

/// The callback's end of a playback.
pub(super) struct PlaybackEnd {
    from: Consumer<Piece>,
    status: Arc<Status>,
    piece: Piece,
    /// Next sample of the piece.
    at: usize,
    is_playing: bool,
}

impl PlaybackEnd {
    /// Fills the device's buffer, which has been heard after `latency_ns`. Silence fills what the writer has not written.
    pub(super) fn fill(&mut self, out: &mut [f32], latency_ns: u64) {
        self.status.latency_ns.store(latency_ns, Ordering::Relaxed);
        // Before the ring: all samples are there by then.
        let is_draining = self.status.is_draining.load(Ordering::Acquire);
        self.is_playing = self.is_playing || self.status.is_started.load(Ordering::Acquire);
        let filled = if self.is_playing { self.copy(out) } else { 0 };
        out[filled..].fill(0.0);
        if !self.is_playing || filled == out.len() {
            return;
        }
        if is_draining {
            self.status.is_drained.store(true, Ordering::Release);
        } else {
            // As at the start, playback waits for a full ring.
            self.is_playing = false;
            self.status.is_started.store(false, Ordering::Release);
            self.status.underruns.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn copy(&mut self, out: &mut [f32]) -> usize {
        let mut filled = 0;
        while filled < out.len() {
            if self.at == self.piece.len {
                let Some(piece) = self.from.pop() else { break };
                (self.piece, self.at) = (piece, 0);
            }
            let length = (self.piece.len - self.at).min(out.len() - filled);
            out[filled..filled + length].copy_from_slice(&self.piece.samples[self.at..self.at + length]);
            (filled, self.at) = (filled + length, self.at + length);
        }
        filled
    }
}

/// At least one frame of 510 channels: 255 complex ones.
const PIECE_SAMPLES: usize = 512;
/// 200 ms, for a program that reads or writes late.
const RINGS_PER_S: usize = 5;
const PIECES_MIN: usize = 8;
/// A callback with fewer makes a shorter ring.
const CALLBACK_FRAMES_MIN: usize = 64;
/// 64 MiB.
const PIECES_MAX: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: u32 = 1_000;

    fn would_block(error: &SoundError) -> bool {
        matches!(error, SoundError::Other(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Counts up, from its first sample on.
    fn count(first: usize, samples: usize) -> Vec<f32> {
        (first..first + samples).map(|sample| sample as f32).collect()
    }

    #[test]
    fn a_gap_of_a_capture_has_its_place_and_its_length() {
        let status = Arc::new(Status::default());
        let (mut end, mut captured) = capture(2, RATE_HZ, &status);
        assert!(!captured.is_ready());
        let mut out = [0.0; 10_000];
        assert!(would_block(&captured.read(&mut out).unwrap_err()));
        // Eight pieces fit. Two more are lost, of 300 frames.
        for at in 0..10 {
            end.take(&count(at * 300, 300), at as u64 * 150_000_000);
        }
        assert_eq!((captured.is_ready(), captured.waiting_frames()), (true, 8 * 150));
        assert_eq!(captured.read(&mut out[..100]).unwrap(), 100);
        assert_eq!(captured.read(&mut out[100..]).unwrap(), 8 * 300 - 100);
        assert_eq!((&out[..8 * 300], captured.waiting_frames()), (&*count(0, 8 * 300), 0));
        end.take(&count(3_000, 300), 1_500_000_000);
        // The system has lost 5 frames itself.
        status.lost();
        end.take(&count(3_310, 300), 1_655_000_000);
        let gap = |error| match error {
            SoundError::Xrun { missed_samples, .. } => missed_samples,
            other => panic!("{other:?}"),
        };
        assert_eq!(gap(captured.read(&mut out).unwrap_err()), Some(300));
        assert_eq!(captured.read(&mut out).unwrap(), 300);
        assert_eq!(&out[..300], &*count(3_000, 300));
        assert_eq!(gap(captured.read(&mut out).unwrap_err()), Some(5));
        assert_eq!(captured.read(&mut out).unwrap(), 300);
        assert_eq!(&out[..300], &*count(3_310, 300));
        // A report without a later time is no gap.
        status.lost();
        end.take(&count(3_610, 300), 1_805_000_000);
        assert_eq!(captured.read(&mut out).unwrap(), 300);
    }

    #[test]
    fn samples_before_the_end_of_a_capture_are_read() {
        let status = Arc::new(Status::default());
        let (mut end, mut captured) = capture(1, RATE_HZ, &status);
        end.take(&count(0, 10), 0);
        status.unplugged();
        // Only the first reason counts.
        status.failed("later".to_owned());
        let mut out = [0.0; 100];
        assert_eq!(captured.read(&mut out).unwrap(), 10);
        assert!(captured.is_ready());
        assert!(matches!(captured.read(&mut out).unwrap_err(), SoundError::Unplugged));
    }

    #[test]
    fn playback_starts_with_a_full_ring_and_again_after_an_underrun() {
        let status = Arc::new(Status::default());
        let (mut playback, mut end) = playback(1, RATE_HZ, &status);
        let mut out = [1.0; 1_000];
        // Eight pieces fit, and the one that fills up.
        let room = 9 * PIECE_SAMPLES;
        assert_eq!(playback.write(&count(0, 100)).unwrap(), 100);
        assert!(playback.has_room());
        end.fill(&mut out, 7);
        assert_eq!((out, playback.latency_ns()), ([0.0; 1_000], 7));
        assert_eq!(playback.write(&count(100, room)).unwrap(), room - 100);
        assert!(would_block(&playback.write(&[0.0]).unwrap_err()));
        end.fill(&mut out, 7);
        assert_eq!(out, [0.0; 1_000]);
        assert!(!playback.has_room());
        let mut played = Vec::new();
        for _ in 0..5 {
            end.fill(&mut out, 7);
            played.extend(out);
        }
        // The last piece is still the writer's.
        let length = 8 * PIECE_SAMPLES;
        assert_eq!(played[..length], count(0, length));
        assert!(played[length..].iter().all(|&sample| sample == 0.0));
        assert!(matches!(playback.write(&count(0, 9)).unwrap_err(), SoundError::Xrun { .. }));
        assert_eq!(playback.write(&count(0, 9)).unwrap(), 9);
        end.fill(&mut out, 7);
        assert_eq!(out, [0.0; 1_000], "it waits for a full ring again");
    }

    #[test]
    fn the_rest_is_played_without_an_underrun() {
        let status = Arc::new(Status::default());
        let (mut playback, mut end) = playback(2, RATE_HZ, &status);
        playback.write(&count(1, 100)).unwrap();
        assert!(!playback.drains().unwrap());
        let mut out = [0.0; 60];
        end.fill(&mut out, 0);
        assert_eq!((&out[..], playback.drains().unwrap()), (&*count(1, 60), false));
        end.fill(&mut out, 0);
        assert_eq!((&out[..40], playback.drains().unwrap()), (&*count(61, 40), true));
        assert_eq!((&out[40..], status.underruns.load(Ordering::Relaxed)), (&[0.0; 20][..], 0));
        status.failed("on fire".to_owned());
        assert!(playback.has_room(), "nobody waits for a device that is gone");
        for error in [playback.write(&[0.0; 2]).unwrap_err(), playback.drains().unwrap_err()] {
            assert_eq!(io::Error::from(error).to_string(), "on fire");
        }
    }
}
