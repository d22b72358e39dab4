//! Common parts of grebe's protocols between hosts: one-time key, ticket, address cookie, replay window, byte
//! cursor, safe display of a peer's text, and the user's state directory.
//!
//! A server makes a [`Ticket`] and prints its word. The user takes the word to the other host, where the
//! client reads it. Both then know the [`Key`] and can verify each packet: a [`Reader`] reads its fields, and
//! a [`ReplayWindow`] checks its number.
//!
//! ```
//! use grebe_packet::{Address, Key, Purpose, Reader, ReplayWindow, Ticket, Writer};
//!
//! # fn main() -> Result<(), grebe_packet::Error> {
//! let ticket = Ticket {
//!     purpose: Purpose::Probe,
//!     addresses: vec![Address::new("lab.example.org", 4733)?],
//!     relay: None,
//!     expires_unix_s: 2_000_000_000,
//!     key: Key::random()?,
//! };
//! let word = ticket.word();
//! assert_eq!(Ticket::from_word(&word, Purpose::Probe)?.key, ticket.key);
//! assert!(Ticket::from_word(&word, Purpose::Transfer).is_err());
//!
//! let mut packet = [0; 16];
//! let mut writer = Writer::new(&mut packet);
//! let bytes = writer.u64(1).varint(300).written().expect("it fits");
//!
//! let mut window = ReplayWindow::<64>::default();
//! for is_new in [true, false] {
//!     let mut reader = Reader::new(&packet[..bytes]);
//!     assert_eq!(window.accept(reader.u64()?), is_new, "a packet counts once, however often it comes");
//!     assert_eq!(reader.varint()?, 300);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here opens a socket, reads a clock or encrypts. Only [`Address`] resolves a name, on request.
#![forbid(unsafe_code)]

mod address;
mod cookie;
mod cursor;
mod error;
mod key;
mod printable;
mod replay;
mod ticket;
mod user_state;

pub use address::Address;
pub use cookie::{Cookie, CookieMaker};
pub use cursor::{Reader, Writer};
pub use error::{Error, Result};
pub use grebe_ring::Cancel;
pub use key::Key;
pub use printable::{is_printable, printable};
pub use replay::ReplayWindow;
pub use ticket::{Purpose, Ticket};
pub use user_state::user_state;
