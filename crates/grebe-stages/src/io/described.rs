//! What senders say that their streams are, as a socket hears it.

use std::net::SocketAddr;
use std::sync::Arc;

use grebe_frame::{Description, DescriptionReader, Refusal, StreamTracker};

/// The description of the stream that is received, and of those that may take its place: a sender says what its stream is before
/// the first frame of it.
#[derive(Debug, Default)]
pub(crate) struct Described {
    now: Said,
    /// By the last senders that said something; the newest last.
    next: Vec<Said>,
}

/// By one sender.
#[derive(Debug, Default)]
struct Said {
    from: Option<SocketAddr>,
    reader: DescriptionReader,
    description: Option<Arc<Description>>,
}

impl Described {
    /// What the stream is, as far as its sender has said.
    #[inline]
    pub(crate) fn now(&self) -> Option<&Arc<Description>> {
        self.now.description.as_ref()
    }

    /// Takes a frame of a description. `stream` is the tracker of the stream that is being received, where it is this sender's and
    /// goes on: then it is that stream's, unless its clock says that it announces another.
    ///
    /// # Errors
    /// Why it is no such frame.
    pub(crate) fn take(
        &mut self,
        from: SocketAddr,
        frame: &[u8],
        stream: Option<&StreamTracker>,
    ) -> Result<(), Refusal> {
        let stamp = DescriptionReader::stamp(frame)?;
        let is_of_now = stream.is_some_and(|tracker| !tracker.begins_again(&stamp));
        let said = if is_of_now { &mut self.now } else { self.next_of(from) };
        if let Some(description) = said.reader.take(frame)? {
            said.description = Some(Arc::new(description));
        }
        Ok(())
    }

    /// A stream begins, of this sender: what it said before holds, and what was said of the stream before does not.
    pub(crate) fn begin(&mut self, from: Option<SocketAddr>) {
        let found = self.next.iter().position(|said| said.from == from);
        self.now = found.map(|at| self.next.remove(at)).unwrap_or_default();
    }

    /// What this sender says of a stream that it has not begun.
    fn next_of(&mut self, from: SocketAddr) -> &mut Said {
        let found = self.next.iter().position(|said| said.from == Some(from));
        let at = found.unwrap_or_else(|| {
            if self.next.len() == SENDERS_MAX {
                self.next.remove(0);
            }
            self.next.push(Said { from: Some(from), ..Said::default() });
            self.next.len() - 1
        });
        &mut self.next[at]
    }
}

/// Senders whose streams may be about to begin.
const SENDERS_MAX: usize = 8;

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
        described.begin(Some(one));
        assert_eq!(name(&described), Some("first"));
        let stream = tracker(100, 1_000);
        described.take(one, &frame(101, 1_010, "changed"), Some(&stream)).unwrap();
        assert_eq!(name(&described), Some("changed"));
        described.take(two, &frame(0, 2_000, "another"), None).unwrap();
        assert_eq!(name(&described), Some("changed"), "another sender does not say what this stream is");
        described.begin(Some(two));
        assert_eq!(name(&described), Some("another"));
    }

    #[test]
    fn a_sender_that_begins_again_is_no_longer_what_it_was() {
        let one = ONE.parse().unwrap();
        let mut described = Described::default();
        described.take(one, &frame(0, 5, "first"), None).unwrap();
        described.begin(Some(one));
        let stream = tracker(100, 1_000);
        // Again at a low sequence, and younger: the next stream announces itself.
        described.take(one, &frame(0, 2_000, "second"), Some(&stream)).unwrap();
        assert_eq!(name(&described), Some("first"), "until it begins");
        described.begin(Some(one));
        assert_eq!(name(&described), Some("second"));
        described.begin(Some(one));
        assert_eq!(name(&described), None, "the third says nothing");
    }

    #[test]
    fn what_is_no_description_changes_nothing() {
        let one = ONE.parse().unwrap();
        let mut described = Described::default();
        described.take(one, &frame(0, 5, "first"), None).unwrap();
        described.begin(Some(one));
        let mut torn = frame(2, 10, "torn");
        torn[70] ^= 1;
        assert_eq!(described.take(one, &torn, Some(&tracker(1, 6))), Err(Refusal::Description));
        assert_eq!(described.take(one, &torn[..63], None), Err(Refusal::Short));
        assert_eq!(name(&described), Some("first"));
    }
}
