//! iceoryx2: a sample is what a chunk is to grebe, frames back to back.

use std::time::{Duration, Instant};

use grebe_bench::shm::{Other, OtherStream};
use grebe_bench::{Error, FrameSender, Frames};
use iceoryx2::port::publisher::Publisher;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::PortFactory as _;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;

type Failure = Box<dyn std::error::Error>;

/// See the module.
#[derive(Debug)]
pub struct Iceoryx;

impl Other for Iceoryx {
    fn name(&self) -> &'static str {
        "iceoryx2"
    }

    fn producer(&self, stream: &OtherStream) -> Result<Box<dyn FrameSender>, Error> {
        Ok(Box::new(Producer::open(stream).map_err(refused("start"))?))
    }

    fn consume(&self, stream: &OtherStream, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Error> {
        consume(stream, take).map_err(refused("run"))
    }
}

struct Producer {
    publisher: Publisher<ipc::Service, [u8], ()>,
    service: PortFactory<ipc::Service, [u8], ()>,
    _node: Node<ipc::Service>,
}

impl Producer {
    fn open(stream: &OtherStream) -> Result<Self, Failure> {
        let node = node()?;
        let service = service(&node, stream)?;
        let publisher = service
            .publisher_builder()
            .initial_max_slice_len(stream.chunk_bytes)
            .max_loaned_samples(2)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()?;
        Ok(Self { publisher, service, _node: node })
    }

    fn send(&self, frames: &Frames<'_>) -> Result<(), Failure> {
        let sample = self.publisher.loan_slice_uninit(frames.bytes())?;
        // SAFETY: shared memory that the system gave, so it was written; and every byte is written here.
        let mut sample = unsafe { sample.assume_init() };
        frames.write(sample.payload_mut());
        sample.send()?;
        Ok(())
    }
}

impl FrameSender for Producer {
    fn wait_for(&mut self, consumers: usize) -> Result<(), Error> {
        let until = Instant::now() + Duration::from_secs(10);
        while self.service.dynamic_config().number_of_subscribers() < consumers {
            if Instant::now() > until {
                return Err(refused("run")("the consumers did not come".into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn send(&mut self, frames: &Frames<'_>) -> Result<(), Error> {
        Producer::send(self, frames).map_err(refused("send"))
    }
}

fn consume(stream: &OtherStream, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<(), Failure> {
    let node = node()?;
    let subscriber = service(&node, stream)?.subscriber_builder().create()?;
    let mut idle = 0_u32;
    loop {
        let Some(sample) = subscriber.receive()? else {
            idle += 1;
            match (stream.has_rate, idle) {
                (_, ..64) => std::hint::spin_loop(),
                (true, _) => std::thread::sleep(LOOK_EVERY),
                (false, _) => std::thread::yield_now(),
            }
            continue;
        };
        idle = 0;
        if take(sample.payload()) {
            return Ok(());
        }
    }
}

fn node() -> Result<Node<ipc::Service>, Failure> {
    set_log_level(LogLevel::Error);
    Ok(NodeBuilder::new().create::<ipc::Service>()?)
}

/// Queues as long as grebe's; at a rate the oldest makes room, else the producer waits.
fn service(
    node: &Node<ipc::Service>,
    stream: &OtherStream,
) -> Result<PortFactory<ipc::Service, [u8], ()>, Failure> {
    Ok(node
        .service_builder(&stream.name.as_str().try_into()?)
        .publish_subscribe::<[u8]>()
        .payload_alignment(Alignment::new(64).ok_or("no such alignment")?)
        .subscriber_max_buffer_size(stream.queue_chunks)
        .subscriber_max_borrowed_samples(2)
        .history_size(0)
        .max_publishers(1)
        .max_subscribers(2)
        .enable_safe_overflow(stream.has_rate)
        .open_or_create()?)
}

fn refused(action: &'static str) -> impl Fn(Failure) -> Error {
    move |error| Error::Io { action, source: std::io::Error::other(format!("iceoryx2: {error}")) }
}

const LOOK_EVERY: Duration = Duration::from_micros(50);
