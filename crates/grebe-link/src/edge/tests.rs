//! Tests two graphs in one process, joined by pipes like two hosts.

use std::io::{PipeReader, PipeWriter, pipe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use grebe_flow::{Context, Graph, Inputs, Outcome, Outputs, QueueOptions, Running, Stage, StageResult};
use grebe_frame::{BatchPool, Description, Header, SampleFormat};
use proptest::prelude::*;

use super::message::{Head, Kind};
use super::*;

/// Makes frames of 100 counting samples, described at the start and again halfway.
struct Count {
    frames: u64,
    made: u64,
    pool: BatchPool,
}

impl Count {
    fn new(frames: u64) -> Self {
        Self { frames, made: 0, pool: BatchPool::new(512, 4096) }
    }
}

impl Stage for Count {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if self.made == self.frames {
            return Ok(Outcome::End);
        }
        let Some(mut batch) = ctx.acquire(&mut self.pool) else { return Ok(Outcome::Produced) };
        let header = header_at(self.made);
        let half = u64::from(self.made >= self.frames / 2);
        let about = Description {
            notes: Some(format!("half {half}")),
            first_sample_index: half * self.frames / 2 * 100,
            ..Description::default()
        };
        batch.describe(Some(&Arc::new(about)));
        let first = header.first_sample_index as i32;
        batch.push::<i32>(&header, |_, out| (first..).zip(out).for_each(|(value, out)| *out = value))?;
        self.made += 1;
        output.send(batch.freeze(), ctx);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        // Ten samples that it could not make any more.
        let end = header_at(self.made);
        ctx.set_end_of_stream(Header {
            first_sample_index: end.first_sample_index + 10,
            sg_drops_total: 10,
            ..end
        });
        Ok(())
    }
}

fn header_at(frame: u64) -> Header {
    Header {
        sequence: frame,
        channel_count: 1,
        format: SampleFormat::I32,
        block_length_samples: 100,
        first_sample_index: frame * 100,
        sample_rate_hz: 1e6,
        ..Header::default()
    }
}

/// Data seen by a stage.
#[derive(Debug, Default, Clone, PartialEq)]
struct Seen {
    samples: Vec<i32>,
    indices: Vec<u64>,
    descriptions: Vec<String>,
    end: Option<(u64, u64)>,
}

struct Collect {
    seen: Arc<Mutex<Seen>>,
    /// Takes nothing until it is set.
    may: Arc<AtomicBool>,
    /// Ends after this many frames.
    most: usize,
    /// Pauses after this many frames, until `may` is set.
    pauses_at: usize,
}

impl Stage for Collect {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        if !self.may.load(Ordering::Acquire) {
            ctx.waiting(|| thread::sleep(Duration::from_millis(1)));
            return Ok(Outcome::Produced);
        }
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        let mut seen = self.seen.lock().unwrap();
        for frame in batch.frames() {
            seen.samples.extend(frame.channel::<i32>(0)?.iter());
            seen.indices.push(frame.header().first_sample_index);
        }
        if seen.indices.len() == self.pauses_at {
            self.may.store(false, Ordering::Release);
        }
        let said = batch.description().and_then(|it| it.notes.clone()).unwrap_or_default();
        if seen.descriptions.last() != Some(&said) {
            seen.descriptions.push(said);
        }
        Ok(if seen.indices.len() >= self.most { Outcome::End } else { Outcome::Produced })
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let end = ctx.end_of_stream(None);
        self.seen.lock().unwrap().end = end.map(|end| (end.first_sample_index, end.sg_drops_total));
        Ok(())
    }
}

/// Runs one end of a connection.
fn connect(
    outbox: &Arc<Outbox>,
    routes: Routes,
    (from, to): (PipeReader, PipeWriter),
) -> thread::JoinHandle<()> {
    let (reads, writes) = (outbox.clone(), outbox.clone());
    let line = outbox.connect();
    thread::spawn(move || writes.write_to(line, to));
    thread::spawn(move || {
        // A connection cut by a test may end within a message.
        let read = read_messages(from, &routes, &reads, line, |_| {});
        if reads.has(line) {
            reads.close();
            read.unwrap();
        }
    })
}

/// Sends `frames` from one graph to another, optionally through an intermediate process.
struct Joined {
    producer: Running,
    consumer: Running,
    seen: Arc<Mutex<Seen>>,
    may: Arc<AtomicBool>,
    _outboxes: Vec<Arc<Outbox>>,
}

