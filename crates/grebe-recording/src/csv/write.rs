//! Writing lines.

use grebe_frame::{Component, Description, SampleFormat};

use super::{COMPLEX, TIME};
use crate::error::Error;
use crate::sample_file::Block;

/// Makes lines of samples.
#[derive(Debug)]
pub struct CsvWriter {
    format: SampleFormat,
    channels: usize,
    /// Samples a second, where each line begins with its time.
    rate_hz: Option<f64>,
    text: Vec<u8>,
}

impl CsvWriter {
    /// Lines of `channels` values. With a rate, each line begins with its time.
    pub fn new(format: SampleFormat, channels: usize, rate_hz: Option<f64>) -> Self {
        Self { format, channels, rate_hz, text: Vec::new() }
    }

    /// Text that identifies these settings, for comparison.
    pub fn words(&self) -> String {
        format!("csv, {}", if self.rate_hz.is_some() { "with times" } else { "without times" })
    }

    /// The line of names.
    pub fn header(&self, description: Option<&Description>) -> Vec<u8> {
        let names = names(description, self.channels);
        let mut columns: Vec<String> = self.rate_hz.iter().map(|_| TIME.to_owned()).collect();
        for name in names {
            if self.format.is_complex() {
                columns.extend(COMPLEX.map(|part| quoted(&format!("{name}{part}"))));
            } else {
                columns.push(quoted(&name));
            }
        }
        format!("{}\n", columns.join(",")).into_bytes()
    }

    /// The lines of a block, piece by piece; `index` is that of its first sample, gaps included.
    pub fn rows(
        &mut self,
        block: &Block<'_>,
        index: u64,
        write: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (print, components) = (printer(self.format), self.format.components());
        let sample_bytes = self.format.bytes();
        let component_bytes = sample_bytes / components;
        let row = |at: usize, text: &mut Vec<u8>| {
            for channel in 0..block.channels() {
                let samples = block.channel_bytes(channel).unwrap_or_default();
                for component in 0..components {
                    let begin = at * sample_bytes + component * component_bytes;
                    print(&samples[begin..begin + component_bytes], text);
                    text.push(b',');
                }
            }
        };
        self.lines(block.len_samples() as u64, index, row, write)
    }

    /// Lines of zeros for missing samples.
    pub fn zeros(
        &mut self,
        samples: u64,
        index: u64,
        write: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let columns = self.channels * self.format.components();
        let zero: &[u8] = match self.format.component() {
            Component::U8 => b"128,",
            Component::F32 | Component::F64 => b"0.0,",
            Component::I8 | Component::I16 | Component::I32 => b"0,",
        };
        self.lines(samples, index, |_, text| text.extend_from_slice(&zero.repeat(columns)), write)
    }

    fn lines(
        &mut self,
        samples: u64,
        index: u64,
        row: impl Fn(usize, &mut Vec<u8>),
        mut write: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for at in 0..samples as usize {
            if let Some(rate_hz) = self.rate_hz {
                let seconds = (index + at as u64) as f64 / rate_hz;
                self.text.extend_from_slice(zmij::Buffer::new().format(seconds).as_bytes());
                self.text.push(b',');
            }
            row(at, &mut self.text);
            // In place of the last comma.
            self.text.pop();
            self.text.push(b'\n');
            if self.text.len() >= TEXT_BYTES {
                write(&self.text)?;
                self.text.clear();
            }
        }
        write(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

/// Writes a number in the format of a stream.
fn printer(format: SampleFormat) -> fn(&[u8], &mut Vec<u8>) {
    match format.component() {
        Component::I8 => |bytes, text| integer(bytes[0] as i8, text),
        Component::U8 => |bytes, text| integer(bytes[0], text),
        Component::I16 => |bytes, text| integer(i16::from_le_bytes(of(bytes)), text),
        Component::I32 => |bytes, text| integer(i32::from_le_bytes(of(bytes)), text),
        Component::F32 => |bytes, text| {
            text.extend_from_slice(zmij::Buffer::new().format(f32::from_le_bytes(of(bytes))).as_bytes());
        },
        Component::F64 => |bytes, text| {
            text.extend_from_slice(zmij::Buffer::new().format(f64::from_le_bytes(of(bytes))).as_bytes());
        },
    }
}

fn integer(value: impl itoa::Integer, text: &mut Vec<u8>) {
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn of<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|at| bytes[at])
}

/// Channel names of the recording, if all exist and differ.
fn names(description: Option<&Description>, channels: usize) -> Vec<String> {
    let said = description.map_or(&[][..], |description| &description.channels);
    let number = |channel: usize| format!("ch{}", channel + 1);
    let name = |channel: usize| match said.get(channel) {
        Some(said) if !said.name.is_empty() && said.name.parse::<f64>().is_err() => said.name.clone(),
        _ => number(channel),
    };
    let names: Vec<String> = (0..channels).map(name).collect();
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    if names.iter().any(is_twice) { (0..channels).map(number).collect() } else { names }
}

/// As RFC 4180 has it.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r', ';', '\t']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

const TEXT_BYTES: usize = 64 << 10;
