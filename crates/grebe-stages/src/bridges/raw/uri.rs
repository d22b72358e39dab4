//! Options of a raw stream's name: the carrier and the layout of samples.

use std::sync::Arc;

use grebe_frame::{Description, Header, SampleFormat};
use grebe_process::query::{Pairs, Query, Words};
use grebe_recording::{Encoding, Order};

use crate::transport::Carrier;

/// A stream of samples without headers, as [`Uri::Raw`](crate::Uri::Raw) names it.
///
/// | in the query | means | default |
/// |---|---|---|
/// | `format=` | any of `i8 u8 i16 i32 f32 f64 ci8 cu8 ci16 cf32` or another program's name for it (`s16`, `cs16`, `fc32`, `cfile`), then `le` or `be`; `i24` | required |
/// | `rate=` | samples per second and channel: `2.4M` | unknown |
/// | `channels=` | 1 to 255 | 1 |
/// | `interleave=` | `sample`: one of each channel in turn; `block`: in each datagram all of a channel, then all of the next | `sample` |
/// | `frequency=` | centre frequency of the receiver, in hertz | unknown |
/// | `skip=` | bytes before the samples of each datagram | 0, or the end of `seq` |
/// | `seq=AT:u32le` | position and type of a number that grows by one per datagram, and shows losses: `u8`, `u16le`, `u32be`, ... | loss is invisible |
/// | `listen` | TCP: accepts a connection instead of making one | connects |
/// | `reconnect` | TCP, serial: reconnects after a lost connection, and continues after a gap | ends with it |
/// | `baud=`, `mode=`, `flow=`, `hangup=` | serial: see [`Uri`](crate::Uri) | 115,200 baud, 8N1, no flow control |
#[derive(Debug, Clone, PartialEq)]
pub struct RawStream {
    pub(crate) carrier: Carrier,
    pub(crate) encoding: Encoding,
    pub(crate) channels: usize,
    /// Samples per second and channel; 0: not known.
    pub(crate) rate_hz: f64,
    pub(crate) frequency_hz: Option<f64>,
    /// In each datagram, the samples of a channel are contiguous.
    pub(crate) is_by_block: bool,
    /// Bytes before the samples of a datagram.
    pub(crate) skip_bytes: usize,
    pub(crate) number: Option<Number>,
}

/// A datagram's number, which grows by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    /// Position of its first byte.
    pub(crate) at: usize,
    pub(crate) bytes: usize,
    order: Order,
}

impl Number {
    /// Reads the number, if the datagram is long enough.
    pub(crate) fn read(self, datagram: &[u8]) -> Option<u64> {
        let bytes = datagram.get(self.at..self.at + self.bytes)?;
        let mut number = [0; 8];
        number[..self.bytes].copy_from_slice(bytes);
        if self.order == Order::Big {
            number[..self.bytes].reverse();
        }
        Some(u64::from_le_bytes(number))
    }

    /// Writes the lower bytes of `value` to their position.
    pub(crate) fn write(self, value: u64, head: &mut [u8]) {
        let bytes = &mut head[self.at..self.at + self.bytes];
        bytes.copy_from_slice(&value.to_le_bytes()[..self.bytes]);
        if self.order == Order::Big {
            bytes.reverse();
        }
    }

    /// The largest number.
    pub(crate) fn max(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes)
    }
}

impl RawStream {
    /// One channel of such samples in a byte stream.
    pub(crate) fn plain(format: SampleFormat, rate_hz: f64) -> Self {
        Self {
            carrier: Carrier::Pipe,
            encoding: Encoding::of(format),
            channels: 1,
            rate_hz,
            frequency_hz: None,
            is_by_block: false,
            skip_bytes: 0,
            number: None,
        }
    }

