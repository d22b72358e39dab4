//! Golden texts of the JSON messages, to the byte: other versions and other programs read them.

use std::sync::Arc;

use grebe_scope::{
    Band, Interpolation, Peak, Quantity, Running, Scale, Slope, ToneQuality, Window as Weighting,
};

use super::picture::Triggered;
use super::replies::{EncodedFacts, Facts};
use super::requests::{RemoteViewport, Request};
use crate::data::descriptions::{Change, ChangeMark};
use crate::data::lane::{LaneId, LaneMask, Part};
use crate::data::math::{MathInput, MathOperation, MathSettings};
use crate::data::measure::LaneMeasurements;
use crate::data::picture::Picture;
use crate::data::signal::SignalMeasurements;
use crate::data::trigger::{
    TriggerCoupling, TriggerKind, TriggerMode, TriggerRate, TriggerSettings, TriggerState, TriggerView,
};
use crate::data::viewport::{
    CountRange, CursorTimes, Detector, SpectrumSettings, Viewport, Window, XySettings,
};

const TRIGGER: &str = r#""mode":"normal","kind":"runt","lane":"2.phase","slope":"either","level":1.5,"hysteresis":0.25,"position":0.1,"is_lf_reject":true,"corner_hz":50.0,"holdoff_s":0.5,"pulse_min_s":null,"pulse_max_s":0.001,"dropout_s":null,"shot":3"#;

fn trigger() -> TriggerSettings {
    TriggerSettings {
        kind: TriggerKind::Runt,
        lane: LaneId { channel: 1, part: Part::Phase },
        slope: Slope::Either,
        level: Some(1.5),
        hysteresis: Some(0.25),
        position: 0.1,
        coupling: TriggerCoupling::LfReject { corner_hz: Some(50.0) },
        holdoff_s: 0.5,
        pulse_max_s: Some(1e-3),
        shot: 3,
        ..TriggerSettings::new(TriggerMode::Normal)
    }
}

