//! `convert`.

use super::*;

#[test]
fn files_are_named_by_uri_too() {
    let folder = tempfile::tempdir().unwrap();
    let uri = |name: &str| format!("file://{}", folder.path().join(name).display());
    with_a_gap(&folder.path().join("gap"));
    for words in [
        ["convert", &uri("gap.sigmf-collection"), &uri("a.wav"), "--gaps=zeros"],
        ["info", &uri("gap.sigmf-collection"), "--verify", "--json"],
        ["find", &uri("a.wav"), "--trigger=gap", "--json"],
    ] {
        let said = run(&words);
        assert!(said.status.success(), "{words:?}: {}", text(&said.stderr));
    }
    assert!(folder.path().join("a.wav").exists());
}

#[test]
fn convert_takes_parts_channels_formats_and_rates() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    with_a_gap(place("gap").as_ref());
    let gap = place("gap.sigmf-collection");
    let converted = |arguments: &[&str]| {
        let said = run(&[&["convert"][..], arguments].concat());
        (said.status.code(), text(&said.stderr))
    };
    let samples = |name: &str, channel: usize| {
        let mut file = SampleFile::open(place(name)).unwrap();
        let length = file.len_samples() as usize;
        file.block(0, length).unwrap().channel::<i16>(channel).unwrap().into_owned()
    };
    let (status, said) = converted(&[&gap, &place("a.wav")]);
    assert!(status == Some(1) && said.contains("--gaps zeros"), "{said}");
    let (status, said) = converted(&[&gap, &place("a.wav"), "--gaps", "zeros", "--channels", "2"]);
    assert!(
        status == Some(0)
            && said.contains("zeros stand for 90 samples in 1 gap")
            && said.contains("wrote 1 to"),
        "{said}"
    );
    assert!(said.contains("wrote 100 samples of 1 channel"), "the zeros are in the file: {said}");
    let expected: Vec<i16> = (1..=4).chain([0; 90]).chain(5..=10).map(|sample| -sample).collect();
    assert_eq!(samples("a.wav", 0), expected);
    let labels = SampleFile::open(place("a.wav")).unwrap().annotations().to_vec();
    assert_eq!((labels[0].position, labels[0].length_samples), (95, 3), "zeros stand for the gap");
    let (status, said) = converted(&[&gap, &place("b.npy"), "--start", "95ms", "--duration", "3ms"]);
    assert_eq!((status, samples("b.npy", 1)), (Some(0), vec![-6, -7, -8]), "{said}");
    let (status, said) = converted(&[
        &gap,
        &place("c.f32"),
        "--format",
        "f32",
        "--scale",
        "counts",
        "--gaps",
        "close",
        "--channels",
        "1",
    ]);
    assert!(status == Some(0) && said.contains("it lacks 90 samples in 1 gap"), "{said}");
    assert!(said.contains("wrote 10 samples"), "{said}");
    let floats: Vec<u8> = (1..=10).flat_map(|sample| (sample as f32).to_le_bytes()).collect();
    assert_eq!(fs::read(place("c.f32")).unwrap(), floats);
    let (status, said) =
        converted(&[&gap, &place("d"), "--format", "i8", "--scale", "counts", "--channels", "2,1"]);
    assert_eq!(status, Some(0), "{said}");
    let file = SampleFile::open(place("d.sigmf-collection")).unwrap();
    assert_eq!((file.gaps().count(), file.annotations().len(), file.format()), (1, 1, SampleFormat::I8));
    let ecg = example("ecg.sigmf-meta").display().to_string();
    let (status, said) = converted(&[&ecg, &place("slow.wav"), "--decimate", "4"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("slow.wav cannot store units: its numbers are counts of 0.005 mV"), "{said}");
    let slow = SampleFile::open(place("slow.wav")).unwrap();
    assert_eq!((slow.len_samples(), slow.rate_hz()), (27_000, Some(90.0)));
    let (status, said) = converted(&[&ecg, &place("slow.wav"), "--decimate", "1"]);
    assert!(status == Some(2) && said.contains("give 2 to 1000"), "{said}");
    let (status, said) = converted(&[&ecg, &place("x.wav"), "--channels", "2"]);
    assert!(status == Some(2) && said.contains("channel is 2, and the last one is 1: "), "{said}");
    let hidden =
        fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    let hidden: Vec<String> = hidden.filter(|name| name.starts_with('.')).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
}

