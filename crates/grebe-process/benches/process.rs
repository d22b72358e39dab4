//! Throughput of the processing stages on one core, beside a memory copy in the same run. Measured by the
//! thread's processor time.
//!
//! `cargo bench -p grebe-process --bench process`, all of them or those whose name contains a given word: `--
//! fir mix`

use std::hint::black_box;
use std::time::{Duration, Instant};

use grebe_flow::{
    Context, Count, Graph, Inputs, Kind, Outcome, Outputs, QueueOptions, RateHz, Site, Stage, StageResult,
};
use grebe_frame::{Batch, BatchPool, Header, SampleFormat};
use grebe_process::{Band, BandFilter, Cut, Cutter, Demodulate, Format, FrequencyHz, Modulation};
use grebe_process::{Convert, Decimate, DecimateFiltered, Fir, Gain, Magnitude, Mix, Null, Scaling};

fn main() {
    // `cargo test --benches` builds and runs this with `--test`, where nothing is measured.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |row: &Row| wanted.is_empty() || wanted.iter().any(|wanted| row.name.contains(wanted));
    let mut rows = vec![memcpy()];
    rows.extend(stages().into_iter().filter(is_wanted));
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("frames of {FRAME_BYTES} bytes; {RUNS} runs of {RUN:?} in turns; load average {}", load.trim());
    println!("{:<44}{:>10}{:>18}{:>10}{:>14}", "", "GS/s", "range", "GB/s in", "of memcpy");
    let mut rates = vec![Vec::new(); rows.len()];
    for _ in 0..RUNS {
        for (row, rates) in rows.iter_mut().zip(&mut rates) {
            rates.push(row.bytes_per_s());
        }
    }
    let mut memcpy = 0.0;
    for (row, mut rates) in rows.iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let median = rates[RUNS / 2];
        if memcpy == 0.0 {
            memcpy = median;
        }
        let gsps = |rate: f64| rate / row.sample_bytes as f64 / 1e9;
        let range = format!("{:.3} - {:.3}", gsps(rates[0]), gsps(rates[RUNS - 1]));
        println!(
            "{:<44}{:>10.3}{range:>18}{:>10.2}{:>13.1}%",
            row.name,
            gsps(median),
            median / 1e9,
            median / memcpy * 100.0
        );
    }
}

/// A repeatable task that returns the bytes of samples it processed.
struct Row {
    name: String,
    sample_bytes: usize,
    run: Box<dyn FnMut() -> u64>,
}

impl Row {
    fn bytes_per_s(&mut self) -> f64 {
        let (begin, began, mut done) = (Instant::now(), processor_time(), 0u64);
        while begin.elapsed() < RUN {
            done += (self.run)();
        }
        let spent = processor_time().zip(began).map(|(now, began)| now - began);
        done as f64 / spent.unwrap_or_else(|| begin.elapsed()).as_secs_f64()
    }
}

/// Processor time of this thread, without that of other programs. Other systems than Linux use wall time.
fn processor_time() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Upper bound of anything that reads and writes every sample. Uses as many chunks in turn as the stages.
fn memcpy() -> Row {
    let (from, mut to) = (vec![1u8; FRAME_BYTES * CHUNKS], vec![0u8; FRAME_BYTES * CHUNKS]);
    let run = move || {
        for (from, to) in from.chunks(FRAME_BYTES).zip(to.chunks_mut(FRAME_BYTES)) {
            black_box(to).copy_from_slice(black_box(from));
        }
        from.len() as u64
    };
    Row {
        name: format!("{:<36}{:>8}", "memcpy of as many chunks", "cf32"),
        sample_bytes: 8,
        run: Box::new(run),
    }
}

