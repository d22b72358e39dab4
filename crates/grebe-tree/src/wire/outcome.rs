//! Notes of either end about single names, and the last messages.

use grebe_packet::Reader;

use crate::error::{Error, Result};
use crate::name::words;
use crate::report::{Report, Waits};
use crate::wire::{put_bytes, put_varint, take_bytes};

/// A name with a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) name: Vec<u8>,
    pub(crate) words: String,
}

const NAME_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a name in a note; longer ones are cut, because pending notes take memory.
const SAID_NAME_BYTES_MAX: usize = 4 << 10;
const WORDS_BYTES_MAX: usize = 4 << 10;

impl Note {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(&mut out, &self.name[..self.name.len().min(SAID_NAME_BYTES_MAX)]);
        put_bytes(&mut out, &self.words.as_bytes()[..self.words.len().min(WORDS_BYTES_MAX)]);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let name = take_bytes(&mut reader, NAME_BYTES_MAX)?.to_vec();
        let words = words(take_bytes(&mut reader, WORDS_BYTES_MAX)?);
        reader.end()?;
        Ok(Self { name, words })
    }
}

/// The sender has listed and sent everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SenderEnd {
    /// All sources exist, so unlisted names may be deleted.
    pub(crate) is_complete: bool,
    pub(crate) entries: u64,
    pub(crate) waits: Waits,
}

impl SenderEnd {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.is_complete)];
        for number in [self.entries, self.waits.stream_ms, self.waits.disk_ms] {
            put_varint(&mut out, number);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let is_complete = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Error::Malformed { what: "an end that this version does not have" }),
        };
        let entries = reader.varint()?;
        let waits = Waits { stream_ms: reader.varint()?, disk_ms: reader.varint()? };
        reader.end()?;
        Ok(Self { is_complete, entries, waits })
    }
}

/// The receiver has done everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Summary(pub(crate) Report);

impl Summary {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let report = &self.0;
        let mut out = Vec::new();
        for number in [
            report.files_copied,
            report.bytes_copied,
            report.files_same,
            report.bytes_same,
            report.directories_made,
            report.links_made,
            report.deleted,
            report.data_bytes,
            report.receiver.stream_ms,
            report.receiver.disk_ms,
        ] {
            put_varint(&mut out, number);
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let mut number = || reader.varint();
        let report = Report {
            files_copied: number()?,
            bytes_copied: number()?,
            files_same: number()?,
            bytes_same: number()?,
            directories_made: number()?,
            links_made: number()?,
            deleted: number()?,
            data_bytes: number()?,
            receiver: Waits { stream_ms: number()?, disk_ms: number()? },
            ..Report::default()
        };
        reader.end()?;
        Ok(Self(report))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_outcome_of_a_copy_round_trips(numbers: [u64; 10], name: Vec<u8>, words in "[a-zé ]{0,100}", is_complete: bool) {
            let [a, b, c, d, e, f, g, h, stream_ms, disk_ms] = numbers;
            let report = Report {
                files_copied: a, bytes_copied: b, files_same: c, bytes_same: d, directories_made: e, links_made: f,
                deleted: g, data_bytes: h, receiver: Waits { stream_ms, disk_ms }, ..Report::default()
            };
            prop_assert_eq!(&Summary::decode(&Summary(report.clone()).encode()).unwrap().0, &report);
            let end = SenderEnd { is_complete, entries: a, waits: Waits { stream_ms, disk_ms } };
            prop_assert_eq!(SenderEnd::decode(&end.encode()).unwrap(), end);
            let note = Note { name, words };
            prop_assert_eq!(Note::decode(&note.encode()).unwrap(), note);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (Note::decode(&bytes), SenderEnd::decode(&bytes), Summary::decode(&bytes));
        }
    }

    #[test]
    fn words_of_a_peer_move_no_cursor() {
        let note = Note { name: b"a".to_vec(), words: "gone\x1b[2J".to_owned() };
        assert_eq!(Note::decode(&note.encode()).unwrap().words, "gone\\u{1b}[2J");
    }
}
