//! Answers of a receiver to the listed files, in order.

use grebe_packet::Reader;

use crate::delta::ChunkSizes;
use crate::error::{Error, Result};
use crate::wire::{HASH_BYTES, ShortHash, put_varint};

/// Answer to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The file exists.
    Have,
    /// The whole file is wanted.
    Whole,
    /// A part exists; the rest is wanted from this offset on.
    From(u64),
    /// A file of this length exists; the sender's is wanted unless it has this hash.
    Unless(ShortHash),
    /// A file with possibly common data exists; its signature follows, in chunks of this average length.
    Changed(ChunkSizes),
    /// Refused; the receiver gives the reason in another message.
    Refused,
}

impl Answer {
    /// Whether the answer concerns a single file.
    fn has_field(self) -> bool {
        matches!(self, Self::From(_) | Self::Unless(_) | Self::Changed(_))
    }
}

/// Encodes the body of an answer message. A run of equal answers takes one number.
#[derive(Debug, Default)]
pub(crate) struct AnswerWriter {
    body: Vec<u8>,
    repeated: Option<(Answer, u64)>,
    answers: u64,
}

impl AnswerWriter {
    pub(crate) fn add(&mut self, answer: Answer) {
        self.answers += 1;
        match &mut self.repeated {
            Some((same, count)) if *same == answer && !answer.has_field() => {
                *count += 1;
            }
            repeated => {
                if let Some((before, count)) = repeated.replace((answer, 1)) {
                    put(&mut self.body, before, count);
                }
            }
        }
    }

    /// Number of answers.
    pub(crate) fn answers(&self) -> u64 {
        self.answers
    }

    /// Takes the body and resets the writer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut whole = std::mem::take(self);
        if let Some((answer, count)) = whole.repeated {
            put(&mut whole.body, answer, count);
        }
        whole.body
    }
}

fn put(out: &mut Vec<u8>, answer: Answer, count: u64) {
    let kind = match answer {
        Answer::Have => 0,
        Answer::Whole => 1,
        Answer::From(_) => 2,
        Answer::Unless(_) => 3,
        Answer::Refused => 4,
        Answer::Changed(_) => 5,
    };
    put_varint(out, count << 3 | kind);
    match answer {
        Answer::From(offset) => put_varint(out, offset),
        Answer::Unless(hash) => out.extend_from_slice(&hash),
        Answer::Changed(sizes) => out.push(sizes.to_byte()),
        Answer::Have | Answer::Whole | Answer::Refused => {}
    }
}

/// Reads the answers of one message.
#[derive(Debug)]
pub(crate) struct Answers<'a> {
    reader: Reader<'a>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { reader: Reader::new(body) }
    }

    /// Next answer, and the number of files it covers.
    pub(crate) fn next(&mut self) -> Result<Option<(Answer, u64)>> {
        if self.reader.is_empty() {
            return Ok(None);
        }
        let token = self.reader.varint()?;
        let (count, kind) = (token >> 3, token & 7);
        let answer = match kind {
            0 => Answer::Have,
            1 => Answer::Whole,
            2 => Answer::From(self.reader.varint()?),
            3 => Answer::Unless(self.reader.array::<HASH_BYTES>()?),
            4 => Answer::Refused,
            5 => Answer::Changed(
                ChunkSizes::from_byte(self.reader.u8()?)
                    .ok_or(Error::Malformed { what: "chunks of a length that none has" })?,
            ),
            _ => return Err(Error::Malformed { what: "an answer of an unknown kind" }),
        };
        if count == 0 || count > 1 && answer.has_field() {
            return Err(Error::Malformed { what: "an answer for a number of files that cannot be" });
        }
        Ok(Some((answer, count)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answers() -> impl Strategy<Value = Vec<Answer>> {
        prop::collection::vec(
            prop_oneof![
                Just(Answer::Have),
                Just(Answer::Whole),
                any::<u64>().prop_map(Answer::From),
                any::<ShortHash>().prop_map(Answer::Unless),
                Just(Answer::Refused),
                (11..=22_u8, any::<bool>()).prop_map(|(log2, short)| {
                    Answer::Changed(ChunkSizes::from_byte(log2 | u8::from(short) << 7).unwrap())
                }),
            ],
            0..50,
        )
    }

    proptest! {
        #[test]
        fn answers_come_back(answers in answers()) {
            let mut writer = AnswerWriter::default();
            answers.iter().for_each(|answer| writer.add(*answer));
            prop_assert_eq!(writer.answers(), answers.len() as u64);
            let body = writer.take();
            prop_assert_eq!(writer.answers(), 0);
            let (mut reader, mut read) = (Answers::new(&body), Vec::new());
            while let Some((answer, count)) = reader.next().unwrap() {
                read.extend(std::iter::repeat_n(answer, count as usize));
            }
            prop_assert_eq!(read, answers);
        }

        #[test]
        fn reading_any_bytes_ends(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = Answers::new(&bytes);
            while let Ok(Some(_)) = reader.next() {}
        }
    }

    #[test]
    fn a_hundred_thousand_equal_answers_take_few_bytes() {
        let mut writer = AnswerWriter::default();
        (0..100_000).for_each(|_| writer.add(Answer::Have));
        assert_eq!(writer.take().len(), 3);
    }

    #[test]
    fn no_files_and_one_offset_for_two_are_refused() {
        for body in [
            &[0_u8][..],
            &[2 << 3 | 2, 5],
            &[1 << 3 | 7],
            &[2 << 3 | 5, 14],
            &[1 << 3 | 5, 40],
            &[1 << 3 | 5, 0x80 | 40],
        ] {
            assert!(Answers::new(body).next().is_err(), "{body:?}");
        }
    }
}
