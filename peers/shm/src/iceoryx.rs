//! iceoryx2 as a way: a sample is what a chunk is to grebe, frames back to back.

use std::io::{BufRead as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use grebe_bench::shm::{Checker, Job, Made, Maker, Plan, Row, Scenario, Seen};
use grebe_frame::{HEADER_BYTES, Header};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory as Stream;

type Failure = Box<dyn std::error::Error>;

/// One run of the scenario.
pub fn run(plan: &Plan, scenario: Scenario, spawn: impl Fn() -> Command) -> Result<Row, Failure> {
    let row = grebe_bench::shm::run_other(
        plan,
        scenario,
        |job| start(plan, job, scenario, &spawn).map_err(refused("start")),
        |job, running| produce(job, running).map_err(refused("run")),
    )?;
    Ok(Row { name: "iceoryx2".to_owned(), ..row })
}

/// A consumer's process: its job comes on standard input, what it saw goes to standard output.
pub fn consume() -> Result<(), Failure> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let job: Job = serde_json::from_str(&line)?;
    job.settle();
    let node = node()?;
    let subscriber = stream(&node, &job)?.subscriber_builder().create()?;
    let mut checker = Checker::new(&job)?;
    let mut idle = 0_u32;
    while !checker.is_ended() {
        let Some(sample) = subscriber.receive()? else {
            idle += 1;
            match (job.target_msps, idle) {
                (_, ..64) => std::hint::spin_loop(),
                (Some(_), _) => std::thread::sleep(LOOK_EVERY),
                (None, _) => std::thread::yield_now(),
            }
            continue;
        };
        idle = 0;
        let now_ns = Checker::now_ns();
        let mut bytes: &[u8] = sample.payload();
        while let Ok(header) = Header::parse(bytes) {
            let Some((frame, rest)) = bytes.split_at_checked(header.frame_bytes()) else { break };
            checker.frame(&header, &frame[HEADER_BYTES..], now_ns);
            bytes = rest;
        }
    }
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&checker.finish())?)?;
    Ok(())
}

/// What makes the frames, and the processes that read them.
struct Running {
    publisher: Publisher<ipc::Service, [u8], ()>,
    stream: Stream<ipc::Service, [u8], ()>,
    consumers: Vec<Child>,
    _node: Node<ipc::Service>,
}

fn start(
    plan: &Plan,
    job: &Job,
    scenario: Scenario,
    spawn: &impl Fn() -> Command,
) -> Result<Running, Failure> {
    let node = node()?;
    let stream = stream(&node, job)?;
    let publisher = stream
        .publisher_builder()
        .initial_max_slice_len(job.chunk_bytes)
        .max_loaned_samples(2)
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()?;
    let mut consumers = Vec::new();
    for (place, &work) in scenario.consumers.iter().enumerate() {
        let mut child = spawn().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let job = Job { work, core: plan.core(place), ..job.clone() };
        writeln!(child.stdin.take().ok_or("no pipe")?, "{}", serde_json::to_string(&job)?)?;
        consumers.push(child);
    }
    Ok(Running { publisher, stream, consumers, _node: node })
}

fn produce(job: &Job, running: Running) -> Result<(Made, Vec<Seen>), Failure> {
    let Running { publisher, stream, consumers, _node } = running;
    let until = Instant::now() + Duration::from_secs(10);
    while stream.dynamic_config().number_of_subscribers() < consumers.len() {
        if Instant::now() > until {
            return Err("the consumers did not come".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let frame_bytes = job.frame_bytes();
    let frames_max = (job.chunk_bytes / frame_bytes) as u64;
    let mut maker = Maker::new(job);
    while let Some(due) = maker.due() {
        let mut left = due;
        while left > 0 {
            let frames = frames_max.min(left) as usize;
            let sample = publisher.loan_slice_uninit(frames * frame_bytes)?;
            // SAFETY: shared memory that the system gave, so it was written; and every byte is written below.
            let mut sample = unsafe { sample.assume_init() };
            sample.payload_mut().chunks_exact_mut(frame_bytes).for_each(|place| _ = maker.write(place));
            sample.send()?;
            if due == u64::MAX {
                break;
            }
            left -= frames as u64;
        }
    }
    let (end, made) = (maker.end(), maker.finish());
    let mut bytes = [0; HEADER_BYTES];
    end.write(&mut bytes);
    publisher.loan_slice_uninit(HEADER_BYTES)?.write_from_slice(&bytes).send()?;
    let mut seen = Vec::new();
    for consumer in consumers {
        seen.push(serde_json::from_slice(&consumer.wait_with_output()?.stdout)?);
    }
    Ok((made, seen))
}

fn node() -> Result<Node<ipc::Service>, Failure> {
    set_log_level(LogLevel::Error);
    Ok(NodeBuilder::new().create::<ipc::Service>()?)
}

/// Queues as long as grebe's; at a rate the oldest makes room, else the producer waits.
fn stream(node: &Node<ipc::Service>, job: &Job) -> Result<Stream<ipc::Service, [u8], ()>, Failure> {
    let name = job.directory.to_string_lossy().into_owned();
    Ok(node
        .service_builder(&name.as_str().try_into()?)
        .publish_subscribe::<[u8]>()
        .payload_alignment(Alignment::new(64).ok_or("no such alignment")?)
        .subscriber_max_buffer_size(job.queue_batches as usize)
        .subscriber_max_borrowed_samples(2)
        .history_size(0)
        .max_publishers(1)
        .max_subscribers(2)
        .enable_safe_overflow(job.target_msps.is_some())
        .open_or_create()?)
}

fn refused(action: &'static str) -> impl Fn(Failure) -> grebe_bench::Error {
    move |error| grebe_bench::Error::Io {
        action,
        source: std::io::Error::other(format!("iceoryx2: {error}")),
    }
}

const LOOK_EVERY: Duration = Duration::from_micros(50);
