//! A byte stream to write, which reconnects after a loss.

use std::io::{self, Write};
use std::time::Duration;

use grebe_flow::Context;

use super::reconnect::Reconnect;
use crate::error::Error;

/// A byte stream to write, until its reader has gone.
pub(crate) struct Outgoing<W> {
    /// `None` while lost.
    to: Option<W>,
    reconnect: Option<Reconnect<W>>,
}

/// Result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Whole,
    /// The reader is missing, and the stream reconnects.
    Absent,
    /// The reader has gone for good.
    Gone,
}

impl<W: Write + Send + 'static> Outgoing<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to: Some(to), reconnect: None }
    }

    /// Reconnects after a loss.
    pub(crate) fn reconnects(mut self, reconnect: Option<Reconnect<W>>) -> Self {
        self.reconnect = reconnect;
        self
    }

    /// Whether it has just reconnected. To be called before a write.
    ///
    /// # Errors
    /// The address has another peer than before.
    pub(crate) fn comes_back(&mut self, ctx: &Context) -> Result<bool, Error> {
        if self.to.is_none()
            && let Some(reconnect) = &mut self.reconnect
        {
            self.to = reconnect.poll(Duration::ZERO, |words| ctx.note(words))?;
            return Ok(self.to.is_some());
        }
        Ok(false)
    }

    pub(crate) fn write(&mut self, bytes: &[u8], ctx: &Context) -> io::Result<Written> {
        let Some(to) = &mut self.to else { return Ok(Written::Absent) };
        match to.write_all(bytes) {
            Ok(()) => Ok(Written::Whole),
            Err(error) if !is_gone(&error) && !is_unplugged(&error) => Err(error),
            Err(error) => match &mut self.reconnect {
                Some(reconnect) => {
                    reconnect.lost(None, |words| ctx.note(words));
                    self.to = None;
                    Ok(Written::Absent)
                }
                None if is_gone(&error) => Ok(Written::Gone),
                None => Err(error),
            },
        }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self.to.as_mut().map_or(Ok(()), Write::flush) {
            Err(error) if !is_gone(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset | ConnectionAborted)
}

fn is_unplugged(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotConnected
}
