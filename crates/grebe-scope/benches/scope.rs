//! Throughput of one core, with the baseline of the same run: `cargo bench -p grebe-scope`, or only some of minmax,
//! pyramid, triggers, density, spectrum, bursts, pictures.
//!
//! Signals are noise with gaps on several channels, once within the cache and once larger than any. A row is the
//! median of several rounds, with the spread of the middle half. The rows run in turns, so that a change of the
//! machine's speed affects all of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use grebe_scope::{
    Averaging, BurstDetector, BurstSettings, Column, ColumnGrid, Condition, Density, Measurer,
    PowerTransform, Pyramid, Scale, Slope, Spectrum, Trigger, Value, Window, min_max, stats,
};
use grebe_testing::Rng;

const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(120);
/// 512 KiB within the second-level cache; 256 MiB beyond the third.
const CACHED: usize = 256 << 10;
const LARGE: usize = 128 << 20;
const BLOCK: usize = 32 << 10;

fn main() {
    // `cargo test --benches` runs this with `--test`, where there is nothing to measure.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    println!("grebe-scope, one core; median of {ROUNDS} rounds (middle half), baselines of the same run");
    let tables: [(&str, fn()); 7] = [
        ("minmax", min_max_against_reading),
        ("pyramid", pyramid),
        ("triggers", triggers),
        ("density", density),
        ("spectrum", spectrum),
        ("bursts", bursts),
        ("pictures", pictures),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, table) in tables {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            table();
        }
    }
}

/// A row of a table: a name, and a function that returns the number of processed samples (or records).
struct Row<'a> {
    name: String,
    run: Box<dyn FnMut() -> u64 + 'a>,
}

fn row<'a>(name: impl Into<String>, run: impl FnMut() -> u64 + 'a) -> Row<'a> {
    Row { name: name.into(), run: Box::new(run) }
}

/// Runs all rows in turns and prints each in `unit`s of `scale` per second and as a part of the first row.
fn table(title: &str, unit: &str, scale: f64, mut rows: Vec<Row>) {
    println!("\n{title}");
    let mut rates = vec![Vec::new(); rows.len()];
    for round in 0..=ROUNDS {
        for (row, rates) in rows.iter_mut().zip(&mut rates) {
            let start = Instant::now();
            let mut done = 0;
            while start.elapsed() < ROUND {
                done += (row.run)();
            }
            // The first round warms up.
            if round > 0 {
                rates.push(done as f64 / start.elapsed().as_secs_f64());
            }
        }
    }
    let mut baseline = None;
    for (row, mut rates) in rows.into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let [low, median, high] = [rates[ROUNDS / 4], rates[ROUNDS / 2], rates[ROUNDS * 3 / 4]];
        let baseline = *baseline.get_or_insert(median);
        println!(
            "  {:<44} {:>9.2} {unit} ({:.2} to {:.2})  {:>5.0} %",
            row.name,
            median / scale,
            low / scale,
            high / scale,
            100.0 * median / baseline
        );
    }
}

fn min_max_against_reading() {
    for (where_, count) in [("in cache", CACHED), ("beyond L3", LARGE)] {
        let samples = noise(count, 1);
        // The same number of bytes.
        let real = as_real(&samples[..count / 2]);
        let pass_real = |each: &mut dyn FnMut(&[f32])| {
            real.chunks(BLOCK / 2).for_each(each);
            real.len() as u64
        };
        let title = format!("min/max, {} KiB {where_} (baseline: reading alone)", count >> 9);
        let pass = |samples: &[i16], each: &mut dyn FnMut(&[i16])| {
            samples.chunks(BLOCK).for_each(each);
            samples.len() as u64
        };
        table(
            &title,
            "GS/s",
            1e9,
            vec![
                row("read (xor of all words)", || pass(&samples, &mut |piece| keep(read(piece)))),
                row("min_max", || pass(&samples, &mut |piece| keep(min_max(black_box(piece))))),
                row("naive loop", || pass(&samples, &mut |piece| keep(naive(black_box(piece))))),
                row("stats (min, max, sum, squares)", || {
                    pass(&samples, &mut |piece| keep(stats(black_box(piece))))
                }),
                row("min_max of f32", || pass_real(&mut |piece| keep(min_max(black_box(piece))))),
                row("stats of f32", || pass_real(&mut |piece| keep(stats(black_box(piece))))),
            ],
        );
    }
}

