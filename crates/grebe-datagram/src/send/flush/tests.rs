use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::burst::{Coalesce, Source};

/// Accepts as instructed, and records each datagram as a receiver would see it.
#[derive(Default)]
struct Fake {
    batch_answers: VecDeque<std::result::Result<usize, i32>>,
    single_answers: VecDeque<Option<i32>>,
    seen: Vec<Vec<u8>>,
    route_too_small: bool,
    singles: usize,
    degraded: bool,
    has_sent_several: bool,
}

impl Kernel for Fake {
    fn send(&mut self, burst: &Burst<'_>, from: usize) -> io::Result<usize> {
        let left = &burst.messages()[from..];
        let take = match self.batch_answers.pop_front().unwrap_or(Ok(usize::MAX)) {
            Ok(take) => take.clamp(1, left.len()),
            Err(code) => return Err(io::Error::from_raw_os_error(code)),
        };
        let take = if self.degraded { 1 } else { take };
        assert!(!self.degraded || left[0].datagrams == 1, "a plain call sends one datagram");
        self.has_sent_several |= !self.degraded;
        for message in &left[..take] {
            let bytes: Vec<u8> = match burst.source(message) {
                Source::Copied(bytes) => bytes.to_vec(),
                Source::Slices(slices) => slices.iter().flat_map(|slice| slice.iter().copied()).collect(),
            };
            self.seen.extend(bytes.chunks(message.segment_bytes.max(1)).map(<[u8]>::to_vec));
        }
        Ok(take)
    }