    /// Parses the query of a name, after the carrier and the scheme have taken their own options.
    ///
    /// # Errors
    /// An option is malformed, unknown, or conflicts with another.
    pub(crate) fn of_query(carrier: Carrier, mut query: Query<'_>) -> Result<Self, String> {
        query.flag("raw")?;
        let format = query.value("format", Encoding::names(), Encoding::named)?;
        let rate_hz = query.rate_hz()?.unwrap_or(0.0);
        let channels = query.channels()?.unwrap_or(1);
        let is_by_block = query.choice("interleave", INTERLEAVE)?.unwrap_or(false);
        let frequency_hz = query.hertz("frequency")?;
        let skip_bytes = query.whole("skip", 0..=SKIP_BYTES_MAX)?;
        let number = query.value("seq", "the byte that it begins at and its type, as in 4:u32le", number)?;
        query.end()?;
        let encoding = format.ok_or(NO_FORMAT)?;
        let number_end = number.map_or(0, |number| number.at + number.bytes);
        let skip_bytes = skip_bytes.unwrap_or(number_end);
        if skip_bytes < number_end {
            return Err(format!("has seq= up to byte {number_end}: give skip={number_end} or more"));
        }
        if !matches!(carrier, Carrier::Udp(_)) && (skip_bytes > 0 || is_by_block) {
            return Err("has skip=, seq= or interleave=block, which are for datagrams".to_owned());
        }
        Ok(Self { carrier, encoding, channels, rate_hz, frequency_hz, is_by_block, skip_bytes, number })
    }

    /// The pairs of a name, without those of the carrier.
    pub(crate) fn pairs(&self) -> Pairs {
        let number = self.number.map(|Number { at, bytes, order }| {
            let order = if order == Order::Big { "be" } else { "le" };
            format!("{at}:u{}{}", 8 * bytes, if bytes == 1 { "" } else { order })
        });
        Pairs::default()
            .add("format", Some(self.encoding))
            .add("rate", Some(self.rate_hz).filter(|&rate_hz| rate_hz > 0.0))
            .add("channels", Some(self.channels).filter(|&channels| channels > 1))
            .choice("interleave", INTERLEAVE, self.is_by_block, Some(false))
            .add("frequency", self.frequency_hz)
            .add("skip", Some(self.skip_bytes).filter(|&bytes| bytes > 0))
            .add("seq", number)
    }

    /// The rate, if the name states it.
    pub(crate) fn known_rate_hz(&self) -> Option<f64> {
        Some(self.rate_hz).filter(|&rate_hz| rate_hz > 0.0)
    }

    /// Bytes of one sample of all channels.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.encoding.sample_bytes() * self.channels
    }

    /// Copies channel `channel` out of interleaved samples.
    pub(crate) fn take(&self, bytes: &[u8], channel: usize, out: &mut [u8]) {
        let channel_bytes = bytes.len() / self.channels;
        match (self.is_by_block, self.channels) {
            (true, _) => {
                self.encoding.take(&bytes[channel * channel_bytes..][..channel_bytes], 0, 1, out);
            }
            (false, 1) if self.encoding.is_as_streamed() => out.copy_from_slice(bytes),
            (false, channels) => self.encoding.take(bytes, channel, channels, out),
        }
    }

    /// The header of a stream's first frame, without samples.
    pub(crate) fn header(&self) -> Header {
        Header {
            channel_count: self.channels as u32,
            format: self.encoding.format,
            sample_rate_hz: self.rate_hz,
            ..Header::default()
        }
    }

    /// The description of the stream, if the name gives one.
    pub(crate) fn description(&self) -> Option<Arc<Description>> {
        let mut said = Description { centre_frequency_hz: self.frequency_hz, ..Description::default() };
        // Other encodings have the bits of the type that they are read as.
        if self.encoding.read_as().is_some()
            && let Some(bits) = self.encoding.bits()
        {
            said.rest.insert(Description::BITS.to_owned(), bits.into());
        }
        (said != Description::default()).then(|| Arc::new(said))
    }
}

