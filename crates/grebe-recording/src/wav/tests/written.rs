//! Files as programs write them: wrong sizes, shifted bits, receivers' chunks and names.

use grebe_frame::{Complex, SampleFormat, utc_time};

use super::*;
use crate::{Cancel, SaveOptions, repair};

/// A file of 16 bits in stereo at 48 kS/s: 1, -1, 2, -2, ..., with these chunks before and after the samples.
fn stereo(frames: i16, before: &[u8], behind: &[u8]) -> Vec<u8> {
    let data: Vec<u8> =
        (1..=frames).flat_map(|at| [at.to_le_bytes(), (-at).to_le_bytes()].concat()).collect();
    file(1, 2, 4, 16, before, &data, behind)
}

fn file(
    tag: u16,
    channels: u16,
    align: u16,
    bits: u16,
    before: &[u8],
    data: &[u8],
    behind: &[u8],
) -> Vec<u8> {
    let format = [
        &tag.to_le_bytes()[..],
        &channels.to_le_bytes(),
        &48_000u32.to_le_bytes(),
        &(48_000 * u32::from(align)).to_le_bytes(),
        &align.to_le_bytes(),
        &bits.to_le_bytes(),
    ]
    .concat();
    let rest = [chunk(b"fmt ", &format), before.to_vec(), chunk(b"data", data), behind.to_vec()].concat();
    [&b"RIFF"[..], &(rest.len() as u32 + 4).to_le_bytes(), b"WAVE", &rest].concat()
}

