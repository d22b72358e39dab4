//! Every number that the controller is tuned with: its unit stands in its name, its source beside it.
//!
//! Sources: RFC 9002 (loss detection and probe timeouts), RFC 9438 (CUBIC), RFC 6817 (LEDBAT), the draft of BBR version 3
//! (draft-ietf-ccwg-bbr-06), Copa (Arun and Balakrishnan, NSDI 2018), and packet-train dispersion (Dovrolis, Ramanathan and
//! Moore, IEEE/ACM Transactions on Networking, 2004). "Tables" are those of docs/benchmarks-transfer.md.

// Measuring the path.

/// Before the first round trip is known. RFC 9002, section 6.2.2, has 333 ms; the handshake usually measures it.
pub(super) const INITIAL_RTT_US: u64 = 100_000;
/// Window of the minimum filter over round trips. BBR (section 2.16.1) keeps 10 s and leaves the queue to renew it; this
/// controller drains the queue in each probing cycle, so that a longer window does no harm.
pub(super) const MIN_RTT_WINDOW_US: u64 = 30_000_000;
/// Window of the minimum filter over one-way delays. Short, because the clocks of both hosts drift: 50 ppm are 0.75 ms in it.
/// LEDBAT keeps BASE_HISTORY minutes (RFC 6817, section 2.5).
pub(super) const BASE_DELAY_WINDOW_US: u64 = 15_000_000;
/// Shortest time that a delivery rate is measured over, and the shortest round: reports and wake-ups are milliseconds apart.
pub(crate) const RATE_SPAN_US_MIN: u64 = 20_000;
pub(crate) const RATE_SPAN_US_MAX: u64 = 200_000;
/// While the rate grows, an older measurement is a wrong one.
pub(super) const RAMP_RATE_SPAN_US_MAX: u64 = 100_000;
/// A rate is measured over so many times the path's jitter, which then moves it by an eighth. Link 2 of the tables: 1.3 %.
pub(super) const RATE_SPAN_PER_JITTER: u64 = 8;
/// Rounds of the maximum filter over delivery rates. BBR version 1 has ten; a probing cycle here is four to nine rounds long.
pub(super) const BANDWIDTH_ROUNDS: usize = 8;
/// The receiver sends eight reports per round trip, and at least one per 25 ms (docs/transfer-protocol.md, "Frames").
pub(super) const REPORTS_PER_RTT: u64 = 8;
pub(super) const REPORT_INTERVAL_US_MAX: u64 = 25_000;
/// How late a report may be: the longest interval and a wake-up. It takes the place of RFC 9002's max_ack_delay.
pub(super) const REPORT_DELAY_US_MAX: u64 = 30_000;
/// Timer granularity in the probe timeout. RFC 9002, section 6.1.2, recommends 1 ms; a receiver that is busy writing a file is
/// late by more.
pub(super) const PROBE_TIMEOUT_GRANULARITY_US: f64 = 10_000.0;

// Stalls: a host is stopped, a radio sleeps.

/// Nothing came for two intervals of reports and so long: a wake-up of the receiver's host is late by less.
pub(super) const STALL_US_MIN: u64 = 10_000;
/// What waited in a stall is a queue like any other: it may also be that the path has become slower. CUBIC's decrease is 0.7 (RFC 9438,
/// section 4.6).
pub(super) const STALLED_YIELD_SHARE: f64 = 0.85;

// Queue ceilings: how much queue this flow may build alone.

/// Fair mode: a quarter of the round trip, at least 25 ms. LEDBAT's target (RFC 6817, section 2.5) is at most 100 ms.
pub(super) const QUEUE_CEILING_RTT_SHARE: u64 = 4;
pub(super) const QUEUE_CEILING_US_MIN: u64 = 25_000;
/// Background mode: a sixteenth of the round trip, at least 5 ms, so that it yields to all that fill a queue.
pub(super) const BACKGROUND_CEILING_RTT_SHARE: u64 = 16;
pub(super) const BACKGROUND_CEILING_US_MIN: u64 = 5_000;

// Loss.

