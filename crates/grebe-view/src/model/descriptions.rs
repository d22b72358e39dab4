//! Applies the stream's description to the lanes, except where a person has set them, and makes texts of the rest.

use std::sync::Arc;

use grebe_scope::Engineering;

use super::controls::{distance_count, level_count};
use super::lane_description::LaneDescription;
use super::seen::stream_words::{axis_error_s, axis_words, utc_of};
use super::view_model::ViewModel;
use crate::data::descriptions::{Change, ChangeMark};
use crate::data::samples;
use crate::data::trigger::TriggerSettings;

impl ViewModel {
    /// Applies the description if it changed; returns whether it did.
    pub(super) fn hear(&mut self) -> bool {
        let now = self.seen.picture.description.clone();
        if self.seen.picture.stream.is_none()
            || now.as_ref().map(Arc::as_ptr) == self.seen.heard.as_ref().map(Arc::as_ptr)
        {
            return false;
        }
        self.seen.heard = now.clone();
        let channels = now.as_ref().map_or(&[][..], |description| &description.channels);
        let format = self.seen.picture.stream.map_or_else(Default::default, |stream| stream.format);
        let told =
            channels.iter().map(|channel| LaneDescription::of(channel, samples::zero(format))).collect();
        let level = |model: &ViewModel| {
            let TriggerSettings { lane, coupling, .. } = model.controls.trigger.settings;
            Some(level_count(
                model.options.initial.trigger.level?,
                &model.controls.lanes.setup(lane),
                coupling,
            ))
        };
        let hysteresis = |model: &ViewModel| {
            let setup = model.controls.lanes.setup(model.controls.trigger.settings.lane);
            Some(distance_count(model.options.initial.trigger.hysteresis?, &setup))
        };
        let (level_before, hysteresis_before) = (level(self), hysteresis(self));
        self.controls.lanes.hear(told);
        // A hysteresis in units is now another number of counts.
        if hysteresis_before.is_some() && self.controls.trigger.settings.hysteresis == hysteresis_before {
            self.controls.trigger.settings.hysteresis = hysteresis(self);
        }
        if level_before.is_some() && self.controls.trigger.settings.level == level_before {
            self.controls.trigger.settings.level = level(self);
        }
        true
    }

    /// Changes of the description: the place in the picture (0.0 left edge, 1.0 right edge), and the new value.
    pub(crate) fn change_marks(&self) -> Vec<(f64, String)> {
        let of = |mark: &ChangeMark| {
            let part = (mark.index as f64 - self.seen.picture.left_index) / self.seen.picture.span_samples;
            (part, change_words(mark.change))
        };
        self.seen.picture.changes.iter().map(of).collect()
    }

    /// While the recording is being copied: ranges of the picture, from 0 at the left edge to 1 at the right, with
    /// the part of their samples that has arrived. `None` if it is complete.
    pub(crate) fn arrival_marks(&self) -> Option<Vec<([f64; 2], f32)>> {
        let cells = self.seen.picture.arrived.as_ref()?;
        let edge = |at: usize| at as f64 / cells.len() as f64;
        let mut marks: Vec<([f64; 2], f32)> = Vec::new();
        for (at, &part) in cells.iter().enumerate() {
            match marks.last_mut() {
                Some(([_, to], same)) if *same == part => *to = edge(at + 1),
                _ => marks.push(([edge(at), edge(at + 1)], part)),
            }
        }
        Some(marks)
    }

    /// Uncertainty of the times, as a range of that length if it is visible; at the right edge, where it hides nothing.
    pub(super) fn uncertain_stretch(&self) -> Option<([f64; 2], String)> {
        let picture = &self.seen.picture;
        let rate_hz = picture.stream.map(|stream| stream.rate_hz).filter(|rate_hz| *rate_hz > 0.0)?;
        let part = 2.0 * axis_error_s(picture)? * rate_hz / picture.span_samples;
        let from = (1.0 - part).clamp(0.0, 0.8);
        (part >= SEEN_PART).then(|| {
            ([from, (from + part).min(1.0)], format!("times {}", axis_words(picture).unwrap_or_default()))
        })
    }

    /// Time of day of a sample in UTC, as wide as a cell of the cursors' table.
    pub(crate) fn time_of_day_at(&self, index: f64) -> Option<String> {
        let (time, is_precise) = utc_of(&self.seen.picture, index)?;
        Some(time.strftime(if is_precise { "%H:%M:%S%.5f" } else { "%H:%M:%S%.3f" }).to_string())
    }
}

fn change_words(change: Change) -> String {
    match change {
        Change::CentreFrequency { hz: Some(hz) } => Engineering::new(hz, "Hz").digits(7).to_string(),
        Change::CentreFrequency { hz: None } => "centre unknown".into(),
        Change::Rate { hz } if hz > 0.0 => Engineering::new(hz, "S/s").digits(7).to_string(),
        Change::Rate { .. } => "rate unknown".into(),
    }
}

/// One or two pixels.
const SEEN_PART: f64 = 0.002;

#[cfg(test)]
mod tests {
    use grebe_frame::{
        AxisTime, BatchPool, ChannelDescription, ClockReading, Description, Header, MeasuredClock,
    };

    use super::*;
    use crate::data::feed::ScopeFeed;
    use crate::data::lane::LaneId;
    use crate::data::status::SourceStatus;
    use crate::model::annotations::AnnotationMark;
    use crate::model::channel::ChannelSetup;
    use crate::model::options::ViewOptions;
    use crate::model::session::Session;

