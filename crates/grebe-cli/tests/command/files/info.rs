//! `info`.

use super::*;

#[test]
fn info_describes_every_kind_of_file() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    with_a_gap(place("gap").as_ref());
    fs::write(place("x.cu8"), [7; 20]).unwrap();
    let ecg = example("ecg.sigmf-meta").display().to_string();
    let (wav, raw) = (example("ecg.wav").display().to_string(), format!("{}?rate=2.4M", place("x.cu8")));
    let files = [&ecg, &wav, &raw, &place("gap.sigmf-collection")];
    let said = run(&[&["info"][..], &files.map(String::as_str)].concat());
    let words = text(&said.stdout);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    for part in [
        "ecg.sigmf-meta",
        "SigMF, i16 in 1 channel\n",
        "108,000 (5 min) at 360 S/s",
        "MLII, sample x 0.005",
        "WAV, i16",
        "raw, cu8 in 1 channel\n",
        "10 (4.17 us) at 2.4 MS/s",
        "SigMF, i16 in 2 channels\n",
        "1: 90 samples (90 ms) are missing; the largest is 90 samples (90 ms), before sample 4\n",
    ] {
        assert!(words.replace('µ', "u").contains(part), "{part} is not in {words}");
    }
    let said = run(&[&["info", "--json"][..], &files.map(String::as_str)].concat());
    let [ecg, wav, raw, gap] = &lines(&said.stdout)[..] else { panic!("{}", text(&said.stdout)) };
    assert_eq!((&ecg["samples"], &ecg["channels"][0]["name"]), (&108_000.into(), &"MLII".into()));
    assert_eq!((&wav["kind"], &wav["duration_s"]), (&"WAV".into(), &300.0.into()));
    assert_eq!((&raw["format"], &raw["data_bytes"]), (&"cu8".into(), &20.into()));
    assert_eq!((&gap["gaps"]["count"], &gap["gaps"]["samples"]), (&1.into(), &90.into()));
    let largest = &gap["gaps"]["largest"];
    assert_eq!((&largest["position"], &largest["first_sample_index"]), (&4.into(), &4.into()));
    assert_eq!((&gap["annotations"], &gap["whole"], &gap["streams"]), (&1.into(), &true.into(), &1.into()));
}

#[test]
fn info_reports_an_incomplete_file_by_its_status_and_continues() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let wav = fs::read(example("ecg.wav")).unwrap();
    fs::write(place("cut.wav"), &wav[..1000]).unwrap();
    fs::write(place("odd.i16"), [1; 5]).unwrap();
    fs::write(place("bad.wav"), b"RIFF").unwrap();
    // Some recorders begin another chunk of samples; and `numpy.save` appends to an open file.
    let second = [b"data", &4u32.to_le_bytes()[..], &[1, 0, 2, 0]].concat();
    fs::write(place("second.wav"), [&wav[..], &second].concat()).unwrap();
    let array = numpy(&[1, 2, 3]);
    fs::write(place("second.npy"), [&array[..], &array].concat()).unwrap();
    // As a recorder that was killed leaves it.
    let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
    let mut writer = SigmfWriter::create(place("killed").as_ref(), &settings).unwrap();
    writer.write(0, &[&[1i16, 2, 3]]).unwrap();
    drop(writer);
    for (file, says) in [
        (place("cut.wav"), "the file is truncated"),
        (format!("{}?rate=1k", place("odd.i16")), "ends within a sample: its last 1 bytes"),
        (place("killed.sigmf-meta"), "its recorder was cut off"),
        (place("second.wav"), "in several data chunks"),
        (format!("{}?rate=1k", place("second.npy")), "bytes follow the array"),
    ] {
        let said = run(&["info", &file]);
        assert_eq!(said.status.code(), Some(4), "{file}");
        let words = text(&said.stdout);
        assert!(words.contains("NOT WHOLE") && words.contains(says), "{words}");
    }
    let said = run(&["info", "--json", &place("bad.wav"), &place("cut.wav"), &place("none.wav")]);
    assert_eq!(said.status.code(), Some(1));
    let lines = lines(&said.stdout);
    assert_eq!(lines.len(), 3, "{}", text(&said.stdout));
    assert!(lines[0]["error"].as_str().unwrap().contains("bad.wav is truncated"), "{}", lines[0]);
    assert_eq!((&lines[1]["whole"], &lines[2]["whole"]), (&false.into(), &false.into()));
    assert!(text(&said.stderr).contains("2 files cannot be read"), "{}", text(&said.stderr));
}

/// An array as NumPy saves it.
fn numpy(samples: &[i16]) -> Vec<u8> {
    let words = format!("{{'descr': '<i2', 'fortran_order': False, 'shape': ({},), }}", samples.len());
    let words = format!("{words:117}\n");
    let samples: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    [&b"\x93NUMPY\x01\x00"[..], &118u16.to_le_bytes(), words.as_bytes(), &samples].concat()
}

#[test]
fn info_lists_each_recording_of_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.sigmf");
    let mut tar = tar::Builder::new(fs::File::create(&path).unwrap());
    for name in ["one", "other"] {
        for (end, kind) in [("meta", "sigmf-meta"), ("data", "sigmf-data")] {
            let from = example(&format!("ecg.sigmf-{end}"));
            tar.append_path_with_name(from, format!("{name}/{name}.{kind}")).unwrap();
        }
    }
    tar.finish().unwrap();
    let said = run(&["info", "--json", path.to_str().unwrap()]);
    assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
    let files: Vec<String> =
        lines(&said.stdout).iter().map(|line| line["file"].as_str().unwrap().to_owned()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(Path::new(&files[0]).ends_with("two.sigmf/one/one.sigmf-meta"), "{files:?}");
    assert!(Path::new(&files[1]).ends_with("two.sigmf/other/other.sigmf-meta"), "{files:?}");
}