const LINK: u16 = 7;

fn link_route(outbox: &Arc<Outbox>) -> Arc<LinkRoute> {
    Arc::new(LinkRoute::new(LINK, outbox.clone()))
}

impl Joined {
    fn start(frames: u64, queue: QueueOptions, most: usize, is_relayed: bool, may: bool) -> Self {
        let [producing, consuming] = [(); 2].map(|()| Arc::new(Outbox::default()));
        let inbox = Arc::new(Inbox::default());
        let mut outboxes = vec![producing.clone(), consuming.clone()];
        let (one, other) = crossed();
        connect(&producing, Routes::from([(LINK, Route::Out)]), one);
        let last = match is_relayed {
            false => other,
            true => {
                let [left, right] = [(); 2].map(|()| Arc::new(Outbox::default()));
                let (third, last) = crossed();
                connect(&left, Routes::from([(LINK, Route::Relay(right.clone()))]), other);
                connect(&right, Routes::from([(LINK, Route::Relay(left.clone()))]), third);
                outboxes.extend([left, right]);
                last
            }
        };
        connect(&consuming, Routes::from([(LINK, Route::In(inbox.clone()))]), last);

        let mut graph = Graph::new();
        let source = graph.add("source", Count::new(frames));
        let out = graph.add("out", LinkOut::new(link_route(&producing), 16, false));
        graph.connect(source, out, queue);
        let producer = graph.start().unwrap();
        let (seen, may) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(may)));
        let mut graph = Graph::new();
        let into = graph.add("in", LinkIn::new(inbox, link_route(&consuming), None));
        let sink = graph
            .add("sink", Collect { seen: Arc::clone(&seen), may: may.clone(), most, pauses_at: usize::MAX });
        graph.connect(into, sink, QueueOptions::block(4));
        Self { producer, consumer: graph.start().unwrap(), seen, may, _outboxes: outboxes }
    }
}

#[test]
fn an_edge_between_graphs_carries_every_sample_and_description() {
    for is_relayed in [false, true] {
        let joined = Joined::start(2_000, QueueOptions::block(8), usize::MAX, is_relayed, true);
        joined.producer.wait().unwrap();
        joined.consumer.wait().unwrap();
        let seen = joined.seen.lock().unwrap().clone();
        assert_eq!(seen.samples, (0..200_000).collect::<Vec<i32>>());
        assert_eq!(seen.descriptions, ["half 0", "half 1"]);
        assert_eq!(seen.end, Some((200_010, 10)), "what the source said of its end");
    }
}

#[test]
fn a_stalled_consumer_costs_by_its_policy_within_the_window() {
    for is_relayed in [false, true] {
        let joined = Joined::start(300, QueueOptions::drop_oldest(8), usize::MAX, is_relayed, false);
        // The source has ended long before anything is taken.
        let produced = |snapshot: &grebe_flow::Snapshot| snapshot.stage("source").unwrap().frames_out;
        while produced(&joined.producer.snapshot()) < 300 {
            thread::sleep(Duration::from_millis(5));
        }
        joined.may.store(true, Ordering::Release);
        let dropped = joined.producer.wait().unwrap().dropped_frames();
        joined.consumer.wait().unwrap();
        let seen = joined.seen.lock().unwrap().clone();
        assert_eq!(seen.indices.len() as u64 + dropped, 300, "what was dropped is counted");
        // The window, the small queue and the stages there, and the edge's own queue.
        assert!(seen.indices.len() <= 16 + 4 + 2 + 8 + 2, "{}", seen.indices.len());
        assert_eq!(seen.indices.last(), Some(&29_900), "the newest was kept");
    }
}

#[test]
fn a_consumer_that_has_enough_ends_its_producer() {
    for is_relayed in [false, true] {
        let joined = Joined::start(u64::MAX, QueueOptions::block(8), 50, is_relayed, true);
        joined.consumer.wait().unwrap();
        joined.producer.wait().unwrap();
        assert_eq!(joined.seen.lock().unwrap().indices.len(), 50);
    }
}

