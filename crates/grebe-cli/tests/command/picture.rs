//! Pictures match the signal: exact extremes, without a display or GPU.

use std::fs;

use crate::support::{Good, example, run, text};
use grebe::frame::{BatchPool, Header, SampleFormat};
use grebe::recording::{SampleFile, SigmfSettings, SigmfWriter};
use grebe::view::{ScopeCore, Viewport};

/// The electrocardiogram as one scope sees it, and as it is.
fn ecg() -> (ScopeCore, Vec<i16>) {
    let mut file = SampleFile::open(example("ecg.sigmf-meta")).unwrap();
    let samples = file.block(0, 108_000).unwrap().channel::<i16>(0).unwrap().to_vec();
    let mut core = ScopeCore::new(16 << 20);
    let mut pool = BatchPool::new(2, 65_536);
    for (sequence, block) in samples.chunks(668).enumerate() {
        let header = Header {
            sequence: sequence as u64,
            producer_ts_ns: 1_000_000 * sequence as u64,
            channel_count: 1,
            format: SampleFormat::I16,
            block_length_samples: block.len() as u32,
            sample_rate_hz: 360.0,
            sg_drops_total: 0,
            first_sample_index: sequence as u64 * 668,
        };
        let mut batch = pool.acquire().unwrap();
        batch.push::<i16>(&header, |_, out| out.copy_from_slice(block)).unwrap();
        core.ingest(&batch.freeze(), 1_000_000 * sequence as u64).unwrap();
    }
    (core, samples)
}

#[test]
fn every_column_holds_the_extremes_of_its_samples() {
    let (mut core, samples) = ecg();
    for (columns, span_s) in [(1000, 10.0), (1200, 300.0), (640, 61.7), (333, 299.0)] {
        let mut viewport = Viewport::latest(columns);
        viewport.span = Some(span_s);
        let picture = core.answer(&viewport, 1);
        let (grid, shown) = (&picture.grid, &picture.lanes[0].columns);
        let mut compared = 0;
        for (number, column) in (picture.first_column..).zip(shown) {
            let Ok(number) = u64::try_from(number) else { continue };
            let std::ops::Range { start: first, end } = grid.span(number);
            let covered = &samples[(first as usize).min(samples.len())..(end as usize).min(samples.len())];
            // A column narrower than a sample, and those at the edge of the stream, have nothing to compare.
            if covered.is_empty() || end as usize > samples.len() {
                continue;
            }
            let (low, high) = (covered.iter().min().unwrap(), covered.iter().max().unwrap());
            assert_eq!(
                (column.min, column.max),
                (f32::from(*low), f32::from(*high)),
                "{columns} columns of {span_s} s, column {number}"
            );
            compared += 1;
        }
        assert!(compared > columns / 2, "{compared} of {columns} columns were compared");
    }
}

#[test]
fn a_picture_is_drawn_without_a_display() {
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("ecg.png");
    let ecg = example("ecg.sigmf-meta");
    let arguments = [
        "view",
        ecg.to_str().unwrap(),
        "--png",
        png.to_str().unwrap(),
        "--after",
        "10s",
        "--size",
        "800x300",
    ];
    run(&arguments).good();
    let bytes = fs::read(&png).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let size = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((size(16), size(20)), (800, 300));
    // The same signal gives the same picture, another time span another one.
    assert!(run(&arguments).status.success());
    assert_eq!(fs::read(&png).unwrap(), bytes);
    let shorter =
        ["view", ecg.to_str().unwrap(), "--png", png.to_str().unwrap(), "--after", "5s", "--size", "800x300"];
    assert!(run(&shorter).status.success());
    assert_ne!(fs::read(&png).unwrap(), bytes);
}

