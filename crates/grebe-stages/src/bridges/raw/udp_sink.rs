//! Samples in UDP datagrams, after an optional header of a few bytes.

use grebe_datagram::Sender;
use grebe_flow::{Context, Counters, Inputs, Outcome, Outputs, Stage, StageResult};
use grebe_frame::Batch;
use grebe_link::outage::Outage;

use crate::bridges::raw::RawStream;
use crate::bridges::raw::byte_stream::interleaved;
use crate::session::Gaps;

/// Sends samples in datagrams of one size, except the last before a gap or the end. An empty datagram ends the stream.
#[derive(Debug)]
pub(crate) struct RawUdpSink {
    sender: Sender,
    raw: RawStream,
    /// Bytes of samples in a datagram; 0 before the first frame.
    datagram_bytes: usize,
    /// `None`: the size that suits the path, but at most 10 ms of the signal.
    asked_bytes: Option<usize>,
    path_bytes: usize,
    number: u64,
    /// Samples not yet sent.
    pending: Vec<u8>,
    /// The headers of the datagrams; scratch space for one frame's samples.
    heads: Vec<u8>,
    scratch: Vec<u8>,
    gaps: Gaps,
    gap_samples: u64,
    outage: Outage,
    counters: Counted,
}

impl RawUdpSink {
    /// `asked_bytes`: requested size of datagrams; `path_bytes`: the size that suits the path.
    pub(crate) fn new(sender: Sender, raw: RawStream, asked_bytes: Option<usize>, path_bytes: usize) -> Self {
        Self {
            sender,
            raw,
            datagram_bytes: 0,
            asked_bytes,
            path_bytes,
            number: 0,
            pending: Vec::new(),
            heads: Vec::new(),
            scratch: Vec::new(),
            gaps: Gaps::default(),
            gap_samples: 0,
            outage: Outage::default(),
            counters: Counted::default(),
        }
    }

    fn take(&mut self, batch: &Batch) -> StageResult<()> {
        for frame in batch.frames() {
            let header = frame.header();
            if self.datagram_bytes == 0 {
                self.datagram_bytes = self.datagram_samples(header.sample_rate_hz) * self.raw.frame_bytes();
            }
            let gap = self.gaps.before(&header);
            if gap > 0 {
                self.send(true)?;
                self.gap_samples += gap;
                // A receiver that knows the datagram size finds the gap by their numbers.
                self.number += gap.div_ceil((self.datagram_bytes / self.raw.frame_bytes()) as u64);
            }
            let samples = interleaved(&self.raw, &frame, &mut self.scratch)?;
            self.pending.extend_from_slice(samples);
        }
        self.send(false)
    }

    fn datagram_samples(&self, rate_hz: f64) -> usize {
        let bytes = self.asked_bytes.unwrap_or(self.path_bytes);
        let fits = bytes.saturating_sub(self.raw.skip_bytes) / self.raw.frame_bytes();
        let timely =
            if rate_hz > 0.0 && self.asked_bytes.is_none() { (rate_hz / 100.0) as usize } else { fits };
        fits.min(timely).max(1)
    }

    /// Sends the full datagrams, and the rest if the stream `ends` here.
    fn send(&mut self, ends: bool) -> StageResult<()> {
        let Self { raw, pending, heads, datagram_bytes, sender, number, .. } = self;
        if pending.is_empty() {
            // The first frame determines the size of datagrams.
            return Ok(());
        }
        let whole = if ends { pending.len() } else { pending.len() / *datagram_bytes * *datagram_bytes };
        if whole == 0 {
            return Ok(());
        }
        let skip_bytes = raw.skip_bytes;
        if raw.is_by_block {
            pending[..whole].chunks_mut(*datagram_bytes).for_each(|it| by_block(raw, it, &mut self.scratch));
        }
        let datagrams = pending[..whole].chunks(*datagram_bytes);
        heads.clear();
        heads.resize(datagrams.len() * skip_bytes, 0);
        if let Some(place) = raw.number {
            for head in heads.chunks_mut(skip_bytes) {
                place.write(*number, head);
                *number += 1;
            }
        }
        let mut sending = sender.batch();
        for (at, samples) in datagrams.enumerate() {
            sending.push(&heads[at * skip_bytes..][..skip_bytes], samples)?;
        }
        sending.flush()?;
        drop(sending);
        pending.drain(..whole);
        Ok(())
    }

