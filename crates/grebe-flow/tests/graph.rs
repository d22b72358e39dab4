//! Graphs from start to end: order, fan-out, errors that travel, stopping.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use grebe_flow::{Context, Error, Graph, Inputs, Outcome, Outputs, QueueOptions, Stage, StageError};
use grebe_frame::{BatchPool, Header};

/// Makes `frames` frames of 8 samples, or goes on for ever.
struct Ramp {
    pool: Option<BatchPool>,
    sequence: u64,
    frames: u64,
}

fn ramp(frames: u64) -> Ramp {
    Ramp { pool: None, sequence: 0, frames }
}

impl Stage for Ramp {
    fn process(
        &mut self,
        _: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        if self.sequence == self.frames {
            return Ok(Outcome::End);
        }
        let pool = self.pool.get_or_insert_with(|| {
            let mut pool = BatchPool::new(ctx.batches_in_flight(), 4096);
            pool.wake_on_return(ctx.signal().clone());
            pool
        });
        let Some(mut batch) = ctx.acquire(pool) else { return Ok(Outcome::Produced) };
        let header = Header {
            sequence: self.sequence,
            channel_count: 1,
            block_length_samples: 8,
            first_sample_index: self.sequence * 8,
            ..Header::default()
        };
        batch.push(&header, |_, samples| samples.fill(self.sequence as i16))?;
        output.send(batch.freeze(), ctx);
        self.sequence += 1;
        Ok(Outcome::Produced)
    }
}

/// Hands sequences to the test; may be slow, fail, panic or hang.
struct Probe {
    out: Sender<u64>,
    on_frame: Box<dyn FnMut(u64) -> Result<(), StageError> + Send>,
    finished: Option<Sender<u64>>,
}

fn probe(on_frame: impl FnMut(u64) -> Result<(), StageError> + Send + 'static) -> (Probe, Receiver<u64>) {
    let (out, rx) = mpsc::channel();
    (Probe { out, on_frame: Box::new(on_frame), finished: None }, rx)
}

impl Stage for Probe {
    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        for frame in batch.frames() {
            let sequence = frame.header().sequence;
            (self.on_frame)(sequence)?;
            self.out.send(sequence)?;
        }
        output.send(batch, ctx);
        Ok(Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        if let Some(finished) = &self.finished {
            finished.send(u64::MAX)?;
        }
        Ok(())
    }
}

#[test]
fn every_consumer_of_a_fan_out_gets_everything_in_order_under_block() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(5_000));
    let (middle, through) = probe(|_| Ok(()));
    let (left, at_left) = probe(|_| Ok(()));
    let (right, at_right) = probe(|_| Ok(()));
    let (middle, left, right) =
        (graph.add("middle", middle), graph.add("left", left), graph.add("right", right));
    graph.connect(source, middle, QueueOptions::block(4));
    graph.connect(middle, left, QueueOptions::block(4));
    graph.connect(middle, right, QueueOptions::block(2));
    let snapshot = graph.start().unwrap().wait().unwrap();
    for seen in [through, at_left, at_right] {
        assert!(seen.into_iter().eq(0..5_000));
    }
    let stage = snapshot.stage("middle").unwrap();
    assert_eq!((stage.frames_in, stage.frames_out, stage.samples_in), (5_000, 5_000, 40_000));
    assert_eq!(snapshot.dropped_frames(), 0);
}

#[test]
fn a_consumer_that_sleeps_costs_the_other_nothing_and_its_drops_are_counted() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(2_000));
    let (fast, at_fast) = probe(|_| Ok(()));
    let (gate, opened) = mpsc::channel::<()>();
    let (slow, at_slow) = probe(move |_| {
        let _ = opened.recv();
        Ok(())
    });
    let (fast, slow) = (graph.add("fast", fast), graph.add("slow", slow));
    graph.connect(source, fast, QueueOptions::block(4));
    graph.connect(source, slow, QueueOptions::drop_oldest(4));
    let running = graph.start().unwrap();
    assert!(
        at_fast.iter().take(2_000).eq(0..2_000),
        "the fast consumer ends while the slow one stands still"
    );
    drop(gate);
    let snapshot = running.wait().unwrap();
    let seen: Vec<u64> = at_slow.into_iter().collect();
    let queue = snapshot.queues.iter().find(|queue| queue.to == "slow").unwrap();
    assert_eq!(seen.len() as u64 + queue.dropped_frames, 2_000);
    assert_eq!(queue.dropped_samples, queue.dropped_frames * 8);
    assert_eq!(seen.last(), Some(&1_999), "drop_oldest keeps the newest");
}

