//! The signal properties in context packets: ANSI/VITA 49.2, section 9.
//!
//! A field that a packet lacks keeps its last value.

use grebe_frame::Refusal;

use super::class::Class;
use super::payload_format::PayloadFormat;
use super::prologue::{WORD, array_at};

/// The fields of context packets that grebe reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SignalContext {
    /// The point in the receiver that the other fields refer to.
    pub(crate) reference_point: Option<u32>,
    pub(crate) bandwidth_hz: Option<f64>,
    /// The frequency in the samples that stands for the one at the antenna.
    pub(crate) if_reference_hz: Option<f64>,
    /// The frequency at the antenna.
    pub(crate) rf_reference_hz: Option<f64>,
    /// Distance of the band's centre from the reference frequency.
    pub(crate) if_band_offset_hz: Option<f64>,
    /// The power at the reference point of a full-scale sine.
    pub(crate) reference_level_dbm: Option<f64>,
    /// Sum of both stages.
    pub(crate) gain_db: Option<f64>,
    pub(crate) sample_rate_hz: Option<f64>,
    pub(crate) payload_format: Option<PayloadFormat>,
}

/// The profile of a context packet to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fields {
    /// The known fields.
    Known,
    /// All fields of DIFI, in its fixed packet of 27 words.
    Difi,
}

impl SignalContext {
    /// Reads the payload of a context packet of a class.
    ///
    /// # Errors
    /// [`Refusal::Description`] if it is cut off, or has fields of unknown position (attributes: CIF7).
    pub(crate) fn read(class: Option<Class>, payload: &[u8]) -> Result<Self, Refusal> {
        let mut words = Words { rest: payload };
        // DIFI has no field below the payload format, and devices of DIFI 1.0 leave anything in those bits.
        let has_low = !class.is_some_and(Class::is_difi);
        let indicators = words.u32()? & if has_low { u32::MAX } else { !((1 << FORMAT_BIT) - 1) };
        if indicators & ATTRIBUTES != 0 {
            return Err(Refusal::Description);
        }
        // Further indicator words precede all fields; their fields follow those of this word.
        for _ in 0..(indicators & FURTHER).count_ones() {
            words.u32()?;
        }
        let mut context = Self::default();
        for bit in (FORMAT_BIT..=REFERENCE_POINT_BIT).rev().filter(|bit| indicators >> bit & 1 == 1) {
            match bit {
                REFERENCE_POINT_BIT => context.reference_point = Some(words.u32()?),
                29 => context.bandwidth_hz = Some(words.frequency_hz()?),
                28 => context.if_reference_hz = Some(words.frequency_hz()?),
                27 => context.rf_reference_hz = Some(words.frequency_hz()?),
                25 => context.if_band_offset_hz = Some(words.frequency_hz()?),
                24 => context.reference_level_dbm = Some(decibels(words.u32()? as u16)),
                23 => {
                    let stages = words.u32()?;
                    context.gain_db = Some(decibels(stages as u16) + decibels((stages >> 16) as u16));
                }
                21 => context.sample_rate_hz = Some(words.frequency_hz()?),
                FORMAT_BIT => context.payload_format = Some(PayloadFormat([words.u32()?, words.u32()?])),
                // RF offset, timestamp adjustment, device.
                26 | 20 | 17 => words.skip(2)?,
                // Over-range count, calibration time, temperature, state and events.
                22 | 19 | 18 | 16 => words.skip(1)?,
                _ => {}
            }
        }
        Ok(context)
    }

    /// Updates the fields that another context has.
    pub(crate) fn hear(&mut self, newer: &Self) {
        *self = Self {
            reference_point: newer.reference_point.or(self.reference_point),
            bandwidth_hz: newer.bandwidth_hz.or(self.bandwidth_hz),
            if_reference_hz: newer.if_reference_hz.or(self.if_reference_hz),
            rf_reference_hz: newer.rf_reference_hz.or(self.rf_reference_hz),
            if_band_offset_hz: newer.if_band_offset_hz.or(self.if_band_offset_hz),
            reference_level_dbm: newer.reference_level_dbm.or(self.reference_level_dbm),
            gain_db: newer.gain_db.or(self.gain_db),
            sample_rate_hz: newer.sample_rate_hz.or(self.sample_rate_hz),
            payload_format: newer.payload_format.or(self.payload_format),
        };
    }

    /// The rate, if positive.
    pub(crate) fn rate_hz(&self) -> Option<f64> {
        self.sample_rate_hz.filter(|&rate_hz| rate_hz > 0.0)
    }

    /// The frequency at the antenna that corresponds to 0 Hz of the samples.
    pub(crate) fn centre_frequency_hz(&self) -> Option<f64> {
        Some(self.rf_reference_hz? - self.if_reference_hz.unwrap_or(0.0))
    }

