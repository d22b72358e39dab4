//! Samples of every format, and descriptions, from end to end over every carrier, bit for bit.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageResult};
use grebe_frame::{Batch, BatchPool, Description, Header, SampleFormat, StreamTracker};
use grebe_stages::{PipeSink, PipeSource, UdpSink, UdpSource, Wire};

const FRAMES: u64 = 12;
const BLOCK: u32 = 8;
/// The frame with a new description.
const CHANGE: u64 = 7;

/// Makes frames of any format, one per batch. One is missing between the fourth and the fifth.
struct Made {
    format: SampleFormat,
    channels: u32,
    next: u64,
    pool: BatchPool,
}

impl Made {
    fn new(format: SampleFormat, channels: u32) -> Self {
        Self { format, channels, next: 0, pool: BatchPool::new(FRAMES as usize + 2, 65_536) }
    }
}

fn header(format: SampleFormat, channels: u32, frame: u64) -> Header {
    let skipped = u64::from(frame >= 4);
    Header {
        sequence: frame,
        producer_ts_ns: 1 + frame,
        channel_count: channels,
        format,
        block_length_samples: BLOCK,
        sample_rate_hz: 1e6,
        sg_drops_total: skipped * u64::from(BLOCK),
        first_sample_index: (frame + skipped) * u64::from(BLOCK),
    }
}

/// Random bytes, including NaN.
fn bytes(frame: u64, channel: usize, out: &mut [u8]) {
    let mut state = (frame + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (channel as u64) << 32;
    for byte in out {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
}

fn description(frame: u64) -> Description {
    let (name, first) = if frame < CHANGE { ("first", 0) } else { ("second", CHANGE + 1) };
    Description {
        name: Some(name.to_owned()),
        first_sample_index: first * u64::from(BLOCK),
        // Longer than a datagram.
        notes: Some(name.repeat(500)),
        ..Description::default()
    }
}

impl Stage for Made {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.next == FRAMES {
            return Ok(Outcome::End);
        }
        if self.next == 0 || self.next == CHANGE {
            self.pool.describe(Some(Arc::new(description(self.next))));
        }
        let mut batch = self.pool.acquire().unwrap();
        let header = header(self.format, self.channels, self.next);
        batch.push_bytes(&header, |channel, out| bytes(self.next, channel, out))?;
        self.next += 1;
        output.send(batch.freeze(), ctx);
        Ok(Outcome::Produced)
    }
}

/// Keeps every batch.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Batch>>>);

impl Stage for Kept {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        self.0.lock().unwrap().push(batch);
        Ok(Outcome::Produced)
    }
}

impl Kept {
    fn check(&self, format: SampleFormat, channels: u32) {
        let what = format!("{format} in {channels} channels");
        let (mut said, mut tracker, mut frames) = (Vec::<Arc<Description>>::new(), StreamTracker::new(), 0);
        for batch in self.0.lock().unwrap().iter() {
            said.extend(batch.description().cloned());
            for frame in batch.frames() {
                let is = frame.header();
                tracker.arrive(&is);
                let sequence = is.sequence;
                assert_eq!(is, header(format, channels, sequence), "{what}");
                let mut expected = vec![0; BLOCK as usize * format.bytes()];
                for channel in 0..channels as usize {
                    bytes(sequence, channel, &mut expected);
                    assert_eq!(frame.channel_bytes(channel), Ok(&expected[..]), "{what}, frame {sequence}");
                }
                let holds = said.iter().rev().find(|said| said.first_sample_index <= is.first_sample_index);
                assert_eq!(
                    holds.map(|said| &**said),
                    Some(&description(sequence)),
                    "{what}, frame {sequence}"
                );
                frames += 1;
            }
        }
        assert_eq!(frames, FRAMES, "{what}");
        let counts = tracker.counts();
        assert_eq!((counts.lost_samples, counts.generator_samples), (0, BLOCK.into()), "{what}");
    }
}

fn through(source: impl Stage + 'static, sink: impl Stage + 'static) -> Graph {
    let mut graph = Graph::new();
    let (source, sink) = (graph.add("source", source), graph.add("sink", sink));
    graph.connect(source, sink, QueueOptions::block(4));
    graph
}

/// All formats in parallel, each in 1, 2, 8 and 64 channels.
fn each(check: impl Fn(SampleFormat, u32) + Sync) {
    std::thread::scope(|scope| {
        for format in SampleFormat::ALL {
            let check = &check;
            scope.spawn(move || [1, 2, 8, 64].map(|channels| check(format, channels)));
        }
    });
}

#[test]
fn samples_of_every_kind_go_by_udp() {
    each(|format, channels| {
        let kept = Kept::default();
        let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &Default::default()).unwrap();
        let sink = UdpSink::connect(source.local_addr().unwrap(), &Default::default()).unwrap();
        let receiving = through(source, kept.clone()).start().unwrap();
        through(Made::new(format, channels), sink).start().unwrap().wait().unwrap();
        receiving.wait().unwrap();
        kept.check(format, channels);
    });
}

