//! A byte stream that is read, and opened again where it was lost.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use grebe_flow::{Context, StageResult};

use super::reconnect::Reconnect;
use crate::session::Silence;

/// A byte stream that is read: it ends when its writer closes it, or goes on once it is opened again.
pub(crate) struct Link<R> {
    /// `None` while it is lost. A device that is still held comes back under another name.
    from: Option<R>,
    wait: Wait<R>,
    again: Option<Reconnect<R>>,
    silence: Silence,
    lost: Instant,
}

/// Waits until there is something to read, for 100 ms at most; whether there is.
pub(crate) type Wait<R> = fn(&R) -> io::Result<bool>;

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// So many bytes.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// Nobody is at the other end any more.
    Lost,
    /// It was opened again, after so long.
    Again(Duration),
    /// Its writer has closed it.
    End,
}

impl<R: Read + Send + 'static> Link<R> {
    pub(crate) fn new(from: R, wait: Wait<R>) -> Self {
        Self { from: Some(from), wait, again: None, silence: Silence::begin(), lost: Instant::now() }
    }

    /// Opens it again once it was lost.
    pub(crate) fn reconnects(mut self, again: Option<Reconnect<R>>) -> Self {
        self.again = again;
        self
    }

    pub(crate) fn silence(&mut self) -> &mut Silence {
        &mut self.silence
    }

    /// What is read from, while it is there.
    pub(crate) fn get_mut(&mut self) -> Option<&mut R> {
        self.from.as_mut()
    }

    /// Waits for something to read, 100 ms at most, and reads it.
    ///
    /// # Errors
    /// The system's, where it is not opened again; [`Error::Idle`].
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

    /// What an error of the system means.
    ///
    /// # Errors
    /// It ends the stream.
    pub(crate) fn failed(&mut self, error: io::Error, ctx: &Context) -> StageResult<Heard> {
        use io::ErrorKind::{Interrupted, InvalidData, TimedOut, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut | Interrupted => self.nothing(),
            // Another than there was would be the same the next time.
            kind if self.again.is_some() && kind != InvalidData => Ok(self.lose(Some(&error), ctx)),
            _ => Err(error.into()),
        }
    }

    fn lose(&mut self, why: Option<&io::Error>, ctx: &Context) -> Heard {
        (self.from, self.lost) = (None, Instant::now());
        if let Some(again) = &mut self.again {
            // That it is not there is what the words say anyhow.
            let why = why.filter(|why| why.kind() != io::ErrorKind::NotConnected).map(io::Error::to_string);
            again.lost(why.as_deref(), |words| ctx.note(words));
        }
        Heard::Lost
    }

    /// Looks whether it is there again.
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

/// How long a step waits for the other end.
const AGAIN_WITHIN: Duration = Duration::from_millis(100);
