//! Tests a task's view of a graph: order, wake-ups, drops, and the end.

use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use futures_core::Stream;
use grebe_flow::{
    BatchStream, Context, Error, Graph, Inputs, Outcome, Outputs, QueueOptions, Running, Stage, StageResult,
};
use grebe_frame::{Batch, BatchPool, Header};
use tokio::time::timeout;

/// Makes one frame per permit, and ends when nobody can give another.
struct Numbered {
    pool: Option<BatchPool>,
    go: Receiver<Go>,
    sequence: u64,
}

enum Go {
    Frame,
    Fail,
}

fn numbered() -> (Numbered, Sender<Go>) {
    let (tx, go) = channel();
    (Numbered { pool: None, go, sequence: 0 }, tx)
}

/// Source with this many permits.
fn counting(frames: u64) -> Numbered {
    let (stage, go) = numbered();
    (0..frames).for_each(|_| go.send(Go::Frame).unwrap());
    stage
}

impl Stage for Numbered {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        let pool = self.pool.get_or_insert_with(|| ctx.pool(ctx.batches_in_flight(), 4096));
        match self.go.recv_timeout(Duration::from_millis(50)) {
            Ok(Go::Frame) => {}
            Ok(Go::Fail) => return Err("the device is gone".into()),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => return Ok(Outcome::Produced),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(Outcome::End),
        }
        let mut batch = pool.acquire().ok_or("the pool has a chunk for every place in a queue")?;
        let header = Header {
            sequence: self.sequence,
            channel_count: 1,
            block_length_samples: 8,
            ..Header::default()
        };
        batch.push::<i16>(&header, |_, samples| samples.fill(0))?;
        output.send(batch.freeze(), ctx);
        self.sequence += 1;
        Ok(Outcome::Produced)
    }
}

fn sequence(batch: &Batch) -> u64 {
    batch.frames().next().unwrap().header().sequence
}

/// A graph of a source, whose batches a task gets.
fn to_a_task(stage: impl Stage + 'static) -> (Running, BatchStream) {
    let mut graph = Graph::new();
    let source = graph.add("source", stage);
    let batches = graph.connect_async(source, "task", QueueOptions::block(4));
    (graph.start().unwrap(), batches)
}

/// Next batch. A lost wake-up fails the test.
async fn next(batches: &mut BatchStream) -> Option<u64> {
    let next = timeout(Duration::from_secs(30), batches.next()).await.expect("a wake-up was lost");
    next.as_ref().map(sequence)
}

