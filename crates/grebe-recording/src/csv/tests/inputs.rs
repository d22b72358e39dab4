//! Tables as programs, instruments and loggers write them: the result of each, or the refusal.

use std::fmt::Write as _;
use std::path::PathBuf;

use grebe_ring::Cancel;

use crate::{CsvOptions, Error, SampleFile, import_csv};

/// The expected result of an input.
struct Read<'a> {
    rate_hz: f64,
    /// Name and unit of each channel.
    channels: &'a [(&'a str, &'a str)],
    samples: u64,
    gaps: &'a [(u64, u64)],
    /// A part of one of the notes; empty: there is none.
    note: &'a str,
    /// Second sample of the first channel.
    second: f64,
    began: &'a str,
}

const PLAIN: Read<'static> =
    Read { rate_hz: 0.0, channels: &[], samples: 0, gaps: &[], note: "", second: f64::NAN, began: "" };

/// Imports the text; returns the file and the notices.
fn import(text: &[u8], name: &str) -> Result<(tempfile::TempDir, SampleFile, Vec<String>), Error> {
    let folder = tempfile::tempdir().unwrap();
    let (file, query) = name.split_once('?').map_or((name, ""), |(file, query)| (file, query));
    let path = folder.path().join(file);
    std::fs::write(&path, text).unwrap();
    let named: PathBuf =
        if query.is_empty() { path.clone() } else { format!("{}?{query}", path.display()).into() };
    let out = import_csv(&named, &folder.path().join("o"), &CsvOptions::default(), &Cancel::default());
    let imported = match out {
        Ok(imported) => imported,
        Err(error) => {
            // The suggested name has to work.
            let words = error.to_string();
            let begin = format!("'{}?", path.display());
            for (at, _) in words.match_indices(&begin) {
                let typed = words[at + 1..].split('\'').next().unwrap();
                let again = folder.path().join("again");
                let again = import_csv(typed.as_ref(), &again, &CsvOptions::default(), &Cancel::default());
                let is_example = typed.contains("skip=");
                assert!(again.is_ok() || is_example, "{name}: {typed}: {again:?}");
                if let Ok(imported) = &again {
                    SampleFile::open(&imported.path).unwrap();
                }
                std::fs::remove_dir_all(folder.path()).unwrap();
                std::fs::create_dir(folder.path()).unwrap();
                std::fs::write(&path, text).unwrap();
            }
            return Err(error);
        }
    };
    let file = SampleFile::open(&imported.path)?;
    Ok((folder, file, imported.notes))
}

