use std::f64::consts::{PI, TAU};

use grebe_testing::Rng;

use super::*;

/// Complex samples.
type Signal = Vec<(f64, f64)>;

/// Complex Gaussian noise of a power.
fn noise(seed: u64, power: f64, length: usize) -> Signal {
    let mut rng = Rng::with_seed(seed);
    let one = |_| {
        let radius = (-(1.0 - rng.f64()).ln() * power).sqrt();
        let (sin, cos) = (TAU * rng.f64()).sin_cos();
        (radius * cos, radius * sin)
    };
    (0..length).map(one).collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Tone,
    Chirp,
    /// Frequency modulation by a tone.
    Fm,
    /// Symbols through a root raised cosine with a roll-off of 0.35.
    Qpsk,
}

/// A signal put into the noise; frequencies in cycles per sample.
#[derive(Debug, Clone, Copy)]
struct Made {
    kind: Kind,
    start: usize,
    length: usize,
    centre: f64,
    bandwidth: f64,
    snr_db: f64,
}

impl Made {
    fn power(&self) -> f64 {
        NOISE * self.bandwidth * 10f64.powf(self.snr_db / 10.0)
    }

    fn end(&self) -> usize {
        self.start + self.length
    }

    /// Standard deviations of centre (of the bandwidth) and power (in decibels) that the noise and, of symbols, chance leave to any
    /// measurement: as many independent cells as bandwidth times duration.
    fn deviations(&self) -> (f64, f64) {
        let cells = (self.bandwidth * self.length as f64).max(1.0);
        let noise = 10f64.powf(-self.snr_db / 10.0);
        let own = if self.kind == Kind::Qpsk { 0.1 } else { 0.0 };
        let relative = ((2.0 * noise + noise * noise + own) / cells).sqrt();
        (relative * 0.29, relative * 4.34)
    }

    fn add(&self, samples: &mut [(f64, f64)], seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let own = &mut samples[self.start..self.end()];
        let of_phase = |phase: f64| (TAU * phase).sin_cos();
        let turn = |at: usize| of_phase((self.centre * at as f64).fract());
        let length = self.length as f64;
        let mut base: Signal = match self.kind {
            Kind::Tone => vec![(1.0, 0.0); self.length],
            Kind::Chirp => (0..self.length)
                .map(|at| {
                    let (sin, cos) = of_phase(self.bandwidth * at as f64 * (at as f64 / length - 1.0) / 2.0);
                    (cos, sin)
                })
                .collect(),
            Kind::Fm => (0..self.length)
                .map(|at| {
                    // As wide as twice the deviation and the modulating tone (Carson), whole periods of it.
                    let modulating = (self.bandwidth / 42.0 * length).round().max(1.0) / length;
                    let (sin, cos) = of_phase(20.0 / TAU * (TAU * modulating * at as f64).sin());
                    (cos, sin)
                })
                .collect(),
            Kind::Qpsk => {
                let period = 1.35 / self.bandwidth;
                let symbols: Vec<(f64, f64)> = (0..(length / period) as usize + 20)
                    .map(|_| (f64::from(rng.bool()) * 2.0 - 1.0, f64::from(rng.bool()) * 2.0 - 1.0))
                    .collect();
                (0..self.length)
                    .map(|at| {
                        let at = at as f64 / period + 8.0;
                        let near = (at - 7.0) as usize..(at + 8.0) as usize;
                        near.fold((0.0, 0.0), |(i, q), number| {
                            let tap = root_raised_cosine(at - number as f64);
                            (i + symbols[number].0 * tap, q + symbols[number].1 * tap)
                        })
                    })
                    .collect()
            }
        };
        let mean = base.iter().map(|(i, q)| i * i + q * q).sum::<f64>() / length;
        let scale = (self.power() / mean).sqrt();
        for (at, ((i, q), sample)) in base.drain(..).zip(own).enumerate() {
            let (sin, cos) = turn(at);
            *sample = (sample.0 + scale * (i * cos - q * sin), sample.1 + scale * (i * sin + q * cos));
        }
    }
}

fn root_raised_cosine(t: f64) -> f64 {
    const ROLL_OFF: f64 = 0.35;
    let (near, edge) = (t.abs() < 1e-9, ((4.0 * ROLL_OFF * t).abs() - 1.0).abs() < 1e-9);
    if near {
        return 1.0 - ROLL_OFF + 4.0 * ROLL_OFF / PI;
    }
    let t = if edge { t + 1e-6 } else { t };
    ((PI * t * (1.0 - ROLL_OFF)).sin() + 4.0 * ROLL_OFF * t * (PI * t * (1.0 + ROLL_OFF)).cos())
        / (PI * t * (1.0 - (4.0 * ROLL_OFF * t).powi(2)))
}

