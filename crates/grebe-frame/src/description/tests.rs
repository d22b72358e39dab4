use proptest::prelude::*;

use super::*;

const NEXT: Header = Header {
    sequence: 7,
    producer_ts_ns: 9,
    channel_count: 2,
    format: crate::SampleFormat::Cf32,
    block_length_samples: 100,
    sample_rate_hz: 2.4e6,
    sg_drops_total: 0,
    first_sample_index: 700,
};

fn sample() -> Description {
    let channel =
        |name: &str| ChannelDescription { name: name.into(), unit: "mV".into(), scale: 0.005, offset: -1.5 };
    Description {
        first_sample_index: 650,
        name: Some("心電図".into()),
        channels: vec![channel("I"), channel("aVF")],
        centre_frequency_hz: Some(433.92e6),
        clock: Some(ClockReading {
            producer_ts_ns: 5,
            unix_time_ns: 1_700_000_000_000_000_000,
            error_ns: None,
            clock: None,
        }),
        notes: Some("x".repeat(900)),
        rest: [("core:license".to_owned(), Value::from("CC0"))].into_iter().collect(),
        ..Description::default()
    }
}

#[test]
fn a_description_goes_over_the_wire_in_sigmfs_words() {
    let sent = Description { notes: None, ..sample() };
    let frames = sent.frames(&NEXT, 1400).unwrap();
    assert_eq!(frames.len(), 1);
    let text: Value = serde_json::from_slice(&frames[0][HEADER_BYTES..]).unwrap();
    assert_eq!(text["core:frequency"], 433.92e6);
    assert_eq!(text["core:license"], "CC0");
    assert_eq!(text["grebe:channels"][1]["name"], "aVF");
    assert_eq!(text["grebe:channels"][1]["scale"], 0.005);
    assert_eq!(text.get("core:hw"), None);
    assert_eq!(frames[0][8..16], 7u64.to_le_bytes());
    assert_eq!(frames[0][24..28], [2, 9, 1, 0]);
    assert_eq!(frames[0][56..64], 650u64.to_le_bytes());
    assert_eq!(Header::parse_datagram(&frames[0]), Err(Refusal::Description));
}

#[test]
fn parts_come_in_any_order_and_twice() {
    let frames = sample().frames(&NEXT, 264).unwrap();
    assert!(frames.len() >= 6, "{}", frames.len());
    let mut reader = DescriptionReader::default();
    for frame in frames[1..].iter().rev().chain(&frames[2..4]) {
        assert_eq!(reader.take(frame), Ok(None));
    }
    assert_eq!(reader.take(&frames[0]), Ok(Some(sample())));
    for frame in &frames {
        assert_eq!(reader.take(frame), Ok(None), "sent again");
    }
    reader.forget();
    let again: Vec<_> = frames.iter().filter_map(|frame| reader.take(frame).unwrap()).collect();
    assert_eq!(again, [sample()]);
}

#[test]
fn a_new_description_takes_over_from_one_that_is_not_whole() {
    let (old, new) = (sample(), Description { first_sample_index: 651, ..sample() });
    let mut reader = DescriptionReader::default();
    assert_eq!(reader.take(&old.frames(&NEXT, 264).unwrap()[0]), Ok(None));
    let taken: Vec<_> =
        new.frames(&NEXT, 264).unwrap().iter().filter_map(|frame| reader.take(frame).unwrap()).collect();
    assert_eq!(taken, [new]);
}

#[test]
fn a_description_that_is_too_long_is_not_sent() {
    let long = Description { notes: Some("x".repeat(TEXT_BYTES_MAX)), ..Description::default() };
    let error = long.frames(&NEXT, 65_000).unwrap_err();
    assert_eq!((error.text_bytes > TEXT_BYTES_MAX, error.bytes_max), (true, TEXT_BYTES_MAX));
    assert!(sample().frames(&NEXT, HEADER_BYTES + 8).is_err());
    assert!(sample().frames(&NEXT, 10).is_err());
    let longest = Description { notes: Some("x".repeat(60_000)), ..Description::default() };
    assert_eq!(longest.frames(&NEXT, 1400).unwrap().len(), 45);
}

