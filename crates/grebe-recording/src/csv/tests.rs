//! Texts that are accepted, and texts that are refused with the line and the fault.

mod inputs;

use std::path::PathBuf;

use grebe_frame::SampleFormat;
use grebe_ring::Cancel;
use proptest::prelude::*;

use super::{CsvOptions, import_csv};
use crate::{Error, SampleFile};

/// Imports a text; `query` follows its name.
fn read(text: &str, query: &str) -> Result<(tempfile::TempDir, SampleFile), Error> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.csv"), text).unwrap();
    let from: PathBuf = format!("{}{query}", folder.path().join("x.csv").display()).into();
    let out = import_csv(&from, &folder.path().join("o"), &CsvOptions::default(), &Cancel::default())?;
    let file = SampleFile::open(&out.path)?;
    Ok((folder, file))
}

fn numbers(file: &mut SampleFile, channel: usize) -> Vec<f64> {
    let length = file.len_samples() as usize;
    file.block(0, length).unwrap().channel::<f64>(channel).unwrap().into_owned()
}

#[test]
fn tables_of_other_programs_are_read() {
    for (text, query) in [
        ("1,-2.5\n3e2,4\n", ""),
        ("a,b\n1,-2.5\n3e2,4\n", ""),
        ("\u{feff}a;b\r\n1;-2.5\r\n3e2;4", ""),
        ("\"a\"\t\"b\"\n 1 \t -2.5\n\n300.0\t4.0\n\n", ""),
    ] {
        let (_folder, mut file) = read(text, query).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!((file.channels(), file.format(), file.rate_hz()), (2, SampleFormat::F64, None));
        assert_eq!(numbers(&mut file, 0), [1.0, 300.0], "{text:?}");
        assert_eq!(numbers(&mut file, 1), [-2.5, 4.0], "{text:?}");
    }
    let (_folder, mut file) = read("x_re,x_im\n1,2\n3,4\n", "?rate=8k&frequency=1M").unwrap();
    assert_eq!((file.channels(), file.format(), file.rate_hz()), (1, SampleFormat::Cf32, Some(8e3)));
    let description = file.description(0).unwrap();
    assert_eq!((description.channels[0].name.as_str(), description.centre_frequency_hz), ("x", Some(1e6)));
    assert_eq!(file.block(0, 2).unwrap().channel_bytes(0).unwrap()[8..12], 3f32.to_le_bytes());
    let (_folder, mut file) = read("1,2\n3.0,-4\n", "?format=ci8").unwrap();
    assert_eq!(file.block(0, 2).unwrap().channel_bytes(0).unwrap(), [1, 2, 3, 252]);
}

#[test]
fn times_say_the_rate_and_where_samples_are_missing() {
    let (_folder, file) = read("Time,a\n5,1\n5.25,2\n5.5,3\n6.5,4\n6.75,5\n", "?format=i16").unwrap();
    assert_eq!(file.rate_hz(), Some(4.0));
    let gaps: Vec<_> = file.gaps().map(|gap| (gap.position, gap.length_samples)).collect();
    assert_eq!(gaps, [(3, 3)]);
}

#[test]
fn an_unreadable_table_names_its_line() {
    for (text, query, says) in [
        ("", "", "holds no samples"),
        ("a,b\n", "", "no table of numbers is found; line 1 is 'a,b'"),
        ("a,b\n1,2\n3\n4,5\n", "", "line 3: 1 fields, and the first line has 2"),
        ("a,b\n1,2\n3,\n", "?format=i16", "line 3: column 2 (b) is '', not a number of format i16"),
        ("1\n2\nnothing\n", "", "line 3: column 1 is 'nothing', not a number of format f64"),
        ("1\n300\n", "?format=i8", "line 2: column 1 is '300', not a number of format i8"),
        ("1\n2.5\n", "?format=i32", "line 2: column 1 is '2.5', not a number of format i32"),
        ("1,2,3\n", "?format=cf32", "line 1: complex samples stand in two columns each, and there are 3"),
        ("time,a\n0,1\nsoon,2\n", "", "line 3: column 1 (time) is 'soon', not a time"),
        ("time\n0\n1\n", "", "it has columns of 0 channels"),
        ("1\n", "?format=i12", "has format=i12: give one of"),
        ("1\n", "?colour=2", "has an unknown 'colour'; known: format, rate, frequency, time, channels"),
    ] {
        let error = read(text, query).map(drop).unwrap_err().to_string();
        assert!(error.contains(says), "{text:?}{query}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    std::fs::write(&path, "1\n").unwrap();
    let error = SampleFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("x.csv' '"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_makes_it_panic(text in "[0-9a,.;\\-\"\n\r\te ]{0,60}", query in "(\\?format=(i8|cf32))?") {
        let _ = read(&text, &query);
    }
}
