//! Whether comparing pays, by measured rates and by the common share of earlier files.

/// Measured rates in bytes per second; `None` while unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    /// Rate of the path.
    pub(crate) path: Option<f64>,
    /// Reading, cutting and hashing at the sender.
    pub(crate) sender: Option<f64>,
    /// Reading, cutting and hashing at the receiver.
    pub(crate) receiver: Option<f64>,
}

impl Rates {
    /// Assumed rate of the path until it has carried more: 100 Mbit/s. A useless comparison over a fast path
    /// costs only reading. Sending everything over a slow path may cost hours.
    pub(crate) const PATH_BYTES_PER_S: f64 = 12.5e6;
}

/// Share of the compared files that their bases contained.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Experience {
    pub(crate) compared_bytes: u64,
    pub(crate) copied_bytes: u64,
}

/// Whether to compare a file of `bytes` with a basis of `basis_bytes`, rather than send it whole.
///
/// Sending whole takes as long as the slower of path and reading. To compare, both ends first read their
/// files at the same time. Then the differences are sent while the receiver reads the rest again. The
/// expected common share is that of earlier files, or half before the first comparison.
pub(crate) fn delta_pays(bytes: u64, basis_bytes: u64, rates: &Rates, experience: &Experience) -> bool {
    let (bytes, basis_bytes) = (bytes as f64, basis_bytes as f64);
    let path = rates.path.unwrap_or(Rates::PATH_BYTES_PER_S);
    let sender = rates.sender.unwrap_or(READ_BYTES_PER_S);
    let receiver = rates.receiver.unwrap_or(READ_BYTES_PER_S);
    // The common part cannot exceed the basis.
    let common = experience.share().min(basis_bytes / bytes);
    let whole_s = bytes / path.min(sender);
    let compare_s = (bytes / sender).max(basis_bytes / receiver);
    let rest_s = ((1.0 - common) * bytes / path).max(common * bytes / receiver);
    compare_s + rest_s < whole_s
}

impl Experience {
    /// Adds the result of a file.
    pub(crate) fn add(&mut self, compared_bytes: u64, copied_bytes: u64) {
        self.compared_bytes += compared_bytes;
        self.copied_bytes += copied_bytes;
    }

    /// Expected common share of the next file, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        (self.copied_bytes as f64 + PRIOR_SHARE * PRIOR_BYTES) / (self.compared_bytes as f64 + PRIOR_BYTES)
    }
}

/// Minimum length. The signature of a shorter file would be a large part of it.
pub(crate) const CHANGED_BYTES_MIN: u64 = 32 << 10;

/// Rate at which one slow core cuts and hashes.
const READ_BYTES_PER_S: f64 = 500e6;
const PRIOR_SHARE: f64 = 0.5;
/// Weight of the initial guess, in bytes.
const PRIOR_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GB: u64 = 1_000_000_000;

    fn rates(path: f64, sender: f64, receiver: f64) -> Rates {
        Rates { path: Some(path), sender: Some(sender), receiver: Some(receiver) }
    }

    fn pays(path: f64, sender: f64, receiver: f64) -> bool {
        delta_pays(GB, GB, &rates(path, sender, receiver), &Experience::default())
    }

    #[test]
    fn a_slow_path_compares_and_a_fast_one_sends() {
        assert!(pays(12.5e6, 500e6, 500e6), "100 Mbit/s");
        assert!(pays(125e6, 500e6, 500e6), "1 Gbit/s");
        assert!(!pays(1_250e6, 500e6, 500e6), "10 Gbit/s");
        assert!(!pays(125e6, 500e6, 100e6), "a receiver's disk that is slower than the path");
        assert!(!pays(125e6, 60e6, 500e6), "a sender's disk that is slower than the path");
        assert!(delta_pays(GB, GB, &Rates::default(), &Experience::default()), "nothing measured");
    }

    #[test]
    fn files_that_had_nothing_in_common_teach_to_send() {
        let mut experience = Experience::default();
        let rates = rates(50e6, 500e6, 500e6);
        let pays = |experience: &Experience| delta_pays(GB, GB, &rates, experience);
        assert!(pays(&experience));
        experience.add(GB, 0);
        assert!(!pays(&experience));
        experience.add(3 * GB, 3 * GB);
        assert!(pays(&experience));
    }

    #[test]
    fn a_basis_with_little_of_the_file_is_not_read() {
        let rates = rates(125e6, 500e6, 500e6);
        let compared = |basis_bytes| delta_pays(GB, basis_bytes, &rates, &Experience::default());
        assert!(compared(GB));
        assert!(!compared(GB / 100));
        assert!(!compared(0));
        assert!(!compared(100 * GB), "a basis that takes longer to read than the file to send");
    }

    proptest! {
        /// If nothing is in common, the loss is at most the expected gain.
        #[test]
        fn a_comparison_never_exceeds_its_announced_cost(
            bytes in 1..10_u64.pow(13), path in 1e3..1e10_f64, sender in 1e6..1e10_f64, receiver in 1e6..1e10_f64,
        ) {
            let rates = rates(path, sender, receiver);
            if delta_pays(bytes, bytes, &rates, &Experience::default()) {
                let bytes = bytes as f64;
                let whole_s = bytes / path.min(sender);
                let at_worst_s = (bytes / sender).max(bytes / receiver) + bytes / path;
                prop_assert!(at_worst_s <= 1.5 * whole_s, "{at_worst_s} {whole_s}");
            }
        }

        #[test]
        fn any_numbers_give_an_answer(bytes: u64, basis_bytes: u64, compared_bytes in 0..1_u64 << 60) {
            let experience = Experience { compared_bytes, copied_bytes: compared_bytes };
            delta_pays(bytes, basis_bytes, &rates(0.0, 0.0, 0.0), &experience);
            prop_assert!((0.0..=1.0).contains(&experience.share()));
        }
    }
}
