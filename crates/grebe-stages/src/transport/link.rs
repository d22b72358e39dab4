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
    again: Option<Reconnect<R>>,
    silence: Silence,
    lost: Instant,
}

/// Waits for up to 100 ms until there is something to read. Returns whether there is.
pub(crate) type Wait<R> = fn(&R) -> io::Result<bool>;

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// This many bytes.
    Bytes(usize),
    /// No bytes so far.
    Nothing,
    /// The other end is lost.
    Lost,
    /// Reconnected after this time.
    Again(Duration),
    /// The writer has closed it.
    End,
}

impl<R: Read + Send + 'static> Link<R> {
    pub(crate) fn new(from: R, wait: Wait<R>) -> Self {
        Self { from: Some(from), wait, again: None, silence: Silence::begin(), lost: Instant::now() }
    }

    /// Reconnects after a loss.
    pub(crate) fn reconnects(mut self, again: Option<Reconnect<R>>) -> Self {
        self.again = again;
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
    pub(crate) fn read(&mut self, bytes: &mut [u8], ctx: &Context) -> StageResult<Heard> {
        let Some(from) = &mut self.from else { return self.look(ctx) };
        let read = match ctx.waiting(|| (self.wait)(from)) {
            Ok(true) => from.read(bytes),
            Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error),
        };
        match read {
            Ok(0) if self.again.is_none() => Ok(Heard::End),
            Ok(0) => Ok(self.lose(None, ctx)),
            Ok(read) => {
                self.silence.hear();
                Ok(Heard::Bytes(read))
            }
            Err(error) => self.failed(error, ctx),
        }
    }

    /// Handles a system error.
    ///
    /// # Errors
    /// The error ends the stream.
    pub(crate) fn failed(&mut self, error: io::Error, ctx: &Context) -> StageResult<Heard> {
        use io::ErrorKind::{Interrupted, InvalidData, TimedOut, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut | Interrupted => self.nothing(),
            // A wrong peer would be wrong again.
            kind if self.again.is_some() && kind != InvalidData => Ok(self.lose(Some(&error), ctx)),
            _ => Err(error.into()),
        }
    }

    fn lose(&mut self, why: Option<&io::Error>, ctx: &Context) -> Heard {
        (self.from, self.lost) = (None, Instant::now());
        if let Some(again) = &mut self.again {
            // The notice already says that it is missing.
            let why = why.filter(|why| why.kind() != io::ErrorKind::NotConnected).map(io::Error::to_string);
            again.lost(why.as_deref(), |words| ctx.note(words));
        }
        Heard::Lost
    }

    /// Tries to reconnect.
    fn look(&mut self, ctx: &Context) -> StageResult<Heard> {
        let Some(again) = &mut self.again else { return Ok(Heard::End) };
        match ctx.waiting(|| again.poll(AGAIN_WITHIN, |words| ctx.note(words)))? {
            Some(from) => {
                self.from = Some(from);
                self.silence.hear();
                Ok(Heard::Again(self.lost.elapsed()))
            }
            None => self.nothing(),
        }
    }

    fn nothing(&mut self) -> StageResult<Heard> {
        self.silence.check()?;
        Ok(Heard::Nothing)
    }
}

/// Maximum wait of a step for the other end.
const AGAIN_WITHIN: Duration = Duration::from_millis(100);
