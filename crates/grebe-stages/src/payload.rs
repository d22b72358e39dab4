//! Messages of samples or lines without headers, for any message carrier.
#![cfg_attr(not(feature = "mqtt"), allow(dead_code, reason = "a scheme of a feature alone has messages"))]

use std::io::{self, ErrorKind, Read, Write};

use grebe_process::query::{Pairs, Query};
use grebe_ring::Cancel;

use crate::bridges::raw::{RawSink, RawSource, RawStream, Retune, Retuned};
use crate::bridges::text::{TextSink, TextSource, TextStream};
use crate::error::Error;
use crate::open::{Notify, OpenSink, OpenSource, SinkOptions, SourceOptions};
use crate::session::Bounded as _;
use crate::transport::{Carrier, Patience, Reconnect, TcpEnd, is_text};

/// Content of messages: whole samples of all channels, or lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Payload {
    Samples(RawStream),
    Lines(TextStream),
}

/// A source of messages.
pub(crate) trait Messages: Send + 'static {
    /// Waits for the next one, up to 100 ms.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`]: none so far. All others: the connection is lost.
    fn receive(&mut self) -> io::Result<Vec<u8>>;
}

impl Payload {
    /// Parses the rest of a query; `words` is all of it.
    ///
    /// # Errors
    /// An option is malformed or unknown.
    pub(crate) fn of_query(end: &TcpEnd, words: &str, query: Query<'_>) -> Result<Self, String> {
        let carrier = Carrier::Tcp(end.clone());
        Ok(match is_text("", words) {
            true => Self::Lines(TextStream::of_query(carrier, query)?),
            false => Self::Samples(RawStream::of_query(carrier, query)?),
        })
    }

    pub(crate) fn pairs(&self) -> Pairs {
        match self {
            Self::Samples(raw) => raw.pairs(),
            Self::Lines(text) => text.pairs(),
        }
    }

    /// Opens a source of messages called `what`, some of which may be lost silently. Reconnects if requested.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn open_source<M: Messages>(
        &self,
        what: String,
        options: &SourceOptions,
        patience: &Patience<'_>,
        notify: Notify<'_>,
        open: impl Fn(&Cancel) -> Result<M, Error> + Send + Sync + 'static,
    ) -> Result<OpenSource, Error> {
        let sample_bytes = match self {
            Self::Samples(raw) => Some(raw.frame_bytes()),
            Self::Lines(_) => None,
        };
        let open = move |cancel: &_| Ok(Reader::new(open(cancel)?, sample_bytes));
        let from = patience.open(notify, |_| open(patience.cancel))?;
        let reconnect = patience.waits.then(|| Reconnect::new(what, open));
        Ok(match self {
            Self::Samples(raw) => {
                let missing = Box::new(Missing { rate_hz: raw.rate_hz });
                let source = RawSource::new(from, |_| Ok(true), raw.clone()).retune(missing).loses_unseen();
                let source = source.reconnects(reconnect).bounded(options);
                OpenSource { rate_hz: raw.known_rate_hz(), ..OpenSource::of(source) }
            }
            Self::Lines(text) => {
                let source = TextSource::new(from, |_| Ok(true), text.clone()).loses_unseen();
                let source = source.reconnects(reconnect).bounded(options);
                OpenSource { rate_hz: text.rate_hz(), ..OpenSource::of(source) }
            }
        })
    }

    /// Opens a sink called `what`, with a message per write. Reconnects if requested.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn open_sink<W: Write + Send + 'static>(
        &self,
        what: String,
        options: &SinkOptions,
        waits: bool,
        notify: Notify<'_>,
        open: impl Fn(&Cancel) -> Result<W, Error> + Send + Sync + 'static,
    ) -> Result<OpenSink, Error> {
        let to = options.patience(waits).open(notify, |_| open(&options.cancel))?;
        let reconnect = waits.then(|| Reconnect::new(what, open));
        Ok(match self {
            Self::Samples(raw) => OpenSink::of(RawSink::new(to, raw.clone()).reconnects(reconnect)),
            Self::Lines(text) => OpenSink::of(TextSink::new(to, text.clone()).reconnects(reconnect)),
        })
    }
}

