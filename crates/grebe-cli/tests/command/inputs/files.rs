//! Files that have places to seek.

use serde_json::json;

use super::made::{compressed, flac, gzip, mat, matrix, npy, sdriq, tar, uff, wav, zip, zstd};
use super::{Came, Input, Inputs, Is};
use crate::foreign_files::{auxi, chunk, meta, rf64_killed, tone, wav as stereo};

pub(super) fn inputs() -> Vec<Input> {
    [wavs(), arrays(), raws(), sigmfs(), receivers(), packed(), others()].into_iter().flatten().collect()
}

fn ramp(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 100) as u8).collect()
}

fn wavs() -> Vec<Input> {
    let mut all = Inputs::new("WAV, RF64, BW64");
    for (code, bits, channels) in [
        (1, 8, 1),
        (1, 16, 1),
        (1, 16, 2),
        (1, 24, 1),
        (1, 24, 4),
        (1, 32, 2),
        (3, 32, 1),
        (3, 32, 2),
        (3, 64, 1),
    ] {
        let frame_bytes = usize::from(bits / 8 * channels);
        let bytes = wav(code, bits, channels, 8_000, &vec![0; 24 * frame_bytes]);
        let is = Is(8e3, 24, channels.into());
        all.right(&format!("c{code}b{bits}x{channels}.wav"), bytes, is);
    }
    let two = Is(48e3, 100, 2);
    for (name, bytes) in [
        ("zero.wav", stereo(b"", 0)),
        ("all_ones.wav", stereo(b"", u32::MAX)),
        ("clamped.wav", stereo(b"", 0x8000_0000)),
        ("killed.wav", rf64_killed()),
    ] {
        all.noted(name, bytes, two, "does not say how long");
    }
    let mut empty = stereo(b"", u32::MAX);
    empty[..8].copy_from_slice(b"RF64\xff\xff\xff\xff");
    empty.splice(12..12, chunk(b"ds64", &[]));
    all.noted("empty.wav", empty, two, "does not say how long");
    let software = chunk(b"LIST", b"INFOISFT\x04\0\0\0abc\0");
    let untold = [stereo(b"", u32::MAX), software.clone()].concat();
    all.noted("chunks_behind.wav", untold, two, "does not say how long");
    all.right("software.wav", [stereo(b"", 400), software].concat(), two);
    all.noted("gqrx_20240101_120000_433920000.wav", stereo(b"", 400), two, "says 433920000 Hz");
    all.noted("stale.wav", stereo(b"", 40), two, "the file goes on");
    let one = Is(48e3, 100, 1);
    all.noted("auxi.wav", stereo(&auxi(), 400), one, "auxi");
    all.right("iq.wav?iq", stereo(b"", 400), one);
    all.right("fast.wav?rate=2.4M", stereo(b"", 400), Is(2.4e6, 100, 2));
    let named = "baseband_433920000Hz_12-00-00_01-02-2020.wav";
    all.noted(named, stereo(b"", 400), one, "name of the file");
    all.refused("raw.wav?format=cf32&rate=1M", stereo(b"", 400), "a WAV says its format itself", None);
    all.refused("adpcm.wav", wav(2, 4, 1, 8_000, &[0; 64]), "", None);
    all.list
}

