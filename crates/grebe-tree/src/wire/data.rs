//! Content of files on the wire: records under one hash.

use std::ops::Range;

use grebe_packet::Reader;

use crate::delta::Run;
use crate::error::{Error, Result};
use crate::wire::{EntryId, GROUP_BYTES, HASH_BYTES, ShortHash, put_varint, short, unzigzag, zigzag};

/// Record about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) id: EntryId,
    pub(crate) kind: RecordKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// Whole small file. `later_ns`: difference of its modification time from the listing.
    Whole { content: Range<usize>, later_ns: i64 },
    /// Bytes from `offset` on. Pieces of a file are in order, with holes between them.
    Piece { offset: u64, content: Range<usize> },
    /// End of the pieces of a file of this length.
    End { bytes: u64, later_ns: i64 },
    /// Not available: it kept changing while it was read, or is unreadable.
    Failed { is_changed: bool },
    /// It changed while it was read: discard the received data, because the whole file follows.
    Restart,
    /// Equal to the receiver's file.
    Same,
    /// Differs from the receiver's file. Nothing follows, because nothing may be changed.
    Differs,
    /// Handed over in this process.
    Local,
    /// From `offset` on, the file consists of these chunks of the basis.
    Copy { offset: u64, run: Run },
    /// Announces blocks of `1 << log2` bytes, in any order.
    Blocks { log2: u32 },
    /// End of a block.
    Block { number: u64 },
    /// Bytes for a later plan, in any order.
    Early { offset: u64, content: Range<usize> },
    /// `bytes` from `offset` on equal early data; `check` is part of their BLAKE3 hash.
    Laid { offset: u64, bytes: u64, check: ShortHash },
}

/// Content with its hash and the places of its files.
#[derive(Debug)]
pub(crate) struct DataFrame {
    pub(crate) body: Vec<u8>,
    pub(crate) records: Vec<Record>,
}

/// Maximum overhead of a frame beside the content of one file.
const OVERHEAD_BYTES: usize = HASH_BYTES + 48;

impl DataFrame {
    /// Verifies the hash and locates the files.
    pub(crate) fn open(body: Vec<u8>) -> Result<Self> {
        let Some((hash, rest)) = body.split_first_chunk::<HASH_BYTES>() else {
            return Err(Error::Malformed { what: "content without a hash" });
        };
        if *hash != short(&blake3::hash(rest)) {
            return Err(Error::Malformed {
                what: "content that differs from the read data: memory or a disk is broken",
            });
        }
        let (mut records, mut reader, mut last) = (Vec::new(), Reader::new(rest), 0);
        while !reader.is_empty() {
            let record = decode(&mut reader, last, body.len())?;
            last = record.id;
            records.push(record);
        }
        Ok(Self { body, records })
    }
}

fn decode(reader: &mut Reader<'_>, last: EntryId, body_bytes: usize) -> Result<Record> {
    let id = last.wrapping_add_signed(unzigzag(reader.varint()?));
    let content = |reader: &mut Reader<'_>| -> Result<Range<usize>> {
        let length = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
        if length > GROUP_BYTES {
            return Err(Error::Malformed { what: "more content than is sent at once" });
        }
        let mut behind = reader.clone();
        behind.take(length)?;
        let start = body_bytes - reader.clone().all().len();
        *reader = behind;
        Ok(start..start + length)
    };
    let kind = match reader.u8()? {
        0 => {
            let later_ns = unzigzag(reader.varint()?);
            RecordKind::Whole { content: content(reader)?, later_ns }
        }
        kind @ (1 | 12) => {
            let offset = reader.varint()?;
            let content = content(reader)?;
            check_end(offset, content.len() as u64)?;
            if kind == 1 {
                RecordKind::Piece { offset, content }
            } else {
                RecordKind::Early { offset, content }
            }
        }
        2 => {
            let bytes = reader.varint()?;
            if bytes > i64::MAX as u64 {
                return Err(Error::Malformed { what: "a file that is larger than files can be" });
            }
            RecordKind::End { bytes, later_ns: unzigzag(reader.varint()?) }
        }
        3 => RecordKind::Failed { is_changed: false },
        4 => RecordKind::Failed { is_changed: true },
        5 => RecordKind::Restart,
        6 => RecordKind::Same,
        7 => RecordKind::Differs,
        8 => RecordKind::Local,
        9 => {
            let offset = reader.varint()?;
            if offset > i64::MAX as u64 {
                return Err(Error::Malformed { what: "content beyond the end of any file" });
            }
            let number = |reader: &mut Reader<'_>| -> Result<u32> {
                let what = "more chunks than a signature has";
                u32::try_from(reader.varint()?).map_err(|_| Error::Malformed { what })
            };
            let run = Run { first: number(reader)?, chunks: number(reader)?, check: reader.array()? };
            RecordKind::Copy { offset, run }
        }
        10 => RecordKind::Blocks { log2: reader.u8()?.into() },
        11 => RecordKind::Block { number: reader.varint()? },
        13 => {
            let (offset, bytes) = (reader.varint()?, reader.varint()?);
            check_end(offset, bytes)?;
            RecordKind::Laid { offset, bytes, check: reader.array()? }
        }
        _ => return Err(Error::Malformed { what: "content of an unknown kind" }),
    };
    Ok(Record { id, kind })
}