    /// Sends the end of the stream.
    fn send_end(&mut self) -> StageResult<()> {
        self.send(true)?;
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
        self.counters.unmarked_gap_samples.set(self.gap_samples);
        self.outage.update(&self.sender, |words| ctx.note(words));
    }
}

/// Converts interleaved samples to blocks per channel.
fn by_block(raw: &RawStream, samples: &mut [u8], scratch: &mut Vec<u8>) {
    scratch.clear();
    scratch.extend_from_slice(samples);
    let sample_bytes = raw.encoding.sample_bytes();
    let mut places = samples.chunks_exact_mut(sample_bytes);
    for channel in 0..raw.channels {
        // In this order, because the places continue with the next channel.
        let of_channel = scratch.chunks_exact(sample_bytes).skip(channel).step_by(raw.channels);
        of_channel.zip(places.by_ref()).for_each(|(sample, place)| place.copy_from_slice(sample));
    }
}

impl Stage for RawUdpSink {
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

grebe_flow::counters! {
    struct Counted { datagrams, system_calls, refused, unsent, unmarked_gap_samples }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use grebe_datagram::Options;
    use grebe_frame::{BatchPool, Header};
    use grebe_process::stream::CHUNK_BYTES;

    use super::*;
    use crate::Uri;

    fn raw(text: &str) -> RawStream {
        match text.parse() {
            Ok(Uri::Raw(raw)) => *raw,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// A socket of the system receives exactly the samples sent.
    fn sent(query: &str, datagram_bytes: usize, frames: &[(u64, &[[i16; 2]])]) -> Vec<Vec<u8>> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let raw = raw(&format!("udp://127.0.0.1:1?{query}&channels=2"));
        let to = socket.local_addr().unwrap();
        let sender = Sender::connect(to, &Options::default()).unwrap();
        let mut sink = RawUdpSink::new(sender, raw, Some(datagram_bytes), 0);
        let mut batch = BatchPool::new(1, CHUNK_BYTES).acquire().unwrap();
        let mut expected = 0;
        for (index, samples) in frames {
            let header = Header {
                channel_count: 2,
                block_length_samples: samples.len() as u32,
                first_sample_index: *index,
                ..Header::default()
            };
            let column = |channel: usize, out: &mut [i16]| {
                out.iter_mut().zip(*samples).for_each(|(out, sample)| *out = sample[channel]);
            };
            batch.push::<i16>(&header, column).unwrap();
            expected += samples.len().div_ceil(sink.datagram_samples(0.0));
        }
        sink.take(&batch.freeze()).unwrap();
        sink.send(true).unwrap();
        let mut bytes = [0; 2_000];
        (0..expected)
            .map(|_| {
                let length = socket.recv(&mut bytes).unwrap();
                bytes[..length].to_vec()
            })
            .collect()
    }

    #[test]
    fn samples_leave_as_the_name_says() {
        let frames: &[(u64, &[[i16; 2]])] = &[(0, &[[1, -1], [2, -2], [3, -3]]), (7, &[[4, -4]])];
        let i16s = |samples: &[i16]| samples.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
        let plain = sent("format=i16", 9, frames);
        assert_eq!(plain, [i16s(&[1, -1, 2, -2]), i16s(&[3, -3]), i16s(&[4, -4])]);
        let blocks = sent("format=i16&interleave=block", 9, frames);
        assert_eq!(blocks, [i16s(&[1, 2, -1, -2]), i16s(&[3, -3]), i16s(&[4, -4])]);
        let numbered = sent("format=i16be&skip=3&seq=1:u16be", 11, frames);
        let big = |number: u8, samples: &[i16]| {
            let samples = samples.iter().flat_map(|it| it.to_be_bytes());
            [0, 0, number].into_iter().chain(samples).collect::<Vec<u8>>()
        };
        // Four samples are missing, the content of two datagrams.
        assert_eq!(numbered, [big(0, &[1, -1, 2, -2]), big(1, &[3, -3]), big(4, &[4, -4])]);
    }

    #[test]
    fn an_empty_batch_before_the_first_sample_is_nothing() {
        let raw = raw("udp://127.0.0.1:1?format=i16");
        let sender = Sender::connect(([127, 0, 0, 1], 1).into(), &Options::default()).unwrap();
        let mut sink = RawUdpSink::new(sender, raw, None, 1_400);
        sink.take(&BatchPool::new(1, CHUNK_BYTES).acquire().unwrap().freeze()).unwrap();
        assert_eq!(sink.sender.counters().datagrams, 0);
    }
}
