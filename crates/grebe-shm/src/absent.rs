//! Where there are no memfds: the same interface, and a clear error.

use std::path::Path;
use std::time::Duration;

use grebe_frame::{Batch, BatchPool, Header};

use crate::error::Error;
use crate::options::{PublisherOptions, SubscriberOptions};
use crate::status::{Footprint, Status, Totals};

/// The producer's end of a stream. Not on this platform: there is no value of this type.
#[derive(Debug)]
pub enum Publisher {}

impl Publisher {
    /// Not on this platform.
    ///
    /// # Errors
    /// [`Error::Platform`], always.
    pub fn create(_: &str, _: PublisherOptions) -> Result<(Self, BatchPool), Error> {
        Err(Error::Platform)
    }

    /// Lends a batch to every consumer.
    ///
    /// # Errors
    /// None here.
    pub fn send(&mut self, _: &Batch, _: impl FnMut() -> bool) -> Result<bool, Error> {
        match *self {}
    }

    /// Takes back what consumers returned.
    pub fn reap(&self) {
        match *self {}
    }

    /// Whether a batch lies in the stream's own pool.
    pub fn is_own(&self, _: &Batch) -> bool {
        match *self {}
    }

    /// Ends the stream.
    pub fn end(&mut self, _: Option<&Header>) {
        match *self {}
    }

    /// Waits for consumers.
    pub fn wait_for_consumers(&self, _: usize, _: Duration) -> bool {
        match *self {}
    }

    /// How the stream is doing.
    pub fn status(&self) -> Status {
        match *self {}
    }

    /// The same in short.
    pub fn totals(&self) -> Totals {
        match *self {}
    }

    /// What it costs.
    pub fn footprint(&self) -> Footprint {
        match *self {}
    }
}

/// The consumer's end of a stream. Not on this platform: there is no value of this type.
#[derive(Debug)]
pub enum Subscriber {}

impl Subscriber {
    /// Not on this platform.
    ///
    /// # Errors
    /// [`Error::Platform`], always.
    pub fn connect(_: &str, _: &SubscriberOptions) -> Result<Self, Error> {
        Err(Error::Platform)
    }

    /// The next batch.
    ///
    /// # Errors
    /// None here.
    pub fn pop(&mut self) -> Result<Option<Batch>, Error> {
        match *self {}
    }

    /// Waits for a batch.
    ///
    /// # Errors
    /// None here.
    pub fn wait(&mut self, _: Duration) -> Result<bool, Error> {
        match *self {}
    }

    /// Whether everything was taken.
    pub fn is_ended(&self) -> bool {
        match *self {}
    }

    /// The header that ended the stream.
    pub fn end_header(&self) -> Option<Header> {
        match *self {}
    }

    /// Frames that the producer dropped for this consumer.
    pub fn dropped_frames(&self) -> u64 {
        match *self {}
    }

    /// Frames that were no frames.
    pub fn refused_frames(&self) -> u64 {
        match *self {}
    }
}

/// The streams of this user.
///
/// # Errors
/// [`Error::Platform`], always.
pub fn streams(_: Option<&Path>) -> Result<Vec<String>, Error> {
    Err(Error::Platform)
}