fn check_end(offset: u64, bytes: u64) -> Result<()> {
    match offset.checked_add(bytes) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(Error::Malformed { what: "content beyond the end of any file" }),
    }
}

/// Encodes the body of a content message.
#[derive(Debug)]
pub(crate) struct DataWriter {
    body: Vec<u8>,
    last: EntryId,
    content_bytes: usize,
}

impl DataWriter {
    /// Makes a writer with room for `content_bytes` of one file.
    pub(crate) fn new(content_bytes: usize) -> Self {
        let mut body = Vec::with_capacity(content_bytes + OVERHEAD_BYTES);
        body.resize(HASH_BYTES, 0);
        Self { body, last: 0, content_bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.body.len() == HASH_BYTES
    }

    /// Bytes of records.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len() - HASH_BYTES
    }

    /// Bytes of files.
    pub(crate) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    pub(crate) fn whole(&mut self, id: EntryId, content: &[u8], later_ns: i64) {
        self.begin(id, 0);
        put_varint(&mut self.body, zigzag(later_ns));
        self.content(content);
    }

    pub(crate) fn piece(&mut self, id: EntryId, offset: u64, content: &[u8]) {
        self.begin(id, 1);
        put_varint(&mut self.body, offset);
        self.content(content);
    }

    pub(crate) fn end(&mut self, id: EntryId, bytes: u64, later_ns: i64) {
        self.begin(id, 2);
        put_varint(&mut self.body, bytes);
        put_varint(&mut self.body, zigzag(later_ns));
    }

    pub(crate) fn failed(&mut self, id: EntryId, is_changed: bool) {
        self.begin(id, 3 + u8::from(is_changed));
    }

    pub(crate) fn restart(&mut self, id: EntryId) {
        self.begin(id, 5);
    }

    pub(crate) fn compared(&mut self, id: EntryId, is_same: bool) {
        self.begin(id, 7 - u8::from(is_same));
    }

    pub(crate) fn copy(&mut self, id: EntryId, offset: u64, run: &Run) {
        self.begin(id, 9);
        put_varint(&mut self.body, offset);
        put_varint(&mut self.body, run.first.into());
        put_varint(&mut self.body, run.chunks.into());
        self.body.extend_from_slice(&run.check);
    }

    pub(crate) fn blocks(&mut self, id: EntryId, log2: u32) {
        self.begin(id, 10);
        self.body.push(log2 as u8);
    }

    pub(crate) fn block(&mut self, id: EntryId, number: u64) {
        self.begin(id, 11);
        put_varint(&mut self.body, number);
    }

    pub(crate) fn early(&mut self, id: EntryId, offset: u64, content: &[u8]) {
        self.begin(id, 12);
        put_varint(&mut self.body, offset);
        self.content(content);
    }

    pub(crate) fn laid(&mut self, id: EntryId, offset: u64, bytes: u64, check: &ShortHash) {
        self.begin(id, 13);
        put_varint(&mut self.body, offset);
        put_varint(&mut self.body, bytes);
        self.body.extend_from_slice(check);
    }

    pub(crate) fn local(&mut self, id: EntryId) {
        self.begin(id, 8);
    }

