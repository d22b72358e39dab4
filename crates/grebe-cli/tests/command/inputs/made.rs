//! Bytes of files that other programs write.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

pub(super) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A WAV without an extension: code, bits, channels, rate.
pub(super) fn wav(code: u16, bits: u16, channels: u16, rate_hz: u32, samples: &[u8]) -> Vec<u8> {
    let align = channels * bits.div_ceil(8);
    let mut format = [code, channels].map(u16::to_le_bytes).concat();
    format.extend([rate_hz, rate_hz * u32::from(align)].map(u32::to_le_bytes).concat());
    format.extend([align, bits].map(u16::to_le_bytes).concat());
    let chunk = |name: &[u8], bytes: &[u8]| [name, &(bytes.len() as u32).to_le_bytes(), bytes].concat();
    let rest = [&b"WAVE"[..], &chunk(b"fmt ", &format), &chunk(b"data", samples)].concat();
    chunk(b"RIFF", &rest)
}

pub(super) fn npy(kind: &str, shape: &str, is_fortran: bool, bytes: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let words = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\0", &(words.len() as u16).to_le_bytes()[..], words.as_bytes(), bytes].concat()
}

/// An array of a `.mat` file of version 5: class, dimensions, kind and bytes of its numbers.
pub(super) fn matrix(name: &str, class: u32, dimensions: [i32; 2], kind: u32, bytes: &[u8]) -> Vec<u8> {
    let element = |kind: u32, bytes: &[u8]| {
        let mut out = [kind.to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(8), 0);
        out
    };
    let flags = element(6, &[class.to_le_bytes(), [0; 4]].concat());
    let sizes = element(5, &dimensions.map(i32::to_le_bytes).concat());
    element(14, &[flags, sizes, element(1, name.as_bytes()), element(kind, bytes)].concat())
}

pub(super) fn compressed(element: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(element).unwrap();
    let bytes = zlib.finish().unwrap();
    [&15u32.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), &bytes].concat()
}

pub(super) fn mat(head: &[u8], elements: &[Vec<u8>]) -> Vec<u8> {
    let mut out = head.to_vec();
    out.resize(124, b' ');
    [&out[..], &[0, 1], b"IM", &elements.concat()].concat()
}

/// A recording of SDRangel, with a checksum that matches.
pub(super) fn sdriq(rate_hz: u32, bits: u32, samples: &[u8]) -> Vec<u8> {
    let mut head = rate_hz.to_le_bytes().to_vec();
    head.extend(100_000_000u64.to_le_bytes());
    head.extend(1_700_000_000_000u64.to_le_bytes());
    head.extend(bits.to_le_bytes());
    head.extend([0; 4]);
    let sum = crc(&head);
    [head, sum.to_le_bytes().to_vec(), samples.to_vec()].concat()
}

fn crc(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

pub(super) fn uff(container: &str, samples: &[u8]) -> Vec<u8> {
    let xml = format!(
        "<?xml version=\"1.0\"?><SDR><Samplerate Value=\"2048000\" Unit=\"Hz\"/><Frequency Value=\"227360\" Unit=\"KHz\"/>\
         <Channels Bits=\"8\" Container=\"{container}\" Ordering=\"N/A\"/></SDR>"
    );
    let mut out = xml.into_bytes();
    out.resize(2_048, 0);
    [out, samples.to_vec()].concat()
}

pub(super) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut head = tar::Header::new_gnu();
        head.set_size(bytes.len() as u64);
        head.set_mode(0o644);
        tar.append_data(&mut head, name, *bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

/// 24 samples of a channel with 16 bits at 8 kS/s, of which each is 5.
pub(super) fn flac() -> Vec<u8> {
    let head = b"fLaC\x80\0\0\x22\0\x18\0\x18\0\0\0\0\0\0";
    // Rate (20 bits), channels - 1 (3), bits - 1 (5), samples (36).
    let said = (8_000u64 << 44) | (15 << 36) | 24;
    // A constant subframe after a header with its own checksum.
    let frame = [0xff, 0xf8, 0x60, 0x08, 0x00, 0x17];
    let frame = [&frame[..], &[sum(&frame, 8, 0x07) as u8], &[0, 0, 5]].concat();
    let foot = (sum(&frame, 16, 0x8005) as u16).to_be_bytes();
    [&head[..], &said.to_be_bytes(), &[0; 16], &frame, &foot].concat()
}

fn sum(bytes: &[u8], width: u32, polynomial: u32) -> u32 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << (width - 8), |sum: u32, _| {
            let next = if sum >> (width - 1) & 1 == 1 { sum << 1 ^ polynomial } else { sum << 1 };
            next & (0xffff_ffff >> (32 - width))
        })
    })
}