/// Loss beyond the base loss by this share of a round's packets halts the growth at once. BBR's LossThresh (section 2.8) is
/// 0.02 of all packets; here the base loss is known and taken off first.
pub(super) const LOSS_EXCESS_MAX: f64 = 0.05;
pub(super) const BACKGROUND_LOSS_EXCESS_MAX: f64 = 0.01;
/// The same for loss while a queue stands: then others fill it too. Without it two flows over 20 ms lose 0.64 % instead of 0.27.
pub(super) const QUEUED_LOSS_EXCESS_MAX: f64 = 0.01;
/// Packets of one loss event: a full queue drops runs.
pub(super) const PACKETS_PER_LOSS_EVENT: f64 = 10.0;
/// Even without any loss seen, the noise of a round is that of one in a thousand.
pub(super) const LOSS_NOISE_FLOOR: f64 = 0.001;
/// Rounds of fewer packets say nothing about loss.
pub(super) const LOSS_PACKETS_MIN: f64 = 8.0;
/// Loss beyond this is taken for the path's own only where a lower rate has as much of it. The worst link of the tables has 0.1.
pub(super) const UNTESTED_BASE_LOSS_MAX: f64 = 0.25;
/// A bound of what is divided by: of ten packets one comes.
pub(super) const BASE_LOSS_MAX: f64 = 0.9;
/// The base loss is a mean over so many packets sent below the path's rate, and before there are any, over all with this weight.
pub(super) const BASE_LOSS_PACKETS: f64 = 4_000.0;
pub(super) const EARLY_BASE_LOSS_PACKETS: f64 = 400.0;
/// A queue shorter than a third of the longest of these seconds, and at least this long, counts as none. Without it a transfer over
/// 10 Gbit/s and 2 ms sends 1.42 times the file instead of 1.17.
pub(super) const LONGEST_QUEUE_WINDOW_US: u64 = 10_000_000;
pub(super) const QUIET_QUEUE_US_MIN: u64 = 1_500;

// Ramp.

/// A first train that the path did not spread by this much shows a wake-up of the receiver, not a rate.
pub(super) const TRAIN_SPAN_US_MIN: u64 = 200;
/// Such a path is faster than could be measured: a quarter of what was, then four times as much per step. Chosen on loopback.
pub(super) const UNMEASURED_RATE_SHARE: f64 = 0.25;
pub(super) const UNMEASURED_GAIN: f64 = 4.0;
/// Growth per step of a path that is too slow, or whose round trip is too short, for trains. BBR's startup doubles too
/// (section 5.3.1).
pub(super) const UNTRAINED_GAIN: f64 = 2.0;
/// The first step, below what 32 packets told: an excess would fill a queue for a round trip.
pub(super) const FIRST_STEP_SHARE: f64 = 0.9;
/// A train leaves at so many times the rate of its step. Without trains link 1 of the tables takes 4.6 % longer, 300 Mbit/s over
/// 380 ms with jitter 14 %.
pub(super) const TRAIN_GAIN: f64 = 4.0;
/// Four to the tenth: from a megabit per second to a terabit.
pub(super) const TRAINS_MAX: u32 = 10;
pub(super) const TRAIN_PACKETS_MIN: u64 = 32;
pub(super) const TRAIN_BYTES_MAX: u64 = 2 << 20;
/// A train that came at this share of the rate it left at was not spread by the path.
pub(super) const TRAIN_UNSPREAD_SHARE: f64 = 0.8;
/// Nor does one tell the rate whose length jitter leaves this unsure. Without it 150 Mbit/s over 280 ms with 60 ms of jitter take 9 % longer.
pub(super) const TRAIN_ERROR_SHARE_MAX: f64 = 0.2;
/// A step from 0.9 to 1.125 of a full path brings 0.89 of itself: what brings more than half of the way from there to all was taken.
pub(super) const STEP_TAKEN_SHARE: f64 = 0.95;
/// A queue of half the ceiling ends the ramp; on short paths the ceiling is too short to measure that.
pub(super) const RAMP_QUEUE_US_MIN: u64 = 3_000;

// Rate probing. BBR's ProbeBW (section 5.6.1) has gains of 1.25, 0.9 and 1.0; its version 1 has 0.75 for the second, which
// drains what 1.25 built in one round trip.

