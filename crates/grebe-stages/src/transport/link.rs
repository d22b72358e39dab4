//! A byte stream to read, which reconnects after a loss.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use grebe_flow::{Context, StageResult};

use super::reconnect::Reconnect;
use crate::session::Silence;

/// A byte stream to read. It ends when its writer closes it, or continues after a reconnect.
pub(crate) struct Link<R> {
    /// `None` while lost. A device returns under another name if the old handle stays open.
    from: Option<R>,
    wait: Wait<R>,
    reconnect: Option<Reconnect<R>>,
    silence: Silence,
    lost: Instant,
}

/// Waits for up to 100 ms until there is something to read. Returns whether there is.
pub(crate) type Wait<R> = fn(&R) -> io::Result<bool>;

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadResult {
    /// This many bytes.
    Bytes(usize),
    /// No bytes so far.
    Nothing,
    /// The other end is lost.
    Lost,
    /// Reconnected after this time.
    Reconnected(Duration),
    /// The writer has closed it.
    End,
}

impl<R: Read + Send + 'static> Link<R> {
    pub(crate) fn new(from: R, wait: Wait<R>) -> Self {
        Self { from: Some(from), wait, reconnect: None, silence: Silence::begin(), lost: Instant::now() }
    }

    /// Reconnects after a loss.
    pub(crate) fn reconnects(mut self, reconnect: Option<Reconnect<R>>) -> Self {
        self.reconnect = reconnect;
        self
    }

    pub(crate) fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }

    /// The open stream.
    pub(crate) fn get_mut(&mut self) -> Option<&mut R> {
        self.from.as_mut()
    }

    /// Waits for up to 100 ms, and reads.
    ///
    /// # Errors
    /// The system's, if it does not reconnect; [`Error::Idle`].
    pub(crate) fn read(&mut self, bytes: &mut [u8], ctx: &Context) -> StageResult<ReadResult> {
        let Some(from) = &mut self.from else { return self.try_reconnect(ctx) };
        let read = match ctx.waiting(|| (self.wait)(from)) {
            Ok(true) => from.read(bytes),
            Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        };
        match read {
            Ok(0) if self.reconnect.is_none() => Ok(ReadResult::End),
            Ok(0) => Ok(self.lose(None, ctx)),
            Ok(read) => {
                self.silence.hear();
                Ok(ReadResult::Bytes(read))
            }
            Err(error) => self.failed(error, ctx),
        }
    }

    /// Handles a system error.
    ///
    /// # Errors
    /// The error ends the stream.
    pub(crate) fn failed(&mut self, error: io::Error, ctx: &Context) -> StageResult<ReadResult> {
        use io::ErrorKind::{Interrupted, InvalidData, TimedOut, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut | Interrupted => self.nothing(),
            // A wrong peer would be wrong again.
            kind if self.reconnect.is_some() && kind != InvalidData => Ok(self.lose(Some(&error), ctx)),
            _ => Err(error.into()),
        }
    }

    fn lose(&mut self, why: Option<&io::Error>, ctx: &Context) -> ReadResult {
        (self.from, self.lost) = (None, Instant::now());
        if let Some(reconnect) = &mut self.reconnect {
            // The notice already says that it is missing.
            let why = why.filter(|why| why.kind() != io::ErrorKind::NotConnected).map(io::Error::to_string);
            reconnect.lost(why.as_deref(), |words| ctx.note(words));
        }
        ReadResult::Lost
    }

    /// Tries to reconnect.
    fn try_reconnect(&mut self, ctx: &Context) -> StageResult<ReadResult> {
        let Some(reconnect) = &mut self.reconnect else { return Ok(ReadResult::End) };
        match ctx.waiting(|| reconnect.poll(RECONNECT_WAIT, |words| ctx.note(words)))? {
            Some(from) => {
                self.from = Some(from);
                self.silence.hear();
                Ok(ReadResult::Reconnected(self.lost.elapsed()))
            }
            None => self.nothing(),
        }
    }

    fn nothing(&mut self) -> StageResult<ReadResult> {
        self.silence.check()?;
        Ok(ReadResult::Nothing)
    }
}

/// Maximum wait of a step for the other end.
const RECONNECT_WAIT: Duration = Duration::from_millis(100);
