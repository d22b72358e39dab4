use grebe_flow::StageBench;
use grebe_frame::Batch;
use grebe_testing::stream::{Kept, Pieces};
use proptest::prelude::*;

use super::*;
use crate::Uri;
use crate::bridges::text::TextSink;

fn text(name: &str) -> TextStream {
    match name.parse() {
        Ok(Uri::Text(text)) => *text,
        other => panic!("{name}: {other:?}"),
    }
}

/// What comes of lines, and what was counted.
fn read_in(name: &str, lines: &str, lengths: Vec<usize>) -> (Vec<Batch>, Counters) {
    let pieces = Pieces::new(lines.as_bytes().to_vec(), lengths);
    let source = TextSource::new(pieces, |_| Ok(true), text(name));
    let counters = source.counters.all();
    (StageBench::new(source).unwrap().end().unwrap(), counters)
}

fn read(name: &str, lines: &str) -> (Vec<Batch>, Counters) {
    read_in(name, lines, vec![7])
}

/// Each stretch without a gap and of the same channels: its first sample, the names, and the samples of each channel.
fn stretches(batches: &[Batch]) -> Vec<(u64, Vec<String>, Vec<Vec<f64>>)> {
    let mut stretches: Vec<(u64, Vec<String>, Vec<Vec<f64>>)> = Vec::new();
    for batch in batches {
        let said = batch.description().map_or(&[][..], |description| &description.channels);
        let names: Vec<String> = said.iter().map(|channel| channel.name.clone()).collect();
        for frame in batch.frames() {
            let header = frame.header();
            let channels: Vec<Vec<f64>> = (0..header.channel_count as usize)
                .map(|channel| frame.channel::<f64>(channel).unwrap().into_owned())
                .collect();
            match stretches.last_mut() {
                Some((first, before, samples))
                    if *before == names && *first + samples[0].len() as u64 == header.first_sample_index =>
                {
                    samples.iter_mut().zip(channels).for_each(|(samples, more)| samples.extend(more));
                }
                _ => stretches.push((header.first_sample_index, names.clone(), channels)),
            }
        }
    }
    stretches
}

#[test]
fn lines_are_samples_and_what_is_none_is_counted() {
    let lines = "a,b\r\n1,-1\r\n2,-2\r\nxyz!,1\n\n3,-3\nReady.\n4";
    let (batches, counters) = read("pipe:?format=text&rate=100", lines);
    let names = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(stretches(&batches), [(0, names, vec![vec![1.0, 2.0, 3.0], vec![-1.0, -2.0, -3.0]])]);
    let counted = ["bad_lines", "word_lines", "half_lines"].map(|name| counters.get(name).unwrap());
    assert_eq!(counted, [2, 2, 0]);
    assert!(batches.iter().flat_map(|it| it.frames()).all(|frame| frame.header().sample_rate_hz == 100.0));
}

#[test]
fn another_channel_begins_at_its_line() {
    let (batches, counters) = read("pipe:?format=text", "a:1\na:2\na:3,b:30\nb:40\nc:5\n");
    let name = |names: &str| names.chars().map(String::from).collect::<Vec<_>>();
    assert_eq!(
        stretches(&batches),
        [
            (0, name("a"), vec![vec![1.0, 2.0]]),
            (2, name("ab"), vec![vec![3.0, 3.0], vec![30.0, 40.0]]),
            (4, name("abc"), vec![vec![3.0], vec![40.0], vec![5.0]]),
        ]
    );
    assert_eq!((counters.get("held_values"), counters.get("lost_samples")), (Some(3), Some(0)));
    let last = batches.last().unwrap();
    assert_eq!(last.description().unwrap().first_sample_index, 4);
}

#[test]
fn the_first_lines_get_the_channels_that_appear_in_them_where_the_rate_is_measured() {
    let (batches, counters) = read("pipe:?format=text&rate=measure", "boot\n7\na:1\nb:2\na:3,b:4\na:5\n");
    // Three lines of another kind are needed, and the ones before were of something that had not begun.
    let names = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(stretches(&batches), [(0, names, vec![vec![3.0, 5.0], vec![4.0, 4.0]])]);
    assert_eq!(counters.get("bad_lines"), Some(3));
    let (batches, counters) = read("pipe:?format=text&rate=measure", "a:1\nb:2\na:3,b:4\n");
    let all = stretches(&batches);
    assert_eq!((all.len(), all[0].2[0].clone()), (1, vec![1.0, 1.0, 3.0]));
    assert!(all[0].2[1][0].is_nan());
    assert_eq!(all[0].2[1][1..], [2.0, 4.0]);
    assert_eq!(counters.get("held_values"), Some(1));
}

