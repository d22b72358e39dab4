//! Every number that the controller is tuned with: its unit stands in its name, its source beside it.
//!
//! Sources: RFC 9002 (loss detection and probe timeouts), RFC 9438 (CUBIC), RFC 6817 (LEDBAT), the draft of BBR version 3
//! (draft-ietf-ccwg-bbr-06), Copa (Arun and Balakrishnan, NSDI 2018), and packet-train dispersion (Dovrolis, Ramanathan and
//! Moore, IEEE/ACM Transactions on Networking, 2004). "Tables" are those of docs/benchmarks-transfer.md.

use crate::proto::wire::REPORT_INTERVAL_US_MAX;

// Measuring the path.

/// Before the first round trip is known. RFC 9002, section 6.2.2, has 333 ms; the handshake usually measures it.
pub(super) const INITIAL_RTT_US: u64 = 100_000;
/// Window of the filters over round trips, one-way delays and queues, and how often a competing window looks whether others still
/// are there. BBR (section 2.16.1) keeps round trips for 10 s too. The clocks of both hosts drift: 50 ppm are 0.5 ms in it.
pub(super) const PATH_WINDOW_US: u64 = 10_000_000;
/// How late a host is because of a wake-up, or because it is busy. RFC 9002, section 6.1.2, recommends 1 ms for timers alone.
pub(super) const HOST_DELAY_US: u64 = 10_000;
/// How late a report may be. It takes the place of RFC 9002's max_ack_delay.
pub(super) const REPORT_DELAY_US_MAX: u64 = REPORT_INTERVAL_US_MAX + HOST_DELAY_US;
/// Shortest time that a delivery rate is measured over, and the shortest round: reports and wake-ups are milliseconds apart.
pub(crate) const RATE_SPAN_US_MIN: u64 = 2 * HOST_DELAY_US;
pub(crate) const RATE_SPAN_US_MAX: u64 = 200_000;
/// A rate is measured over so many times the path's jitter, which then moves it by an eighth. Link 2 of the tables: 1.3 %.
pub(super) const RATE_SPAN_PER_JITTER: u64 = 8;
/// Rounds of the maximum filter over delivery rates, and of everything that must outlast a probing cycle. BBR version 1 has ten.
pub(super) const BANDWIDTH_ROUNDS: usize = 8;

// Queues.

/// The queue that this flow may build alone: a quarter of the round trip, at least 25 ms. LEDBAT's target (RFC 6817, section 2.5)
/// is at most 100 ms.
pub(super) const QUEUE_CEILING_RTT_SHARE: u64 = 4;
pub(super) const QUEUE_CEILING_US_MIN: u64 = 25_000;
/// A queue beyond this share of the ceiling stands.
pub(super) const STANDING_QUEUE_SHARE: u64 = 4;
/// A shorter queue cannot be told from none. Beside others, this share of the round trip counts as none too.
pub(super) const EMPTY_QUEUE_US_MIN: u64 = 1_500;
pub(super) const EMPTY_QUEUE_RTT_SHARE: u64 = 32;
/// A queue shorter than this share of the longest counts as none. Without it a transfer over 10 Gbit/s and 2 ms sends 1.42 times
/// the file instead of 1.17.
pub(super) const LONGEST_QUEUE_SHARE: u64 = 3;
/// Background mode: ceiling and loss bound are so many times lower, so that it yields to everything that fills a queue.
pub(super) const BACKGROUND_DIVISOR: u64 = 4;

// Loss.

/// Loss beyond the base loss by this share of a round's packets halts the growth at once. BBR's LossThresh (section 2.8) is
/// 0.02 of all packets; here the base loss is known and taken off first.
pub(super) const LOSS_EXCESS_MAX: f64 = 0.05;
/// The same for loss while a queue stands: then others fill it too. Without it two flows over 20 ms lose 0.64 % instead of 0.27.
pub(super) const QUEUED_LOSS_EXCESS_MAX: f64 = 0.01;
/// Packets of one loss event: a full queue drops runs.
pub(super) const PACKETS_PER_LOSS_EVENT: f64 = 10.0;
/// Standard deviations above chance that show a cause. One look in 700 is mistaken.
pub(super) const DEVIATIONS: f64 = 3.0;
/// Loss beyond this is taken for the path's own only where a lower rate has as much of it.
pub(super) const UNTESTED_BASE_LOSS_MAX: f64 = 0.25;
/// A bound of what is divided by: of ten packets one comes.
pub(super) const BASE_LOSS_MAX: f64 = 0.9;
/// The base loss is a mean over so many packets.
pub(super) const BASE_LOSS_PACKETS: f64 = 1_000.0;
/// It is known once so many packets sent below the path's rate have shown it. With 500, 50 Mbit/s with 1 % of loss and a queue of a
/// tenth of a round trip take 78 s instead of 9.
pub(super) const BASE_LOSS_PACKETS_MIN: f64 = 400.0;
/// Losses are compared between rates over so many events at least, and at most.
pub(super) const LOSS_EVENTS_MIN: f64 = 16.0;
pub(super) const LOSS_EVENTS_MAX: f64 = 400.0;

