//! The experiment that settled who owns a chunk, for how long, and at what cost per frame. Linux.
//!
//! `cargo run --release -p grebe-stages --example ownership`
//!
//! 1. GSO sender process -> GRO receive into pooled chunks -> fan-out to min/max (`block`) and to a consumer that has stopped
//!    (`drop_oldest`), with the real types of the product.
//! 2. The same batches over a memfd to a second process that reads them in place and is killed with SIGKILL.
//!
//! Passes with >= 3M frames/s of 1400 bytes, no allocation in steady state, <= 40 ns per frame and hop, bounded memory pinned
//! by the stopped consumer, and right counts. docs/internals/data-path.md has what it measured.

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("this experiment needs Linux (GSO, GRO, memfd)");
}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};
    use std::process::{Command, Stdio};
    use std::ptr::NonNull;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use grebe_datagram::{Options, Sender};
    use grebe_flow::{
        Context, Graph, Inputs, Offer, Outcome, Outputs, QueueOptions, Stage, StageResult, queue,
    };
    use grebe_frame::{Batch, BatchPool, Header, SampleFormat, TrustedBatchImport};
    use grebe_ring::{Memory, MemoryMut, Signal};
    use grebe_stages::UdpSource;
    use grebe_testing::{CountingAllocator, allocations};
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    pub(crate) fn main() {
        let arguments: Vec<String> = std::env::args().collect();
        match arguments.get(1).map(String::as_str) {
            Some("send") => send(arguments[2].parse().unwrap()),
            Some("consume") => consume(),
            _ => {
                hop();
                receive_and_fan_out();
                lend_over_memfd();
            }
        }
    }

    /// Cost of a hop: one thread fills a queue, another empties it, 46 frames of 1400 bytes per batch.
    fn hop() {
        let (producer, consumer) = (Arc::new(Signal::new()), Arc::new(Signal::new()));
        let (mut tx, mut rx) = queue(QueueOptions::block(64), producer.clone(), consumer.clone());
        let batches = 200_000u64;
        let sender = std::thread::spawn(move || {
            let mut pool = BatchPool::new(96, 65_536);
            let mut source = (0..90).map(|sequence| frames(&mut pool, sequence * 46)).collect::<Vec<_>>();
            let began = Instant::now();
            for index in 0..batches {
                let slot = (index % 90) as usize;
                let mut batch = source[slot].clone();
                while let Offer::Full(back) = tx.offer(batch) {
                    producer.wait(Duration::from_millis(100), || tx.has_room());
                    batch = back;
                }
            }
            let spent = began.elapsed();
            source.clear();
            spent
        });
        let mut frames = 0u64;
        while !rx.is_ended() {
            consumer.wait(Duration::from_millis(100), || rx.has_batch() || rx.is_ended());
            while let Some(batch) = rx.pop() {
                frames += batch.len() as u64;
            }
        }
        let spent = sender.join().unwrap();
        println!(
            "hop: {:.1} ns a frame ({frames} frames, clone + queue + drop)",
            spent.as_nanos() as f64 / frames as f64
        );
    }

    fn frames(pool: &mut BatchPool, first: u64) -> Batch {
        let mut batch = pool.acquire().unwrap();
        for sequence in first..first + 46 {
            batch.push::<i16>(&header(sequence), |_, samples| samples.fill(sequence as i16)).unwrap();
        }
        batch.freeze()
    }

    fn header(sequence: u64) -> Header {
        Header {
            format: SampleFormat::I16,
            sequence,
            producer_ts_ns: sequence + 1,
            channel_count: 1,
            block_length_samples: 668,
            sample_rate_hz: 1e9,
            sg_drops_total: 0,
            first_sample_index: sequence * 668,
        }
    }

    fn receive_and_fan_out() {
        let source = UdpSource::bind("127.0.0.1:0".parse().unwrap(), &Options::default()).unwrap();
        let address = source.local_addr().unwrap();
        let mut graph = Graph::new();
        let source = graph.add("udp", source);
        let minmax = graph.add("minmax", MinMax::default());
        let stopped = graph.add("stopped", Stopped);
        graph.connect(source, minmax, QueueOptions::block(64));
        graph.connect(source, stopped, QueueOptions::drop_oldest(64));
        let running = graph.start().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["send", &address.to_string()])
            .spawn()
            .unwrap();
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(500));
            let (before, allocated, at) = (running.snapshot(), allocations(), Instant::now());
            std::thread::sleep(Duration::from_secs(2));
            let (allocated, spent) = (allocations() - allocated, at.elapsed());
            let after = running.snapshot();
            let count = |name: &str| {
                let of = |snapshot: &grebe_flow::Snapshot| snapshot.stage(name).unwrap().frames_in;
                (of(&after) - of(&before)) as f64 / spent.as_secs_f64() / 1e6
            };
            let own = |name: &str| after.stage("udp").unwrap().own(name).unwrap();
            let queue = after.queues.iter().find(|queue| queue.to == "stopped").unwrap();
            println!(
                "fan-out: {:.2}M frames/s = {:.0} MSPS to min/max; allocations {allocated} (of them one snapshot's); lost {} \
                 frames, kernel {}; stopped consumer pins {} batches, {} frames dropped for it",
                count("minmax"),
                count("minmax") * 668.0,
                own("lost_frames"),
                own("kernel_drops"),
                queue.queued_batches,
                queue.dropped_frames,
            );
        }
        let _ = child.kill();
        let _ = child.wait();
        STOPPED.store(false, Ordering::Release);
        let snapshot = running.stop().unwrap();
        let taken: u64 = snapshot.stage("minmax").unwrap().frames_in;
        let source = snapshot.stage("udp").unwrap().frames_out;
        let queue = snapshot.queues.iter().find(|queue| queue.to == "stopped").unwrap();
        let stopped = snapshot.stage("stopped").unwrap().frames_in;
        assert_eq!(taken, source, "block loses nothing");
        assert_eq!(stopped + queue.dropped_frames, source, "what was not dropped was delivered");
        println!(
            "counts: {source} frames = min/max {taken} = stopped {stopped} + dropped {}",
            queue.dropped_frames
        );
    }

    #[derive(Default)]
    struct MinMax {
        range: (i16, i16),
    }

    impl Stage for MinMax {
        fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
            let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
            for frame in batch.frames() {
                let (low, high) = extremes(&frame.channel::<i16>(0).unwrap());
                self.range = (self.range.0.min(low), self.range.1.max(high));
            }
            Ok(Outcome::Produced)
        }
    }

    /// Not inlined: within the loop above the compiler generates slow code for it.
    #[inline(never)]
    fn extremes(samples: &[i16]) -> (i16, i16) {
        samples.iter().fold((i16::MAX, i16::MIN), |(low, high), &sample| (low.min(sample), high.max(sample)))
    }

    static STOPPED: AtomicBool = AtomicBool::new(true);

    /// Takes no batch until the end.
    struct Stopped;

    impl Stage for Stopped {
        fn process(&mut self, input: &mut Inputs, _: &mut Outputs, _: &mut Context) -> StageResult {
            if STOPPED.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(20));
                return Ok(Outcome::Produced);
            }
            Ok(if input.next().is_some() { Outcome::Produced } else { Outcome::WantsInput })
        }
    }

    /// Sends at full speed until it is killed.
    fn send(to: SocketAddr) {
        let mut sender = Sender::connect(to, &Options::default()).unwrap();
        let mut slab = vec![0u8; 1400 * 46 * 2];
        let mut sequence = 0;
        loop {
            for frame in slab.chunks_exact_mut(1400) {
                header(sequence).write_unchecked(frame.first_chunk_mut().unwrap());
                frame[64..72].copy_from_slice(&sequence.to_le_bytes());
                sequence += 1;
            }
            let mut batch = sender.batch();
            batch.push_run(&slab, 1400).unwrap();
            if batch.flush().is_err() {
                return;
            }
        }
    }

    // ---- part 2 ----

    const CHUNK: usize = 65_536;
    const CHUNKS: usize = 64;

    /// Atomic words shared by both sides: lent chunks (index + 1, per slot) and returned chunks (a flag per chunk).
    struct Board {
        map: Mapping,
    }

    impl Board {
        fn word(&self, index: usize) -> &AtomicU32 {
            // SAFETY: within the mapping, aligned, only ever accessed as an atomic.
            unsafe { &*self.map.base.as_ptr().cast::<AtomicU32>().add(index) }
        }
        fn lent(&self, position: u64) -> &AtomicU32 {
            self.word((position % CHUNKS as u64) as usize)
        }
        fn returned(&self, chunk: u32) -> &AtomicU32 {
            self.word(CHUNKS + chunk as usize)
        }
    }

    /// The producer keeps its own list of lent chunks, so a dead consumer leaks nothing.
    fn lend_over_memfd() {
        let payload = memfd("payload", CHUNKS * CHUNK);
        let board_fd = memfd("board", 4096);
        let board = Board { map: Mapping::of(&board_fd, 4096, true) };
        let mut pool = BatchPool::over(Box::new(Mapping::of(&payload, CHUNKS * CHUNK, true)), CHUNK);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("consume")
            .stdin(Stdio::from(payload.try_clone().unwrap()))
            .stdout(Stdio::from(board_fd.try_clone().unwrap()))
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut in_flight: Vec<Option<Batch>> = (0..CHUNKS).map(|_| None).collect();
        let (mut lent, mut frames_lent) = (0u64, 0u64);
        let mut began = None;
        while began.is_none_or(|began: Instant| began.elapsed() < Duration::from_secs(2)) {
            for (chunk, held) in in_flight.iter_mut().enumerate() {
                if held.is_some() && board.returned(chunk as u32).swap(0, Ordering::Acquire) == 1 {
                    *held = None;
                    began.get_or_insert_with(Instant::now);
                }
            }
            while board.lent(lent).load(Ordering::Acquire) == 0
                && let Some(mut batch) = pool.acquire()
            {
                while batch
                    .push::<i16>(&header(frames_lent), |_, samples| samples[0] = frames_lent as i16)
                    .is_ok()
                {
                    frames_lent += 1;
                }
                let (index, batch) = (batch.index(), batch.freeze());
                in_flight[index as usize] = Some(batch);
                board.lent(lent).store(index + 1, Ordering::Release);
                lent += 1;
            }
        }
        let spent = began.unwrap().elapsed();
        child.kill().unwrap();
        child.wait().unwrap();
        let held = in_flight.iter().flatten().count();
        let noticed = Instant::now();
        in_flight.clear();
        println!(
            "memfd: {:.2}M frames/s to a process reading in place; killed while {held} chunks were lent: {} of {CHUNKS} home \
             after {:?}",
            frames_lent as f64 / spent.as_secs_f64() / 1e6,
            pool.available(),
            noticed.elapsed(),
        );
        assert_eq!(pool.available(), CHUNKS);
    }

    fn consume() {
        // SAFETY: the parent put the two memfds there.
        let (payload, board_fd) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
        let board = Arc::new(Board { map: Mapping::of(&board_fd, 4096, true) });
        let home = board.clone();
        let memory = Box::new(Mapping::of(&payload, CHUNKS * CHUNK, false));
        let mut import = TrustedBatchImport::new(memory, CHUNK, move |chunk| {
            home.returned(chunk).store(1, Ordering::Release);
        });
        let (mut position, mut expected) = (0u64, 0u64);
        loop {
            let word = board.lent(position).swap(0, Ordering::AcqRel);
            if word == 0 {
                std::hint::spin_loop();
                continue;
            }
            position += 1;
            let offsets = (0..46).map(|frame| frame * 1408);
            let (batch, refused) = import.batch(word - 1, offsets).expect("the chunk is ours to read");
            assert_eq!(refused, 0);
            for frame in batch.frames() {
                assert_eq!(frame.header().sequence, expected);
                assert_eq!(frame.channel::<i16>(0).unwrap()[0], expected as i16);
                std::hint::black_box(extremes(&frame.channel::<i16>(0).unwrap()));
                expected += 1;
            }
        }
    }

    fn memfd(name: &str, bytes: usize) -> OwnedFd {
        let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::empty()).unwrap();
        rustix::fs::ftruncate(&fd, bytes as u64).unwrap();
        fd
    }

    struct Mapping {
        base: NonNull<u8>,
        len: usize,
    }

    impl Mapping {
        fn of(fd: impl AsFd, len: usize, writable: bool) -> Self {
            let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
            // SAFETY: a new mapping of a memfd that is `len` bytes long.
            let base =
                unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, fd, 0) }.unwrap();
            Self { base: NonNull::new(base.cast()).unwrap(), len }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: mapped by `of`.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        }
    }

    // SAFETY: page-aligned, mapped until dropped, written by the pool alone.
    unsafe impl Memory for Mapping {
        fn base(&self) -> NonNull<u8> {
            self.base
        }
        fn len(&self) -> usize {
            self.len
        }
    }
    // SAFETY: the pool is made over a writable one.
    unsafe impl MemoryMut for Mapping {}
    // SAFETY: plain memory.
    unsafe impl Send for Mapping {}
    // SAFETY: plain memory; shared words are accessed as atomics.
    unsafe impl Sync for Mapping {}

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;
}