pub(super) const UP_GAIN: f64 = 1.25;
pub(super) const DOWN_GAIN: f64 = 0.75;
/// Where "up" brought a tenth more, the next one asks for so much more, up to twice the rate; from the second in a row on, the
/// path is another one and the ramp begins again. A path that becomes 20 times as fast is 13 % used after a second without the
/// ramp, and 24 % with it (BBR's appendix A.15 asks for the like).
pub(super) const UP_GAIN_STEP: f64 = 0.25;
pub(super) const UP_GAIN_MAX: f64 = 2.0;
pub(super) const UP_GREW_MIN: f64 = 1.1;
pub(super) const RAMP_AGAIN_GAIN_MIN: f64 = 1.55;
/// Cruise lasts 4 to 7 rounds, drawn at random: flows that probe at the same moment would measure each other.
pub(super) const CRUISE_ROUNDS_MIN: u32 = 4;
pub(super) const CRUISE_ROUNDS_DRAWN: u32 = 4;
/// Cruise goes below the path's rate by a tenth where the queue is at its ceiling, and by less where it is shorter.
pub(super) const CRUISE_DRAIN_SHARE: f64 = 0.1;
/// "Down" ends after so many round trips even if more is in flight than the path holds. BBR's ProbeBW_DOWN has a maximum too
/// (appendix A.9). Without it, greedy mode beside BBR falls from 66 to 8 %.
pub(super) const DOWN_RTTS_MAX: u64 = 4;

// Bounds of pace and window.

/// Two packets per round trip. RFC 9002, section 7.2, has the same minimum window.
pub(super) const PACKETS_PER_RTT_MIN: f64 = 2.0;
pub(super) const SHORT_PACKET_BYTES: f64 = 1_200.0;
pub(super) const PACE_BYTES_PER_S_MIN: f64 = 4_000.0;
/// BBR's cwnd_gain (section 5.6.1) is 2 as well: reports may be late, and the pace rules.
pub(super) const CAP_GAIN: f64 = 2.0;
pub(super) const CAP_BYTES_MIN: u64 = 24_000;

// Competing flows: detection. Copa (section 2.2) likewise asks whether the queue was nearly empty within five round trips.

/// A queue that stays for so many rounds, above a quarter of the ceiling, is another flow's.
pub(super) const STANDING_QUEUE_ROUNDS: usize = 8;
/// It stays where its second half is no shorter than this share of the first: ours alone shrinks.
pub(super) const STANDING_QUEUE_SHARE_MIN: f64 = 0.7;
/// So many rounds without a queue: what was delivered then is the path's capacity.
pub(super) const ALONE_ROUNDS: u32 = 32;
/// A first train of which less came, of 32 packets, says little about the capacity.
pub(super) const CAPACITY_TRAIN_BYTES_MIN: u64 = 20_000;

// Competing window: CUBIC. RFC 9438 counts in segments, and so does this.

pub(super) const SEGMENT_BYTES: f64 = 1_500.0;
pub(super) const WINDOW_SEGMENTS_MIN: f64 = 4.0;
/// RFC 9438, sections 4.6 and 5, has 0.7 and 0.4 (segments per cubed second). Paced packets meet a full queue less often than a kernel's
/// bursts: with CUBIC's own values this flow took 61 to 65 % beside a kernel's CUBIC, with these 51 to 53 (tables, "Beside others").
pub(super) const CUBIC_BETA: f64 = 0.67;
pub(super) const CUBIC_C: f64 = 0.3;
/// The pace is so much above window per round trip, so that the window binds and not the pace.
pub(super) const WINDOW_PACE_GAIN: f64 = 1.02;
/// The cap is above the window by a few packets: what a burst needs.
pub(super) const WINDOW_CAP_SLACK_BYTES: u64 = 6_000;
/// This flow leaves the queue at a loss after so long, or after twice as long without one, to see whether others still fill it.
/// BBR version 1 looks at the path without its queue as often
/// (ProbeRTT), version 3 every 5 s (section 2.16.2).
pub(super) const PRESENCE_TEST_INTERVAL_US: u64 = 10_000_000;
pub(super) const PRESENCE_TEST_ROUNDS: u32 = 3;
pub(super) const PRESENCE_TEST_WINDOW_SHARE: f64 = 0.9;
/// Longer than BBR leaves the queue (ProbeRTTDuration, 200 ms and a round trip), and than it takes to return.
pub(super) const ALONE_US: u64 = 250_000;
pub(super) const ALONE_RTTS: u64 = 4;
/// A queue of a thirty-second of the round trip counts as empty, within these.
pub(super) const EMPTY_QUEUE_RTT_SHARE: u64 = 32;
pub(super) const EMPTY_QUEUE_US_MIN: u64 = 1_500;
pub(super) const EMPTY_QUEUE_US_MAX: u64 = 20_000;