    /// Returns the body, with its hash.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let hash = short(&blake3::hash(&self.body[HASH_BYTES..]));
        self.body[..HASH_BYTES].copy_from_slice(&hash);
        self.body
    }

    fn begin(&mut self, id: EntryId, kind: u8) {
        put_varint(&mut self.body, zigzag(id.wrapping_sub(self.last) as i64));
        self.last = id;
        self.body.push(kind);
    }

    fn content(&mut self, content: &[u8]) {
        self.content_bytes += content.len();
        put_varint(&mut self.body, content.len() as u64);
        self.body.extend_from_slice(content);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Message {
        Whole(Vec<u8>, i64),
        Piece(u64, Vec<u8>),
        End(u64, i64),
        Failed(bool),
        Restart,
        Compared(bool),
        Local,
        Copy(u64, Run),
        Blocks(u8),
        Block(u64),
    }

    fn said() -> impl Strategy<Value = Vec<(EntryId, Message)>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..300);
        let said = prop_oneof![
            (bytes(), any::<i64>()).prop_map(|(content, later)| Message::Whole(content, later)),
            (0..u64::MAX / 4, bytes()).prop_map(|(offset, content)| Message::Piece(offset, content)),
            (0..u64::MAX / 2, any::<i64>()).prop_map(|(bytes, later)| Message::End(bytes, later)),
            any::<bool>().prop_map(Message::Failed),
            Just(Message::Restart),
            any::<bool>().prop_map(Message::Compared),
            Just(Message::Local),
            (0..u64::MAX / 2, any::<u32>(), any::<u32>(), any::<[u8; HASH_BYTES]>()).prop_map(
                |(offset, first, chunks, check)| Message::Copy(offset, Run { first, chunks, check })
            ),
            any::<u8>().prop_map(Message::Blocks),
            any::<u64>().prop_map(Message::Block),
        ];
        prop::collection::vec((any::<EntryId>(), said), 0..20)
    }

    fn write(said: &[(EntryId, Message)]) -> Vec<u8> {
        let mut writer = DataWriter::new(0);
        for (id, said) in said {
            match said {
                Message::Whole(content, later) => writer.whole(*id, content, *later),
                Message::Piece(offset, content) => writer.piece(*id, *offset, content),
                Message::End(bytes, later) => writer.end(*id, *bytes, *later),
                Message::Failed(is_changed) => writer.failed(*id, *is_changed),
                Message::Restart => writer.restart(*id),
                Message::Compared(is_same) => writer.compared(*id, *is_same),
                Message::Local => writer.local(*id),
                Message::Copy(offset, run) => writer.copy(*id, *offset, run),
                Message::Blocks(log2) => writer.blocks(*id, (*log2).into()),
                Message::Block(number) => writer.block(*id, *number),
            }
        }
        writer.finish()
    }

    proptest! {
        #[test]
        fn content_comes_back(said in said()) {
            let frame = DataFrame::open(write(&said)).unwrap();
            prop_assert_eq!(frame.records.len(), said.len());
            for (record, (id, said)) in frame.records.iter().zip(&said) {
                prop_assert_eq!(record.id, *id);
                match (&record.kind, said) {
                    (RecordKind::Whole { content, later_ns }, Message::Whole(bytes, later)) => {
                        prop_assert_eq!((&frame.body[content.clone()], later_ns), (&bytes[..], later));
                    }
                    (RecordKind::Piece { offset, content }, Message::Piece(at, bytes)) => {
                        prop_assert_eq!((offset, &frame.body[content.clone()]), (at, &bytes[..]));
                    }
                    (RecordKind::End { bytes, later_ns }, Message::End(length, later)) => {
                        prop_assert_eq!((bytes, later_ns), (length, later));
                    }
                    (RecordKind::Failed { is_changed }, Message::Failed(changed)) => prop_assert_eq!(is_changed, changed),
                    (RecordKind::Copy { offset, run }, Message::Copy(at, said)) => {
                        prop_assert_eq!((offset, run), (at, said));
                    }
                    (RecordKind::Blocks { log2 }, Message::Blocks(said)) => prop_assert_eq!(*log2, u32::from(*said)),
                    (RecordKind::Block { number }, Message::Block(said)) => prop_assert_eq!(number, said),
                    (RecordKind::Restart, Message::Restart)
                    | (RecordKind::Same, Message::Compared(true))
                    | (RecordKind::Differs, Message::Compared(false))
                    | (RecordKind::Local, Message::Local) => {}
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }

        #[test]
        fn no_bytes_under_a_valid_hash_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let body = [&short(&blake3::hash(&bytes))[..], &bytes].concat();
            if let Ok(frame) = DataFrame::open(body) {
                for record in &frame.records {
                    if let RecordKind::Whole { content, .. } | RecordKind::Piece { content, .. } = &record.kind {
                        prop_assert!(frame.body.get(content.clone()).is_some());
                    }
                }
            }
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let good = write(&[(3, Message::Whole(b"content".to_vec(), 0)), (4, Message::Restart)]);
        for at in 0..good.len() {
            let mut body = good.clone();
            body[at] ^= 0x10;
            assert!(DataFrame::open(body).is_err(), "byte {at}");
        }
    }
}
