//! Rings: kept ranges, saves, and the effects of kills.
#![cfg(unix)]

mod ends;
mod kills;
mod shown;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::support::{Good, finish, grebe, run, signal, text};
use grebe::frame::SampleFormat;
use grebe::recording::{SampleFile, SigmfSettings, SigmfWriter};
use serde_json::Value;

/// A recorder of a ring; killed with the test.
struct Recorder {
    child: Option<Child>,
    folder: PathBuf,
}

impl Recorder {
    fn start(uri: &str, folder: &Path, more: &[&str]) -> Self {
        let mut arguments = vec!["record", uri, folder.to_str().unwrap(), "--json"];
        arguments.extend(more);
        let child = grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child: Some(child), folder: folder.into() }
    }

    /// Waits until the ring fits.
    fn wait_until(&mut self, what: impl Fn(&[PathBuf]) -> bool) {
        let began = Instant::now();
        while !what(&parts(&self.folder)) {
            assert!(began.elapsed() < Duration::from_secs(50), "{:?}", parts(&self.folder));
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the recorder has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Interrupts it as Ctrl-C does; returns its report and messages.
    fn interrupt(&mut self) -> (Value, String) {
        let child = self.child.take().unwrap();
        signal("-INT", child.id());
        let output = finish(child);
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        (serde_json::from_slice(&output.stdout).unwrap(), text(&output.stderr))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The parts of a ring, in their order.
fn parts(folder: &Path) -> Vec<PathBuf> {
    let is_part = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("ring_");
    collections(folder).into_iter().filter(is_part).collect()
}

/// Recordings of two channels, by their collection, also if their recorder was killed while replacing it.
fn collections(folder: &Path) -> BTreeSet<PathBuf> {
    let names = std::fs::read_dir(folder).into_iter().flatten();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let bases = names.filter_map(|name| Some(name.strip_suffix("_ch1.sigmf-meta")?.to_owned()));
    let shown = bases.filter(|base| !base.starts_with('.'));
    shown.map(|base| folder.join(format!("{base}.sigmf-collection"))).collect()
}

fn number(part: &Path) -> u64 {
    part.file_stem().unwrap().to_str().unwrap()["ring_".len()..][..6].parse().unwrap()
}

fn save(folder: &Path, more: &[&str]) -> (Option<i32>, Value, String) {
    let mut arguments = vec!["save", folder.to_str().unwrap(), "--json"];
    arguments.extend(more);
    let output = run(&arguments);
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), text(&output.stderr))
}

fn file_of(saved: &Value) -> SampleFile {
    SampleFile::open(Path::new(saved["files"][0].as_str().unwrap())).unwrap()
}

/// Two saws whose periods have no common factor: no two places within six million samples are alike.
const SAWS: &str = "synth:saw?channels=2&rate=2M&frequency=976.5625,640";
const PERIODS: [u64; 2] = [2_048, 3_125];

/// The generator's value at a sample index.
fn made() -> [Vec<i16>; 2] {
    let folder = folder();
    let path = folder.path().join("made.sigmf-collection");
    let uri = format!("{SAWS}&samples=20k");
    let output = run(&["record", &uri, folder.path().join("made.sigmf-meta").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut file = SampleFile::open(&path).unwrap();
    let block = file.block(0, 20_000).unwrap();
    let all = [0, 1].map(|channel| block.channel::<i16>(channel).unwrap().to_vec());
    for (samples, period) in all.iter().zip(PERIODS) {
        let period = period as usize;
        assert!(samples[..period] == samples[period..2 * period], "not of the period {period}");
    }
    all
}

/// Every sample is that of its index.
fn check(file: &mut SampleFile, made: &[Vec<i16>; 2]) {
    for segment in file.segments().to_vec() {
        let mut at = 0;
        while at < segment.length_samples {
            let length = (segment.length_samples - at).min(100_000);
            let block = file.block(segment.position + at, length as usize).unwrap();
            let index = segment.first_sample_index + at;
            for channel in 0..2 {
                let samples = block.channel::<i16>(channel).unwrap();
                let expected = (index..).map(|index| made[channel][(index % PERIODS[channel]) as usize]);
                assert!(samples.iter().copied().eq(expected.take(length as usize)), "near sample {index}");
            }
            at += length;
        }
    }
}

#[test]
fn a_recorder_ends_after_its_duration_although_something_else_looks_at_the_stream() {
    let folder = folder();
    let to = folder.path().join("ring");
    let source = "synth:sine?rate=100k";
    let trigger = ["--on-trigger", "edge", "--level", "1e9", "--duration", "1s", "--ring", "10s"];
    let arguments = [&["record", source, to.to_str().unwrap(), "--json"][..], &trigger].concat();
    let said = run(&arguments).good();
    let report: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(report["samples"].as_u64(), Some(100_000), "{report}");
}

#[test]
fn a_ring_drops_its_oldest_parts_and_saves_the_existing_range() {
    let (folder, made) = (folder(), made());
    let mut recorder = Recorder::start(SAWS, folder.path(), &["--ring", "4s"]);
    recorder.wait_until(|parts| parts.last().is_some_and(|last| number(last) >= 7));
    let (status, saved, said) = save(folder.path(), &["--last", "2500ms"]);
    assert_eq!(status, Some(0), "{said}");
    let mut file = file_of(&saved);
    // It reaches across at least two seams, and has no gap there.
    assert!((2.5..4.0).contains(&saved["seconds"].as_f64().unwrap()), "{saved}");
    assert!(file.notes().is_empty());
    check(&mut file, &made);
    let (report, said) = recorder.interrupt();
    // A busy machine delays the generator, and its missing samples are a gap.
    let is_whole = report["losses"]["generator_samples"] == 0;
    assert!(!is_whole || file.segments().len() == 1, "{:?}", file.segments());
    assert!(said.contains("ring: up to ") && said.contains(" an hour, "), "{said}");
    assert_eq!(report["losses"]["queue_frames"].as_u64(), Some(0), "{report}");
    // Four complete parts, and the one that was being written.
    let left = parts(folder.path());
    assert!((5..=7).contains(&left.len()), "{left:?}");
    let mut next = None;
    for part in &left {
        let mut file = SampleFile::open(part).unwrap();
        check(&mut file, &made);
        let first = file.segments()[0].first_sample_index;
        assert!(
            !is_whole || next.is_none_or(|next| next == first),
            "{part:?} begins at {first}, not at {next:?}"
        );
        next = Some(first + file.len_samples());
    }
}

#[test]
fn a_save_waits_for_future_samples_and_saves_may_overlap() {
    let (folder, made) = (folder(), made());
    let mut recorder = Recorder::start(SAWS, folder.path(), &["--ring", "4s"]);
    recorder.wait_until(|parts| parts.len() >= 2);
    let saves: Vec<_> = (0..3)
        .map(|number| {
            let to = folder.path().join(format!("kept{number}.sigmf-meta"));
            let arguments = [
                "save",
                folder.path().to_str().unwrap(),
                "--json",
                "--last",
                "1s",
                "--after",
                "1500ms",
                "--to",
            ];
            let arguments = [&arguments[..], &[to.to_str().unwrap()]].concat();
            grebe(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut files = Vec::new();
    for child in saves {
        let output = finish(child);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let saved: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut file = file_of(&saved);
        check(&mut file, &made);
        // With what a generator without a processor did not make.
        let (first, last) = (file.segments()[0], *file.segments().last().unwrap());
        let span = last.first_sample_index + last.length_samples - first.first_sample_index;
        assert!(span as f64 > 2.4 * file.rate_hz().unwrap(), "{saved}");
        files.push(file);
    }
    let (report, _) = recorder.interrupt();
    let is_whole = report["losses"]["generator_samples"] == 0;
    assert!(!is_whole || files.iter().all(|file| file.segments().len() == 1));
}

#[test]
fn a_ring_of_a_killed_recorder_can_be_saved_and_continued() {
    let (folder, made) = (folder(), made());
    let mut recorder = Recorder::start(SAWS, folder.path(), &["--ring", "4s"]);
    recorder.wait_until(|parts| parts.len() >= 3);
    recorder.kill();
    // Longer than the ring: saves the available part, and the exit status shows it.
    let (status, saved, said) = save(folder.path(), &["--last", "1h", "--after", "1s"]);
    assert_eq!(status, Some(4), "{said}");
    assert!(said.contains("does not reach that far back") && said.contains("did not arrive"), "{said}");
    let mut file = file_of(&saved);
    // The first part, and information about the others.
    assert!(file.len_samples() > 2_000_000, "{saved}");
    check(&mut file, &made);
    let before = parts(folder.path()).len();
    let mut recorder = Recorder::start(SAWS, folder.path(), &["--ring", "4s"]);
    recorder.wait_until(|parts| parts.len() > before);
    let (status, saved, said) = save(folder.path(), &["--last", "1h"]);
    assert_eq!(status, Some(4), "{said}");
    // The generator began again.
    let mut file = file_of(&saved);
    assert_eq!(file.stream_count(), 2, "{:?}", file.segments());
    check(&mut file, &made);
    recorder.interrupt();
}

#[test]
fn an_impossible_save_is_refused_with_the_reason() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let refused = |arguments: &[&str], status: i32, words: &str| {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    refused(&["save", &at("nothing"), "--last", "1s"], 1, "is not a folder");
    refused(&["save", &at("nothing")], 2, "--last");
    refused(&["record", "synth:", &at("x.sigmf-meta"), "--ring", "1m"], 1, "a ring is a folder");
    refused(&["record", "synth:", &at("x"), "--ring", "2s"], 2, "give 4s or more");
    refused(&["record", "synth:", &at("x"), "--ring", "4s", "--on-trigger", "edge"], 2, "needs --level");
    refused(&["record", "synth:", &at("x"), "--ring", "4s", "--level", "1"], 2, "--on-trigger");
    refused(&["record", "synth:", &at("x.sigmf-meta"), "--on-trigger", "gap"], 2, "--ring");
    // A year of it.
    refused(&["record", "synth:saw?rate=100M", &at("x"), "--ring", "9000h"], 5, "has room for");
    assert!(parts(&folder.path().join("x")).is_empty());
}

/// Eight seconds at 100 kS/s, in which nothing happens but three pulses and a gap: the file, and each sample by its index.
fn eventful(folder: &Path) -> (PathBuf, Vec<i16>) {
    let mut samples: Vec<i16> = (0..800_000).map(|index| (index % 1_000) as i16).collect();
    for pulse in PULSES {
        samples[pulse..pulse + 20].fill(20_000);
    }
    let path = folder.join("eventful.sigmf-meta");
    let settings = SigmfSettings { sample_rate_hz: 100e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    writer.write(0, &[&samples[..GAP.start]]).unwrap();
    writer.write(GAP.end as u64, &[&samples[GAP.end..]]).unwrap();
    writer.finish().unwrap();
    (path, samples)
}

/// The second is so close to the first that it is in the same stretch.
const PULSES: [usize; 3] = [200_000, 220_000, 500_000];
const GAP: std::ops::Range<usize> = 600_000..610_000;

/// Records the file to a ring while it is played; returns the report of the trigger, and the saves.
fn watched(source: &Path, ring: &Path, more: &[&str]) -> (Value, Vec<SampleFile>) {
    let mut player = grebe(&["play", source.to_str().unwrap(), "--speed", "4", "--to", "pipe:"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut arguments = vec!["record", "pipe:", ring.to_str().unwrap(), "--ring", "30s", "--json"];
    arguments.extend(["--before", "500ms", "--after", "500ms"]);
    arguments.extend(more);
    let recorder = grebe(&arguments)
        .stdin(player.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(recorder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    finish(player);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["losses"]["queue_frames"], 0, "what is not searched is recorded: {report}");
    (report["trigger"].clone(), saves(ring, more[1]))
}

/// The saves of a kind of event, in the order of their names.
fn saves(ring: &Path, kind: &str) -> Vec<SampleFile> {
    let names = std::fs::read_dir(ring).unwrap().map(|entry| entry.unwrap().path());
    let is_save = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(kind) && name.ends_with(".sigmf-meta")
    };
    let saves: BTreeSet<PathBuf> = names.filter(is_save).collect();
    saves.iter().map(|path| SampleFile::open(path).unwrap()).collect()
}

#[test]
fn a_range_around_each_event_is_saved_and_annotated() {
    let folder = folder();
    let (source, samples) = eventful(folder.path());
    let check = |file: &mut SampleFile| {
        for segment in file.segments().to_vec() {
            let block = file.block(segment.position, segment.length_samples as usize).unwrap();
            let from = segment.first_sample_index as usize;
            let expected = &samples[from..from + segment.length_samples as usize];
            assert!(*block.channel::<i16>(0).unwrap() == *expected, "from sample {from} on");
        }
    };
    let (told, mut kept) =
        watched(&source, &folder.path().join("level"), &["--on-trigger", "level", "--level", "10000"]);
    if told["skipped_frames"] == 0 {
        assert_eq!(
            (&told["events"], &told["saves"], &told["within"]),
            (&3.into(), &2.into(), &1.into()),
            "{told}"
        );
        for (file, pulse) in kept.iter_mut().zip([PULSES[0], PULSES[2]]) {
            // Half a second before the pulse, its 20 samples, and half a second after it.
            let first = file.segments()[0].first_sample_index as usize;
            assert_eq!((first, file.len_samples()), (pulse - 50_000, 100_020));
            let [label] = file.annotations() else { panic!("{:?}", file.annotations()) };
            assert_eq!((label.position, label.length_samples), (50_000, 20));
            assert_eq!(label.fields["core:label"], "level");
            check(file);
        }
    }
    let (told, mut kept) = watched(&source, &folder.path().join("gap"), &["--on-trigger", "gap"]);
    assert_eq!((&told["events"], &told["saves"]), (&1.into(), &1.into()), "{told}");
    let [file] = &mut kept[..] else { panic!("{} files", kept.len()) };
    let spans: Vec<(u64, u64)> =
        file.segments().iter().map(|it| (it.first_sample_index, it.length_samples)).collect();
    // A gap takes part of the time before it ends.
    assert_eq!(spans, [(GAP.end as u64 - 50_000, 40_000), (GAP.end as u64, 50_000)]);
    assert_eq!(file.annotations()[0].position, 40_000);
    check(file);
    let (told, kept) = watched(
        &source,
        &folder.path().join("few"),
        &["--on-trigger", "level", "--level", "10000", "--saves-per-minute", "1"],
    );
    if told["skipped_frames"] == 0 {
        assert_eq!((kept.len(), &told["left_out"]), (1, &1.into()), "{told}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_scope_finds_the_ring_of_its_stream() {
    use std::io::{Read, Write};

    let folder = folder();
    let stream = format!("shm://found-{}", std::process::id());
    let mut generator = grebe(&["sg", "--to", &stream, "--channels", "2", "--rate", "1M", "--wave", "saw"]);
    let _generator =
        crate::support::Killed(generator.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let mut recorder = Recorder::start(&stream, folder.path(), &["--ring", "16M"]);
    recorder.wait_until(|parts| !parts.is_empty());
    let Some(mut scope) = crate::support::screen::in_terminal(
        &["view", &stream, "--term", "--no-session", "--last", "500ms"],
        &[],
    ) else {
        println!("skipped: script, which makes terminals, is not there");
        return;
    };
    let mut screen = scope.stdout.take().unwrap();
    // It has the terminal by then.
    screen.read_exact(&mut [0; 64]).unwrap();
    let drained = std::thread::spawn(move || {
        let mut shown = Vec::new();
        let _ = screen.read_to_end(&mut shown);
        shown
    });
    let mut keys = scope.stdin.take().unwrap();
    keys.write_all(b"!").unwrap();
    let saved = || {
        let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let is_saved = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("save_") && name.ends_with(".sigmf-collection")
        };
        names.filter(is_saved).collect::<Vec<_>>()
    };
    let began = Instant::now();
    while saved().is_empty() && began.elapsed() < Duration::from_secs(50) {
        std::thread::sleep(Duration::from_millis(20));
    }
    keys.write_all(b"q").unwrap();
    let ended = scope.wait().unwrap();
    let shown = drained.join().unwrap();
    assert!(ended.success() && saved().len() == 1, "{ended} {:?}: {}", saved(), text(&shown));
    let file = SampleFile::open(&saved()[0]).unwrap();
    let seconds = file.len_samples() as f64 / 1e6;
    assert!((0.49..2.0).contains(&seconds) && file.channels() == 2, "{seconds} s");
}

#[test]
fn a_burst_in_a_band_is_kept_with_its_frequencies() {
    let folder = folder();
    let source = folder.path().join("radio.sigmf-meta");
    let settings =
        SigmfSettings { format: SampleFormat::Cf32, sample_rate_hz: 1e6, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&source, &settings).unwrap();
    let description = grebe::frame::Description { centre_frequency_hz: Some(433e6), ..Default::default() };
    writer.describe(Some(std::sync::Arc::new(description)));
    // Outside of the band, then within it.
    let bursts = [(1_000_000, 20_000, -200e3), (1_800_000, 10_000, 100e3)];
    writer.write(0, &[&crate::files::tones(3_000_000, &bursts, 3)]).unwrap();
    writer.finish().unwrap();
    let ring = folder.path().join("burst");
    let condition = ["--on-trigger", "burst", "--band", "433M,433.2M", "--above", "12dB"];
    let (told, kept) = watched(&source, &ring, &condition);
    if told["skipped_frames"] == 0 {
        assert_eq!((&told["events"], kept.len()), (&1.into(), 1), "{told}");
        let [label] = kept[0].annotations() else { panic!("{:?}", kept[0].annotations()) };
        assert!(label.position.abs_diff(500_000) <= 512 && label.length_samples.abs_diff(10_000) <= 1024);
        let edge = |name: &str| label.fields[name].as_f64().unwrap();
        let (low, high) = (edge("core:freq_lower_edge"), edge("core:freq_upper_edge"));
        assert!(low < 433.1e6 && 433.1e6 < high && high - low < 5e3, "{label:?}");
    }
}