fn find(settings: BurstSettings, samples: &[(f64, f64)]) -> Vec<Burst> {
    let mut detector = BurstDetector::complex(settings, 1.0).unwrap();
    let mut found = Vec::new();
    for (number, piece) in samples.chunks(10_000).enumerate() {
        let (i, q) = parts(piece);
        detector.append(number as u64 * 10_000, &i, &q, |burst| found.push(burst));
    }
    detector.end(|burst| found.push(burst));
    found.sort_by_key(|burst| burst.first_sample_index);
    found
}

fn parts(samples: &[(f64, f64)]) -> (Vec<f32>, Vec<f32>) {
    samples.iter().map(|&(i, q)| (i as f32, q as f32)).unzip()
}

/// As at 2 MS/s: 0.2 ms to 0.5 s, 10 to 40 dB over the noise in their band.
fn scene(size: usize, rng: &mut Rng) -> Vec<Made> {
    let mut all = Vec::new();
    let mut start = 100_000;
    let lengths =
        [1_000, 1_400, 2_500, 6_000, 20_000, 100_000, 1_000_000, 1_200, 3_000, 12_000, 40_000, 5_000];
    for (number, length) in lengths.into_iter().enumerate() {
        for kind in [Kind::Tone, Kind::Chirp, Kind::Fm, Kind::Qpsk] {
            if length > 100_000 && kind != Kind::Tone {
                continue;
            }
            let snr_db = [10.0, 14.0, 20.0, 40.0, 12.0, 30.0][(number + kind as usize) % 6];
            let bandwidth = match kind {
                Kind::Tone => 1.5 / size.min(length) as f64,
                _ => [0.05, 0.2, 0.1][number % 3],
            };
            let centre = (rng.f64() - 0.5) * 0.7;
            all.push(Made { kind, start, length, centre, bandwidth, snr_db });
            start += length + 12_000 + rng.usize(0..10_000);
        }
    }
    all
}

const NOISE: f64 = 1e-4;