#[test]
fn a_failing_stage_ends_the_graph_and_is_named() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (good, _at_good) = probe(|_| Ok(()));
    let (bad, _at_bad) = probe(|sequence| if sequence == 100 { Err("disk full".into()) } else { Ok(()) });
    let (finished, was_finished) = mpsc::channel();
    let good = graph.add("good", Probe { finished: Some(finished), ..good });
    let bad = graph.add("recorder", bad);
    graph.connect(source, good, QueueOptions::block(4));
    graph.connect(source, bad, QueueOptions::block(4));
    let error = graph.start().unwrap().wait().unwrap_err();
    assert_eq!(error.to_string(), "recorder: disk full");
    assert_eq!(was_finished.recv(), Ok(u64::MAX), "the other sink was finished in order");
}

#[test]
fn a_panic_becomes_an_error_that_names_the_stage() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (bad, _rx) = probe(|sequence| if sequence == 3 { panic!("index 9 out of range") } else { Ok(()) });
    let bad = graph.add("mine", bad);
    graph.connect(source, bad, QueueOptions::block(4));
    let error = graph.start().unwrap().wait().unwrap_err();
    assert!(matches!(&error, Error::Panic { stage, .. } if stage == "mine"), "{error}");
    assert_eq!(error.to_string(), "mine panicked: index 9 out of range");
}

#[test]
fn stopping_drains_what_was_made() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (sink, seen) = probe(|_| Ok(()));
    let sink = graph.add("sink", sink);
    graph.connect(source, sink, QueueOptions::block(8));
    let running = graph.start().unwrap();
    seen.recv().unwrap();
    let snapshot = running.stop().unwrap();
    let made = snapshot.stage("ramp").unwrap().frames_out;
    assert!(made > 0);
    assert_eq!(seen.into_iter().count() as u64 + 1, made);
}

#[test]
fn a_stage_that_overstays_is_named_and_left_behind() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (gate, closed) = mpsc::channel::<()>();
    let (sink, seen) = probe(move |sequence| {
        if sequence == 1 {
            let _ = closed.recv();
        }
        Ok(())
    });
    let sink = graph.add("stuck", sink);
    graph.connect(source, sink, QueueOptions::block(8));
    let running = graph.start().unwrap();
    seen.recv().unwrap();
    let began = Instant::now();
    let error = running.stop().unwrap_err();
    assert!(matches!(&error, Error::Overstayed(stage, _) if stage == "stuck"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10));
    drop(gate);
}

#[test]
fn a_source_ends_when_nobody_listens_any_more() {
    struct Once;
    impl Stage for Once {
        fn process(
            &mut self,
            input: &mut Inputs,
            _: &mut Outputs,
            _: &mut Context,
        ) -> Result<Outcome, StageError> {
            Ok(if input.next().is_some() { Outcome::End } else { Outcome::WantsInput })
        }
    }
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let once = graph.add("once", Once);
    graph.connect(source, once, QueueOptions::block(2));
    graph.start().unwrap().wait().unwrap();
}

#[test]
fn wrong_graphs_are_refused_before_anything_runs() {
    let two = |same: bool| {
        let mut graph = Graph::new();
        let source = graph.add("a", ramp(1));
        let sink = graph.add(if same { "a" } else { "b" }, probe(|_| Ok(())).0);
        (graph, source, sink)
    };
    let (graph, ..) = two(true);
    assert_eq!(graph.start().unwrap_err().to_string(), "two stages are called 'a': give each its own name");
    let (graph, ..) = two(false);
    assert_eq!(graph.start().unwrap_err().to_string(), "stage 'a' is connected to nothing");
    let (mut graph, source, sink) = two(false);
    graph.connect(source, sink, QueueOptions::block(2));
    graph.connect(sink, source, QueueOptions::block(2));
    assert_eq!(
        graph.start().unwrap_err().to_string(),
        "stage 'a' is part of a cycle: a stream flows one way"
    );
}