async fn drain(batches: &mut BatchStream) -> Vec<u64> {
    let mut seen = Vec::new();
    while let Some(sequence) = next(batches).await {
        seen.push(sequence);
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_gets_every_batch_in_order_and_the_end() {
    let (running, mut batches) = to_a_task(counting(20_000));
    assert!(drain(&mut batches).await.into_iter().eq(0..20_000));
    assert_eq!((next(&mut batches).await, batches.counts()), (None, (20_000, 0)));
    let snapshot = running.wait().unwrap();
    assert_eq!(snapshot.stage("task").unwrap().frames_in, 20_000);
    let queue = &snapshot.queues[0];
    assert_eq!((queue.from.as_str(), queue.to.as_str(), queue.frames), ("source", "task", 20_000));
    assert_eq!((queue.capacity_batches, queue.capacity_bytes, queue.queued_bytes), (4, None, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_where_each_batch_waits_for_the_one_before() {
    let (stage, go) = numbered();
    let (running, mut batches) = to_a_task(stage);
    // On a thread of the runtime beside the stage's, so that they meet at every point of going to sleep.
    let task = tokio::spawn(async move {
        for expected in 0..10_000 {
            go.send(Go::Frame).unwrap();
            if expected % 3 == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(next(&mut batches).await, Some(expected));
        }
        drop(go);
        next(&mut batches).await
    });
    assert_eq!(task.await.unwrap(), None);
    running.wait().unwrap();
}

#[tokio::test]
async fn a_future_that_is_given_up_loses_nothing() {
    let (stage, go) = numbered();
    let (running, mut batches) = to_a_task(stage);
    let (mut seen, mut given_up) = (Vec::new(), 0);
    while seen.len() < 500 {
        tokio::select! {
            biased;
            batch = batches.next() => seen.push(sequence(&batch.unwrap())),
            // Nothing is ready yet: the future is dropped after one poll.
            () = std::future::ready(()) => {
                given_up += 1;
                go.send(Go::Frame).unwrap();
                tokio::task::yield_now().await;
            }
        }
    }
    drop(go);
    seen.extend(drain(&mut batches).await);
    let made = running.wait().unwrap().stages[0].frames_out;
    assert!(given_up > 0);
    assert_eq!(seen, (0..made).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_stalled_task_delays_nobody_if_its_queue_drops() {
    let mut graph = Graph::new();
    let source = graph.add("source", counting(1_000));
    let mut newest = graph.connect_async(source, "newest", QueueOptions::drop_oldest(4));
    let mut first = graph.connect_async(source, "first", QueueOptions::drop_latest(4));
    let snapshot = graph.start().unwrap().wait().unwrap();
    assert_eq!(snapshot.stage("source").unwrap().frames_out, 1_000);
    let held: Vec<_> =
        snapshot.queues.iter().map(|queue| (queue.queued_batches, queue.queued_bytes)).collect();
    assert_eq!(held, [(4, 4 * 4096); 2]);
    assert_eq!(snapshot.dropped_frames(), 2 * 996);
    assert_eq!((newest.counts(), first.counts()), ((1_000, 996), (4, 996)));
    assert_eq!(drain(&mut newest).await, [996, 997, 998, 999]);
    assert_eq!(drain(&mut first).await, [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_task_that_stands_still_under_block_does_not_keep_a_graph_from_stopping() {
    let (running, mut batches) = to_a_task(counting(1_000));
    assert_eq!(next(&mut batches).await, Some(0));
    let snapshot = tokio::task::spawn_blocking(|| running.stop()).await.unwrap().unwrap();
    let made = snapshot.stage("source").unwrap().frames_out;
    let seen = drain(&mut batches).await.len() as u64 + 1;
    assert_eq!(seen + batches.counts().1, made, "received and dropped batches");
    assert!(made < 1_000);
}

#[tokio::test]
async fn a_stream_that_is_dropped_ends_a_source_that_has_no_other_consumer() {
    let (stage, go) = numbered();
    let (running, mut batches) = to_a_task(stage);
    go.send(Go::Frame).unwrap();
    assert_eq!(next(&mut batches).await, Some(0));
    drop(batches);
    assert!(running.wait_timeout(Duration::from_secs(30)), "it has nobody to work for");
    running.wait().unwrap();
}

#[tokio::test]
async fn a_stage_that_fails_ends_the_stream_and_the_graph_says_why() {
    let (stage, go) = numbered();
    let (running, mut batches) = to_a_task(stage);
    go.send(Go::Frame).unwrap();
    go.send(Go::Fail).unwrap();
    assert_eq!(drain(&mut batches).await, [0]);
    let error = running.wait().unwrap_err().to_string();
    assert!(error.contains("source") && error.contains("the device is gone"), "{error}");
}

#[tokio::test]
async fn tasks_come_and_go_while_the_graph_runs() {
    let (stage, go) = numbered();
    let mut graph = Graph::new();
    let source = graph.add("source", stage);
    graph.open(source, 8);
    let running = graph.start().unwrap();
    let options = QueueOptions::drop_oldest(4);
    let (mut one, mut other) =
        (running.attach_async(source, options).unwrap(), running.attach_async(source, options).unwrap());
    go.send(Go::Frame).unwrap();
    assert_eq!((next(&mut one).await, next(&mut other).await), (Some(0), Some(0)));
    drop(one);
    go.send(Go::Frame).unwrap();
    assert_eq!(next(&mut other).await, Some(1));
    // It gets no more frames, but still the end.
    let mut idle = running.attach_async(source, options).unwrap();
    drop(go);
    assert_eq!((next(&mut other).await, next(&mut idle).await), (None, None));
    assert!(running.wait_timeout(Duration::from_secs(30)));
    let mut late = running.attach_async(source, options).unwrap();
    assert_eq!(next(&mut late).await, None, "the stage has ended");

    let refused = running.attach_async(source, QueueOptions::block(4)).unwrap_err();
    assert!(matches!(refused, Error::NotOpen(_)));
    let foreign = Graph::new().add("another", counting(0));
    assert!(matches!(running.attach_async(foreign, options), Err(Error::ForeignNode)));
}

#[tokio::test]
async fn a_node_of_another_graph_is_refused_at_the_start() {
    let foreign = Graph::new().add("another", counting(0));
    let mut graph = Graph::new();
    drop(graph.connect_async(foreign, "task", QueueOptions::block(4)));
    assert!(matches!(graph.start(), Err(Error::ForeignNode)));
}

#[tokio::test]
async fn an_async_end_implements_stream() {
    let (running, mut batches) = to_a_task(counting(3));
    let mut seen = Vec::new();
    while let Some(batch) = std::future::poll_fn(|cx| Pin::new(&mut batches).poll_next(cx)).await {
        seen.push(sequence(&batch));
    }
    assert_eq!(seen, [0, 1, 2]);
    running.wait().unwrap();
}

#[test]
fn a_thread_takes_every_batch_and_waits_for_the_next() {
    let (stage, go) = numbered();
    let mut graph = Graph::new();
    let source = graph.add("source", stage);
    let mut batches = graph.connect_async(source, "thread", QueueOptions::block(4));
    let running = graph.start().unwrap();
    assert!(!batches.wait(Duration::from_millis(20)) && batches.try_next().is_none() && !batches.is_ended());
    for expected in 0..1_000 {
        go.send(Go::Frame).unwrap();
        assert!(batches.wait(Duration::from_secs(30)), "a wake-up was lost");
        assert!(batches.wait(Duration::ZERO), "nothing was taken");
        assert_eq!(batches.try_next().as_ref().map(sequence), Some(expected));
    }
    assert!(running.take_error().is_none());
    go.send(Go::Fail).unwrap();
    assert!(batches.wait(Duration::from_secs(30)), "the end, too");
    assert!(batches.try_next().is_none() && batches.is_ended());
    assert!(running.wait_timeout(Duration::from_secs(30)));
    assert!(matches!(running.take_error(), Some(Error::Stage { stage, .. }) if stage == "source"));
    assert!(running.take_error().is_none(), "the error is reported once");
}

#[test]
fn a_thread_that_is_too_slow_knows_how_many_samples_it_missed() {
    let mut graph = Graph::new();
    let source = graph.add("source", counting(20));
    let mut batches = graph.connect_async(source, "thread", QueueOptions::drop_oldest(4));
    graph.start().unwrap().wait().unwrap();
    let seen: Vec<u64> = std::iter::from_fn(|| batches.try_next().as_ref().map(sequence)).collect();
    assert_eq!((seen, batches.dropped_samples()), ((16..20).collect(), 16 * 8));
}
