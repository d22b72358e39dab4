//! Recordings as other programs write them: what can be read is read, and the rest is a note.

use grebe_frame::utc_time;

use super::*;
use crate::{Cancel, SaveOptions};

/// Opens these metadata unchanged, beside the data.
fn opened(meta: &[u8], data: &[u8]) -> (TempDir, PathBuf, SampleFile) {
    let (folder, path) = scratch("rec.iq.sigmf-meta");
    fs::write(&path, meta).unwrap();
    fs::write(path.with_extension("sigmf-data"), data).unwrap();
    let file = SampleFile::open(&path).unwrap_or_else(|error| panic!("{error}"));
    (folder, path, file)
}

fn meta(datatype: &str, global: Value, captures: Value, annotations: Value) -> Vec<u8> {
    let mut fields = json!({"core:datatype": datatype, "core:version": "1.2.0", "core:sample_rate": 48_000});
    fields.as_object_mut().unwrap().extend(global.as_object().unwrap().clone());
    json!({"global": fields, "captures": captures, "annotations": annotations}).to_string().into_bytes()
}

fn pairs(samples: u8) -> Vec<u8> {
    (0..samples * 2).collect()
}

#[test]
fn times_that_are_not_as_sigmf_has_them_are_kept_as_utc_with_a_note() {
    for (text, expected, has_note) in [
        ("2026-09-24T12:00:00Z", "2026-09-24T12:00:00Z", false),
        ("2026-09-24T12:00:00.123456", "2026-09-24T12:00:00.123456Z", true),
        ("2026-09-24T12:34:56.123456789012Z", "2026-09-24T12:34:56.123456789Z", false),
        ("2026-09-24 12:00:00 UTC", "2026-09-24T12:00:00Z", true),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z", true),
        ("2026-09-24T12:00Z", "2026-09-24T12:00:00Z", true),
        ("2026-09-24T14:00:00+02:00", "2026-09-24T12:00:00Z", true),
    ] {
        let captures = json!([{"core:sample_start": 0, "core:datetime": text}]);
        let (folder, _path, mut file) = opened(&meta("ci8", json!({}), captures, json!([])), &pairs(9));
        assert_eq!(file.time_at(0), utc_time(expected), "{text}");
        let notes = file.notes().join("\n");
        assert_eq!(
            notes.contains(&format!("{text:?}")),
            has_note || text.contains("012Z"),
            "{text}: {notes}"
        );
        // A conversion keeps it.
        let out = folder.path().join("out.sigmf-meta");
        file.save_as(&out, &SaveOptions::default(), &Cancel::default()).unwrap();
        let again = SampleFile::open(&out).unwrap();
        let micros = |file: &SampleFile| {
            file.time_at(0).unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros()
        };
        assert_eq!((micros(&again), again.notes().len()), (micros(&file), 0), "{text}");
    }
    let captures = json!([{"core:sample_start": 0, "core:datetime": "yesterday"}]);
    let (_folder, _path, file) = opened(&meta("ci8", json!({}), captures, json!([])), &pairs(9));
    assert!(file.time_at(0).is_none() && file.notes()[0].contains("is not a time"), "{:?}", file.notes());
}

#[test]
fn unusual_types_are_converted_with_a_note() {
    for (datatype, format, bytes) in [
        ("ri64_le", SampleFormat::F64, 8),
        ("ru64_be", SampleFormat::F64, 8),
        ("ru16_le", SampleFormat::I32, 2),
        ("ru16_be", SampleFormat::I32, 2),
        ("ru32_le", SampleFormat::F64, 4),
        ("ru32_be", SampleFormat::F64, 4),
        ("ci32_le", SampleFormat::Cf32, 8),
        ("ci32_be", SampleFormat::Cf32, 8),
        ("cu16_le", SampleFormat::Cf32, 4),
        ("cu32_be", SampleFormat::Cf32, 8),
        ("cf64_le", SampleFormat::Cf32, 16),
        ("cf64_be", SampleFormat::Cf32, 16),
    ] {
        let (_folder, _path, file) = opened(&meta(datatype, json!({}), json!([]), json!([])), &[0; 64]);
        assert_eq!((file.format(), file.len_samples()), (format, 64 / bytes), "{datatype}");
        assert!(file.notes()[0].contains(&format!("are read as {format}")), "{:?}", file.notes());
    }
    let data: Vec<u8> = [70_000i32, -5].iter().flat_map(|it| it.to_be_bytes()).collect();
    let (_folder, _path, mut file) = opened(&meta("ci32_be", json!({}), json!([]), json!([])), &data);
    let expected = Complex::new(70_000.0f32, -5.0);
    assert_eq!(file.block(0, 1).unwrap().channel::<Complex<f32>>(0).unwrap()[0], expected);
    // Its level is that of 32 bits.
    assert_eq!(file.description(0).unwrap().full_scale(SampleFormat::Cf32), Some(2f64.powi(31)));
}