#[test]
fn a_picture_at_a_position_ends_there_without_a_trigger() {
    let folder = tempfile::tempdir().unwrap();
    let (png, ecg) = (folder.path().join("ecg.png"), example("ecg.sigmf-meta"));
    let of =
        [ecg.to_str().unwrap(), "--png", png.to_str().unwrap(), "--after", "5s", "--span", "200ms", "--json"];
    let right = |options: &[&str]| {
        let output = run(&[&["view"], &of[..], options].concat()).good();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        json["left_index"].as_f64().unwrap() + json["span_s"].as_f64().unwrap() * 360.0
    };
    assert!((right(&[]) - 1_800.0).abs() < 2.0, "{}", right(&[]));
    let triggered = right(&["--trigger", "auto"]);
    assert!((triggered - 1_800.0).abs() > 10.0, "{triggered}");
}

#[test]
fn measurements_are_printed_for_scripts_in_the_units_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("ecg.png");
    let ecg = example("ecg.sigmf-meta");
    let arguments = [
        "view",
        ecg.to_str().unwrap(),
        "--png",
        png.to_str().unwrap(),
        "--after",
        "10s",
        "--names",
        "ECG",
        "--units",
        "V",
        "--scale",
        "5u",
        "--spectrum",
        "--json",
    ];
    let output = run(&arguments).good();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let samples = SampleFile::open(&ecg).unwrap().block(0, 3600).unwrap().channel::<i16>(0).unwrap().to_vec();
    let (low, high) = (*samples.iter().min().unwrap(), *samples.iter().max().unwrap());
    let channel = &json["channels"][0];
    let close = |name: &str, expected: f64| {
        let value = channel[name].as_f64().unwrap();
        assert!((value - expected).abs() < 1e-9, "{name}: {value} is not {expected}");
    };
    close("max", f64::from(high) * 5e-6);
    close("min", f64::from(low) * 5e-6);
    close("Vpp", (f64::from(high) - f64::from(low)) * 5e-6);
    assert_eq!((&channel["name"], &channel["unit"]), (&"ECG".into(), &"V".into()));
    assert_eq!((&json["sample_rate_hz"], &json["lost_frames"]), (&360.0.into(), &0.into()));
    assert!(channel["peaks"][0]["hz"].as_f64().unwrap() < 20.0, "a heart does not beat faster: {channel}");
}

/// The baseline wanders by more than an R peak is high, and the scope counts the heart as SciPy does.
#[test]
fn a_heart_is_counted_by_the_trigger() {
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("ecg.png");
    let ecg = example("ecg.sigmf-meta");
    let mut arguments = vec!["view", ecg.to_str().unwrap(), "--png", png.to_str().unwrap(), "--json"];
    arguments.extend("--units V --scale 5u --span 2s --trigger normal --trigger-level 600u".split(' '));
    arguments.extend("--trigger-coupling lf-reject --holdoff 200ms".split(' '));
    let output = run(&arguments).good();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = include_str!("../../../grebe-scope/tests/reference/expected.tsv");
    let scipy = |name: &str| -> f64 {
        let mut pairs = expected.lines().filter_map(|line| line.split_once('\t'));
        pairs.find(|(found, _)| *found == name).unwrap().1.parse().unwrap()
    };
    let trigger = &json["trigger"];
    let is_near = |name: &str, expected: f64, by: f64| {
        let value = trigger[name].as_f64().unwrap();
        assert!((value - expected).abs() <= by, "{name}: {value} is not {expected}");
    };
    is_near("rate_per_minute", scipy("beats_per_minute_last_64"), 1.0);
    is_near("found", scipy("beats"), 5.0);
    is_near("intervals", 63.0, 0.0);
    is_near("intervals_across_gaps", 0.0, 0.0);
}