#[test]
fn a_stopped_graph_drains_the_data_of_another_until_its_end() {
    let joined = Joined::start(u64::MAX, QueueOptions::block(8), usize::MAX, false, true);
    while joined.seen.lock().unwrap().indices.len() < 100 {
        thread::sleep(Duration::from_millis(1));
    }
    joined.consumer.end_sources();
    let before = joined.seen.lock().unwrap().indices.len();
    while joined.seen.lock().unwrap().indices.len() < before + 100 {
        thread::sleep(Duration::from_millis(1));
    }
    let sent = joined.producer.stop().unwrap().stage("out").unwrap().frames_in;
    joined.consumer.wait().unwrap();
    assert_eq!(joined.seen.lock().unwrap().indices.len() as u64, sent, "what was under way came");
}

#[test]
fn a_peer_that_exceeds_its_credit_is_cut_off() {
    let inbox = Arc::new(Inbox::default());
    let routes = Routes::from([(1, Route::In(inbox))]);
    let message =
        [&Head { kind: Kind::Frames, link: 1, length: 1 << 20 }.to_bytes()[..], &[0; 1 << 20]].concat();
    let answers = Outbox::default();
    let line = answers.connect();
    // Twice the window, because data of the previous epoch may still be waiting.
    let read = read_messages(&message.repeat(34)[..], &routes, &answers, line, |_| {});
    assert!(matches!(read, Err(BadLink::Window(1))), "{read:?}");
    let other = Head { kind: Kind::Closed, link: 2, length: 0 }.to_bytes();
    let read = read_messages(&other[..], &routes, &answers, line, |_| {});
    assert!(matches!(read, Err(BadLink::Link(2))), "{read:?}");
}

/// A connection that can be cut: the parts at its two ends.
fn crossed() -> ((PipeReader, PipeWriter), (PipeReader, PipeWriter)) {
    let ((here, there), (back, forth)) = (pipe().unwrap(), pipe().unwrap());
    ((here, forth), (back, there))
}

/// A consumer, like in another process.
struct Consumer {
    running: Running,
    inbox: Arc<Inbox>,
    outbox: Arc<Outbox>,
    seen: Arc<Mutex<Seen>>,
}

