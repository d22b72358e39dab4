//! The options of commands that read and write recordings.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use grebe_process::Format;
use grebe_process::Scaling;
use grebe_recording::GapPolicy;
use grebe_stages::file_path;

use super::band::Cutting;
use super::event::{Conditions, EventKind, event_kind};
use super::range::Range;
use crate::units;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe info take.sigmf-meta\n  \
    grebe info *.wav 'capture.bin?format=cu8&rate=2.4M'\n  \
    grebe info --verify night_*.sigmf-meta\n  \
    grebe info --json archive.sigmf | jq '.gaps.count'\n  \
    grebe info --json *.sigmf-meta | jq -r 'select(.whole | not) | .file'\n\n\
    Without --verify grebe reads only metadata, headers and sizes, and checks recordings of up to 64 MiB that have a checksum.")]
pub(crate) struct Info {
    /// Recordings: SigMF, .wav, .npy or raw (x.cu8?rate=2.4M).
    #[arg(required = true, value_name = "FILE", value_parser = recording())]
    pub(crate) files: Vec<PathBuf>,
    /// Read all samples and compare them with the checksums in the recording.
    ///
    /// SigMF has core:sha512 per file. The recorder adds grebe:checksums, which locate a change to within 256 MiB.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print one line of JSON per recording on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe repair take.sigmf-meta\n  \
    grebe repair night_*.sigmf-meta --json\n\n\
    grebe opens a recording of a killed recorder with a note; other programs may refuse it.\n\
    A repair is instant at any size: it completes the metadata, writes the collection of the channels, and removes the data after the \
    last good sample (at most a second).")]
pub(crate) struct Repair {
    /// Recordings: .sigmf-meta, .sigmf-data or .sigmf-collection.
    #[arg(required = true, value_name = "FILE", value_parser = recording())]
    pub(crate) files: Vec<PathBuf>,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe find take.sigmf-meta --trigger edge --level 0.5\n  \
    grebe find take.sigmf-meta --trigger pulse --level 1.2 --shorter 50us --channels 2 --json\n  \
    grebe find capture.sigmf-meta --trigger power --level -30 --longer 5ms --csv > loud.csv\n  \
    grebe find capture.sigmf-meta --trigger burst --band 433.9M,434.1M --above 12dB\n  \
    grebe find take.sigmf-meta --trigger gap\n  \
    grebe find take.sigmf-meta --trigger level --level 3 --annotate --label overload\n\n\
    Levels are in units of the channel; for power and silence, in dB of a full-scale sine. No event spans a gap.")]
pub(crate) struct Find {
    /// Recording: SigMF, .wav, .npy or raw (x.cu8?rate=2.4M).
    #[arg(value_parser = recording())]
    pub(crate) file: PathBuf,
    /// Kind of event.
    #[arg(long, value_name = "KIND", value_parser = event_kind())]
    pub(crate) trigger: EventKind,
    #[command(flatten)]
    pub(crate) conditions: Conditions,
    #[command(flatten)]
    pub(crate) range: Range,
    /// Stop after this many events.
    #[arg(long, value_name = "N", help_heading = "Range", value_parser = units::count)]
    pub(crate) max: Option<u64>,
    /// Print CSV with a header line.
    #[arg(long, help_heading = "Results", conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print one line of JSON per event.
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
    /// Write the events into the recording as annotations, or beside it.
    #[arg(long, help_heading = "Results")]
    pub(crate) annotate: bool,
    /// Label of the annotations [default: the kind of event].
    #[arg(long, value_name = "TEXT", help_heading = "Results", requires = "annotate")]
    pub(crate) label: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe convert take.sigmf-meta take.wav\n  \
    grebe convert take.sigmf-meta take.npy --start 10s --duration 2s --channels 1,3\n  \
    grebe convert 'capture.bin?format=cu8&rate=2.4M&frequency=100M' capture.sigmf-meta\n  \
    grebe convert capture.sigmf-meta slow.sigmf-meta --decimate 100 --format cf32\n  \
    grebe convert capture.sigmf-meta band --center 433.92M --bandwidth 200k\n  \
    grebe convert capture.sigmf-meta x --box 1,2,433M,434M --box 3,4,434M,435M\n  \
    grebe convert capture.sigmf-meta radio.wav --demodulate wfm --center 100.1M\n  \
    grebe convert lossy.sigmf-meta lossy.wav --gaps zeros\n  \
    grebe convert take.sigmf-meta take.csv --times\n  \
    grebe convert 'log.csv?format=i16&rate=1k' log.sigmf-meta\n\n\
    Samples stay bit for bit the same, unless --format, --decimate, --center, --box or --demodulate ask for others. SigMF keeps gaps, times, metadata and annotations; other kinds \
    of files hold samples only. An interrupted conversion leaves OUT.part, and the same command continues it (SigMF starts over).")]
pub(crate) struct Convert {
    /// Recording, ring, table (.csv) or raw file (x.cu8?rate=2.4M).
    #[arg(value_name = "IN", value_parser = recording())]
    pub(crate) from: PathBuf,
    /// File to make: NAME.sigmf-meta, NAME.wav, NAME.npy, NAME.csv, NAME.cu8, ...
    #[arg(value_name = "OUT", value_parser = recording())]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) range: Range,
    /// Channels to take, in this order: 1,3 or 5-8 [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Range", value_parser = units::channels)]
    pub(crate) channels: Vec<RangeInclusive<u8>>,
    /// Decimation factor, after a low-pass filter: 2 to 1000.
    #[arg(long, value_name = "N", help_heading = "Samples", value_parser = units::count, conflicts_with_all = ["center", "box", "demodulate"])]
    pub(crate) decimate: Option<u64>,
    #[command(flatten)]
    pub(crate) cutting: Cutting,
    /// Sample format of OUT [default: unchanged].
    #[arg(long, value_name = "FORMAT", help_heading = "Samples", value_parser = units::format())]
    pub(crate) format: Option<Format>,
    /// Scaling between integer and floating-point formats.
    #[arg(long, value_name = "SCALE", default_value = "full", help_heading = "Samples", value_parser = units::choice(&SCALES), requires = "format")]
    pub(crate) scale: Scaling,
    /// Missing samples, if OUT cannot represent gaps.
    #[arg(long, value_name = "GAPS", default_value = "refuse", help_heading = "Samples", value_parser = units::choice(&GAPS))]
    pub(crate) gaps: GapPolicy,
    /// Begin each line of a .csv with the sample's time in seconds.
    #[arg(long)]
    pub(crate) times: bool,
    /// Replace an existing OUT, and an OUT.part of another conversion.
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// Parses the name of a recording: a path, or `file:PATH`.
pub(super) fn recording() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(file_path)
}

const SCALES: [(&str, &str, Scaling); 2] = [
    ("full", "1.0 in floating point is integer full scale", Scaling::Full),
    ("counts", "Numbers stay the same", Scaling::Counts),
];
const GAPS: [(&str, &str, GapPolicy); 3] = [
    ("refuse", "Fail, and write nothing", GapPolicy::Refuse),
    ("zeros", "Fill gaps with zeros, so that times stay right", GapPolicy::Zeros),
    ("close", "Drop gaps, so that later samples move forward", GapPolicy::Close),
];
