//! Train: datagrams of one size at even intervals.

use std::ops::RangeInclusive;

use grebe_packet::{Error, Reader, Result, Writer};

/// Valid datagram lengths of a train, in bytes of UDP payload.
pub const DATAGRAM_BYTES: RangeInclusive<u16> = Train::SIZE_MIN..=Train::SIZE_MAX;

/// A train of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Train {
    /// Number within the session and direction, from 1 on.
    pub(crate) id: u32,
    /// Number of datagrams, 1 to [`Train::COUNT_MAX`].
    pub(crate) count: u32,
    /// Bytes of UDP payload, [`Train::SIZE_MIN`] to [`Train::SIZE_MAX`].
    pub(crate) size: u16,
    /// Interval between two datagrams; 0: unpaced.
    pub(crate) interval_ns: u64,
}

impl Train {
    /// Maximum number of datagrams. The receiver's map of arrivals then takes 512 KiB.
    pub(crate) const COUNT_MAX: u32 = 1 << 22;
    /// Minimum datagram length, for header and stamp.
    pub(crate) const SIZE_MIN: u16 = 64;
    /// Maximum length of a UDP datagram over IPv4.
    pub(crate) const SIZE_MAX: u16 = 65_507;

    /// Train of about `duration_s` at `rate_bps`, in bits of IP packets.
    pub(crate) fn at_rate(id: u32, size: u16, rate_bps: f64, duration_s: f64) -> Self {
        let size = size.clamp(Self::SIZE_MIN, Self::SIZE_MAX);
        let interval_ns = (packet_bits(size) / rate_bps.max(1.0) * 1e9).round().clamp(1.0, 1e10);
        let count = (duration_s * 1e9 / interval_ns).round().clamp(1.0, f64::from(Self::COUNT_MAX)) as u32;
        Self { id, count, size, interval_ns: interval_ns as u64 }
    }

    /// Bits of IP packets per second.
    pub(crate) fn rate_bps(&self) -> f64 {
        packet_bits(self.size) * 1e9 / self.interval_ns.max(1) as f64
    }

    /// Time from the first datagram to one interval after the last.
    pub(crate) fn duration_ns(&self) -> u64 {
        self.interval_ns * u64::from(self.count)
    }

    /// Bytes of IP packets.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.count) * self.packet_bytes()
    }

    /// Bytes of each IP packet.
    pub(crate) fn packet_bytes(&self) -> u64 {
        u64::from(self.size) + UDP_IP_BYTES as u64
    }

    /// Whether every field is in range.
    pub(crate) fn is_valid(&self) -> bool {
        (1..=Self::COUNT_MAX).contains(&self.count)
            && (Self::SIZE_MIN..=Self::SIZE_MAX).contains(&self.size)
            && self.interval_ns <= 10_000_000_000
            && self.id != 0
    }

    pub(crate) fn write<'a, 'b>(&self, writer: &'a mut Writer<'b>) -> &'a mut Writer<'b> {
        writer.u32(self.id).u32(self.count).u16(self.size).u64(self.interval_ns)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let train =
            Self { id: reader.u32()?, count: reader.u32()?, size: reader.u16()?, interval_ns: reader.u64()? };
        match train.is_valid() {
            true => Ok(train),
            false => Err(Error::Malformed { what: "an impossible train" }),
        }
    }
}

/// Bits of the IPv4 packet for a datagram of `size` bytes.
pub(crate) fn packet_bits(size: u16) -> f64 {
    (f64::from(size) + UDP_IP_BYTES as f64) * 8.0
}

/// Headers of IPv4 and UDP.
pub(crate) const UDP_IP_BYTES: usize = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_keeps_its_rate_and_its_time() {
        let train = Train::at_rate(1, 1_472, 100e6, 0.5);
        assert_eq!((train.interval_ns, train.count), (120_000, 4_167));
        assert!((train.rate_bps() - 100e6).abs() < 1.0);
        assert!(
            Train::at_rate(1, 9, f64::MAX, 1e9).is_valid() && Train::at_rate(1, 1_472, 0.0, 1.0).is_valid()
        );
    }
}
