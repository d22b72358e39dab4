//! Systems without memfds: the same interface as on Linux, with uninhabited types and a clear error.
#![allow(missing_docs, reason = "as on Linux")]

use std::path::Path;
use std::time::Duration;

use grebe_frame::{Batch, BatchPool, Header};

use crate::error::Error;
use crate::options::{PublisherOptions, SubscriberOptions};
use crate::status::{ConsumerStatus, Footprint, Totals};
#[derive(Debug)]
pub enum Publisher {}

impl Publisher {
    pub fn create(_: &str, _: PublisherOptions) -> Result<(Self, BatchPool), Error> {
        Err(Error::Platform)
    }
    pub fn send(&mut self, _: &Batch, _: impl FnMut() -> bool) -> Result<bool, Error> {
        match *self {}
    }
    pub fn reap(&self) {
        match *self {}
    }
    pub fn is_own(&self, _: &Batch) -> bool {
        match *self {}
    }
    pub fn end(&mut self, _: Option<&Header>) {
        match *self {}
    }
    pub fn wait_for_consumers(&self, _: usize, _: Duration) -> bool {
        match *self {}
    }
    pub fn consumers(&self) -> Vec<ConsumerStatus> {
        match *self {}
    }
    pub fn totals(&self) -> Totals {
        match *self {}
    }
    pub fn take_shortened(&mut self) -> bool {
        match *self {}
    }
    pub fn footprint(&self) -> Footprint {
        match *self {}
    }
}
#[derive(Debug)]
pub enum Subscriber {}

impl Subscriber {
    pub fn connect(_: &str, _: &SubscriberOptions) -> Result<Self, Error> {
        Err(Error::Platform)
    }
    pub fn pop(&mut self) -> Result<Option<Batch>, Error> {
        match *self {}
    }
    pub fn is_copied(&self) -> bool {
        match *self {}
    }
    pub fn wait(&mut self, _: Duration) -> Result<bool, Error> {
        match *self {}
    }
    pub fn quota_chunks(&self) -> u32 {
        match *self {}
    }
    pub fn is_ended(&self) -> bool {
        match *self {}
    }
    pub fn end_header(&self) -> Option<Header> {
        match *self {}
    }
    pub fn dropped_frames(&self) -> u64 {
        match *self {}
    }
    pub fn refused_frames(&self) -> u64 {
        match *self {}
    }
}
pub fn streams(_: Option<&Path>) -> Result<Vec<String>, Error> {
    Err(Error::Platform)
}
