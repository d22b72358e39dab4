//! Commands on recordings that lie on a disk.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use grebe_process::Format;
use grebe_process::Scaling;
use grebe_recording::GapPolicy;

use super::event::{Conditions, EventKind, event_kind};
use crate::units;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe info take.sigmf-meta\n  \
    grebe info *.wav 'capture.bin?format=cu8&rate=2.4M'\n  \
    grebe info --json archive.sigmf | jq '.gaps.count'\n  \
    grebe info --json *.sigmf-meta | jq -r 'select(.whole | not) | .file'\n\n\
    Only metadata, headers and sizes are read, and of a recording of up to 64 MiB that has a checksum also its samples.\n\
    Exit status: 0 all are whole, 1 one cannot be read, 4 one is truncated, or its recorder was cut off or is still at it.")]
pub(crate) struct Info {
    /// Recordings: .sigmf-meta, .sigmf-collection, .sigmf, .wav, .npy, or raw files (x.cu8?rate=2.4M).
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print a line of JSON for each recording on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe repair take.sigmf-meta\n  \
    grebe repair night_*.sigmf-meta --json\n\n\
    A recording whose recorder was killed opens as it is, with a note; other programs see \"not closed\", and sometimes no collection.\n\
    This closes it in place, of any size at once: metadata end where the samples are good, channels are tied together by sums that fit. What \
    stands behind them in the data (up to a second of samples whose gaps were not noted yet, and room that was taken ahead) is cut off.\n\
    Exit status: 0 all are whole now, 1 one cannot be closed (it is named), or is still being recorded.")]
pub(crate) struct Repair {
    /// Recordings in files of their own: .sigmf-meta, .sigmf-data or .sigmf-collection.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print what was done as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe find take.sigmf-meta --trigger edge --level 0.5\n  \
    grebe find take.sigmf-meta --trigger pulse --level 1.2 --shorter 50us --channel 2 --json\n  \
    grebe find capture.sigmf-meta --trigger power --level -30 --longer 5ms --csv > bursts.csv\n  \
    grebe find take.sigmf-meta --trigger gap\n  \
    grebe find take.sigmf-meta --trigger level --level 3 --annotate --label overload\n\n\
    Levels are in the units of the channel (as the recording says), of power and silence in dB of a full-scale sine or tone.\n\
    Without --channel all channels are searched; of complex samples the magnitude (1.i, 1.q, 1.db, 1.phase and 1.frequency are \
    others). Nothing is found across a gap. What lasts is told when it ends.\n\
    Exit status: 0 searched to the end, 1 failed, 2 wrong usage, 130 interrupted.")]
pub(crate) struct Find {
    /// A recording: .sigmf-meta, .sigmf-collection, .sigmf, .wav or .npy, or a raw file (x.cu8?rate=2.4M).
    pub(crate) file: PathBuf,
    /// What to look for.
    #[arg(long, value_name = "KIND", value_parser = event_kind())]
    pub(crate) trigger: EventKind,
    #[command(flatten)]
    pub(crate) conditions: Conditions,
    /// Look only at what lies behind so much of the signal.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = units::duration)]
    pub(crate) start: Duration,
    /// Look only at so much of the signal from there on, gaps included.
    #[arg(long, value_name = "TIME", value_parser = units::length)]
    pub(crate) duration: Option<Duration>,
    /// End after so many.
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) max: Option<u64>,
    /// Print comma-separated values with a line of names.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print a line of JSON for each.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write them into the recording, as annotations that the scope draws; in one step, at the end. SigMF only.
    #[arg(long)]
    pub(crate) annotate: bool,
    /// What the annotations say [default: what was looked for].
    #[arg(long, value_name = "TEXT", requires = "annotate")]
    pub(crate) label: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe convert take.sigmf-meta take.wav\n  \
    grebe convert take.sigmf-meta take.npy --start 10s --duration 2s --channels 1,3\n  \
    grebe convert 'capture.bin?format=cu8&rate=2.4M&frequency=100M' capture.sigmf-meta\n  \
    grebe convert capture.sigmf-meta slow.sigmf-meta --decimate 100 --format cf32\n  \
    grebe convert lossy.sigmf-meta lossy.wav --gaps zeros\n  \
    grebe convert take.sigmf-meta take.csv --times\n  \
    grebe convert 'log.csv?format=i16&rate=1k' log.sigmf-meta\n\n\
    Samples stay what they are, bit for bit, unless --format or --decimate ask for others. SigMF keeps gaps, times, what the \
    recording says of itself, and its labels; the others hold samples alone. OUT has its name once all of it is on the disk; \
    what was interrupted is in OUT.part, and the same command goes on from there (SigMF begins anew).\n\
    Exit status: 0 written, 1 failed, 2 wrong usage, 130 interrupted.")]
pub(crate) struct Convert {
    /// A recording: .sigmf-meta, .sigmf-collection, .sigmf, .wav, .npy or .csv, or a raw file (x.cu8?rate=2.4M).
    #[arg(value_name = "IN")]
    pub(crate) from: PathBuf,
    /// The file to make: NAME.sigmf-meta, NAME.wav, NAME.npy, NAME.csv, or raw samples (NAME.cu8, NAME.cf32, ...).
    #[arg(value_name = "OUT")]
    pub(crate) to: PathBuf,
    /// Take what lies behind so much of the signal: 90s, 1h.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = units::duration)]
    pub(crate) start: Duration,
    /// Take so much of the signal from there on, gaps included.
    #[arg(long, value_name = "TIME", value_parser = units::length)]
    pub(crate) duration: Option<Duration>,
    /// Take these channels, in this order: 1,3 or 5-8.
    #[arg(long, value_name = "CHANNELS", value_delimiter = ',', value_parser = units::channels)]
    pub(crate) channels: Vec<RangeInclusive<u8>>,
    /// Keep one sample of so many, behind a low-pass filter: 2 to 1000.
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) decimate: Option<u64>,
    /// What a sample becomes: i8, u8, i16, i32, f32 or f64; of complex ones ci8, cu8, ci16 or cf32.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// What stays the same then: the part of full scale, or the number.
    #[arg(long, value_name = "SCALE", default_value = "full", value_parser = units::choice(&SCALES), requires = "format")]
    pub(crate) scale: Scaling,
    /// What becomes of missing samples where OUT cannot say so.
    #[arg(long, value_name = "GAPS", default_value = "refuse", value_parser = units::choice(&GAPS))]
    pub(crate) gaps: GapPolicy,
    /// Of a .csv: begin each line with the time of its sample, in seconds; that says where samples are missing, too.
    #[arg(long)]
    pub(crate) times: bool,
    /// Replace a file of the same name, and what was begun of it from something else.
    #[arg(long)]
    pub(crate) overwrite: bool,
}

const SCALES: [(&str, &str, Scaling); 2] = [
    ("full", "1.0 of floating point is full scale of integers", Scaling::Full),
    ("counts", "a number stays the number", Scaling::Counts),
];
const GAPS: [(&str, &str, GapPolicy); 3] = [
    ("refuse", "OUT is not written", GapPolicy::Refuse),
    ("zeros", "Zeros stand for them: what follows keeps its time", GapPolicy::Zeros),
    ("close", "What follows them follows at once", GapPolicy::Close),
];
