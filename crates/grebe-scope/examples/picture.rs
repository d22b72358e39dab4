//! Draws three channels with a gap to a PNG: `cargo run -p grebe-scope --example picture -- out.png light`.

use grebe_scope::raster::{Axis, Cursor, Lane, Picture, Theme, Trace, plot_columns};
use grebe_scope::{Column, ColumnGrid, Engineering, Pyramid};

const RATE_HZ: f64 = 1e6;
const SAMPLES: u64 = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_else(|| "picture.png".into());
    let theme = if args.next().as_deref() == Some("light") { Theme::light() } else { Theme::dark() };

    let mut pyramid = Pyramid::new(3, 8 << 20)?;
    for first in (0..SAMPLES).step_by(1000) {
        if !(120_000..135_000).contains(&first) && first != 60_000 {
            let [sine, square, noise] = signals(first, 1000);
            pyramid.append(first, &[&sine, &square, &noise])?;
        }
    }

    let (width, height) = (1280, 720);
    let mut columns = vec![Column::OUTSIDE; plot_columns(width) * 3];
    let grid = ColumnGrid::new(SAMPLES as f64 / plot_columns(width) as f64);
    for (channel, columns) in columns.chunks_mut(plot_columns(width)).enumerate() {
        pyramid.columns(channel, grid, 0, columns);
    }
    let mut parts = columns.chunks(plot_columns(width)).map(Trace::Columns);
    let mut lane = |name, top: f64| {
        let trace = parts.next().unwrap_or(Trace::Columns(&[]));
        Lane { scale: 1.0 / 32768.0, unit: "V", ..Lane::new(name, trace, -top, top) }
    };
    let lanes = [lane("1 sine", 1.0), lane("2 square", 1.0), lane("3 noise", 0.25)];
    let rate = Engineering::new(RATE_HZ, "S/s").to_string();
    let lost = format!("{} lost", Engineering::new(pyramid.lost_samples() as f64, "S"));
    let picture = Picture {
        header: &["synth:demo", &rate, "3 channels", &lost],
        lanes: &lanes,
        axis: Axis { start: 0.0, end: SAMPLES as f64 / RATE_HZ, unit: "s" },
        cursors: &[Cursor { at: 0.0225, label: "A" }],
        ..Picture::new(width, height, theme)
    };
    std::fs::write(&path, picture.draw()?.to_png()?)?;
    println!("{path}: {width} x {height}; pyramid {} bytes", pyramid.memory_bytes());
    Ok(())
}

fn signals(first: u64, count: u64) -> [Vec<i16>; 3] {
    let at = |f: fn(u64) -> f64| (first..first + count).map(|i| (f(i) * 32767.0) as i16).collect();
    [
        at(|i| 0.8 * (i as f64 * 2e-4).sin()),
        at(|i| if i / 7000 % 2 == 0 { 0.6 } else { -0.6 }),
        at(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24) * 0.2 - 0.1),
    ]
}
