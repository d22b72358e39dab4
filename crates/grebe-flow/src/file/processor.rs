//! The processors that a stage can be kept on.

use toml::Spanned;

use crate::mistake::Mistakes;

pub(super) fn check_cpu(cpu: &Spanned<usize>, mistakes: &mut Mistakes) {
    let there = processors();
    if !there.contains(cpu.get_ref()) {
        mistakes
            .add(cpu.span(), format!("this machine lends no processor {} to this process", cpu.get_ref()))
            .help(format!("there are {}", listed(&there)));
    }
}

/// The processors that this process may run on.
#[cfg(target_os = "linux")]
pub(super) fn processors() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => (0..CpuSet::MAX_CPU).collect(),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn processors() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(usize::from(u16::MAX), usize::from)).collect()
}

/// `0-3, 6`.
fn listed(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(first, last): (usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_listed_in_ranges() {
        assert_eq!(listed(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(listed(&[]), "");
        assert!(!processors().is_empty());
    }
}
