//! Tuning constants of the controller, each with its unit in the name and its source.
//!
//! Sources: RFC 9002 (loss detection and probe timeouts), RFC 9438 (CUBIC), RFC 6817 (LEDBAT), the draft of
//! BBR version 3 (draft-ietf-ccwg-bbr-06), Copa (Arun and Balakrishnan, NSDI 2018), and packet-train
//! dispersion (Dovrolis, Ramanathan and Moore, IEEE/ACM Transactions on Networking, 2004). "Tables" are those
//! of docs/benchmarks-transfer.md and docs/benchmarks-appendix.md.

use crate::proto::wire::REPORT_INTERVAL_US_MAX;

// Measuring the path.

/// Assumed round trip before the first measurement. RFC 9002, section 6.2.2, has 333 ms; the handshake
/// usually measures it.
pub(super) const INITIAL_RTT_US: u64 = 100_000;
/// Window of the filters over round trips, one-way delays and queues, and interval of the presence test for
/// competing flows. BBR (section 2.16.1) keeps round trips for 10 s too. Clocks of two hosts drift: 50 ppm
/// make 0.5 ms in this time.
pub(crate) const PATH_WINDOW_US: u64 = 10_000_000;

/// Attempts where a loss is unlikely to hit all: greetings, probes of a tail, packets that end a session,
/// timeouts until datagrams become short again.
pub(crate) const ATTEMPTS: u8 = 3;

/// Delay of a host by a wake-up or by load. RFC 9002, section 6.1.2, recommends 1 ms for timers alone.
pub(super) const HOST_DELAY_US: u64 = 10_000;
/// Maximum delay of a report, in place of RFC 9002's max_ack_delay.
pub(super) const REPORT_DELAY_US_MAX: u64 = REPORT_INTERVAL_US_MAX + HOST_DELAY_US;
/// Minimum span of a delivery rate, and minimum length of a round. Reports and wake-ups are milliseconds
/// apart.
pub(crate) const RATE_SPAN_US_MIN: u64 = 2 * HOST_DELAY_US;
pub(crate) const RATE_SPAN_US_MAX: u64 = 200_000;
/// Span of a rate measurement in multiples of the path's jitter, which then shifts the rate by an eighth.
/// Link 2 of the tables: 1.3 %.
pub(super) const RATE_SPAN_PER_JITTER: u64 = 8;
/// Rounds of the maximum filter over delivery rates, and of all state that must outlast a probing cycle. BBR
/// version 1 has ten. A ramp has at most as many trains: four to the eighth spans a megabit to 65 gigabits.
pub(super) const BANDWIDTH_ROUNDS: usize = 8;

// Queues.

/// Maximum queue that this flow may build alone: a quarter of the round trip, at least 25 ms. LEDBAT's target
/// (RFC 6817, section 2.5) is at most 100 ms.
pub(super) const QUEUE_CEILING_RTT_SHARE: u64 = 4;
pub(super) const QUEUE_CEILING_US_MIN: u64 = 25_000;
/// A queue beyond this share of the ceiling is a standing queue.
pub(super) const STANDING_QUEUE_SHARE: u64 = 4;
/// A shorter queue cannot be distinguished from an empty one.
pub(super) const EMPTY_QUEUE_US_MIN: u64 = 1_500;
/// A queue below this share of the longest counts as empty. Without this rule, a transfer over 10 Gbit/s and
/// 2 ms sends 1.42 times the file instead of 1.17.
pub(super) const LONGEST_QUEUE_SHARE: u64 = 3;
/// Divisor of the ceiling and loss bound in background mode, so that it yields to everything that fills a
/// queue.
pub(super) const BACKGROUND_DIVISOR: u64 = 4;

// Loss.

/// Loss beyond the base loss, as a share of a round's packets, that halts growth at once. BBR's LossThresh
/// (section 2.8) is 0.02 of all packets; here the known base loss is subtracted first.
pub(super) const LOSS_EXCESS_MAX: f64 = 0.05;
/// The same while a queue stands, because others then fill it too. Without it, two flows over 20 ms lose 0.64
/// % instead of 0.27 %.
pub(super) const QUEUED_LOSS_EXCESS_MAX: f64 = 0.01;
/// Packets of one loss event: a full queue drops runs.
pub(super) const PACKETS_PER_LOSS_EVENT: f64 = 10.0;
/// Standard deviations above chance that show a cause. One test in 700 errs.
pub(super) const DEVIATIONS: f64 = 3.0;
/// Loss beyond this is attributed to the path only if a lower rate loses as much.
pub(super) const UNTESTED_BASE_LOSS_MAX: f64 = 0.25;
/// Bound of a divisor: one of ten packets arrives.
pub(super) const BASE_LOSS_MAX: f64 = 0.9;
/// Averaging window of the base loss.
pub(super) const BASE_LOSS_PACKETS: f64 = 1_000.0;
/// Packets sent below the path's rate before the base loss is known. With 500, 50 Mbit/s with 1 % loss and a
/// queue of a tenth of a round trip takes 78 s instead of 9.
pub(super) const BASE_LOSS_PACKETS_MIN: f64 = 400.0;
/// Minimum and maximum number of loss events in a comparison between rates.
pub(super) const LOSS_EVENTS_MIN: f64 = 16.0;
pub(super) const LOSS_EVENTS_MAX: f64 = 400.0;

