//! Sessions of sigrok and PulseView: `.sr`, a zip of metadata and of samples in pieces.
//!
//! ```text
//!  metadata       [device 1] samplerate=1 MHz, total probes=8, probe1=SCL, unitsize=1, capturefile=logic-1, total analog=1, analog9=A0
//!  logic-1-1, -2  units of as many bytes, a bit for each probe          analog-1-9-1, -2  32-bit floats of one channel
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write as _};
use std::path::Path;
use std::sync::Arc;

use grebe_frame::{ChannelDescription, Description, MAX_CHANNELS, SampleFormat};
use zip::ZipArchive;

use crate::encoding::Encoding;
use crate::error::Error;
use crate::headerless::path_and_rate;
use crate::name_facts::Hint;
use crate::raw::RawFile;
use crate::sample_file::{SampleFile, Segment};
use crate::unpacked::{self, Unpacked, unpacked};

type Zip = ZipArchive<BufReader<File>>;

/// Opens `x.sr`, or `x.sr?rate=1M`. Each probe is a channel of 0 and 1: `u8`, beside analogue channels `f32` as they are.
pub(super) fn open(written: &Path) -> Result<SampleFile, Error> {
    let (path, asked_hz) = path_and_rate(written)?;
    let no_session = |why: String| Error::Content {
        path: path.clone(),
        what: format!("is not a session of sigrok: {why}"),
    };
    let file = BufReader::new(unpacked::open(&path)?);
    let mut zip = Zip::new(file).map_err(|error| no_session(error.to_string()))?;
    let mut text = String::new();
    let mut read = || -> io::Result<()> {
        zip.by_name("metadata")?.take(METADATA_BYTES_MAX).read_to_string(&mut text).map(drop)
    };
    read().map_err(|error| no_session(format!("its metadata cannot be read, {error}")))?;
    let session = Session::parse(&text).map_err(no_session)?;
    let Session { probes, analog, .. } = &session;
    let format = if analog.is_empty() { SampleFormat::U8 } else { SampleFormat::F32 };
    let encoding = Encoding::of(format);
    let mut sources = Vec::new();
    let mut lengths = Vec::new();
    if !probes.is_empty() {
        let pieces = pieces(&zip, &session.capture_file);
        let file = unpacked(&path, |out| session.logic(&mut zip, &pieces, format, out))?;
        lengths.push(samples_of(&path, &file, encoding, probes.len())?);
        sources.push(RawFile::new(&path, file, encoding, probes.len(), 0));
    }
    for number in analog.keys() {
        let pieces = pieces(&zip, &format!("analog-1-{number}"));
        let copy = |piece: &usize, out: &mut Unpacked| io::copy(&mut zip.by_index(*piece)?, out).map(drop);
        let mut copy = copy;
        let file = unpacked(&path, |out| pieces.iter().try_for_each(|piece| copy(piece, out)))?;
        lengths.push(samples_of(&path, &file, encoding, 1)?);
        sources.push(RawFile::new(&path, file, encoding, 1, 0));
    }
    let (least, most) =
        (lengths.iter().min().copied().unwrap_or(0), lengths.iter().max().copied().unwrap_or(0));
    if least == 0 {
        return Err(Error::Empty { path });
    }
    let mut notes = Vec::new();
    if least < most {
        notes.push(format!("its channels have {least} to {most} samples: {least} of each are read"));
    }
    let rate_hz = if asked_hz > 0.0 { asked_hz } else { session.rate_hz.unwrap_or(0.0) };
    if rate_hz == 0.0 {
        notes.push(Hint::new(written).no_rate("1M"));
    }
    let names = probes.values().chain(analog.values());
    let channels =
        names.map(|name| ChannelDescription { name: name.clone(), ..Default::default() }).collect();
    let said = Description { channels, ..Description::default() };
    let file = SampleFile::new(sources, rate_hz, least, vec![Segment::whole(least)], notes);
    Ok(file.whole(least == most).described(vec![(0, Arc::new(said))]))
}

fn samples_of(path: &Path, file: &File, encoding: Encoding, channels: usize) -> Result<u64, Error> {
    let bytes = file.metadata().map_err(Error::file("read", path))?.len();
    Ok(bytes / (encoding.sample_bytes() * channels) as u64)
}

/// Indices of the pieces of a file, in order: `logic-1`, or `logic-1-1`, `logic-1-2` and so on.
fn pieces(zip: &Zip, name: &str) -> Vec<usize> {
    let number = |file: &str| match file.strip_prefix(name)? {
        "" => Some(0u64),
        rest => rest.strip_prefix('-')?.parse().ok(),
    };
    let names = zip.file_names().flatten();
    let mut found: Vec<(u64, usize)> =
        names.filter_map(|file| Some((number(&file)?, zip.index_for_name(&file)?))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, index)| index).collect()
}

/// Content of the metadata.
#[derive(Debug, Default, PartialEq)]
struct Session {
    rate_hz: Option<f64>,
    capture_file: String,
    unit_bytes: usize,
    /// The names of probes and of analogue channels, by their numbers.
    probes: BTreeMap<usize, String>,
    analog: BTreeMap<usize, String>,
}