    /// Writes the payload of a context packet, with its `changed` indicator.
    pub(crate) fn write(&self, changed: bool, fields: Fields) -> Vec<u8> {
        let is_difi = fields == Fields::Difi;
        let with = |value: Option<f64>| value.or(is_difi.then_some(0.0));
        let mut indicators = if changed { 1 << 31 } else { 0 };
        let mut body = Vec::with_capacity(DIFI_BYTES);
        let mut put = |bit: u32, bytes: &[u8]| {
            indicators |= 1 << bit;
            body.extend_from_slice(bytes);
        };
        let frequency = |hz: f64| ((hz * RADIX_20).round() as i64).to_be_bytes();
        let level = |db: f64| u32::from((db * RADIX_7).round() as i16 as u16).to_be_bytes();
        if let Some(point) = self.reference_point.or(is_difi.then_some(DIFI_POINT)) {
            put(REFERENCE_POINT_BIT, &point.to_be_bytes());
        }
        // DIFI's band defaults to the bandwidth of the samples.
        let bandwidth_hz = self.bandwidth_hz.or(self.sample_rate_hz.filter(|_| is_difi));
        for (bit, hz) in [
            (29, bandwidth_hz),
            (28, with(self.if_reference_hz)),
            (27, with(self.rf_reference_hz)),
            (25, with(self.if_band_offset_hz)),
        ] {
            hz.iter().for_each(|&hz| put(bit, &frequency(hz)));
        }
        with(self.reference_level_dbm).iter().for_each(|&dbm| put(24, &level(dbm)));
        with(self.gain_db).iter().for_each(|&db| put(23, &level(db)));
        with(self.sample_rate_hz).iter().for_each(|&hz| put(21, &frequency(hz)));
        if is_difi {
            put(20, &[0; 8]); // timestamp adjustment
            put(19, &[0; 4]); // calibrated when
            put(16, &[0; 4]); // state and events: none enabled
        }
        if let Some(PayloadFormat(mut words)) = self.payload_format {
            // The same for samples of whole bytes, but DIFI requires the flag.
            words[0] |= if is_difi { LINK_EFFICIENT } else { 0 };
            put(FORMAT_BIT, words.map(u32::to_be_bytes).as_flattened());
        }
        [&u32::to_be_bytes(indicators)[..], &body].concat()
    }
}

/// Hertz and decibels are fixed-point numbers: their lower bits are a fraction.
fn decibels(level: u16) -> f64 {
    f64::from(level as i16) / RADIX_7
}

struct Words<'a> {
    rest: &'a [u8],
}

impl Words<'_> {
    fn u32(&mut self) -> Result<u32, Refusal> {
        let word = u32::from_be_bytes(array_at(self.rest, 0));
        self.skip(1)?;
        Ok(word)
    }

    fn frequency_hz(&mut self) -> Result<f64, Refusal> {
        let fixed = i64::from_be_bytes(array_at(self.rest, 0));
        self.skip(2)?;
        Ok(fixed as f64 / RADIX_20)
    }

    fn skip(&mut self, words: usize) -> Result<(), Refusal> {
        self.rest = self.rest.get(words * WORD..).ok_or(Refusal::Description)?;
        Ok(())
    }
}

