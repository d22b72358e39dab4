//! Largest-triangle-three-buckets (Steinarsson 2013): few points that look like many, for low rates.

/// How samples become few enough to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Smallest and largest of each column: exact, shows every peak.
    MinMax,
    /// One sample a bucket, chosen for the shape: smoother, may miss a peak.
    Lttb,
}

impl Reduction {
    /// From this rate on, LTTB gives way to min/max: it costs several times as much a sample.
    pub const LTTB_RATE_HZ_END: f64 = 100e6;

    /// What is used where this is wanted; the message says so where it differs.
    ///
    /// ```
    /// use grebe_scope::Reduction;
    /// assert_eq!(Reduction::Lttb.at_rate(48e3), (Reduction::Lttb, None));
    /// let (used, message) = Reduction::Lttb.at_rate(1e9);
    /// assert_eq!((used, message), (Reduction::MinMax, Some("min/max instead of LTTB from 100 MS/s")));
    /// ```
    pub fn at_rate(self, rate_hz: f64) -> (Reduction, Option<&'static str>) {
        if self == Reduction::Lttb && rate_hz >= Reduction::LTTB_RATE_HZ_END {
            return (Reduction::MinMax, Some("min/max instead of LTTB from 100 MS/s"));
        }
        (self, None)
    }
}

/// Replaces the content of `out` by `count` of the samples, the first and the last among them, with their
/// indices; all of them where there are no more, none where `count` is 0.
///
/// Which are chosen depends on where `samples` begins: call it for each unbroken run, and take
/// [`columns`](crate::Pyramid::columns) where a picture must not change while it scrolls.
pub fn lttb(samples: &[i16], first_sample_index: u64, count: usize, out: &mut Vec<(u64, i16)>) {
    out.clear();
    let at = |place: usize| (first_sample_index + place as u64, samples[place]);
    if count == 0 || samples.is_empty() {
        return;
    }
    if count >= samples.len() || count < 3 {
        let step = if count < 3 && samples.len() > count { samples.len() - 1 } else { 1 };
        out.extend((0..samples.len()).step_by(step.max(1)).take(count).map(at));
        return;
    }
    let buckets = count - 2;
    let border = |bucket: usize| 1 + bucket * (samples.len() - 2) / buckets;
    out.push(at(0));
    let mut chosen = 0;
    for bucket in 0..buckets {
        let (from, to) = (border(bucket), border(bucket + 1));
        let next = if bucket + 1 < buckets { to..border(bucket + 2) } else { to..samples.len() };
        let len = next.len() as f64;
        let mean_x = (next.start + next.end - 1) as f64 / 2.0;
        let mean_y = samples[next].iter().map(|&s| i64::from(s)).sum::<i64>() as f64 / len;
        // Twice the triangle's area, less what all samples of the bucket share.
        let (x0, y0) = (chosen as f64, f64::from(samples[chosen]));
        let (dx, dy) = (mean_x - x0, mean_y - y0);
        let mut best = (from, -1.0);
        for (place, &sample) in (from..to).zip(&samples[from..to]) {
            let area = (dx * (f64::from(sample) - y0) - (place as f64 - x0) * dy).abs();
            if area > best.1 {
                best = (place, area);
            }
        }
        chosen = best.0;
        out.push(at(chosen));
    }
    out.push(at(samples.len() - 1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The formula of the thesis, triangle by triangle.
    fn naive(samples: &[i16], count: usize) -> Vec<(u64, i16)> {
        let point = |i: usize| (i as f64, f64::from(samples[i]));
        let buckets = count - 2;
        let border = |b: usize| 1 + b * (samples.len() - 2) / buckets;
        let mut chosen = vec![0];
        for bucket in 0..buckets {
            let next: Vec<usize> = if bucket + 1 < buckets {
                (border(bucket + 1)..border(bucket + 2)).collect()
            } else {
                vec![samples.len() - 1]
            };
            let c = next.iter().fold((0.0, 0.0), |sum, &i| (sum.0 + point(i).0, sum.1 + point(i).1));
            let c = (c.0 / next.len() as f64, c.1 / next.len() as f64);
            let a = point(chosen[chosen.len() - 1]);
            let area = |i: usize| {
                let b = point(i);
                ((a.0 - c.0) * (b.1 - a.1) - (a.0 - b.0) * (c.1 - a.1)).abs()
            };
            let places = border(bucket)..border(bucket + 1);
            let most = places.clone().map(area).fold(-1.0, f64::max);
            chosen.extend(places.clone().find(|&i| area(i) == most));
        }
        chosen.push(samples.len() - 1);
        chosen.into_iter().map(|i| (i as u64, samples[i])).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]
        #[test]
        fn it_is_the_algorithm_of_the_thesis(samples in proptest::collection::vec(-300i16..300, 3..400), count in 3usize..100) {
            let mut out = Vec::new();
            lttb(&samples, 0, count, &mut out);
            if count >= samples.len() {
                prop_assert_eq!(out.len(), samples.len());
            } else {
                prop_assert_eq!(out, naive(&samples, count));
            }
        }
    }

    #[test]
    fn few_samples_and_few_points() {
        let mut out = Vec::new();
        for (samples, count, expected) in [
            (&[][..], 5, &[][..]),
            (&[1, 2, 3], 0, &[]),
            (&[1, 2, 3], 1, &[(9, 1)]),
            (&[1, 2, 3], 2, &[(9, 1), (11, 3)]),
            (&[1, 2], 5, &[(9, 1), (10, 2)]),
            (&[4], 2, &[(9, 4)]),
        ] {
            lttb(samples, 9, count, &mut out);
            assert_eq!(out, expected);
        }
    }
}
