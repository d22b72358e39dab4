//! Texts of columns.

use super::{Came, Input, Is};

pub(super) fn inputs() -> Vec<Input> {
    [times(), programs(), written()].into_iter().flatten().collect()
}

fn rows(head: &str, count: u32, row: impl Fn(u32) -> String) -> String {
    let lines: Vec<String> = (0..count).map(row).collect();
    format!("{head}{}\n", lines.join("\n"))
}

fn times() -> Vec<Input> {
    let kind = "tables: times";
    let mut all = Vec::new();
    for (rate_hz, decimals) in
        [(48_000, 5), (360, 3), (256, 3), (400, 3), (128, 2), (60, 2), (8, 1), (1_000, 6)]
    {
        let text =
            rows("time,a\n", 2_000, |at| format!("{:.decimals$},{at}", f64::from(at) / f64::from(rate_hz)));
        let name = format!("rounded_{rate_hz}_{decimals}.csv");
        all.push(Input::table(kind, &name, text, Came::Right(Is(f64::from(rate_hz), 2_000, 1))));
    }
    for (heading, per_s) in [
        ("time_ms", 1e3),
        ("t (us)", 1e6),
        ("Time [ns]", 1e9),
        ("Timestamp(ms)", 1e3),
        ("#time (s)", 1.0),
        ("in s", 1.0),
    ] {
        let text =
            rows(&format!("{heading},a\n"), 500, |at| format!("{},{at}", f64::from(at) * per_s / 250.0));
        all.push(Input::table(kind, "unit.csv", text, Came::Right(Is(250.0, 500, 1))));
    }
    let unix = rows("timestamp,a\n", 500, |at| format!("{}.{:09},{at}", 1_766_147_454, at * 1_000));
    all.push(Input::table(kind, "unix.csv", unix, Came::Right(Is(1e6, 500, 1))));
    let date =
        rows("Date,a\n", 100, |at| format!("2026-09-24T12:00:{:02}.{:03}Z,{at}", at / 50, at % 50 * 20));
    all.push(Input::table(kind, "date.csv", date, Came::Right(Is(50.0, 100, 1))));
    let gap = rows("t,a\n", 500, |at| {
        format!("{:.3},{at}", f64::from(at + if at > 250 { 100 } else { 0 }) / 100.0)
    });
    all.push(Input::table(
        kind,
        "gap.csv",
        gap,
        Came::Noted(Is(100.0, 500, 1), "100 samples are missing in 1 gap"),
    ));
    let asked = rows("t,a\n", 100, |at| format!("{:.3},{at}", f64::from(at) / 100.0));
    all.push(Input::table(kind, "rate.csv?time=none&rate=1k", asked.clone(), Came::Right(Is(1e3, 100, 2))));
    all.push(Input::table(
        kind,
        "last.csv",
        rows("a,t\n", 100, |at| format!("{at},{:.2}", f64::from(at) / 100.0)),
        Came::Noted(Is(100.0, 100, 1), "t"),
    ));
    let unnamed = rows("x,a\n", 100, |at| format!("{:.2},{at}", f64::from(at) / 100.0));
    all.push(Input::table(
        kind,
        "unnamed.csv?rate=1k",
        unnamed,
        Came::Noted(Is(1e3, 100, 2), "if it is the time"),
    ));
    let back =
        rows("time,a\n", 100, |at| format!("{:.2},{at}", f64::from(if at == 60 { 3 } else { at }) / 100.0));
    all.push(Input::table(
        kind,
        "back.csv",
        back,
        Came::Refused("sort the lines by time", Some(Is(100.0, 100, 1))),
    ));
    let alike = rows("t,a\n", 100, |at| format!("5,{at}"));
    all.push(Input::table(
        kind,
        "alike.csv",
        alike,
        Came::Refused("do not say the sample rate", Some(Is(1e3, 100, 2))),
    ));
    all
}

fn programs() -> Vec<Input> {
    let kind = "tables: programs";
    let volts = |at: u32| f64::from(at % 9) * 0.25;
    let seconds = |at: u32| f64::from(at) * 1e-6;
    let both = |at: u32| format!("{:.6},{}", seconds(at), volts(at));
    let right = Came::Right(Is(1e6, 100, 1));
    let mut all = vec![
        Input::table(
            kind,
            "siglent.csv",
            rows(
                "Record Length,Analog:100\nSample Interval,Analog:0.000001\nVertical Units,CH1:V\nSource,CH1\nSecond,Volt\n",
                100,
                both,
            ),
            right,
        ),
        Input::table(
            kind,
            "digilent.csv",
            rows(
                "#Digilent WaveForms Oscilloscope Acquisition\n#Sample rate: 1e+06Hz\n#Samples: 100\n#Trigger: Source: Channel 1\n\nTime (s),Channel 1 (V)\n",
                100,
                both,
            ),
            Came::Right(Is(1e6, 100, 1)),
        ),
        Input::table(
            kind,
            "lecroy.csv",
            rows(
                "LECROYWR44Xi,12345,Waveform\nSegments,1,SegmentSize,100\nSegment,TrigTime,TimeSinceSegment1\n#1,24-Sep-2026 12:00:00,0\nTime,Ampl\n",
                100,
                both,
            ),
            Came::Right(Is(1e6, 100, 1)),
        ),
        Input::table(
            kind,
            "keysight.csv",
            rows("x-axis,1\nsecond,Volt\n", 100, both),
            Came::Right(Is(1e6, 100, 1)),
        ),
        Input::table(
            kind,
            "pico.csv",
            rows("Time,Channel A\n(us),(V)\n\n", 100, |at| format!("{at}.00000000,{}", volts(at))),
            Came::Right(Is(1e6, 100, 1)),
        ),
        Input::table(kind, "rs.csv", rows("in s,CH1 in V\n", 100, both), Came::Right(Is(1e6, 100, 1))),
        Input::table(
            kind,
            "pulseview.csv",
            rows(
                "; CSV generated by libsigrok 0.5.2\n; Channels (2/8): D0, D1\n; Samplerate: 1 MHz\nD0,D1\n",
                100,
                |at| format!("{},{}", at & 1, at >> 1 & 1),
            ),
            Came::Right(Is(1e6, 100, 2)),
        ),
        Input::table(
            kind,
            "joulescope.csv",
            rows("#time (s),current (A),voltage (V)\n", 100, |at| {
                format!("{:.6},0.001,{}", seconds(at), volts(at))
            }),
            Came::Right(Is(1e6, 100, 2)),
        ),
        Input::table(
            kind,
            "ppk2.csv",
            rows("Timestamp(ms),Current(uA)\n", 100, |at| {
                format!("{:.2},{}", f64::from(at) / 100.0, volts(at))
            }),
            Came::Right(Is(100e3, 100, 1)),
        ),
        Input::table(
            kind,
            "phyphox.csv",
            rows("\"Time (s)\",\"Acceleration x (m/s^2)\",\"Acceleration y (m/s^2)\"\n", 100, |at| {
                format!("{:e},{},1", f64::from(at) / 200.0, volts(at))
            }),
            Came::Right(Is(200.0, 100, 2)),
        ),
    ];
    // Others write a preamble beside the first lines, or say the rate alone.
    all.push(Input::table(
        kind,
        "rigol.csv",
        rows("X,CH1,Start,Increment,\nSequence,Volt,0,1.000000e-06,\n", 100, |at| {
            format!("{at},{},,", volts(at))
        }),
        Came::Noted(Is(1e6, 100, 1), "column"),
    ));
    all
}

