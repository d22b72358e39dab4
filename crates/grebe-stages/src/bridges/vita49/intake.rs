//! Converts packets to frames.

use std::sync::Arc;
use std::time::{Duration, Instant};

use grebe_flow::{Context, Outputs};
use grebe_frame::{BatchMut, Description, Header, Refusal, Refusals, StreamTracker};
use grebe_process::simd;
use grebe_recording::Order;

use super::byte_order;
use super::class::Class;
use super::context::SignalContext;
use super::continuity::{Continuity, Missing, Step};
use super::payload_format::Shape;
use super::prologue::{Kind, Prologue};
use super::stamp::Stamp;
use super::streams::Streams;
use super::template::{Packet, Template};
use super::uri::Vita49Stream;
use crate::error::Error;
use crate::scheme::Scheme as _;
use crate::session::Limit;

/// Converts packets to frames.
#[derive(Debug)]
pub(crate) struct Intake {
    name: Vita49Stream,
    streams: Streams,
    /// Identifier of the selected stream, once there is one. The inner `None`: it has no identifier.
    stream: Option<Option<u32>>,
    class: Option<Class>,
    shape: Option<Shape>,
    /// Byte order of its numbers, once known.
    order: Option<Order>,
    template: Option<Template>,
    continuity: Continuity,
    pub(crate) tracker: StreamTracker,
    pub(crate) next: Header,
    description: Option<Arc<Description>>,
    /// Time of a change of the context.
    changed: Option<Stamp>,
    /// Start of samples without a known format.
    unknown_since: Option<Instant>,
    batch: Option<BatchMut>,
    pub(crate) limit: Limit,
    pub(crate) counts: Counts,
    pub(crate) refusals: Refusals,
}

/// Counts beside missing and refused packets.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) context_packets: u64,
    pub(crate) late: u64,
    pub(crate) late_samples: u64,
    pub(crate) duplicates: u64,
    pub(crate) restarts: u64,
    /// Packets of samples that are of another stream.
    pub(crate) other_streams: u64,
    /// Packets of samples before their format was known.
    pub(crate) unknown: u64,
    /// Packets that report lost or clipped samples.
    pub(crate) sample_loss: u64,
    pub(crate) over_range: u64,
    /// Packets dropped for lack of memory, because the consumer is too slow.
    pub(crate) starved: u64,
}

/// Destination of frames.
pub(crate) struct Onward<'a> {
    pub(crate) chunk: &'a dyn Fn() -> Option<BatchMut>,
    pub(crate) output: &'a mut Outputs,
    pub(crate) ctx: &'a Context,
    /// Arrival time of the present datagram, on the monotonic clock.
    pub(crate) now: Instant,
    pub(crate) now_ns: u64,
}

impl Intake {
    pub(crate) fn new(name: Vita49Stream) -> Self {
        Self {
            streams: Streams::default(),
            stream: name.stream_id.map(Some),
            class: None,
            shape: name.shape(),
            order: name.order,
            template: None,
            continuity: Continuity::new(name.ignores_time),
            tracker: StreamTracker::new(),
            next: Header { sample_rate_hz: name.rate_hz, ..Header::default() },
            description: None,
            changed: Some(Stamp::default()),
            unknown_since: None,
            batch: None,
            limit: Limit::default(),
            counts: Counts::default(),
            refusals: Refusals::default(),
            name,
        }
    }

    /// A new sender: the contexts of the previous one do not hold.
    pub(crate) fn begin(&mut self) {
        self.streams.forget();
        self.stream = self.name.stream_id.map(Some);
        self.shape = self.name.shape();
        self.order = self.name.order;
        self.template = None;
        self.class = None;
        self.unknown_since = None;
        self.changed = Some(Stamp::default());
        self.continuity.forget();
    }

