//! The options of `grebe record` and `grebe save`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use grebe_recording::{RingLength, Rotate, WriteMethod};
use grebe_stages::{Uri, file_path};
use grebe_zenoh::StreamName;

use super::event::{Conditions, EventKind, event_kind};
use super::lab::Lab;
use super::metrics::Metrics;
use super::stream::Reception;
use crate::ending::Usage;
use crate::units;

#[derive(Debug, Args)]
#[command(
    override_usage = "grebe record [OPTIONS] <URI>... <FILE>\n       grebe record [OPTIONS] <URI> --to <PATH>..."
)]
#[command(after_help = "Examples:\n  \
    grebe record udp://:5000 out.sigmf-meta\n  \
    grebe record udp://:5000 out.sigmf-meta --duration 6s --idle-timeout 2s\n  \
    grebe record lab/mast3/adc out.sigmf-meta --router tcp/lab-server:7447\n  \
    grebe record 'soapy:driver=rtlsdr?frequency=100M&rate=2.4M' out.sigmf-meta --name lab/mast3/rf\n  \
    grebe record shm://adc night.sigmf-meta --rotate 10m --keep 1T\n  \
    grebe record udp://:5000 udp://:5001 both.sigmf-meta    # two hosts on one time axis\n  \
    grebe record shm://adc --to /disk1/fast.sigmf-meta --to /disk2/ --buffer 2G    # the rate of both disks\n  \
    grebe record shm://adc /data/box --ring 30m    # then: grebe save /data/box --last 20s\n  \
    grebe record shm://adc /data/box --ring 30m --on-trigger level --level 0.5 --before 10s --after 5s\n\n\
    The recording ends with the stream, after --duration, or with Ctrl-C. It is valid in each case.")]