#[test]
fn bytes_between_samples_belong_to_the_captures_that_say_so() {
    let captures = json!([
        {"core:sample_start": 0, "core:header_bytes": 3},
        {"core:sample_start": 2, "core:header_bytes": 1},
        {"core:sample_start": 3, "core:header_bytes": 2},
    ]);
    let data = [9, 9, 9, 0, 1, 2, 3, 9, 4, 5, 9, 9, 6, 7, 8, 9, 9];
    let global = json!({"core:trailing_bytes": 1});
    let (folder, path, mut file) = opened(&meta("ri16_le", global, captures, json!([])), &data);
    let samples = [0x0100, 0x0302, 0x0504, 0x0706, 0x0908].to_vec();
    assert_eq!(channel(&mut file, 0), samples);
    assert_eq!(file.block(2, 2).unwrap().channel::<i16>(0).unwrap().as_ref(), [0x0504, 0x0706]);
    let out = folder.path().join("out.sigmf-meta");
    SampleFile::open(&path).unwrap().save_as(&out, &SaveOptions::default(), &Cancel::default()).unwrap();
    assert_eq!(channel(&mut SampleFile::open(&out).unwrap(), 0), samples);
}

#[test]
fn captures_and_annotations_outside_of_the_data_are_reported() {
    let labels = |file: &SampleFile| -> Vec<(u64, u64)> {
        file.annotations().iter().map(|it| (it.position, it.length_samples)).collect()
    };
    let open = |global: Value, captures: Value, annotations: Value, data: &[u8]| {
        let (_folder, _path, file) = opened(&meta("ci8", global, captures, annotations), data);
        (stretches(&file), labels(&file), file.is_whole(), file.notes().join("\n"))
    };
    let at = |start: u64, count: u64| json!({"core:sample_start": start, "core:sample_count": count});
    let offset = json!({"core:offset": 1_000});
    // Counted from the first sample of the file.
    let (segments, found, whole, notes) =
        open(offset.clone(), json!([at(0, 0)]), json!([at(0, 5)]), &pairs(9));
    assert_eq!((segments, found, whole), (vec![(0, 9, 1_000)], vec![(0, 5)], true));
    assert!(notes.contains("below core:offset, 1000"), "{notes}");
    // One reaches in, one does not, one reaches out.
    let annotations = json!([at(900, 103), at(900, 100), at(1_007, 50), at(1_009, 1)]);
    let (_, found, _, notes) = open(offset, json!([at(1_000, 0)]), annotations, &pairs(9));
    assert_eq!(found, [(0, 3), (7, 2)]);
    assert!(notes.contains("cut to the data: 2") && notes.contains("are ignored: 2"), "{notes}");
    // After the end, and out of order.
    let captures = json!([at(4, 0), at(0, 0), at(50, 0)]);
    let (segments, _, whole, notes) = open(json!({}), captures, json!([]), &pairs(9));
    assert_eq!((segments, whole), (vec![(0, 4, 0), (4, 5, 4)], false));
    assert!(
        notes.contains("not in the order")
            && notes.contains("captures after the end of the data are ignored: 1"),
        "{notes}"
    );
    // An annotation before the first capture.
    let (_, found, _, notes) = open(json!({}), json!([at(4, 0)]), json!([at(1, 2)]), &pairs(9));
    assert_eq!((found, notes), (vec![(1, 2)], String::new()));
    // Half a sample at the end.
    let (segments, _, whole, notes) = open(json!({}), json!([]), json!([]), &[0; 7]);
    assert_eq!((segments, whole), (vec![(0, 3, 0)], false));
    assert!(notes.contains("their last 1 bytes are ignored"), "{notes}");
    // No rate.
    let (_, _, _, notes) = open(json!({"core:sample_rate": -3}), json!([]), json!([]), &[0; 8]);
    assert!(notes.contains("core:sample_rate is -3, which is invalid"), "{notes}");
}