fn arrays() -> Vec<Input> {
    let mut all = Inputs::new(".npy, .npz");
    for (letters, bytes) in
        [("|i1", 1), ("|u1", 1), ("<i2", 2), (">i2", 2), ("<i4", 4), ("<f4", 4), (">f8", 8), ("<c8", 8)]
    {
        let name = format!("{}.npy?rate=8k", letters.replace(['|', '<', '>'], "x"));
        all.right(&name, npy(letters, "(6,)", false, &ramp(6 * bytes)), Is(8e3, 6, 1));
    }
    let unsaid = "the sample rate is unknown";
    let two = npy("<i2", "(3, 2)", true, &ramp(12));
    all.noted("two.npy", two.clone(), Is(0.0, 3, 2), unsaid);
    all.right("pairs.npy?rate=1M", npy("<i2", "(3, 1, 2)", false, &ramp(12)), Is(1e6, 3, 1));
    all.noted("cut.npy?rate=8k", npy("<i2", "(9,)", false, &ramp(12)), Is(8e3, 6, 1), "truncated");
    for (letters, bytes) in [("<u2", 2), (">u4", 4), ("<i8", 8), ("<c16", 16)] {
        let name = format!("{}.npy?rate=8k", letters.replace(['<', '>'], "n"));
        all.noted(&name, npy(letters, "(3,)", false, &vec![0; 3 * bytes]), Is(8e3, 3, 1), "are read as");
    }
    all.noted("wide.npy?rate=8k", npy("<i2", "(2, 5)", false, &ramp(20)), Is(8e3, 2, 5), "numpy.load('");
    all.refused("half.npy", npy("<f2", "(2,)", false, &ramp(4)), "astype", None);
    all.refused("across.npy", npy("<i2", "(2, 300)", false, &ramp(1_200)), "across.npy').T)", None);
    let rate = npy("<f8", "()", false, &48e3f64.to_le_bytes());
    all.right("one.npz?rate=1k", zip(&[("x.npy", &two)]), Is(1e3, 3, 2));
    all.noted(
        "fs.npz",
        zip(&[("x.npy", &two), ("fs.npy", &rate)]),
        Is(48e3, 3, 2),
        "its fs is taken as the rate",
    );
    let name = npy("<U5", "()", false, &[0; 20]);
    all.right("text.npz?rate=1k", zip(&[("name.npy", &name), ("x.npy", &two)]), Is(1e3, 3, 2));
    let times = zip(&[("t.npy", &two), ("x.npy", &two)]);
    all.refused("times.npz", times, "array=x'", Some(Is(0.0, 3, 2)));
    let several = zip(&[("a.npy", &two), ("b.npy", &two)]);
    all.refused("several.npz", several, "holds several arrays, a (3, 2), b (3, 2)", Some(Is(0.0, 3, 2)));
    all.refused("no.npz", b"PK".to_vec(), "is not a .npz file", None);
    all.list
}

fn raws() -> Vec<Input> {
    let mut all = Inputs::new("raw");
    for (ending, bytes) in [
        ("i8", 1),
        ("u8", 1),
        ("s16", 2),
        ("i16", 2),
        ("i24", 3),
        ("i32", 4),
        ("f32", 4),
        ("f64", 8),
        ("ci8", 2),
        ("cs8", 2),
        ("cu8", 2),
        ("ci16", 4),
        ("sc16", 4),
        ("cf32", 8),
        ("cfile", 8),
        ("fc32", 8),
    ] {
        all.right(&format!("x.{ending}?rate=1M"), ramp(48), Is(1e6, 48 / bytes, 1));
    }
    for (ending, bytes) in [("ci32", 8), ("cu16", 4), ("cf64", 16), ("u16", 2)] {
        all.noted(&format!("x.{ending}?rate=1M"), vec![0; 48], Is(1e6, 48 / bytes, 1), "are read as");
    }
    let facts = "the name of the file says";
    for (name, is) in [
        ("gqrx_20240101_120000_100000000_2400000_fc.raw", Is(2.4e6, 6, 1)),
        ("g001_433.92M_250k.cu8", Is(250e3, 24, 1)),
        ("FM_100.1M_2.4Msps.cu8", Is(2.4e6, 24, 1)),
        ("osmo-f1.6265e9-s1e6-t20260924.cfile", Is(1e6, 6, 1)),
    ] {
        all.noted(name, ramp(48), is, facts);
    }
    let beside = b"sample_rate=500000\ncenter_frequency=433920000\n".to_vec();
    let both = vec![("BBD_0001.C16", ramp(48)), ("BBD_0001.TXT", beside)];
    all.files("BBD_0001.C16", both, Came::Noted(Is(500e3, 12, 1), "BBD_0001.TXT says"));
    all.right("two.bin?format=i16&channels=2&rate=8k", ramp(48), Is(8e3, 12, 2));
    all.noted(
        "norate.cf32",
        ramp(48),
        Is(0.0, 6, 1),
        "the sample rate and the number of channels are unknown",
    );
    all.noted("norate.i16", ramp(48), Is(0.0, 24, 1), "norate.i16?rate=48k&channels=1'");
    all.noted("two.i16?channels=2", ramp(48), Is(0.0, 12, 2), "two.i16?channels=2&rate=48k'");
    all.noted("odd.cu8?rate=1M", ramp(49), Is(1e6, 24, 1), "ends within a sample");
    all.refused("unknown.iq", ramp(48), "unknown kind of file", None);
    all.refused("wave.cf32", stereo(b"", 400), "is a WAV file", None);
    all.list
}

