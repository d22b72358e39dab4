//! Handing a plan to the kernel until all of it is sent: what to do about each error, free of system calls.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::time::Duration;

use crate::gso::Gso;
use crate::plan::Plan;
use crate::send::SendCounters;
use crate::sys::{is_absent, is_out_of_buffers, may_be_gso};
use crate::{Error, Result};

/// The kernel, as far as sending needs it. Tests have another one.
pub(crate) trait Transmit {
    /// Sends messages of the plan from the `from`-th on; the kernel may take some of them only.
    fn send(&mut self, plan: &Plan<'_>, from: usize) -> io::Result<usize>;
    /// Sends one datagram with one plain call.
    fn send_one(&mut self, parts: &[IoSlice<'_>], to: Option<SocketAddr>) -> io::Result<()>;
    /// Waits until the socket may take more, at most `timeout`.
    fn wait_writable(&mut self, timeout: Duration) -> io::Result<()>;
    /// Gives a full device queue time (nothing says when it has room again).
    fn pause(&mut self, time: Duration);
    /// The longest segment that the destination's route carries now (asked after an error only).
    fn segment_limit(&mut self, to: Option<SocketAddr>) -> usize;
    /// Several messages a call are not to be had: goes over to one datagram a call. `false` where that is so already.
    fn degrade(&mut self) -> bool;
}

/// Where a flush stands, so that it can go on after an error.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    message: usize,
    /// Datagrams of that message that went out one by one.
    datagrams: usize,
    /// Limits of GSO that turned out on the way, for the batches to come.
    pub learned: Learned,
}

/// What an error told about the limits of GSO, rather than about GSO.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    pub max_segments: Option<usize>,
    pub max_segment_bytes: Option<usize>,
}

/// What kernels before 6.9 take.
const OLD_MAX_SEGMENTS: usize = 64;

impl Progress {
    /// Datagrams of the plan that need no further sending.
    pub fn settled(&self, plan: &Plan<'_>) -> usize {
        plan.messages()[..self.message].iter().map(|message| message.datagrams).sum::<usize>()
            + self.datagrams
    }
}

const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// An error that an unreachable port left on a connected socket; it is about an earlier datagram, and asking clears it.
const REFUSALS_MAX: u32 = 8;

/// Sends what is left of the plan.
///
/// # Errors
/// `Stalled`: nothing is lost, call again. `Send`: one message was left out and counted; call again for the others.
pub(crate) fn flush(
    plan: &Plan<'_>,
    progress: &mut Progress,
    gso: &mut Gso,
    link: &mut impl Transmit,
    counters: &mut SendCounters,
    timeout: Duration,
) -> Result<()> {
    let mut patience = Patience::new(timeout);
    while let Some(message) = plan.messages().get(progress.message) {
        if message.datagrams > 1 && (!gso.usable() || progress.datagrams > 0) {
            send_singly(plan, progress, link, counters, &mut patience)?;
            continue;
        }
        counters.syscalls += 1;
        let error = match link.send(plan, progress.message) {
            Ok(taken) => {
                for sent in &plan.messages()[progress.message..progress.message + taken] {
                    counters.datagrams += sent.datagrams as u64;
                    counters.bytes += sent.bytes as u64;
                    if sent.datagrams > 1 {
                        gso.worked();
                    }
                }
                counters.messages += taken as u64;
                progress.message += taken;
                patience.renew();
                continue;
            }
            Err(error) => error,
        };
        if patience.forgives(&error, link, counters)? {
            continue;
        }
        if is_absent(&error) && link.degrade() {
            continue;
        }
        if message.datagrams > 1 && may_be_gso(&error) {
            let message = *message;
            counters.gso_fallbacks += 1;
            // EINVAL for a segment that the route does not carry, or for too many of them, says nothing about GSO.
            let limit = link.segment_limit(message.to);
            if message.segment_bytes > limit {
                progress.learned.max_segment_bytes = Some(limit);
            } else if message.datagrams > OLD_MAX_SEGMENTS {
                progress.learned.max_segments = Some(OLD_MAX_SEGMENTS);
            } else {
                gso.failed();
            }
            let sent = send_singly(plan, progress, link, counters, &mut patience);
            let stalled = matches!(sent, Err(Error::Stalled { .. }));
            if !stalled {
                gso.resent_plainly(sent.is_ok());
            }
            sent?;
            continue;
        }
        let bytes = message.bytes;
        counters.unsent += message.datagrams as u64;
        progress.message += 1;
        return Err(Error::Send { bytes, source: error });
    }
    Ok(())
}

/// Sends the datagrams of one message with a call each.
fn send_singly(
    plan: &Plan<'_>,
    progress: &mut Progress,
    link: &mut impl Transmit,
    counters: &mut SendCounters,
    patience: &mut Patience,
) -> Result<()> {
    let message = plan.messages()[progress.message];
    let outcome = plan.each_datagram(&message, progress.datagrams, |parts| {
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
        loop {
            counters.syscalls += 1;
            match link.send_one(parts, message.to) {
                Ok(()) => break,
                Err(error) if patience.forgives(&error, link, counters)? => {}
                Err(source) => return Err(Error::Send { bytes, source }),
            }
        }
        counters.datagrams += 1;
        counters.messages += 1;
        counters.bytes += bytes as u64;
        progress.datagrams += 1;
        patience.renew();
        Ok(())
    });
    if let Err(Error::Send { .. }) = outcome {
        counters.unsent += (message.datagrams - progress.datagrams) as u64;
    }
    if !matches!(outcome, Err(Error::Stalled { .. })) {
        (progress.message, progress.datagrams) = (progress.message + 1, 0);
    }
    outcome
}

/// How long a flush puts up with a kernel that takes nothing.
struct Patience {
    timeout: Duration,
    waited: Duration,
    pause: Duration,
    refusals: u32,
}

impl Patience {
    fn new(timeout: Duration) -> Self {
        Self { timeout, waited: Duration::ZERO, pause: PAUSE_MIN, refusals: 0 }
    }

