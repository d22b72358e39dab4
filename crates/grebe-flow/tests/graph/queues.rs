//! Order, fan-out, drops, fused stages and memory.

use super::*;

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

#[test]
fn queues_that_hold_more_than_the_memory_that_is_left_are_refused() {
    let mut graph = Graph::new();
    let mut last = graph.add("source", ramp(1));
    for number in 0..1_000 {
        let next = graph.add(format!("{number}"), probe(|_| Ok(())).0);
        graph.connect(last, next, QueueOptions::block(1 << 20));
        last = next;
    }
    if cfg!(target_os = "linux") {
        let error = graph.start().unwrap_err();
        assert!(matches!(error, Error::Memory { .. }), "{error}");
    }
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
fn a_stages_own_pool_wakes_it() {
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
