//! Min and max of columns of 1000 samples, all kernels in turns within one run:
//! `cargo run --release --manifest-path peers/scope/Cargo.toml`, then `python3 peers/scope/tsdownsample_bench.py`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use argminmax::ArgMinMax;
use grebe_scope::{Column, min_max};

const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(200);
const COLUMN: usize = 1000;

/// Fills columns of `COLUMN` samples.
type Kernel = fn(&[i16], &mut [Column]);

fn main() {
    for (place, count) in [("in cache", 256 << 10), ("beyond L3", 128 << 20)] {
        println!("\nenvelope, {} KiB {place}, {COLUMN} samples per column, white noise", count >> 9);
        let samples = noise(count);
        let mut columns = vec![Column::OUTSIDE; count / COLUMN];
        let kernels: [(&str, Kernel); 4] = [
            ("read (xor of all samples)", read),
            ("grebe-scope min_max", grebe),
            ("argminmax 0.7, a call per column", peer),
            ("naive loop", naive),
        ];
        let mut rates = vec![Vec::new(); kernels.len()];
        for round in 0..=ROUNDS {
            for ((_, kernel), rates) in kernels.iter().zip(&mut rates) {
                let start = Instant::now();
                let mut done = 0;
                while start.elapsed() < ROUND {
                    kernel(black_box(&samples), &mut columns);
                    black_box(&mut columns);
                    done += samples.len();
                }
                if round > 0 {
                    rates.push(done as f64 / start.elapsed().as_secs_f64() / 1e9);
                }
            }
        }
        let mut baseline = None;
        for ((name, _), mut rates) in kernels.iter().zip(rates) {
            rates.sort_by(f64::total_cmp);
            let median = rates[ROUNDS / 2];
            let baseline = *baseline.get_or_insert(median);
            println!(
                "  {name:<34} {median:>7.2} GS/s ({:.2} to {:.2}) {:>5.0} %",
                rates[ROUNDS / 4],
                rates[ROUNDS * 3 / 4],
                100.0 * median / baseline
            );
        }
    }
}

fn grebe(samples: &[i16], out: &mut [Column]) {
    for (column, piece) in out.iter_mut().zip(samples.chunks_exact(COLUMN)) {
        (column.min, column.max) = min_max(piece);
    }
}

fn peer(samples: &[i16], out: &mut [Column]) {
    for (column, piece) in out.iter_mut().zip(samples.chunks_exact(COLUMN)) {
        let (low, high) = piece.argminmax();
        (column.min, column.max) = (piece[low], piece[high]);
    }
}

fn naive(samples: &[i16], out: &mut [Column]) {
    for (column, piece) in out.iter_mut().zip(samples.chunks_exact(COLUMN)) {
        let (mut low, mut high) = (i16::MAX, i16::MIN);
        for &sample in piece {
            low = low.min(sample);
            high = high.max(sample);
        }
        (column.min, column.max) = (low, high);
    }
}

fn read(samples: &[i16], _: &mut [Column]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(samples: &[i16]) -> i16 {
            xor(samples)
        }
        // SAFETY: the processor has AVX2, as just detected.
        black_box(unsafe { wide(samples) });
        return;
    }
    black_box(xor(samples));
}

#[inline(always)]
fn xor(samples: &[i16]) -> i16 {
    let mut lanes = [0i16; 128];
    for chunk in samples.as_chunks::<128>().0 {
        for (lane, sample) in lanes.iter_mut().zip(chunk) {
            *lane ^= sample;
        }
    }
    lanes.iter().fold(0, |all, lane| all ^ lane)
}

fn noise(count: usize) -> Vec<i16> {
    let mut state = 1u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 48) as i16
    };
    std::iter::repeat_with(next).take(count).collect()
}
