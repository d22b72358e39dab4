//! Batches of samples lent from one process to others, without a copy.
//!
//! ```text
//!   producer                                                                            consumers
//!   BatchPool over a memfd  --- payload: mapped, then sealed; everybody else can only read -->  BatchImport
//!   Publisher  === a lane each: descriptors there, chunks back (a sealed memfd) ==============  Subscriber
//!              --- control socket: hands over the descriptors, wakes, and hangs up ------------
//! ```
//!
//! A stream has a name, which is a Unix socket in the user's own directory (`$XDG_RUNTIME_DIR/grebe/NAME.shm`). Whoever
//! connects is handed the memory by descriptor; there are no names in `/dev/shm` and no files that could be left behind but the
//! socket itself, which the next producer or [`streams`] removes. When a process goes, its socket hangs up: there is no heartbeat.
//!
//! Each consumer has a [`Policy`] and a quota of chunks. A stopped consumer under a policy that drops costs its quota and nothing
//! else; one that blocks needs the producer's consent, and is cut off when it takes nothing for too long. Reference counts are
//! the producer's own: what a dead or a lying consumer was lent is known without asking it.
//!
//! ```no_run
//! use grebe_frame::Header;
//! use grebe_shm::{Publisher, PublisherOptions};
//!
//! let (mut publisher, mut pool) = Publisher::create("adc", PublisherOptions::default())?;
//! let mut batch = pool.acquire().expect("nothing is lent yet");
//! let header = Header { channel_count: 1, block_length_samples: 1024, ..Header::default() };
//! batch.push(&header, |_, samples| samples.fill(7)).expect("a chunk holds a frame");
//! publisher.send(&batch.freeze(), || false)?;
//! publisher.end(None);
//! # Ok::<(), grebe_shm::ShmError>(())
//! ```
//!
//! ```no_run
//! use std::time::Duration;
//! use grebe_shm::{Subscriber, SubscriberOptions};
//!
//! let mut subscriber = Subscriber::connect("adc", &SubscriberOptions::default())?;
//! while !subscriber.is_ended() {
//!     while let Some(batch) = subscriber.pop()? {
//!         println!("{} samples", batch.samples());
//!     }
//!     subscriber.wait(Duration::from_millis(100))?;
//! }
//! # Ok::<(), grebe_shm::ShmError>(())
//! ```
#![deny(unsafe_code)]

mod error;
mod options;

#[cfg(any(loom, all(fuzzing, target_os = "linux")))]
#[doc(hidden)]
pub mod lane;
#[cfg(all(target_os = "linux", not(any(loom, fuzzing))))]
mod lane;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod message;
#[cfg(all(target_os = "linux", not(any(loom, fuzzing))))]
mod message;
#[cfg(any(loom, target_os = "linux"))]
#[doc(hidden)]
pub mod sync;

#[cfg(all(target_os = "linux", not(loom)))]
mod linux;
#[cfg(all(target_os = "linux", not(loom)))]
use linux as system;

#[cfg(not(any(target_os = "linux", loom)))]
mod absent;
#[cfg(not(any(target_os = "linux", loom)))]
use absent as system;

pub use error::ShmError;
pub use grebe_ring::Policy;
pub use options::{ConsumerStatus, Footprint, PublisherOptions, Status, SubscriberOptions, Totals};
#[cfg(not(loom))]
pub use system::{Publisher, Subscriber, streams};
