//! The class identifier of a stream, which tells flavours of VITA-49 apart.

use std::fmt;

/// The class identifier of a packet: the organisation that defined its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    /// Padding bits at the end of the payload.
    pub(crate) pad_bits: u8,
    /// The organisation, as registered with the IEEE.
    pub(crate) oui: u32,
    pub(crate) information: u16,
    pub(crate) packet: u16,
}

impl Class {
    pub(crate) const BYTES: usize = 8;
    /// For packets that need the field without an organisation's definition.
    pub(crate) const NOBODYS: Self = Self { pad_bits: 0, oui: 0xff_ffff, information: 0, packet: 0 };
    /// Of DIFI's data packets.
    pub(crate) const DIFI_DATA: Self = Self { pad_bits: 0, oui: DIFI_OUI, information: 0, packet: 0 };
    /// Of DIFI's context packets.
    pub(crate) const DIFI_CONTEXT: Self = Self { packet: 1, ..Self::DIFI_DATA };

    /// Whether it is DIFI's, or that of digitisers that sent it before it had one.
    pub(crate) fn is_difi(self) -> bool {
        matches!(self.oui, DIFI_OUI | BEFORE_DIFI_OUI)
    }

    pub(crate) fn read(bytes: [u8; Self::BYTES]) -> Self {
        let [pad, a, b, c, information_high, information_low, packet_high, packet_low] = bytes;
        Self {
            pad_bits: pad >> 3,
            oui: u32::from_be_bytes([0, a, b, c]),
            information: u16::from_be_bytes([information_high, information_low]),
            packet: u16::from_be_bytes([packet_high, packet_low]),
        }
    }

    pub(crate) fn bytes(self) -> [u8; Self::BYTES] {
        let [_, a, b, c] = self.oui.to_be_bytes();
        let ([d, e], [f, g]) = (self.information.to_be_bytes(), self.packet.to_be_bytes());
        [self.pad_bits << 3, a, b, c, d, e, f, g]
    }
}

/// Name of a class.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oui, information, packet, .. } = *self;
        let [_, a, b, c] = oui.to_be_bytes();
        match oui {
            DIFI_OUI => write!(f, "DIFI (class 6A-62-1E {information:04x}:{packet:04x})"),
            _ => write!(f, "VITA-49 (class {a:02X}-{b:02X}-{c:02X} {information:04x}:{packet:04x})"),
        }
    }
}

/// Of the Digital Intermediate Frequency Interoperability Consortium.
const DIFI_OUI: u32 = 0x6a_621e;
/// Of RT Logic (Kratos).
const BEFORE_DIFI_OUI: u32 = 0x7c_386c;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_written_as_it_is_read_and_has_a_name() {
        let class = Class { pad_bits: 24, oui: 0x00_1c2d, information: 0x1234, packet: 0x5678 };
        assert_eq!(class.bytes(), [24 << 3, 0, 0x1c, 0x2d, 0x12, 0x34, 0x56, 0x78]);
        assert_eq!(Class::read(class.bytes()), class);
        assert_eq!(class.to_string(), "VITA-49 (class 00-1C-2D 1234:5678)");
        assert_eq!(Class::DIFI_CONTEXT.to_string(), "DIFI (class 6A-62-1E 0000:0001)");
    }
}