fn pyramid() {
    for (where_, count) in [("in cache", CACHED / 4), ("beyond L3", LARGE / 4)] {
        let channels: Vec<Vec<i16>> = (0..4).map(|seed| noise(count, seed)).collect();
        let mut small = Pyramid::new(4, 2 << 20).expect("a budget that works");
        let mut large = Pyramid::new(4, 1 << 30).expect("a budget that works");
        let mut copy = vec![0i16; 4 * BLOCK];
        let reals: Vec<Vec<f32>> = channels.iter().map(|samples| as_real(&samples[..count / 8])).collect();
        let mut real = Pyramid::new(4, 1 << 30).expect("a budget that works");
        let (mut at_small, mut at_large, mut at_real) = (0, 0, 0);
        let title =
            format!("append, 4 channels, source of {} KiB {where_}, a gap each 64 blocks", count >> 7);
        table(
            &title,
            "GS/s",
            1e9,
            vec![
                row("copy (memcpy into 256 KiB)", || {
                    blocks(&channels, &mut 0, |_, block| {
                        for (to, from) in copy.chunks_mut(BLOCK).zip(block) {
                            to[..from.len()].copy_from_slice(from);
                        }
                        black_box(&mut copy);
                    })
                }),
                row("pyramid of 2 MiB", || {
                    blocks(&channels, &mut at_small, |at, block| small.append(at, block).expect("in order"))
                }),
                row("pyramid of 1 GiB", || {
                    blocks(&channels, &mut at_large, |at, block| large.append(at, block).expect("in order"))
                }),
                row("pyramid of 1 GiB, f32 (as many bytes)", || {
                    blocks(&reals, &mut at_real, |at, block| real.append(at, block).expect("in order"))
                }),
            ],
        );
        println!("  memory: {} and {} bytes", small.memory_bytes(), large.memory_bytes());
    }
}

fn triggers() {
    let edge = |level, hysteresis| Condition::Edge { slope: Slope::Rising, level, hysteresis };
    for (where_, count) in [("in cache", CACHED), ("beyond L3", LARGE)] {
        let white = vec![noise(count, 3)];
        let smooth = vec![smooth_noise(count)];
        let real = vec![as_real(&smooth[0][..count / 2])];
        let dropout = Condition::Dropout { level: 0, hysteresis: 1000, samples: 5000 };
        let runt = Condition::Runt { polarity: grebe_scope::Polarity::Positive, low: 0, high: 8000 };
        let mut rows =
            vec![row("read (xor of all words)", || blocks(&smooth, &mut 0, |_, block| keep(read(block[0]))))];
        for (name, signal, condition, holdoff) in [
            ("edge, band-limited noise, every event", &smooth, edge(0, 1000), 0),
            ("edge, band-limited noise, holdoff 1000", &smooth, edge(0, 1000), 1000),
            ("edge, white noise (an event each 4 samples)", &white, edge(0, 0), 0),
            ("runt, band-limited noise", &smooth, runt, 0),
            ("dropout, band-limited noise", &smooth, dropout, 0),
        ] {
            let mut trigger = Trigger::new(condition, holdoff).expect("a condition that works");
            let mut at = 0;
            rows.push(row(name, move || {
                let mut sum = 0;
                let samples = blocks(signal, &mut at, |at, block| {
                    trigger.scan(at, block[0], |event| sum += event.index)
                });
                black_box((sum, trigger.found()));
                samples
            }));
        }
        let level = Condition::Edge { slope: Slope::Rising, level: 0.0, hysteresis: 1000.0 };
        let mut trigger = Trigger::new(level, 0).expect("a condition that works");
        let (mut at_real, real) = (0, &real);
        rows.push(row("edge, f32, band-limited noise, every event", move || {
            blocks(real, &mut at_real, |at, block| trigger.scan(at, block[0], |event| keep(event.index)))
        }));
        table(&format!("trigger scan, {} KiB {where_}, a gap each 64 blocks", count >> 9), "GS/s", 1e9, rows);
    }
}

