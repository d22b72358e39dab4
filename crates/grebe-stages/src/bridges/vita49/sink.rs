//! `vrt://` as a sink.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use grebe_datagram::Sender;
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::{Batch, Description, Header, SampleFormat};
use grebe_link::outage::Outage;
use grebe_process::stream::is_same;

use super::class::Class;
use super::context::{Fields, SignalContext};
use super::packets::Packets;
use super::payload_format::{PayloadFormat, Shape};
use super::prologue::{Kind, Prologue};
use super::sample_clock::SampleClock;
use super::streams::REFERENCE_LEVEL;
use super::uri::{Profile, Time, Vita49Stream};

/// Sends a stream as VITA-49 packets of one size; the last before a gap, a change or the end may be shorter. A
/// context packet precedes the first packet and each change, and repeats ten times a second. An empty datagram ends
/// the stream.
#[derive(Debug)]
pub(crate) struct Vita49Sink {
    sender: Sender,
    name: Vita49Stream,
    datagram_bytes: usize,
    /// Whether the user chose the size. Otherwise a packet has at most 10 ms of the signal.
    is_asked: bool,
    packets: Option<Packets>,
    clock: SampleClock,
    announced: Announced,
    next_index: u64,
    rate_hz: f64,
    gap_samples: u64,
    outage: Outage,
    counters: Counted,
}

/// The last context sent.
#[derive(Debug)]
struct Announced {
    description: Option<Arc<Description>>,
    context: SignalContext,
    at: Instant,
    count: u8,
}

impl Vita49Sink {
    /// `asked_bytes`: requested size of datagrams; `path_bytes`: the size that suits the path.
    pub(crate) fn new(
        sender: Sender,
        name: Vita49Stream,
        asked_bytes: Option<usize>,
        path_bytes: usize,
    ) -> Self {
        Self {
            sender,
            name,
            datagram_bytes: asked_bytes.unwrap_or(path_bytes),
            is_asked: asked_bytes.is_some(),
            packets: None,
            clock: SampleClock::default(),
            announced: Announced {
                description: None,
                context: SignalContext::default(),
                at: Instant::now(),
                count: 0,
            },
            next_index: 0,
            rate_hz: 0.0,
            gap_samples: 0,
            outage: Outage::default(),
            counters: Counted::default(),
        }
    }

    fn take(&mut self, batch: &Batch) -> StageResult<()> {
        let mut is_first = true;
        for frame in batch.frames() {
            let header = frame.header();
            if self.changes(&header) {
                self.begin(&header, batch)?;
            } else if is_first {
                self.announce(batch, header.first_sample_index)?;
            }
            is_first = false;
            let gap = header.first_sample_index.saturating_sub(self.next_index);
            if gap > 0 {
                self.send_all()?;
                self.gap_samples += gap;
                // A receiver that knows the packet size finds the gap by their count, and in any case by their time.
                if let Some(packets) = &mut self.packets {
                    packets.skip(gap.div_ceil(packets.packet_samples() as u64));
                }
            }
            let length = header.block_length_samples as usize;
            self.next_index = header.first_sample_index + length as u64;
            let mut at = 0;
            while at < length {
                let Some(packets) = &mut self.packets else { break };
                let index = header.first_sample_index + at as u64;
                at += packets.fill(&frame, at, || self.clock.stamp_at(index));
                if packets.is_full() {
                    self.send_whole()?;
                }
            }
        }
        self.send_whole()
    }

    /// Whether a frame has other properties than the previous one, or is of another stream.
    fn changes(&self, header: &Header) -> bool {
        let is_alike = self.packets.as_ref().is_some_and(|packets| {
            let shape = packets.shape();
            (shape.format(), shape.channels) == (header.format, header.channel_count as usize)
        });
        !is_alike || header.sample_rate_hz != self.rate_hz || header.first_sample_index < self.next_index
    }

    /// Starts packets for samples of this kind.
    #[cold]
    fn begin(&mut self, header: &Header, batch: &Batch) -> StageResult<()> {
        self.send_all()?;
        let is_difi = self.name.profile == Profile::Difi;
        let is_plain =
            matches!(header.format, SampleFormat::Ci8 | SampleFormat::Ci16) && header.channel_count == 1;
        if is_difi && !is_plain {
            let what = format!(
                "the stream is {} in {} channels, but DIFI carries ci8 and ci16 in one: put a stage convert or select before it, or run grebe convert on a recording first, or omit profile=difi",
                header.format, header.channel_count
            );
            return Err(grebe_process::Error::Takes { what }.into());
        }
        let time = batch.description().and_then(|it| it.time_of(header, header.first_sample_index));
        // Without a rate, only the time of the first sample is known.
        let kind = if header.sample_rate_hz > 0.0 || self.name.time == Time::None {
            self.name.time
        } else {
            Time::Samples
        };
        let time = time.unwrap_or_else(SystemTime::now);
        self.clock = SampleClock::new(kind, time, header.first_sample_index, header.sample_rate_hz);
        let shape = Shape::new(header.format, header.channel_count as usize);
        let count = self.packets.as_ref().map_or(0, Packets::count);
        let prologue = Prologue {
            kind: Kind::Signal,
            stream_id: Some(self.stream_id()),
            class: is_difi.then_some(Class::DIFI_DATA),
            stamp: self.clock.stamp_at(header.first_sample_index),
            count,
            has_trailer: false,
        };
        let timely = (header.sample_rate_hz * PACKET_S_MAX) as usize;
        let samples_max = if self.is_asked || timely == 0 { usize::MAX } else { timely };
        self.packets = Some(Packets::new(shape, prologue, self.datagram_bytes, samples_max));
        (self.rate_hz, self.next_index) = (header.sample_rate_hz, header.first_sample_index);
        let context = self.context_of(batch.description());
        self.announced.description = batch.description().cloned();
        self.send_context(context, header.first_sample_index, true)
    }

