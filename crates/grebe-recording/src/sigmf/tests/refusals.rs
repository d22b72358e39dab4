//! An error about a recording names the file and the field.

use super::*;

/// Writes a metadata file with these fields, and data beside it; returns the error of opening them.
fn refusal(global: &Value, captures: &Value, data: &[u8]) -> String {
    let (_folder, path) = scratch("x.sigmf-meta");
    let mut fields = json!({"core:datatype": "ri16_le", "core:version": "1.2.0", "core:sample_rate": 1});
    fields.as_object_mut().unwrap().extend(global.as_object().unwrap().clone());
    fs::write(&path, json!({"global": fields, "captures": captures}).to_string()).unwrap();
    fs::write(path.with_extension("sigmf-data"), data).unwrap();
    let error = SampleFile::open(&path).unwrap_err().to_string();
    error.replace(&format!("{}/", path.parent().unwrap().display()), "")
}

#[test]
fn a_bad_recording_is_refused_with_the_reason() {
    let start = |start: u64| json!({"core:sample_start": start});
    let (none, first) = (json!({}), json!([start(0)]));
    let datatypes = "it must be one of ri8 ru8 ri16 ru16 ri32 ru32 ri64 ru64 rf32 rf64 ci8 cu8 ci16 cu16 ci32 cu32 cf32 cf64, and from 16 bits on end in _le or _be, as in ri16_le";
    for (global, captures, bytes, message) in [
        (&none, &first, 0, "x.sigmf-data holds no samples"),
        (
            &json!({"core:datatype": "ri24_le"}),
            &first,
            8,
            &format!("x.sigmf-meta: core:datatype is ri24_le: {datatypes}"),
        ),
        (
            &json!({"core:datatype": "ri16"}),
            &first,
            8,
            &format!("x.sigmf-meta: core:datatype is ri16: {datatypes}"),
        ),
        (&json!({"core:datatype": ""}), &first, 8, &format!("x.sigmf-meta: core:datatype is : {datatypes}")),
        (
            &json!({"core:num_channels": 256}),
            &first,
            8,
            "x.sigmf-meta: core:num_channels is 256: 1 to 255 channels can be read",
        ),
        (
            &json!({"core:num_channels": 0}),
            &first,
            8,
            "x.sigmf-meta: core:num_channels is 0: 1 to 255 channels can be read",
        ),
        (
            &json!({"core:metadata_only": true}),
            &first,
            8,
            "x.sigmf-meta: core:metadata_only is true: the recording has no data to read",
        ),
        (
            &json!({"core:dataset": "../secret"}),
            &first,
            8,
            "x.sigmf-meta: core:dataset is ../secret: it must name a file in the same folder",
        ),
        (
            &json!({"core:dataset": "gone.bin"}),
            &first,
            8,
            "cannot open gone.bin: No such file or directory (os error 2)",
        ),
        (
            &json!({"core:trailing_bytes": 9}),
            &first,
            8,
            "x.sigmf-data is truncated: its 8 bytes are fewer than the 9 that should surround its samples",
        ),
        (
            &json!({"core:sha512": "00"}),
            &first,
            8,
            "x.sigmf-data does not match core:sha512 in its metadata: it was truncated or changed; remove core:sha512 to read it as it is",
        ),
        (
            &none,
            &json!([{"core:sample_start": 0, "core:global_index": u64::MAX}]),
            8,
            "x.sigmf-meta: captures[0].core:global_index is 18446744073709551615: it must be below 2^63",
        ),
    ] {
        assert_eq!(refusal(global, captures, &vec![0; bytes]), message);
    }
    let (_folder, path) = scratch("x.sigmf-meta");
    let error = |path: &Path| SampleFile::open(path).unwrap_err().to_string();
    assert!(error(&path).ends_with("x.sigmf-meta: No such file or directory (os error 2)"));
    fs::write(&path, "{").unwrap();
    assert!(
        error(&path)
            .ends_with("x.sigmf-meta is not valid metadata: EOF while parsing an object at line 1 column 1")
    );
    fs::write(&path, r#"{"global": {"core:datatype": "ri16_le", "core:version": "1.2.0"}}"#).unwrap();
    assert!(error(&path).ends_with("x.sigmf-data: No such file or directory (os error 2)"));
}

#[test]
fn a_bad_collection_is_refused_with_the_reason() {
    let (folder, path) = scratch("x.sigmf-collection");
    record(&folder.path().join("a"), &settings(1), &[(0, 10)]).finish().unwrap();
    record(&folder.path().join("b"), &settings(1), &[(0, 11)]).finish().unwrap();
    record(&folder.path().join("c"), &settings(1), &[(0, 4), (5, 6)]).finish().unwrap();
    let fast = SigmfSettings { sample_rate_hz: 2e6, ..settings(1) };
    record(&folder.path().join("d"), &fast, &[(0, 10)]).finish().unwrap();
    let samples = SigmfSettings { format: SampleFormat::Cu8, ..settings(1) };
    let mut writer = SigmfWriter::create(&folder.path().join("e"), &samples).unwrap();
    writer.write(0, &[&[Complex::new(1u8, 2); 10]]).unwrap();
    writer.finish().unwrap();
    let same = "it must be the same for all recordings of a collection; open them one by one";
    let many = vec!["a"; 256];
    for (streams, message) in [
        (&[][..], "core:streams is 0 channels: there must be 1 to 255 channels in all"),
        (&many, "core:streams is 256 channels: there must be 1 to 255 channels in all"),
        (&["a", "../a"], "core:streams[1] is ../a: it must name a recording in the same folder"),
        (&["b", "a"], &format!("the number of samples of core:streams[0] is 11: {same}")),
        (&["a", "c"], &format!("the list of captures of core:streams[1] is 2 segments: {same}")),
        (&["a", "e"], &format!("the datatype of core:streams[1] is cu8: {same}")),
        (&["a", "d"], &format!("the sample rate of core:streams[1] is 2000000: {same}")),
    ] {
        let streams: Vec<Value> = streams.iter().map(|name| json!({"name": name, "hash": ""})).collect();
        let value = json!({"collection": {"core:version": "1.2.0", "core:streams": streams}});
        fs::write(&path, value.to_string()).unwrap();
        let error = SampleFile::open(&path).unwrap_err().to_string();
        assert!(error.ends_with(&format!("x.sigmf-collection: {message}")), "{error}\n{message}");
    }
}