// Trains and the ramp.

/// Minimum spread of a first train. A smaller spread shows a wake-up of the receiver, not a rate.
pub(crate) const TRAIN_SPAN_US_MIN: u64 = 200;
/// Rate of a train as a multiple of its step's rate. Without trains, link 1 of the tables takes 4.6 % longer,
/// and 300 Mbit/s over 380 ms with jitter takes 14 % longer.
pub(super) const TRAIN_GAIN: f64 = 4.0;
pub(super) const TRAIN_BYTES_MAX: u64 = 2 << 20;
/// Growth per step of a path that is too slow, or whose round trip is too short, for trains. BBR's startup
/// doubles too (section 5.3.1).
pub(super) const UNTRAINED_GAIN: f64 = 2.0;

// Rate probing. BBR's ProbeBW (section 5.6.1) has gains of 1.25, 0.9 and 1.0; its version 1 has 0.75 for the second, which
// drains what 1.25 built in one round trip.

pub(super) const UP_GAIN: f64 = 1.25;
/// A rate or window of this share is clearly lower: its losses do not come from sending too fast. So is a
/// frequency of loss events: without less of them, losses do not depend on the rate.
pub(super) const DOWN_GAIN: f64 = 0.75;
/// Slightly below a known rate, so that a queue drains: the first step, cruise at the ceiling, a stall, a
/// presence test. A gain of "up" by the inverse shows that the path became faster and took that share of a
/// step.
pub(super) const BELOW_SHARE: f64 = 0.9;
/// Maximum round trips to drain a queue; a queue that lasts longer is not this flow's. BBR's ProbeBW_DOWN has
/// a maximum too (appendix A.9). Without it, greedy mode beside BBR falls from 66 to 8 %.
pub(super) const DRAIN_ROUNDS: u64 = 4;

// Bounds of pace and window.

pub(super) const SEGMENT_BYTES: f64 = 1_500.0;
/// RFC 9002, section 7.2, has the same minimum window.
pub(super) const WINDOW_SEGMENTS_MIN: f64 = 2.0;
/// Segments by which the cap of bytes in flight exceeds a window, for bursts.
pub(super) const BURST_SEGMENTS: f64 = 4.0;
/// BBR's cwnd_gain (section 5.6.1) is 2 as well: reports may be late, and the pace limits the flow.
pub(super) const CAP_GAIN: f64 = 2.0;

// Windows: CUBIC's shape. RFC 9438, sections 4.6 and 5, has 0.7 and 0.4 (segments per cubed second). Flows
// that lose at the same time get shares in proportion to c / (1 - beta).

/// Paced packets meet a full queue less often than a kernel's bursts. With CUBIC's own values this flow took
/// 61 to 65 % beside a kernel's CUBIC, with these 51 to 53 % (tables, "Beside others").
pub(super) const CUBIC_BETA: f64 = 0.67;
pub(super) const CUBIC_C: f64 = 0.3;
/// Loss window: alone behind a policer, it uses 0.97 of the rate; a beta of 0.85 uses 0.95 at the same share.
pub(super) const LOSS_WINDOW_BETA: f64 = 0.9;
pub(super) const LOSS_WINDOW_C: f64 = 0.2;
/// The same in background mode: a loss leaves a fifth, and CUBIC takes the rest long before this flow
/// recovers.
pub(super) const BACKGROUND_BETA: f64 = 0.2;
pub(super) const BACKGROUND_C: f64 = 0.005;
/// A queue that is empty for this time, and for [`DRAIN_ROUNDS`], is gone. BBR leaves it empty for less
/// (ProbeRTTDuration, 200 ms and a round trip), and a queue returns sooner.
pub(super) const ALONE_US: u64 = 250_000;
/// Streak of losses, each within this many rounds of the last, after which the other flow is assumed not to
/// back off.
pub(super) const LOSS_STREAK_ROUNDS: u32 = 20;
pub(super) const LOSS_STREAK_MAX: u32 = 4;
/// Step of the half share per round, as a share of the capacity of path and queue. Slow against the ten
/// rounds of BBR's maximum filter.
pub(super) const HALF_SHARE_STEP: f64 = 0.01;
