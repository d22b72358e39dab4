//! How fast frames become a SigMF recording and are read back, beside plain writes of the same bytes in the same run.
//!
//! `cargo bench -p grebe-stages --bench recording [-- FOLDER]`; give a folder on the disk that is meant. Without one it is
//! the system's temporary folder, which may be memory.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use grebe_frame::SampleFormat;
use grebe_recording::{SampleFile, SigmfSettings, SigmfWriter, WriteMethod};

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).map(PathBuf::from);
    let folder =
        tempfile::tempdir_in(folder.unwrap_or_else(std::env::temp_dir)).expect("the folder is writable");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!(
        "{} MB in {CHANNELS} channels, blocks of {BLOCK_SAMPLES} samples, median of {RUNS}",
        TOTAL_BYTES / 1_000_000
    );
    println!("in {}; load average {}", folder.path().display(), load.trim());
    let plain = median(|| plain(folder.path()));
    println!("{:<40}{plain:8.2} GB/s", "plain writes of 1 MiB, synced");
    let methods = [
        ("page cache", WriteMethod::PageCache),
        ("threads, past it", WriteMethod::Threads),
        ("io_uring, past it", WriteMethod::IoUring),
    ];
    for ((name, method), checksum) in methods.into_iter().flat_map(|method| [(method, false), (method, true)])
    {
        let name = format!("record and close, {name}{}", if checksum { ", sums" } else { "" });
        let rate = median(|| record(folder.path(), method, checksum));
        println!("{name:<40}{rate:8.2} GB/s{:8.2} of the plain writes", rate / plain);
    }
    let rate = median(|| read(folder.path()));
    println!("{:<40}{rate:8.2} GB/s", "read in blocks");
}

fn plain(folder: &Path) {
    let buffer = vec![1u8; 1 << 20];
    for channel in 0..CHANNELS {
        let path = folder.join(format!("plain{channel}"));
        let mut file = File::create(&path).expect("the folder is writable");
        for _ in 0..TOTAL_BYTES / CHANNELS / buffer.len() {
            file.write_all(&buffer).expect("there is room");
        }
        file.sync_all().expect("the disk works");
        fs::remove_file(path).expect("it was created");
    }
}

fn record(folder: &Path, method: WriteMethod, checksum: bool) {
    // Above 100 MB/s no SHA-512 is made, but XXH3.
    let settings = SigmfSettings {
        format: SampleFormat::I16,
        channels: CHANNELS,
        sample_rate_hz: 100e6,
        overwrite: true,
        checksum,
        write_method: method,
        ..SigmfSettings::default()
    };
    let mut writer = SigmfWriter::create(&folder.join("x"), &settings).expect("the folder is writable");
    let samples = vec![1i16; BLOCK_SAMPLES];
    let views = vec![&samples[..]; CHANNELS];
    for block in 0..(TOTAL_BYTES / CHANNELS / 2 / BLOCK_SAMPLES) as u64 {
        writer.write(block * BLOCK_SAMPLES as u64, &views).expect("there is room");
    }
    writer.finish().expect("there is room");
}

fn read(folder: &Path) {
    let mut file = SampleFile::open(folder.join("x.sigmf-collection")).expect("it was recorded");
    for position in (0..file.len_samples() - BLOCK_SAMPLES as u64).step_by(BLOCK_SAMPLES) {
        let block = file.block(position, BLOCK_SAMPLES).expect("it is there");
        for channel in 0..CHANNELS {
            black_box(block.channel::<i16>(channel).expect("it was recorded"));
        }
    }
}

fn median(mut run: impl FnMut()) -> f64 {
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            run();
            TOTAL_BYTES as f64 / begin.elapsed().as_secs_f64() / 1e9
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[RUNS / 2]
}

const TOTAL_BYTES: usize = 2 << 30;
const CHANNELS: usize = 4;
/// Samples per channel in a datagram of 1400 bytes with four channels.
const BLOCK_SAMPLES: usize = 160;
const RUNS: usize = 3;
