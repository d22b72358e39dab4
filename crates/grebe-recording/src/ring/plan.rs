//! Layout of a ring on a disk, and its disk load.

use std::time::Duration;

use grebe_frame::Header;

use crate::error::{Error, ProcessError};
use crate::rotate::Rotate;

/// How much of a stream a ring keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingLength {
    /// This much of the signal at least, gaps included; 4 s or more.
    Time(Duration),
    /// Files of this many bytes at most, of all channels; 16 MB or more.
    Bytes(u64),
}

/// Layout and cost of a ring, known once its stream is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RingPlan {
    /// How long each of its parts is.
    pub part: Rotate,
    /// Parts that are kept beside the one that is written.
    pub parts: u64,
    /// The most that its files take, in bytes.
    pub disk_bytes: u64,
    /// Write rate in bytes per second; 0 if the stream does not state its rate.
    pub bytes_s: f64,
}

impl RingLength {
    /// Checks whether a ring of this length is possible.
    ///
    /// # Errors
    /// [`Error::Process`] where it is too short.
    pub(crate) fn check(self) -> Result<(), Error> {
        let setting =
            |got, must| Err(ProcessError::Setting { what: "the length of the ring", got, must }.into());
        match self {
            RingLength::Time(time) if time < TIME_MIN => setting(format!("{time:?}"), "give 4s or more"),
            RingLength::Bytes(bytes) if bytes < BYTES_MIN => setting(bytes.to_string(), "give 16M or more"),
            _ => Ok(()),
        }
    }
}

impl RingPlan {
    /// The ring of such a stream.
    ///
    /// # Errors
    /// [`Error::Process`] where the length is a time, and the stream does not say its rate.
    pub(crate) fn of(length: RingLength, stream: &Header) -> Result<Self, Error> {
        let frame_bytes = stream.format.bytes() as f64 * f64::from(stream.channel_count);
        let bytes_s = stream.sample_rate_hz.max(0.0) * frame_bytes;
        match length {
            RingLength::Time(time) => {
                if bytes_s == 0.0 {
                    let must = "the stream does not say its sample rate: give the ring a size (20G)";
                    return Err(ProcessError::Setting {
                        what: "the length of the ring",
                        got: format!("{time:?}"),
                        must,
                    }
                    .into());
                }
                let part = (time / PARTS as u32).max(PART_MIN);
                let parts = time.as_nanos().div_ceil(part.as_nanos()) as u64;
                let data_bytes = (parts + PARTS_BESIDE) as f64 * part.as_secs_f64() * bytes_s;
                let disk_bytes = data_bytes * (1.0 + 1.0 / SUMMARIES_PART as f64);
                Ok(Self { part: Rotate::After(part), parts, disk_bytes: disk_bytes as u64, bytes_s })
            }
            RingLength::Bytes(disk_bytes) => {
                let bytes = disk_bytes - disk_bytes.div_ceil(SUMMARIES_PART);
                // A second at least, where that leaves enough parts.
                let second_bytes = (bytes_s * PART_MIN.as_secs_f64()) as u64;
                let part_bytes = second_bytes.clamp(bytes / PARTS, bytes / PARTS_MIN);
                let parts = bytes / part_bytes - PARTS_BESIDE;
                Ok(Self { part: Rotate::Bytes(part_bytes), parts, disk_bytes, bytes_s })
            }
        }
    }
}

const TIME_MIN: Duration = Duration::from_secs(4);
const BYTES_MIN: u64 = 16_000_000;
/// Enough that at most a sixteenth is kept beyond the requested length, and few enough for a short folder.
const PARTS: u64 = 16;
const PARTS_MIN: u64 = 8;
/// Each has files to create and close.
const PART_MIN: Duration = Duration::from_secs(1);
/// Summaries take at most this part of the data.
const SUMMARIES_PART: u64 = 50;
/// One that is written, with the room on the disk that is taken ahead of it, and one that is being closed.
const PARTS_BESIDE: u64 = 3;

#[cfg(test)]
mod tests {
    use grebe_frame::SampleFormat;

    use super::*;

    fn plan(length: RingLength, rate_hz: f64) -> RingPlan {
        let format = SampleFormat::I16;
        let stream = Header { format, channel_count: 2, sample_rate_hz: rate_hz, ..Header::default() };
        RingPlan::of(length, &stream).unwrap()
    }

    #[test]
    fn a_time_is_kept_whole_and_a_size_is_never_exceeded() {
        let half_an_hour = plan(RingLength::Time(Duration::from_secs(1_800)), 1e6);
        assert_eq!(half_an_hour.part, Rotate::After(Duration::from_millis(112_500)));
        assert_eq!((half_an_hour.parts, half_an_hour.bytes_s), (16, 4e6));
        assert_eq!(half_an_hour.disk_bytes, 19 * 459_000_000);
        let short = plan(RingLength::Time(Duration::from_millis(4_500)), 1e6);
        assert_eq!((short.part, short.parts), (Rotate::After(Duration::from_secs(1)), 5));
        for (bytes, rate_hz) in [(16_000_000, 1e3), (4 << 30, 400e6), (4 << 30, 50e6), (20 << 30, 0.0)] {
            let ring = plan(RingLength::Bytes(bytes), rate_hz);
            let Rotate::Bytes(part) = ring.part else { panic!("{ring:?}") };
            assert!((980_000..=bytes / 8).contains(&part), "{ring:?}");
            assert!(ring.parts >= 5 && part * (ring.parts + 3) / 50 * 51 <= bytes, "{ring:?}");
        }
    }

    #[test]
    fn an_impossible_save_is_refused_with_the_reason() {
        let error = RingLength::Time(Duration::from_secs(3)).check().unwrap_err().to_string();
        assert!(error.contains("give 4s or more"), "{error}");
        let error = RingLength::Bytes(1_000).check().unwrap_err().to_string();
        assert!(error.contains("give 16M or more"), "{error}");
        let unknown = Header { sample_rate_hz: 0.0, ..Header::default() };
        let error =
            RingPlan::of(RingLength::Time(Duration::from_secs(60)), &unknown).unwrap_err().to_string();
        assert!(error.contains("give the ring a size"), "{error}");
    }
}
