//! Stub without Zenoh: the same interface without values, and an error with advice.
#![allow(missing_docs, reason = "as with it")]

use std::net::IpAddr;
use std::time::Duration;

use grebe_frame::{Batch, Header};

use crate::counts::Counts;
use crate::error::Error;
use crate::message::SenderId;
use crate::name::{Pattern, StreamName};
use crate::options::{Overflow, SessionOptions};
use crate::request::{Answer, Request};
use crate::what::{Found, What};

#[derive(Debug, Clone)]
pub struct Lab {
    never: std::convert::Infallible,
}

impl Lab {
    pub fn open(_: &SessionOptions) -> Result<Self, Error> {
        Err(Error::NotBuilt)
    }
    pub fn shared() -> Result<Self, Error> {
        Err(Error::NotBuilt)
    }
    pub fn joined() -> Option<Self> {
        None
    }
    pub fn using(&self, _: &StreamName) -> Using {
        match self.never {}
    }
    pub fn uses(&self) -> Vec<StreamName> {
        match self.never {}
    }
    pub fn counts_sender(&self, _: u32) -> Result<CountsSender, Error> {
        match self.never {}
    }
    pub fn counts(&self) -> Result<CountsWatch, Error> {
        match self.never {}
    }
    pub fn reach(&self) -> &str {
        match self.never {}
    }
    pub fn looked_by(&self) -> String {
        match self.never {}
    }
    pub fn id(&self) -> String {
        match self.never {}
    }
    pub fn data_key(&self, _: &StreamName) -> String {
        match self.never {}
    }
    pub fn addresses(&self) -> Vec<IpAddr> {
        match self.never {}
    }
    pub fn has_udp_on_request(&self) -> bool {
        match self.never {}
    }
    pub fn take_requests(
        &self,
        _: &StreamName,
        _: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Result<Requests, Error> {
        match self.never {}
    }
    pub fn request(
        &self,
        _: &str,
        _: &StreamName,
        _: &Request,
        _: Duration,
    ) -> Result<Option<Answer>, Error> {
        match self.never {}
    }
    pub fn list(&self, _: &Pattern, _: Duration) -> Result<Vec<Found>, Error> {
        match self.never {}
    }
    pub fn what(&self, _: &str, _: &StreamName, _: Duration) -> Result<Option<Found>, Error> {
        match self.never {}
    }
    pub fn watch(&self, _: &Pattern) -> Result<Watch, Error> {
        match self.never {}
    }
    pub fn watch_key(&self, _: &str) -> Result<Watch, Error> {
        match self.never {}
    }
    pub fn show(&self, _: &str) -> Result<Presence, Error> {
        match self.never {}
    }
    pub fn announce(&self, _: &StreamName, _: What) -> Result<Announcement, Error> {
        match self.never {}
    }
    pub fn sender(&self, _: &str, _: bool) -> Result<DataSender, Error> {
        match self.never {}
    }
    pub fn receiver(&self, _: &str, _: Overflow) -> Result<DataReceiver, Error> {
        match self.never {}
    }
}

#[derive(Debug)]
pub enum Announcement {}

impl Announcement {
    pub fn count(&self, _: u64) {
        match *self {}
    }
    pub fn say(&self, _: impl FnOnce(&mut What)) {
        match *self {}
    }
}

#[derive(Debug)]
pub enum Requests {}

#[derive(Debug)]
pub struct Using {
    _never: std::convert::Infallible,
}

#[derive(Debug)]
pub enum CountsSender {}

impl CountsSender {
    pub fn is_watched(&self) -> bool {
        match *self {}
    }
    pub fn send(&self, _: Vec<u8>) -> Result<(), Error> {
        match *self {}
    }
}

#[derive(Debug)]
pub enum CountsWatch {}

impl CountsWatch {
    pub fn look(&self) -> Vec<Counts> {
        match *self {}
    }
}

#[derive(Debug)]
pub enum Presence {}

#[derive(Debug)]
pub enum Watch {}

impl Watch {
    pub fn streams(&self) -> Vec<(String, String)> {
        match *self {}
    }
    pub fn changes(&self) -> u64 {
        match *self {}
    }
    pub fn wait(&self, _: u64, _: Duration) -> bool {
        match *self {}
    }
    pub fn settle(&self, _: Duration) {
        match *self {}
    }
}

#[derive(Debug)]
pub struct DataSender {
    never: std::convert::Infallible,
}

impl DataSender {
    pub fn has_reader(&self) -> bool {
        match self.never {}
    }
    pub fn send(&mut self, _: &Batch) -> Result<u64, Error> {
        match self.never {}
    }
    pub fn send_bytes(&self, _: Vec<u8>) -> Result<(), Error> {
        match self.never {}
    }
    pub fn send_end(&self, _: &Header) -> Result<(), Error> {
        match self.never {}
    }
}

#[derive(Debug)]
pub enum DataReceiver {}

impl DataReceiver {
    pub fn pop(&self) -> Option<Message> {
        match *self {}
    }
    pub fn wait(&self, _: Duration) -> bool {
        match *self {}
    }
}

#[derive(Debug)]
pub struct Message {
    pub sender: SenderId,
    never: std::convert::Infallible,
}

impl Message {
    pub fn len(&self) -> usize {
        match self.never {}
    }
    pub fn is_empty(&self) -> bool {
        match self.never {}
    }
    pub fn copy_to(&self, _: &mut [u8]) {
        match self.never {}
    }
}
