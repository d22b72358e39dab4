use std::sync::LazyLock;
use std::time::{Duration, Instant};

use grebe_clock::{HostClock, Responder};
use grebe_frame::Header;

use super::*;

const THEIRS: u64 = 0x7e1e_5c09;

fn said(clock_port: Option<u16>, error_ns: Option<u64>) -> Arc<Description> {
    let clock = ClockReading {
        producer_ts_ns: 5_000,
        unix_time_ns: 1_700_000_000_000_000_000,
        error_ns,
        clock: Some(THEIRS),
    };
    Arc::new(Description { clock: Some(clock), clock_port, ..Description::default() })
}

fn stamped(producer_ts_ns: u64) -> Header {
    Header { producer_ts_ns, sample_rate_hz: 1e6, ..Header::default() }
}

#[test]
fn another_hosts_stamps_become_times_of_this_one() {
    // 37 ms ahead, and 20 parts per million faster.
    static BEGAN: LazyLock<u64> = LazyLock::new(monotonic_ns);
    fn ahead_ns(ours_ns: u64) -> u64 {
        37_000_000 + (ours_ns - *BEGAN) / 50_000
    }
    let _ = *BEGAN;
    let now_ns = || {
        let ours_ns = monotonic_ns();
        ours_ns + ahead_ns(ours_ns)
    };
    let responder = Responder::start([127, 0, 0, 1].into(), HostClock { id: THEIRS, now_ns }).unwrap();
    let said = said(Some(responder.port()), None);
    let sender = Some(SocketAddr::from(([127, 0, 0, 1], 9)));
    let mut far = RemoteClock::default();
    let first = far.described(Some(&said), sender).cloned().unwrap();
    assert_eq!(first.clock_port, None, "nobody behind here has a use for it");
    let deadline = Instant::now() + Duration::from_secs(60);
    let told = loop {
        let told = far.described(Some(&said), sender).cloned().unwrap();
        if told.measured.is_some() {
            break told;
        }
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    };
    assert_eq!(far.error_ns(), Some(told.measured.unwrap().axis.error_ns));
    let ours_ns = monotonic_ns();
    let theirs = stamped(ours_ns + ahead_ns(ours_ns));
    let time = told.axis_time_of(&theirs, 0).unwrap();
    assert_eq!(time.clock, clock_id());
    assert!(time.ns.abs_diff(ours_ns as i64) <= time.error_ns, "{time:?} is not {ours_ns}");
    let later = told.axis_time_of(&theirs, 1_000).unwrap();
    assert!((later.ns - time.ns).abs_diff(1_000_000) <= 1_000, "of this frame");
    // UTC of this host.
    let utc = std::time::SystemTime::now();
    let made = told.time_of(&stamped(ours_ns + ahead_ns(ours_ns)), 0).unwrap();
    assert!(made <= utc + Duration::from_secs(1) && made + Duration::from_secs(60) > utc, "{made:?}");

    let none = far.described(None, sender);
    assert!(none.is_none() && far.client.is_none());
}

#[test]
fn a_stream_of_this_host_is_as_it_says() {
    let clock = UtcClock::default().renewed(monotonic_ns());
    let ours = Arc::new(Description { clock, ..Description::default() });
    let mut far = RemoteClock::default();
    let told = far.described(Some(&ours), None).cloned().unwrap();
    assert!(Arc::ptr_eq(&told, &ours) && far.client.is_none() && far.error_ns().is_none());
    assert_eq!(told.axis_time_of(&stamped(77), 0).unwrap().ns, 77);
}

#[test]
fn two_kernels_that_know_utc_know_each_other() {
    let theirs = said(None, Some(1_000)).clock.unwrap();
    let ours = ClockReading {
        producer_ts_ns: 900_000,
        unix_time_ns: 1_700_000_000_000_010_000,
        error_ns: Some(500),
        clock: Some(clock_id()),
    };
    let relation = by_utc((theirs, ours)).unwrap();
    // At this UTC their clock showed 15,000.
    assert_eq!((relation.at_ns, relation.offset_ns, relation.error_ns), (900_000, 15_000 - 900_000, 1_500));
    assert_eq!(by_utc((theirs, ClockReading { error_ns: None, ..ours })), None);

    let of = |theirs: &Description, ours| measured(theirs, THEIRS, &relation, Some(ours));
    let known = of(&said(None, Some(1_000)), ours);
    assert_eq!(known.unix_time_ns, None, "they know it better than we by way of them");
    let unknown = of(&said(None, None), ours);
    assert_eq!(unknown.unix_at(15_000), Some(ours.unix_time_ns));
    assert_eq!(unknown.unix_error_ns, Some(2_000));
    let nobody = of(&said(None, None), ClockReading { error_ns: None, ..ours });
    assert_eq!((nobody.unix_at(15_000), nobody.unix_error_ns), (Some(ours.unix_time_ns), None));
}

#[test]
fn clock_relations_over_an_intermediate_host_add_up() {
    let between = MeasuredClock {
        producer_ts_ns: 1_000_000_000,
        axis: AxisTime { clock: 5, ns: 3_000_000_000, error_ns: 10, drift_ppb: 1_000, drift_error_ppb: 50 },
        unix_time_ns: None,
        unix_error_ns: None,
    };
    let said = Description { measured: Some(between), ..(*said(Some(9), None)).clone() };
    assert_eq!(said.axis_clock(), Some(5));
    let relation = Relation {
        at_ns: 2_000_000_000,
        offset_ns: 2_000_000_000,
        error_ns: 100,
        drift_ppb: 500,
        drift_error_ppb: 7,
    };
    let whole = measured(&said, 5, &relation, None);
    // A second after the intermediate measurement, by a clock that gains 1 us per second.
    assert_eq!(whole.producer_ts_ns, 2_000_001_000);
    let axis = AxisTime {
        clock: clock_id(),
        ns: 2_000_000_000,
        error_ns: 161,
        drift_ppb: 1_500,
        drift_error_ppb: 57,
    };
    assert_eq!(whole.axis, axis);
}
