//! QPSK of known SNR, from the generator through a recording to the scope's measurements, against the signal's
//! definition and SciPy; and a tone, which has no image.

use std::f64::consts::PI;
use std::path::Path;

use grebe_flow::{Graph, QueueOptions};
use grebe_frame::Complex;
use grebe_recording::SampleFile;
use grebe_scope::{Averaging, Band, PowerStats, Spectrum, Window};
use grebe_stages::{SinkOptions, SourceOptions, open_sink, open_source};

const RATE_HZ: f64 = 2.4e6;
const ROLL_OFF: f64 = 0.35;
const SAMPLES: u64 = 262_144;

/// Symbols per second, SNR in decibels, and SciPy 1.17's results: SNR in decibels, and hertz that hold 99 % of the
/// power within 1.6 symbol rates. `ci/qpsk.py` prints them and checks them against the definition.
const SCIPY: [(f64, f64, f64, f64); 9] = [
    (600_000.0, 10.0, 9.992, 749_198.0),
    (600_000.0, 20.0, 19.994, 703_715.0),
    (600_000.0, 30.0, 29.994, 700_150.0),
    (300_000.0, 10.0, 9.998, 361_517.0),
    (300_000.0, 20.0, 19.996, 350_976.0),
    (300_000.0, 30.0, 29.995, 349_953.0),
    (123_456.0, 10.0, 9.991, 145_667.0),
    (123_456.0, 20.0, 19.994, 144_108.0),
    (123_456.0, 30.0, 29.995, 143_953.0),
];

#[test]
fn a_recording_of_qpsk_has_the_requested_snr_and_bandwidth() {
    let folder = tempfile::tempdir().unwrap();
    for (symbol_rate_hz, snr_db, scipy_snr_db, scipy_occupied_hz) in SCIPY {
        let path = folder.path().join(format!("{symbol_rate_hz}-{snr_db}.sigmf-meta"));
        let wave =
            format!("wave=qpsk&symbol_rate={symbol_rate_hz}&roll_off={ROLL_OFF}&amplitude=1&snr={snr_db}");
        let (i, q) = recorded(&path, "cf32", &wave);
        let near = |what: &str, found: f64, expected: f64, allowed: f64| {
            let name = format!("{what} of {symbol_rate_hz} symbols/s at {snr_db} dB");
            assert!((found - expected).abs() <= allowed, "{name}: {found} where {expected} is expected");
        };

        let mut power = PowerStats::default();
        power.add(&i, &q);
        // The RMS of QPSK is a quarter of its amplitude.
        let whole = (1.0 + 10f64.powf(-snr_db / 10.0)) / 16.0;
        near("power", power.mean_dbfs(1.0).unwrap(), 10.0 * whole.log10(), 0.2);

        let spectrum = spectrum(&i, &q);
        let band = |width_hz: f64| Band { low: -width_hz / 2.0 / RATE_HZ, high: width_hz / 2.0 / RATE_HZ };
        let channel = band(symbol_rate_hz * (1.0 + ROLL_OFF));
        let beside = Band { low: 0.35, high: 0.48 };
        // The scope measures the noise in the channel, the generator defines it in the whole band.
        let found_db = spectrum.channel_snr_db(channel, &[beside]).unwrap() + 10.0 * channel.width().log10();
        near("SNR", found_db, snr_db, 0.2);
        near("SNR by SciPy", found_db, scipy_snr_db, 0.2);

        let within_hz = 1.6 * symbol_rate_hz;
        let occupied_hz = spectrum.occupied_band(0.99, band(within_hz)).unwrap().width() * RATE_HZ;
        let exact_hz = exact_bandwidth_hz(symbol_rate_hz, snr_db, within_hz);
        near("bandwidth", occupied_hz, exact_hz, exact_hz * 0.02);
        near("bandwidth by SciPy", occupied_hz, scipy_occupied_hz, scipy_occupied_hz * 0.02);
    }
}