impl Session {
    fn parse(text: &str) -> Result<Self, String> {
        let mut session = Self { unit_bytes: 1, capture_file: "logic-1".to_owned(), ..Self::default() };
        let mut devices = 0;
        for line in text.lines() {
            devices += usize::from(line.starts_with("[device "));
            let Some((key, value)) = line.split_once('=').filter(|_| devices == 1) else { continue };
            let (key, value) = (key.trim(), value.trim());
            let numbered =
                |prefix: &str| key.strip_prefix(prefix)?.parse::<usize>().ok().filter(|&it| it > 0);
            match key {
                "samplerate" => session.rate_hz = hertz(value),
                "unitsize" => session.unit_bytes = value.parse().unwrap_or(0),
                "capturefile" => value.clone_into(&mut session.capture_file),
                _ => {
                    if let Some(probe) = numbered("probe") {
                        session.probes.insert(probe, value.to_owned());
                    } else if let Some(number) = numbered("analog") {
                        session.analog.insert(number, value.to_owned());
                    }
                }
            }
        }
        let channels = session.probes.len() + session.analog.len();
        if !(1..=MAX_CHANNELS as usize).contains(&channels) {
            return Err(format!("it has {channels} channels, of which there can be 1 to {MAX_CHANNELS}"));
        }
        let bits = session.probes.keys().next_back().copied().unwrap_or(0);
        if !(1..=64).contains(&session.unit_bytes) || bits > 8 * session.unit_bytes {
            return Err(format!("its unitsize is {}, for {bits} probes", session.unit_bytes));
        }
        Ok(session)
    }

    /// Writes a number for each probe of each unit.
    fn logic(
        &self,
        zip: &mut Zip,
        pieces: &[usize],
        format: SampleFormat,
        out: &mut Unpacked,
    ) -> io::Result<()> {
        let bytes = UNITS * self.unit_bytes;
        let mut units = Vec::with_capacity(bytes);
        let mut samples = Vec::with_capacity(UNITS * self.probes.len() * format.bytes());
        for &piece in pieces {
            let mut piece = zip.by_index(piece)?;
            loop {
                units.clear();
                piece.by_ref().take(bytes as u64).read_to_end(&mut units)?;
                samples.clear();
                for unit in units.chunks_exact(self.unit_bytes) {
                    for probe in self.probes.keys() {
                        let bit = unit[(probe - 1) / 8] >> ((probe - 1) % 8) & 1;
                        match format {
                            SampleFormat::U8 => samples.push(bit),
                            _ => samples.extend_from_slice(&f32::from(bit).to_le_bytes()),
                        }
                    }
                }
                out.write_all(&samples)?;
                if units.len() < bytes {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// `200 kHz`, `24 MHz`, `1000000`.
fn hertz(text: &str) -> Option<f64> {
    let (number, factor) = match text.trim_end_matches("Hz").trim_end() {
        text if text.ends_with(['k', 'K']) => (&text[..text.len() - 1], 1e3),
        text if text.ends_with('M') => (&text[..text.len() - 1], 1e6),
        text if text.ends_with('G') => (&text[..text.len() - 1], 1e9),
        text => (text, 1.0),
    };
    let number: f64 = number.trim().parse().ok()?;
    Some(number * factor).filter(|&hz| hz > 0.0 && hz.is_finite())
}

const METADATA_BYTES_MAX: u64 = 1 << 20;
const UNITS: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn session(path: &Path, metadata: &str, files: &[(&str, &[u8])]) {
        let mut zip = ZipWriter::new(File::create(path).unwrap());
        for (name, bytes) in [("version", &b"2"[..]), ("metadata", metadata.as_bytes())].iter().chain(files) {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap();
    }

    #[test]
    fn a_session_is_read_with_its_names_and_its_rate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sr");
        let logic = "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\ntotal probes=10\nsamplerate=1 MHz\n\
                     total analog=0\nprobe1=SCL\nprobe10=SDA\nunitsize=2\n";
        // Pieces in the order of their numbers, and not of their names.
        let pieces: [(&str, &[u8]); 3] =
            [("logic-1-10", &[1, 2]), ("logic-1-1", &[1, 0, 0, 2]), ("logic-1-2", &[0, 0])];
        session(&path, logic, &pieces);
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.channels(), file.len_samples(), file.rate_hz()), (2, 4, Some(1e6)));
        let names: Vec<_> = file.description(0).unwrap().channels.iter().map(|it| it.name.clone()).collect();
        assert_eq!(names, ["SCL", "SDA"]);
        let block = file.block(0, 4).unwrap();
        assert_eq!(block.channel::<u8>(0).unwrap().as_ref(), [1, 0, 0, 1]);
        assert_eq!(block.channel::<u8>(1).unwrap().as_ref(), [0, 1, 0, 1]);
        let both = "[device 1]\nsamplerate=200 kHz\nprobe1=D0\ntotal analog=1\nanalog9=A0\nunitsize=1\n";
        let volts: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|it| it.to_le_bytes()).collect();
        session(&path, both, &[("logic-1", &[1, 0, 1]), ("analog-1-9-1", &volts)]);
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.channels(), file.len_samples(), file.rate_hz()), (2, 2, Some(200e3)));
        assert!(file.notes()[0].contains("2 to 3 samples"), "{:?}", file.notes());
        let block = file.block(0, 2).unwrap();
        assert_eq!(block.channel::<f32>(0).unwrap().as_ref(), [1.0, 0.0]);
        assert_eq!(block.channel::<f32>(1).unwrap().as_ref(), [1.5, -2.0]);
    }

    #[test]
    fn files_other_than_sigrok_sessions_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sr");
        let refused = |says: &str| {
            let error = SampleFile::open(&path).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        };
        std::fs::write(&path, b"PK").unwrap();
        refused("is not a session of sigrok");
        session(&path, "[device 1]\nsamplerate=1 MHz\n", &[]);
        refused("it has 0 channels");
        session(&path, "[device 1]\nprobe9=D8\nunitsize=1\n", &[]);
        refused("its unitsize is 1, for 9 probes");
        session(&path, "[device 1]\nprobe1=D0\nunitsize=1\n", &[]);
        refused("holds no samples");
    }
}