#[test]
fn fields_of_captures_that_others_define_are_kept() {
    let place = json!({"type": "Point", "coordinates": [8.0, 50.0]});
    let captures = json!([
        {"core:sample_start": 0, "core:frequency": 1e8, "core:geolocation": place, "x:y": 5},
        {"core:sample_start": 4, "core:frequency": 1e8, "core:geolocation": place, "x:y": 6},
    ]);
    let (folder, _path, mut file) = opened(&meta("ci8", json!({}), captures, json!([])), &pairs(9));
    let out = folder.path().join("out.sigmf-meta");
    file.save_as(&out, &SaveOptions::default(), &Cancel::default()).unwrap();
    let written = read_json(&out);
    for (number, y) in [(0, 5), (1, 6)] {
        let capture = &written["captures"][number];
        assert_eq!((&capture["core:geolocation"], &capture["x:y"]), (&place, &json!(y)), "{capture}");
    }
    assert!(written["global"].get("grebe:capture").is_none(), "{written}");
    let extensions = written["global"]["core:extensions"].as_array().unwrap();
    assert!(extensions.iter().any(|extension| extension["name"] == "x"), "{extensions:?}");
    validate(&out);
}

#[test]
fn json_that_is_not_quite_is_read() {
    let plain = r#"{"global":{"core:datatype":"ci8","core:sample_rate":4.8e4,"core:version":"1.0.0"},"captures":[],"annotations":[]}"#;
    let bom = [b"\xef\xbb\xbf", plain.as_bytes()].concat();
    let zeros = [plain.as_bytes(), b"\0\0\0"].concat();
    for text in [bom, zeros] {
        let (_folder, _path, file) = opened(&text, &pairs(9));
        assert_eq!((file.len_samples(), file.rate_hz()), (9, Some(48e3)));
        assert_eq!(
            file.notes(),
            ["a byte order mark, or zeros, stand around the metadata: they are skipped"]
        );
    }
    let odd = r#"{"global":{"core:datatype":"ci8","core:sample_rate":"48000","core:num_channels":1.0,"core:hw":"NaN \" NaN"},
        "captures":[{"core:sample_start":0.0,"core:frequency":NaN,"core:global_index":"7"},{"core:frequency":1}],
        "annotations":[{"core:sample_start":2.0,"core:sample_count":1.5,"core:label":"x"}, 7]}"#;
    let (_folder, _path, file) = opened(odd.as_bytes(), &pairs(9));
    assert_eq!((file.len_samples(), file.rate_hz(), stretches(&file)), (9, Some(48e3), vec![(0, 9, 7)]));
    assert_eq!(file.description(0).and_then(|it| it.centre_frequency_hz), None);
    assert_eq!(file.description(0).unwrap().hardware.as_deref(), Some("NaN \" NaN"));
    assert_eq!((file.annotations()[0].position, file.annotations()[0].length_samples), (2, 7));
    let notes = file.notes().join("\n");
    for says in [
        "NaN and Infinity",
        "global.core:sample_rate is \"48000\", which is taken as 48000",
        "1 of captures",
        "core:sample_count is 1.5",
    ] {
        assert!(notes.contains(says), "{says}: {notes}");
    }
    let (_folder, path) = scratch("x.sigmf-meta");
    fs::write(&path, "{\"global\": {}}").unwrap();
    assert!(
        SampleFile::open(&path).unwrap_err().to_string().contains("is not valid metadata: missing field")
    );
}
