//! Kernel, clock, cores, memory.

use std::hint::black_box;
use std::time::Instant;

use grebe_bench::canary::{self, MachineState};

use super::check::{Check, line_of};

const AREA: &str = "machine";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![kernel()];
    checks.extend(clock_source());
    checks.extend([clock(), cores(), memory()]);
    checks
}

fn kernel() -> Check {
    let Some(release) = line_of("/proc/sys/kernel/osrelease") else {
        return Check::ok(AREA, "kernel", std::env::consts::OS);
    };
    let found = format!("{} {release}", std::env::consts::OS);
    if release.to_lowercase().contains("microsoft") {
        return Check::limited(
            AREA,
            "kernel",
            found + " (WSL2)",
            "datagrams above 1472 bytes do not pass its loopback: streams use 1400",
        );
    }
    if corrupts_segments(&release) {
        return Check::limited(
            AREA,
            "kernel",
            found,
            "7.0-rc1 to 7.1.4 corrupt UDP segments of equal length, which is what a stream is made of",
        )
        .fixed_by("export GREBE_NO_GSO=1");
    }
    Check::ok(AREA, "kernel", found)
}

fn corrupts_segments(release: &str) -> bool {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let version = if release.contains("-rc") { (version.0, version.1, 0) } else { version };
    ((7, 0, 0)..=(7, 1, 4)).contains(&version)
}

fn clock_source() -> Option<Check> {
    let source = line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource")?;
    let is_fast =
        ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource"]
            .contains(&source.as_str());
    Some(if is_fast {
        Check::ok(AREA, "clock source", source)
    } else {
        Check::limited(AREA, "clock source", source, "each clock reading is a system call")
            .fixed_by("echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource")
    })
}

fn clock() -> Check {
    // The minimum of several, because another program may use the core.
    let look_ns = || {
        let began = Instant::now();
        for _ in 0..LOOKS {
            black_box(Instant::now());
        }
        began.elapsed().as_nanos() as f64 / f64::from(LOOKS)
    };
    let ns = (0..LOOK_ROUNDS).map(|_| look_ns()).fold(f64::INFINITY, f64::min);
    let found = format!("{ns:.0} ns per reading");
    if ns < SLOW_CLOCK_NS {
        Check::ok(AREA, "clock", found)
    } else {
        Check::limited(AREA, "clock", found, "time stamps slow down every batch; see the clock source")
    }
}

fn cores() -> Check {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    if count < 2 {
        return Check::limited(AREA, "cores", "1", "sender, receiver and scope share it");
    }
    // The best of several, because other programs may run.
    let readings = (0..CANARY_ROUNDS).map(|_| canary::read());
    let best = readings.min_by(|a, b| a.round_trip_ns.total_cmp(&b.round_trip_ns));
    let Some(reading) = best else { return Check::ok(AREA, "cores", count.to_string()) };
    let found = format!("{count}, round trip of a cache line {:.0} ns", reading.round_trip_ns);
    match reading.state {
        MachineState::Near => Check::ok(AREA, "cores", found),
        MachineState::Mixed | MachineState::Far => Check::limited(
            AREA,
            "cores",
            found,
            match shares_a_cache("/sys/devices/system/cpu") {
                Some(true) => {
                    "cores share a cache, but other programs or the hypervisor interfere: transfers between cores take up to \
                     three times as long"
                }
                Some(false) => "cores share no cache: transfers between cores take up to three times as long",
                None => "transfers between cores take up to three times as long",
            },
        ),
    }
}

/// Whether a cache serves all processors; `None` if unknown.
fn shares_a_cache(cpus: &str) -> Option<bool> {
    let online = line_of(&format!("{cpus}/online"))?;
    let caches = std::fs::read_dir(format!("{cpus}/cpu0/cache")).ok()?.flatten();
    let mut shared = caches.filter_map(|cache| line_of(cache.path().join("shared_cpu_list").to_str()?));
    Some(shared.any(|list| list == online))
}

fn memory() -> Check {
    let source = vec![1_u8; MEMORY_BYTES];
    let mut target = vec![0_u8; MEMORY_BYTES];
    let mut best_s = f64::INFINITY;
    for _ in 0..MEMORY_ROUNDS {
        let began = Instant::now();
        target.copy_from_slice(black_box(&source));
        black_box(&mut target);
        best_s = best_s.min(began.elapsed().as_secs_f64());
    }
    let gb_s = MEMORY_BYTES as f64 / best_s / 1e9;
    let found = format!("{gb_s:.1} GB/s copied by one core");
    if gb_s >= SLOW_MEMORY_GB_S {
        Check::ok(AREA, "memory", found)
    } else {
        Check::limited(
            AREA,
            "memory",
            found,
            "4 channels at 1 GS/s are 8 GB/s: streams of that size need more",
        )
    }
}

const LOOKS: u32 = 4_000;
const LOOK_ROUNDS: u32 = 5;
/// A reading through the vDSO takes 15 to 40 ns, a system call hundreds.
const SLOW_CLOCK_NS: f64 = 100.0;
/// Larger than every cache.
const MEMORY_BYTES: usize = 128 << 20;
const MEMORY_ROUNDS: usize = 3;
const CANARY_ROUNDS: usize = 3;
const SLOW_MEMORY_GB_S: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_cache_sizes_are_used() {
        let cpus = tempfile::tempdir().unwrap();
        let path = cpus.path().to_str().unwrap();
        assert_eq!(shares_a_cache(path), None);
        std::fs::write(cpus.path().join("online"), "0-1\n").unwrap();
        for (index, list) in [(0, "0\n"), (3, "0-1\n")] {
            let cache = cpus.path().join(format!("cpu0/cache/index{index}"));
            std::fs::create_dir_all(&cache).unwrap();
            std::fs::write(cache.join("shared_cpu_list"), list).unwrap();
            assert_eq!(shares_a_cache(path), Some(index == 3));
        }
    }

    #[test]
    fn the_kernels_that_corrupt_segments_are_known() {
        for release in ["7.0.0-rc1-generic", "7.0.3", "7.1.0-rc6", "7.1.4-arch1-1"] {
            assert!(corrupts_segments(release), "{release}");
        }
        for release in ["6.18.5", "7.1.5", "7.2.0-rc1", "8.0", "5.15.167.4-microsoft-standard-WSL2", ""] {
            assert!(!corrupts_segments(release), "{release}");
        }
    }
}