/// Messages as a byte stream: of whole samples, or of lines, which end with their message.
struct Reader<M> {
    from: M,
    /// `None`: lines.
    sample_bytes: Option<usize>,
    message: Vec<u8>,
    taken_bytes: usize,
    missing_samples: u64,
    odd_messages: u64,
}

impl<M: Messages> Reader<M> {
    fn new(from: M, sample_bytes: Option<usize>) -> Self {
        Self { from, sample_bytes, message: Vec::new(), taken_bytes: 0, missing_samples: 0, odd_messages: 0 }
    }
}

impl<M: Messages> Read for Reader<M> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken_bytes == self.message.len() {
            (self.message, self.taken_bytes) = (self.from.receive()?, 0);
            match self.sample_bytes {
                None => self.message.push(b'\n'),
                Some(bytes) if !self.message.len().is_multiple_of(bytes) => {
                    self.missing_samples += self.message.len().div_ceil(bytes) as u64;
                    self.odd_messages += 1;
                    self.message.clear();
                }
                Some(_) => {}
            }
        }
        let read = (&self.message[self.taken_bytes..]).read(out)?;
        self.taken_bytes += read;
        if read > 0 { Ok(read) } else { Err(ErrorKind::WouldBlock.into()) }
    }
}

/// Turns a message of partial samples into a gap, because its content is unknown.
struct Missing {
    rate_hz: f64,
}

impl<M: Messages> Retune<Reader<M>> for Missing {
    fn retune(&mut self, from: &mut Reader<M>) -> io::Result<Option<Retuned>> {
        let gap_samples = std::mem::take(&mut from.missing_samples);
        let odd_messages = std::mem::take(&mut from.odd_messages);
        let rate_hz = self.rate_hz;
        Ok((odd_messages > 0).then_some(Retuned { gap_samples, odd_messages, rate_hz, description: None }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    struct Sent(VecDeque<Vec<u8>>);

    impl Messages for Sent {
        fn receive(&mut self) -> io::Result<Vec<u8>> {
            self.0.pop_front().ok_or_else(|| ErrorKind::ConnectionReset.into())
        }
    }

    /// Reads messages `at_once` bytes at a time. Returns the bytes, the missing samples, and the skipped messages.
    fn read(messages: &[Vec<u8>], sample_bytes: Option<usize>, at_once: usize) -> (Vec<u8>, u64, u64) {
        let mut reader = Reader::new(Sent(messages.to_vec().into()), sample_bytes);
        let (mut all, mut out) = (Vec::new(), vec![0; at_once]);
        let (mut missing_samples, mut odd_messages) = (0, 0);
        loop {
            let read = reader.read(&mut out);
            if let Some(told) = (Missing { rate_hz: 1.0 }).retune(&mut reader).unwrap() {
                missing_samples += told.gap_samples;
                odd_messages += told.odd_messages;
            }
            match read {
                Ok(read) => all.extend_from_slice(&out[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return (all, missing_samples, odd_messages),
            }
        }
    }

    proptest! {
        /// A message of partial samples shifts no later sample, and counts as missing.
        #[test]
        fn whole_samples_of_messages_come_in_order(
            lengths in prop::collection::vec(0usize..40, 0..30), sample_bytes in 1usize..9, at_once in 1usize..50,
        ) {
            let message = |(at, &length): (usize, &usize)| vec![at as u8; length];
            let messages: Vec<_> = lengths.iter().enumerate().map(message).collect();
            let (whole, odd): (Vec<_>, Vec<_>) =
                messages.iter().cloned().partition(|message| message.len() % sample_bytes == 0);
            let missing = odd.iter().map(|message| message.len().div_ceil(sample_bytes) as u64).sum();
            let expected = (whole.concat(), missing, odd.len() as u64);
            prop_assert_eq!(read(&messages, Some(sample_bytes), at_once), expected);
        }
    }

    #[test]
    fn the_end_of_a_message_ends_its_line() {
        let messages = [b"1,2".to_vec(), b"3,4\n5,".to_vec(), Vec::new(), b"6".to_vec()];
        assert_eq!(read(&messages, None, 2), (b"1,2\n3,4\n5,\n\n6\n".to_vec(), 0, 0));
    }
}
