//! Colours of levels: even steps of a level are even steps for the eye, and brightness alone says it too.

use std::sync::OnceLock;

use super::theme::{Color, Theme};

impl Theme {
    /// 256 colours from the lowest level to the highest: from about the plot's own brightness to the other end, by violet, red, orange and
    /// yellow. Neighbours are equally far apart in Oklab (Ottosson 2020).
    ///
    /// ```
    /// let ramp = grebe_scope::raster::Theme::dark().ramp();
    /// assert!(ramp[0].g < 30 && ramp[255].g > 240);
    /// ```
    pub fn ramp(&self) -> &'static [Color] {
        static RAMPS: [OnceLock<Vec<Color>>; 2] = [const { OnceLock::new() }; 2];
        let is_dark = self.plot.g < 128;
        RAMPS[usize::from(is_dark)].get_or_init(|| ramp(is_dark))
    }
}

fn ramp(is_dark: bool) -> Vec<Color> {
    let (low, high) = if is_dark { (0.12, 0.98) } else { (0.25, 1.0) };
    let path: Vec<[f64; 3]> = (0..=PLACES)
        .map(|place| {
            let part = place as f64 / PLACES as f64;
            let hue = (HUE_LOW + (HUE_HIGH - HUE_LOW) * part).to_radians();
            // Grey at both ends, as saturated between as a screen can be.
            let chroma = CHROMA * (std::f64::consts::PI * part).sin().max(0.0).sqrt();
            shown(low + (high - low) * part, chroma, hue)
        })
        .collect();
    let mut along = vec![0.0];
    for pair in path.windows(2) {
        let step = (0..3).map(|at| (pair[1][at] - pair[0][at]).powi(2)).sum::<f64>().sqrt();
        along.push(along[along.len() - 1] + step);
    }
    let at = |level: usize| {
        let wanted = along[PLACES] * level as f64 / 255.0;
        let after = along.partition_point(|&it| it < wanted).clamp(1, PLACES);
        let part = (wanted - along[after - 1]) / (along[after] - along[after - 1]).max(1e-12);
        let [before, after] = [path[after - 1], path[after]];
        let rgb = linear_rgb([0, 1, 2].map(|it| before[it] + (after[it] - before[it]) * part));
        let [r, g, b] = rgb.map(|it| (encoded(it.clamp(0.0, 1.0)) * 255.0).round() as u8);
        Color::rgb(r, g, b)
    };
    match is_dark {
        true => (0..256).map(at).collect(),
        false => (0..256).rev().map(at).collect(),
    }
}

/// A colour in Oklab, with as much of its chroma as a screen has.
fn shown(lightness: f64, chroma: f64, hue: f64) -> [f64; 3] {
    let of = |chroma: f64| [lightness, chroma * hue.cos(), chroma * hue.sin()];
    let fits = |lab| linear_rgb(lab).iter().all(|it| (-1e-4..=1.0001).contains(it));
    let (mut least, mut most) = (0.0, chroma);
    for _ in 0..20 {
        let middle = (least + most) / 2.0;
        if fits(of(middle)) { least = middle } else { most = middle }
    }
    if fits(of(chroma)) { of(chroma) } else { of(least) }
}

fn linear_rgb([lightness, a, b]: [f64; 3]) -> [f64; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ]
}

fn encoded(linear: f64) -> f64 {
    if linear <= 0.003_130_8 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

/// Of a finer path than is shown.
const PLACES: usize = 1024;
/// Violet, over 360 to yellow.
const HUE_LOW: f64 = 280.0;
const HUE_HIGH: f64 = 465.0;
const CHROMA: f64 = 0.19;

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(part: u8) -> f64 {
        let part = f64::from(part) / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    }

    fn oklab(color: Color) -> [f64; 3] {
        let [r, g, b] = [color.r, color.g, color.b].map(linear);
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
        ]
    }

    #[test]
    fn equal_steps_look_equal_and_brightness_goes_one_way() {
        for theme in [Theme::dark(), Theme::light()] {
            let ramp: Vec<[f64; 3]> = theme.ramp().iter().copied().map(oklab).collect();
            assert_eq!(ramp.len(), 256);
            let steps: Vec<f64> = ramp
                .windows(9)
                .map(|it| (0..3).map(|at| (it[8][at] - it[0][at]).powi(2)).sum::<f64>().sqrt())
                .collect();
            let mean = steps.iter().sum::<f64>() / steps.len() as f64;
            let worst = steps.iter().map(|step| (step / mean - 1.0).abs()).fold(0.0, f64::max);
            assert!(worst < 0.25, "{worst}");
            let sign = if theme.plot.g < 128 { 1.0 } else { -1.0 };
            assert!(ramp.windows(17).all(|it| (it[16][0] - it[0][0]) * sign > 0.0));
            // No level looks like the plot but the lowest, which it may.
            assert!((ramp[0][0] - oklab(theme.plot)[0]).abs() < 0.1, "{:?}", ramp[0]);
        }
    }
}
