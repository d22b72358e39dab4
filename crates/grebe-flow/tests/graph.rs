//! Tests graphs from start to end: order, fan-out, errors, stopping.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Error, Graph, Inputs, Outcome, Outputs, Ports, QueueOptions, Stage, StageError, StageResult,
};
use grebe_frame::{Batch, BatchPool, Header};

/// Makes `frames` frames of 8 samples, or infinitely many.
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
        batch.push::<i16>(&header, |_, samples| samples.fill(self.sequence as i16))?;
        output.send(batch.freeze(), ctx);
        self.sequence += 1;
        Ok(Outcome::Produced)
    }
}

/// Passes sequence numbers to the test; may be slow, fail, panic or hang.
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
    let running = graph.start().unwrap();
    let observe = running.observer();
    let error = running.wait().unwrap_err();
    assert_eq!(error.to_string(), "recorder: disk full");
    let recorder = observe().stage("recorder").cloned().unwrap();
    assert_eq!((recorder.frames_in, recorder.samples_in), (100, 800), "not the one that it refused");
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
    // The sink has its second frame, at which it hangs.
    while running.snapshot().stage("stuck").unwrap().frames_in < 2 {
        std::thread::yield_now();
    }
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

    // A secondary stage does not keep the graph running.
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (beside, _seen) = probe(|_| Ok(()));
    let (once, beside) = (graph.add("once", Once), graph.add("beside", beside));
    graph.connect(source, once, QueueOptions::block(2));
    graph.connect(source, beside, QueueOptions::drop_oldest(2));
    graph.end_with(once);
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

#[test]
fn fused_stages_see_the_same_and_end_the_same() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(3_000));
    let (first, at_first) = probe(|_| Ok(()));
    let (second, at_second) = probe(|_| Ok(()));
    let (third, at_third) = probe(|_| Ok(()));
    let (first, second, third) =
        (graph.add("first", first), graph.add("second", second), graph.add("third", third));
    graph.connect(source, first, QueueOptions::block(4));
    graph.fuse(first, second);
    graph.fuse(second, third);
    let running = graph.start().unwrap();
    let snapshot = running.wait().unwrap();
    for seen in [at_first, at_second, at_third] {
        assert!(seen.into_iter().eq(0..3_000));
    }
    assert_eq!(snapshot.queues.len(), 1, "a fused stage costs no queue");
    assert_eq!(snapshot.stage("third").unwrap().samples_in, 24_000);
}

#[test]
fn a_failure_in_a_fused_chain_names_its_stage_and_finishes_the_others() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (bad, _seen) = probe(|sequence| if sequence == 50 { Err("no".into()) } else { Ok(()) });
    let (last, _at_last) = probe(|_| Ok(()));
    let (finished, was_finished) = mpsc::channel();
    let (bad, last) = (graph.add("bad", bad), graph.add("last", Probe { finished: Some(finished), ..last }));
    graph.fuse(source, bad);
    graph.fuse(bad, last);
    assert_eq!(graph.start().unwrap().wait().unwrap_err().to_string(), "bad: no");
    assert_eq!(was_finished.recv(), Ok(u64::MAX));
}

/// Pairs the frames of two inputs, and splits them into even and odd.
struct Pair {
    left: Option<u64>,
}

impl Stage for Pair {
    fn ports(&self) -> Ports {
        Ports { inputs: &["left", "right"], outputs: &["even", "odd"] }
    }