/// `4:u32le`.
fn number(text: &str) -> Option<Number> {
    let (at, kind) = text.split_once(':')?;
    let at = at.parse().ok().filter(|&at| at <= SKIP_BYTES_MAX - 8)?;
    let (kind, order) = match (kind.strip_suffix("be"), kind.strip_suffix("le")) {
        (Some(kind), _) => (kind, Order::Big),
        (None, Some(kind)) => (kind, Order::Little),
        (None, None) => (kind, Order::Little),
    };
    let bytes = match kind {
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        "u64" => 8,
        _ => return None,
    };
    Some(Number { at, bytes, order: if bytes == 1 { Order::Little } else { order } })
}

const INTERLEAVE: &Words<bool> = &[("sample", false), ("block", true)];
const NO_FORMAT: &str = "has no format: add format=, as in format=cu8&rate=2.4M";
const SKIP_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uri;

    fn raw(text: &str) -> RawStream {
        match text.parse() {
            Ok(Uri::Raw(raw)) => *raw,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_name_says_what_a_raw_stream_is() {
        let dongle = raw("pipe:?format=cu8&rate=2.4M");
        assert_eq!((dongle.encoding.format, dongle.rate_hz, dongle.channels), (SampleFormat::Cu8, 2.4e6, 1));
        let device = raw(
            "udp://:5000?raw&format=s16be&channels=4&interleave=block&skip=12&seq=4:u32be&frequency=100M",
        );
        assert_eq!((device.skip_bytes, device.number.map(|number| number.bytes)), (12, Some(4)));
        assert_eq!(device.frame_bytes(), 8);
        assert_eq!(
            device.number.and_then(|number| number.read(&[0, 0, 0, 0, 1, 2, 3, 4])),
            Some(0x0102_0304)
        );
        assert_eq!(raw("udp://:5000?format=i16&seq=2:u16").skip_bytes, 4, "as far as the number reaches");
        let listens = |text| matches!(raw(text).carrier, Carrier::Tcp(end) if end.listens);
        assert!(!listens("tcp://localhost:1234?format=cf32le") && listens("tcp://:1234?format=i24&listen"));
    }

    #[test]
    fn printed_names_are_parsed_again() {
        for text in [
            "pipe:?format=cu8&rate=2400000",
            "udp://:5000?format=i16be&channels=4&interleave=block&frequency=100000000&skip=12&seq=4:u32be",
            "tcp://[::1]:1234?format=cf32&listen",
            "tcp://[::1]:1234?format=cf32&listen&reconnect",
            "tcp://host:1?format=i24",
            "udp://host:1?format=u8&skip=1&seq=0:u8",
        ] {
            assert_eq!(crate::scheme::Scheme::uri(&raw(text)), text);
        }
    }

    #[test]
    fn invalid_options_are_refused() {
        for (text, reason) in [
            ("tcp://host:1", "has no format: add"),
            ("pipe:?rate=1M", "has no format: add"),
            ("pipe:?format=i17", "has format=i17: give one of i16"),
            ("pipe:?format=i16&rate=0", "rate=0: give samples per second"),
            ("pipe:?format=i16&channels=256", "give 1 to 255"),
            ("pipe:?format=i16&skip=4", "which are for datagrams"),
            ("tcp://h:1?format=i16&interleave=block", "which are for datagrams"),
            ("udp://:1?format=i16&skip=4&seq=4:u32", "give skip=8 or more"),
            ("udp://:1?format=i16&seq=u32", "as in 4:u32le"),
            ("udp://:1?format=i16&listen", "which is for tcp://"),
            ("pipe:?format=i16&reconnect", "reconnect, which is for tcp:// and serial:"),
            ("udp://:1?format=i16&colour=red", "unknown 'colour'"),
            ("tcp://h?format=i16", "no port"),
        ] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for text in ["0:u8", "1:u16le", "2:u16be", "3:u32le", "0:u64be"] {
            let number = number(text).unwrap();
            let mut head = [0xee; 16];
            number.write(0x0123_4567_89ab_cdef, &mut head);
            assert_eq!(number.read(&head), Some(0x0123_4567_89ab_cdef & number.max()), "{text}");
            assert_eq!(number.read(&head[..number.at]), None);
        }
    }
}