fn density() {
    const RECORD: usize = 1000;
    let white = noise(CACHED, 5);
    let smooth = smooth_noise(CACHED);
    let mut maps: Vec<Density> = (0..2)
        .map(|_| Density::new(RECORD, 256, i16::MIN.into(), i16::MAX.into()).expect("a size that works"))
        .collect();
    let mut histogram = vec![0u32; RECORD * 256];
    let mut rows = vec![row("naive dots (one count per sample, no vectors)", || {
        let records = smooth.chunks_exact(RECORD);
        let count = records.len() as u64;
        for record in records {
            for (x, &sample) in record.iter().enumerate() {
                histogram[x * 256 + (255 - ((i32::from(sample) + 32768) >> 8) as usize)] += 1;
            }
        }
        black_box(&mut histogram);
        count
    })];
    for ((name, signal), map) in
        [("band-limited noise", &smooth), ("white noise", &white)].into_iter().zip(&mut maps)
    {
        rows.push(row(format!("density 1000 x 256, {name}, 30 pictures/s"), move || {
            let records = signal.chunks_exact(RECORD);
            let count = records.len() as u64;
            for record in records {
                map.add(record, 0.3);
                // A picture each 10,000 records is 30 per second at 300,000.
                if map.records().is_multiple_of(10_000) {
                    black_box(map.resolve(0.9));
                }
            }
            count
        }));
    }
    table("density, records of 1,000 samples (thousands per second)", "k/s", 1e3, rows);
}

fn spectrum() {
    const SIZE: usize = 65536;
    let samples = noise(SIZE * 4, 6);
    let bare = realfft::RealFftPlanner::<f32>::new().plan_fft_forward(SIZE);
    let (mut input, mut lines) = (bare.make_input_vec(), bare.make_output_vec());
    let mut scratch = bare.make_scratch_vec();
    let mut hann = Spectrum::new(SIZE, Window::Hann, Averaging::Exponential(8)).expect("a size that works");
    hann.set_hop(SIZE);
    hann.set_peak_hold(true);
    let mut at = 0;
    table(
        "spectrum of 65,536 samples (transforms per second)",
        "/s",
        1.0,
        vec![
            row("realfft alone", || {
                input.fill(1.0);
                bare.process_with_scratch(&mut input, &mut lines, &mut scratch).expect("lengths of the plan");
                black_box(&mut lines);
                1
            }),
            row("window, transform, average, dBFS, peak hold", || {
                let before = hann.count();
                hann.append(at, &samples, |lines| keep(lines[0]));
                at += samples.len() as u64;
                hann.count() - before
            }),
        ],
    );
}

fn bursts() {
    const SIZE: usize = 1024;
    let samples: Vec<f32> = noise(1 << 20, 7).into_iter().map(f32::from).collect();
    let (i, q) = samples.split_at(1 << 19);
    let mut bare = PowerTransform::complex(SIZE, Window::Hann).expect("a size that works");
    let mut power = vec![0.0; bare.lines()];
    let mut detector =
        BurstDetector::complex(BurstSettings::default(), 32_768.0).expect("settings that work");
    let mut at = 0;
    table(
        "bursts of complex samples (millions of samples per second)",
        "M/s",
        1e6,
        vec![
            row("transforms alone, half over one another", || {
                for from in (0..=i.len() - SIZE).step_by(SIZE / 2) {
                    bare.power(&i[from..from + SIZE], &q[from..from + SIZE], 0.0, &mut power);
                    keep(power[0]);
                }
                i.len() as u64
            }),
            row("bursts", || {
                for (i, q) in i.chunks(BLOCK).zip(q.chunks(BLOCK)) {
                    detector.append(at, i, q, |burst| keep(burst.power_dbfs as f32));
                    at += i.len() as u64;
                }
                i.len() as u64
            }),
        ],
    );
}