    fn send_one(&mut self, parts: &[IoSlice<'_>], _: Option<SocketAddr>) -> io::Result<()> {
        if let Some(code) = self.single_answers.pop_front().flatten() {
            return Err(io::Error::from_raw_os_error(code));
        }
        self.singles += 1;
        self.seen.push(parts.iter().flat_map(|part| part.iter().copied()).collect());
        Ok(())
    }

    fn wait_writable(&mut self, _: Duration) -> io::Result<()> {
        Ok(())
    }

    fn pause(&mut self, _: Duration) {}

    fn segment_limit(&mut self, _: Option<SocketAddr>) -> usize {
        if self.route_too_small { 99 } else { 65_507 }
    }

    fn degrade(&mut self) -> bool {
        !std::mem::replace(&mut self.degraded, true)
    }

    fn has_sent_several(&self) -> bool {
        self.has_sent_several
    }
}

const RULE: Coalesce = Coalesce { max_segments: 8, max_segment_bytes: 65_507 };

fn burst(datagrams: usize, bytes: usize) -> (Burst<'static>, Vec<Vec<u8>>) {
    let mut burst = Burst::new();
    let all: Vec<Vec<u8>> = (0..datagrams).map(|i| vec![i as u8; bytes]).collect();
    for datagram in &all {
        burst.push_copied(None, datagram, &[], RULE).unwrap();
    }
    (burst, all)
}

fn run(burst: &Burst<'_>, kernel: &mut Fake, gso: &mut Gso) -> (Result<()>, SendCounters) {
    let mut counters = SendCounters::default();
    let result = flush(burst, &mut Progress::default(), gso, kernel, &mut counters);
    (result, counters)
}

fn flush(
    burst: &Burst<'_>,
    progress: &mut Progress,
    gso: &mut Gso,
    kernel: &mut Fake,
    counters: &mut SendCounters,
) -> Result<()> {
    let (patience, outage) = (&mut Patience::new(Duration::from_millis(1), false), &mut None);
    Flush { burst, progress, gso, kernel, counters, patience, outage }.run()
}

#[test]
fn a_batch_that_gso_refuses_goes_out_plainly_and_gso_stays_off() {
    for code in [libc::EIO, libc::EINVAL] {
        let (burst, all) = burst(30, 100);
        // It works for the first two messages, then fails in the middle of the batch.
        let mut kernel = Fake { batch_answers: [Ok(2), Err(code)].into(), ..Fake::default() };
        let mut gso = Gso::Probe;
        let (result, counters) = run(&burst, &mut kernel, &mut gso);
        result.unwrap();
        assert_eq!(kernel.seen, all, "nothing lost, nothing twice, in order");
        assert_eq!(gso, Gso::Disabled);
        assert_eq!((counters.datagrams, counters.unsent, counters.gso_fallbacks), (30, 0, 1));
        assert_eq!(kernel.singles, 14);
    }
}

#[test]
fn a_route_with_a_smaller_mtu_is_not_gsos_fault() {
    let (burst, all) = burst(30, 100);
    let mut kernel =
        Fake { batch_answers: [Err(libc::EINVAL)].into(), route_too_small: true, ..Fake::default() };
    let (mut gso, mut progress) = (Gso::Active, Progress::default());
    let mut counters = SendCounters::default();
    flush(&burst, &mut progress, &mut gso, &mut kernel, &mut counters).unwrap();
    assert_eq!(kernel.seen, all);
    assert_eq!(gso, Gso::Active);
    assert_eq!(progress.learned.max_segment_bytes, Some(99));
}

#[test]
fn an_old_kernels_limit_of_segments_is_learned() {
    let rule = Coalesce { max_segments: 128, ..RULE };
    let mut burst = Burst::new();
    for _ in 0..100 {
        burst.push_copied(None, &[1; 50], &[], rule).unwrap();
    }
    let mut kernel = Fake { batch_answers: [Err(libc::EINVAL)].into(), ..Fake::default() };
    let (mut gso, mut progress) = (Gso::Probe, Progress::default());
    let mut counters = SendCounters::default();
    flush(&burst, &mut progress, &mut gso, &mut kernel, &mut counters).unwrap();
    assert_eq!((kernel.seen.len(), gso, progress.learned.max_segments), (100, Gso::Probe, Some(64)));
}

#[test]
fn an_outage_is_counted_and_later_datagrams_are_sent() {
    let down = [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::EHOSTDOWN, libc::ENETDOWN];
    for code in down {
        let (burst, all) = burst(24, 100);
        let mut kernel = Fake { batch_answers: [Ok(1), Err(code)].into(), ..Fake::default() };
        let (mut gso, mut counters, mut outage) = (Gso::Active, SendCounters::default(), None);
        let (progress, patience) = (&mut Progress::default(), &mut Patience::new(Duration::ZERO, false));
        let (kernel, gso) = (&mut kernel, &mut gso);
        Flush {
            burst: &burst,
            progress,
            gso,
            kernel,
            counters: &mut counters,
            patience,
            outage: &mut outage,
        }
        .run()
        .unwrap();
        assert_eq!(kernel.seen, [&all[..8], &all[16..]].concat());
        assert_eq!((counters.unsent, counters.datagrams), (8, 16));
        assert_eq!(outage.unwrap().raw_os_error(), Some(code));
        assert!(!kernel.degraded && gso.usable());
    }
}

#[test]
fn an_error_that_stays_is_returned_and_counted() {
    let (burst, all) = burst(16, 100);
    let mut kernel = Fake { batch_answers: [Err(libc::EACCES)].into(), ..Fake::default() };
    let mut gso = Gso::Active;
    let mut progress = Progress::default();
    let mut counters = SendCounters::default();
    let mut go = || flush(&burst, &mut progress, &mut gso, &mut kernel, &mut counters);
    assert!(matches!(go(), Err(Error::Send { bytes: 800, .. })));
    go().unwrap();
    assert_eq!(kernel.seen, all[8..], "what follows is not lost with it");
    assert_eq!((counters.unsent, counters.datagrams), (8, 8));
}

#[test]
fn a_firewall_loses_only_the_datagrams_that_it_drops() {
    let (burst, all) = burst(24, 100);
    let singles = [None, Some(libc::EPERM), None, Some(libc::EPERM)];
    let mut kernel = Fake {
        batch_answers: [Ok(1), Err(libc::EPERM)].into(),
        single_answers: singles.into(),
        ..Fake::default()
    };
    let mut gso = Gso::Active;
    let (result, counters) = run(&burst, &mut kernel, &mut gso);
    result.unwrap();
    let left: Vec<_> = all.iter().enumerate().filter(|(at, _)| ![9, 11].contains(at)).collect();
    assert!(kernel.seen.iter().eq(left.into_iter().map(|(_, datagram)| datagram)));
    assert_eq!((counters.datagrams, counters.unsent), (22, 2));
    assert!(!kernel.degraded && gso == Gso::Active, "the call for several datagrams has worked before");
}

#[test]
fn a_firewall_that_drops_from_the_start_is_not_taken_for_a_missing_call() {
    let (burst, all) = burst(16, 100);
    let mut kernel = Fake {
        batch_answers: [Err(libc::EPERM)].into(),
        single_answers: vec![Some(libc::EPERM); 8].into(),
        ..Fake::default()
    };
    let (result, counters) = run(&burst, &mut kernel, &mut Gso::Active.clone());
    result.unwrap();
    assert_eq!(kernel.seen, all[8..]);
    assert_eq!((counters.datagrams, counters.unsent), (8, 8));
    assert!(!kernel.degraded);
}

#[test]
fn a_full_queue_is_waited_for_and_nothing_is_lost() {
    let (burst, all) = burst(16, 100);
    let answers = [Err(libc::ENOBUFS), Err(libc::EAGAIN), Ok(1), Err(libc::EINTR), Err(libc::ENOBUFS)];
    let mut kernel = Fake { batch_answers: answers.into(), ..Fake::default() };
    let (result, counters) = run(&burst, &mut kernel, &mut Gso::Active.clone());
    result.unwrap();
    assert_eq!(kernel.seen, all);
    assert_eq!(counters.backoffs, 3);
}

#[test]
fn after_the_error_of_a_full_queue_flush_continues() {
    let (burst, all) = burst(16, 100);
    let mut kernel = Fake { batch_answers: vec![Err(libc::EAGAIN); 100].into(), ..Fake::default() };
    let mut progress = Progress::default();
    let mut counters = SendCounters::default();
    let mut gso = Gso::Active;
    let mut go = |kernel: &mut Fake| flush(&burst, &mut progress, &mut gso, kernel, &mut counters);
    assert!(matches!(go(&mut kernel), Err(Error::Stalled { .. })));
    kernel.batch_answers.clear();
    go(&mut kernel).unwrap();
    assert_eq!(kernel.seen, all);
}

#[test]
fn a_queue_that_stays_full_is_skipped_on_request() {
    let (burst, all) = burst(24, 100);
    let mut kernel = Fake { batch_answers: vec![Err(libc::EAGAIN); 1_000].into(), ..Fake::default() };
    let (mut gso, mut counters, mut outage) = (Gso::Active, SendCounters::default(), None);
    let mut patience = Patience::new(Duration::from_micros(200), true);
    let mut go = |kernel: &mut Fake| {
        let (progress, gso, counters) = (&mut Progress::default(), &mut gso, &mut counters);
        let (patience, outage) = (&mut patience, &mut outage);
        Flush { burst: &burst, progress, gso, kernel, counters, patience, outage }.run().unwrap();
        *counters
    };
    let first = go(&mut kernel);
    assert_eq!((first.unsent, first.datagrams), (24, 0));
    let second = go(&mut kernel);
    assert_eq!(second.unsent, 48);
    assert_eq!(second.syscalls - first.syscalls, 3, "a try each, and nothing is waited for again");
    kernel.batch_answers.clear();
    assert_eq!(go(&mut kernel).datagrams, 24);
    assert_eq!(kernel.seen, all);
    assert_eq!(outage.unwrap().raw_os_error(), Some(libc::EAGAIN));
}

#[test]
fn a_hidden_system_call_is_absent_and_not_an_error() {
    for code in [libc::ENOSYS, libc::EPERM] {
        let (burst, all) = burst(16, 100);
        let mut kernel = Fake {
            batch_answers: [Err(code)].into(),
            // In the middle of a message: earlier datagrams are not sent again.
            single_answers: [None, None, Some(libc::EAGAIN), Some(libc::ENOBUFS)].into(),
            ..Fake::default()
        };
        let mut gso = Gso::Active;
        let (result, counters) = run(&burst, &mut kernel, &mut gso);
        result.unwrap();
        assert!(kernel.degraded);
        assert_eq!(gso, Gso::Disabled, "no message of several datagrams is made any more");
        assert_eq!(kernel.seen, all);
        assert_eq!((counters.datagrams, counters.unsent), (16, 0));
    }
}

#[test]
fn a_call_that_vanishes_after_it_worked_is_done_without() {
    let (burst, all) = burst(40, 100);
    let mut kernel = Fake { batch_answers: [Ok(2), Err(libc::ENOSYS)].into(), ..Fake::default() };
    run(&burst, &mut kernel, &mut Gso::Active.clone()).0.unwrap();
    assert!(kernel.degraded);
    assert_eq!(kernel.seen, all);
}

#[test]
fn an_absent_receiver_is_counted_and_does_not_stop_the_stream() {
    let (burst, all) = burst(16, 100);
    let mut kernel = Fake { batch_answers: [Err(libc::ECONNREFUSED), Ok(1)].into(), ..Fake::default() };
    let (result, counters) = run(&burst, &mut kernel, &mut Gso::Active.clone());
    result.unwrap();
    assert_eq!((kernel.seen, counters.refused), (all, 1));
}

proptest! {
    /// Temporary errors of the kernel neither lose nor reorder datagrams.
    #[test]
    fn trouble_that_passes_loses_nothing(
        batch in prop::collection::vec(prop_oneof![
            Just(Err(libc::EAGAIN)), Just(Err(libc::ENOBUFS)), Just(Err(libc::EINTR)), Just(Err(libc::EIO)),
            (1_usize..4).prop_map(Ok),
        ], 0..12),
        single in prop::collection::vec(prop_oneof![
            Just(None), Just(Some(libc::EAGAIN)), Just(Some(libc::EINTR)), Just(Some(libc::ENOBUFS)),
        ], 0..30),
        count in 9_usize..60,
        tiny in 1_usize..400,
    ) {
        let (burst, all) = burst(count, tiny);
        let mut kernel = Fake { batch_answers: batch.into(), single_answers: single.into(), ..Fake::default() };
        let mut gso = Gso::Probe;
        let mut counters = SendCounters::default();
        let mut progress = Progress::default();
        let mut go = || {
            flush(&burst, &mut progress, &mut gso, &mut kernel, &mut counters)
        };
        for _ in 0..200 {
            match go() {
                Err(Error::Stalled { .. }) => {}
                // EIO on a message of one datagram is a different error, so skip such bursts.
                Err(Error::Send { .. }) => return Ok(()),
                other => { other.unwrap(); break }
            }
        }
        prop_assert_eq!(&kernel.seen, &all);
        prop_assert_eq!(counters.datagrams, all.len() as u64);
    }

    /// No datagram is sent twice or out of order, and unsent ones are counted, whatever the network accepts.
    #[test]
    fn every_datagram_is_sent_once_or_counted(
        batch in prop::collection::vec(prop_oneof![
            Just(Err(libc::EPERM)), Just(Err(libc::ENOSYS)), Just(Err(libc::ENETUNREACH)), Just(Err(libc::EIO)),
            Just(Err(libc::EINVAL)), Just(Err(libc::EAGAIN)), Just(Err(libc::ECONNREFUSED)), (1_usize..4).prop_map(Ok),
        ], 0..12),
        single in prop::collection::vec(prop_oneof![
            4 => Just(None), 1 => Just(Some(libc::EPERM)), 1 => Just(Some(libc::EHOSTUNREACH)),
            1 => Just(Some(libc::EAGAIN)), 1 => Just(Some(libc::ECONNREFUSED)), 1 => Just(Some(libc::EACCES)),
        ], 0..60),
        count in 1_usize..60,
        patient: bool,
    ) {
        let (burst, all) = burst(count, 100);
        let mut kernel = Fake { batch_answers: batch.into(), single_answers: single.into(), ..Fake::default() };
        let (mut gso, mut counters, mut outage) = (Gso::Probe, SendCounters::default(), None);
        let mut patience = Patience::new(Duration::from_micros(100), !patient);
        let mut progress = Progress::default();
        for _ in 0..200 {
            let (progress, gso, counters) = (&mut progress, &mut gso, &mut counters);
            let (kernel, patience, outage) = (&mut kernel, &mut patience, &mut outage);
            match (Flush { burst: &burst, progress, gso, kernel, counters, patience, outage }.run()) {
                Err(Error::Stalled { .. } | Error::Send { .. }) => {}
                other => { other.unwrap(); break }
            }
        }
        prop_assert_eq!(kernel.seen.len() as u64, counters.datagrams);
        prop_assert_eq!(counters.datagrams + counters.unsent, count as u64);
        let mut rest = all.iter();
        prop_assert!(kernel.seen.iter().all(|seen| rest.any(|datagram| datagram == seen)));
    }
}