pub(crate) struct Record {
    /// Streams, and the recording to make: NAME.sigmf-meta, or the folder of a ring.
    ///
    /// A stream is a URI (udp://:5000, shm://NAME, pipe:, synth:sine?frequency=1k), a name in the lab (lab/mast3/adc), or a file.
    /// One channel makes one recording. Several channels make a recording each, and a .sigmf-collection that opens them together.
    /// Several streams make one recording each (NAME_1, NAME_2, ...) and NAME.sigmf-collection, aligned by sample time.
    #[arg(required = true, value_name = "URI... FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) streams_and_file: Vec<OsString>,
    /// Recording or folder to write; once per disk to record on several disks.
    ///
    /// Several disks take blocks in turn, so their rates add up. Each has a share of --buffer. A full disk is no longer used.
    /// Any one of the recordings opens all of them.
    #[arg(short = 'o', long, value_name = "PATH", conflicts_with_all = ["ring", "rotate"])]
    pub(crate) to: Vec<PathBuf>,
    /// Replace a recording of the same name.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Name under which to announce the stream in the lab while it is recorded.
    #[arg(long, value_name = "NAME", value_parser = units::stream_name)]
    pub(crate) name: Option<StreamName>,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    /// Stop after this length of signal, gaps included: 6s, 10m.
    #[arg(short = 'd', long, value_name = "TIME", help_heading = LENGTH, value_parser = units::length)]
    pub(crate) duration: Option<Duration>,
    /// Stop after this many samples per channel.
    #[arg(long, value_name = "N", help_heading = LENGTH, value_parser = units::count, conflicts_with = "duration")]
    pub(crate) samples: Option<u64>,
    /// Stop before the samples of all channels exceed this size: 100G.
    #[arg(long, value_name = "BYTES", help_heading = LENGTH, value_parser = units::size_bytes)]
    pub(crate) max_size: Option<usize>,
    /// Fail if no sample arrives for this time: 2s.
    #[arg(long, value_name = "TIME", help_heading = LENGTH, value_parser = units::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Length (10m) or size (4G) of each part: NAME_000001, NAME_000002, ...
    #[arg(long, value_name = "TIME|BYTES", help_heading = LENGTH, value_parser = units::rotate, conflicts_with = "overwrite")]
    pub(crate) rotate: Option<Rotate>,
    /// Maximum size of all parts together: 1T; the oldest parts are removed.
    #[arg(long, value_name = "BYTES", help_heading = LENGTH, value_parser = units::size_bytes, requires = "rotate")]
    pub(crate) keep: Option<usize>,
    /// Keep only the last part of the stream, by time (30m) or size (20G).
    ///
    /// FILE is then a folder with the parts of the ring. grebe save saves a range of it.
    #[arg(long, value_name = "TIME|BYTES", help_heading = LENGTH, value_parser = units::ring, conflicts_with_all = ["overwrite", "rotate", "max_size"])]
    pub(crate) ring: Option<RingLength>,
    #[command(flatten)]
    pub(crate) trigger: SaveTrigger,
    /// Memory for samples that wait for the disk.
    #[arg(long, value_name = "BYTES", default_value = "256M", help_heading = "Disk", value_parser = units::size_bytes)]
    pub(crate) buffer: usize,
    /// Method of writing, for tests and measurements: io-uring, threads or page-cache.
    #[arg(long, value_name = "METHOD", hide = true, value_parser = units::write_method)]
    pub(crate) write_by: Option<WriteMethod>,
    #[command(flatten)]
    pub(crate) transport: Reception,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

const LENGTH: &str = "Length";

/// Events for which a range of the ring is saved.
#[derive(Debug, Args)]
#[command(next_help_heading = "Trigger (with --ring)")]
pub(crate) struct SaveTrigger {
    /// Event for which to save a range of the ring.
    #[arg(long, value_name = "KIND", value_parser = event_kind(), requires = "ring")]
    pub(crate) on_trigger: Option<EventKind>,
    /// Signal to save before the event.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    pub(crate) before: Duration,
    /// Signal to save after the event.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
    pub(crate) after: Duration,
    /// Maximum saves per minute; the others are counted.
    #[arg(long, value_name = "N", default_value = "6", value_parser = units::count)]
    pub(crate) saves_per_minute: u64,
    #[command(flatten)]
    pub(crate) conditions: Conditions,
}

impl Record {
    /// The streams to record and, unless `--to` names it, the recording to make.
    ///
    /// # Errors
    /// [`Usage`] if one of them is invalid or missing.
    pub(crate) fn places(&self) -> Result<(Vec<Uri>, Option<PathBuf>), Usage> {
        let uri = |place: &OsString| {
            let text = place.to_str().ok_or("invalid UTF-8 in the name of a stream".to_owned());
            text.and_then(units::uri).map_err(|why| Usage(format!("{}: {why}", place.display())))
        };
        if !self.to.is_empty() {
            return Ok((self.streams_and_file.iter().map(uri).collect::<Result<_, _>>()?, None));
        }
        let (file, streams) = match self.streams_and_file.split_last() {
            Some((file, streams)) if !streams.is_empty() => (file_path(file.clone()), streams),
            _ => {
                return Err(Usage(
                    "no recording to write: give NAME.sigmf-meta after the stream, or --to".to_owned(),
                ));
            }
        };
        let is_stream = matches!(uri(&file.clone().into_os_string()), Ok(it) if !matches!(it, Uri::File(_) | Uri::Named(_)));
        if is_stream {
            let what = "is a stream: give the recording to write after it, NAME.sigmf-meta";
            return Err(Usage(format!("{} {what}", file.display())));
        }
        Ok((streams.iter().map(uri).collect::<Result<_, _>>()?, Some(file)))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    grebe save /data/box --last 20s\n  \
    grebe save /data/box --last 20s --after 5s --to crash.sigmf-meta\n  \
    grebe save /data/box --last 1m --json | jq -r '.files[0]'\n\n\
    A save does not slow the recorder, and also works after the recorder has ended.")]
pub(crate) struct Save {
    /// Folder of a ring (grebe record --ring).
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Signal to save before now.
    #[arg(long, visible_alias = "before", value_name = "TIME", value_parser = units::duration, required_unless_present = "after")]
    pub(crate) last: Option<Duration>,
    /// Signal to save from now on; the command waits for it.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "0")]
    pub(crate) after: Duration,
    /// Recording to make: NAME.sigmf-meta [default: save_TIME in DIR].
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Replace a recording of the same name.
    #[arg(long, requires = "to")]
    pub(crate) overwrite: bool,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}
