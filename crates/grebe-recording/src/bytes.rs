//! The bytes of samples in a file, or alternating between several.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::time::SystemTime;

use crate::read_ahead::FileReader;

/// Source of the samples.
#[derive(Debug)]
pub(super) enum Bytes {
    File(FileReader),
    /// Files on disks of their own: each is read ahead, so that they are read at the rates of all.
    Striped(Striped),
}

/// Several files in stripes, read as one.
#[derive(Debug)]
pub(super) struct Striped {
    files: Vec<FileReader>,
    /// In order, without a hole between them, the first from byte 0 on.
    stripes: Vec<Stripe>,
}

/// A stretch of one of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stripe {
    /// Its begin in the whole.
    pub(super) at: u64,
    /// The file that has it, and the position there.
    pub(super) file: usize,
    pub(super) from: u64,
    pub(super) bytes: u64,
}

impl Bytes {
    /// Joins files by these stripes.
    pub(super) fn striped(files: Vec<FileReader>, stripes: Vec<Stripe>) -> Self {
        Self::Striped(Striped { files, stripes })
    }

    /// Says which bytes will be read in order, and whether again and again; `beside` as many other files at the same time.
    pub(super) fn expect(&mut self, stretch: Range<u64>, repeats: bool, beside: usize) {
        match self {
            Self::File(file) => file.expect(stretch, repeats, beside),
            Self::Striped(all) => {
                for number in 0..all.files.len() {
                    let own = all.own(number, &stretch);
                    all.files[number].expect(own, repeats, beside);
                }
            }
        }
    }

    /// How many there are on the disk, and when the youngest was changed, as far as the system says.
    pub(super) fn size(&self) -> (u64, Option<SystemTime>) {
        let of =
            |file: &FileReader| file.metadata().map_or((0, None), |file| (file.len(), file.modified().ok()));
        match self {
            Self::File(file) => of(file),
            Self::Striped(all) => {
                all.files.iter().map(of).fold((0, None), |sum, file| (sum.0 + file.0, sum.1.max(file.1)))
            }
        }
    }

    /// The same again, with its own file handles.
    pub(super) fn reopen(&self) -> io::Result<Self> {
        let again = |file: &FileReader| file.try_clone().map(FileReader::new);
        Ok(match self {
            Self::File(file) => Self::File(again(file)?),
            Self::Striped(all) => {
                let files = all.files.iter().map(again).collect::<io::Result<_>>()?;
                Self::Striped(Striped { files, stripes: all.stripes.clone() })
            }
        })
    }

    pub(super) fn read_exact_at(&mut self, offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        let all = match self {
            Self::File(file) => return file.read_exact_at(offset, out),
            Self::Striped(all) => all,
        };
        let mut at = offset;
        while !out.is_empty() {
            let Stripe { file, from, bytes, .. } = all.from(at)?;
            let (now, rest) = out.split_at_mut((bytes as usize).min(out.len()));
            all.files[file].read_exact_at(from, now)?;
            at += now.len() as u64;
            out = rest;
        }
        Ok(())
    }

    /// Appends these bytes to another file; the system copies them.
    pub(super) fn copy_to(&self, bytes: Range<u64>, out: &File) -> io::Result<()> {
        let all = match self {
            Self::File(file) => return copy(file, bytes, out),
            Self::Striped(all) => all,
        };
        let mut at = bytes.start;
        while at < bytes.end {
            let stripe = all.from(at)?;
            let length = stripe.bytes.min(bytes.end - at);
            copy(&all.files[stripe.file], stripe.from..stripe.from + length, out)?;
            at += length;
        }
        Ok(())
    }

    /// Text for comparison: the files and the ranges read from them.
    pub(super) fn layout(&self) -> String {
        match self {
            Self::File(_) => String::new(),
            Self::Striped(all) => format!(", {} stripes of {} files", all.stripes.len(), all.files.len()),
        }
    }
}

