//! Round trips, and packets by the standard's figures.

use std::net::UdpSocket;
use std::time::Duration;

use grebe_datagram::{Options, Sender};
use grebe_flow::StageBench;
use grebe_frame::{Batch, BatchPool, Header, SampleFormat};
use proptest::prelude::*;

use super::intake::{Datagrams, Intake};
use super::{Vita49Sink, Vita49Stream};
use crate::Uri;

fn name(text: &str) -> Vita49Stream {
    match text.parse() {
        Ok(Uri::Vita49(stream)) => *stream,
        other => panic!("{text}: {other:?}"),
    }
}

/// The bytes of a sample, by its channel and index.
fn byte(channel: usize, index: u64, at: usize) -> u8 {
    (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 ^ (channel * 37 + at * 101) as u8
}

/// A batch of frames, each at an index and of a length.
fn batch(format: SampleFormat, channels: usize, rate_hz: f64, frames: &[(u64, usize)]) -> Batch {
    let bytes = frames.iter().map(|(_, length)| 128 + length * channels * format.bytes()).sum();
    let mut batch = BatchPool::new(1, bytes).acquire().unwrap();
    for &(first_sample_index, length) in frames {
        let header = Header {
            format,
            channel_count: channels as u32,
            block_length_samples: length as u32,
            sample_rate_hz: rate_hz,
            first_sample_index,
            ..Header::default()
        };
        let fill = |channel: usize, out: &mut [u8]| {
            for (at, sample) in out.chunks_mut(format.bytes()).enumerate() {
                let index = first_sample_index + at as u64;
                sample.iter_mut().enumerate().for_each(|(at, out)| *out = byte(channel, index, at));
            }
        };
        batch.push_bytes(&header, fill).unwrap();
    }
    batch.freeze()
}

/// Datagrams that a sink sends for batches. Each is received before the next is sent, because a socket's buffer holds
/// only one batch.
fn sent(query: &str, datagram_bytes: usize, batches: Vec<Batch>) -> Vec<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let stream = name(&format!("vrt://127.0.0.1:1?{query}"));
    let to = socket.local_addr().unwrap();
    let sender = Sender::connect(to, &Options::default()).unwrap();
    let sink = Vita49Sink::new(sender, stream, Some(datagram_bytes), 0);
    let mut bench = StageBench::new(sink).unwrap();
    let (mut datagrams, mut bytes) = (Vec::new(), [0; 65_536]);
    let mut take = |datagrams: &mut Vec<Vec<u8>>| {
        let length = socket.recv(&mut bytes).unwrap();
        datagrams.push(bytes[..length].to_vec());
    };
    for batch in batches {
        bench.feed(batch).unwrap();
        let sent = bench.snapshot().stage("stage").unwrap().own("datagrams").unwrap();
        while (datagrams.len() as u64) < sent {
            take(&mut datagrams);
        }
    }
    bench.end().unwrap();
    while datagrams.last().is_none_or(|last| !last.is_empty()) {
        take(&mut datagrams);
    }
    datagrams.pop();
    datagrams
}

/// Batches and counts of a source for datagrams.
fn received(query: &str, datagrams: Vec<Vec<u8>>) -> (Vec<Batch>, Intake) {
    let (stage, counted) = Datagrams::new(Intake::new(name(&format!("vrt://:0?{query}"))), datagrams);
    let batches = StageBench::new(stage).unwrap().end().unwrap();
    (batches, counted.recv().unwrap())
}

/// Checks each sample, and returns the ranges present.
fn check(batches: &[Batch]) -> Vec<(u64, u64)> {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    let first =
        batches.first().and_then(|it| it.frames().next()).map_or(0, |it| it.header().first_sample_index);
    for frame in batches.iter().flat_map(|batch| batch.frames()) {
        let header = frame.header();
        let index = header.first_sample_index - first;
        match stretches.last_mut() {
            Some((begin, length)) if *begin + *length == index => {
                *length += u64::from(header.block_length_samples)
            }
            _ => stretches.push((index, header.block_length_samples.into())),
        }
        for channel in 0..header.channel_count as usize {
            let samples = frame.channel_bytes(channel).unwrap().chunks(header.format.bytes());
            for (at, sample) in samples.enumerate() {
                let index = index + at as u64;
                assert!(sample.iter().enumerate().all(|(at, it)| *it == byte(channel, index, at)), "{index}");
            }
        }
    }
    stretches
}

/// Big-endian words.
fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect()
}

