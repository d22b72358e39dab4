use std::path::PathBuf;

use grebe_frame::Sample;
use hound::{SampleFormat, WavSpec, WavWriter};
use proptest::prelude::*;

use super::*;

mod written;

fn write<S: hound::Sample + Copy>(
    path: &Path,
    channels: u16,
    bits_per_sample: u16,
    sample_format: SampleFormat,
    samples: &[S],
) {
    let spec = WavSpec { channels, sample_rate: 48_000, bits_per_sample, sample_format };
    let mut writer = WavWriter::create(path, spec).unwrap();
    samples.iter().for_each(|&sample| writer.write_sample(sample).unwrap());
    writer.finalize().unwrap();
}

fn all(file: &mut SampleFile) -> Vec<Vec<i16>> {
    let length = file.len_samples() as usize;
    let channels = file.channels();
    let block = file.block(0, length).unwrap();
    (0..channels).map(|channel| block.channel::<i16>(channel).unwrap().to_vec()).collect()
}

fn scratch(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

#[test]
fn wav_files_of_another_library_are_read_in_every_width() {
    let (_folder, path) = scratch("x.wav");
    let int = SampleFormat::Int;
    write(&path, 2, 16, int, &[1i16, -2, 3, -4]);
    let mut file = open(&path).unwrap();
    assert_eq!((file.rate_hz(), file.len_samples(), file.notes().len()), (Some(48_000.0), 2, 0));
    assert_eq!(all(&mut file), [[1, 3], [-2, -4]]);

    fn only<T: Sample>(path: &Path) -> Vec<T> {
        let mut file = open(path).unwrap();
        assert_eq!((file.format(), file.notes().len()), (T::FORMAT, 0));
        let length = file.len_samples() as usize;
        file.block(0, length).unwrap().channel::<T>(0).unwrap().into_owned()
    }
    write(&path, 1, 8, int, &[0i32, 127, -128]);
    assert_eq!(only::<u8>(&path), [128, 255, 0], "as they stand in the file");
    write(&path, 1, 24, int, &[0i32, 8_388_607, -8_388_608, -1]);
    assert_eq!(only::<i32>(&path), [0, 8_388_607, -8_388_608, -1]);
    write(&path, 1, 32, int, &[0i32, i32::MAX, i32::MIN]);
    assert_eq!(only::<i32>(&path), [0, i32::MAX, i32::MIN]);
    write(&path, 1, 32, SampleFormat::Float, &[0.0f32, 0.1, -1.0, f32::MAX]);
    assert_eq!(only::<f32>(&path), [0.0, 0.1, -1.0, f32::MAX]);
}

proptest! {
    #[test]
    fn any_blocks_of_any_file_are_bit_exact(
        channels in 1usize..=255,
        length in 1usize..300,
        reads in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 1..8),
    ) {
        let (_folder, path) = scratch("x.wav");
        let sample = |channel: usize, index: usize| (index * 31 + channel * 7_919) as i16;
        let interleaved: Vec<i16> =
            (0..length * channels).map(|at| sample(at % channels, at / channels)).collect();
        write(&path, channels as u16, 16, SampleFormat::Int, &interleaved);
        let mut file = open(&path).unwrap();
        for (position, share) in reads {
            let position = (position * length as f64) as usize;
            let count = (share * (length - position) as f64) as usize;
            let block = file.block(position as u64, count).unwrap();
            for channel in 0..channels {
                let expected: Vec<i16> = (position..position + count).map(|at| sample(channel, at)).collect();
                prop_assert_eq!(block.channel::<i16>(channel).unwrap(), expected);
            }
        }
        let beyond = file.block(length as u64, 1).unwrap_err().to_string();
        prop_assert_eq!(beyond, "samples requested beyond the end of the file: 1 where 0 is expected");
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), keep in 0usize..60) {
        let (_folder, path) = scratch("x.wav");
        write(&path, 1, 16, SampleFormat::Int, &[5i16; 20]);
        let mut start = std::fs::read(&path).unwrap();
        start.truncate(keep);
        start.append(&mut bytes);
        std::fs::write(&path, start).unwrap();
        let _ = open(&path).map(|mut file| file.block(0, file.len_samples() as usize).map(|_| ()));
    }
}

#[test]
fn a_file_longer_than_the_window_is_read_through_it() {
    let (_folder, path) = scratch("x.wav");
    let samples: Vec<i16> = (0..2_000_000).map(|at: i32| (at >> 3) as i16).collect();
    write(&path, 2, 16, SampleFormat::Int, &samples);
    let mut file = open(&path).unwrap();
    for position in (0..999_000).step_by(997) {
        let block = file.block(position, 1_000).unwrap();
        let expected: Vec<i16> =
            samples.iter().skip(position as usize * 2 + 1).step_by(2).copied().take(1_000).collect();
        assert_eq!(block.channel::<i16>(1).unwrap(), expected, "at {position}");
    }
}

#[test]
fn rf64_and_streamed_headers_are_understood() {
    let (_folder, path) = scratch("x.wav");
    write(&path, 1, 16, SampleFormat::Int, &[7i16, 8, 9]);
    let plain = std::fs::read(&path).unwrap();

    let mut streamed = plain.clone();
    streamed[40..44].copy_from_slice(&[0xff; 4]);
    streamed.push(1);
    std::fs::write(&path, &streamed).unwrap();
    let mut file = open(&path).unwrap();
    assert_eq!(all(&mut file), [[7, 8, 9]]);
    assert_eq!(file.notes(), ["the header does not say how long the file is: it is read to its end"]);

    let mut large = streamed;
    large[..4].copy_from_slice(b"RF64");
    let ds64 = [&b"ds64"[..], &28u32.to_le_bytes(), &[0; 8], &4u64.to_le_bytes(), &[0; 12]].concat();
    large.splice(12..12, ds64);
    std::fs::write(&path, large).unwrap();
    assert_eq!(all(&mut open(&path).unwrap()), [[7, 8]]);
}