fn pictures() {
    let channels: Vec<Vec<i16>> = (0..4).map(|seed| noise(LARGE / 4, seed)).collect();
    let mut pyramid = Pyramid::new(4, 1 << 30).expect("a budget that works");
    let mut at = 0;
    for _ in 0..4 {
        blocks(&channels, &mut at, |at, block| pyramid.append(at, block).expect("in order"));
    }
    let mut columns = vec![Column::OUTSIDE; 1920];
    let mut rows = Vec::new();
    let newest = pyramid.next_index();
    let (pyramid, columns) = (&pyramid, std::cell::RefCell::new(&mut columns));
    for spc in [0.1, 10.0, 1000.0, 12_345.6, 50_000.0] {
        let columns = &columns;
        rows.push(row(format!("{spc} samples per column"), move || {
            let grid = ColumnGrid::new(spc);
            let width = (1920.0 * spc) as u64;
            for channel in 0..4 {
                let mut columns = columns.borrow_mut();
                pyramid.columns(channel, grid, grid.column_at(newest.saturating_sub(width)), &mut columns);
                black_box(&mut columns[0]);
            }
            1
        }));
    }
    table("pictures of 4 x 1920 columns from a pyramid of 1 GiB", "/s", 1.0, rows);
    let window = &channels[0][..1 << 20];
    let mut measurer = Measurer::new();
    let measure = row("all measurements of 1 Mi samples", || {
        black_box(measurer.measure(&[window], 1e9, Scale::COUNTS));
        window.len() as u64
    });
    let real = as_real(window);
    let mut measurer = Measurer::new();
    let measure_real = row("all measurements of 1 Mi samples of f32", || {
        black_box(measurer.measure(&[&real], 1e9, Scale::COUNTS));
        real.len() as u64
    });
    table("measurements", "MS/s", 1e6, vec![measure, measure_real]);
}

/// Keeps the compiler from removing the computation of a result.
fn keep<T>(result: T) {
    black_box(result);
}

/// Hands out blocks of all channels from index `at` on, with a gap each 64 blocks.
fn blocks<V: Value>(channels: &[Vec<V>], at: &mut u64, mut each: impl FnMut(u64, &[&[V]])) -> u64 {
    let len = channels[0].len();
    let mut block: [&[V]; 4] = [&[]; 4];
    for (number, from) in (0..len).step_by(BLOCK.min(len)).enumerate() {
        let to = (from + BLOCK).min(len);
        for (slice, channel) in block.iter_mut().zip(channels) {
            *slice = &channel[from..to];
        }
        each(*at, &block[..channels.len()]);
        *at += (to - from) as u64 + if number % 64 == 63 { 777 } else { 0 };
    }
    (len * channels.len()) as u64
}

#[inline(never)]
fn read(samples: &[i16]) -> u64 {
    // The same vector width as the tested code.
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(samples: &[i16]) -> u64 {
            xor(samples)
        }
        // SAFETY: the processor has AVX2, as just detected.
        return unsafe { wide(samples) };
    }
    xor(samples)
}

#[inline(always)]
fn xor(samples: &[i16]) -> u64 {
    let mut lanes = [0i16; 128];
    for chunk in samples.as_chunks::<128>().0 {
        for (lane, sample) in lanes.iter_mut().zip(chunk) {
            *lane ^= sample;
        }
    }
    lanes.iter().fold(0, |all, &lane| all ^ lane as u64)
}

#[inline(never)]
fn naive(samples: &[i16]) -> (i16, i16) {
    let (mut low, mut high) = (i16::MAX, i16::MIN);
    for &sample in samples {
        if sample < low {
            low = sample;
        }
        if sample > high {
            high = sample;
        }
    }
    (low, high)
}

/// White noise over the whole range.
fn noise(count: usize, seed: u64) -> Vec<i16> {
    let mut rng = Rng::with_seed(seed);
    std::iter::repeat_with(|| rng.i16(..)).take(count).collect()
}

fn as_real(samples: &[i16]) -> Vec<f32> {
    samples.iter().map(|&sample| sample.into()).collect()
}

/// Noise below a hundredth of the rate: an edge each 100 samples or so.
fn smooth_noise(count: usize) -> Vec<i16> {
    let (mut fast, mut slow) = (0f32, 0f32);
    let smooth = |sample: i16| {
        fast += (f32::from(sample) - fast) * 0.06;
        slow += (fast - slow) * 0.06;
        (slow * 6.0) as i16
    };
    noise(count, 9).into_iter().map(smooth).collect()
}
