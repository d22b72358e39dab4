//! Items too large for every picture, sent a few times a second: spectra, densities, the overview, samples.
//!
//! ```text
//!   Picture -> LatestItems: the newest of each --parcel when its turn comes--> pieces --> ReceivedItems: the last that is whole
//! ```
//!
//! Nothing queues: while a parcel is under way, newer values replace the waiting one.

mod densities;
mod found;
mod overview;
mod samples;
mod spectrum;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::data::extract::Extract;
use crate::data::finding::FindingNews;
use crate::data::listening::Sound;
use crate::data::overview::OverviewView;
use crate::data::persistence::PersistenceView;
use crate::data::picture::Picture;
use crate::data::spectrum::SpectrumView;
use crate::data::viewport::Viewport;
use crate::data::xy::XyView;
use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::picture::write_values;
use found::FoundItems;
pub(crate) use samples::SAMPLES_MAX;
use spectrum::Rows;

/// Type of an item that is sent in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Spectrum = 1,
    Waterfall = 2,
    Persistence = 3,
    Xy = 4,
    Overview = 5,
    Samples = 6,
    Found = 7,
    /// To pages only: the sound of a box.
    Sound = 8,
}

impl Item {
    pub(crate) const ALL: [Item; 8] = [
        Item::Samples,
        Item::Found,
        Item::Sound,
        Item::Spectrum,
        Item::Waterfall,
        Item::Persistence,
        Item::Xy,
        Item::Overview,
    ];

    pub(crate) fn of(code: u8) -> Option<Item> {
        Item::ALL.into_iter().find(|item| *item as u8 == code)
    }
}

/// Outbox of a server: the newest value of each item.
#[derive(Debug, Default)]
pub(crate) struct LatestItems {
    viewport: u64,
    spectrum: Newest<SpectrumView>,
    /// The waterfall is part of the spectrum, but has its own rate.
    waterfall: Newest<SpectrumView>,
    persistence: Newest<PersistenceView>,
    xy: Newest<XyView>,
    overview: Newest<OverviewView>,
    samples: Option<(u64, Extract)>,
    found: FoundItems,
    sound: Option<Sound>,
    /// The rows of the last waterfall sent.
    rows: Rows,
}

/// The newest value of an item, and whether it was sent.
#[derive(Debug)]
struct Newest<T> {
    now: Option<Arc<T>>,
    sent: Option<Arc<T>>,
}

impl<T> Default for Newest<T> {
    fn default() -> Newest<T> {
        Newest { now: None, sent: None }
    }
}

impl<T> Newest<T> {
    /// The value to send; `Some(None)` if the item no longer exists.
    fn take(&mut self) -> Option<Option<Arc<T>>> {
        let is_same = match (&self.now, &self.sent) {
            (Some(now), Some(sent)) => Arc::ptr_eq(now, sent),
            (None, None) => true,
            _ => false,
        };
        self.sent.clone_from(&self.now);
        (!is_same).then(|| self.now.clone())
    }
}

impl LatestItems {
    /// Takes the items of a picture.
    pub(crate) fn take_in(&mut self, picture: &Picture, viewport: u64) {
        self.viewport = viewport;
        self.spectrum.now.clone_from(&picture.spectrum);
        let waterfall = picture.spectrum.as_ref().filter(|view| view.waterfall.is_some());
        self.waterfall.now = waterfall.cloned();
        self.persistence.now.clone_from(&picture.persistence);
        self.xy.now.clone_from(&picture.xy);
        self.overview.now.clone_from(&picture.overview);
    }

    pub(crate) fn put_samples(&mut self, number: u64, extract: Extract) {
        self.samples = Some((number, extract));
    }

    pub(crate) fn put_found(&mut self, number: u64, news: FindingNews) {
        self.found.put(number, news);
    }

    pub(crate) fn takes_sound(&self) -> bool {
        self.sound.is_none()
    }

    pub(crate) fn put_sound(&mut self, sound: Sound) {
        self.sound = Some(sound);
    }

    /// Whether an answer waits that no picture carries.
    pub(crate) fn has_answers(&self) -> bool {
        self.samples.is_some() || self.found.is_new() || self.sound.is_some()
    }

