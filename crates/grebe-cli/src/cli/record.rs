//! What is recorded, and what of it is kept.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use grebe_recording::{RingLength, Rotate, WriteWay};
use grebe_stages::Uri;
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
    grebe record shm://adc out.sigmf-meta --buffer 2G\n  \
    grebe record lab/mast3/adc out.sigmf-meta --router tcp/lab-server:7447\n  \
    grebe record 'soapy:driver=rtlsdr?frequency=100M&rate=2.4M' out.sigmf-meta --name lab/mast3/rf    # others look meanwhile\n  \
    grebe record shm://adc night.sigmf-meta --rotate 10m --keep 1T\n  \
    grebe record udp://:5000 udp://:5001 both.sigmf-meta    # of two hosts, on one axis of time\n  \
    grebe record shm://adc --to /disk1/fast.sigmf-meta --to /disk2/ --buffer 2G    # as fast as both disks\n  \
    grebe record shm://adc /data/box --ring 30m    # grebe save /data/box --last 20s keeps a stretch of it\n  \
    grebe record shm://adc /data/box --ring 30m --on-trigger level --level 0.5 --before 10s --after 5s\n\n\
    The recording ends with the stream, after --duration, or with Ctrl-C; it is good in each case. One channel makes \
    one recording, several make one per channel and a .sigmf-collection that ties them.\n\
    Exit status: 0 recorded, 1 failed, 2 wrong usage, 3 the sender fell silent (--idle-timeout) or is gone (shm://, pipe:), \
    4 samples were lost with one of several disks, 5 the disk is full or a file as large as it may be (what was recorded until then is good), 130 interrupted.")]
pub(crate) struct Record {
    /// The stream: udp://:5000, shm://NAME, a name in the lab (lab/mast3/adc), pipe:, a file, or synth:, also with parameters: synth:sine?frequency=1k.
    /// Behind it the recording to make: NAME.sigmf-meta; with --ring, the folder of the ring. Of several streams each has a recording of its
    /// own, NAME_1, NAME_2, ..., and NAME.sigmf-collection lays them side by side by when their samples were made.
    #[arg(required = true, value_name = "URI... FILE")]
    pub(crate) places: Vec<OsString>,
    /// A disk to record on, several times: its folder, or NAME.sigmf-meta there. They take turns, so that their rates add up, and
    /// each has a share of --buffer; a full one is left out. Any of the recordings opens all of them as one.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["ring", "rotate"])]
    pub(crate) to: Vec<PathBuf>,
    /// End after this much of the signal, gaps included.
    #[arg(long, value_name = "TIME", value_parser = units::length)]
    pub(crate) duration: Option<Duration>,
    /// End after this many samples per channel.
    #[arg(long, value_name = "N", value_parser = units::count, conflicts_with = "duration")]
    pub(crate) samples: Option<u64>,
    /// Fail once the sender has been silent for this long, also where it never came.
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Announce what is recorded under this name in the lab, and send it by UDP or over Zenoh to who asks for it: grebe ls, grebe view
    /// NAME.
    #[arg(long, value_name = "NAME", value_parser = units::stream_name)]
    pub(crate) name: Option<StreamName>,
    /// Replace a recording of the same name.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Record in parts of this length (10m, of the signal) or size (4G): NAME_000001, NAME_000002, ..., each a recording.
    #[arg(long, value_name = "TIME|BYTES", value_parser = units::rotate, conflicts_with = "overwrite")]
    pub(crate) rotate: Option<Rotate>,
    /// Of the parts keep so much, with the one that is written: the oldest are removed.
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes, requires = "rotate")]
    pub(crate) keep: Option<usize>,
    /// Keep the last so much of the signal (30m), or so many bytes (20G), for as long as it runs: a black box. FILE is a folder
    /// then, with the parts of the ring; grebe save keeps a stretch of it for good.
    #[arg(long, value_name = "TIME|BYTES", value_parser = units::ring, conflicts_with_all = ["overwrite", "rotate", "max_size"])]
    pub(crate) ring: Option<RingLength>,
    /// End before there are more bytes of samples, of all channels.
    #[arg(long, value_name = "BYTES", value_parser = units::size_bytes)]
    pub(crate) max_size: Option<usize>,
    /// Memory for what waits for the disk: as long as that lasts, the disk may stall.
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = units::size_bytes)]
    pub(crate) buffer: usize,
    /// How to write: past the page cache by io-uring or by threads (Linux), or through the page-cache [default: the first
    /// that works].
    #[arg(long, value_name = "WAY", value_parser = units::write_way)]
    pub(crate) write_by: Option<WriteWay>,
    /// Print the result as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) metrics: Metrics,
    #[command(flatten)]
    pub(crate) trigger: Trigger,
    #[command(flatten)]
    pub(crate) transport: Reception,
    #[command(flatten)]
    pub(crate) lab: Lab,
}

