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

/// Frames and counters from these lines.
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
fn lines_of_one_value_each_are_one_stream() {
    let (batches, _) = read("pipe:?format=text&rate=100", ">a:1\n>b:10\n>a:2\n>b:20\n");
    let [(0, names, samples)] = &stretches(&batches)[..] else { panic!("{:?}", stretches(&batches)) };
    assert_eq!(
        (&names[..], &samples[0][..]),
        (&["a".to_owned(), "b".to_owned()][..], &[1.0, 1.0, 2.0, 2.0][..])
    );
    assert_eq!(samples[1][1..], [10.0, 10.0, 20.0]);
}

#[test]
fn lines_become_samples_and_bad_lines_are_counted() {
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
    let lines = "a:1\n".repeat(8) + "a:2\na:3,b:30\nb:40\nc:5\n";
    let (batches, counters) = read("pipe:?format=text", &lines);
    let name = |names: &str| names.chars().map(String::from).collect::<Vec<_>>();
    assert_eq!(
        stretches(&batches),
        [
            (0, name("a"), vec![[&[1.0; 8][..], &[2.0]].concat()]),
            (9, name("ab"), vec![vec![3.0, 3.0], vec![30.0, 40.0]]),
            (11, name("abc"), vec![vec![3.0], vec![40.0], vec![5.0]]),
        ]
    );
    assert_eq!((counters.get("held_values"), counters.get("lost_samples")), (Some(3), Some(0)));
    let last = batches.last().unwrap();
    assert_eq!(last.description().unwrap().first_sample_index, 11);
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

/// Lines with a time each, and the number of the line.
fn timed(heading: &str, count: usize, time: impl Fn(usize) -> String) -> String {
    let lines: String = (0..count).map(|at| format!("{},{at}\n", time(at))).collect();
    format!("{heading}\n{lines}")
}

/// Name and unit of each channel.
type Names = Vec<(String, String)>;

/// The rate, the channels' names and units, how many samples there are, and before which one how many are missing.
fn said(name: &str, lines: &str) -> (f64, Names, u64, Vec<(u64, u64)>) {
    let (batches, _) = read_in(name, lines, vec![65_536]);
    let (mut gaps, mut samples, mut next) = (Vec::new(), 0, 0);
    for header in batches.iter().flat_map(|batch| batch.frames()).map(|frame| frame.header()) {
        if header.first_sample_index != next {
            gaps.push((samples, header.first_sample_index - next));
        }
        samples += u64::from(header.block_length_samples);
        next = header.first_sample_index + u64::from(header.block_length_samples);
    }
    let last = batches.last().unwrap();
    let rate_hz = last.frames().next().unwrap().header().sample_rate_hz;
    let channels = last.description().map_or(Vec::new(), |it| {
        it.channels.iter().map(|channel| (channel.name.clone(), channel.unit.clone())).collect()
    });
    (rate_hz, channels, samples, gaps)
}

#[test]
fn times_that_are_coarser_than_lines_are_apart_say_the_rate_and_no_gaps() {
    for rate_hz in [700.0, 860.0, 2e3, 5e3] {
        let time = |at: usize| format!("{:.0}", (at as f64 / rate_hz * 1e3).floor());
        let lines = timed("time_ms,adc", 6_000, time);
        let adc = vec![("adc".to_owned(), String::new())];
        assert_eq!(said("pipe:?format=text", &lines), (rate_hz, adc.clone(), 6_000, vec![]));
        // The name wins, and the times do not cause gaps.
        let named = format!("pipe:?format=text&rate={rate_hz}");
        assert_eq!(said(&named, &lines), (rate_hz, adc.clone(), 6_000, vec![]));
        assert_eq!(said("pipe:?format=text&rate=123", &lines), (123.0, adc, 6_000, vec![]));
        let skip = |at: usize| time(at + if at >= 3_000 { 500 } else { 0 });
        assert_eq!(said("pipe:?format=text", &timed("time_ms,adc", 6_000, skip)).3, [(3_000, 500)]);
    }
}

#[test]
fn unix_times_lose_no_digits_and_say_when_it_began() {
    let lines = timed("timestamp,a", 4_000, |at| format!("1766147454.{at:06}"));
    let (batches, _) = read_in("pipe:?format=text", &lines, vec![65_536]);
    let header = batches[0].frames().next().unwrap().header();
    assert_eq!(header.sample_rate_hz, 1e6);
    let began = batches[0].description().unwrap().recorded_at.unwrap();
    assert_eq!(began.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_766_147_454);
}

#[test]
fn a_line_with_the_time_of_another_is_left_out() {
    let lines = timed("time,a", 100, |at| format!("{:.3}", (at - usize::from(at > 50)) as f64 / 100.0));
    let (batches, counters) = read_in("pipe:?format=text", &lines, vec![65_536]);
    let samples: u64 = batches.iter().map(Batch::samples).sum();
    assert_eq!(
        (samples, counters.get("doubled_lines"), counters.get("lost_samples")),
        (99, Some(1), Some(0))
    );
}

#[test]
fn usual_output_of_boards_is_read() {
    let named = |names: &[(&str, &str)]| -> Names {
        names.iter().map(|(name, unit)| (name.to_string(), unit.to_string())).collect()
    };
    let none: &[(&str, &str)] = &[];
    for (line, names, value) in [
        ("24.00°C,40%", &[("", "°C"), ("", "%")][..], 40.0),
        ("temp:24.00°C,hum:40%", &[("temp", "°C"), ("hum", "%")], 40.0),
        ("(1, 2)", none, 2.0),
        ("[1, 2]", none, 2.0),
        ("$1,2*", none, 2.0),
        ("$1 2;", none, 2.0),
        ("{\"a\": 1, \"b\": 2.5}", &[("a", ""), ("b", "")], 2.5),
        (">a:1;b:2", &[("a", ""), ("b", "")], 2.0),
        ("0,001;1,25", none, 1.25),
        ("0,001\t1,25", none, 1.25),
        ("\u{1b}[0;32m1,2\u{1b}[0m", none, 2.0),
        ("\u{feff}a:1,b:2", &[("a", ""), ("b", "")], 2.0),
        ("\0\0a:1,b:2", &[("a", ""), ("b", "")], 2.0),
        ("W.AvgPow(W):0.02,W.State:0.49W", &[("W.AvgPow", "W"), ("W.State", "W")], 0.49),
    ] {
        let lines = format!("{line}\n").repeat(20);
        let (batches, _) = read_in("pipe:?format=text&rate=100", &lines, vec![65_536]);
        let all = stretches(&batches);
        assert_eq!((all.len(), all[0].2[1].len()), (1, 20), "{line}");
        assert_eq!(all[0].2[1][19], value, "{line}");
        assert_eq!(said("pipe:?format=text&rate=100", &lines).1, named(names), "{line}");
    }
}

#[test]
fn boot_logs_between_lines_change_nothing() {
    let boot = "ets Jul 29 2019 12:21:46\r\n\r\nrst:0x1 (POWERON_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\r\n\
        \u{1b}[0;32mI (27) boot: ESP-IDF v5.1\u{1b}[0m\r\n\0\0";
    let lines: String = (0..60).map(|at| format!("a:{at},b:{}\r\n", at * 2)).collect();
    let (batches, counters) =
        read_in("pipe:?format=text&rate=10", &format!("{boot}{lines}{boot}\n{lines}"), vec![99]);
    let all = stretches(&batches);
    assert_eq!(
        (all.len(), all[0].1.clone(), all[0].2[0].len()),
        (1, vec!["a".to_owned(), "b".to_owned()], 120)
    );
    assert_eq!(counters.get("bad_lines").unwrap() + counters.get("word_lines").unwrap(), 6);
}

#[test]
fn refused_lines_are_reported_with_an_example() {
    let mut left_out = LeftOut::default();
    assert_eq!(left_out.words(), None);
    left_out.words.keep(b"Ready.");
    assert_eq!(left_out.words().unwrap(), "1 line was not numbers, such as 'Ready.'");
    (0..59).for_each(|_| left_out.bad.keep(b"rst:0x1\x07 (POWERON_RESET)\r"));
    assert_eq!(
        left_out.words().unwrap(),
        "60 lines were not numbers, such as 'rst:0x1\u{fffd} (POWERON_RESET)'"
    );
}

#[test]
fn a_line_of_names_that_was_taken_is_not_left_out() {
    let mut columns = Columns::new(grebe_frame::SampleFormat::F64, None, None);
    let taken =
        ["Ready.", "t,a", "1,2", "3,4"].map(|line| (columns.take(line.as_bytes()), columns.take_headed()));
    assert_eq!(
        taken.map(|(line, is_headed)| (line == Line::Words, is_headed)),
        [(true, false), (true, false), (false, true), (false, false)]
    );
    let mut left_out = LeftOut::default();
    left_out.words.keep(b"t,a");
    left_out.words.forget_one();
    assert_eq!(left_out.words(), None);
}

#[test]
fn the_first_line_of_a_device_is_skipped_as_incomplete() {
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
    /// However the bytes are cut, the written lines equal those read, and reading them again gives the same
    /// samples.
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