    fn renew(&mut self) {
        (self.waited, self.pause, self.refusals) = (Duration::ZERO, PAUSE_MIN, 0);
    }

    /// Whether the same call is to be made again; it has waited where that helps.
    fn forgives(
        &mut self,
        error: &io::Error,
        link: &mut impl Transmit,
        counters: &mut SendCounters,
    ) -> Result<bool> {
        match error.kind() {
            io::ErrorKind::Interrupted => return Ok(true),
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => {
                counters.refused += 1;
                self.refusals += 1;
                return Ok(self.refusals <= REFUSALS_MAX);
            }
            io::ErrorKind::WouldBlock => {}
            _ if is_out_of_buffers(error) => {}
            _ => return Ok(false),
        }
        counters.backoffs += 1;
        if self.waited >= self.timeout {
            return Err(Error::Stalled { waited: self.waited });
        }
        let before = std::time::Instant::now();
        if error.kind() == io::ErrorKind::WouldBlock {
            let left = (self.timeout - self.waited).max(PAUSE_MIN);
            link.wait_writable(left).map_err(|source| Error::Send { bytes: 0, source })?;
        } else {
            link.pause(self.pause);
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        // A fake link does not wait: the pause counts at least.
        self.waited += before.elapsed().max(PAUSE_MIN);
        Ok(true)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::{Coalesce, Source};

    /// Takes what it is told to, and remembers each datagram as a receiver would see it.
    #[derive(Default)]
    struct Fake {
        batch_answers: VecDeque<std::result::Result<usize, i32>>,
        single_answers: VecDeque<Option<i32>>,
        seen: Vec<Vec<u8>>,
        route_too_small: bool,
        singles: usize,
        degraded: bool,
    }

    impl Transmit for Fake {
        fn send(&mut self, plan: &Plan<'_>, from: usize) -> io::Result<usize> {
            let left = &plan.messages()[from..];
            let take = match self.batch_answers.pop_front().unwrap_or(Ok(usize::MAX)) {
                Ok(take) => take.clamp(1, left.len()),
                Err(code) => return Err(io::Error::from_raw_os_error(code)),
            };
            for message in &left[..take] {
                let bytes: Vec<u8> = match plan.source(message) {
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
    }

    const RULE: Coalesce = Coalesce { max_segments: 8, max_segment_bytes: 65_507 };

    fn plan(datagrams: usize, bytes: usize) -> (Plan<'static>, Vec<Vec<u8>>) {
        let mut plan = Plan::new();
        let all: Vec<Vec<u8>> = (0..datagrams).map(|i| vec![i as u8; bytes]).collect();
        for datagram in &all {
            plan.push_copied(None, datagram, &[], RULE).unwrap();
        }
        (plan, all)
    }

    fn run(plan: &Plan<'_>, link: &mut Fake, gso: &mut Gso) -> (Result<()>, SendCounters) {
        let mut counters = SendCounters::default();
        let result =
            flush(plan, &mut Progress::default(), gso, link, &mut counters, Duration::from_millis(1));
        (result, counters)
    }

    #[test]
    fn a_batch_that_gso_refuses_goes_out_plainly_and_gso_stays_off() {
        for code in [libc::EIO, libc::EINVAL] {
            let (plan, all) = plan(30, 100);
            // It worked for the first two messages, then fails in the middle of the batch.
            let mut link = Fake { batch_answers: [Ok(2), Err(code)].into(), ..Fake::default() };
            let mut gso = Gso::Probe;
            let (result, counters) = run(&plan, &mut link, &mut gso);
            result.unwrap();
            assert_eq!(link.seen, all, "nothing lost, nothing twice, in order");
            assert_eq!(gso, Gso::Disabled);
            assert_eq!((counters.datagrams, counters.unsent, counters.gso_fallbacks), (30, 0, 1));
            assert_eq!(link.singles, 14);
        }
    }

    #[test]
    fn a_route_with_a_smaller_mtu_is_not_gsos_fault() {
        let (plan, all) = plan(30, 100);
        let mut link =
            Fake { batch_answers: [Err(libc::EINVAL)].into(), route_too_small: true, ..Fake::default() };
        let (mut gso, mut progress) = (Gso::Active, Progress::default());
        let mut counters = SendCounters::default();
        flush(&plan, &mut progress, &mut gso, &mut link, &mut counters, Duration::from_millis(1)).unwrap();
        assert_eq!(link.seen, all);
        assert_eq!(gso, Gso::Active);
        assert_eq!(progress.learned.max_segment_bytes, Some(99));
    }

    #[test]
    fn an_old_kernels_limit_of_segments_is_learned() {
        let rule = Coalesce { max_segments: 128, ..RULE };
        let mut plan = Plan::new();
        for _ in 0..100 {
            plan.push_copied(None, &[1; 50], &[], rule).unwrap();
        }
        let mut link = Fake { batch_answers: [Err(libc::EINVAL)].into(), ..Fake::default() };
        let (mut gso, mut progress) = (Gso::Probe, Progress::default());
        let mut counters = SendCounters::default();
        flush(&plan, &mut progress, &mut gso, &mut link, &mut counters, Duration::from_millis(1)).unwrap();
        assert_eq!((link.seen.len(), gso, progress.learned.max_segments), (100, Gso::Probe, Some(64)));
    }

    #[test]
    fn an_error_of_the_network_is_returned_and_counted() {
        let (plan, all) = plan(16, 100);
        let mut link = Fake { batch_answers: [Err(libc::ENETUNREACH)].into(), ..Fake::default() };
        let mut gso = Gso::Active;
        let mut progress = Progress::default();
        let mut counters = SendCounters::default();
        let mut go =
            || flush(&plan, &mut progress, &mut gso, &mut link, &mut counters, Duration::from_millis(1));
        assert!(matches!(go(), Err(Error::Send { bytes: 800, .. })));
        go().unwrap();
        assert_eq!(link.seen, all[8..], "what follows is not lost with it");
        assert_eq!((counters.unsent, counters.datagrams), (8, 8));
    }

    #[test]
    fn a_full_queue_is_waited_for_and_nothing_is_lost() {
        let (plan, all) = plan(16, 100);
        let answers = [Err(libc::ENOBUFS), Err(libc::EAGAIN), Ok(1), Err(libc::EINTR), Err(libc::ENOBUFS)];
        let mut link = Fake { batch_answers: answers.into(), ..Fake::default() };
        let (result, counters) = run(&plan, &mut link, &mut Gso::Active.clone());
        result.unwrap();
        assert_eq!(link.seen, all);
        assert_eq!(counters.backoffs, 3);
    }

    #[test]
    fn a_queue_that_stays_full_is_an_error_after_which_flush_goes_on() {
        let (plan, all) = plan(16, 100);
        let mut link = Fake { batch_answers: vec![Err(libc::EAGAIN); 100].into(), ..Fake::default() };
        let mut progress = Progress::default();
        let mut counters = SendCounters::default();
        let mut gso = Gso::Active;
        let mut go = |link: &mut Fake| {
            flush(&plan, &mut progress, &mut gso, link, &mut counters, Duration::from_millis(1))
        };
        assert!(matches!(go(&mut link), Err(Error::Stalled { .. })));
        link.batch_answers.clear();
        go(&mut link).unwrap();
        assert_eq!(link.seen, all);
    }

    #[test]
    fn a_hidden_system_call_is_absent_and_not_an_error() {
        for code in [libc::ENOSYS, libc::EPERM] {
            let (plan, all) = plan(16, 100);
            let mut link = Fake { batch_answers: [Err(code)].into(), ..Fake::default() };
            run(&plan, &mut link, &mut Gso::Active.clone()).0.unwrap();
            assert!(link.degraded);
            assert_eq!(link.seen, all);
        }
    }

    #[test]
    fn an_absent_receiver_is_counted_and_does_not_stop_the_stream() {
        let (plan, all) = plan(16, 100);
        let mut link = Fake { batch_answers: [Err(libc::ECONNREFUSED), Ok(1)].into(), ..Fake::default() };
        let (result, counters) = run(&plan, &mut link, &mut Gso::Active.clone());
        result.unwrap();
        assert_eq!((link.seen, counters.refused), (all, 1));
    }

    proptest! {
        /// Whatever passing trouble the kernel makes, every datagram goes out once and in order.
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
            let (plan, all) = plan(count, tiny);
            let mut link = Fake { batch_answers: batch.into(), single_answers: single.into(), ..Fake::default() };
            let mut gso = Gso::Probe;
            let mut counters = SendCounters::default();
            let mut progress = Progress::default();
            let mut go = || {
                flush(&plan, &mut progress, &mut gso, &mut link, &mut counters, Duration::from_micros(100))
            };
            for _ in 0..200 {
                match go() {
                    Err(Error::Stalled { .. }) => {}
                    // EIO on a message of one datagram is an error of its own: leave such plans out.
                    Err(Error::Send { .. }) => return Ok(()),
                    other => { other.unwrap(); break }
                }
            }
            prop_assert_eq!(&link.seen, &all);
            prop_assert_eq!(counters.datagrams, all.len() as u64);
        }
    }
}