#[test]
fn packets_are_of_one_size_and_gaps_show_in_count_and_time() {
    let frames = [(0, 500), (500, 500), (3_000, 333)];
    let sent = sent("stream=0xbeef&time=gps", 1_400, vec![batch(SampleFormat::Ci16, 1, 1e6, &frames)]);
    let (mut counts, mut samples) = (Vec::new(), 0);
    for packet in sent.iter().map(|datagram| words(datagram)) {
        assert_eq!((packet[0] & 0xffff, packet[1]), (packet.len() as u32, 0xbeef));
        assert_eq!(packet[0] >> 20 & 15, 0b1010, "GPS and picoseconds");
        if packet[0] >> 28 == 1 {
            counts.push(packet[0] >> 16 & 15);
            samples += packet.len() - 5;
        } else {
            // Changed: rate and format. Nothing else is known.
            let rate = 1_000_000u64 << 20;
            assert_eq!(packet[5..], [0x8020_8000, (rate >> 32) as u32, rate as u32, 0x2000_03cf, 0]);
        }
    }
    // 345 samples fill a packet; six packets of them would have filled the gap.
    assert_eq!((samples, counts), (1_333, vec![0, 1, 2, 9]));
}

#[test]
fn difi_is_what_its_specification_says() {
    let sent = sent("profile=difi&stream=7", 1_400, vec![batch(SampleFormat::Ci8, 1, 7.68e6, &[(0, 2_049)])]);
    let context = words(&sent[0]);
    assert_eq!((context[0], context[1], context[2], context[3]), (0x4960_001b, 7, 0x6a_621e, 1));
    assert_eq!((context.len(), context[7]), (27, 0xfbb9_8000));
    let data: Vec<Vec<u32>> = sent[1..].iter().map(|datagram| words(datagram)).collect();
    assert!(data.iter().all(|packet| packet[0] >> 20 == 0x186), "class, UTC and picoseconds");
    assert_eq!(data.last().unwrap()[2], 16 << 27 | 0x6a_621e, "half of the last word is padding");
    let (batches, intake) = received("", sent);
    assert_eq!(check(&batches), [(0, 2_049)]);
    let description = batches[0].description().unwrap();
    assert_eq!(
        description.hardware.as_deref(),
        Some("DIFI (class 6A-62-1E 0000:0000), stream 0x00000007, UTC in picoseconds")
    );
    assert_eq!(intake.counts.context_packets, 1);
}

/// Packets by the standard's figures.
struct Maker {
    index: u64,
    count: u32,
}

impl Maker {
    /// Bandwidth, IF and RF reference, level, rate; no format.
    fn context() -> Vec<u8> {
        let hz = |hz: u64| [(hz >> 12) as u32, (hz << 20) as u32];
        let mut words = vec![0x4000_0000, 5, 1 << 29 | 1 << 28 | 1 << 27 | 1 << 24 | 1 << 21];
        [200_000, 1_000_000, 433_920_000].iter().for_each(|&it| words.extend(hz(it)));
        words.push((-20i16 * 128) as u16 as u32);
        words.extend(hz(250_000));
        words[0] |= words.len() as u32;
        words.into_iter().flat_map(u32::to_be_bytes).collect()
    }

    /// The next packet, of 100 samples of `i16` in two channels, with class and trailer.
    fn data(&mut self, stream_id: u32, is_loss: bool) -> Vec<u8> {
        // Class, trailer; UTC, and samples counted each second.
        let head = 0x1c50_0000 | self.count << 16 | 108;
        let (seconds, samples) = (self.index / 250_000, self.index % 250_000);
        let mut words = vec![head, stream_id, 0x12_3456, 0, seconds as u32, 0, samples as u32];
        let both = |index| [0, 1].map(|channel| [byte(channel, index, 1), byte(channel, index, 0)]);
        let payload =
            (self.index..self.index + 100).map(|index| both(index).as_flattened().try_into().unwrap());
        words.extend(payload.map(u32::from_be_bytes));
        words.push(1 << 24 | u32::from(is_loss) << 12);
        (self.index, self.count) = (self.index + 100, (self.count + 1) % 16);
        words.into_iter().flat_map(u32::to_be_bytes).collect()
    }
}

#[test]
fn a_stream_is_taken_out_of_several_with_what_is_missing() {
    let mut maker = Maker { index: 0, count: 3 };
    let mut datagrams = vec![Maker::context(), vec![0x77; 20], vec![1, 2, 3]];
    for number in 0..200 {
        // 40 packets are missing, which the count alone would take for 8.
        let data = maker.data(5, number == 150);
        if !(30..70).contains(&number) {
            datagrams.push(data);
        }
        if number % 50 == 0 {
            datagrams.push(Maker { index: 0, count: 0 }.data(6, false));
        }
    }
    let (batches, intake) = received("format=i16&channels=2", datagrams);
    assert_eq!(check(&batches), [(0, 3_000), (7_000, 13_000)]);
    let counts = intake.tracker.counts();
    assert_eq!((counts.lost_frames, counts.lost_samples, counts.generator_samples), (40, 4_000, 0));
    assert_eq!((intake.counts.sample_loss, intake.counts.other_streams, intake.other_streams()), (1, 4, 1));
    assert_eq!(intake.refusals.total(), 2);
    let last = batches.last().unwrap();
    assert_eq!(last.frames().next().unwrap().header().sample_rate_hz, 250e3);
    let description = last.description().unwrap();
    assert_eq!(description.centre_frequency_hz, Some(432.92e6));
    assert_eq!(description.bandwidth_hz, Some(200e3));
    assert_eq!(description.rest["grebe:reference_level_dbm"], -20.0);
    assert_eq!(description.rest["grebe:vita49_other_streams"], serde_json::json!(["0x00000006"]));
}