    /// Handles a datagram: one packet, or several back to back.
    ///
    /// # Errors
    /// [`Error::Vita49`] if grebe has no format for the samples, or no context packet gives it.
    #[inline]
    pub(crate) fn take(&mut self, mut datagram: &[u8], onward: &mut Onward<'_>) -> Result<(), Error> {
        while !datagram.is_empty() {
            let taken = match self.template.as_ref().and_then(|template| template.read(datagram)) {
                Some(packet) => self.enter(datagram, packet, onward),
                None => self.enter_other(datagram, onward)?,
            };
            match taken {
                Ok(packet_bytes) => datagram = &datagram[packet_bytes..],
                Err(refusal) => {
                    self.refusals.add(refusal);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Handles a packet whose header differs from the previous one: of another stream, a context, or of another size.
    #[cold]
    fn enter_other(
        &mut self,
        bytes: &[u8],
        onward: &mut Onward<'_>,
    ) -> Result<Result<usize, Refusal>, Error> {
        let (prologue, places) = match Prologue::read(bytes) {
            Ok(read) => read,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let payload = &bytes[places.payload()];
        if prologue.kind == Kind::Context {
            return match SignalContext::read(prologue.class, payload) {
                Ok(context) => {
                    self.counts.context_packets += 1;
                    // Context packets always have an identifier.
                    self.streams.take(prologue.stream_id.unwrap_or(0), &context);
                    self.changed = Some(prologue.stamp);
                    self.follow_context()?;
                    Ok(Ok(places.packet_bytes))
                }
                Err(refusal) => Ok(Err(refusal)),
            };
        }
        if *self.stream.get_or_insert(prologue.stream_id) != prologue.stream_id {
            self.counts.other_streams += 1;
            if self.streams.note_other(prologue.stream_id.unwrap_or(0)) {
                self.changed = Some(prologue.stamp);
            }
            return Ok(Ok(places.packet_bytes));
        }
        if self.class != prologue.class.map(|class| Class { pad_bits: 0, ..class }) {
            self.class = prologue.class.map(|class| Class { pad_bits: 0, ..class });
            self.changed = Some(prologue.stamp);
        }
        self.follow_context()?;
        let Some(shape) = self.shape else {
            self.counts.unknown += 1;
            let since = *self.unknown_since.get_or_insert(onward.now);
            if onward.now - since >= CONTEXT_WITHIN {
                return Err(self.failed(
                    "sends samples, but no context packet with their format: add format= and rate= to its name, as in vrt://:4991?format=ci16&rate=2.4M",
                ));
            }
            return Ok(Ok(places.packet_bytes));
        };
        let pad_bytes = prologue.class.map_or(0, |class| usize::from(class.pad_bits) / 8);
        let sample_bytes = shape.sample_bytes();
        let samples = match payload.len().checked_sub(pad_bytes) {
            Some(bytes) if bytes >= sample_bytes && bytes.is_multiple_of(sample_bytes) => {
                bytes / sample_bytes
            }
            _ => return Ok(Err(Refusal::PayloadBytes)),
        };
        let template = Template::of(bytes, &prologue, places, samples as u32, sample_bytes);
        let packet = template.read(bytes);
        self.template = Some(template);
        Ok(packet.ok_or(Refusal::HeaderBytes).and_then(|packet| self.enter(bytes, packet, onward)))
    }

    /// Applies the context of the selected stream.
    fn follow_context(&mut self) -> Result<(), Error> {
        let Some(stream) = self.stream else { return Ok(()) };
        let Some(context) = self.streams.of(stream) else { return Ok(()) };
        if self.name.rate_hz == 0.0 {
            self.next.sample_rate_hz = context.rate_hz().unwrap_or(0.0);
        }
        if self.name.format.is_some() {
            return Ok(());
        }
        let Some(format) = context.payload_format else { return Ok(()) };
        let shape = format.shape();
        if shape.is_none() {
            return Err(self.failed(&format!(
                "has {format}: grebe has i8, u8, i16, i32, f32, f64, complex ones of 8 and 16 bits and of 32-bit floating point, in 1 to 255 channels"
            )));
        }
        if shape != self.shape {
            (self.shape, self.template, self.order) = (shape, None, self.name.order);
        }
        Ok(())
    }

    fn failed(&self, what: &str) -> Error {
        Error::Vita49 { stream: self.stream_words(), what: what.to_owned() }
    }

    fn stream_words(&self) -> String {
        match self.stream {
            Some(Some(id)) => format!("stream 0x{id:08x} of {}", self.name.uri()),
            _ => format!("the stream of {}", self.name.uri()),
        }
    }

    /// Makes a frame of a packet of the selected stream. Returns the packet's bytes.
    #[inline]
    fn enter(&mut self, bytes: &[u8], packet: Packet, onward: &mut Onward<'_>) -> Result<usize, Refusal> {
        let Packet { count, stamp, samples, packet_bytes, trailer, .. } = packet;
        let Some(shape) = self.shape else { return Err(Refusal::Format) };
        if self.order.is_none() {
            self.see_order(shape, &bytes[packet.payload.clone()], onward.ctx);
        }
        let shape = self.order.map_or(shape, |order| shape.ordered(order));
        self.counts.sample_loss += u64::from(trailer.is_sample_loss);
        self.counts.over_range += u64::from(trailer.is_over_range);
        let missing = match self.continuity.step(count, stamp, samples, self.next.sample_rate_hz) {
            Step::Next(missing) => missing,
            Step::Late { .. } => {
                self.counts.late += 1;
                self.counts.late_samples += u64::from(samples);
                return Ok(packet_bytes);
            }
            Step::Duplicate => {
                self.counts.duplicates += 1;
                return Ok(packet_bytes);
            }
            Step::Restart => {
                self.counts.restarts += 1;
                Missing::default()
            }
        };
        self.counts.packets += 1;
        // Wraps, because a sender may claim any number.
        self.next.sequence = self.next.sequence.wrapping_add(missing.packets);
        self.next.first_sample_index = self.next.first_sample_index.wrapping_add(missing.samples);
        self.next.sg_drops_total = self.next.sg_drops_total.wrapping_add(missing.device_samples);
        let header = Header {
            format: shape.format(),
            channel_count: shape.channels as u32,
            block_length_samples: samples,
            producer_ts_ns: stamp.unix_time_ns().unwrap_or(onward.now_ns),
            ..self.next
        };
        self.next.sequence = self.next.sequence.wrapping_add(1);
        self.next.first_sample_index = self.next.first_sample_index.wrapping_add(u64::from(samples));
        (self.next.format, self.next.channel_count) = (header.format, header.channel_count);
        if let Some(changed) = self.changed.take() {
            self.describe(&changed, &stamp, &header, onward);
        }
        let payload = &bytes[packet.payload];
        if !self.push(&header, payload, shape) {
            self.hand_on(onward.output, onward.ctx);
            self.batch = (onward.chunk)();
            if let Some(batch) = &mut self.batch {
                batch.describe(self.description.as_ref());
            }
            if !self.push(&header, payload, shape) {
                self.counts.starved += 1;
                return Ok(packet_bytes);
            }
        }
        self.tracker.arrive(&header);
        Ok(packet_bytes)
    }

    /// Floats reveal their byte order. Integers follow the standard.
    #[cold]
    fn see_order(&mut self, shape: Shape, payload: &[u8], ctx: &Context) {
        let component = shape.format().component();
        self.order =
            if component.is_float() { byte_order::seen(component, payload) } else { Some(Order::Big) };
        if self.order == Some(Order::Little) {
            let stream = self.stream_words();
            ctx.note(format!(
                "{stream} sends little-endian numbers, against VITA-49, and is read so; order=be in its name overrides this"
            ));
        }
    }

    #[inline]
    fn push(&mut self, header: &Header, payload: &[u8], shape: Shape) -> bool {
        let Some(batch) = &mut self.batch else { return false };
        let pushed = batch.push_bytes(header, |channel, out| match shape.channels {
            1 if shape.encoding.is_as_streamed() => out.copy_from_slice(payload),
            1 => simd::copy_swapped(shape.format().component().bytes(), payload, out),
            channels => shape.encoding.take(payload, channel, channels, out),
        });
        pushed.is_ok()
    }

    /// Changes the description from the sample at the time of the context packet on, if that is still to come.
    #[cold]
    fn describe(&mut self, changed: &Stamp, stamp: &Stamp, header: &Header, onward: &mut Onward<'_>) {
        let ahead = changed.since(stamp, header.sample_rate_hz).map_or(0.0, |elapsed| elapsed.samples);
        let ahead = if header.sample_rate_hz > 0.0 { ahead.clamp(0.0, header.sample_rate_hz) } else { 0.0 };
        let first = header.first_sample_index.wrapping_add(ahead as u64);
        let description = self.streams.describe(self.stream.flatten(), self.class, stamp, first);
        let is_same = self.description.as_ref().is_some_and(|known| {
            // Another reading of the same clock is not a change.
            let clock =
                if known.clock.is_some() { description.clock.and(known.clock) } else { description.clock };
            **known
                == Description {
                    first_sample_index: known.first_sample_index,
                    clock,
                    ..(*description).clone()
                }
        });
        if !is_same {
            self.hand_on(onward.output, onward.ctx);
            self.description = Some(description);
        }
    }

    pub(crate) fn hand_on(&mut self, output: &mut Outputs, ctx: &Context) {
        if let Some(batch) = self.batch.take_if(|batch| !batch.is_empty()) {
            self.limit.send(batch.freeze(), output, ctx);
        }
        // An empty batch may have an earlier description.
        if let Some(batch) = &mut self.batch {
            batch.describe(self.description.as_ref());
        }
    }

    /// Number of other streams of samples on the port.
    pub(crate) fn other_streams(&self) -> usize {
        self.streams.others()
    }
}

/// Timeout for the context packet that gives the format of samples.
const CONTEXT_WITHIN: Duration = Duration::from_secs(5);

/// A stage that reads datagrams from memory, and returns the intake at its end.
#[cfg(any(test, fuzzing))]
#[derive(Debug)]
pub(crate) struct Datagrams {
    intake: Option<Intake>,
    datagrams: std::vec::IntoIter<Vec<u8>>,
    taken: std::sync::mpsc::Sender<Intake>,
}

#[cfg(any(test, fuzzing))]
impl Datagrams {
    pub(crate) fn new(intake: Intake, datagrams: Vec<Vec<u8>>) -> (Self, std::sync::mpsc::Receiver<Intake>) {
        let (taken, receiver) = std::sync::mpsc::channel();
        (Self { intake: Some(intake), datagrams: datagrams.into_iter(), taken }, receiver)
    }
}

#[cfg(any(test, fuzzing))]
impl grebe_flow::Stage for Datagrams {
    fn process(
        &mut self,
        _: &mut grebe_flow::Inputs,
        output: &mut Outputs,
        ctx: &mut Context,
    ) -> grebe_flow::StageResult {
        let Some(intake) = &mut self.intake else { return Ok(grebe_flow::Outcome::End) };
        let chunk = || grebe_frame::BatchPool::new(1, 2 * grebe_process::stream::CHUNK_BYTES).acquire();
        let mut onward = Onward { chunk: &chunk, output, ctx, now: Instant::now(), now_ns: 1 };
        if let Some(datagram) = self.datagrams.next() {
            intake.take(&datagram, &mut onward)?;
            return Ok(grebe_flow::Outcome::Produced);
        }
        intake.hand_on(output, ctx);
        // The fuzz target does not wait for it.
        if let Some(intake) = self.intake.take() {
            let _ = self.taken.send(intake);
        }
        Ok(grebe_flow::Outcome::End)
    }
}

/// Feeds datagrams; the first byte selects the name. Nothing panics, and the output is whole.
#[cfg(fuzzing)]
pub(crate) fn fuzz(choice: u8, datagrams: Vec<Vec<u8>>) {
    let names = [
        "vrt://:1",
        "vrt://:1?format=ci16&rate=1M",
        "vrt://:1?stream=1&gaps=count",
        "vrt://:1?format=u8&channels=3",
    ];
    let Ok(crate::Uri::Vita49(name)) = names[usize::from(choice) % names.len()].parse() else { return };
    let bytes: usize = datagrams.iter().map(Vec::len).sum();
    let (stage, _taken) = Datagrams::new(Intake::new(*name), datagrams);
    let Ok(mut bench) = grebe_flow::StageBench::new(stage) else { return };
    for batch in bench.end().unwrap_or_default() {
        assert!(batch.samples() as usize <= bytes);
    }
}