#[test]
fn what_rejects_noise_is_said_where_it_is_on_and_off_where_nothing_is_said() {
    let old: TriggerSettings = serde_json::from_str(&format!("{{{TRIGGER}}}")).unwrap();
    assert_eq!(old, trigger());
    let settings = TriggerSettings {
        is_noise_reject: true,
        coupling: TriggerCoupling::HfReject { corner_hz: Some(50.0) },
        ..trigger()
    };
    let words = TRIGGER
        .replace(r#""is_lf_reject":true"#, r#""is_lf_reject":false,"is_hf_reject":true"#)
        .replace(r#""position""#, r#""is_noise_reject":true,"position""#);
    assert_eq!(serde_json::to_string(&settings).unwrap(), format!("{{{words}}}"));
    assert_eq!(serde_json::from_str::<TriggerSettings>(&format!("{{{words}}}")).unwrap(), settings);
}

#[test]
fn a_viewport_is_asked_for_in_these_words() {
    let said = |number: u64, viewport: &Viewport| {
        serde_json::to_string(&Request::Viewport(Box::new(RemoteViewport::new(number, viewport)))).unwrap()
    };
    let least = r#"{"viewport":{"number":1,"columns":900,"parts":["i","q"],"sinc":false,"is_exact":false}}"#;
    assert_eq!(said(1, &Viewport::latest(900)), least);
    let scale = Scale { factor: 0.5, offset: -1.0 };
    let viewport = Viewport {
        window: Window::Ending { at: 12.5 },
        span: Some(0.25),
        lanes: LaneMask::ALL.only([0, 2]).part_toggled(Part::Q),
        interpolation: Interpolation::Sinc,
        trigger: Some(trigger()),
        measure: Some(Arc::new([(LaneId::real(2), scale)].into_iter().collect())),
        math: Some(MathSettings {
            operation: MathOperation::Subtract,
            a: MathInput { lane: LaneId::real(0), scale, is_ac: true },
            b: MathInput { lane: LaneId::real(2), scale: Scale::COUNTS, is_ac: false },
        }),
        cursors: Some(CursorTimes { times: [0.0, 1.0], from: Some(7.0) }),
        is_exact: true,
        spectrum: Some(SpectrumSettings {
            window: Weighting::BlackmanHarris,
            waterfall: Some(2),
            detector: Detector::Mean,
            band: Some((-0.25, 0.125)),
            ..SpectrumSettings::default()
        }),
        persistence: Some(Arc::new(
            [(LaneId::real(2), CountRange { low: -5.5, high: 7.25 })].into_iter().collect(),
        )),
        xy: Some(XySettings {
            x: LaneId::real(0),
            y: LaneId::real(2),
            x_range: (0.0, 1.0),
            y_range: (-1.0, 1.0),
            size: (300, 200),
            every: None,
        }),
        overview: Some(700),
        ..Viewport::latest(900)
    };
    let most = [
        r#"{"viewport":{"number":2,"ending":12.5,"span":0.25,"columns":900,"channels":[0,2],"parts":["i"],"sinc":true,"#,
        r#""trigger":{"#,
        TRIGGER,
        r#"},"measure":[{"lane":"3","factor":0.5,"offset":-1.0}],"#,
        r#""math":{"operation":"subtract","a":{"lane":"1","factor":0.5,"offset":-1.0,"is_ac":true},"#,
        r#""b":{"lane":"3","factor":1.0,"offset":0.0,"is_ac":false}},"cursors":{"times":[0.0,1.0],"from":7.0},"is_exact":true,"#,
        r#""spectrum":{"size":8192,"window":"blackman_harris","averages":1,"is_peak_held":false,"waterfall":2,"detector":"mean","band":[-0.25,0.125]},"#,
        r#""persistence":[{"lane":"3","low":-5.5,"high":7.25}],"#,
        r#""xy":{"x":"1","y":"3","x_range":[0.0,1.0],"y_range":[-1.0,1.0],"size":[300,200],"every":null},"overview":700}}"#,
    ];
    assert_eq!(said(2, &viewport), most.concat());
}

#[test]
fn what_is_known_of_a_picture_is_told_in_these_words_and_is_the_same_behind_the_wire() {
    let mut intervals = Running::default();
    [1.0, 2.0, 3.0].into_iter().for_each(|value| intervals.add(value));
    let tone = ToneQuality {
        fundamental: Peak { line: 10.5, dbfs: -6.0 },
        snr_db: f64::INFINITY,
        sinad_db: 70.0,
        thd_db: None,
        enob: 11.5,
    };
    let triggered = Triggered { state: TriggerState::Triggered, at: Some(5.0), level: 1.5, upper: 2.5 };
    let picture = Picture {
        changes: vec![
            ChangeMark { index: 5, change: Change::Rate { hz: 1e3 } },
            ChangeMark { index: 6, change: Change::CentreFrequency { hz: Some(1e8) } },
            ChangeMark { index: 7, change: Change::CentreFrequency { hz: None } },
        ],
        trigger: Some(TriggerView {
            settings: trigger(),
            level: 1.5,
            upper: 2.5,
            hysteresis: 0.25,
            state: TriggerState::Triggered,
            at: Some(5.0),
            found: 9,
            searched_samples: 100,
            rate: TriggerRate { intervals, gaps: 1 },
        }),
        math: Some(Scale { factor: 2.0, offset: 1.0 }),
        measured: vec![LaneMeasurements {
            lane: LaneId::real(1),
            set: Quantity::ALL.map(|quantity| (quantity == Quantity::Min).then_some(-2.0)).to_vec().into(),
            samples: 10,
            level_samples: 20,
        }],
        signals: vec![SignalMeasurements {
            channel: 1,
            power_dbfs: Some(-3.0),
            peak_to_average_db: None,
            within: Band { low: 0.0, high: 0.5 },
            channel_power_dbfs: None,
            occupied: Some(Band { low: 0.125, high: 0.25 }),
            channel_snr_db: None,
            tone: Some(tone),
            samples: 99,
        }],
        ..Picture::waiting()
    };
    let facts = Facts::of(&picture);
    let mut encoded = EncodedFacts::default();
    assert_eq!(encoded.take(facts.clone()), encoded.keys.len());
    assert_eq!(encoded.take(facts.clone()), 0, "what stays is not encoded again");
    let mut other = facts.clone();
    other.streams += 1;
    assert_eq!(encoded.take(other), 1);
    encoded.take(facts.clone());
    let keys = encoded.keys;
    let said = |key: &str| serde_json::to_string(&keys[key]).unwrap();
    assert_eq!(
        said("changes"),
        r#"[{"index":5,"rate_hz":1000.0},{"centre_frequency_hz":100000000.0,"index":6},{"index":7}]"#
    );
    assert_eq!(
        said("trigger"),
        concat!(
            r#"{"corner_hz":50.0,"dropout_s":null,"found":9,"holdoff_s":0.5,"hysteresis":0.25,"hysteresis_used":0.25,"#,
            r#""is_lf_reject":true,"kind":"runt","lane":"2.phase","level":1.5,"mode":"normal","position":0.1,"pulse_max_s":0.001,"#,
            r#""pulse_min_s":null,"rate":{"count":3,"deviation":1.0,"gaps":1,"max":3.0,"mean":2.0,"min":1.0},"#,
            r#""searched_samples":100,"shot":3,"slope":"either"}"#
        )
    );
    assert_eq!(said("math"), r#"{"factor":2.0,"offset":1.0}"#);
    let values = vec!["null"; Quantity::ALL.len()];
    let values: Vec<&str> = values
        .into_iter()
        .enumerate()
        .map(|(at, null)| if at == Quantity::Min as usize { "-2.0" } else { null })
        .collect();
    assert_eq!(
        said("measured"),
        format!(r#"[{{"lane":"2","level_samples":20,"samples":10,"values":[{}]}}]"#, values.join(","))
    );
    assert_eq!(
        said("signals"),
        concat!(
            r#"[{"channel":1,"channel_power_dbfs":null,"channel_snr_db":null,"occupied":[0.125,0.25],"peak_to_average_db":null,"#,
            r#""power_dbfs":-3.0,"samples":99,"tone":{"dbfs":-6.0,"enob":11.5,"line":10.5,"sinad_db":70.0,"snr_db":"inf","thd_db":null},"#,
            r#""within":[0.0,0.5]}]"#
        )
    );
    let again: Facts = serde_json::from_str(&serde_json::to_string(&facts).unwrap()).unwrap();
    let mut far = Picture::waiting();
    again.put_into(&mut far, Some(triggered));
    assert_eq!((&far.changes, far.trigger, far.math), (&picture.changes, picture.trigger, picture.math));
    assert_eq!((&far.measured, &far.signals), (&picture.measured, &picture.signals));
}
