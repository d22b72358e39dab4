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
fn what_is_too_long_is_not_sent() {
    let long = Description { notes: Some("x".repeat(TEXT_BYTES_MAX)), ..Description::default() };
    let error = long.frames(&NEXT, 65_000).unwrap_err();
    assert_eq!((error.text_bytes > TEXT_BYTES_MAX, error.bytes_max), (true, TEXT_BYTES_MAX));
    assert!(sample().frames(&NEXT, HEADER_BYTES + 8).is_err());
    assert!(sample().frames(&NEXT, 10).is_err());
    let longest = Description { notes: Some("x".repeat(60_000)), ..Description::default() };
    assert_eq!(longest.frames(&NEXT, 1400).unwrap().len(), 45);
}

#[test]
fn each_damage_is_refused_and_the_next_is_heard() {
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
fn text_that_is_no_description_is_refused_though_its_checksum_is_right() {
    for text in ["[]", "{\"grebe:channels\": 3}", "{\"core:frequency\": \"high\"}", "\u{ff}", ""] {
        let mut frame = vec![0; HEADER_BYTES];
        NEXT.write_unchecked(frame.first_chunk_mut().unwrap());
        frame[24..36].copy_from_slice(&[2, 0, 1, 0, 0, 0, 1, 0, text.len() as u8, 0, 0, 0]);
        frame[48..52].copy_from_slice(&(text.len() as u32).to_le_bytes());
        frame[52..56].copy_from_slice(&crc32c::crc32c(text.as_bytes()).to_le_bytes());
        frame.extend(text.as_bytes());
        assert_eq!(DescriptionReader::default().take(&frame), Err(Refusal::Description), "{text}");
    }
}

proptest! {
    /// Damage of good frames, which random bytes would seldom get past the magic for; whatever it is, memory is bounded.
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