    fn model(options: ViewOptions, described: &[Description]) -> ViewModel {
        let (mut feed, link) = ScopeFeed::new(1 << 20);
        let mut model = ViewModel::new(link, options, crate::png::encode);
        for (block, description) in described.iter().enumerate() {
            let header = Header {
                sequence: block as u64,
                channel_count: 2,
                block_length_samples: 1000,
                sample_rate_hz: 1e3,
                first_sample_index: block as u64 * 1000,
                producer_ts_ns: 7_000_000_000,
                ..Header::default()
            };
            let mut pool = BatchPool::new(1, 8192);
            pool.describe(Some(Arc::new(description.clone())));
            let mut batch = pool.acquire().unwrap();
            batch.push::<i16>(&header, |_, samples| samples.fill(100)).unwrap();
            model.controls.time.span = Some(1.5);
            model.request(300);
            feed.ingest(&batch.freeze()).unwrap();
            model.refresh();
        }
        feed.finish();
        model.request(301);
        model.refresh();
        model
    }

    fn options() -> ViewOptions {
        ViewOptions::new(|| SourceStatus { name: "udp://:5000".into(), ..SourceStatus::default() })
    }

    fn ecg() -> Description {
        let lead = |name: &str| ChannelDescription {
            name: name.into(),
            unit: "mV".into(),
            scale: 0.005,
            offset: 1.0,
        };
        Description {
            name: Some("record 100".into()),
            channels: vec![lead("MLII"), lead("V5")],
            centre_frequency_hz: Some(433.92e6),
            clock: Some(ClockReading {
                producer_ts_ns: 6_000_000_000,
                unix_time_ns: 1_700_000_000_000_000_000,
                error_ns: Some(5_000_000),
                clock: None,
            }),
            ..Description::default()
        }
    }

    #[test]
    fn what_the_stream_says_is_shown_and_what_a_person_set_stays() {
        let mut given = options();
        given.initial.channels =
            vec![ChannelSetup::default(), ChannelSetup { name: "chest".into(), ..Default::default() }];
        given.initial.trigger.level = Some(1.2e-3);
        let model = model(given, &[ecg()]);
        let [first, second] = [0, 1].map(|channel| model.setup(LaneId::real(channel)));
        assert_eq!(
            (first.label(LaneId::real(0)), second.label(LaneId::real(1))),
            ("1 MLII".into(), "2 chest".into())
        );
        assert_eq!((first.unit.as_str(), second.unit.as_str()), ("V", "V"));
        assert!((first.value(100.0) - 1.5e-3).abs() < 1e-12);
        let level = model.controls.trigger.settings.level.unwrap();
        assert!((level - 40.0).abs() < 1e-9, "{level}: given in volts, before their scale was known");
        let words = model.seen.hud.pieces().join("|");
        assert!(
            words.starts_with("record 100 \u{b7} udp://:5000|2 \u{d7} 1 kS/s, centre 433.92 MHz|"),
            "{words}"
        );
        // The first sample is one second after the reading at 22:13:20.
        assert!(words.contains("right edge 2023-11-14 22:13:22.000 UTC"), "{words}");
        let kept = Session::of(&model.controls).to_toml();
        assert!(!kept.contains("MLII") && kept.contains("chest"), "the next stream may say another: {kept}");
    }

    #[test]
    fn how_far_times_may_be_off_is_said_and_drawn_where_it_can_be_seen() {
        let axis = AxisTime { clock: 1, ns: 0, error_ns: 40_000, drift_ppb: 0, drift_error_ppb: 0 };
        let measured =
            MeasuredClock { producer_ts_ns: 7_000_000_000, axis, unix_time_ns: None, unix_error_ns: None };
        let mut model = model(options(), &[Description { measured: Some(measured), ..ecg() }]);
        let words = model.seen.hud.pieces().join("|");
        assert!(words.contains("time axis \u{b1}40"), "{words}");
        assert!(model.annotation_marks().is_empty(), "far less than a pixel");
        // A millisecond at 1 kS/s is one sample.
        model.seen.picture.span_samples = 1.0;
        let [AnnotationMark { parts: [from, to], words, .. }] = &model.annotation_marks()[..] else {
            panic!()
        };
        assert!(
            (to - from - 0.08).abs() < 1e-9 && *to <= 1.0 && words.contains("40"),
            "{from} to {to}: {words}"
        );
        model.seen.picture.span_samples = 0.01;
        assert_eq!(model.annotation_marks()[0].parts, [0.0, 1.0]);
    }

    #[test]
    fn what_the_stream_says_later_follows_and_another_frequency_is_marked() {
        let mut later = ecg();
        later.first_sample_index = 1000;
        later.centre_frequency_hz = Some(868e6);
        later.channels.truncate(1);
        (later.channels[0].name, later.channels[0].unit) = ("aVR".into(), "uV".into());
        let mut model = model(options(), &[ecg(), later]);
        let label = |channel| model.setup(LaneId::real(channel)).label(LaneId::real(channel));
        assert_eq!((label(0), label(1)), ("1 aVR".into(), "CH2".into()));
        assert_eq!((model.setup(LaneId::real(0)).scale, model.setup(LaneId::real(1)).scale), (5e-9, 1.0));
        let [(part, words)] = &model.change_marks()[..] else { panic!() };
        assert_eq!(words, "868 MHz");
        assert!((part - 1.0 / 3.0).abs() < 0.01, "{part}");
        model.controls.cursors.times = Some([-1.0, -0.5]);
        let rows = model.cursor_rows();
        assert_eq!(rows[1].cells[0], "UTC");
        // The last column extends beyond the newest sample.
        assert!(rows[1].cells[1].starts_with("22:13:21.00"), "{rows:?}");
    }
}