fn sigmfs() -> Vec<Input> {
    let mut all = Inputs::new("SigMF");
    let mut add = |name: &str, datatype: &str, capture: serde_json::Value, data: Vec<u8>, came: Came| {
        let (meta_name, data_name) = (format!("{name}.sigmf-meta"), format!("{name}.sigmf-data"));
        let files = vec![(meta_name.as_str(), meta(datatype, capture)), (data_name.as_str(), data)];
        all.files(&meta_name, files, came);
    };
    let start = json!({"core:sample_start": 0});
    for (datatype, bytes) in [
        ("ri8", 1),
        ("ru8", 1),
        ("ri16_le", 2),
        ("ri16_be", 2),
        ("ri32_le", 4),
        ("rf32_le", 4),
        ("rf64_be", 8),
        ("ci8", 2),
        ("cu8", 2),
        ("ci16_le", 4),
        ("cf32_be", 8),
    ] {
        add(datatype, datatype, start.clone(), vec![0; 48], Came::Right(Is(48e3, 48 / bytes, 1)));
    }
    for (datatype, bytes) in [
        ("ru16_le", 2),
        ("ru32_be", 4),
        ("ri64_le", 8),
        ("ru64_le", 8),
        ("cu16_le", 4),
        ("ci32_le", 8),
        ("cf64_be", 16),
    ] {
        add(
            datatype,
            datatype,
            start.clone(),
            vec![0; 48],
            Came::Noted(Is(48e3, 48 / bytes, 1), "are read as"),
        );
    }
    for (number, time) in
        ["2026-09-24T12:00:00", "2026-09-24 12:00:00 UTC", "2016-12-31T23:59:60Z"].iter().enumerate()
    {
        let capture = json!({"core:sample_start": 0, "core:datetime": time});
        add(
            &format!("time{number}"),
            "ci16_le",
            capture,
            tone(),
            Came::Noted(Is(48e3, 100, 1), "is not as SigMF has it"),
        );
    }
    add(
        "half",
        "ci16_le",
        start.clone(),
        [tone(), vec![7]].concat(),
        Came::Noted(Is(48e3, 100, 1), "end within a sample"),
    );
    add("none", "ci16_le", start.clone(), Vec::new(), Came::Refused("", None));
    add("type", "cx16_le", start.clone(), tone(), Came::Refused("cx16_le", None));
    let mut captures =
        |name: &str, global: serde_json::Value, captures: serde_json::Value, note: &'static str| {
            let mut all_meta: serde_json::Value =
                serde_json::from_slice(&meta("ci16_le", json!({}))).unwrap();
            all_meta["global"].as_object_mut().unwrap().extend(global.as_object().unwrap().clone());
            all_meta["captures"] = captures;
            all_meta["annotations"] = json!([{"core:sample_start": 1_010, "core:sample_count": 5}]);
            let (meta_name, data_name) = (format!("{name}.sigmf-meta"), format!("{name}.sigmf-data"));
            let files =
                vec![(meta_name.as_str(), all_meta.to_string().into_bytes()), (data_name.as_str(), tone())];
            let is = Is(48e3, 100, 1);
            let came = if note.is_empty() { Came::Right(is) } else { Came::Noted(is, note) };
            all.files(&meta_name, files, came);
        };
    let offset = json!({"core:offset": 1_000});
    captures("offset", offset.clone(), json!([{"core:sample_start": 1_000}]), "");
    captures("below", offset.clone(), json!([{"core:sample_start": 0}]), "below core:offset");
    captures(
        "behind",
        offset,
        json!([{"core:sample_start": 1_000}, {"core:sample_start": 9_000}]),
        "after the end of the data",
    );
    captures(
        "whole",
        json!({"core:num_channels": 1.0}),
        json!([{"core:sample_start": 0.0}]),
        "is taken as 1",
    );
    let nothing = json!([{"core:sample_start": 0, "core:frequency": null}]);
    captures("nothing.iq", json!({}), nothing, "outside of the data are ignored");
    let plain = meta("ci16_le", start);
    let wide: Vec<u8> = "\u{feff}"
        .encode_utf16()
        .chain(plain.iter().map(|byte| u16::from(*byte)))
        .flat_map(u16::to_le_bytes)
        .collect();
    for (name, bytes, note) in [
        ("mark.sigmf-meta", [b"\xef\xbb\xbf", &plain[..], b"\0\0\r\n"].concat(), "byte order mark"),
        ("wide.sigmf-meta", wide, "UTF-16"),
    ] {
        let data = name.replace("meta", "data");
        let files = vec![(name, bytes), (data.as_str(), tone())];
        all.files(name, files, Came::Noted(Is(48e3, 100, 1), note));
    }
    all.refused("lost.sigmf-data", tone(), "lost.sigmf-meta, are missing", Some(Is(2.4e6, 100, 1)));
    all.list
}