#[test]
fn bursts_of_known_time_band_and_power_are_found_as_they_are() {
    let settings = BurstSettings { size: 256, threads: 2, ..BurstSettings::default() };
    let made = scene(settings.size, &mut Rng::with_seed(11));
    let length = made.last().map_or(0, Made::end) + 50_000;
    let mut samples = noise(5, NOISE, length);
    made.iter().zip(0..).for_each(|(made, seed)| made.add(&mut samples, seed));
    let found = find(settings, &samples);
    let mut wrong = Vec::new();
    for made in &made {
        let is_it = |burst: &&Burst| {
            let end = burst.first_sample_index + burst.length_samples;
            burst.first_sample_index < made.end() as u64 && (made.start as u64) < end
        };
        let own: Vec<&Burst> = found.iter().filter(is_it).collect();
        let [burst] = own[..] else {
            wrong.push(format!("{made:?}: {own:?}"));
            continue;
        };
        let end = burst.first_sample_index + burst.length_samples;
        let (centre_deviation, power_deviation) = made.deviations();
        let begin_off = burst.first_sample_index as f64 - made.start as f64;
        let end_off = end as f64 - made.end() as f64;
        let centre_off = (burst.centre - made.centre) / made.bandwidth;
        let power_off = burst.power_dbfs - 10.0 * made.power().log10();
        let is_right = begin_off.abs().max(end_off.abs()) <= settings.size as f64
            && centre_off.abs() <= 0.02f64.max(4.0 * centre_deviation)
            && power_off.abs() <= 0.3f64.max(4.0 * power_deviation);
        let told = format!(
            "{:?} {} at {} dB, {:.3} wide: begin {begin_off}, end {end_off}, centre {:.2} % ({:.2}), power {power_off:.2} dB ({power_deviation:.2}), {:.3} wide, SNR {:.1}",
            made.kind,
            made.length,
            made.snr_db,
            made.bandwidth,
            centre_off * 100.0,
            centre_deviation * 100.0,
            burst.bandwidth,
            burst.snr_db
        );
        if !is_right {
            wrong.push(told);
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(found.len(), made.len(), "and nothing else: {found:#?}");
}

#[test]
fn noise_gives_as_few_false_alarms_as_were_asked_for() {
    for (false_alarms, samples) in [(1e-7, 3_000_000), (1e-4, 3_000_000)] {
        let found = find(
            BurstSettings { size: 256, false_alarms, ..BurstSettings::default() },
            &noise(77, 1.0, samples),
        );
        let most = samples as f64 * 2.0 * false_alarms;
        assert!((found.len() as f64) <= most + 3.0 * most.sqrt() + 1.0, "{} of {most}", found.len());
        // The thresholds are not so high that nothing would ever be found.
        assert!(most < 10.0 || found.len() as f64 > most / 4.0, "{} of {most}", found.len());
    }
}

#[test]
fn threads_and_blocks_change_no_burst() {
    let mut samples = noise(12, NOISE, 1_500_000);
    let mut rng = Rng::with_seed(3);
    let (kinds, mut start) = ([Kind::Tone, Kind::Chirp, Kind::Fm, Kind::Qpsk], 50_000);
    for number in 0..60 {
        let (length, centre) = (rng.usize(500..40_000), (rng.f64() - 0.5) * 0.8);
        let (kind, snr_db) = (kinds[number % 4], 10.0 + rng.f64() * 30.0);
        Made { kind, start, length, centre, bandwidth: 0.05, snr_db }.add(&mut samples, number as u64);
        start += rng.usize(0..24_000);
    }
    samples[700_000].0 = f64::NAN;
    let (i, q) = parts(&samples);
    let all = |threads, block: usize| {
        let settings = BurstSettings { size: 256, threads, ..BurstSettings::default() };
        let mut detector = BurstDetector::complex(settings, 1.0).unwrap();
        detector.learn(&i[..9_000], &q[..9_000]);
        let mut found = Vec::new();
        for (number, (i, q)) in i.chunks(block).zip(q.chunks(block)).enumerate() {
            detector.append((number * block) as u64, i, q, |burst| found.push(burst));
        }
        detector.end(|burst| found.push(burst));
        found
    };
    let one = all(1, samples.len());
    assert!(one.len() > 20, "{one:#?}");
    for (threads, block) in [(1, 999), (1, 100_000), (2, samples.len()), (2, 262_144), (5, 300_001)] {
        assert_eq!(all(threads, block), one, "{threads} threads, blocks of {block}");
    }
}

#[test]
fn both_frequencies_of_shift_keying_are_one_burst_and_neighbours_of_other_times_are_not() {
    let tone = |start, length, centre| Made {
        kind: Kind::Tone,
        start,
        length,
        centre,
        bandwidth: 1.5 / 256.0,
        snr_db: 25.0,
    };
    let mut samples = noise(8, NOISE, 900_000);
    let mut rng = Rng::with_seed(2);
    // Symbols of 150 samples, each at one of two frequencies 31 lines apart.
    let (begin, symbols) = (100_000, 400);
    for symbol in 0..symbols {
        let centre = if symbol % 2 == 0 || rng.bool() { -0.06 } else { 0.06 };
        tone(begin + symbol * 150, 150, centre).add(&mut samples, 1);
    }
    // Two transmitters, one of which is on for longer.
    tone(400_000, 60_000, -0.06).add(&mut samples, 1);
    tone(400_000, 80_000, 0.06).add(&mut samples, 1);
    // One that begins with another, and has a third between them.
    tone(600_000, 60_000, -0.2).add(&mut samples, 1);
    tone(590_000, 90_000, -0.13).add(&mut samples, 1);
    tone(600_000, 60_000, -0.06).add(&mut samples, 1);
    let found = find(BurstSettings { size: 256, ..BurstSettings::default() }, &samples);
    assert_eq!(found.len(), 6, "{found:#?}");
    let keyed = found[0];
    assert!(keyed.first_sample_index.abs_diff(begin as u64) < 256, "{keyed:?}");
    assert!(keyed.length_samples.abs_diff(symbols as u64 * 150) < 512, "{keyed:?}");
    // Three quarters of the time at the lower frequency.
    assert!((keyed.centre + 0.03).abs() < 0.01 && (0.12..0.15).contains(&keyed.bandwidth), "{keyed:?}");
}

#[test]
fn the_end_of_a_strong_burst_does_not_reach_a_steady_one_beside_it() {
    let of =
        |start, length, centre| Made { kind: Kind::Fm, start, length, centre, bandwidth: 0.05, snr_db: 37.0 };
    let mut samples = noise(9, NOISE, 400_000);
    of(100_000, 60_000, 0.2).add(&mut samples, 1);
    of(140_003, 60_000, 0.29).add(&mut samples, 1);
    let found = find(BurstSettings { size: 1024, ..BurstSettings::default() }, &samples);
    let places: Vec<_> = found.iter().map(|it| (it.first_sample_index, it.length_samples)).collect();
    assert!(
        places.len() == 2 && places.iter().all(|(_, length)| length.abs_diff(60_000) < 512),
        "{found:#?}"
    );
}

#[test]
fn bursts_of_the_first_and_the_last_sample_are_found_where_the_floor_was_learned() {
    let tone = |start, length, snr_db| Made {
        kind: Kind::Tone,
        start,
        length,
        centre: 0.2,
        bandwidth: 1.5 / 256.0,
        snr_db,
    };
    // As much louder as the noise of the first pieces, which is another one.
    for (power, snr_db) in [(NOISE, 20.0), (NOISE * 10.0, 30.0)] {
        let mut samples = noise(6, NOISE, 700_000);
        samples[..120_000].copy_from_slice(&noise(7, power, 120_000));
        tone(0, 100_000, snr_db).add(&mut samples, 1);
        tone(650_000, 50_000, 20.0).add(&mut samples, 1);
        let settings = BurstSettings { size: 256, ..BurstSettings::default() };
        assert_eq!(find(settings, &samples).len(), 1, "a part of the floor");
        let mut detector = BurstDetector::complex(settings, 1.0).unwrap();
        for piece in detector.pieces(samples.len() as u64) {
            let (i, q) = parts(&samples[piece.start as usize..piece.end as usize]);
            detector.learn(&i, &q);
        }
        let mut found = Vec::new();
        let (i, q) = parts(&samples);
        detector.append(0, &i, &q, |burst| found.push(burst));
        detector.end(|burst| found.push(burst));
        let told: Vec<_> =
            found.iter().map(|it| (it.first_sample_index, it.length_samples, it.is_cut)).collect();
        let [first, last] = told[..] else { panic!("{found:#?}") };
        assert!(first.0 == 0 && first.1.abs_diff(100_000) < 256 && first.2, "{first:?}");
        assert!(last.0.abs_diff(650_000) < 256 && last.0 + last.1 == 700_000 && last.2, "{last:?}");
    }
    let detector = BurstDetector::complex(BurstSettings::default(), 1.0).unwrap();
    assert!(detector.pieces(0).next().is_none());
    assert!(detector.pieces(100).eq(std::iter::once(0..100)));
    let pieces: Vec<_> = detector.pieces(1 << 40).collect();
    assert_eq!((pieces.len(), pieces[15].end), (16, 1 << 40));
}

#[test]
fn gaps_carriers_and_bad_samples() {
    let mut samples = noise(3, NOISE, 400_000);
    let tone = |start, length, centre, power: f64| Made {
        kind: Kind::Tone,
        start,
        length,
        centre,
        bandwidth: 1.0,
        snr_db: 10.0 * (power / NOISE).log10(),
    };
    // A carrier that is there from the beginning is the floor.
    tone(0, 400_000, 0.3, 1e-3).add(&mut samples, 1);
    tone(200_000, 5_000, -0.2, 1e-3).add(&mut samples, 1);
    // A million times the noise, and a weak burst at the same time.
    tone(300_000, 5_000, 0.1, 100.0).add(&mut samples, 1);
    tone(301_000, 3_000, -0.35, 1e-3).add(&mut samples, 1);
    let settings = BurstSettings { size: 256, ..BurstSettings::default() };
    let found = find(settings, &samples);
    let centres: Vec<f64> = found.iter().map(|burst| (burst.centre * 100.0).round() / 100.0).collect();
    assert_eq!(centres, [-0.2, 0.1, -0.35], "{found:#?}");
    assert!(found.iter().all(|burst| !burst.is_cut));
    // A gap within a burst makes two of it. The detector ignores NaN.
    let mut detector = BurstDetector::complex(settings, 1.0).unwrap();
    let (mut i, q) = parts(&samples);
    i[150_000] = f32::NAN;
    let mut found = Vec::new();
    detector.append(0, &i[..202_000], &q[..202_000], |burst| found.push(burst));
    detector.append(1_000_000, &i[202_000..290_000], &q[202_000..290_000], |burst| found.push(burst));
    detector.end(|burst| found.push(burst));
    let places: Vec<_> =
        found.iter().map(|it| (it.first_sample_index, it.length_samples, it.is_cut)).collect();
    assert!(matches!(places[..], [(_, _, true), (1_000_000, _, true)]), "{found:#?}");
    assert_eq!(places[0].0 + places[0].1, 202_000);
    assert!(places[0].0.abs_diff(200_000) < 256 && places[1].1.abs_diff(3_000) < 256, "{found:#?}");
    let mut settings = BurstSettings { size: 256, longest_samples: 300_000, ..settings };
    // A signal that lasts too long is reported once, and then is part of the floor.
    let mut lasting = noise(4, NOISE, 1_200_000);
    tone(150_000, 1_000_000, 0.1, 1e-3).add(&mut lasting, 1);
    let found = find(settings, &lasting);
    assert!(found.len() == 1 && found[0].length_samples.abs_diff(300_000) < 2_000, "{found:#?}");
    settings.size = 100;
    assert!(BurstDetector::complex(settings, 1.0).is_err());
    let settings = BurstSettings { false_alarms: 0.0, ..BurstSettings::default() };
    assert!(BurstDetector::complex(settings, 1.0).is_err());
}