    fn process(
        &mut self,
        input: &mut Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> Result<Outcome, StageError> {
        if self.left.is_none() {
            let Some(batch) = input.pop(0) else { return Ok(Outcome::WantsInput) };
            self.left = batch.frames().next().map(|frame| frame.header().sequence);
        }
        let Some(right) = input.pop(1) else { return Ok(Outcome::WantsInput) };
        let sequence = right.frames().next().ok_or("empty")?.header().sequence;
        assert_eq!(self.left.take(), Some(sequence), "the two inputs are told apart");
        output.send_to((sequence % 2) as usize, right, ctx);
        Ok(Outcome::Produced)
    }
}

fn pairing() -> (Graph, Receiver<u64>, Receiver<u64>) {
    let mut graph = Graph::new();
    let (one, other) = (graph.add("one", ramp(1_000)), graph.add("other", ramp(1_000)));
    let pair = graph.add("pair", Pair { left: None });
    let ((even, at_even), (odd, at_odd)) = (probe(|_| Ok(())), probe(|_| Ok(())));
    let (even, odd) = (graph.add("even", even), graph.add("odd", odd));
    let queue = QueueOptions::block(4);
    // In another order than the names, which must not matter.
    graph.connect_ports((other, ""), (pair, "right"), queue).unwrap();
    graph.connect_ports((one, "out"), (pair, "left"), queue).unwrap();
    graph.connect_ports((pair, "odd"), (odd, ""), queue).unwrap();
    graph.connect_ports((pair, "even"), (even, ""), queue).unwrap();
    (graph, at_even, at_odd)
}

#[test]
fn named_inputs_and_outputs_lead_where_they_say() {
    let (graph, even, odd) = pairing();
    graph.start().unwrap().wait().unwrap();
    assert!(even.into_iter().eq((0..1_000).step_by(2)));
    assert!(odd.into_iter().eq((1..1_000).step_by(2)));
}

#[test]
fn the_stepper_runs_the_same_graph_without_a_thread() {
    let (graph, even, odd) = pairing();
    let mut stepper = graph.stepper().unwrap();
    assert!(stepper.step().unwrap());
    assert_eq!(even.try_iter().collect::<Vec<_>>(), [0], "a step is one call of each stage, upstream first");
    assert!(stepper.run().unwrap());
    assert_eq!(stepper.snapshot().stage("pair").unwrap().frames_in, 2_000);
    drop(stepper);
    assert!(even.into_iter().eq((2..1_000).step_by(2)));
    assert!(odd.into_iter().eq((1..1_000).step_by(2)));
}

#[test]
fn ports_that_do_not_fit_are_refused() {
    let queue = QueueOptions::block(2);
    let mut graph = Graph::new();
    let (one, pair) = (graph.add("one", ramp(1)), graph.add("pair", Pair { left: None }));
    let wrong = graph.connect_ports((one, ""), (pair, "middle"), queue).unwrap_err();
    assert_eq!(wrong.to_string(), "stage 'pair' has no port 'middle': it has left, right");
    graph.connect_ports((one, ""), (pair, "left"), queue).unwrap();
    assert_eq!(graph.check().unwrap_err().to_string(), "stage 'pair.right' is connected to nothing");
    graph.connect_ports((one, ""), (pair, "left"), queue).unwrap();
    assert_eq!(
        graph.check().unwrap_err().to_string(),
        "'pair.left' is connected twice: an input takes one queue"
    );
}

#[test]
fn consumers_come_and_go_and_the_others_lose_nothing() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    let (steady, seen) = probe(|_| Ok(()));
    let steady = graph.add("steady", steady);
    graph.connect(source, steady, QueueOptions::block(8));
    graph.open(source, 16);
    let running = graph.start().unwrap();
    for round in 0..1_000 {
        let (late, at_late) = probe(|_| Ok(()));
        let late = running.attach(source, "late", late, QueueOptions::drop_oldest(4)).unwrap();
        if round % 10 == 0 {
            assert!(at_late.recv_timeout(Duration::from_secs(10)).is_ok(), "a late consumer is served");
        }
        late.detach().unwrap();
    }
    let refused = running.attach(source, "late", probe(|_| Ok(())).0, QueueOptions::block(4)).unwrap_err();
    assert!(refused.to_string().contains("a policy that drops"));
    let snapshot = running.stop().unwrap();
    let made = snapshot.stage("ramp").unwrap().frames_out;
    assert!(seen.into_iter().eq(0..made));
    assert_eq!(snapshot.dropped_frames(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_thousand_starts_and_stops_leave_nothing_behind() {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let memory_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let once = || {
        let mut graph = Graph::new();
        let source = graph.add("ramp", ramp(u64::MAX));
        let (sink, seen) = probe(|_| Ok(()));
        let sink = graph.add("sink", sink);
        graph.connect(source, sink, QueueOptions::block(4));
        let running = graph.start().unwrap();
        seen.recv().unwrap();
        running.stop().unwrap();
    };
    (0..50).for_each(|_| once());
    let (files, memory) = (count("fd"), memory_kib());
    (0..1_000).for_each(|_| once());
    // Other tests of this process run at the same time. They may add some threads and descriptors, but not a
    // thousand.
    assert!(count("task") < 200, "{} threads", count("task"));
    assert!(count("fd") < files + 50, "{} descriptors, {files} before", count("fd"));
    assert!(memory_kib() < memory + 64 * 1024, "{} KiB, {memory} before", memory_kib());
}

/// Takes longer to close than a stage may take to return.
struct Closing(bool);

impl Stage for Closing {
    fn process(
        &mut self,
        input: &mut Inputs,
        _: &mut Outputs,
        _: &mut Context,
    ) -> Result<Outcome, StageError> {
        match input.next() {
            Some(_) if self.0 => Err("it cannot go on".into()),
            Some(_) => Ok(Outcome::Produced),
            None => Ok(Outcome::WantsInput),
        }
    }

    fn finish(&mut self, _: &mut Outputs, _: &mut Context) -> Result<(), StageError> {
        std::thread::sleep(Duration::from_millis(1_500));
        Ok(())
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if self.0 {
            std::thread::sleep(Duration::from_millis(1_500));
        }
    }
}

#[test]
fn a_stage_that_closes_what_it_wrote_takes_the_time_that_it_needs() {
    for fails in [false, true] {
        let mut graph = Graph::new();
        let source = graph.add("source", ramp(u64::MAX));
        let sink = graph.add("sink", Closing(fails));
        graph.connect(source, sink, QueueOptions::block(4));
        let running = graph.start().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let stopped = running.stop().map(drop).map_err(|error| error.to_string());
        assert_eq!(stopped, if fails { Err("sink: it cannot go on".to_owned()) } else { Ok(()) });
    }
}

#[test]
fn queues_that_hold_more_than_the_memory_that_is_left_are_refused() {
    let mut graph = Graph::new();
    let mut last = graph.add("source", ramp(1));
    for number in 0..1_000 {
        let next = graph.add(format!("{number}"), Closing(false));
        graph.connect(last, next, QueueOptions::block(1 << 20));
        last = next;
    }
    if cfg!(target_os = "linux") {
        let error = graph.start().unwrap_err();
        assert!(matches!(error, Error::Memory { .. }), "{error}");
    }
}

#[test]
fn what_is_queued_when_a_graph_is_stopped_is_drained_while_it_gets_on() {
    let mut graph = Graph::new();
    let source = graph.add("ramp", ramp(u64::MAX));
    // 32 frames at 50 ms each take more than twice the time allowed without progress.
    let (sink, seen) = probe(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Ok(())
    });
    let sink = graph.add("slow", sink);
    graph.connect(source, sink, QueueOptions::block(32));
    let running = graph.start().unwrap();
    seen.recv().unwrap();
    let snapshot = running.stop().unwrap();
    let made = snapshot.stage("ramp").unwrap().frames_out;
    assert!(made > 30, "the queue was full");
    assert_eq!(seen.into_iter().count() as u64 + 1, made);
}

/// Makes one batch more than it has chunks, from a pool without a wake-up, and reports the wake-ups of its
/// chunks.
struct Unhooked {
    pool: Option<BatchPool>,
    owners: mpsc::Sender<usize>,
}

impl Stage for Unhooked {
    fn process(&mut self, _: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let before = Arc::strong_count(ctx.signal());
        let mut pool = self.pool.take().unwrap_or_else(|| ctx.pool(1, 64));
        drop(ctx.acquire(&mut pool));
        self.owners.send(Arc::strong_count(ctx.signal()) - before)?;
        Ok(Outcome::End)
    }
}

#[test]
fn a_pool_of_a_stages_own_wakes_it_although_nobody_said_so() {
    for pool in [None, Some(BatchPool::new(1, 64))] {
        let (owners, told) = mpsc::channel();
        let mut graph = Graph::new();
        graph.add("unhooked", Unhooked { pool, owners });
        graph.start().unwrap().wait().unwrap();
        assert_eq!(told.recv().unwrap(), 1);
    }
}

/// Keeps each batch for one more step, like a stage without memory for it.
#[derive(Default)]
struct Hesitant {
    kept: Option<Batch>,
}

impl Stage for Hesitant {
    fn process(&mut self, input: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if let Some(batch) = self.kept.take() {
            output.send(batch, ctx);
            return Ok(Outcome::Produced);
        }
        self.kept = input.next();
        Ok(if self.kept.is_some() { Outcome::Again } else { Outcome::WantsInput })
    }
}

#[test]
fn a_stage_that_keeps_a_batch_is_called_again_after_the_end_of_its_input() {
    let mut bench = grebe_flow::StageBench::new(Hesitant::default()).unwrap();
    let mut pool = BatchPool::new(3, 4096);
    let mut seen = 0;
    for _ in 0..3 {
        let mut batch = pool.acquire().unwrap();
        let header = Header { channel_count: 1, block_length_samples: 4, ..Header::default() };
        batch.push::<i16>(&header, |_, samples| samples.fill(1)).unwrap();
        seen += bench.feed(batch.freeze()).unwrap().len();
    }
    seen += bench.end().unwrap().len();
    assert_eq!(seen, 3);
}

#[test]
fn a_node_of_another_graph_is_an_error_and_no_panic() {
    let (mut one, mut other) = (Graph::new(), Graph::new());
    let end = || Unhooked { pool: None, owners: mpsc::channel().0 };
    let (here, there) = (one.add("here", end()), other.add("there", end()));
    let named = one.connect_ports((here, "out"), (there, ""), QueueOptions::block(2)).unwrap_err();
    assert!(matches!(named, Error::ForeignNode), "{named}");
    one.connect(here, there, QueueOptions::block(2));
    assert!(matches!(one.check(), Err(Error::ForeignNode)));
    other.open(there, 2);
    let running = other.start().unwrap();
    let attached = running.attach(here, "late", end(), QueueOptions::drop_oldest(2));
    assert!(matches!(attached, Err(Error::ForeignNode)));
}
