//! `grebe record`: writes a stream to a recording, to parts, or to a ring.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

use anyhow::{Result, anyhow};
use grebe_recording::{LeftOut, RecordOptions, RingPlan, Rotate, SampleFile};
use grebe_scope::Engineering;
use grebe_stages::{SinkOptions, Uri, open_sink};

use crate::cli::Record;
use crate::ending::{Ending, Usage};
use crate::graph::{About, Pair, announcer, print_notice};
use crate::output::note;
use crate::show::rings;

mod several;
mod source;
mod trigger;

use self::source::{QUEUE_BATCHES, open, waits_for};
use self::trigger::Watch;

/// Records one stream, or several.
pub(crate) fn run(options: &Record) -> Result<Ending> {
    options.lab.configure();
    let (uris, file) = options.places()?;
    let uri = match (&uris[..], &file) {
        ([uri], _) => uri,
        (_, Some(file)) => return several::run(options, &uris, file),
        (_, None) => return Err(Usage(several::ONE_PLACE.to_owned()).into()),
    };
    let mut disks = file.into_iter().chain(options.to.iter().cloned());
    // Clap requires one of both.
    let file = disks.next().unwrap_or_default();
    let watch = Watch::of(options, &file)?;
    let more_disks: Vec<PathBuf> = disks.collect();
    // Unwritable files are reported before a source is opened, because senders may be waiting for it.
    let recording = RecordOptions {
        duration: options.duration,
        overwrite: options.overwrite,
        buffer_bytes: Some(options.buffer),
        write_method: options.write_by.unwrap_or_default(),
        rotate: options.rotate,
        keep_bytes: options.keep.map(|bytes| bytes as u64),
        ring: options.ring,
        ring_plan: options.ring.map(|_| report_plan()),
        bytes_max: options.max_size.map(|bytes| bytes as u64),
        left_out: Some(report_failed_disks()),
        more_disks: more_disks.clone(),
    };
    let to = SinkOptions { recording, ..SinkOptions::default() };
    let sink = open_sink(&Uri::File(file.clone()), &to, &mut print_notice)?;
    let announcer = options.name.as_ref().map(|name| {
        // Readers on this machine read the recorded shared memory.
        let ways = Some(uri).filter(|uri| uri.traits().is_lent).and_then(Uri::uri_for_readers);
        let to = SinkOptions {
            producer: "record".to_owned(),
            routes: ways.into_iter().collect(),
            ..SinkOptions::default()
        };
        announcer(name, &to)
    });
    let announcer = announcer.transpose()?;
    let source = open(uri, options)?;
    let pair = Pair {
        source: ("source", source.stage),
        sink: ("recorder", sink.stage),
        between: None,
        queue_batches: QUEUE_BATCHES,
        announcer,
        trigger: watch.map(|watch| watch.stage(source.lent_max)),
        waits_for: Some(waits_for(uri.to_string(), options)),
        metrics: options.metrics.clone(),
        about: about(options, uri, &file),
    };
    pair.run_and_judge("record", "recorded", options.json, |recorder, ending| {
        if recorder.samples_in > 0 {
            // The gap of a failed disk was reported.
            let has_lost = recorder.own("disk_lost_samples").is_some_and(|samples| samples > 0);
            let ending = match ending {
                Ok(Ending::Good) if has_lost => Ok(Ending::Partial),
                ending => ending,
            };
            // A folder among the disks has a recording of the first one's name.
            let name = file.file_name().unwrap_or_default();
            let recording = |disk: &PathBuf| if disk.is_dir() { disk.join(name) } else { disk.clone() };
            let recordings: Vec<PathBuf> = std::iter::once(&file).chain(&more_disks).map(recording).collect();
            let is_striped = !more_disks.is_empty();
            for unused in recordings.iter().filter(|path| is_striped && SampleFile::named(path).is_none()) {
                note!(
                    "grebe: {} was not written: disks take turns after half of --buffer, and the recording is shorter",
                    unused.display()
                );
            }
            return (ending, recordings.iter().find_map(|path| SampleFile::named(path)));
        }
        // Files are created with the first frame. A script must not take an older recording for this one.
        let unwritten = format!("no sample was recorded: {} was not written", file.display());
        let ending = match ending {
            Ok(Ending::Good) => Err(anyhow!("{unwritten}")),
            Ok(ending) => {
                note!("grebe: {unwritten}");
                Ok(ending)
            }
            Err(error) => Err(error.context(unwritten)),
        };
        (ending, None)
    })
}

/// Information by which a scope of the stream finds its ring.
fn about(options: &Record, uri: &Uri, folder: &Path) -> About {
    let is_ring = options.ring.is_some();
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let ring = is_ring.then(|| rings::about(uri, &folder));
    ring.unwrap_or_default()
}

/// Reports disks that are no longer used.
fn report_failed_disks() -> Sender<LeftOut> {
    let (told, news) = channel::<LeftOut>();
    let say = |LeftOut { path, why }: LeftOut| {
        note!("grebe: {}: {why}; recording continues on the other disks", path.display());
    };
    std::thread::spawn(move || news.into_iter().for_each(say));
    told
}

/// Reports the cost of a ring once its stream is known.
fn report_plan() -> Sender<RingPlan> {
    let (told, plans) = channel::<RingPlan>();
    std::thread::spawn(move || plans.into_iter().for_each(|plan| note!("{}", words(&plan))));
    told
}

fn words(plan: &RingPlan) -> String {
    let part = match plan.part {
        Rotate::After(time) => format!("{time:.1?}"),
        Rotate::Bytes(bytes) => size(bytes as f64),
    };
    let ring = format!(
        "ring: up to {} on the disk, in {} parts of {part}",
        size(plan.disk_bytes as f64),
        plan.parts + 1
    );
    if plan.bytes_s == 0.0 {
        return ring;
    }
    // SSD makers state endurance as bytes written, some hundred times the capacity.
    let (hour, day) = (plan.bytes_s * 3_600.0, plan.bytes_s * 86_400.0);
    format!("{ring}; writes {} an hour, {} a day, which wears an SSD", size(hour), size(day))
}

/// Bytes in decimal units, as disks are sold.
fn size(bytes: f64) -> String {
    Engineering::new(bytes, "B").to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_cost_of_a_ring_is_in_decimal_sizes() {
        let part = Rotate::After(Duration::from_millis(112_500));
        let plan = RingPlan { part, parts: 16, disk_bytes: 1_710_000_000_000, bytes_s: 800e6 };
        assert_eq!(
            words(&plan),
            "ring: up to 1.71 TB on the disk, in 17 parts of 112.5s; writes 2.88 TB an hour, 69.1 TB a day, which wears an SSD"
        );
        let unknown = RingPlan { part: Rotate::Bytes(1_000_000), bytes_s: 0.0, ..plan };
        assert_eq!(words(&unknown), "ring: up to 1.71 TB on the disk, in 17 parts of 1 MB");
    }
}