    /// The encoded news of an item; empty if the item no longer exists.
    pub(crate) fn parcel(&mut self, item: Item) -> Option<Vec<u8>> {
        let mut out = Writer::default();
        match item {
            Item::Spectrum => {
                self.spectrum.take()?.iter().for_each(|view| spectrum::write(view, self.viewport, &mut out));
            }
            Item::Waterfall => {
                let view = self.waterfall.take()?;
                match view.as_ref().and_then(|view| view.waterfall.as_ref()) {
                    Some(waterfall) => self.rows.write(waterfall, &mut out),
                    None => self.rows = Rows::default(),
                }
            }
            Item::Persistence => {
                self.persistence.take()?.iter().for_each(|view| densities::write_persistence(view, &mut out));
            }
            Item::Xy => {
                self.xy.take()?.iter().for_each(|view| densities::write_xy(view, self.viewport, &mut out));
            }
            Item::Overview => self.overview.take()?.iter().for_each(|view| overview::write(view, &mut out)),
            Item::Samples => {
                let (number, extract) = self.samples.take()?;
                samples::write(&extract, number, &mut out);
            }
            Item::Found if !self.found.is_new() => return None,
            Item::Found => self.found.write(&mut out),
            Item::Sound => {
                let Sound { rate_hz, samples, is_live, .. } = self.sound.take()?;
                out.u8(is_live.into());
                out.varint(rate_hz.into());
                out.varint(samples.len() as u64);
                write_values(samples.iter().map(|&it| f32::from(it)), &mut out);
            }
        }
        Some(out.bytes)
    }
}

/// Cache of a viewer: the last complete value of each item.
#[derive(Debug, Default)]
pub(crate) struct ReceivedItems {
    spectrum: Option<Arc<SpectrumView>>,
    persistence: Option<Arc<PersistenceView>>,
    xy: Option<Arc<XyView>>,
    overview: Option<Arc<OverviewView>>,
    pub(crate) samples: Option<(u64, Extract)>,
    pub(crate) found: Option<(u64, FindingNews)>,
    rows: Rows,
    /// Views so far. Front ends detect a new view by it.
    number: u64,
}

impl ReceivedItems {
    /// Takes a complete item.
    pub(crate) fn take_in(
        &mut self,
        item: Item,
        bytes: &[u8],
        viewports: &VecDeque<(u64, Viewport)>,
    ) -> Result<(), Malformed> {
        let asked =
            |number: u64| viewports.iter().find(|(it, _)| *it == number).map(|(_, viewport)| viewport);
        let is_gone = bytes.is_empty();
        let from = &mut Reader::new(bytes);
        self.number += 1;
        match item {
            Item::Spectrum if is_gone => self.spectrum = None,
            Item::Spectrum => {
                let settings =
                    |number| asked(number).and_then(|viewport| viewport.spectrum).unwrap_or_default();
                let before = self.spectrum.take().and_then(|view| view.waterfall.clone());
                let mut view = spectrum::read(from, settings)?;
                view.waterfall = before.filter(|_| view.settings.waterfall.is_some());
                self.spectrum = Some(Arc::new(view));
            }
            Item::Waterfall if is_gone => self.rows = Rows::default(),
            Item::Waterfall => {
                let waterfall = self.rows.read(from, self.number)?;
                if let Some(view) = &mut self.spectrum {
                    Arc::make_mut(view).waterfall = Some(waterfall);
                }
            }
            Item::Persistence if is_gone => self.persistence = None,
            Item::Persistence => {
                self.persistence = Some(Arc::new(densities::read_persistence(from, self.number)?))
            }
            Item::Xy if is_gone => self.xy = None,
            Item::Xy => {
                let settings = |number| asked(number).and_then(|viewport| viewport.xy);
                self.xy = densities::read_xy(from, settings, self.number)?.map(Arc::new);
            }
            Item::Overview if is_gone => self.overview = None,
            Item::Overview => self.overview = Some(Arc::new(overview::read(from)?)),
            Item::Samples if is_gone => {}
            Item::Samples => self.samples = Some(samples::read(from)?),
            Item::Found if is_gone => {}
            Item::Found => self.found = Some(found::read(from)?),
            Item::Sound => return Err(Malformed("only pages play sound")),
        }
        from.end()
    }

    /// Puts the cached items that the viewport asks for into a picture.
    pub(crate) fn put_into(&self, picture: &mut Picture) {
        let Some(asked) = &picture.answers else { return };
        if asked.spectrum.is_some() {
            picture.spectrum.clone_from(&self.spectrum);
        }
        if asked.persistence.is_some() {
            picture.persistence.clone_from(&self.persistence);
        }
        if asked.xy.is_some() {
            picture.xy.clone_from(&self.xy);
        }
        if asked.overview.is_some() {
            picture.overview.clone_from(&self.overview);
        }
    }
}