#[test]
fn times_make_the_rate_and_the_gaps() {
    let lines = "time_ms,a\n0,1\n10,2\n20,3\n60,4\n70,5\n5,6\n15,7\n";
    let (batches, counters) = read("pipe:?format=text", lines);
    let found: Vec<(u64, Vec<f64>)> =
        stretches(&batches).into_iter().map(|(first, _, mut samples)| (first, samples.remove(0))).collect();
    assert_eq!(found, [(0, vec![1.0, 2.0, 3.0]), (6, vec![4.0, 5.0]), (9, vec![6.0, 7.0])]);
    assert!(batches.iter().flat_map(|it| it.frames()).all(|frame| frame.header().sample_rate_hz == 100.0));
    let counted = ["lost_frames", "lost_samples", "time_resets"].map(|name| counters.get(name).unwrap());
    assert_eq!(counted, [2, 4, 1]);
}

#[test]
fn what_a_device_sends_first_is_half_a_line() {
    let (batches, counters) = read("serial:ttyX?rate=10", "3,4\n1,2\n3,4\n5,");
    assert_eq!(stretches(&batches), [(0, vec![], vec![vec![1.0, 3.0], vec![2.0, 4.0]])]);
    assert_eq!((counters.get("half_lines"), counters.get("bad_lines")), (Some(1), Some(1)));
}

#[test]
fn a_line_without_an_end_is_left_out() {
    let lines = format!("1\n{}\n2\n", "3".repeat(600_000));
    let (batches, counters) = read_in("pipe:?format=text", &lines, vec![100_000]);
    assert_eq!(stretches(&batches), [(0, vec![], vec![vec![1.0, 2.0]])]);
    assert!(counters.get("bad_lines") >= Some(1));
}

#[test]
fn stamps_go_back_from_the_newest_line_by_the_rate() {
    let lines: String = (0..50).map(|line| format!("{line}\n")).collect();
    let (batches, _) = read_in("pipe:?format=text&rate=1k", &lines, vec![1_000]);
    let headers: Vec<Header> = batches.iter().flat_map(|it| it.frames()).map(|it| it.header()).collect();
    assert_eq!(headers.len(), 5);
    for pair in headers.windows(2) {
        assert_eq!(pair[1].producer_ts_ns - pair[0].producer_ts_ns, 10_000_000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// However the bytes are cut, what is written again is what was read, and whoever reads that has the same samples.
    #[test]
    fn lines_go_through_as_they_came(
        channels in 1usize..6,
        count in 1usize..40_000,
        lengths in prop::collection::vec(prop_oneof![1usize..9_000, Just(BUFFER_BYTES)], 1..20),
        format in prop::sample::select(vec!["f64", "i16", "f32", "u8"]),
    ) {
        let value = |line: usize, channel: usize| ((line * 7 + channel * 31) % 250) as f64;
        let line = |line| (0..channels).map(|channel| value(line, channel).to_string()).collect::<Vec<_>>().join(" ");
        let lines: String = (0..count).map(|at| line(at) + "\n").collect();
        let name = format!("pipe:?format=text&as={format}");
        let (batches, _) = read_in(&name, &lines, lengths.clone());
        let samples: u64 = batches.iter().map(Batch::samples).sum();
        prop_assert_eq!(samples, count as u64);
        let sent = Kept::default();
        let mut sink = StageBench::new(TextSink::new(sent.clone(), text(&name))).unwrap();
        for batch in batches {
            sink.feed(batch).unwrap();
        }
        sink.end().unwrap();
        let written = String::from_utf8(sent.0.lock().unwrap().clone()).unwrap();
        let heading: Vec<String> = (1..=channels).map(|channel| format!("ch{channel}")).collect();
        prop_assert!(written.starts_with(&(heading.join(",") + "\n")));
        let (again, _) = read_in("pipe:?format=text", &written, lengths);
        let all = stretches(&again);
        prop_assert_eq!(all.len(), 1);
        for (channel, samples) in all[0].2.iter().enumerate() {
            prop_assert!((0..count).all(|line| samples[line] == value(line, channel)));
        }
    }
}
