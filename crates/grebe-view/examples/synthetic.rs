//! The scope over a signal made here, to look at without any source:
//! `cargo run -p grebe-view --features window --example synthetic -- [--term | --png FILE] [--rate HZ] [--channels N]
//! [--span S] [--loss] [--light] [--seconds S]`.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grebe_flow::monotonic_ns;
use grebe_frame::{BatchPool, Header};
use grebe_view::{PngOptions, ScopeFeed, SourceStatus, ThemeChoice, ViewOptions};

/// Samples of one turn of the table that every channel repeats.
const TABLE: usize = 1 << 21;

#[derive(Clone)]
struct Settings {
    rate_hz: f64,
    channels: u32,
    has_loss: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| args.iter().any(|arg| arg == name);
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let number = |name: &str, otherwise: f64| value(name).and_then(|v| v.parse().ok()).unwrap_or(otherwise);
    let settings = Settings {
        rate_hz: number("--rate", 25e6),
        channels: number("--channels", 4.0) as u32,
        has_loss: has("--loss"),
    };

    let (feed, link) = ScopeFeed::new(256 << 20);
    let is_done = Arc::new(AtomicBool::new(false));
    let producer = {
        let (settings, is_done) = (settings.clone(), is_done.clone());
        std::thread::spawn(move || produce(feed, &settings, &is_done))
    };
    let mut options = ViewOptions::new(|| SourceStatus {
        name: "synthetic".into(),
        is_same_boot: true,
        kernel_datagrams: Some(0),
        ..SourceStatus::default()
    });
    options.initial.span = value("--span").and_then(|span| span.parse().ok());
    if has("--light") {
        options.initial.theme = Some(ThemeChoice::Light);
    }
    if let Some(seconds) = value("--seconds").and_then(|seconds| seconds.parse().ok()) {
        let link = link.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(2));
            let before = link.pictures_taken();
            std::thread::sleep(Duration::from_secs_f64(seconds));
            let pictures = (link.pictures_taken() - before) as f64;
            eprintln!("{:.1} pictures/s over {seconds} s", pictures / seconds);
            link.close();
        });
    }

    let shown = if let Some(path) = value("--png") {
        let png = PngOptions { after: Duration::from_millis(500), ..PngOptions::new(path) };
        grebe_view::render_png(&link, options, &png, |bytes| std::fs::write(&png.path, bytes)).map(drop)
    } else if has("--term") {
        grebe_view::run_terminals(vec![(link, options)])
    } else {
        window(link, options)
    };
    is_done.store(true, Ordering::Release);
    producer.join().map_err(|_| "the producer panicked")??;
    Ok(shown?)
}

#[cfg(feature = "window")]
fn window(link: grebe_view::ScopeLink, options: ViewOptions) -> Result<(), grebe_view::Error> {
    grebe_view::run_windows(vec![(link, options)])
}

#[cfg(not(feature = "window"))]
fn window(link: grebe_view::ScopeLink, options: ViewOptions) -> Result<(), grebe_view::Error> {
    eprintln!("built without a window (--features window): the terminal it is");
    grebe_view::run_terminals(vec![(link, options)])
}

/// Feeds the scope at the rate until told to stop.
fn produce(mut feed: ScopeFeed, settings: &Settings, is_done: &AtomicBool) -> Result<(), grebe_scope::Error> {
    let tables: Vec<Vec<i16>> = (0..settings.channels as usize).map(table).collect();
    let block = ((settings.rate_hz / 100.0) as usize).clamp(1, 8192);
    let mut header = Header {
        channel_count: settings.channels,
        block_length_samples: block as u32,
        sample_rate_hz: settings.rate_hz,
        ..Header::default()
    };
    let mut pool = BatchPool::new(4, header.frame_bytes() + 64);
    let begun = Instant::now();
    while !is_done.load(Ordering::Acquire) {
        let due = Duration::from_secs_f64(header.first_sample_index as f64 / settings.rate_hz);
        if let Some(early) = due.checked_sub(begun.elapsed()) {
            feed.idle();
            std::thread::sleep(early.min(Duration::from_millis(5)));
            continue;
        }
        let Some(mut batch) = pool.acquire() else { continue };
        header.producer_ts_ns = monotonic_ns();
        let at = header.first_sample_index as usize % (TABLE - block);
        // One pool of one frame's size: there is room.
        let _ = batch.push::<i16>(&header, |channel, samples| {
            samples.copy_from_slice(&tables[channel][at..at + block])
        });
        let is_lost = settings.has_loss && is_in_a_gap(header.first_sample_index as f64 / settings.rate_hz);
        if !is_lost {
            feed.ingest(&batch.freeze())?;
        }
        header.sequence += 1;
        header.first_sample_index += block as u64;
    }
    Ok(())
}

/// Three gaps a second, of different lengths.
fn is_in_a_gap(seconds: f64) -> bool {
    let at = seconds.fract();
    (0.20..0.206).contains(&at) || (0.50..0.5008).contains(&at) || (0.8..0.84).contains(&at)
}

/// Something to look at: a beat, a noisy square wave, a chirp, pulses.
fn table(channel: usize) -> Vec<i16> {
    let turns = |index: usize, count: f64| (index as f64 / TABLE as f64 * count * TAU).sin();
    let mut noise = 0x2545_f491_4f6c_dd1d_u64;
    let mut next_noise = move || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        (noise >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    let value = |index: usize, noise: f64| match channel % 4 {
        0 => turns(index, 1024.0) * (0.55 + 0.4 * turns(index, 16.0)),
        1 => turns(index, 64.0).signum() * 0.7 + noise * 0.06,
        2 => {
            let part = (index as f64 / TABLE as f64 * 8.0).fract();
            (TAU * 400.0 * part * part).sin() * 0.8
        }
        _ => {
            let part = (index as f64 / TABLE as f64 * 24.0).fract();
            (-part * 9.0).exp() * (part * 160.0).sin() * 0.9 + noise * 0.03
        }
    };
    (0..TABLE)
        .map(|index| (value(index, next_noise()) * 32_000.0).clamp(-32_768.0, 32_767.0) as i16)
        .collect()
}