    fn stream_id(&self) -> u32 {
        self.name.stream_id.unwrap_or(1)
    }

    /// Sends a context packet after a change or an interval.
    fn announce(&mut self, batch: &Batch, index: u64) -> StageResult<()> {
        let is_other = !is_same(self.announced.description.as_ref(), batch.description());
        let is_due = self.announced.at.elapsed() >= CONTEXT_EVERY;
        if !is_other && !is_due {
            return Ok(());
        }
        let context = self.context_of(batch.description());
        self.announced.description = batch.description().cloned();
        if context != self.announced.context {
            // Samples of two descriptions share no packet: each packet has one context.
            self.send_all()?;
            return self.send_context(context, index, true);
        }
        if is_due {
            self.send_whole()?;
            self.send_context(context, index, false)?;
        }
        Ok(())
    }

    /// The context packet of a description.
    fn context_of(&self, description: Option<&Arc<Description>>) -> SignalContext {
        let said = description.map(|it| &**it);
        SignalContext {
            bandwidth_hz: said.and_then(|it| it.bandwidth_hz),
            rf_reference_hz: said.and_then(|it| it.centre_frequency_hz),
            reference_level_dbm: said.and_then(|it| it.rest.get(REFERENCE_LEVEL)?.as_f64()),
            gain_db: said.and_then(|it| it.gain_db),
            sample_rate_hz: Some(self.rate_hz).filter(|&rate_hz| rate_hz > 0.0),
            payload_format: self.packets.as_ref().map(|packets| PayloadFormat::of(packets.shape())),
            ..SignalContext::default()
        }
    }

    fn send_context(&mut self, context: SignalContext, index: u64, is_new: bool) -> StageResult<()> {
        let (fields, class) = match self.name.profile {
            Profile::Vita49 => (Fields::Known, None),
            Profile::Difi => (Fields::Difi, Some(Class::DIFI_CONTEXT)),
        };
        let payload = context.write(is_new, fields);
        let prologue = Prologue {
            kind: Kind::Context,
            stream_id: Some(self.stream_id()),
            class,
            stamp: self.clock.time_of(index),
            count: self.announced.count,
            has_trailer: false,
        };
        let mut head = [0; Prologue::BYTES_MAX];
        let head_bytes = prologue.write(payload.len(), &mut head);
        self.announced.context = context;
        self.announced.at = Instant::now();
        self.announced.count = self.announced.count.wrapping_add(1) & 15;
        let mut sending = self.sender.batch();
        sending.push(&head[..head_bytes], &payload)?;
        Ok(sending.flush()?)
    }

    /// Sends the full packets.
    fn send_whole(&mut self) -> StageResult<()> {
        let Some(packets) = &mut self.packets else { return Ok(()) };
        let (run, packet_bytes) = packets.whole();
        if !run.is_empty() {
            let mut sending = self.sender.batch();
            sending.push_run(run, packet_bytes)?;
            sending.flush()?;
        }
        packets.sent();
        Ok(())
    }

    /// Sends the full packets and the partial one.
    fn send_all(&mut self) -> StageResult<()> {
        self.send_whole()?;
        if let Some(short) = self.packets.as_mut().and_then(Packets::take_short) {
            let mut sending = self.sender.batch();
            sending.push(&short, &[])?;
            sending.flush()?;
        }
        Ok(())
    }

    /// Ends the stream.
    fn send_end(&mut self) -> StageResult<()> {
        self.send_all()?;
        let mut sending = self.sender.batch();
        sending.push(&[], &[])?;
        Ok(sending.flush()?)
    }

    fn publish(&mut self, ctx: &Context) {
        let sent = self.sender.counters();
        self.counters.datagrams.set(sent.datagrams);
        self.counters.system_calls.set(sent.syscalls);
        self.counters.refused.set(sent.refused);
        self.counters.unsent.set(sent.unsent);
        self.counters.gap_samples.set(self.gap_samples);
        self.outage.update(&self.sender, |words| ctx.note(words));
    }
}

impl Stage for Vita49Sink {
    fn process(&mut self, input: &mut Inputs, _: &mut Outputs, ctx: &mut Context) -> StageResult {
        let Some(batch) = input.next() else { return Ok(Outcome::WantsInput) };
        let sent = self.take(&batch);
        self.publish(ctx);
        sent.map(|()| Outcome::Produced)
    }

    fn finish(&mut self, _: &mut Outputs, ctx: &mut Context) -> StageResult<()> {
        let sent = self.send_end();
        self.publish(ctx);
        sent
    }

    fn counters(&self) -> Option<Counters> {
        Some(self.counters.all())
    }
}

/// Repeats soon, because a context packet may be lost.
const CONTEXT_EVERY: Duration = Duration::from_millis(100);
const PACKET_S_MAX: f64 = 0.010;
grebe_flow::counters! {
    struct Counted { datagrams, system_calls, refused, unsent, gap_samples }
}
