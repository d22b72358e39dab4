//! How fast one core takes samples through the processing stages, beside writing that much memory, measured in the same run.
//!
//! `cargo bench -p grebe-stages --bench process`

use std::hint::black_box;
use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Count, Graph, Inputs, Kind, Outcome, Outputs, QueueOptions, Site, Stage, StageResult,
};
use grebe_frame::{Batch, BatchPool, Header, SampleFormat};
use grebe_stages::process::{Convert, Decimate, DecimateFiltered, Fir, Gain, Magnitude, Mix, Null, Scaling};
use grebe_stages::{Format, FrequencyHz};

fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "frames of {FRAME_BYTES} bytes; medians of {RUNS} runs of {RUN:?}; load average {}",
        load.trim()
    );
    let memset = |bytes: usize| {
        let mut memory = vec![0u8; bytes];
        let mut value = 0u8;
        gbps(|| {
            value = value.wrapping_add(1);
            black_box(&mut memory).fill(value);
            bytes as u64
        })
    };
    println!("{:<44}{:8.2} GB/s", "memset of 64 MiB", memset(64 << 20));
    println!("{:<44}{:8.2} GB/s", "memset of 256 KiB", memset(256 << 10));
    let gain = || Gain { gain: vec![0.5].into(), offset: vec![3.0].into() };
    let to = |format| Convert { to: Format(format), scale: Scaling::Full };
    let fir = || Fir { taps: Some(vec![1.0 / 64.0; 64]), file: None };
    use SampleFormat::{Cf32, Ci16, Cu8, F32, I16};
    run("gain", I16, gain(), 1.0);
    run("gain", F32, gain(), 1.0);
    run("decimate by 100", I16, Decimate { factor: Count(100) }, 0.02);
    run("decimate by 7", I16, Decimate { factor: Count(7) }, 2.0 / 7.0);
    run("decimate by 100", F32, Decimate { factor: Count(100) }, 0.02);
    run("convert to cf32", Cu8, to(Cf32), 4.0);
    run("convert to cf32", Ci16, to(Cf32), 2.0);
    run("convert to ci16", Cf32, to(Ci16), 0.5);
    run("magnitude", Cf32, Magnitude { unit: grebe_stages::process::MagnitudeUnit::Linear }, 0.5);
    run("mix", Cf32, Mix { frequency: FrequencyHz(12_345.0) }, 1.0);
    run("fir of 64 taps", Cf32, fir(), 1.0);
    run("decimate_filtered by 10", Cf32, DecimateFiltered { factor: Count(10) }, 0.1);
}

/// Takes samples of this format through a stage; so many bytes come out for each that went in.
fn run(name: &str, format: SampleFormat, kind: impl Kind, ratio: f64) {
    let stage = kind.build(&mut Site::new("stage")).expect("the parameters above are good");
    let mut graph = Graph::new();
    let source = graph.add("source", Relend::new(format));
    let stage = graph.add_boxed("stage", stage);
    let sink = graph.add("sink", Null {});
    graph.connect(source, stage, QueueOptions::block(2));
    graph.connect(stage, sink, QueueOptions::block(2));
    let mut stepper = graph.stepper().expect("the graph is a chain");
    let mut taken = 0;
    let rate = gbps(|| {
        for _ in 0..16 {
            stepper.step().expect("nothing fails");
        }
        let before =
            std::mem::replace(&mut taken, stepper.snapshot().stage("stage").map_or(0, |it| it.frames_in));
        (taken - before) * FRAME_BYTES as u64
    });
    let samples = rate / format.bytes() as f64;
    println!("{:<36}{format:>8}{rate:8.2} GB/s in, {:6.2} GB/s out, {samples:6.3} GS/s", name, rate * ratio);
}

/// Lends fresh batches, so that stages may change them in place.
struct Relend {
    pool: BatchPool,
    header: Header,
}

impl Relend {
    fn new(format: SampleFormat) -> Self {
        let block_length_samples = ((FRAME_BYTES - 64) / format.bytes() / 64 * 64) as u32;
        let header = Header {
            format,
            channel_count: 1,
            block_length_samples,
            sample_rate_hz: 1e6,
            ..Header::default()
        };
        Self { pool: BatchPool::new(8, FRAME_BYTES), header }
    }

    fn batch(&mut self) -> Option<Batch> {
        let mut batch = self.pool.acquire()?;
        // The bytes stay what they are: nothing is written but the header.
        batch.push_bytes(&self.header, |_, _| ()).ok()?;
        self.header.sequence += 1;
        self.header.first_sample_index += u64::from(self.header.block_length_samples);
        Some(batch.freeze())
    }
}

impl Stage for Relend {
    fn process(&mut self, _: &mut Inputs, output: &mut Outputs, ctx: &mut Context) -> StageResult {
        if let Some(batch) = self.batch() {
            output.send(batch, ctx);
        }
        Ok(Outcome::Produced)
    }
}

/// The median of some runs of what says how many bytes it took.
fn gbps(mut once: impl FnMut() -> u64) -> f64 {
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let (begin, mut done) = (Instant::now(), 0u64);
            while begin.elapsed() < RUN {
                done += once();
            }
            done as f64 / begin.elapsed().as_secs_f64() / 1e9
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[RUNS / 2]
}

const FRAME_BYTES: usize = 65_536;
const RUN: Duration = Duration::from_millis(100);
const RUNS: usize = 9;
