//! Content of a message: frames back to back, as in a pipe, and its sender.

use std::ops::Range;

use grebe_frame::{DescriptionReader, HEADER_BYTES, Header, Refusal};

/// Maximum bytes of frames in a message. With Zenoh's own bytes it fits into a batch of 65,535, so it is not
/// fragmented. A longer frame is a message of its own.
pub const MESSAGE_BYTES_MAX: usize = 65_000;

/// Sender of a message: 16 bytes beside the frames (Zenoh's attachment), unique per sender. All zero if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderId(pub [u8; 16]);

impl SenderId {
    /// From an attachment; zero for any other content.
    pub fn read(attachment: &[u8]) -> Self {
        attachment.try_into().map(Self).unwrap_or_default()
    }
}

/// A frame in a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Its position in the message.
    pub range: Range<usize>,
    /// Header of a frame of samples or of the end; `None`: a part of a description.
    pub header: Option<Header>,
}

/// Splits a message into frames. An invalid frame ends it, because the start of the next is unknown.
///
/// ```
/// use grebe_frame::{HEADER_BYTES, Header, SampleFormat};
/// use grebe_zenoh::pieces;
///
/// let header = Header { channel_count: 1, block_length_samples: 4, ..Header::default() };
/// let mut message = vec![0; 2 * (HEADER_BYTES + 8)];
/// message.chunks_exact_mut(HEADER_BYTES + 8).for_each(|frame| header.write((&mut frame[..HEADER_BYTES]).try_into().unwrap()));
/// assert_eq!(pieces(&message).map(|piece| piece.unwrap().range.start).collect::<Vec<_>>(), [0, 72]);
/// assert!(pieces(&message[..100]).last().unwrap().is_err());
/// ```
pub fn pieces(message: &[u8]) -> Pieces<'_> {
    Pieces { message, at: 0 }
}

/// See [`pieces`].
#[derive(Debug)]
pub struct Pieces<'a> {
    message: &'a [u8],
    at: usize,
}

impl Iterator for Pieces<'_> {
    type Item = Result<Piece, Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.message.get(self.at..).filter(|rest| !rest.is_empty())?;
        let piece = length(rest).map(|(length, header)| {
            let range = self.at..self.at + length;
            self.at = range.end;
            Piece { range, header }
        });
        if piece.is_err() {
            self.at = self.message.len();
        }
        Some(piece)
    }
}

/// Bytes of the first frame.
fn length(bytes: &[u8]) -> Result<(usize, Option<Header>), Refusal> {
    if bytes.len() < HEADER_BYTES {
        return Err(Refusal::Short);
    }
    let (length, header) = match Header::parse(bytes) {
        Ok(header) => (header.frame_bytes(), Some(header)),
        Err(Refusal::Description) => (DescriptionReader::frame_bytes(bytes)?, None),
        Err(reason) => return Err(reason),
    };
    if length > bytes.len() { Err(Refusal::Truncated) } else { Ok((length, header)) }
}

#[cfg(test)]
mod tests {
    use grebe_frame::Description;
    use proptest::prelude::*;

    use super::*;

    fn frame(sequence: u64) -> Vec<u8> {
        let header = Header {
            sequence,
            channel_count: 1,
            block_length_samples: 3,
            sample_rate_hz: 1.0,
            ..Header::default()
        };
        let mut bytes = [0; HEADER_BYTES];
        header.write(&mut bytes);
        [&bytes[..], &[7; 6]].concat()
    }

    #[test]
    fn a_message_is_frames_and_descriptions_one_after_the_other() {
        let next = Header { sequence: 1, channel_count: 1, ..Header::default() };
        let said = Description { name: Some("adc".to_owned()), ..Description::default() };
        let said = said.frames(&next, 1400).unwrap().concat();
        let message = [frame(0), said.clone(), frame(1)].concat();
        let pieces: Vec<Piece> = pieces(&message).map(Result::unwrap).collect();
        let sequences: Vec<_> =
            pieces.iter().map(|piece| piece.header.map(|header| header.sequence)).collect();
        assert_eq!(sequences, [Some(0), None, Some(1)]);
        assert_eq!(pieces[1].range, 70..70 + said.len());
        assert_eq!(pieces[2].range.end, message.len());
    }

    #[test]
    fn an_invalid_frame_is_refused_once_and_ends_the_message() {
        let good = frame(0);
        for (bytes, reason) in [
            ([&good[..], b"x"].concat(), Refusal::Short),
            ([&good[..], &[9; 64]].concat(), Refusal::Magic),
            ([&good[..], &good[..69]].concat(), Refusal::Truncated),
        ] {
            let all: Vec<_> = pieces(&bytes).collect();
            assert!(all[0].is_ok());
            assert_eq!(all[1..], [Err(reason)]);
        }
        assert_eq!(pieces(&[]).count(), 0);
    }

    #[test]
    fn a_sender_id_has_sixteen_bytes_or_is_invalid() {
        assert_eq!(SenderId::read(&[5; 16]), SenderId([5; 16]));
        assert_eq!(SenderId::read(&[5; 15]), SenderId::default());
    }

    proptest! {
        #[test]
        fn pieces_are_contiguous_for_any_input(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), is_near: bool) {
            if is_near {
                bytes.splice(0..0, frame(3));
            }
            let mut at = 0;
            for piece in pieces(&bytes) {
                let Ok(piece) = piece else { break };
                prop_assert_eq!(piece.range.start, at);
                prop_assert!(piece.range.end > at && piece.range.end <= bytes.len());
                at = piece.range.end;
            }
        }
    }
}