fn stages() -> Vec<Row> {
    use SampleFormat::{Cf32, Ci16, Cu8, F32, I16};
    let gain = || Gain { gain: vec![0.5].into(), offset: vec![3.0].into() };
    let to = |format| Convert { to: Format(format), scale: Scaling::Full };
    let fir = |taps: usize| Fir { taps: Some(vec![1.0 / taps as f64; taps]), file: None };
    let filtered = |factor| DecimateFiltered { factor: Count(factor) };
    let magnitude = Magnitude { unit: grebe_process::MagnitudeUnit::Linear };
    let mut rows = vec![
        row("gain", I16, gain()),
        row("gain", F32, gain()),
        row("decimate by 100", I16, Decimate { factor: Count(100) }),
        row("decimate by 7", I16, Decimate { factor: Count(7) }),
        row("decimate by 100", F32, Decimate { factor: Count(100) }),
        row("convert to cf32", Cu8, to(Cf32)),
        row("convert to cf32", Ci16, to(Cf32)),
        row("convert to ci16", Cf32, to(Ci16)),
        row("magnitude", Cf32, magnitude),
        row("mix", Cf32, Mix { frequency: FrequencyHz(12_345.0) }),
        row("mix", Ci16, Mix { frequency: FrequencyHz(12_345.0) }),
        plain_loop(64),
        plain_loop(1_024),
    ];
    rows.extend(
        [8, 64, 96, 128, 192, 256, 1_024, 16_384]
            .map(|taps| row(&format!("fir of {taps} taps"), Cf32, fir(taps))),
    );
    rows.extend([64, 1_024].map(|taps| row(&format!("fir of {taps} taps"), F32, fir(taps))));
    rows.push(row("fir of 64 taps", Ci16, fir(64)));
    rows.extend(
        [2, 10, 100].map(|factor| row(&format!("decimate_filtered by {factor}"), Cf32, filtered(factor))),
    );
    rows.push(row("decimate_filtered by 10", I16, filtered(10)));
    // Parts of 1 MS/s: 200 kHz of 20 MS/s are a hundredth, too.
    let cut = |bandwidth_hz| Cut { center: FrequencyHz(0.2e6), bandwidth: RateHz(bandwidth_hz), rate: None };
    rows.extend(
        [500.0, 10e3, 400e3]
            .map(|hertz| row(&format!("cut {} % of the band", hertz / 1e4), Cf32, cut(hertz))),
    );
    rows.push(row("cut 1 % of the band", Ci16, cut(10e3)));
    let wfm = Demodulate { rate: RateHz(40e3), ..Demodulate::new(Modulation::Wfm) };
    rows.push(row("demodulate wfm", Cf32, wfm));
    rows.extend([10, 100].map(bands));
    rows
}

/// Runs samples of this format through a stage.
fn row(name: &str, format: SampleFormat, kind: impl Kind) -> Row {
    let stage = kind.build(&mut Site::new("stage")).expect("the parameters above are good");
    let mut graph = Graph::new();
    let source = graph.add("source", Relend::new(format));
    let stage = graph.add_boxed("stage", stage);
    let sink = graph.add("sink", Null {});
    graph.connect(source, stage, QueueOptions::block(2));
    graph.connect(stage, sink, QueueOptions::block(2));
    let mut stepper = graph.stepper().expect("the graph is a chain");
    let mut taken = 0;
    let run = move || {
        for _ in 0..16 {
            stepper.step().expect("nothing fails");
        }
        let before =
            std::mem::replace(&mut taken, stepper.snapshot().stage("stage").map_or(0, |it| it.frames_in));
        (taken - before) * FRAME_BYTES as u64
    };
    Row { name: format!("{name:<36}{:>8}", format.name()), sample_bytes: format.bytes(), run: Box::new(run) }
}

/// As many bands of 1 % each in one pass, side by side.
fn bands(count: usize) -> Row {
    let centre_hz = |at: usize| (at as f64 - 49.5) * 9.9e3;
    let band = |at| Band { centre_hz: centre_hz(at), bandwidth_hz: 9.8e3, rate_hz: None };
    let filters: Vec<BandFilter> =
        (0..count).map(|at| band(at).of(1e6, true).expect("the bands lie within")).collect();
    let mut cutter = Cutter::new(&filters, true);
    cutter.begin(0);
    let samples = vec![0.25f32; FRAME_BYTES / 4];
    let run = move || {
        cutter.push(black_box(&samples));
        (0..count).for_each(|band| black_box(cutter.made(band)).clear());
        FRAME_BYTES as u64
    };
    let name = format!("{:<36}{:>8}", format!("{count} bands of 1 % at once"), "cf32");
    Row { name, sample_bytes: 8, run: Box::new(run) }
}

/// The naive filter: one sum after another.
fn plain_loop(taps: usize) -> Row {
    let taps = vec![1.0 / taps as f32; taps];
    let count = FRAME_BYTES / 8;
    let line = vec![[0.5f32, -0.5]; count + taps.len() - 1];
    let mut out = vec![[0.0f32; 2]; count];
    let name = format!("{:<36}{:>8}", format!("plain loop of {} taps", taps.len()), "cf32");
    let run = move || {
        for (at, out) in black_box(&mut out).iter_mut().enumerate() {
            let mut sum = [0.0; 2];
            for (tap, number) in taps.iter().zip(&line[at..]) {
                sum = [sum[0] + tap * number[0], sum[1] + tap * number[1]];
            }
            *out = sum;
        }
        FRAME_BYTES as u64
    };
    Row { name, sample_bytes: 8, run: Box::new(run) }
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
        Self { pool: BatchPool::new(CHUNKS, FRAME_BYTES), header }
    }

    fn batch(&mut self) -> Option<Batch> {
        let mut batch = self.pool.acquire()?;
        // Writes only the header; the samples stay.
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

const FRAME_BYTES: usize = 65_536;
const CHUNKS: usize = 8;
const RUN: Duration = Duration::from_millis(50);
const RUNS: usize = 9;