#[test]
fn an_impossible_picture_is_an_error_of_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.toml");
    fs::write(&broken, "span_s = 'long'").unwrap();
    let (broken, ecg) = (broken.to_str().unwrap(), example("ecg.sigmf-meta"));
    let ecg = ecg.to_str().unwrap();
    for (arguments, status, said) in [
        (vec!["view", ecg, "--term", "--no-session"], 1, "terminal"),
        (vec!["view", ecg, "--no-session"], 1, "no window"),
        (vec!["view", ecg, "--term", "--session", broken], 1, "broken.toml"),
        (vec!["view", ecg, "--png", "x.png", "--scale", "0"], 2, "--scale 0"),
        (vec!["view", ecg, "--png", "/no/such/folder/x.png"], 1, "/no/such/folder/x.png"),
    ] {
        let child = crate::support::grebe(&arguments)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("WAYLAND_SOCKET")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = crate::support::finish(child);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(error.contains(said) && !error.contains("panicked"), "{arguments:?}: {error}");
    }
}

#[test]
fn a_file_that_is_cut_while_it_is_read_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["ecg.sigmf-meta", "ecg.sigmf-data"] {
        fs::copy(example(name), folder.path().join(name)).unwrap();
    }
    // Its last third is gone: without a sum to check, only reading tells.
    let meta = folder.path().join("ecg.sigmf-meta");
    let bytes = fs::read(folder.path().join("ecg.sigmf-data")).unwrap();
    fs::write(folder.path().join("ecg.sigmf-data"), &bytes[..bytes.len() / 2 - 1]).unwrap();
    let png = folder.path().join("ecg.png");
    let output = run(&["view", meta.to_str().unwrap(), "--png", png.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("ecg.sigmf-data"), "{}", text(&output.stderr));
    assert!(!png.exists());
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["ecg.sigmf-meta", "ecg.sigmf-data"] {
        fs::copy(example(name), folder.path().join(name)).unwrap();
    }
    let mut file = SampleFile::open(folder.path().join("ecg.sigmf-meta")).unwrap();
    let data = folder.path().join("ecg.sigmf-data");
    fs::OpenOptions::new().write(true).open(&data).unwrap().set_len(2000).unwrap();
    let error = file.block(0, 2000).unwrap_err().to_string();
    assert!(error.contains("ecg.sigmf-data"), "{error}");
}

