//! Throughput of each wave on one core, beside a memory copy as upper bound, measured in the same run.
//!
//! `cargo bench -p grebe-process --bench waveforms`

use std::hint::black_box;
use std::time::{Duration, Instant};

use grebe_process::synth::{ChannelSpec, Generator, Wave};

fn main() {
    let source = vec![1i16; BLOCK_SAMPLES];
    let mut out = vec![0i16; BLOCK_SAMPLES];
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "blocks of {BLOCK_SAMPLES} samples, {RATE_HZ:e} samples/s asked for; load average {}",
        load.trim()
    );
    let copy = gsps(&mut out, |_, out| out.copy_from_slice(black_box(&source)));
    println!("{:<34}{copy:8.2} GSPS", "copy of a block");
    let chirp = |sweep_s| Wave::Chirp { end_hz: 20e6, sweep_s };
    for (name, wave, frequency_hz) in [
        ("sine, whole period", Wave::Sine, 1e6),
        ("sine, period of 1,000,000", Wave::Sine, 100.0),
        ("sine, no whole period", Wave::Sine, 1e6 / std::f64::consts::PI),
        ("square, no whole period", Wave::Square, 1e6 / std::f64::consts::PI),
        ("triangle, no whole period", Wave::Triangle, 1e6 / std::f64::consts::PI),
        ("saw, no whole period", Wave::Saw, 1e6 / std::f64::consts::PI),
        ("chirp of 10 ms", chirp(0.01), 1e3),
        ("chirp of 1 s", chirp(1.0), 1e3),
        ("noise", Wave::Noise { seed: 1 }, 0.0),
    ] {
        let spec = ChannelSpec { wave, frequency_hz, ..ChannelSpec::default() };
        let generator = Generator::new(&spec, RATE_HZ).expect("the settings above are good");
        let rate = gsps(&mut out, |index, out| generator.fill(index, out));
        println!("{name:<34}{rate:8.2} GSPS{:8.2} of the copy", rate / copy);
    }
}

/// Median of several runs.
fn gsps(out: &mut [i16], mut fill: impl FnMut(u64, &mut [i16])) -> f64 {
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let (begin, mut samples) = (Instant::now(), 0u64);
            while begin.elapsed() < RUN {
                for _ in 0..64 {
                    fill(samples, black_box(out));
                    samples += out.len() as u64;
                }
            }
            samples as f64 / begin.elapsed().as_secs_f64() / 1e9
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[RUNS / 2]
}

/// Samples per channel of a frame in shared memory or a loopback datagram.
const BLOCK_SAMPLES: usize = 8_192;
const RATE_HZ: f64 = 100e6;
const RUN: Duration = Duration::from_millis(100);
const RUNS: usize = 9;
