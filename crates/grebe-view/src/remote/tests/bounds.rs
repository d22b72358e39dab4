//! Memory that a viewer without the right to control can claim at a server.

use grebe_frame::Complex;
use grebe_testing::{forget_peak_of_this_thread, peak_bytes_of_this_thread};

use super::*;
use crate::testing::complex_batch;

/// A request for every item of every lane, over `span` seconds.
fn most(span: &str) -> String {
    let parts = ["i", "q", "magnitude", "db", "phase", "frequency"];
    let lanes = (1..=255).flat_map(|channel| parts.map(|part| format!("{channel}.{part}")));
    let lanes: Vec<String> = lanes.collect();
    let each = |more: &str| {
        let each: Vec<_> = lanes.iter().map(|lane| format!(r#"{{"lane":"{lane}",{more}}}"#)).collect();
        each.join(",")
    };
    let [scales, ranges] = [r#""factor":1,"offset":0"#, r#""low":-1,"high":1"#].map(each);
    let input = r#"{"lane":"1.magnitude","factor":1,"offset":0,"is_ac":true}"#;
    format!(
        r#"{{"viewport":{{"number":1,"span":{span},"columns":4000000000,"overview":4000000000,"parts":["{}"],"sinc":true,"region":{{"channel":0,"samples":{{"start":0,"end":18446744073709551615}},"band":[-0.5,1e300]}},
        "trigger":{{"mode":"normal","lane":"255.phase","kind":"window","position":1}},"measure":[{scales}],
        "math":{{"operation":"multiply","a":{input},"b":{input}}},"is_exact":true,
        "spectrum":{{"size":1000000000000,"averages":4000000000,"is_peak_held":true,"waterfall":254}},"persistence":[{ranges}],
        "xy":{{"x":"1.i","y":"255.q","x_range":[-1,1],"y_range":[-1,1],"size":[4000000000,4000000000]}}}}}}"#,
        parts.join(r#"",""#)
    )
}

#[test]
fn whoever_asks_for_the_most_is_refused_what_has_no_room_and_gets_the_rest() {
    const HISTORY_BYTES: usize = 64 << 20;
    let (mut feed, there) = ScopeFeed::new(HISTORY_BYTES);
    let mut pair = pair(&there);
    for block in 0..8 {
        feed.ingest(&complex_batch(block * 256, 255, 256, 1e6, |_| Complex { re: 0.5, im: -0.25 })).unwrap();
    }
    pair.carry();
    for span in ["1e300", "5", "0.002"] {
        let asked = most(span);
        let Ok(requests::Request::Viewport(viewport)) = serde_json::from_str(&asked) else {
            panic!("{asked}")
        };
        forget_peak_of_this_thread();
        let picture = local(&there, &mut feed, &viewport.viewport());
        // Includes the memory to send it.
        pair.session.take(&asked, monotonic_ns()).unwrap();
        feed.idle();
        pair.carry();
        let held_bytes = peak_bytes_of_this_thread();
        assert!((1 << 20..8 * HISTORY_BYTES as u64).contains(&held_bytes), "{span} s: {held_bytes} bytes");
        let refused = picture.refused.unwrap_or_default();
        assert_eq!(refused.contains("share of --history"), span != "0.002", "{span} s: {refused:?}");
    }
}
