//! `grebe bench --view`: the scope's window, fed by a generator in a process of its own.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::Ending;
use crate::cli::Bench;

/// One run: how the samples come, and how many.
#[derive(Debug, Clone, Copy)]
struct Run {
    transport: &'static str,
    channels: u32,
    rate: &'static str,
}

pub fn run(options: &Bench) -> Result<Ending> {
    let mut results = Vec::new();
    println!(
        "transport  channels  rate   pictures/s  missed  p99 frame  p99 cpu  latency p50 / p99   lost  window alone"
    );
    for run in runs(options) {
        let result = measure(run, options.duration).with_context(|| {
            format!("{} {} x {}: the window could not be measured", run.transport, run.channels, run.rate)
        })?;
        println!("{}", line(run, &result));
        results.push(json!({ "transport": run.transport, "channels": run.channels, "rate": run.rate, "result": result }));
    }
    super::bench::write_json(options, &results)?;
    Ok(Ending::Good)
}

/// One and four channels of 1 GS/s over shared memory; all transports and rates where all are asked for.
fn runs(options: &Bench) -> Vec<Run> {
    let run = |transport, channels, rate| Run { transport, channels, rate };
    let mut runs = vec![run("shm", 1, "1G"), run("shm", 4, "1G")];
    if options.scenario.iter().any(|label| label == "all") {
        for transport in ["shm", "pipe", "udp"] {
            runs.extend(["1M", "10M", "100M", "1G"].map(|rate| run(transport, 1, rate)));
        }
    }
    runs
}

fn measure(run: Run, duration: Duration) -> Result<Value> {
    let this = std::env::current_exe().context("cannot find the grebe command itself")?;
    let uri = match run.transport {
        "shm" => format!("shm://bench-view-{}", std::process::id()),
        "pipe" => "pipe:".to_owned(),
        // A port that is likely to be free: one of those that are nobody's.
        _ => format!("udp://127.0.0.1:{}", 49_152 + std::process::id() % 16_000),
    };
    let mut generator = Command::new(&this);
    let channels = run.channels.to_string();
    // All of the stream's memory is for the one reader there is.
    let to = if run.transport == "shm" { format!("{uri}?readers=1") } else { uri.clone() };
    generator.args(["sg", "--channels", &channels, "--rate", run.rate, "--to", &to, "--tethered"]);
    generator.stdin(Stdio::piped()).stderr(Stdio::null());
    generator.stdout(if run.transport == "pipe" { Stdio::piped() } else { Stdio::null() });
    let mut view = Command::new(&this);
    let (length, size) = (format!("{}ms", duration.as_millis()), "1280x720");
    view.args(["view", &uri, "--bench", &length, "--size", size, "--no-session"]);
    view.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut generator = Stopped(generator.spawn().context("cannot start the generator")?);
    if let Some(stream) = generator.0.stdout.take() {
        view.stdin(stream);
    }
    let output = view.output().context("cannot start the scope")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("the scope gave no result")
}

fn line(run: Run, result: &Value) -> String {
    let number = |path: &str| result.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    format!(
        "{:<9}  {:>8}  {:<5}  {:>10.1}  {:>6}  {:>6.1} ms  {:>4.1} ms  {:>6.1} / {:.1} ms  {:>5}  {:.0} frames/s, p99 {:.1} ms",
        run.transport,
        run.channels,
        run.rate,
        number("/traces/per_s"),
        number("/misses"),
        number("/traces/interval_ms_p99"),
        number("/traces/cpu_ms_p99"),
        number("/latency_ms_p50"),
        number("/latency_ms_p99"),
        number("/lost_frames"),
        number("/baseline/per_s"),
        number("/baseline/interval_ms_p99"),
    )
}

/// Ends with this value.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