#[test]
fn each_damaged_message_is_refused_and_the_next_is_read() {
    let good = Description { notes: None, ..sample() }.frames(&NEXT, 1400).unwrap().remove(0);
    let changed = |at: usize, with: &[u8]| {
        let mut frame = good.clone();
        frame[36..40].fill(0);
        frame[at..at + with.len()].copy_from_slice(with);
        let mut reader = DescriptionReader::default();
        let refusal = reader.take(&frame).unwrap_err();
        assert!(reader.take(&good).unwrap().is_some(), "after {refusal}");
        refusal
    };
    assert_eq!(changed(0, b"GFH1"), Refusal::Magic);
    assert_eq!(changed(4, &[65]), Refusal::HeaderBytes);
    assert_eq!(changed(24, &[1]), Refusal::Description, "more names than channels");
    assert_eq!(changed(26, &[2]), Refusal::Kind);
    assert_eq!(changed(27, &[1]), Refusal::Kind);
    assert_eq!(changed(28, &[1]), Refusal::Description, "part 1 of 1");
    assert_eq!(changed(30, &[0]), Refusal::Description, "no parts");
    assert_eq!(changed(28, &[255; 4]), Refusal::Description, "the last of too many parts");
    assert_eq!(changed(30, &[65]), Refusal::Description);
    assert_eq!(changed(32, &[1, 2, 0, 0]), Refusal::Truncated);
    assert_eq!(changed(32, &[1, 0, 1, 0]), Refusal::Description);
    assert_eq!(changed(36, &[1]), Refusal::Crc);
    assert_eq!(changed(48, &[0, 0]), Refusal::Description, "longer than the text");
    assert_eq!(changed(50, &[2]), Refusal::Description, "a text of more than 64 KiB");
    assert_eq!(changed(52, &[0; 4]), Refusal::Description);
    assert_eq!(changed(64, b"["), Refusal::Description);
    assert_eq!(DescriptionReader::frame_bytes(&good[..63]), Err(Refusal::Short));
    assert_eq!(DescriptionReader::default().take(&[&good[..], b"x"].concat()), Err(Refusal::Trailing));
}

#[test]
fn invalid_text_is_refused_despite_a_valid_checksum() {
    for text in [
        "[]",
        "{\"grebe:channels\": 3}",
        "{\"core:datetime\": \"yesterday\"}",
        "{\"annotations\": {}}",
        "{\"annotations\": [{\"core:label\": \"where?\"}]}",
        "{\"annotations\": [{\"core:sample_start\": -1}]}",
        "{\"core:frequency\": \"high\"}",
        "\u{ff}",
        "",
    ] {
        let mut frame = vec![0; HEADER_BYTES];
        NEXT.write_unchecked(frame.first_chunk_mut().unwrap());
        frame[24..36].copy_from_slice(&[2, 0, 1, 0, 0, 0, 1, 0, text.len() as u8, 0, 0, 0]);
        frame[48..52].copy_from_slice(&(text.len() as u32).to_le_bytes());
        frame[52..56].copy_from_slice(&crc32c::crc32c(text.as_bytes()).to_le_bytes());
        frame.extend(text.as_bytes());
        assert_eq!(DescriptionReader::default().take(&frame), Err(Refusal::Description), "{text}");
    }
}

fn label(first_sample_index: u64, length_samples: u64) -> StreamAnnotation {
    StreamAnnotation {
        first_sample_index,
        length_samples,
        lower_edge_hz: Some(1e6),
        upper_edge_hz: Some(2e6),
        label: Some("burst".into()),
        comment: Some("c".into()),
        generator: Some("g".into()),
        uuid: Some("0c1f1f0a-5d31-4a7a-8f7e-111111111111".into()),
        color: Some("#ff8800".into()),
    }
}

/// 2026-01-02T03:04:05Z.
fn then() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045)
}

#[test]
fn annotations_and_times_go_over_the_wire_in_sigmfs_words() {
    let sent = Description {
        notes: None,
        recorded_at: Some(then() + Duration::from_nanos(400)),
        recorded_error_ns: Some(1_500),
        annotations: vec![
            label(700, 20),
            StreamAnnotation { first_sample_index: u64::MAX, ..Default::default() },
        ],
        ..sample()
    };
    let frame = sent.frames(&NEXT, 1400).unwrap().remove(0);
    let text: Value = serde_json::from_slice(&frame[HEADER_BYTES..]).unwrap();
    assert_eq!(text["core:datetime"], "2026-01-02T03:04:05.0000004Z");
    assert_eq!(text["annotations"][0]["core:sample_start"], 700);
    assert_eq!(text["annotations"][0]["core:sample_count"], 20);
    assert_eq!(text["annotations"][0]["core:freq_upper_edge"], 2e6);
    assert_eq!(text["annotations"][0]["core:label"], "burst");
    assert_eq!(text["annotations"][1].get("core:label"), None);
    assert_eq!(DescriptionReader::default().take(&frame), Ok(Some(sent)));
}

