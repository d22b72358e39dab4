//! The report of a probe as a picture: what arrived, what was lost and how long round trips took, over the rate and over time.

use std::path::Path;
use std::sync::Once;

use anyhow::{Context, Result, anyhow};
use grebe_probe::{Direction, Report, TrainResult};
use grebe_scope::raster::{self, Theme};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::DrawingAreaErrorKind;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use super::panels::{Panel, Span, rate_unit};
use crate::output;

/// Draws the report to a PNG file, which appears whole or not at all.
pub(crate) fn write(report: &Report, path: &Path) -> Result<()> {
    let png = encode(&draw(report)?)?;
    output::file(path, &png).with_context(|| format!("cannot write {}", path.display()))
}

/// Rows of pixels of red, green and blue.
fn draw(report: &Report) -> Result<Vec<u8>> {
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        // Fails only for a broken font; then drawing says so.
        let _ = register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    });
    let mut pixels = vec![0; (SIZE.0 * SIZE.1 * 3) as usize];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area();
        paint(report, &root).map_err(|error| anyhow!("cannot draw the picture: {error}"))?;
    }
    Ok(pixels)
}

type Drawn<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

fn paint<DB: DrawingBackend>(report: &Report, root: &DrawingArea<DB, Shift>) -> Drawn<DB> {
    let theme = Theme::light();
    root.fill(&rgb(theme.background))?;
    let (head, body) = root.split_vertically(HEAD);
    head_line(report, &head, &theme)?;
    let trains = || [&report.up, &report.down].into_iter().flat_map(|direction| &direction.trains);
    let (unit, divisor) = rate_unit(trains().map(|train| train.sent_bps).fold(0.0, f64::max));
    for (row, areas) in body.split_evenly((Panel::ALL.len(), 2)).chunks_exact(2).enumerate() {
        let panel = Panel::ALL[row];
        let values: Vec<f64> = trains().map(|train| panel.value(train, divisor)).collect();
        let y = panel.span(&values);
        for (area, is_over_rate) in areas.iter().zip([true, false]) {
            let x_of = |train: &TrainResult| if is_over_rate { train.sent_bps / divisor } else { train.at_s };
            let x = Span::from_zero(trains().map(x_of));
            let over = if is_over_rate { format!("sent, {unit}") } else { "time, s".to_owned() };
            let name = panel.name(unit);
            let mut chart = ChartBuilder::on(area)
                .margin(10)
                .x_label_area_size(34)
                .y_label_area_size(64)
                .build_cartesian_2d(x.low..x.high, y.low..y.high)?;
            chart.plotting_area().fill(&rgb(theme.plot))?;
            chart
                .configure_mesh()
                .bold_line_style(rgb(theme.grid))
                .light_line_style(TRANSPARENT)
                .axis_style(rgb(theme.grid_zero))
                .label_style(("sans-serif", 14).into_font().color(&rgb(theme.text_dim)))
                .axis_desc_style(("sans-serif", 15).into_font().color(&rgb(theme.text)))
                .x_labels(9)
                .y_labels(6)
                .x_desc(over)
                .y_desc(name)
                .draw()?;
            for (place, direction) in [&report.up, &report.down].into_iter().enumerate() {
                let color = rgb(theme.trace(PLACES[place]));
                if let Some(knee) = direction.knee_bps.filter(|_| is_over_rate) {
                    let corners = [knee.low, knee.high].map(|rate| (rate / divisor).clamp(x.low, x.high));
                    let band = [(corners[0], y.low), (corners[1], y.high)];
                    chart.draw_series([Rectangle::new(band, color.mix(0.12).filled())])?;
                }
                if panel == Panel::Goodput {
                    let best =
                        direction.tcp.iter().map(|tcp| tcp.goodput_bps.value).fold(0.0, f64::max) / divisor;
                    if best > 0.0 && best < y.high {
                        let line = [(x.low, best), (x.high, best)];
                        chart.draw_series(DashedLineSeries::new(line, 8, 5, color.stroke_width(1)))?;
                    }
                }
                marks(&mut chart, direction, color, |train| (x_of(train), panel.value(train, divisor)))?;
            }
        }
    }
    root.present()?;
    Ok(())
}

type Chart<'a, DB> = ChartContext<'a, DB, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A full mark for a train that the path kept up with, a hollow one for another.
fn marks<DB: DrawingBackend>(
    chart: &mut Chart<'_, DB>,
    direction: &Direction,
    color: RGBColor,
    place: impl Fn(&TrainResult) -> (f64, f64),
) -> Drawn<DB> {
    for train in &direction.trains {
        let style = if train.failed.is_some() { color.stroke_width(2) } else { color.filled() };
        chart.draw_series([Circle::new(place(train), 5, style)])?;
    }
    Ok(())
}

fn head_line<DB: DrawingBackend>(report: &Report, head: &DrawingArea<DB, Shift>, theme: &Theme) -> Drawn<DB> {
    let text = |color: raster::Color| ("sans-serif", 19).into_font().color(&rgb(color));
    let rtt = report.rtt.p50_ms.value;
    let title = format!("grebe probe {}   round trip {rtt:.1} ms", report.peer);
    head.draw_text(&title, &text(theme.text), (16, 10))?;
    for (place, (name, direction)) in [("up", &report.up), ("down", &report.down)].into_iter().enumerate() {
        let color = theme.trace(PLACES[place]);
        let left = 16 + place as i32 * 400;
        head.draw(&Circle::new((left + 5, 43), 5, rgb(color).filled()))?;
        let loss = direction.loss.map_or(0.0, |loss| loss.value * 100.0);
        let told = match direction.knee_bps {
            Some(knee) => {
                let (unit, divisor) = rate_unit(knee.value);
                format!("{name}: knee {:.1} {unit}, {loss:.2} % lost", knee.value / divisor)
            }
            None => format!("{name}: {loss:.2} % lost"),
        };
        head.draw_text(&told, &text(color), (left + 18, 35))?;
    }
    let legend = "hollow: the path did not keep up   band: the knee's interval   dashed: TCP";
    head.draw_text(legend, &("sans-serif", 15).into_font().color(&rgb(theme.text_dim)), (816, 38))?;
    Ok(())
}

fn encode(pixels: &[u8]) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIZE.0, SIZE.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(file)
}

fn rgb(color: raster::Color) -> RGBColor {
    RGBColor(color.r, color.g, color.b)
}

const SIZE: (u32, u32) = (1_320, 960);
const HEAD: u32 = 66;
/// Places of the theme's traces that no eye takes for each other.
const PLACES: [usize; 2] = [1, 4];
