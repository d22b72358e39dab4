//! One lane over another: a constellation, a Lissajous figure.

use std::ops::Range;
use std::sync::Arc;

use grebe_scope::XyDensity;

use crate::data::persistence::is_moved;
use crate::data::samples::Kind;
use crate::data::tracks::{Runs, Tracks};
use crate::data::viewport::{Viewport, XySettings};

/// How often points fell into each cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct XyView {
    pub(crate) settings: XySettings,
    /// Brightness, row after row from the top: 0 never, 255 most often.
    pub(crate) cells: Vec<u8>,
    /// Number of points in it, faded or not.
    pub(crate) points: u64,
    /// Grows with each view, so that a front end detects a new one.
    pub(crate) number: u64,
}

/// Adds points as they come, and lets them fade.
#[derive(Debug, Default)]
pub(crate) struct XyPlotter<K: Kind> {
    made: Option<(XySettings, XyDensity<K>)>,
    /// The index after the newest point.
    next: u64,
    made_ns: u64,
    view: Option<Arc<XyView>>,
    number: u64,
    x: Runs<K>,
    y: Runs<K>,
    points: [Vec<K>; 2],
}

impl<K: Kind> XyPlotter<K> {
    /// The newest points before `window.end`, if the viewport asks for them.
    pub(crate) fn view(
        &mut self,
        tracks: &Tracks<K>,
        viewport: &Viewport,
        window: &Range<f64>,
        now_ns: u64,
    ) -> Option<Arc<XyView>> {
        let Some(settings) = viewport.xy else {
            *self = XyPlotter { number: self.number, ..XyPlotter::default() };
            return None;
        };
        let elapsed_ns = now_ns.saturating_sub(self.made_ns);
        let end = (window.end.max(0.0) as u64).min(tracks.sampled().next_index());
        let is_same = self.adopt(&settings) && end >= self.next;
        if is_same && !viewport.is_exact && (elapsed_ns < INTERVAL_NS || end == self.next) {
            return self.view.clone();
        }
        let (x, y) = (tracks.track(settings.x)?, tracks.track(settings.y)?);
        if !is_same || viewport.is_exact {
            let (width, height) = settings.size;
            let density = XyDensity::new(width, height, settings.x_range, settings.y_range);
            self.made = Some((settings, density.ok()?));
            self.next = 0;
        }
        // First the whole window, later only new points.
        let most = if viewport.is_exact { EXACT_MAX } else { POINTS_MAX };
        let start = (window.start.max(0.0) as u64).max(self.next).max(end.saturating_sub(most));
        self.x.copy(x, start..end);
        self.y.copy(y, start..end);
        let (_, density) = self.made.as_mut()?;
        for ((x_first, x), (y_first, y)) in self.x.iter().zip(self.y.iter()) {
            // A gap is in both lanes, but a part that was added later starts later.
            let (x, y) = match (x_first.checked_sub(y_first), y_first.checked_sub(x_first)) {
                (Some(later), _) => (x, y.get(later as usize..).unwrap_or_default()),
                (None, later) => (x.get(later.unwrap_or(0) as usize..).unwrap_or_default(), y),
            };
            match settings.every {
                Some(every) if every > 1.0 => {
                    let [xs, ys] = &mut self.points;
                    pick(x, y, every, xs, ys);
                    density.add(xs, ys);
                }
                _ => density.add(x, y),
            }
        }
        self.next = end;
        let decay = match viewport.is_exact || self.view.is_none() {
            true => 1.0,
            false => 0.5f64.powf(elapsed_ns as f64 / HALF_LIFE_NS) as f32,
        };
        self.made_ns = now_ns;
        density.resolve(decay);
        let mut brightness = vec![0.0f32; settings.size.0 * settings.size.1];
        density.brightness(&mut brightness);
        self.number += 1;
        self.view = Some(Arc::new(XyView {
            settings,
            cells: brightness.iter().map(|&bright| (bright * 255.0) as u8).collect(),
            points: density.points(),
            number: self.number,
        }));
        self.view.clone()
    }