#[test]
fn no_more_annotations_are_taken_than_one_description_may_have() {
    // Without its identifier, one more than fit by number still fits by length.
    let short = || StreamAnnotation { uuid: None, ..label(7, 5) };
    let of = |count| Description { annotations: vec![short(); count], ..Description::default() };
    let mut most = of(Description::ANNOTATIONS_MAX);
    let take = |description: &Description| {
        let mut reader = DescriptionReader::default();
        let frames = description.frames(&NEXT, 65_000).unwrap();
        frames.iter().map(|frame| reader.take(frame)).last().unwrap()
    };
    assert_eq!(take(&most), Ok(Some(most.clone())));
    let mut more = of(Description::ANNOTATIONS_MAX + 1);
    assert_eq!(take(&more), Err(Refusal::Description));
    assert_eq!((more.bound_annotations(), most.bound_annotations()), (1, 0));
    assert_eq!(more, most);
    // Exactly as many as fit.
    let mut long = Description { notes: Some("x".repeat(60_000)), ..most.clone() };
    let left_out = long.bound_annotations();
    assert!(left_out > 0 && long.text_bytes() <= TEXT_BYTES_MAX);
    assert!(long.text_bytes() + short().text_bytes() + 1 > TEXT_BYTES_MAX);
}

#[test]
fn a_sample_has_the_time_of_its_stamp_or_of_its_place_in_a_recording() {
    let at = |ns: i64| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns as u64);
    let clock = |producer_ts_ns| ClockReading {
        producer_ts_ns,
        unix_time_ns: 1_700_000_000_000_000_000,
        error_ns: Some(9),
        clock: None,
    };
    let live = Description { clock: Some(clock(1_000)), ..Description::default() };
    let header =
        Header { producer_ts_ns: 501_000, first_sample_index: 100, sample_rate_hz: 1e6, ..Header::default() };
    assert_eq!(live.time_of(&header, 100), Some(at(1_700_000_000_000_500_000)));
    assert_eq!(live.time_of(&header, 97), Some(at(1_700_000_000_000_497_000)));
    assert_eq!(live.time_error_ns(), Some(9));
    let without_rate = Header { sample_rate_hz: 0.0, ..header };
    assert_eq!(live.time_of(&without_rate, 103), Some(at(1_700_000_000_000_500_000)));
    assert_eq!(live.time_of(&Header { producer_ts_ns: 0, ..header }, 100), None, "not stamped");
    let ahead = Description { clock: Some(clock(2_000_000)), ..Description::default() };
    assert_eq!(ahead.time_of(&header, 100), Some(at(1_700_000_000_000_000_000 - 1_499_000)));

    let played = Description { first_sample_index: 50, recorded_at: Some(then()), ..live };
    assert_eq!(played.time_of(&header, 100), Some(then() + Duration::from_micros(50)));
    assert_eq!(played.time_of(&header, 49), Some(then() - Duration::from_micros(1)));
    assert_eq!(played.time_of(&without_rate, 100), None);
    assert_eq!((played.time_of(&without_rate, 50), played.time_error_ns()), (Some(then()), None));
    let slowest = Header { sample_rate_hz: f64::MIN_POSITIVE, ..header };
    let far = Description { clock: Some(clock(1_000)), ..Description::default() };
    assert_eq!((far.time_of(&slowest, u64::MAX), far.time_of(&slowest, 0)), (None, None), "beyond all times");
}

#[test]
fn a_description_applies_to_a_part_of_the_samples() {
    let of = |first_sample_index, annotations| Description {
        first_sample_index,
        recorded_at: Some(then()),
        annotations,
        ..Description::default()
    };
    let before = of(995, vec![label(999, 2), label(1_000, 10), label(1_000, 0), label(u64::MAX, 5)]);
    let made = before.decimated(10, 2, 1e6);
    let places: Vec<_> =
        made.annotations.iter().map(|it| (it.first_sample_index, it.length_samples)).collect();
    assert_eq!(places, [(198, 4), (200, 2), (200, 0), (u64::MAX / 10 * 2, 2)]);
    // Sample 200 stands for sample 1,000 of the original stream, five after the one with the known time.
    assert_eq!((made.first_sample_index, made.recorded_at), (200, Some(then() + Duration::from_micros(5))));
    assert_eq!(before.decimated(10, 2, 0.0).recorded_at, None);
    assert_eq!(of(1_000, vec![]).decimated(10, 1, 0.0), of(100, vec![]));
}

proptest! {
    /// Damages good frames, because random bytes rarely pass the magic. Memory stays bounded.
    #[test]
    fn no_frames_panic(changes in prop::collection::vec((0usize..8, 0usize..264, any::<u8>(), 0usize..300), 0..40)) {
        let frames = sample().frames(&NEXT, 264).unwrap();
        let mut reader = DescriptionReader::default();
        for (which, at, with, length) in changes {
            let mut frame = frames[which % frames.len()].clone();
            frame[36..40].fill(0);
            let at = at % frame.len();
            frame[at] = with;
            frame.truncate(length.max(200));
            let _ = reader.take(&frame);
            prop_assert!(reader.text.len() <= TEXT_BYTES_MAX);
        }
    }
}