// Losses that answer to the rate: a short queue or a policer, and no queue to be seen.

/// Loss events are halved beyond so many: what was long ago counts for less.
pub(super) const RESPONSE_EVENTS_MAX: f64 = 400.0;
/// Faster packets have so many standard deviations more loss events than chance would give them. With 3, one look in 700 is mistaken;
/// each mistake adds one.
pub(super) const RESPONSE_DEVIATIONS: f64 = 3.0;
/// A round that lost more than any path does is an overrun where it has so many events: an outage is one event, and runs of ten are few.
/// With 8, one of ten transfers over 10 % of loss in runs of ten is misjudged.
pub(super) const OVERRUN_EVENTS_MIN: f64 = 16.0;
/// And so many standard deviations above the base loss.
pub(super) const OVERRUN_DEVIATIONS: f64 = 5.0;

// Loss window. Its shape was chosen in the simulator: between flows that lose at the same time the shares are as c / (1 - beta), which is
// 2.0 here and 1.33 for CUBIC, and a beta of 0.9 uses 0.97 of a policer alone, where 0.85 uses 0.95 at the same share.

pub(super) const LOSS_WINDOW_BETA: f64 = 0.9;
pub(super) const LOSS_WINDOW_C: f64 = 0.2;
// The same in background mode. Chosen in the simulator: beside one CUBIC 2 - 24 % instead of 3 - 51, alone 78 - 88 % of a short queue or
// a policer (docs/benchmarks-transfer.md, "Short queues and policers").

/// A loss leaves a fifth, and the window holds still for two seconds; where others took the rest meanwhile, twice as long each time, up
/// to half a minute: CUBIC needs a few seconds to take what is free (RFC 9438, section 4.2, K).
pub(super) const POLITE_BETA: f64 = 0.2;
pub(super) const POLITE_HOLD_US_MIN: u64 = 2_000_000;
pub(super) const POLITE_HOLD_US_MAX: u64 = 32_000_000;
/// It is alone where a loss comes no earlier than at this share of the greatest window, which is a memory of a path that may have
/// changed: each time that it was not so it counts for so much less.
pub(super) const POLITE_ALONE_SHARE: f64 = 0.97;
pub(super) const POLITE_DOUBT: f64 = 0.95;
/// Instead of [`LOSS_WINDOW_EVENTS_MIN`].
pub(super) const POLITE_EVENTS_MIN: f64 = 12.0;
/// Growth per round trip, as a share of the window: back to nearly the greatest within a second over 40 ms, and beyond that slowly, the
/// faster the longer nothing was lost.
pub(super) const POLITE_RETURN_SHARE: f64 = 0.9;
pub(super) const POLITE_RETURN_GAIN: f64 = 0.1;
pub(super) const POLITE_CALM_US: u64 = 5_000_000;
pub(super) const POLITE_GROWTH_GAIN: f64 = 0.000_2;
/// One round trip's losses leave at least this much: another flow's beginning would else take all. Without it 376 segments become 45.
pub(super) const LOSS_WINDOW_PASSED_MIN: f64 = 0.7;
/// A window below this share of its last maximum is below what lost packets.
pub(super) const LOSS_WINDOW_BELOW_SHARE: f64 = 0.93;
/// A window below this share of where it began is a much lower rate.
pub(super) const LOSS_WINDOW_LOW_SHARE: f64 = 0.75;
/// Where so many times as many events come there, or more, as at the rate of the beginning, losses do not answer to the rate.
pub(super) const LOSS_WINDOW_SAME_SHARE: f64 = 0.6;
/// As long as fewer came there, nothing is known.
pub(super) const LOSS_WINDOW_EVENTS_MIN: f64 = 4.0;
/// After an overrun the losses of the next round trips tell what is usual, if the window is much lower within so many.
pub(super) const LOSS_WINDOW_SOON_RTTS: u64 = 16;

