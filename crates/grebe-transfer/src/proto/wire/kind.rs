//! The first byte of each packet and of each frame.

/// A protected packet; the lowest bit is the key's phase.
pub(super) const KIND_PROTECTED: u8 = 0x40;

pub(super) const KIND_DATA: u8 = 0x10;
pub(super) const KIND_PROBE: u8 = 0x11;
pub(super) const KIND_OFFER: u8 = 0x12;
pub(super) const KIND_FEEDBACK: u8 = 0x20;
pub(super) const KIND_OUTCOME: u8 = 0x21;
pub(super) const KIND_READY: u8 = 0x22;
pub(super) const KIND_HELD: u8 = 0x23;
pub(super) const KIND_CLOSE: u8 = 0x30;