#[test]
#[cfg(unix)]
fn a_picture_follows_symbolic_links() {
    let ecg = example("ecg.sigmf-meta");
    let draw = |to: &str| {
        run(&["view", ecg.to_str().unwrap(), "--png", to, "--after", "1s", "--size", "160x120"]).good()
    };
    assert!(draw("-").stdout.starts_with(b"\x89PNG"));
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(place("target.png"), place("link.png")).unwrap();
    draw(place("link.png").to_str().unwrap());
    assert!(fs::symlink_metadata(place("link.png")).unwrap().is_symlink());
    assert!(fs::read(place("target.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(std::process::Command::new("mkfifo").arg(place("fifo")).status().unwrap().success());
    let reader = std::thread::spawn({
        let fifo = place("fifo");
        move || fs::read(fifo).unwrap()
    });
    draw(place("fifo").to_str().unwrap());
    assert!(reader.join().unwrap().starts_with(b"\x89PNG"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside them");
}

#[test]
fn a_gap_of_a_recording_is_within_the_picture_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gap.sigmf-meta");
    let settings = SigmfSettings { channels: 1, sample_rate_hz: 1e6, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(&path, &settings).unwrap();
    let ramp: Vec<i16> = (0..10_000).map(|at| (at % 1000) as i16).collect();
    writer.write(0, &[&ramp]).unwrap();
    writer.write(40_000, &[&ramp]).unwrap();
    writer.finish().unwrap();
    let png = folder.path().join("gap.png");
    let arguments = ["view", path.to_str().unwrap(), "--png", png.to_str().unwrap(), "--json"];
    let told: serde_json::Value = serde_json::from_str(&text(&run(&arguments).stdout)).unwrap();
    assert_eq!(
        (&told["missing_samples"], &told["channels"][0]["level_samples"]),
        (&30_000.into(), &20_000.into())
    );
    assert!((told["span_s"].as_f64().unwrap() - 0.05).abs() < 1e-4, "{told}");
}

#[test]
fn channels_that_no_stream_has_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (ecg, png) = (example("ecg.sigmf-meta"), folder.path().join("x.png"));
    let (ecg, png) = (ecg.to_str().unwrap(), png.to_str().unwrap());
    for (option, said) in [
        (["--channels", "2-9"], "--channels 9: there is 1 channel\n"),
        (["--trigger-channel", "2"], "--trigger-channel 2: there is 1 channel\n"),
    ] {
        let output = run(&[&["view", ecg, "--png", png, "--json"], &option[..]].concat());
        assert!(
            output.status.code() == Some(2) && text(&output.stderr).contains(said),
            "{}",
            text(&output.stderr)
        );
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(told["exit_status"] == 2 && !fs::exists(png).unwrap(), "only the error is written: {told}");
        let two = run(&["view", ecg, "--png", png, option[0], "1"]);
        assert!(!text(&two.stderr).contains("there is"), "{}", text(&two.stderr));
        fs::remove_file(png).unwrap();
    }
}

#[test]
fn a_box_is_measured_and_its_command_cuts_it() {
    let folder = tempfile::tempdir().unwrap();
    // A tone of -20 dBFS at 100.1 MHz.
    let tone = (0..200_000u32).flat_map(|index| {
        let (sin, cos) = (std::f32::consts::TAU * (index % 10) as f32 / 10.0).sin_cos();
        [0.1 * cos, 0.1 * sin]
    });
    let path = folder.path().join("tone.cf32");
    fs::write(&path, tone.flat_map(f32::to_le_bytes).collect::<Vec<u8>>()).unwrap();
    let file = format!("{}?rate=1M&frequency=100M", path.display());
    let png = folder.path().join("box.png");
    let place = "0.05,0.15,100.09M,100.11M";
    let output =
        run(&["view", &file, "--png", png.to_str().unwrap(), "--waterfall", "--box", place, "--json"]).good();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let shown = &json["box"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!((number(&shown["signal"]["channel_power_dbfs"]) + 20.0).abs() < 0.05, "{shown}");
    assert!((number(&shown["peak"]["dbfs"]) + 20.0).abs() < 0.05, "{shown}");
    assert!((number(&shown["peak"]["hz"]) - 100.1e6).abs() < 10.0, "{shown}");
    let command = shown["command"].as_str().unwrap();
    assert_eq!(command, format!("grebe convert '{file}' box.sigmf-meta --box {place}"));

    let out = folder.path().join("box.sigmf-meta");
    run(&["convert", &file, out.to_str().unwrap(), "--box", place]).good();
    let cut = SampleFile::open(&out).unwrap();
    let rate_hz = cut.rate_hz().unwrap();
    assert!((20e3..=30e3).contains(&rate_hz), "{rate_hz}");
    assert!((cut.len_samples() as f64 - 0.1 * rate_hz).abs() <= 1.0);
    assert_eq!(cut.description(0).unwrap().centre_frequency_hz, Some(100.1e6));
    // A box beside the recording would be a picture without it.
    for (place, says) in [
        (
            "0.3,0.4,100M,100.1M",
            "--box: start is 300ms, but the recording has 200ms of signal: it must lie before the end",
        ),
        ("0,0.1,90M,91M", "--box 90 MHz to 91 MHz: the signal covers 99.5 MHz to 100.5 MHz"),
    ] {
        let output = run(&["view", &file, "--png", png.to_str().unwrap(), "--box", place]);
        assert!(
            output.status.code() == Some(2) && text(&output.stderr).contains(says),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn one_real_channel_has_no_constellation() {
    let folder = tempfile::tempdir().unwrap();
    let png = folder.path().join("xy.png");
    for (channels, status, says) in
        [("1", 2, "--xy needs complex samples, or two channels"), ("2", 0, "wrote")]
    {
        let uri = format!("synth:?channels={channels}&rate=1M&samples=100k&free_run=true");
        let output = run(&["view", &uri, "--png", png.to_str().unwrap(), "--xy"]);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(says), "{channels}: {said}");
    }
}