impl Striped {
    /// The rest of the stripe that contains this byte.
    fn from(&self, at: u64) -> io::Result<Stripe> {
        let behind = self.stripes.partition_point(|stripe| stripe.at + stripe.bytes <= at);
        let stripe = self.stripes.get(behind).ok_or(ErrorKind::UnexpectedEof)?;
        let passed = at - stripe.at;
        Ok(Stripe { at, from: stripe.from + passed, bytes: stripe.bytes - passed, ..*stripe })
    }

    /// The part of a stretch of the whole that lies in one of the files.
    fn own(&self, file: usize, stretch: &Range<u64>) -> Range<u64> {
        let within = |stripe: &&Stripe| {
            stripe.file == file && stripe.at < stretch.end && stripe.at + stripe.bytes > stretch.start
        };
        let begin = self.stripes.iter().find(within);
        let end = self.stripes.iter().rfind(within);
        begin.zip(end).map_or(0..0, |(first, last)| {
            let begin = first.from + stretch.start.saturating_sub(first.at);
            begin..last.from + last.bytes.min(stretch.end - last.at)
        })
    }
}

fn copy(file: &FileReader, bytes: Range<u64>, mut out: &File) -> io::Result<()> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(bytes.start))?;
    // On Linux by copy_file_range: file systems that can share the blocks.
    let copied = io::copy(&mut (&file).take(bytes.end - bytes.start), &mut out)?;
    if copied != bytes.end - bytes.start {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Two files that alternate in pieces of 3, 4, 5, ... bytes, and their joined content.
    fn two() -> (Bytes, Vec<u8>) {
        let (mut files, mut stripes, mut whole) = ([Vec::new(), Vec::new()], Vec::new(), Vec::new());
        for number in 0..40 {
            let file = number % 2;
            let stretch: Vec<u8> = (0..number as u8 + 3).map(|byte| byte ^ (number * 7) as u8).collect();
            let (at, from) = (whole.len() as u64, files[file].len() as u64);
            stripes.push(Stripe { at, file, from, bytes: stretch.len() as u64 });
            files[file].extend(&stretch);
            whole.extend(stretch);
        }
        let files = files.iter().map(|bytes| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            FileReader::new(file)
        });
        (Bytes::striped(files.collect(), stripes), whole)
    }

    #[test]
    fn files_that_take_turns_read_as_one_wherever_a_read_begins_and_ends() {
        let (mut bytes, whole) = two();
        bytes.expect(100..700, false, 0);
        for begin in (0..whole.len()).step_by(7) {
            for length in [0, 1, 2, 50, whole.len() - begin] {
                let length = length.min(whole.len() - begin);
                let mut out = vec![0; length];
                bytes.read_exact_at(begin as u64, &mut out).unwrap();
                assert_eq!(out, whole[begin..begin + length], "{length} bytes from {begin}");
            }
        }
        assert_eq!(bytes.size().0, whole.len() as u64);
        let mut beyond = [0; 2];
        let error = bytes.read_exact_at(whole.len() as u64 - 1, &mut beyond).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        bytes.reopen().unwrap().read_exact_at(5, &mut beyond).unwrap();
        assert_eq!(beyond, whole[5..7]);
    }

    #[test]
    fn a_range_of_the_whole_maps_to_ranges_of_each_file() {
        let (bytes, whole) = two();
        let Bytes::Striped(all) = &bytes else { panic!() };
        for stretch in [0..1, 0..whole.len(), 10..11, 33..500] {
            let mut there = [Vec::new(), Vec::new()];
            for at in stretch.clone() {
                let stripe = all.from(at as u64).unwrap();
                there[stripe.file].push(stripe.from);
            }
            for (file, there) in there.iter().enumerate() {
                let own = all.own(file, &(stretch.start as u64..stretch.end as u64));
                assert!(own.clone().eq(there.iter().copied()), "{own:?} of {stretch:?}");
            }
        }
    }

    #[test]
    fn a_range_is_copied_from_all_files() {
        let (bytes, whole) = two();
        let mut out = tempfile::tempfile().unwrap();
        bytes.copy_to(17..400, &out).unwrap();
        let mut copied = Vec::new();
        out.rewind().unwrap();
        out.read_to_end(&mut copied).unwrap();
        assert_eq!(copied, whole[17..400]);
    }
}