fn receivers() -> Vec<Input> {
    let mut broken = sdriq(1_000_000, 16, &tone());
    broken[28] ^= 1;
    let mut all = Inputs::new(".sdriq, .uff");
    all.right("x.sdriq", sdriq(1_000_000, 16, &tone()), Is(1e6, 100, 1));
    all.noted("wide.sdriq", sdriq(2_400_000, 24, &[0; 80]), Is(2.4e6, 10, 1), "are read as");
    all.noted("sum.sdriq", broken, Is(1e6, 100, 1), "checksum");
    all.noted("norate.sdriq", sdriq(0, 16, &tone()), Is(0.0, 100, 1), "the sample rate is unknown");
    all.refused("bits.sdriq", sdriq(1_000, 12, &tone()), "neither 16 nor 24 bits", None);
    all.refused("short.sdriq", vec![0; 20], "ends within its header", None);
    all.right("x.uff", uff("uint8", &tone()), Is(2.048e6, 200, 1));
    all.refused("no.uff", tone(), "does not begin with the XML", Some(Is(2.048e6, 200, 1)));
    all.list
}

fn packed() -> Vec<Input> {
    let mut all = Inputs::new(".gz, .zst");
    let meta = meta("ci16_le", json!({"core:sample_start": 0}));
    let archive = tar(&[("x/x.sigmf-meta", &meta), ("x/x.sigmf-data", &tone())]);
    for (name, bytes, is) in [
        ("x.cu8?rate=1M", ramp(48), Is(1e6, 24, 1)),
        ("x.wav", stereo(b"", 400), Is(48e3, 100, 2)),
        ("x.npy?rate=8k", npy("<i2", "(6,)", false, &ramp(12)), Is(8e3, 6, 1)),
        ("x.sdriq", sdriq(1_000_000, 16, &tone()), Is(1e6, 100, 1)),
        ("x.sigmf", archive, Is(48e3, 100, 1)),
    ] {
        let (plain, query) =
            name.split_once('?').map_or((name, String::new()), |(plain, query)| (plain, format!("?{query}")));
        all.right(&format!("{plain}.gz{query}"), gzip(&bytes), is);
        all.right(&format!("{plain}.zst{query}"), zstd(&bytes), is);
    }
    all.right("x.csv.gz?rate=1k", gzip(b"a,b\n1,2\n3,4\n"), Is(1e3, 2, 2));
    let whole = gzip(&ramp(4_000));
    all.refused("cut.cu8.gz", whole[..whole.len() / 2].to_vec(), "is truncated", None);
    all.refused("plain.cu8.gz", ramp(48), "is not compressed", None);
    all.refused("x.cu8.xz", ramp(48), "unxz -k", None);
    all.refused("x.sigmf-meta.gz", gzip(b"{}"), "gunzip -k", None);
    all.list
}

fn others() -> Vec<Input> {
    let text = b"MATLAB 5.0 MAT-file";
    let tall = matrix("x", 10, [6, 2], 3, &ramp(24));
    let rate = matrix("Fs", 6, [1, 1], 4, &8_000u16.to_le_bytes());
    let session = b"[device 1]\ncapturefile=logic-1\nsamplerate=1 MHz\nprobe1=SCL\nprobe2=SDA\nunitsize=1\n";
    let taken = "its Fs is taken as the rate";
    let mut all = Inputs::new(".flac, .mat, .sr");
    all.right("x.flac", flac(), Is(8e3, 24, 1));
    all.refused("no.flac", tone(), "is not a readable FLAC", None);
    all.refused("x.mp3", tone(), "ffmpeg -i", None);
    all.noted("x.mat", mat(text, &[tall.clone(), rate.clone()]), Is(8e3, 6, 2), taken);
    all.noted("z.mat", mat(text, &[compressed(&tall), rate]), Is(8e3, 6, 2), taken);
    all.refused(
        "two.mat",
        mat(text, &[tall.clone(), matrix("y", 10, [6, 2], 3, &ramp(24))]),
        "holds several arrays",
        Some(Is(0.0, 6, 2)),
    );
    all.refused(
        "new.mat",
        mat(b"MATLAB 7.3 MAT-file", &[])
            .into_iter()
            .chain([0; 400])
            .map(|byte| if byte == b'I' { 0 } else { byte })
            .collect::<Vec<u8>>(),
        "h5py.File",
        None,
    );
    all.refused("x.h5", tone(), "h5py.File", None);
    all.right(
        "x.sr",
        zip(&[("version", b"2"), ("metadata", session), ("logic-1-1", &[1, 2, 3])]),
        Is(1e6, 3, 2),
    );
    all.refused("no.sr", tone(), "is not a session of sigrok", None);
    all.list
}
