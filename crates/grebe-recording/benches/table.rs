//! Import rate of comma-separated tables, in turns with a crate that only splits lines. Times are CPU times of all
//! threads, including the system's part, because other load changes them little.
//!
//! `cargo bench -p grebe-recording --bench table [-- FOLDER [MEGABYTES]]`; the default is the system's temporary folder.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use grebe_recording::{Cancel, CsvOptions, import_csv};

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let megabytes = arguments.next().and_then(|it| it.parse().ok()).unwrap_or(1_000);
    let folder = tempfile::tempdir_in(folder).expect("the folder is writable");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{megabytes} MB in {}; load average {}", folder.path().display(), load.trim());
    let text = folder.path().join("x.csv");
    let bytes = write(&text, megabytes * 1_000_000).expect("there is room");
    for turn in 1..=3 {
        let began = processor_time();
        let fields = fields(&text);
        let alone = bytes as f64 / (processor_time() - began).as_secs_f64() / 1e6;
        let began = processor_time();
        let to = folder.path().join(format!("x{turn}"));
        let imported =
            import_csv(&text, &to, &CsvOptions::default(), &Cancel::default()).expect("it is a table");
        let import = bytes as f64 / (processor_time() - began).as_secs_f64() / 1e6;
        println!(
            "{fields} fields alone {alone:6.0} MB/s, into a recording {import:6.0} MB/s: {:.2}",
            import / alone
        );
        black_box(imported);
    }
}

/// Processor time of this process so far.
#[cfg(target_os = "linux")]
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The wall clock, on other systems.
#[cfg(not(target_os = "linux"))]
fn processor_time() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// A time in microseconds, and two values.
fn write(path: &Path, bytes: usize) -> std::io::Result<usize> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut written = file.write(b"time_s,a,b\n")?;
    let mut at = 0u64;
    while written < bytes {
        let line = format!(
            "{}.{:06},{}.{:03},-0.{:05}\n",
            at / 48_000,
            at % 48_000 * 1_000_000 / 48_000,
            at % 7,
            at % 997,
            at % 99_991
        );
        file.write_all(line.as_bytes())?;
        written += line.len();
        at += 1;
    }
    file.flush()?;
    Ok(written)
}

fn fields(path: &Path) -> u64 {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_path(path).expect("it is there");
    let mut record = csv::ByteRecord::new();
    let mut count = 0;
    while reader.read_byte_record(&mut record).expect("it is a table") {
        count += record.iter().map(|field| black_box(field).len().min(1) as u64).sum::<u64>();
    }
    count
}