/// For what a stretch of a ring is kept.
#[derive(Debug, Args)]
#[command(next_help_heading = "Trigger")]
pub(crate) struct Trigger {
    /// Keep a stretch of the ring for good whenever this happens; what lasts, once it has ended.
    #[arg(long, value_name = "KIND", value_parser = event_kind(), requires = "ring")]
    pub(crate) on_trigger: Option<EventKind>,
    /// Keep so much of the signal before it.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    pub(crate) before: Duration,
    /// And so much behind it.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
    pub(crate) after: Duration,
    /// Keep no more stretches than that within a minute; those that are left out are counted.
    #[arg(long, value_name = "N", default_value = "6", value_parser = units::count)]
    pub(crate) saves_per_minute: u64,
    #[command(flatten)]
    pub(crate) conditions: Conditions,
}

impl Record {
    /// The streams to record, and where to, unless disks are named.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(crate) fn places(&self) -> Result<(Vec<Uri>, Option<PathBuf>), Usage> {
        let uri = |place: &OsString| {
            let text = place.to_str().ok_or("is not UTF-8: no stream has such a name".to_owned());
            text.and_then(units::uri).map_err(|why| Usage(format!("{}: {why}", place.display())))
        };
        if !self.to.is_empty() {
            return Ok((self.places.iter().map(uri).collect::<Result<_, _>>()?, None));
        }
        let (file, streams) = match self.places.split_last() {
            Some((file, streams)) if !streams.is_empty() => (PathBuf::from(file), streams),
            _ => {
                return Err(Usage(
                    "say where to record to: NAME.sigmf-meta behind the stream, or --to".to_owned(),
                ));
            }
        };
        let is_stream = matches!(uri(&file.clone().into_os_string()), Ok(it) if !matches!(it, Uri::File(_) | Uri::Named(_)));
        if is_stream {
            let what = "is a stream: name the recording to make behind it, NAME.sigmf-meta";
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
    The recorder is not asked and not held up; what it removes meanwhile is kept. It works as well once the recorder is gone.\n\
    Ctrl-C ends the wait for what is to come, and keeps what there is.\n\
    Exit status: 0 all of it is kept, 1 failed, 2 wrong usage, 4 only a part of it was there, 5 the disk has no room, 130 interrupted.")]
pub(crate) struct Save {
    /// The folder that grebe record --ring writes into.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Keep so much of the signal before now.
    #[arg(long, visible_alias = "before", value_name = "TIME", value_parser = units::duration, required_unless_present = "after")]
    pub(crate) last: Option<Duration>,
    /// And so much from now on: ends when that has come.
    #[arg(long, value_name = "TIME", value_parser = units::duration, default_value = "0")]
    pub(crate) after: Duration,
    /// The recording to make: NAME.sigmf-meta [default: save_ and the time, in DIR].
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Replace a recording of the same name.
    #[arg(long, requires = "to")]
    pub(crate) overwrite: bool,
    /// Print what was kept as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}
