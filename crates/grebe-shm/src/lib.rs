//! Lends batches of samples from one process to others without a copy: on Linux, Windows and macOS. Elsewhere
//! every call returns an error.
//!
//! ```text
//!   producer                                                                            consumers
//!   BatchPool over shared memory  --- payload: mapped; read-only for others --------------->  Subscriber
//!   Publisher  === one lane each: descriptors, returned chunks (memory of both) =============  Subscriber
//!              --- connection: hands over the memory, wakes, hangs up ----------------------
//! ```
//!
//! A stream's name is a file in the user's own directory (`$XDG_RUNTIME_DIR/grebe/NAME.shm`): a Unix socket, on
//! Windows the name of a pipe. A connecting process gets the memory through the connection, so the memory has no
//! name. When a process ends, its connection hangs up. That is the only sign of life; there is no heartbeat. A
//! killed producer leaves at most its socket, which the next producer or [`streams`] removes.
//!
//! The differences between systems are in `platform`: memory, its way to another process, names, waiting, and the
//! user of a peer. A consumer would die if its memory shrank, so it takes only memory whose length is fixed: by
//! seals, as a section, or as a POSIX object of macOS, whose length can be set once. The lanes, the threads, both
//! ends and the messages exist once.
//!
//! A consumer reads batches of the same user's producers in place, and copies those of others: see [`Trust`].
//!
//! Each consumer has a [`Policy`] and a quota of chunks. A stopped consumer under a dropping policy costs
//! only its quota. A blocking consumer needs the producer's consent, and is cut off when it takes nothing for
//! too long. Reference counts belong to the producer, so it knows the chunks of a dead or lying consumer by
//! itself.
//!
//! ```
//! # #[cfg(any(target_os = "linux", target_os = "macos", windows))] {
//! use std::time::Duration;
//!
//! use grebe_frame::Header;
//! use grebe_shm::{Publisher, PublisherOptions, Subscriber, SubscriberOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! # let directory = Some(folder.path().to_owned());
//! // In one process. Where `directory` is `None`, the socket is in the user's own.
//! let options = PublisherOptions { directory: directory.clone(), ..PublisherOptions::default() };
//! let (mut publisher, mut pool) = Publisher::create("adc", options)?;
//!
//! // In another process.
//! let options = SubscriberOptions { directory, ..SubscriberOptions::default() };
//! let mut subscriber = Subscriber::connect("adc", &options)?;
//! # assert!(publisher.wait_for_consumers(1, Duration::from_secs(10)));
//!
//! let mut batch = pool.acquire().expect("nothing is lent yet");
//! let header = Header { channel_count: 1, block_length_samples: 1024, ..Header::default() };
//! batch.push::<i16>(&header, |_, samples| samples.fill(7))?;
//! publisher.send(&batch.freeze(), || false)?;
//! publisher.end(None);
//!
//! let mut samples = 0;
//! while !subscriber.is_ended() {
//!     while let Some(batch) = subscriber.pop()? {
//!         samples += batch.samples();
//!     }
//!     subscriber.wait(Duration::from_millis(100))?;
//! }
//! assert_eq!(samples, 1024);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]
#![cfg_attr(
    not(any(target_os = "linux", target_os = "macos", windows)),
    allow(unreachable_code, unused, reason = "no value of the platform's types exists")
)]

mod cache;
mod error;
mod options;
mod status;

#[cfg(not(loom))]
mod acceptor;
#[cfg(not(loom))]
mod busy_poll;
#[cfg(not(loom))]
mod consumer;
#[cfg(not(loom))]
mod consumers;
#[cfg(not(loom))]
mod copies;
#[cfg(not(loom))]
mod descriptions;
#[cfg(not(loom))]
mod directory;
#[cfg(all(test, not(loom)))]
mod hostile_producer;
#[cfg(not(loom))]
mod lane;
#[cfg(not(loom))]
#[allow(unsafe_code, reason = "memory that several processes write to")]
mod map;
#[cfg(not(loom))]
mod message;
#[cfg(not(loom))]
mod packet;
#[cfg(not(loom))]
mod platform;
#[cfg(not(loom))]
mod publisher;
#[cfg(not(loom))]
mod state;
#[cfg(not(loom))]
mod subscriber;
#[cfg(not(loom))]
mod sync;

#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz;

pub use error::Error;
pub use grebe_ring::Policy;
pub use options::{PublisherOptions, SubscriberOptions, Trust};
pub use status::{ConsumerStatus, Footprint, Totals};
#[cfg(not(loom))]
pub use {
    directory::streams,
    publisher::{Publisher, check},
    subscriber::Subscriber,
};

/// The examples of README.md run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