    /// Whether it can continue with these settings, also if the ranges only follow the means of their lanes, as under
    /// AC coupling.
    fn adopt(&mut self, settings: &XySettings) -> bool {
        let Some((made, density)) = &mut self.made else { return false };
        if made == settings {
            return true;
        }
        let ranges = XySettings { x_range: made.x_range, y_range: made.y_range, ..*settings };
        let is_moved = is_moved(made.x_range, settings.x_range) && is_moved(made.y_range, settings.y_range);
        if ranges != *made || !is_moved {
            return false;
        }
        density.set_low_ends(settings.x_range.0, settings.y_range.0);
        *made = *settings;
        true
    }
}

/// Takes a point every `every` samples, between samples if necessary. They start where the distance from 0 varies
/// least from point to point: in the middle of symbols, where equal symbols coincide.
fn pick<K: Kind>(x: &[K], y: &[K], every: f64, xs: &mut Vec<K>, ys: &mut Vec<K>) {
    xs.clear();
    ys.clear();
    let last = x.len().min(y.len()).saturating_sub(1);
    let between = |samples: &[K], at: f64| {
        let (place, part) = (at as usize, at.fract());
        let (a, b) = (samples[place].to_f64(), samples[(place + 1).min(last)].to_f64());
        a + (b - a) * part
    };
    let places =
        |offset: f64| (0..).map(move |n| offset + f64::from(n) * every).take_while(|at| *at <= last as f64);
    let spread = |offset: f64| {
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for at in places(offset).take(SPREAD_POINTS) {
            let magnitude = between(x, at).hypot(between(y, at));
            (count, sum, squares) = (count + 1.0, sum + magnitude, squares + magnitude * magnitude);
        }
        // Relative to the mean, so that points near 0 are not preferred.
        if sum > 0.0 { squares * count / (sum * sum) } else { f64::INFINITY }
    };
    let offsets = (0..OFFSETS).map(|n| every * f64::from(n) / f64::from(OFFSETS));
    let best = offsets.map(|offset| (spread(offset), offset)).min_by(|a, b| a.0.total_cmp(&b.0));
    for at in places(best.map_or(0.0, |(_, offset)| offset)) {
        xs.push(K::from_f64(between(x, at)));
        ys.push(K::from_f64(between(y, at)));
    }
}

/// Bounds the time of a picture on the data path: about 2 ms.
const POINTS_MAX: u64 = 1 << 18;
/// Limit for a picture to be saved.
const EXACT_MAX: u64 = 1 << 22;
const INTERVAL_NS: u64 = 40_000_000;
/// Time after which a point is half as bright.
const HALF_LIFE_NS: f64 = 4e8;
/// Offsets to try within a symbol, and symbols to try each on.
const OFFSETS: u32 = 32;
const SPREAD_POINTS: usize = 512;

#[cfg(test)]
mod tests {
    use grebe_frame::{BatchPool, Complex, Header, SampleFormat};

    use super::*;
    use crate::data::core::ScopeCore;
    use crate::data::lane::LaneId;
    use crate::data::lane::Part;

    /// Four points in turn, ten samples each, with straight lines between them.
    fn sample(index: u64) -> Complex<f32> {
        let corner = |n: u64| match n % 4 {
            0 => (0.5, 0.5),
            1 => (-0.5, 0.5),
            2 => (0.5, -0.5),
            _ => (-0.5, -0.5),
        };
        let (a, b) = (corner(index / 10 * 3), corner((index / 10 + 1) * 3));
        let part = (index % 10) as f32 / 10.0;
        Complex { re: a.0 + (b.0 - a.0) * part, im: a.1 + (b.1 - a.1) * part }
    }