// Classifier: is the competing flow one that backs off at loss, or BBR?

/// The usual queue is a mean over so many rounds: one cycle of BBR version 1.
pub(super) const USUAL_QUEUE_ROUNDS: f64 = 8.0;
/// CUBIC's decrease of 0.3 leaves more than this of a queue of one round trip.
pub(super) const DIP_BEGINS_SHARE: f64 = 0.35;
pub(super) const DIP_ENDS_SHARE: f64 = 0.75;
/// No decrease at loss empties a queue that is longer than this share of the round trip. Then a dip has ended already here, since
/// a BBR with most of the path takes long to fill the rest. Without it: 20 instead of 46 % beside BBR over 20 ms.
pub(super) const DEEP_QUEUE_RTT_SHARE: f64 = 0.45;
pub(super) const DEEP_DIP_ENDS_SHARE: f64 = 0.4;
/// A dip lasts as long as ProbeRTT: 200 ms and a round trip, more where a packet is lost then; and it ends within BBR's next
/// cycles of eight short round trips.
pub(super) const DIP_US_MIN: u64 = 100_000;
pub(super) const DIP_US_MAX: u64 = 400_000;
pub(super) const DIP_RTTS_MAX: u64 = 12;
/// A dip so soon after this flow left the queue itself is its own. Without it three flows leave a CUBIC 1 % instead of 25.
pub(super) const OWN_DIP_ROUNDS: u32 = 6;
/// Losses that follow each other within so many rounds, so many times: the other flow does not back off.
pub(super) const LOSS_STREAK_ROUNDS: u32 = 20;
pub(super) const LOSS_STREAK_MAX: u32 = 4;
/// How long after this flow backed off the queue is looked at: at first it is the old one, and two cycles of BBR are ten rounds
/// with a queue that is not full.
pub(super) const REFILL_ROUNDS_MIN: u32 = 2;
pub(super) const REFILL_ROUNDS_MAX: u32 = 10;
/// Refilled: so much of what this flow left in the queue is back. CUBIC takes half of it in this time at most.
pub(super) const REFILLED_SHARE: f64 = 0.75;
/// What is a smaller share of the queue cannot be told from its noise.
pub(super) const REFILL_QUEUE_SHARE_MIN: f64 = 0.06;
/// One CUBIC that missed a loss looks like this once, BBR each time.
pub(super) const REFILLS_MAX: u32 = 2;

// Half share: the window beside BBR.

/// A little less than half, so that BBR's ProbeRTT sees the path without this flow's queue.
pub(super) const HALF_SHARE_GAIN: f64 = 0.95;
/// Step per round, as a share of the path's product of capacity and round trip: slow against the ten rounds that BBR's maximum
/// filter remembers.
pub(super) const HALF_SHARE_STEP: f64 = 0.01;
/// A constant window beside BBR makes both lose 2 % in a queue of one round trip, 4 % in one of half: more than this is the fault
/// of several that hold theirs. Without the bound three flows beside BBR over 20 ms lose 11 % instead of 4.6.
pub(super) const HALF_SHARE_LOSS_MAX: f64 = 0.07;
/// Mean of the loss: two cycles of BBR.
pub(super) const HALF_SHARE_LOSS_ROUNDS: f64 = 16.0;
/// BBR version 1 enters ProbeRTT every ten seconds. Without a dip for this long, and later for two of its intervals and some,
/// the other flow is taken for one that backs off.
pub(super) const DIP_INTERVAL_US: u64 = 12_000_000;
pub(super) const DIP_INTERVAL_LATER_US: u64 = 25_000_000;
