//! FLAC: decoded when it is opened, into the samples that it was made from.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use grebe_frame::Description;
use serde_json::Value;
use symphonia_bundle_flac::{FlacDecoder, FlacReader};
use symphonia_core::codecs::audio::{AudioCodecParameters, AudioDecoder as _};
use symphonia_core::errors::Error as Flaw;
use symphonia_core::formats::{FormatReader as _, TrackType};
use symphonia_core::io::MediaSourceStream;

use crate::encoding::Encoding;
use crate::error::Error;
use crate::headerless::path_and_rate;
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};
use crate::unpacked::{self, unpacked};

/// Opens `x.flac`, or `x.flac?rate=48k`: samples of up to 16 bits as `i16`, longer ones as `i32`, with the values that were encoded.
pub(super) fn open(written: &Path) -> Result<SampleFile, Error> {
    let (path, asked_hz) = path_and_rate(written)?;
    let malformed = |flaw: Flaw| Error::Content {
        path: path.clone(),
        what: format!("is not a readable FLAC file: {flaw}"),
    };
    let source = MediaSourceStream::new(Box::new(unpacked::open(&path)?), Default::default());
    let mut reader = FlacReader::try_new(source, Default::default()).map_err(malformed)?;
    let track = reader.default_track(TrackType::Audio);
    let parameters = track.and_then(|track| track.codec_params.as_ref()?.audio()).cloned();
    let announced = track.and_then(|track| track.num_frames);
    let parameters = parameters.unwrap_or_else(AudioCodecParameters::new);
    let channels = parameters.channels.as_ref().map_or(0, |channels| channels.count());
    let bits = parameters.bits_per_sample.filter(|bits| (1..=32).contains(bits)).unwrap_or(32);
    if channels == 0 {
        return Err(malformed(Flaw::DecodeError("it has no channel count")));
    }
    let mut decoder = FlacDecoder::try_new(&parameters, &Default::default()).map_err(malformed)?;
    let mut flaw = None;
    let mut frames = 0;
    let file = unpacked(&path, |out| {
        let mut samples: Vec<i32> = Vec::new();
        let mut bytes = Vec::new();
        loop {
            let decoded = match reader.next_packet() {
                Ok(Some(packet)) => decoder.decode(&packet).map(|frame| {
                    frame.copy_to_vec_interleaved(&mut samples);
                }),
                Ok(None) => return Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = decoded {
                // Samples before the flaw are good.
                flaw = Some(error.to_string());
                return Ok(());
            }
            if !samples.len().is_multiple_of(channels) {
                return Err(io::Error::other("the number of its channels changes"));
            }
            frames += (samples.len() / channels) as u64;
            bytes.clear();
            for sample in &samples {
                let value = sample >> (32 - bits);
                match bits {
                    ..=16 => bytes.extend_from_slice(&(value as i16).to_le_bytes()),
                    _ => bytes.extend_from_slice(&value.to_le_bytes()),
                }
            }
            out.write_all(&bytes)?;
        }
    })?;
    if frames == 0 {
        return Err(Error::Empty { path });
    }
    let mut notes = Vec::new();
    let missing = announced.unwrap_or(frames).saturating_sub(frames);
    if missing > 0 || flaw.is_some() {
        let why = flaw.map_or(String::new(), |flaw| format!(" ({flaw})"));
        notes.push(format!(
            "the file ends early{why}: {frames} samples per channel are read, {missing} are missing"
        ));
    }
    let rate_hz = if asked_hz > 0.0 { asked_hz } else { parameters.sample_rate.map_or(0.0, f64::from) };
    let encoding = Encoding::of(if bits <= 16 {
        grebe_frame::SampleFormat::I16
    } else {
        grebe_frame::SampleFormat::I32
    });
    let source = RawFile::new(&path, file, encoding, channels, 0);
    let is_whole = notes.is_empty();
    let file =
        SampleFile::new(vec![source], rate_hz, frames, vec![Segment::whole(frames)], notes).whole(is_whole);
    if matches!(bits, 16 | 32) {
        return Ok(file);
    }
    let mut said = Description::default();
    said.rest.insert(Description::BITS.to_owned(), Value::from(bits));
    Ok(file.described(vec![(0, Arc::new(said))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of one frame with verbatim subframes, as any encoder may write it.
    fn flac(bits: u32, rate_hz: u32, channels: &[&[i32]]) -> Vec<u8> {
        let length = channels[0].len() as u32;
        let mut info = Bits::default();
        info.put(16, u64::from(length));
        info.put(16, u64::from(length));
        info.put(24, 0);
        info.put(24, 0);
        info.put(20, u64::from(rate_hz));
        info.put(3, channels.len() as u64 - 1);
        info.put(5, u64::from(bits) - 1);
        info.put(36, u64::from(length));
        let mut out = b"fLaC\x80\0\0\x22".to_vec();
        out.extend(info.bytes());
        out.extend([0; 16]);
        let mut frame = Bits::default();
        frame.put(16, 0xfff8);
        // A block with a size in the 16 bits after the header, at the rate and the bits of the stream.
        frame.put(8, 0x70);
        frame.put(8, (channels.len() as u64 - 1) << 4);
        frame.put(8, 0);
        frame.put(16, u64::from(length) - 1);
        let head = crc(&frame.clone().bytes(), 8, 0x07);
        frame.put(8, u64::from(head));
        for channel in channels {
            frame.put(8, 0x02);
            channel.iter().for_each(|&sample| frame.put(bits, sample as u32 as u64));
        }
        let frame = frame.bytes();
        let foot = crc(&frame, 16, 0x8005) as u16;
        out.extend(frame);
        out.extend(foot.to_be_bytes());
        out
    }

    #[derive(Default, Clone)]
    struct Bits(Vec<bool>);

    impl Bits {
        fn put(&mut self, bits: u32, value: u64) {
            self.0.extend((0..bits).rev().map(|bit| value >> bit & 1 == 1));
        }

        fn bytes(self) -> Vec<u8> {
            self.0
                .chunks(8)
                .map(|byte| {
                    byte.iter().enumerate().fold(0, |sum, (at, &bit)| sum | u8::from(bit) << (7 - at))
                })
                .collect()
        }
    }

    fn crc(bytes: &[u8], width: u32, polynomial: u32) -> u32 {
        let top = 1 << (width - 1);
        bytes.iter().fold(0u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte) << (width - 8), |crc, _| {
                let next = crc << 1;
                (if crc & top != 0 { next ^ polynomial } else { next }) & ((1u64 << width) - 1) as u32
            })
        })
    }

    #[test]
    fn a_flac_is_read_with_its_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.flac");
        let (left, right): (Vec<i32>, Vec<i32>) = ((0..400).collect(), (0..400).map(|at| -at * 50).collect());
        std::fs::write(&path, flac(16, 48_000, &[&left, &right])).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.channels(), file.len_samples(), file.rate_hz()), (2, 400, Some(48e3)));
        let block = file.block(0, 400).unwrap();
        let read = |channel| {
            block.channel::<i16>(channel).unwrap().iter().map(|&it| i32::from(it)).collect::<Vec<_>>()
        };
        assert_eq!((read(0), read(1)), (left.clone(), right));
        assert!(file.notes().is_empty(), "{:?}", file.notes());
        let large: Vec<i32> = left.iter().map(|it| it * 20_000 - 4_000_000).collect();
        std::fs::write(&path, flac(24, 96_000, &[&large])).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!(file.block(0, 400).unwrap().channel::<i32>(0).unwrap().as_ref(), large);
        assert_eq!(file.description(0).unwrap().rest["grebe:bits"], 24);
    }

    #[test]
    fn files_other_than_flac_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.flac");
        let whole = flac(16, 8_000, &[&[1; 400]]);
        for (bytes, says) in [
            (&b"fLaC"[..], "is not a readable FLAC"),
            (b"OggS", "is not a readable FLAC"),
            (&whole[..42], "is not a readable FLAC"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = SampleFile::open(&path).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