fn written() -> Vec<Input> {
    let kind = "tables: fields";
    let right = |channels| Came::Right(Is(1e3, 2, channels));
    let unsaid = "nothing says the sample rate";
    vec![
        Input::table(kind, "plain.csv?rate=1k", "a,b\n1,2\n3,4\n", right(2)),
        Input::table(kind, "bare.csv", "1,2\n3,4\n", Came::Noted(Is(0.0, 2, 2), unsaid)),
        Input::table(kind, "bom.csv?rate=1k", "\u{feff}a;b\r\n1;2\r\n3;4\r\n", right(2)),
        Input::table(
            kind,
            "wide.csv?rate=1k",
            "a,b\n1,2\n3,4\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
            right(2),
        ),
        Input::table(kind, "tabs.tsv?rate=1k", "a\tb\n1\t2\n3\t4\n", right(2)),
        Input::table(kind, "blanks.txt?rate=1k", "1 2\n3 4\n", right(2)),
        Input::table(kind, "comma.csv?rate=1k", "a;b\n0,5;1,25\n0,75;2\n", right(2)),
        Input::table(kind, "quoted.csv?rate=1k", "\"a\",\"b\"\n\"1\",\"2\"\n\"3\",\"4\"\n", right(2)),
        Input::table(kind, "trailing.csv?rate=1k", "a,b,\n1,2,\n3,4,\n", right(2)),
        Input::table(kind, "digit.csv?rate=1k", "Channel 0,Channel 1\n1,2\n3,4\n", right(2)),
        Input::table(kind, "units.csv?rate=1k", "a,b\n24.0°C,40%\n24.5°C,41%\n", right(2)),
        Input::table(kind, "iq.csv?rate=1k", "x_re,x_im\n1,2\n3,4\n", right(1)),
        Input::table(kind, "format.csv?rate=1k&format=i16", "a\n1\n-3\n", right(1)),
        Input::table(kind, "channels.csv?rate=1k&channels=b", "a,b\nx,2\ny,4\n", right(1)),
        Input::table(kind, "skip.csv?rate=1k&skip=2", "one\ntwo\n1,2\n3,4\n", right(2)),
        Input::table(
            kind,
            "empty.csv?rate=1k",
            "a,b\n1,\n3,4\n",
            Came::Noted(Is(1e3, 2, 2), "1 field is empty"),
        ),
        Input::table(
            kind,
            "absent.csv?rate=1k",
            "a,b\n1,OL\n3,4\n",
            Came::Noted(Is(1e3, 2, 2), "says that there is no value"),
        ),
        Input::table(
            kind,
            "comment.csv?rate=1k",
            "a,b\n1,2\n# paused\n3,4\n",
            Came::Noted(Is(1e3, 2, 2), "1 comment"),
        ),
        Input::table(
            kind,
            "again.csv?rate=1k",
            "a,b\n1,2\na,b\n3,4\n",
            Came::Noted(Is(1e3, 2, 2), "1 more line of names"),
        ),
        Input::table(
            kind,
            "cut.csv?rate=1k",
            "a,b\n1,2\n3,4\n5",
            Came::Noted(Is(1e3, 2, 2), "is cut off and left out"),
        ),
        Input::table(
            kind,
            "twice.csv?rate=1k",
            "a,a\n1,2\n3,4\n",
            Came::Noted(Is(1e3, 2, 2), "two channels are called a"),
        ),
        Input::table(
            kind,
            "short.csv?rate=1k",
            "a,b\n1,2\n5\n3,4\n",
            Came::Refused("line 3", Some(Is(1e3, 2, 2))),
        ),
        Input::table(kind, "word.csv?rate=1k", "a,b\n1,2\nbad,x\n3,4\n", Came::Refused("line 3", None)),
        Input::table(
            kind,
            "text.csv",
            "no table\nof numbers\n",
            Came::Refused("no table of numbers is found", None),
        ),
        Input::table(kind, "zero.csv", "", Came::Refused("", None)),
    ]
}