#[test]
fn a_truncated_file_opens_as_far_as_it_goes_and_says_what_is_missing() {
    let (_folder, path) = scratch("x.wav");
    write(&path, 2, 16, SampleFormat::Int, &[1i16, -1, 2, -2, 3, -3, 4, -4]);
    let good = std::fs::read(&path).unwrap();
    let opened = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let mut file = open(&path).unwrap();
        (all(&mut file), file.notes().join("; "))
    };
    let cut = "the file is truncated: 2 of 4 samples per channel are there and are read, 2 are missing";
    for end in 52..56 {
        assert_eq!(opened(&good[..end]), (vec![vec![1, 2], vec![-1, -2]], cut.to_owned()), "{end} bytes");
    }
    let mut odd = good[..51].to_vec();
    odd[40] = 7;
    let left_out = "the last sample is incomplete: 3 bytes of 4, ignored";
    assert_eq!(opened(&odd), (vec![vec![1], vec![-1]], left_out.to_owned()));
    // Its writer was cut off before it could say how long anything is.
    let mut unfinished = good;
    unfinished[4..8].fill(0);
    unfinished[40..44].fill(0);
    let said = "the header does not say how long the file is: it is read to its end";
    assert_eq!(opened(&unfinished).1, said);
    assert_eq!(opened(&unfinished).0[1], [-1, -2, -3, -4]);
}

#[test]
fn a_chunk_of_odd_length_is_passed_with_and_without_its_padding() {
    let (_folder, path) = scratch("x.wav");
    write(&path, 1, 16, SampleFormat::Int, &[7i16, 8, 9]);
    let good = std::fs::read(&path).unwrap();
    let odd = [&b"LIST"[..], &5u32.to_le_bytes(), b"grebe"].concat();
    // Before the format, and between it and the samples.
    for at in [12, 36] {
        for (padding, notes) in [(&b""[..], 1), (b"\0", 0), (b"x", 0)] {
            let mut file = good.clone();
            file.splice(at..at, [&odd, padding].concat());
            std::fs::write(&path, &file).unwrap();
            let mut opened = open(&path).unwrap();
            assert_eq!(all(&mut opened), [[7, 8, 9]], "{padding:?} at {at}");
            assert_eq!(opened.notes().len(), notes, "{padding:?} at {at}: {:?}", opened.notes());
        }
    }
    // The length that follows begins with a letter: "data!" and "ata!" could both be names.
    let samples = [3i16; 0x21];
    write(&path, 1, 16, SampleFormat::Int, &samples);
    let mut file = std::fs::read(&path).unwrap();
    file.splice(36..36, odd);
    std::fs::write(&path, file).unwrap();
    assert_eq!(all(&mut open(&path).unwrap()), [samples]);
}

#[test]
fn a_bad_file_is_refused_with_the_reason() {
    let (_folder, path) = scratch("x.wav");
    write(&path, 1, 16, SampleFormat::Int, &[7i16, 8, 9]);
    let good = std::fs::read(&path).unwrap();
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    for (bytes, message) in [
        (vec![], "x.wav holds no samples"),
        (good[..7].to_vec(), "x.wav is truncated: it ends within its header"),
        (good[..30].to_vec(), "x.wav is truncated: it ends within its header"),
        (good[..36].to_vec(), "x.wav is truncated: it ends before its samples (a data chunk) begin"),
        (good[..45].to_vec(), "x.wav is truncated: 3 samples per channel are announced and none is there"),
        (patched(40, &[1]), "x.wav holds no samples"),
        (patched(0, b"OggS"), "x.wav is no WAV file: it does not begin with RIFF, RF64 or BW64 and WAVE"),
        (patched(12, b"junk"), "x.wav is no WAV file: its samples come before its format (a fmt chunk)"),
        (patched(16, &[8]), "x.wav is no WAV file: its fmt chunk is shorter than 16 bytes"),
        (patched(20, &[85]), "x.wav' -e signed-integer -b 16 out.wav"),
        (patched(22, &[0, 1]), "x.wav: number of channels is 256: 1 to 255 can be read"),
        (patched(32, &[3]), "x.wav: block align is 3: it must be channels times bytes per sample"),
        (patched(34, &[12, 1]), "x.wav: bits a sample is 268: 8, 16, 24 and 32 (float: 32, 64) can be read"),
        // Found by fuzzing: rounded up to whole bytes this is more than 16 bits hold.
        (
            patched(34, &[0xff; 2]),
            "x.wav: bits a sample is 65535: 8, 16, 24 and 32 (float: 32, 64) can be read",
        ),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = open(&path).unwrap_err().to_string();
        assert!(error.ends_with(message), "{error}\n{message}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(open(&path).unwrap_err().to_string().starts_with("cannot open "));
}

#[test]
fn files_longer_than_riff_allows_are_written_as_rf64() {
    let (_folder, path) = scratch("x.wav");
    let header = Header {
        encoding: crate::Encoding::of(grebe_frame::SampleFormat::F32),
        channels: 2,
        sample_rate_hz: 48_000,
        receiver: None,
    };
    let (bytes, sample_bytes) = (header.bytes(6_000_000_000), 6_000_000_000);
    std::fs::write(&path, &bytes).unwrap();
    // Most of it is a hole.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(bytes.len() as u64 + sample_bytes).unwrap();
    let opened = open(&path).unwrap();
    assert_eq!((opened.len_samples(), opened.channels(), opened.notes().len()), (750_000_000, 2, 0));
    assert_eq!(opened.format(), grebe_frame::SampleFormat::F32);
}
