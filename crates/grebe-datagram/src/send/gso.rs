//! Whether this socket may use GSO: a small state machine without system calls.
//!
//! ```text
//!            first GSO send works                GSO send fails            the same data fails plainly: not GSO's fault
//!   Probe -----------------------> Active -------------------> Inactive ----------------------------------> Probe
//!     |                                                          |
//!     +---------------- GSO send fails ------------------------> +-- the same data is sent plainly --> Disabled
//! ```
//! EIO and EINVAL can begin after GSO has worked (quinn #2202, #2399: a route changed to a device without
//! checksum offload).

/// The state of segmentation offload on a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gso {
    /// Allowed, not proven yet.
    Probe,
    /// It works.
    Active,
    /// Just failed; the same datagrams are being sent singly to find the reason.
    Inactive,
    /// Off for this socket: by option, by environment, by platform, or because plain datagrams passed where
    /// it failed.
    Disabled,
}

impl Gso {
    pub(super) fn usable(self) -> bool {
        matches!(self, Gso::Probe | Gso::Active)
    }

    /// Notes that the kernel accepted a GSO message.
    pub(super) fn worked(&mut self) {
        if *self == Gso::Probe {
            *self = Gso::Active;
        }
    }

    /// Notes that a GSO message was refused with an error that GSO may have caused.
    pub(super) fn failed(&mut self) {
        if self.usable() {
            *self = Gso::Inactive;
        }
    }

    /// Notes the result of sending the refused data as plain datagrams.
    pub(super) fn resent_plainly(&mut self, passed: bool) {
        if *self == Gso::Inactive {
            *self = if passed { Gso::Disabled } else { Gso::Probe };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gso;

    #[test]
    fn gso_that_fails_where_plain_passes_is_off_for_good() {
        let mut gso = Gso::Probe;
        gso.worked();
        assert_eq!(gso, Gso::Active);
        gso.failed();
        assert!(!gso.usable());
        gso.resent_plainly(true);
        gso.worked();
        assert_eq!(gso, Gso::Disabled);
    }

    #[test]
    fn an_error_that_plain_datagrams_share_is_not_blamed_on_gso() {
        let mut gso = Gso::Active;
        gso.failed();
        gso.resent_plainly(false);
        assert_eq!(gso, Gso::Probe);
    }
}