impl Consumer {
    fn start(end: (PipeReader, PipeWriter), behind: Option<u32>, pauses_at: usize) -> Self {
        let (outbox, inbox) = (Arc::new(Outbox::kept()), Arc::new(Inbox::default()));
        connect(&outbox, Routes::from([(LINK, Route::In(inbox.clone()))]), end);
        let (seen, may) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(true)));
        let mut graph = Graph::new();
        let into = graph.add("in", LinkIn::new(inbox.clone(), link_route(&outbox), behind));
        let sink = graph.add("sink", Collect { seen: Arc::clone(&seen), may, most: usize::MAX, pauses_at });
        graph.connect(into, sink, QueueOptions::block(4));
        Self { running: graph.start().unwrap(), inbox, outbox, seen }
    }

    fn await_frames(&self, frames: usize) {
        while self.seen.lock().unwrap().indices.len() < frames {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn produce(outbox: &Arc<Outbox>, frames: u64, queue: QueueOptions, is_again: bool) -> Running {
    let mut graph = Graph::new();
    let source = graph.add("source", Count::new(frames));
    let out = graph.add("out", LinkOut::new(link_route(outbox), 16, is_again));
    graph.connect(source, out, queue);
    graph.start().unwrap()
}

#[test]
fn a_returning_consumer_continues_and_losses_are_counted() {
    let producing = Arc::new(Outbox::kept());
    let (one, other) = crossed();
    connect(&producing, Routes::from([(LINK, Route::Out)]), one);
    let first = Consumer::start(other, None, 100);
    let producer = produce(&producing, 3_000, QueueOptions::block(8), false);
    // Until the window is full.
    while producer.snapshot().stage("out").unwrap().frames_in < 100 + 16 {
        thread::sleep(Duration::from_millis(1));
    }
    first.await_frames(100);
    producing.hang_up();
    first.outbox.hang_up();
    drop(first.running);
    let (one, other) = crossed();
    connect(&producing, Routes::from([(LINK, Route::Out)]), one);
    let second = Consumer::start(other, Some(1), usize::MAX);
    // Data of an epoch before its start is not for it.
    producing.join(LINK, 1);
    producing.join(LINK, 2);
    let counted = producer.wait().unwrap();
    second.running.wait().unwrap();
    let (before, after) = (first.seen.lock().unwrap().clone(), second.seen.lock().unwrap().clone());
    let out = counted.stage("out").unwrap();
    let own = |name| out.own(name).unwrap();
    let (frames, samples) = (own("unconfirmed_frames"), own("unconfirmed_samples"));
    assert!((1..=64).contains(&frames) && samples == 100 * frames, "{frames}");
    assert_eq!(before.indices, (0..10_000).step_by(100).collect::<Vec<_>>());
    let begin = after.indices[0];
    assert_eq!(after.indices, (begin..300_000).step_by(100).collect::<Vec<_>>());
    assert_eq!(after.samples, (begin as i32..300_000).collect::<Vec<_>>());
    // Data that the dead process had taken and not processed is uncounted; its links and queues have room for
    // this much.
    let missing = begin / 100 - 100;
    assert!(frames <= missing && missing <= frames + 16, "{frames} of {missing}");
    assert_eq!(after.descriptions, ["half 0", "half 1"], "it has the descriptions");
    assert_eq!(after.end, Some((300_010, 10)));
}

#[test]
fn a_returning_producer_continues_the_stream_after_a_gap() {
    let (one, other) = crossed();
    let producing = Arc::new(Outbox::kept());
    connect(&producing, Routes::from([(LINK, Route::Out)]), one);
    let consumer = Consumer::start(other, None, usize::MAX);
    let first = produce(&producing, u64::MAX, QueueOptions::block(8), false);
    consumer.await_frames(100);
    consumer.outbox.hang_up();
    producing.hang_up();
    drop(first);
    let before = consumer.seen.lock().unwrap().indices.len();
    let again = Arc::new(Outbox::kept());
    let (one, other) = crossed();
    connect(&again, Routes::from([(LINK, Route::Out)]), one);
    // The stage and its inbox stay.
    let inbox = consumer.inbox.clone();
    connect(&consumer.outbox, Routes::from([(LINK, Route::In(inbox))]), other);
    let second = produce(&again, 200, QueueOptions::block(8), true);
    again.join(LINK, 1);
    second.wait().unwrap();
    consumer.running.wait().unwrap();
    let seen = consumer.seen.lock().unwrap().clone();
    let (old, new) = seen.indices.split_at(seen.indices.len() - 200);
    assert!(old.len() >= before.min(100));
    assert!(old.windows(2).all(|pair| pair[1] == pair[0] + 100));
    assert!(new.windows(2).all(|pair| pair[1] == pair[0] + 100));
    assert!(new[0] >= old.last().unwrap() + 100, "it goes on where it was, or later");
    assert_eq!(seen.samples[seen.samples.len() - 20_000..], (0..20_000).collect::<Vec<i32>>());
    assert_eq!(seen.end, Some((new[199] + 110, 10)), "what its end says is shifted, too");
}

/// Moves both ends of a link to another connection, after reading everything on the previous one.
fn turn(
    leads: &[Arc<LinkRoute>; 2],
    inbox: &Arc<Inbox>,
    before: &Arc<Outbox>,
    reader: thread::JoinHandle<()>,
    epoch: u32,
) -> (Arc<Outbox>, thread::JoinHandle<()>) {
    let [producing, consuming] = [(); 2].map(|()| Arc::new(Outbox::kept()));
    leads[0].turn(&producing);
    before.hang_up();
    reader.join().unwrap();
    leads[1].turn(&consuming);
    let (one, other) = crossed();
    connect(&producing, Routes::from([(LINK, Route::Out)]), one);
    let reader = connect(&consuming, Routes::from([(LINK, Route::In(inbox.clone()))]), other);
    producing.join(LINK, epoch);
    (producing, reader)
}

#[test]
fn a_link_continues_over_another_connection_and_counts_losses() {
    let [first, consuming] = [(); 2].map(|()| Arc::new(Outbox::kept()));
    let (inbox, leads) = (Arc::new(Inbox::default()), [&first, &consuming].map(link_route));
    let (one, other) = crossed();
    connect(&first, Routes::from([(LINK, Route::Out)]), one);
    let mut reader = connect(&consuming, Routes::from([(LINK, Route::In(inbox.clone()))]), other);
    let (seen, may) = (Arc::<Mutex<Seen>>::default(), Arc::new(AtomicBool::new(true)));
    let mut graph = Graph::new();
    let into = graph.add("in", LinkIn::new(inbox.clone(), leads[1].clone(), None));
    let collect = Collect { seen: seen.clone(), may: may.clone(), most: usize::MAX, pauses_at: 100 };
    let sink = graph.add("sink", collect);
    graph.connect(into, sink, QueueOptions::block(4));
    let consumer = graph.start().unwrap();
    let mut graph = Graph::new();
    let source = graph.add("source", Count::new(3_000));
    let out = graph.add("out", LinkOut::new(leads[0].clone(), 16, false));
    graph.connect(source, out, QueueOptions::block(8));
    let producer = graph.start().unwrap();
    // Until the window is full.
    while producer.snapshot().stage("out").unwrap().frames_in < 100 + 16 {
        thread::sleep(Duration::from_millis(1));
    }
    let (mut before, mut frames) = (first, 0);
    for epoch in 1..=3 {
        (before, reader) = turn(&leads, &inbox, &before, reader, epoch);
        may.store(true, Ordering::Release);
        frames += 500;
        while seen.lock().unwrap().indices.len() < frames {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let counted = producer.wait().unwrap();
    consumer.wait().unwrap();
    let seen = seen.lock().unwrap().clone();
    assert!(seen.indices.windows(2).all(|pair| pair[0] < pair[1]), "each frame once, in order");
    let expected = seen.indices.iter().flat_map(|&index| index as i32..index as i32 + 100);
    assert_eq!(seen.samples, expected.collect::<Vec<_>>());
    assert_eq!(seen.end, Some((300_010, 10)));
    let own = |name| counted.stage("out").unwrap().own(name).unwrap();
    let (unconfirmed, missing) = (own("unconfirmed_frames"), 3_000 - seen.indices.len() as u64);
    assert!((1..=3 * 16).contains(&unconfirmed), "{unconfirmed}");
    // Includes data that arrived unconfirmed.
    assert!(missing <= unconfirmed, "{missing} of {unconfirmed}");
    assert_eq!(own("unconfirmed_samples"), 100 * unconfirmed);
}

#[test]
fn the_end_of_a_stream_that_may_begin_again_waits() {
    let outbox = Outbox::default();
    outbox.hold_ends();
    outbox.end(LINK, Vec::new(), true);
    // The end of a source that ended by itself is not held.
    outbox.end(LINK + 1, Vec::new(), false);
    // Nothing more is taken of another one.
    outbox.leave_link(LINK + 2, true);
    outbox.leave_link(LINK + 3, false);
    let mut written = Vec::new();
    let sorted = |written: &[u8]| {
        let (mut at, mut kinds) = (0, Vec::new());
        while at < written.len() {
            let head = Head::parse(*written[at..].first_chunk().unwrap()).unwrap();
            kinds.push((head.kind, head.link));
            at += Head::BYTES + head.length as usize;
        }
        kinds.sort_by_key(|&(_, link)| link);
        kinds
    };
    outbox.finish();
    outbox.write_to(outbox.connect(), &mut written).unwrap();
    assert_eq!(sorted(&written), [(Kind::End, LINK + 1), (Kind::Closed, LINK + 3)]);
    written.clear();
    outbox.release_ends();
    outbox.write_to(outbox.connect(), &mut written).unwrap();
    assert_eq!(sorted(&written), [(Kind::End, LINK), (Kind::Closed, LINK + 2)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Text arrives as it was sent, however the connection splits it. A connection that ends within a text
    /// reports that.
    #[test]
    fn words_come_whole_or_not_at_all(said in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8), cut in any::<prop::sample::Index>()) {
        let outbox = Outbox::default();
        said.iter().for_each(|words| outbox.say(words.clone()));
        outbox.finish();
        let mut written = Vec::new();
        outbox.write_to(outbox.connect(), &mut written).unwrap();
        let mut heard = Vec::new();
        let answers = Outbox::default();
        let line = answers.connect();
        read_messages(&written[..], &Routes::new(), &answers, line, |words| heard.push(words.to_vec())).unwrap();
        prop_assert_eq!(&heard, &said);
        let cut = cut.index(written.len() + 1);
        let mut heard = Vec::new();
        let read = read_messages(&written[..cut], &Routes::new(), &answers, line, |words| heard.push(words.to_vec()));
        prop_assert_eq!(&heard[..], &said[..heard.len()]);
        let is_between = said.iter().scan(0, |at, words| { *at += Head::BYTES + words.len(); Some(*at) }).any(|at| at == cut);
        prop_assert_eq!(read.is_ok(), cut == 0 || is_between);
    }
}
