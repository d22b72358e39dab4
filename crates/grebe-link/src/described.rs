//! Stream descriptions by UDP sender.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use grebe_frame::{Description, DescriptionReader, Header, Refusal, StreamTracker};

/// Description of the received stream, and of streams that may replace it. A sender describes its stream
/// before the first frame.
#[derive(Debug, Default)]
pub struct Described {
    now: SenderDescriptions,
    /// By the last describing senders, newest last.
    next: Vec<SenderDescriptions>,
}

/// Descriptions by one sender.
#[derive(Debug, Default)]
struct SenderDescriptions {
    from: Option<SocketAddr>,
    reader: DescriptionReader,
    description: Option<Arc<Description>>,
    /// Descriptions of samples that have not arrived yet.
    upcoming: VecDeque<Arc<Description>>,
    /// Sequence number of the frame of samples after the last description.
    sequence: u64,
}

impl Described {
    /// Description at the last reached frame, as far as known.
    #[inline]
    pub fn now(&self) -> Option<&Arc<Description>> {
        self.now.description.as_ref()
    }

    /// Takes a description frame. `stream` is the tracker of the received stream, if this sender's stream
    /// continues. The description then belongs to that stream, unless its clock shows that it announces
    /// another one.
    ///
    /// # Errors
    /// The reason why the frame is invalid.
    pub fn take(
        &mut self,
        from: SocketAddr,
        frame: &[u8],
        stream: Option<&StreamTracker>,
    ) -> Result<(), Refusal> {
        let stamp = DescriptionReader::stamp(frame)?;
        let is_of_now = stream.is_some_and(|tracker| !tracker.begins_again(&stamp));
        let sender = if is_of_now { &mut self.now } else { self.next_of(from) };
        let Some(description) = sender.reader.take(frame)? else { return Ok(()) };
        // A reordered, older description is obsolete.
        if stamp.sequence >= sender.sequence || !is_of_now {
            if sender.upcoming.len() == UPCOMING_MAX {
                sender.description = sender.upcoming.pop_front();
            }
            sender.upcoming.push_back(Arc::new(description));
            sender.sequence = stamp.sequence;
        }
        Ok(())
    }

    /// Whether a new description holds from this frame on.
    #[inline]
    pub fn is_due(&self, header: &Header) -> bool {
        self.now.upcoming.iter().any(|next| next.first_sample_index < header.next_sample_index().max(1))
    }

    /// Advances to the description of this frame.
    pub fn reach(&mut self, header: &Header) {
        let is_reached =
            |next: &Arc<Description>| next.first_sample_index < header.next_sample_index().max(1);
        if let Some(newest) = self.now.upcoming.iter().rposition(is_reached) {
            self.now.description = self.now.upcoming.drain(..=newest).next_back();
        }
    }

    /// Begins a stream of this sender: its announced description holds, and that of the previous stream ends.
    pub fn begin(&mut self, from: Option<SocketAddr>) {
        let found = self.next.iter().position(|sender| sender.from == from);
        self.now = found.map(|at| self.next.remove(at)).unwrap_or_default();
    }

    /// Descriptions by this sender for a stream that has not begun.
    fn next_of(&mut self, from: SocketAddr) -> &mut SenderDescriptions {
        let found = self.next.iter().position(|sender| sender.from == Some(from));
        let at = found.unwrap_or_else(|| {
            if self.next.len() == SENDERS_MAX {
                self.next.remove(0);
            }
            self.next.push(SenderDescriptions { from: Some(from), ..SenderDescriptions::default() });
            self.next.len() - 1
        });
        &mut self.next[at]
    }
}

/// Maximum senders whose streams may be about to begin.
const SENDERS_MAX: usize = 8;
/// Maximum descriptions ahead of their samples, more than a sender needs.
const UPCOMING_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use grebe_frame::Header;

    use super::*;

    const ONE: &str = "127.0.0.1:1";
    const TWO: &str = "127.0.0.1:2";

    fn frame(sequence: u64, producer_ts_ns: u64, name: &str) -> Vec<u8> {
        let next = Header { sequence, producer_ts_ns, channel_count: 1, ..Header::default() };
        let description = Description { name: Some(name.to_owned()), ..Description::default() };
        description.frames(&next, 1400).unwrap().remove(0)
    }

    /// Delivers the first frame of samples of a stream.
    fn begin(described: &mut Described, from: &str) {
        described.begin(Some(from.parse().unwrap()));
        described.reach(&Header { block_length_samples: 1, ..Header::default() });
    }

    fn name(described: &Described) -> Option<&str> {
        described.now()?.name.as_deref()
    }

    fn tracker(sequence: u64, producer_ts_ns: u64) -> StreamTracker {
        let mut tracker = StreamTracker::new();
        tracker.arrive(&Header {
            sequence,
            producer_ts_ns,
            channel_count: 1,
            block_length_samples: 1,
            ..Header::default()
        });
        tracker
    }

    #[test]
    fn a_stream_is_what_its_sender_said_before_and_while_it_went_on() {
        let (one, two) = (ONE.parse().unwrap(), TWO.parse().unwrap());
        let mut described = Described::default();
        described.take(one, &frame(0, 5, "first"), None).unwrap();
        assert_eq!(name(&described), None, "no frame of it came");
        begin(&mut described, ONE);
        assert_eq!(name(&described), Some("first"));
        let stream = tracker(100, 1_000);
        described.take(one, &frame(101, 1_010, "changed"), Some(&stream)).unwrap();
        described.reach(&Header { block_length_samples: 1, ..Header::default() });
        assert_eq!(name(&described), Some("changed"));
        described.take(two, &frame(0, 2_000, "another"), None).unwrap();
        assert_eq!(name(&described), Some("changed"), "another sender does not say what this stream is");
        begin(&mut described, TWO);
        assert_eq!(name(&described), Some("another"));
    }

    #[test]
    fn a_restarted_sender_gets_its_new_description() {
        let one = ONE.parse().unwrap();
        let mut described = Described::default();
        described.take(one, &frame(0, 5, "first"), None).unwrap();
        begin(&mut described, ONE);
        let stream = tracker(100, 1_000);
        // A low sequence number again, but later: the next stream announces itself.
        described.take(one, &frame(0, 2_000, "second"), Some(&stream)).unwrap();
        assert_eq!(name(&described), Some("first"), "until it begins");
        begin(&mut described, ONE);
        assert_eq!(name(&described), Some("second"));
        begin(&mut described, ONE);
        assert_eq!(name(&described), None, "the third says nothing");
    }

    #[test]
    fn an_invalid_description_changes_nothing() {
        let one = ONE.parse().unwrap();
        let mut described = Described::default();
        described.take(one, &frame(0, 5, "first"), None).unwrap();
        begin(&mut described, ONE);
        let mut torn = frame(2, 10, "torn");
        torn[70] ^= 1;
        assert_eq!(described.take(one, &torn, Some(&tracker(1, 6))), Err(Refusal::Description));
        assert_eq!(described.take(one, &torn[..63], None), Err(Refusal::Short));
        assert_eq!(name(&described), Some("first"));
    }
}