#[cfg(unix)]
#[test]
fn a_converter_that_is_killed_or_interrupted_leaves_no_file_of_that_name_and_the_same_command_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    // 1 GiB as a sparse file. A conversion reserves the space of its result, and each kill leaves one.
    fs::File::create(place("long.i16")).unwrap().set_len(1 << 30).unwrap();
    let long = format!("{}?rate=1M", place("long.i16"));
    for (signal, out) in
        [("-KILL", "x.sigmf-meta"), ("-KILL", "x.wav"), ("-INT", "y.sigmf-meta"), ("-TERM", "y.npy")]
    {
        // Leftovers of other conversions.
        let before = large_files(folder.path());
        let child = grebe(&["convert", &long, &place(out)]).stderr(Stdio::piped()).spawn().unwrap();
        let began = std::time::Instant::now();
        // Until there is something of it on the disk.
        let is_begun = || large_files(folder.path()).iter().any(|file| !before.contains(file));
        while !is_begun() && began.elapsed() < std::time::Duration::from_secs(30) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        crate::support::signal(signal, child.id());
        let ended = finish(child);
        assert_ne!(ended.status.code(), Some(0), "{out}: {}", text(&ended.stderr));
        let names =
            fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with("long")).collect();
        if signal == "-TERM" {
            let said = text(&ended.stderr);
            let is_left = names.iter().any(|name| name == "y.npy.part");
            assert_eq!(said.contains("y.npy.part has the part written so far"), is_left, "{said}");
        }
        names.retain(|name| !name.starts_with('.') && !name.ends_with(".part"));
        assert!(names.is_empty(), "{out}: {names:?}");
    }
    // Another part of it is something else.
    let said = run(&["convert", &long, &place("x.wav"), "--duration", "1s", "--overwrite"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    assert_eq!(SampleFile::open(place("x.wav")).unwrap().len_samples(), 1_000_000);
    let said = run(&["convert", &long, &place("x.sigmf-meta"), "--duration", "1s"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    assert!(!folder.path().join(".x.partial").exists(), "what was left is gone");
}

#[cfg(unix)]
#[test]
fn a_killed_or_interrupted_conversion_resumes() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let samples: Vec<u8> = (0..24u32 << 20).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 20) as u8).collect();
    fs::write(place("a.i16"), &samples).unwrap();
    let from = format!("{}?rate=48k", place("a.i16"));
    let convert = |to: &str| ["convert".to_owned(), from.clone(), place(to), "--times".to_owned()];
    let words = convert("x.csv");
    let noted = || {
        let note = fs::read(place("x.csv.part/note.json")).unwrap_or_default();
        let note: Value = serde_json::from_slice(&note).unwrap_or_default();
        note["good"]["samples"].as_u64().unwrap_or(0)
    };
    let length = || fs::metadata(place("x.csv.part/x.csv")).map_or(0, |file| file.len());
    // Space is reserved in advance, so the length proves nothing; text has no zero bytes.
    let is_written = |at: u64| {
        let mut byte = [0];
        let file = fs::File::open(place("x.csv.part/x.csv"));
        let read =
            file.and_then(|mut file| file.seek(SeekFrom::Start(at)).and_then(|_| file.read(&mut byte)));
        read.is_ok() && byte != [0]
    };
    let mut before = 0;
    for signal in ["-INT", "-KILL", "-INT"] {
        let begun = length();
        let mut child = grebe(&words_of(&words)).stderr(Stdio::piped()).spawn().unwrap();
        let is_over = loop {
            // A killed conversion resumes from its note, an interrupted one from all that it wrote.
            let is_on = if signal == "-KILL" { noted() > before } else { is_written(begun + (8 << 20)) };
            let is_over = child.try_wait().unwrap().is_some();
            if is_on || is_over {
                break is_over;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        if !is_over {
            crate::support::signal(signal, child.id());
        }
        let ended = finish(child);
        if ended.status.code() == Some(0) {
            // It was faster.
            break;
        }
        if signal == "-INT" {
            let said = text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(130), "{:?} {said}", ended.status);
            assert!(
                said.contains("x.csv.part has the part written so far; the same command resumes"),
                "{said}"
            );
        }
        if folder.path().join("x.csv").exists() {
            // It was faster, and was killed before it had tidied up.
            let _ = fs::remove_dir_all(place("x.csv.part"));
            break;
        }
        let said = text(&ended.stderr);
        assert!(ended.status.code().is_none_or(|code| code == 130), "{signal}: {:?}: {said}", ended.status);
        assert!(noted() >= before, "{signal}: {} of {before} are left: {said}", noted());
        if noted() == before {
            // Not seen where this was written.
            println!("{signal}: nothing was noted behind {before}: {said}");
        }
        before = noted();
    }
    assert!(
        before > 0 || folder.path().join("x.csv").exists(),
        "neither what was written nor all of it is there"
    );
    if !folder.path().join("x.csv").exists() {
        let said = run(&["convert", &from, &place("x.csv")]);
        let words = text(&said.stderr);
        assert!(said.status.code() == Some(1) && words.contains("x.csv.part was started from"), "{words}");
        let said = run(&words_of(&convert("x.csv")));
        let (status, said) = (said.status.code(), text(&said.stderr));
        assert!(status == Some(0) && said.contains(" of them before"), "{said}");
    }
    assert!(!folder.path().join("x.csv.part").exists());
    assert_eq!(run(&words_of(&convert("whole.csv"))).status.code(), Some(0));
    assert!(fs::read(place("x.csv")).unwrap() == fs::read(place("whole.csv")).unwrap());
    let named = format!("{}?format=i16", place("x.csv"));
    let said = run(&["convert", &named, &place("b.wav"), "--start", "10s", "--duration", "1s"]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let mut wav = SampleFile::open(place("b.wav")).unwrap();
    assert_eq!((wav.len_samples(), wav.rate_hz()), (48_000, Some(48_000.0)));
    let block = wav.block(0, 48_000).unwrap();
    assert!(block.channel_bytes(0).unwrap() == &samples[960_000..][..96_000]);
}

/// Files of more than a megabyte in a folder and those inside.
#[cfg(unix)]
fn large_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(there) if there.is_dir() => folders.push(entry.path()),
                Ok(there) if there.len() > 1 << 20 => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}

#[cfg(unix)]
fn words_of(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