const REFERENCE_POINT_BIT: u32 = 30;
const FORMAT_BIT: u32 = 15;
/// CIF7: each field is followed by some of its attributes.
const ATTRIBUTES: u32 = 1 << 7;
/// CIF1 to CIF3.
const FURTHER: u32 = 0b1110;
const RADIX_20: f64 = (1 << 20) as f64;
const RADIX_7: f64 = (1 << 7) as f64;
const LINK_EFFICIENT: u32 = 1 << 31;
/// "Input to the device".
const DIFI_POINT: u32 = 100;
const DIFI_BYTES: usize = 108;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::payload_format::Shape;
    use super::*;
    use grebe_frame::SampleFormat;

    #[test]
    fn fields_are_found_whatever_stands_between_them() {
        // Bandwidth, RF offset (not read), reference level, gain, rate, temperature (not read), format; a CIF1 with a
        // field.
        let mut payload = (0xa000_0000u32 | 1 << 26 | 1 << 24 | 1 << 23 | 1 << 21 | 1 << 18 | 1 << 15 | 2)
            .to_be_bytes()
            .to_vec();
        payload.extend(0x8000_0000u32.to_be_bytes());
        payload.extend((2_000_000i64 << 20).to_be_bytes());
        payload.extend([0xee; 8]);
        payload.extend([0, 0, 0xf6, 0x80]); // -19 dBm
        payload.extend([0x05, 0x00, 0x0a, 0x40]); // 10 + 20.5 dB
        payload.extend(((2_400_000i64 << 20) + (1 << 19)).to_be_bytes());
        payload.extend([0xee; 4]);
        payload.extend([0x20, 0, 0x03, 0xcf, 0, 0, 0, 0]);
        payload.extend([0x77; 4]);
        let context = SignalContext::read(None, &payload).unwrap();
        assert_eq!(context.bandwidth_hz, Some(2e6));
        assert_eq!((context.reference_level_dbm, context.gain_db), (Some(-19.0), Some(30.5)));
        assert_eq!(context.rate_hz(), Some(2_400_000.5));
        let shape = context.payload_format.and_then(PayloadFormat::shape);
        assert_eq!(shape.map(Shape::format), Some(SampleFormat::Ci16));
        assert_eq!((context.rf_reference_hz, context.reference_point), (None, None));
        for length in 0..payload.len() - 4 {
            assert_eq!(SignalContext::read(None, &payload[..length]), Err(Refusal::Description), "{length}");
        }
        payload[3] |= 0x80;
        assert_eq!(
            SignalContext::read(None, &payload),
            Err(Refusal::Description),
            "attributes move every field"
        );
    }

    #[test]
    fn difi_has_all_its_fields_in_its_order() {
        let format = Some(PayloadFormat::of(Shape::new(SampleFormat::Ci16, 1)));
        let context = SignalContext {
            rf_reference_hz: Some(1e9),
            sample_rate_hz: Some(7.68e6),
            payload_format: format,
            ..Default::default()
        };
        let payload = context.write(true, Fields::Difi);
        assert_eq!(payload.len(), DIFI_BYTES - 28, "27 words with the prologue");
        assert_eq!(payload[..4], [0xfb, 0xb9, 0x80, 0x00]);
        assert_eq!(context.write(false, Fields::Difi)[..4], [0x7b, 0xb9, 0x80, 0x00]);
        let read = SignalContext::read(None, &payload).unwrap();
        assert_eq!(read.bandwidth_hz, Some(7.68e6));
        assert_eq!(read.centre_frequency_hz(), Some(1e9));
    }

    /// The 18 words of narrow-band digitisers, in which the lower half of the indicators changes from packet to packet.
    #[test]
    fn contexts_of_difi_before_1_1_are_read_whatever_their_spare_bits_are() {
        for spare in [0u32, 1 << 7, 0b1110, 0x7fff] {
            let mut payload = (0x39a1_8000 | spare).to_be_bytes().to_vec();
            [5_000_000i64, 70_000_000, 1_200_000_000]
                .iter()
                .for_each(|hz| payload.extend((hz << 20).to_be_bytes()));
            payload.extend([0; 8]);
            payload.extend((6_250_000i64 << 20).to_be_bytes());
            payload.extend(0xa00a_0000u32.to_be_bytes());
            payload.extend([0xa0, 0, 0x01, 0xc7, 0, 0, 0, 0]);
            for class in [Class::DIFI_CONTEXT, Class { oui: 0x7c_386c, ..Class::DIFI_CONTEXT }] {
                let context = SignalContext::read(Some(class), &payload).unwrap();
                assert_eq!((context.rate_hz(), context.bandwidth_hz), (Some(6.25e6), Some(5e6)), "{spare:x}");
                assert_eq!(context.centre_frequency_hz(), Some(1.13e9));
                assert!(context.payload_format.is_some());
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            hz in prop::collection::vec(prop::option::of(-1i64 << 40..1i64 << 40), 5),
            db in prop::collection::vec(prop::option::of(any::<i16>()), 2),
            point in prop::option::of(any::<u32>()),
            words in prop::option::of(any::<[u32; 2]>()),
            changed: bool,
        ) {
            let hz = |at: usize| hz[at].map(|hz| hz as f64 / RADIX_20);
            let db = |at: usize| db[at].map(|db| f64::from(db) / RADIX_7);
            let context = SignalContext {
                reference_point: point,
                bandwidth_hz: hz(0),
                if_reference_hz: hz(1),
                rf_reference_hz: hz(2),
                if_band_offset_hz: hz(3),
                reference_level_dbm: db(0),
                gain_db: db(1),
                sample_rate_hz: hz(4),
                payload_format: words.map(PayloadFormat),
            };
            let payload = context.write(changed, Fields::Known);
            prop_assert_eq!(payload[0] >> 7 == 1, changed);
            prop_assert_eq!(SignalContext::read(None, &payload), Ok(context));
            let mut heard = SignalContext::default();
            heard.hear(&context);
            heard.hear(&SignalContext::default());
            prop_assert_eq!(heard, context);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = SignalContext::read(None, &bytes);
        }
    }
}
