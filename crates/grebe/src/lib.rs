//! The libraries of grebe under one name.
//!
//! ```
//! use grebe::frame::Header;
//! assert!(Header::parse(b"not a frame").is_err());
//! ```
#![forbid(unsafe_code)]

pub use {
    grebe_datagram as datagram, grebe_flow as flow, grebe_frame as frame, grebe_probe as probe,
    grebe_scope as scope, grebe_shm as shm, grebe_stages as stages, grebe_transfer as transfer,
    grebe_view as view,
};