// Trains and the ramp.

/// A first train that the path did not spread by this much shows a wake-up of the receiver, not a rate.
pub(super) const TRAIN_SPAN_US_MIN: u64 = 200;
/// A train leaves at so many times the rate of its step. Without trains link 1 of the tables takes 4.6 % longer, 300 Mbit/s over
/// 380 ms with jitter 14 %.
pub(super) const TRAIN_GAIN: f64 = 4.0;
/// Four to the tenth: from a megabit per second to a terabit.
pub(super) const TRAINS_MAX: u32 = 10;
pub(super) const TRAIN_BYTES_MAX: u64 = 2 << 20;
/// Growth per step of a path that is too slow, or whose round trip is too short, for trains. BBR's startup doubles too
/// (section 5.3.1).
pub(super) const UNTRAINED_GAIN: f64 = 2.0;
/// A step that asks for more than a full path brings 1 / (`BELOW_SHARE` * `UP_GAIN`) of itself; half of the way from there to all
/// tells it from one that was taken.
pub(super) const STEP_TAKEN_SHARE: f64 = (1.0 + 1.0 / (BELOW_SHARE * UP_GAIN)) / 2.0;

// Rate probing. BBR's ProbeBW (section 5.6.1) has gains of 1.25, 0.9 and 1.0; its version 1 has 0.75 for the second, which
// drains what 1.25 built in one round trip.

pub(super) const UP_GAIN: f64 = 1.25;
/// A rate or window of this share is a lower one, too: what is lost there is not lost by sending too much.
pub(super) const DOWN_GAIN: f64 = 0.75;
/// A little below a known rate, so that a queue drains: the first step, cruise at the ceiling, a stall, a presence test. What "up" has to
/// bring for the path to be a faster one is as much above it.
pub(super) const BELOW_SHARE: f64 = 0.9;
/// A queue is drained within so many round trips, or it is not this flow's. BBR's ProbeBW_DOWN has a maximum too (appendix A.9).
/// Without it, greedy mode beside BBR falls from 66 to 8 %.
pub(super) const DRAIN_ROUNDS: u64 = 4;

// Bounds of pace and window.

pub(super) const SEGMENT_BYTES: f64 = 1_500.0;
/// RFC 9002, section 7.2, has the same minimum window.
pub(super) const WINDOW_SEGMENTS_MIN: f64 = 2.0;
/// The cap of bytes in flight is above a window by so many segments: what a burst needs.
pub(super) const BURST_SEGMENTS: f64 = 4.0;
/// BBR's cwnd_gain (section 5.6.1) is 2 as well: reports may be late, and the pace rules.
pub(super) const CAP_GAIN: f64 = 2.0;

// Windows: CUBIC's shape. RFC 9438, sections 4.6 and 5, has 0.7 and 0.4 (segments per cubed second). Between flows that lose at the
// same time the shares are as c / (1 - beta).

/// Paced packets meet a full queue less often than a kernel's bursts: with CUBIC's own values this flow took 61 to 65 % beside a
/// kernel's CUBIC, with these 51 to 53 (tables, "Beside others").
pub(super) const CUBIC_BETA: f64 = 0.67;
pub(super) const CUBIC_C: f64 = 0.3;
/// The loss window: 0.97 of a policer are used alone, where a beta of 0.85 uses 0.95 at the same share.
pub(super) const LOSS_WINDOW_BETA: f64 = 0.9;
pub(super) const LOSS_WINDOW_C: f64 = 0.2;
/// The same in background mode: a loss leaves a fifth, and CUBIC takes the rest long before this comes back.
pub(super) const BACKGROUND_BETA: f64 = 0.2;
pub(super) const BACKGROUND_C: f64 = 0.005;
/// Where so many times as many events come at a lower rate, or more, losses do not answer to the rate.
pub(super) const LOSS_WINDOW_SAME_SHARE: f64 = 0.6;
/// A queue that is empty for so long, and for [`DRAIN_ROUNDS`], is gone: longer than BBR leaves it (ProbeRTTDuration, 200 ms and a
/// round trip), and than it takes to return.
pub(super) const ALONE_US: u64 = 250_000;
/// Losses that follow each other within so many rounds, so many times: the other flow does not back off.
pub(super) const LOSS_STREAK_ROUNDS: u32 = 20;
pub(super) const LOSS_STREAK_MAX: u32 = 4;
/// Step of the half share per round, as a share of what path and queue hold: slow against the ten rounds that BBR's maximum filter
/// remembers.
pub(super) const HALF_SHARE_STEP: f64 = 0.01;
