//! Processor time of this program.

use std::fs;

/// Measures processor time between two looks.
#[derive(Debug, Default)]
pub(crate) struct CpuMeter {
    /// Ticks used, and when.
    last: Option<(u64, u64)>,
}

impl CpuMeter {
    /// Part of one core used since the last call; `None` on the first, or if the system does not report it.
    pub(crate) fn look(&mut self, now_ns: u64) -> Option<f64> {
        let ticks = ticks(&fs::read_to_string("/proc/self/stat").ok()?)?;
        let (before, since_ns) = self.last.replace((ticks, now_ns))?;
        let seconds = now_ns.saturating_sub(since_ns) as f64 * 1e-9;
        (seconds > 0.0).then(|| ticks.saturating_sub(before) as f64 / TICKS_PER_SECOND / seconds)
    }
}

/// User and system time (proc_pid_stat(5): fields 14 and 15). The name before them may hold spaces and brackets.
fn ticks(stat: &str) -> Option<u64> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// USER_HZ, 100 on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
        assert_eq!(ticks(&format!("77 (grebe) {rest}")), Some(300));
        assert_eq!(ticks(&format!("77 (a) b) {rest}")), Some(300));
        assert_eq!(ticks("77 grebe"), None);
    }
}