#[test]
fn samples_that_grebe_has_no_format_for_end_the_stream_with_words() {
    let context = [0x4000_0005u32, 7, 0x0000_8000, 0xa000_02cb, 0].map(u32::to_be_bytes).concat();
    let data = [0x1000_0003u32, 7, 0].map(u32::to_be_bytes).concat();
    let intake = || Intake::new(name("vrt://:4991"));
    let (stage, _counted) = Datagrams::new(intake(), vec![context, data]);
    let error = StageBench::new(stage).unwrap().end().unwrap_err().to_string();
    assert!(
        error.contains("stream 0x00000007 of vrt://:4991 has complex samples of 12-bit integers"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// A round trip for every format, channel count and packet size.
    #[test]
    fn vita49_packets_round_trip(
        number in 0u8..10,
        channels in 1usize..6,
        datagram_bytes in 100usize..3_000,
        lengths in prop::collection::vec(1usize..200, 1..20),
        time in prop::sample::select(vec!["utc", "gps", "samples", "none"]),
    ) {
        let format = SampleFormat::from_wire(number).unwrap();
        let mut frames = Vec::new();
        let total = lengths.iter().fold(0, |index, &length| {
            frames.push(batch(format, channels, 48e3, &[(index, length)]));
            index + length as u64
        });
        let sent = sent(&format!("time={time}"), datagram_bytes, frames);
        prop_assert!(sent.iter().all(|it| it.len() <= datagram_bytes.max(60 + channels * 32)));
        let (batches, intake) = received("", sent);
        prop_assert_eq!(check(&batches), [(0, total)]);
        prop_assert_eq!(intake.refusals.total(), 0);
        let header = batches[0].frames().next().unwrap().header();
        prop_assert_eq!((header.format, header.channel_count as usize, header.sample_rate_hz), (format, channels, 48e3));
    }

    /// With times, all lost packets are counted.
    #[test]
    fn lost_packets_are_counted_to_the_sample(
        time in prop::sample::select(vec!["utc", "gps", "samples"]),
        keeps in prop::collection::vec(prop::bool::weighted(0.6), 150),
    ) {
        let mut sent = sent(&format!("time={time}"), 200, vec![batch(SampleFormat::Ci16, 1, 2.4e6, &[(0, 6_450)])]);
        let mut numbers = keeps.into_iter();
        let data: Vec<Vec<u8>> = sent.split_off(1);
        let total = data.len();
        prop_assert!((100..=150).contains(&total));
        let mut at = 0;
        // Losses at either end are invisible.
        let kept: Vec<Vec<u8>> = data.into_iter().filter(|_| {
            at += 1;
            numbers.next() == Some(true) || at == 1 || at == total
        }).collect();
        let received_packets = kept.len();
        let (batches, intake) = received("", sent.into_iter().chain(kept).collect());
        let counts = intake.tracker.counts();
        prop_assert_eq!(counts.lost_frames as usize + received_packets, total);
        prop_assert_eq!(counts.lost_samples + counts.samples, 6_450);
        let stretches = check(&batches);
        prop_assert_eq!(stretches.iter().map(|(_, length)| length).sum::<u64>(), counts.samples);
    }
}

#[test]
fn floats_with_the_lowest_byte_first_are_seen_and_the_name_says_otherwise() {
    let sample = |index: u32| (f64::from(index) * 0.1).sin() as f32 * 0.01;
    let packet = |number: u32| -> Vec<u8> {
        let samples: Vec<u8> =
            (number * 64..(number + 1) * 64).flat_map(|at| sample(at).to_le_bytes()).collect();
        let word = 1 << 28 | (number & 15) << 16 | (2 + 64);
        [&word.to_be_bytes()[..], &7u32.to_be_bytes(), &samples].concat()
    };
    let numbers = |query: &str| -> Vec<f32> {
        let (batches, _) = received(query, (0..4).map(packet).collect());
        let frames = batches.iter().flat_map(|batch| batch.frames());
        frames.flat_map(|frame| frame.channel::<f32>(0).unwrap().into_owned()).collect()
    };
    let expected: Vec<f32> = (0..256).map(sample).collect();
    assert_eq!(numbers("format=f32&rate=48k"), expected);
    assert_eq!(numbers("format=f32&rate=48k&order=le"), expected);
    let turned: Vec<f32> = expected.iter().map(|it| f32::from_bits(it.to_bits().swap_bytes())).collect();
    let asked = numbers("format=f32&rate=48k&order=be");
    assert!(asked.iter().zip(&turned).all(|(a, b)| a.to_bits() == b.to_bits()) && asked.len() == 256);
}