#[test]
fn unreadable_descriptions_are_counted_and_samples_continue() {
    let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &Default::default()).unwrap();
    let to = source.local_addr().unwrap();
    let kept = Kept::default();
    let receiving = through(source, kept.clone()).start().unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let foreign = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let format = SampleFormat::F32;
    for frame in 0..=FRAMES {
        let is_end = frame == FRAMES;
        let header =
            Header { block_length_samples: if is_end { 0 } else { BLOCK }, ..header(format, 1, frame) };
        let mut said = description(frame).frames(&header, 600).unwrap();
        let mut damaged = said[0].clone();
        damaged[frame as usize * 5] ^= 0x55;
        if frame == 0 || frame == CHANGE {
            // Out of order, and twice.
            said.reverse();
            for part in said.iter().chain(&said) {
                socket.send_to(part, to).unwrap();
            }
        }
        socket.send_to(&damaged, to).unwrap();
        socket.send_to(&said[0][..70], to).unwrap();
        foreign.send_to(&Description::default().frames(&header, 600).unwrap()[0], to).unwrap();
        let mut batch = BatchPool::new(1, 65_536).acquire().unwrap();
        batch.push_bytes(&header, |channel, out| bytes(frame, channel, out)).unwrap();
        socket.send_to(&batch.chunk()[..header.frame_bytes()], to).unwrap();
        if frame == 0 {
            // This sender owns the stream from here on.
            while kept.0.lock().unwrap().is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
    let report = receiving.wait().unwrap();
    kept.check(format, 1);
    let count = |name: &str| report.stage("source").unwrap().own(name).unwrap();
    assert_eq!(count("refused_truncated"), FRAMES + 1);
    let refused: u64 = ["magic", "header_bytes", "crc", "kind", "sample_format"]
        .map(|reason| count(&format!("refused_{reason}")))
        .iter()
        .sum();
    assert_eq!(refused, FRAMES + 1, "each that was damaged, once");
    assert_eq!(count("foreign_datagrams"), FRAMES);
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn samples_of_every_kind_go_through_pipes() {
    each(|format, channels| {
        let written = Written::default();
        through(Made::new(format, channels), PipeSink::new(written.clone())).start().unwrap().wait().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&written.0.lock().unwrap()).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let kept = Kept::default();
        through(PipeSource::new(file), kept.clone()).start().unwrap().wait().unwrap();
        kept.check(format, channels);
    });
}

/// Reads as a receiver of the first GFH2.
#[test]
fn a_wire_for_receivers_of_the_first_gfh2_carries_nothing_that_they_do_not_know() {
    let written = Written::default();
    let sink = || PipeSink::new(written.clone()).wire(Wire::Gfh2);
    through(Made::new(SampleFormat::I16, 8), sink()).start().unwrap().wait().unwrap();
    let bytes = written.0.lock().unwrap().clone();
    let (mut at, mut frames) = (0, 0);
    while at < bytes.len() {
        let word = |offset: usize| u32::from_le_bytes(bytes[at + offset..][..4].try_into().unwrap());
        assert_eq!((word(0), word(24)), (0x3248_4647, 8), "magic and channel_count of frame {frames}");
        assert_eq!(word(32), 8 * word(28) * 2, "payload_bytes of frame {frames}");
        at += 64 + word(32) as usize;
        frames += 1;
    }
    assert_eq!(frames, FRAMES + 1, "the end, too");
    for (format, channels) in [(SampleFormat::I16, 9), (SampleFormat::Cf32, 1)] {
        let to = "127.0.0.1:9".parse().unwrap();
        let udp = UdpSink::connect(to, &Default::default()).unwrap().wire(Wire::Gfh2);
        for graph in [through(Made::new(format, channels), sink()), through(Made::new(format, channels), udp)]
        {
            let error = graph.start().unwrap().wait().unwrap_err().to_string();
            assert!(error.contains(&format!("{format} in {channels} channels")), "{error}");
        }
    }
    assert_eq!(written.0.lock().unwrap().len(), bytes.len(), "nothing of a refused batch");
}

#[cfg(target_os = "linux")]
#[test]
fn samples_of_every_kind_go_through_shared_memory() {
    use grebe_shm::{Policy, PublisherOptions, SubscriberOptions};
    use grebe_stages::{ShmSink, ShmSource};

    let folder = tempfile::tempdir().unwrap();
    each(|format, channels| {
        let name = format!("{format}-{channels}");
        let options = PublisherOptions {
            chunk_bytes: 65_536,
            chunks: 64,
            // Reserved chunks of a reader's share, a quarter, are never given back.
            reserve_chunks: 12,
            rest_chunks: Some(4),
            directory: Some(folder.path().to_owned()),
            ..PublisherOptions::default()
        };
        let sink = ShmSink::create(&name, options).unwrap();
        let options = SubscriberOptions {
            policy: Policy::Block,
            directory: Some(folder.path().to_owned()),
            ..SubscriberOptions::default()
        };
        let source = ShmSource::connect(&name, &options).unwrap();
        assert!(sink.wait_for_consumers(1, Duration::from_secs(20)));
        let kept = Kept::default();
        let receiving = through(source, kept.clone()).start().unwrap();
        through(Made::new(format, channels), sink).start().unwrap().wait().unwrap();
        receiving.wait().unwrap();
        kept.check(format, channels);
    });
}