fn chunk(name: &[u8; 4], bytes: &[u8]) -> Vec<u8> {
    [&name[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

/// Position of the size of the samples.
fn data_size_at(file: &[u8]) -> usize {
    file.windows(4).position(|bytes| bytes == b"data").unwrap() + 4
}

fn with_size(mut file: Vec<u8>, bytes: u32) -> Vec<u8> {
    let at = data_size_at(&file);
    file[at..at + 4].copy_from_slice(&bytes.to_le_bytes());
    file
}

fn rf64(file: &[u8], large: u64, name: &[u8; 4]) -> Vec<u8> {
    let mut file = with_size(file.to_vec(), u32::MAX);
    file[..8].copy_from_slice(&[&name[..], &[0xff; 4]].concat());
    let sizes = [0u64, large, 0].map(u64::to_le_bytes).concat();
    file.splice(12..12, chunk(b"ds64", &[&sizes[..], &[0; 4]].concat()));
    file
}

/// Samples per channel, whether it is whole, its notes.
fn opened(path: &Path, bytes: &[u8]) -> (u64, bool, String) {
    std::fs::write(path, bytes).unwrap();
    let file = open(path).unwrap();
    (file.len_samples(), file.is_whole(), file.notes().join("; "))
}

#[test]
fn the_file_length_decides_if_the_header_is_wrong() {
    let (_folder, path) = scratch("x.wav");
    let good = stereo(1_000, b"", b"");
    assert_eq!(opened(&path, &good), (1_000, true, String::new()));
    let no_length = "the header does not say how long the file is: it is read to its end";
    for size in [0, u32::MAX, u32::MAX - 36, 0x7fff_ffff, 0x8000_0000, 0x7fff_f000] {
        assert_eq!(
            opened(&path, &with_size(good.clone(), size)),
            (1_000, false, no_length.into()),
            "{size:x}"
        );
    }
    for (large, name) in [(0, b"RF64"), (u64::MAX, b"RF64"), (0, b"BW64"), (u64::MAX, b"BW64")] {
        assert_eq!(opened(&path, &rf64(&good, large, name)), (1_000, false, no_length.into()), "{large:x}");
    }
    // A recorder was killed after its last header update.
    for stale in [with_size(good.clone(), 400), rf64(&good, 400, b"RF64")] {
        let (samples, is_whole, note) = opened(&path, &stale);
        assert_eq!((samples, is_whole), (1_000, false));
        assert!(note.contains("the header says 100 samples per channel, and the file goes on"), "{note}");
    }
    // Chunks and tags after the samples are not samples.
    let info = chunk(b"LIST", b"INFOISFT\x04\0\0\0SDR\0");
    for behind in
        [info.clone(), chunk(b"qqqq", &[1; 32]), b"ID3\x04rest of a tag".to_vec(), b"TAGnnnnnnn".to_vec()]
    {
        assert_eq!(opened(&path, &stereo(1_000, b"", &behind)), (1_000, true, String::new()), "{behind:?}");
    }
    // Nor are the zeros that fill up a block.
    let note = "512 bytes after the samples are not a chunk: ignored";
    assert_eq!(opened(&path, &stereo(1_000, b"", &[0; 512])), (1_000, true, note.to_owned()));
    let empty = with_size(stereo(0, b"", &info), 0);
    std::fs::write(&path, &empty).unwrap();
    assert!(open(&path).unwrap_err().to_string().ends_with("holds no samples"));
}

#[test]
fn a_size_that_wrapped_at_4_gib_is_that_of_the_file() {
    let (_folder, path) = scratch("x.wav");
    let header = with_size(stereo(0, b"", b""), 1 << 30);
    std::fs::write(&path, &header).unwrap();
    // Most of it is a hole.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(header.len() as u64 + (5 << 30)).unwrap();
    let opened = open(&path).unwrap();
    assert_eq!((opened.len_samples(), opened.is_whole()), ((5 << 30) / 4, true));
    assert!(opened.notes()[0].contains("beyond the 4 GiB that its header can say"), "{:?}", opened.notes());
    let error = repair(&path).unwrap_err().to_string();
    assert!(error.contains("grebe convert makes an RF64 of it"), "{error}");
}

#[test]
fn a_killed_recorders_file_is_closed_in_place() {
    let (_folder, path) = scratch("x.wav");
    let good = stereo(1_000, b"", b"");
    for killed in [with_size(good.clone(), 0), with_size(good.clone(), 400), rf64(&good, 0, b"RF64")] {
        // Its last sample is not all there.
        std::fs::write(&path, [&killed[..], &[7]].concat()).unwrap();
        let [repaired] = &repair(&path).unwrap()[..] else { panic!("one file") };
        assert_eq!((repaired.len_samples, repaired.is_changed, repaired.cut_bytes), (1_000, true, 1));
        let mut file = open(&path).unwrap();
        assert!(file.is_whole() && file.notes().is_empty(), "{:?}", file.notes());
        assert_eq!(all(&mut file)[1][999], -1_000);
        assert!(!repair(&path).unwrap()[0].is_changed, "nothing is left to do");
    }
}

#[test]
fn bits_that_are_fewer_than_their_bytes_are_read_at_their_level() {
    let (_folder, path) = scratch("x.wav");
    let number = |value: i32, bytes: usize| value.to_le_bytes()[..bytes].to_vec();
    let low: Vec<i32> = vec![1, -4_194_304, 4_194_303, -1];
    let samples = |shift: u32, bytes: usize| -> Vec<u8> {
        low.iter().flat_map(|value| number(value << shift, bytes)).collect()
    };
    let read = |bytes: Vec<u8>| {
        std::fs::write(&path, bytes).unwrap();
        let mut file = open(&path).unwrap();
        let bits = file.description(0).and_then(|said| said.rest.get("grebe:bits")?.as_u64());
        let values = file.block(0, 4).unwrap().channel::<i32>(0).unwrap().into_owned();
        (values, bits, file.notes().join("; "))
    };
    // 24 bits in 4 bytes: at the upper end, as the format has it, and at the lower one, as some write it.
    let upper: Vec<i32> = low.iter().map(|value| value << 8).collect();
    assert_eq!(read(file(1, 1, 4, 24, b"", &samples(8, 4), b"")), (upper, None, String::new()));
    let (values, bits, note) = read(file(1, 1, 4, 24, b"", &samples(0, 4), b""));
    assert_eq!((values, bits), (low.clone(), Some(24)));
    assert!(note.contains("24 bits of 32, which stand at the lower end"), "{note}");
    // The same without a sign extension.
    let unsigned: Vec<u8> = low.iter().flat_map(|value| number(value & 0xff_ffff, 4)).collect();
    assert_eq!(read(file(1, 1, 4, 24, b"", &unsigned, b"")).0, low);
    // 20 bits in 3 bytes, at the upper end.
    let twenty: Vec<u8> =
        [16, -16, 8_388_592, -8_388_608].iter().flat_map(|value| number(*value, 3)).collect();
    let (values, bits, note) = read(file(1, 1, 3, 20, b"", &twenty, b""));
    assert_eq!((values, bits, note), (vec![16, -16, 8_388_592, -8_388_608], Some(24), String::new()));
}

#[test]
fn an_invalid_block_align_is_reported() {
    let (_folder, path) = scratch("x.wav");
    let data: Vec<u8> = [1i16, -1, 2, -2].iter().flat_map(|it| it.to_le_bytes()).collect();
    for align in [32, 2] {
        let (samples, _, note) = opened(&path, &file(1, 2, align, 16, b"", &data, b""));
        assert_eq!(samples, 2);
        assert!(
            note.contains(&format!("block align is {align}, and 2 channels of 16 bits take 4")),
            "{note}"
        );
    }
}

/// As SpectraVue and those after it write it.
fn auxi(hz: u32) -> Vec<u8> {
    let start = [2026u16, 9, 4, 24, 12, 0, 0, 250].map(u16::to_le_bytes).concat();
    chunk(b"auxi", &[&start[..], &start, &hz.to_le_bytes(), &[0; 128]].concat())
}

#[test]
fn receivers_files_are_complex_with_their_frequency_and_time() {
    let (_folder, path) = scratch("x.wav");
    std::fs::write(&path, stereo(10, &auxi(7_074_000), b"")).unwrap();
    let mut file = open(&path).unwrap();
    assert_eq!((file.format(), file.channels(), file.len_samples()), (SampleFormat::Ci16, 1, 10));
    assert_eq!(file.description(0).unwrap().centre_frequency_hz, Some(7.074e6));
    assert_eq!(file.time_at(0), utc_time("2026-09-24T12:00:00.25Z"));
    assert!(file.notes()[0].contains("x.wav?iq=no' reads them as they are"), "{:?}", file.notes());
    assert_eq!(file.block(9, 1).unwrap().channel::<Complex<i16>>(0).unwrap()[0], Complex::new(10, -10));
    let asked = |query: &str| SampleFile::open(format!("{}{query}", path.display()));
    assert_eq!(asked("?iq=no").unwrap().channels(), 2);
    let error = asked("?format=cf32").unwrap_err().to_string();
    assert!(error.contains("a WAV says its format itself"), "{error}");

    // A time that is none: only the frequency is known.
    let mut broken = auxi(7_074_000);
    broken[8 + 14..8 + 16].fill(0xff);
    std::fs::write(&path, stereo(10, &broken, b"")).unwrap();
    let file = open(&path).unwrap();
    assert_eq!(file.description(0).unwrap().centre_frequency_hz, Some(7.074e6));
    assert_eq!(file.time_at(0), None);

    // SDR Console's, in UTF-16.
    let xml = r#"<?xml version="1.0"?><SDR-XML-Root><Definition UTCSeconds="1577880000" RadioCenterFreq="145000000"/></SDR-XML-Root>"#;
    let wide: Vec<u8> = xml.encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, stereo(10, &chunk(b"auxi", &wide), b"")).unwrap();
    let file = open(&path).unwrap();
    assert_eq!(file.description(0).unwrap().centre_frequency_hz, Some(145e6));
    assert_eq!(file.time_at(0), utc_time("2020-01-01T12:00:00Z"));

    // Nothing says that these are pairs, but the name that is typed.
    std::fs::write(&path, stereo(10, b"", b"")).unwrap();
    assert_eq!(open(&path).unwrap().channels(), 2);
    assert_eq!(asked("?iq&frequency=1M").unwrap().format(), SampleFormat::Ci16);

    let (_folder, path) = scratch("baseband_433000000Hz_12-00-00_01-01-2020.wav");
    std::fs::write(&path, stereo(10, b"", b"")).unwrap();
    let file = open(&path).unwrap();
    assert_eq!(
        (file.format(), file.description(0).unwrap().centre_frequency_hz),
        (SampleFormat::Ci16, Some(433e6))
    );
    assert_eq!(file.time_at(0), utc_time("2020-01-01T12:00:00Z"));
    assert_eq!(file.notes().len(), 2, "{:?}", file.notes());
}

#[test]
fn complex_samples_are_written_and_read_again_with_frequency_and_time() {
    let (folder, path) = scratch("gqrx_20240101_120000_100000000_48000_fc.raw");
    let numbers = [1.0f32, -2.0, 0.5, 0.25];
    std::fs::write(&path, numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    let out = folder.path().join("out.wav");
    let mut file = SampleFile::open(&path).unwrap();
    file.save_as(&out, &SaveOptions::default(), &Cancel::default()).unwrap();
    let mut again = SampleFile::open(&out).unwrap();
    assert_eq!((again.format(), again.rate_hz(), again.channels()), (SampleFormat::Cf32, Some(48e3), 1));
    assert_eq!(again.description(0).unwrap().centre_frequency_hz, Some(1e8));
    assert_eq!(again.time_at(0), utc_time("2024-01-01T12:00:00Z"));
    let samples = again.block(0, 2).unwrap().channel::<Complex<f32>>(0).unwrap().into_owned();
    assert_eq!(samples, [Complex::new(1.0, -2.0), Complex::new(0.5, 0.25)]);

    let mut narrow = SampleFile::open(&path)
        .unwrap()
        .convert_to(SampleFormat::Ci16, grebe_process::Scaling::Full)
        .unwrap();
    let options = SaveOptions { overwrite: true, ..SaveOptions::default() };
    narrow.save_as(&out, &options, &Cancel::default()).unwrap();
    assert_eq!(SampleFile::open(&out).unwrap().format(), SampleFormat::Ci16);
}