fn reads(name: &str, text: impl AsRef<[u8]>, right: &Read<'_>) {
    let (_folder, mut file, notes) =
        import(text.as_ref(), name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let rate_hz = file.rate_hz().unwrap_or(0.0);
    assert!((rate_hz - right.rate_hz).abs() <= right.rate_hz * 1e-5, "{name}: {rate_hz} S/s; {notes:?}");
    assert_eq!(file.len_samples(), right.samples, "{name}: {notes:?}");
    let named = |said: &grebe_frame::ChannelDescription| (said.name.clone(), said.unit.clone());
    let channels: Vec<(String, String)> =
        file.description(0).map_or(Vec::new(), |said| said.channels.iter().map(named).collect());
    let channels: Vec<(&str, &str)> =
        channels.iter().map(|(name, unit)| (name.as_str(), unit.as_str())).collect();
    assert_eq!(channels, right.channels, "{name}: {notes:?}");
    let gaps: Vec<(u64, u64)> = file.gaps().map(|gap| (gap.position, gap.length_samples)).collect();
    assert_eq!(gaps, right.gaps, "{name}: {notes:?}");
    match right.note {
        "" => assert_eq!(notes, [""; 0], "{name}"),
        note => assert!(notes.iter().any(|said| said.contains(note)), "{name}: {notes:?}"),
    }
    let second = file.block(1, 1).unwrap().channel::<f64>(0).unwrap()[0];
    assert!(second == right.second || second.is_nan() && right.second.is_nan(), "{name}: {second}");
    let began = file.segments()[0].recorded_at;
    let began = began.map_or(String::new(), |at| jiff::Timestamp::try_from(at).unwrap().to_string());
    assert_eq!(began, right.began, "{name}");
}

fn refuses(name: &str, text: impl AsRef<[u8]>, says: &str) {
    let error = import(text.as_ref(), name).map(|(_, _, notes)| notes);
    let error = error.expect_err(name).to_string();
    assert!(error.contains(says), "{name}: {error}");
}

/// Lines with a time each, and the number of the line.
fn timed(heading: &str, count: usize, time: impl Fn(usize) -> String) -> String {
    let mut text = format!("{heading}\n");
    (0..count).for_each(|at| writeln!(text, "{},{at}", time(at)).unwrap());
    text
}

const A: &[(&str, &str)] = &[("a", "")];

#[test]
fn times_that_are_rounded_say_the_rate() {
    for (rate_hz, decimals) in
        [(48e3, 5), (256.0, 3), (360.0, 3), (400.0, 3), (60.0, 2), (128.0, 2), (8.0, 1), (1e6, 6), (50e6, 9)]
    {
        let text = timed("time_s,a", 4_000, |at| format!("{:.decimals$}", at as f64 / rate_hz));
        let right = Read { rate_hz, channels: A, samples: 4_000, second: 1.0, ..PLAIN };
        reads("x.csv", &text, &right);
        // The rate in the name wins, and differing times are not an error.
        reads(&format!("x.csv?rate={rate_hz}"), &text, &right);
    }
    for (rate_hz, unit, per_s) in
        [(860.0, "ms", 1e3), (2e3, "ms", 1e3), (5e3, "ms", 1e3), (44_100.0, "us", 1e6)]
    {
        let text = timed(&format!("time_{unit},a"), 8_000, |at| {
            format!("{:.0}", (at as f64 / rate_hz * per_s).floor())
        });
        reads("x.csv", text, &Read { rate_hz, channels: A, samples: 8_000, second: 1.0, ..PLAIN });
    }
}

#[test]
fn every_kind_of_time_is_one() {
    let right = Read { rate_hz: 100.0, channels: A, samples: 50, second: 1.0, ..PLAIN };
    let at_10_ms = |at: usize| format!("{:.2}", at as f64 / 100.0);
    for heading in [
        "time",
        "Time (s)",
        "Time [s]",
        "#time (s)",
        "in s",
        "Timestamp(s)",
        "elapsed_s",
        "\"Time (s)\"",
        "Second",
    ] {
        reads("x.csv", timed(&format!("{heading},a"), 50, at_10_ms), &right);
    }
    reads(
        "x.csv",
        timed("t,a", 50, at_10_ms),
        &Read { note: "t: read as times in s; to say otherwise", ..right },
    );
    let last = |at: usize| format!("{at},{}", at_10_ms(at));
    let lines: String = (0..50).map(|at| last(at) + "\n").collect();
    reads("x.csv", format!("a,Time (s)\n{lines}"), &right);
    reads("x.csv?time=2", format!("a,b\n{lines}"), &right);
    reads("x.csv?time=b:ms", format!("a,b\n{lines}"), &Read { rate_hz: 1e5, ..right });
    reads(
        "x.csv?time=none",
        format!("a,time\n{lines}"),
        &Read {
            rate_hz: 0.0,
            channels: &[("a", ""), ("time", "")],
            note: "the sample rate is unknown",
            ..right
        },
    );
    // Integers and dates.
    // To the digits that a rate asks for.
    let began = "2025-12-19T12:30:54.233218Z";
    let unix = Read { began, ..right };
    let ns = |at: usize| (1_766_147_454_233_218_075i64 + at as i64 * 10_000_000).to_string();
    reads("x.csv", timed("timestamp,a", 50, ns), &Read { note: "read as times in ns since 1970", ..unix });
    reads("x.csv", timed("time_ns,a", 50, ns), &unix);
    let s = |at: usize| format!("1766147454.{:09}", 233_218_075 + at * 10_000_000);
    reads("x.csv", timed("Unix time,a", 50, s), &unix);
    // A millionth of a second is less than f64 has of a Unix time.
    let fast = |at: usize| format!("1766147454.{:06}", at);
    reads(
        "x.csv",
        timed("timestamp,a", 5_000, fast),
        &Read { rate_hz: 1e6, samples: 5_000, began: "2025-12-19T12:30:54Z", ..right },
    );
    let ms = |at: usize| (1_766_147_454_233i64 + at as i64 * 10).to_string();
    reads("x.csv", timed("time_ms,a", 50, ms), &Read { began: "2025-12-19T12:30:54.233Z", ..right });
    let clock = |at: usize| format!("{:02}.{:03}", 25 + at / 100, at % 100 * 10);
    let iso = Read { began: "2026-01-01T10:30:25Z", ..right };
    reads("x.csv", timed("time,a", 50, |at| format!("2026-01-01T10:30:{}Z", clock(at))), &iso);
    let no_zone = Read { note: "no time zone; read as UTC", ..iso };
    reads("x.csv", timed("Timestamp,a", 50, |at| format!("2026-01-01 10:30:{}", clock(at))), &no_zone);
    reads("x.csv", timed("Date,Time,a", 50, |at| format!("2026-01-01,10:30:{}", clock(at))), &no_zone);
    reads("x.csv", timed("Date,Time,a", 50, |at| format!("01.01.2026,10:30:{}", clock(at))), &no_zone);
    reads("x.csv", timed("time,a", 50, |at| format!("10:30:{}", clock(at))), &right);
    // Whole numbers may be of any unit.
    let whole = timed("time,a", 50, |at| at.to_string());
    let said = Read { rate_hz: 1.0, note: "read as times in s; to say otherwise: time=time:ms", ..right };
    reads("x.csv", &whole, &said);
    reads("x.csv?time=time:ms", &whole, &Read { rate_hz: 1e3, note: "", ..said });
}

#[test]
fn gaps_and_jitter_and_odd_times_are_told_apart() {
    let right = Read { rate_hz: 100.0, channels: A, samples: 400, second: 1.0, ..PLAIN };
    let skip = |at: usize| at + if at >= 200 { 37 } else { 0 };
    let text = timed("time,a", 400, |at| format!("{:.2}", skip(at) as f64 / 100.0));
    let missing = Read { gaps: &[(200, 37)], note: "37 samples are missing in 1 gap", ..right };
    reads("x.csv", &text, &missing);
    reads(
        "x.csv?gaps=close",
        &text,
        &Read { gaps: &[], note: "37 samples are missing in 1 gap: closed", ..right },
    );
    for gaps in ["zeros", "hold"] {
        let filled = Read { gaps: &[], samples: 437, note: "stand for them", ..right };
        reads(&format!("x.csv?gaps={gaps}"), &text, &filled);
    }
    // The first step is twice as long.
    let first = timed("time,a", 400, |at| format!("{:.2}", (at + usize::from(at > 0)) as f64 / 100.0));
    reads("x.csv", first, &Read { gaps: &[(1, 1)], note: "1 sample is missing", ..right });
    let off = |at: usize| (at * 7_919 % 101) as f64 / 101.0 * 0.4 - 0.2;
    let jitter = timed("time,a", 400, |at| format!("{:.6}", (skip(at) as f64 + off(at)) / 100.0));
    reads("x.csv", jitter, &Read { note: "% of a sample off an even spacing of 100 S/s", ..missing });
    let doubled = timed("time,a", 400, |at| format!("{:.3}", (at - usize::from(at >= 300)) as f64 / 100.0));
    reads(
        "x.csv",
        doubled,
        &Read { samples: 399, note: "1 line has the time of another, such as line 302", ..right },
    );
    let back = timed("time,a", 400, |at| format!("{:.3}", (at % 300) as f64 / 100.0));
    refuses("x.csv", back, "line 302: its time is before that of the line above");
    let changes =
        "Time [s],Channel 0,Channel 1\n0.0,0,1\n0.00001325,0,1\n0.00001387,1,1\n0.001,0,0\n0.006,1,0\n";
    refuses("x.csv", changes, "no even spacing: give a rate, as in");
    let held = Read {
        rate_hz: 1e6,
        channels: &[("Channel 0", ""), ("Channel 1", "")],
        samples: 6_001,
        note: "irregular times",
        second: 0.0,
        ..PLAIN
    };
    reads("x.csv?rate=1M&gaps=hold", changes, &held);
    refuses("x.csv", timed("time,a", 50, |_| "0.00".to_owned()), "the times do not say the sample rate");
    // Too few to identify them.
    reads(
        "x.csv",
        "Time [s],CH_A\n1.0,0\n2.0,1\n3.0,0\n4.0,1\n6.0,0\n",
        &Read {
            rate_hz: 1.0,
            channels: &[("CH_A", "")],
            samples: 5,
            gaps: &[(4, 1)],
            note: "1 sample is missing in 1 gap",
            second: 1.0,
            ..PLAIN
        },
    );
    let even = timed("x,a", 20, |at| format!("{:.3}", at as f64 / 1e3));
    reads(
        "x.csv?rate=1k",
        even,
        &Read {
            rate_hz: 1e3,
            channels: &[("x", ""), ("a", "")],
            samples: 20,
            note: "if it is the time: ",
            second: 0.001,
            ..PLAIN
        },
    );
}

/// Preambles of tables, each as its program writes it.
#[test]
fn tables_of_instruments_and_their_programs_are_read() {
    let time = |at: usize| format!("{:.11}", -0.7e-4 + at as f64 * 1e-8);
    let table = timed("", 100, time);
    let right = Read { rate_hz: 1e8, channels: &[("CH1", "V")], samples: 100, second: 1.0, ..PLAIN };
    let siglent = "Record Length,Analog:1000\nSample Rate,100000000.0\nVertical Scale,CH1: 0.05\n\
         Vertical Offset,CH1:0.00000\nHorizontal Scale, 0.000010000\nSecond,Volt";
    reads("siglent.csv", format!("{siglent}{table}"), &right);
    // Names and units follow on separate lines, and the time is in seconds.
    let above = "Record Length,Analog:100\nSample Interval,Analog:0.00000001\nVertical Units,CH1:V\nSource,CH1\nSecond,Volt";
    reads("siglent2.csv", format!("{above}{table}"), &right);
    let numbers: String = (0..100).map(|at| format!("{at},{at}.0e00,\n")).collect();
    let rigol = "X,CH1,Start,Increment,\nSequence,Volt,-1.200000e-04,1.000000e-08\n";
    reads("rigol.csv", format!("{rigol}{numbers}"), &Read { note: "numbers the lines", ..right });
    let values: String = (0..100).map(|at| format!("{at},,\n")).collect();
    let rigol = "CH1(V),t0 =-2.400000e-05, tInc = 1.000000e-08\n";
    reads("rigol2.csv", format!("{rigol}{values}"), &right);
    let digilent = "#Digilent WaveForms Oscilloscope Acquisition\n#Device Name: ADP3450\n\
         #Date Time: 2021-04-14 13:10:34.255.812.740\n\nTime (s),Channel 1 (V)";
    reads(
        "digilent.csv",
        format!("{digilent}{table}"),
        &Read { channels: &[("Channel 1", "V")], began: "2021-04-14T13:10:34.25574274Z", ..right },
    );
    let words = ["Record Length,1.0e+02", "Sample Interval,1.0e-08", "Trigger Point,5.0e+01", "Source,CH1"];
    let words: Vec<&str> = words.into_iter().chain(["Vertical Units,V", "Horizontal Units,s"]).collect();
    let beside = |at: usize| words.get(at).map_or(",,", |words| &**words).to_owned();
    let tektronix: String = (0..100)
        .map(|at| format!("{},{} {},{at},\n", beside(at), if at < words.len() { "," } else { "" }, time(at)))
        .collect();
    reads("tek1.csv", tektronix, &right);
    let tektronix = "Model,MSO2024\nFirmware Version,1.52\n\nPoint Format,Y,\nHorizontal Units,S,\n\
         Sample Interval,1e-08\nRecord Length,100000\nGating,0.0% to 100.0%\nVertical Units,V,\n\
         Vertical Scale,0.5\nLabel,,\nTIME,CH1";
    reads("tek2.csv", format!("{tektronix}{table}"), &right);
    let lecroy = "LECROYWR204Xi-A,50000,Waveform\nSegments,1,SegmentSize,100\n\
         Segment,TrigTime,TimeSinceSegment1\n#1,01-Jan-2021 12:00:00,0\nTime,Ampl";
    reads(
        "lecroy.csv",
        format!("{lecroy}{table}"),
        &Read { channels: &[("Ampl", "")], began: "2021-01-01T11:59:59.99993Z", ..right },
    );
    reads("keysight.csv", format!("x-axis,1\nsecond,Volt{table}"), &Read { channels: &[("", "V")], ..right });
    let values: String = (0..100).map(|at| format!("{at}.0E-03\n")).collect();
    let infiniium = "Revision:,0\nType:,raw\nStart:,0\nPoints:,100\nXInc:,1.0e-08\nXOrg:,-5.0e-07\n\
         Date:,14 APR 2021\nTime:,13:10:34\nXUnits:,Second\nYUnits:,Volt\nData:,\n";
    reads(
        "infiniium.csv",
        format!("{infiniium}{values}"),
        &Read { channels: &[("", "V")], second: 1e-3, began: "2021-04-14T13:10:33.9999995Z", ..right },
    );
    let pico: String = (0..100).map(|at| format!("{:.8},{at}\n", -1.0 + at as f64 * 1e-3)).collect();
    reads(
        "pico.csv",
        format!("Time,Channel A\n(ms),(mV)\n\n{pico}"),
        &Read { rate_hz: 1e6, channels: &[("Channel A", "mV")], ..right },
    );
    // Out of its range.
    let over = pico.replace(",7\n", ",-\u{221e}\n");
    reads(
        "pico_over.csv",
        format!("Time,Channel A\n(ms),(mV)\n\n{over}"),
        &Read {
            rate_hz: 1e6,
            channels: &[("Channel A", "mV")],
            note: "1 field means a missing value",
            ..right
        },
    );
    reads("rs.csv", format!("in s,CH1 in V{table}"), &right);
    let dsview: String = (0..100)
        .map(|at| format!("{},{at},0\n", format!("{:.3e}", at as f64 * 1e-8).replace('.', ",")))
        .collect();
    let above = "; CSV, generated by libsigrok4DSL 0.2.0\n; Channels (2/16)\n; Sample rate: 100 MHz\n";
    let two = &[("SCK", ""), ("SDA", "")];
    reads("dsview.csv", format!("{above}Time(s), SCK, SDA\n{dsview}"), &Read { channels: two, ..right });
    let scopy: String = (0..100).map(|at| format!("{at},{:.9},{at}\n", at as f64 * 1e-6)).collect();
    let above = ";Scopy version,48fb6a9\n;Device,M2K\n;Nr of samples,100\n;Sample rate,1e+06\n;Additional Information,\n";
    reads(
        "scopy.csv",
        format!("{above}Sample,Time(S),CH1(V)\n{scopy}"),
        &Read { rate_hz: 1e6, note: "numbers the lines", ..right },
    );
    let saleae = timed("Time [s],Channel 0", 100, |at| format!("{:.9}", at as f64 * 1e-8));
    reads("saleae.csv", saleae, &Read { channels: &[("Channel 0", "")], ..right });
    let pulseview: String = (0..100).map(|at| format!("{},0\n", at % 2)).collect();
    let above = "; CSV generated by libsigrok 0.5.2 on Mon Apr 12 10:00:00 2021\n; Channels (2/8): D0, D1\n; Samplerate: 1 MHz\n";
    reads(
        "pulseview.csv",
        format!("{above}{pulseview}"),
        &Read { rate_hz: 1e6, channels: &[("D0", ""), ("D1", "")], ..right },
    );
    let joulescope = timed("#time (s),current (A)", 100, |at| format!("{:.7}", at as f64 * 5e-7));
    reads("joulescope.csv", joulescope, &Read { rate_hz: 2e6, channels: &[("current", "A")], ..right });
    // As few digits as say the time, in milliseconds; then bits as one word, or as columns of their own.
    let ppk2 = |head: &str, bits: &str| -> String {
        let line = |at: usize| format!("{},{at}.000{bits}\n", at as f64 / 100.0);
        format!("Timestamp(ms),Current(uA){head}\n{}", (0..100).map(line).collect::<String>())
    };
    let current = Read { rate_hz: 1e5, channels: &[("Current", "uA")], ..right };
    reads("ppk2.csv", ppk2("", ""), &current);
    reads("ppk2_word.csv", ppk2(",D0-D7", ",01000000"), &Read { note: "has bits side by side", ..current });
    let bits = &[("Current", "uA"), ("D0", ""), ("D1", "")];
    let unknown = Read { channels: bits, note: "mean a missing value", ..current };
    reads("ppk2_bits.csv", ppk2(",D0,D1", ",0,-"), &unknown);
    let phyphox: String = (0..100).map(|at| format!("{:.9E},{at}\n", at as f64 * 0.01)).collect();
    reads(
        "phyphox.csv",
        format!("\"Time (s)\",\"Linear Acceleration x (m/s^2)\"\n{phyphox}"),
        &Read { rate_hz: 100.0, channels: &[("Linear Acceleration x", "m/s^2")], ..right },
    );
}

#[test]
fn texts_of_every_encoding_and_separator_are_read() {
    let right = Read { rate_hz: 10.0, channels: &[("temp", "")], samples: 40, second: 20.5, ..PLAIN };
    let line =
        |at: usize| format!("{:.1};{:.2}\n", at as f64 / 10.0, 20.0 + at as f64 / 2.0).replace('.', ",");
    let comma: String = (0..40).map(line).collect();
    let comma = format!("time;temp\n{comma}");
    reads("x.csv", &comma, &right);
    reads("x.tsv", comma.replace(';', "\t"), &right);
    let point = comma.replace(',', ".").replace(';', ",");
    reads("x.csv", &point, &right);
    reads("x.txt", point.replace(',', " "), &right);
    reads("x.csv", format!("\u{feff}{point}"), &right);
    reads("x.csv", point.replace('\n', "\r\n"), &right);
    for big in [false, true] {
        let of = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        let wide: Vec<u8> = format!("\u{feff}{comma}").encode_utf16().flat_map(of).collect();
        reads("x.csv", &wide, &right);
        reads("x.csv", &wide[2..], &right);
    }
    // Separators after the last column, quotes, blanks.
    reads("x.csv", point.replace('\n', ",\n"), &right);
    reads(
        "x.csv",
        point.lines().map(|line| format!("\"{}\"\n", line.replace(',', "\" , \""))).collect::<String>(),
        &right,
    );
}

#[test]
fn odd_rows_of_a_table_are_reported() {
    let right = Read { rate_hz: 1e3, channels: &[("a", ""), ("b", "")], samples: 4, second: 3.0, ..PLAIN };
    for (text, samples, note) in [
        ("a,b\n1,2\n3,\n5,6\n,8\n", 4, "2 fields are empty: read as NaN"),
        ("a,b\n1,2\n3,OL\n5,6\n7,n/a\n", 4, "2 fields mean a missing value"),
        ("a,b\n1,2\n3,4\n5,6\n7,8\n9", 4, "line 6, the last one, is cut off"),
        ("a,b\n1,2\n3,4\n# paused\n5,6\n\n7,8\n", 4, "1 comment within the table"),
        ("a,b\n1,2\n3,4\na,b\n5,6\n7,8\n", 4, "1 repeated line of names"),
    ] {
        reads("x.csv?rate=1k", text, &Read { samples, note, ..right });
    }
    let skipped = Read { gaps: &[(2, 1)], note: "1 invalid line ignored, such as line 4", ..right };
    reads("x.csv?rate=1k&invalid=skip", "a,b\n1,2\n3,4\nreset!,\n5,6\n7,8\n", &skipped);
    reads(
        "x.csv?rate=1k",
        "a,a\n1,2\n3,4\n5,6\n7,8\n",
        &Read { channels: &[("a", ""), ("a", "")], note: "two channels are called a", ..right },
    );
    reads(
        "x.csv?rate=1k",
        "a,b\n1V,40%\n3V,41%\n5V,42%\n7V,43%\n",
        &Read { channels: &[("a", "V"), ("b", "%")], ..right },
    );
    reads("x.csv?rate=1k&channels=a,b", "a,state,b\n1,idle,2\n3,run,4\n5,run,6\n7,idle,8\n", &right);
    reads("x.csv?rate=1k&skip=2", "3\n4\na,b\n1,2\n3,4\n5,6\n7,8\n", &right);
}

#[test]
fn refusing_a_table_suggests_a_line_that_works() {
    for (text, says) in [
        (
            "a,b\n1,2\n3,reset\n5,6\n",
            "line 3: column 2 (b) is 'reset', not a number of format f64; without such columns: ",
        ),
        ("a,b\n1,2\n3\n5,6\n", "line 3: 1 fields, and the first line has 2; without such lines: "),
        ("a,b\n1V,2\n3mV,4\n", "line 3: column 1 (a) is '3mV', not a number of format f64"),
        ("a,state\n1,idle\n3,run\n5,run\n", "line 2: column 2 (state) is 'idle', not a number of format f64"),
        ("hello\nworld\n", "no table of numbers is found; line 1 is 'hello'"),
    ] {
        refuses("x.csv?rate=1k", text, says);
    }
    refuses("x.csv", timed("time,a", 9, |at| (9 - at).to_string()), "the times do not say the sample rate");
}