    fn core() -> ScopeCore {
        let mut core = ScopeCore::new(16 << 20);
        for block in (0..40u64).filter(|&block| block != 20) {
            let header = Header {
                sequence: block,
                channel_count: 1,
                format: SampleFormat::Cf32,
                block_length_samples: 100,
                sample_rate_hz: 1e3,
                first_sample_index: block * 100,
                ..Header::default()
            };
            let mut batch = BatchPool::new(1, header.frame_bytes() + 64).acquire().unwrap();
            let fill = |_: usize, out: &mut [Complex<f32>]| {
                out.iter_mut().zip(block * 100..).for_each(|(out, index)| *out = sample(index));
            };
            batch.push(&header, fill).unwrap();
            core.ingest(&batch.freeze(), 1).unwrap();
        }
        core
    }

    fn viewport(every: Option<f64>) -> Viewport {
        let part = |part| LaneId { channel: 0, part };
        let settings = XySettings {
            x: part(Part::I),
            y: part(Part::Q),
            x_range: (-1.0, 1.0),
            y_range: (-1.0, 1.0),
            size: (41, 41),
            every,
        };
        Viewport { span: Some(4.0), xy: Some(settings), ..Viewport::latest(100) }
    }

    fn lit(view: &XyView) -> Vec<(usize, usize)> {
        let lit = view.cells.iter().enumerate().filter(|(_, cell)| **cell > 0);
        lit.map(|(place, _)| (place % 41, place / 41)).collect()
    }

    #[test]
    fn symbols_stand_at_their_corners_alone_and_all_samples_show_the_ways_between() {
        let corners = [(10, 10), (30, 10), (10, 30), (30, 30)];
        let view = core().answer(&viewport(Some(10.0)), 1).xy.unwrap();
        assert_eq!(lit(&view), corners);
        assert_eq!(view.points, 390);
        let all = core().answer(&viewport(None), 1).xy.unwrap();
        assert_eq!(all.points, 3900);
        assert!(lit(&all).len() > 30 && corners.iter().all(|corner| lit(&all).contains(corner)));
    }

    #[test]
    fn axes_may_reach_beyond_the_range_of_samples() {
        // Full scale of i16 on axes of 50,000 to both sides: 41 cells of 2,500 counts from their middles.
        let mut core = ScopeCore::new(4 << 20);
        let corner =
            |channel: usize, index: u64| if (index >> channel) & 1 == 0 { i16::MAX } else { i16::MIN };
        core.ingest(&crate::testing::batch(0, 2, 4000, 1e3, corner), 1).unwrap();
        let range = (-50_000.0, 50_000.0);
        let settings = XySettings {
            x: LaneId::real(0),
            y: LaneId::real(1),
            x_range: range,
            y_range: range,
            size: (41, 41),
            every: None,
        };
        let viewport = |xy| Viewport { span: Some(4.0), xy: Some(xy), ..Viewport::latest(100) };
        let view = core.answer(&viewport(settings), 1).xy.unwrap();
        assert_eq!(lit(&view), [(7, 7), (33, 7), (7, 33), (33, 33)]);
        assert_eq!(view.points, 4000);
        // The means move, and the axes with them, so the points stay.
        let moved = XySettings { x_range: (-49_000.0, 51_000.0), ..settings };
        core.ingest(&crate::testing::batch(4000, 2, 4000, 1e3, corner), 1).unwrap();
        let view = core.answer(&viewport(moved), 1 + 2 * INTERVAL_NS).xy.unwrap();
        assert_eq!((view.points, view.settings), (8000, moved));
    }

    #[test]
    fn points_are_added_once_and_none_are_where_nothing_is_asked_for() {
        let mut core = core();
        let first = core.answer(&viewport(None), 1).xy.unwrap();
        let again = core.answer(&viewport(None), 1 + 2 * INTERVAL_NS).xy.unwrap();
        assert_eq!(again.points, first.points);
        assert!(core.answer(&Viewport { xy: None, ..viewport(None) }, 1).xy.is_none());
    }
}