#[test]
fn a_tone_above_the_centre_has_no_image_below_it() {
    let folder = tempfile::tempdir().unwrap();
    for (format, image_db) in [("cf32", -120.0), ("ci16", -90.0), ("cu8", -60.0)] {
        for sign in [1.0, -1.0] {
            let path = folder.path().join(format!("{format}{sign}.sigmf-meta"));
            let (i, q) =
                recorded(&path, format, &format!("wave=sine&frequency={}&amplitude=1", sign * 100e3));
            let spectrum = spectrum(&i, &q);
            let highest = spectrum.peaks(1, -100.0)[0];
            let found_hz = spectrum.cycles_per_sample(highest.line) * RATE_HZ;
            assert!((found_hz - sign * 100e3).abs() < 20.0, "{format}: the tone is at {found_hz} Hz");
            let around = |frequency_hz: f64| Band {
                low: (frequency_hz - 5e3) / RATE_HZ,
                high: (frequency_hz + 5e3) / RATE_HZ,
            };
            let image =
                spectrum.band_power_dbfs(around(-found_hz)) - spectrum.band_power_dbfs(around(found_hz));
            assert!(image < image_db, "{format}: an image of {image} dB");
        }
    }
}

/// I and Q of the generator, through a recording, as parts of full scale.
fn recorded(path: &Path, format: &str, wave: &str) -> (Vec<f32>, Vec<f32>) {
    let uri =
        format!("synth:?channels=1&format={format}&rate={RATE_HZ}&samples={SAMPLES}&free_run=yes&{wave}");
    let mut notify = |_| ();
    let source = open_source(&uri.parse().unwrap(), SourceOptions::default(), &mut notify).unwrap();
    let sink = path.display().to_string().parse().unwrap();
    let sink = open_sink(&sink, &SinkOptions::default(), &mut notify).unwrap();
    let mut graph = Graph::new();
    let (source, sink) = (graph.add_boxed("source", source.stage), graph.add_boxed("sink", sink.stage));
    graph.connect(source, sink, QueueOptions::block(16));
    graph.start().unwrap().wait().unwrap();

    let mut file = SampleFile::open(path).unwrap();
    assert_eq!(file.len_samples(), SAMPLES);
    let block = file.block(0, SAMPLES as usize).unwrap();
    let pairs: Vec<(f32, f32)> = match format {
        "cf32" => block.channel::<Complex<f32>>(0).unwrap().iter().map(|c| (c.re, c.im)).collect(),
        "ci16" => {
            let part = |number: i16| f32::from(number) / 32_768.0;
            block.channel::<Complex<i16>>(0).unwrap().iter().map(|c| (part(c.re), part(c.im))).collect()
        }
        _ => {
            let part = |number: u8| (f32::from(number) - 127.5) / 128.0;
            block.channel::<Complex<u8>>(0).unwrap().iter().map(|c| (part(c.re), part(c.im))).collect()
        }
    };
    pairs.into_iter().unzip()
}

fn spectrum(i: &[f32], q: &[f32]) -> Spectrum<f32, 2> {
    let mut spectrum = Spectrum::complex(4_096, Window::BlackmanHarris, Averaging::All).unwrap();
    spectrum.append(0, i, q, |_| {});
    spectrum
}

/// Bandwidth of 99 % of the power, for a raised cosine (the spectrum of root-raised pulses) and flat noise.
fn exact_bandwidth_hz(symbol_rate_hz: f64, snr_db: f64, within_hz: f64) -> f64 {
    let noise = 10f64.powf(-snr_db / 10.0) / RATE_HZ;
    let (begin, end) = ((1.0 - ROLL_OFF) / 2.0 * symbol_rate_hz, (1.0 + ROLL_OFF) / 2.0 * symbol_rate_hz);
    let beyond = |edge: f64| {
        let x = (edge.clamp(begin, end) - begin) / (end - begin);
        let roll = (end - begin) / symbol_rate_hz * ((1.0 - x) - (PI * x).sin() / PI) / 2.0;
        roll + (begin - edge).max(0.0) / symbol_rate_hz + noise * (within_hz / 2.0 - edge)
    };
    let outside = 0.005 * (1.0 + noise * within_hz);
    let (mut low, mut high) = (0.0, within_hz / 2.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if beyond(middle) > outside { low = middle } else { high = middle }
    }
    low + high
}
