//! Shortens a description that is too long to send.

use super::{ChannelDescription, Description, StreamAnnotation, TooLong};
use crate::header::Header;

impl Description {
    /// As [`frames`](Self::frames), shortened if it does not fit. Then also returns its original length.
    ///
    /// Cuts long names in their middle first, then other texts. Then drops the last annotations, keys unknown to SigMF,
    /// and names. Numbers stay: frequency, scale, time.
    pub fn frames_that_fit(&self, next: &Header, frame_bytes_max: usize) -> (Vec<Vec<u8>>, Option<TooLong>) {
        let too_long = match self.frames(next, frame_bytes_max) {
            Ok(frames) => return (frames, None),
            Err(too_long) => too_long,
        };
        let mut shorter = self.clone();
        for step in STEPS {
            step(&mut shorter, too_long.bytes_max);
            if let Ok(frames) = shorter.frames(next, frame_bytes_max) {
                return (frames, Some(too_long));
            }
        }
        (Vec::new(), Some(too_long))
    }
}

/// Steps that remove parts, given the maximum bytes of the text.
const STEPS: [fn(&mut Description, usize); 7] = [
    |it, _| it.channels.iter_mut().for_each(|channel| cut_channel(channel, NAME_CHARS)),
    |it, _| {
        let texts = [&mut it.name, &mut it.hardware, &mut it.author, &mut it.notes];
        texts.into_iter().flatten().for_each(|text| cut(text, TEXT_CHARS));
    },
    |it, bytes_max| leave_out_annotations(it, bytes_max),
    |it, _| it.rest.clear(),
    |it, _| it.channels.iter_mut().for_each(|channel| cut_channel(channel, NAME_CHARS / 8)),
    |it, _| (it.name, it.hardware, it.author, it.notes) = (None, None, None, None),
    |it, _| it.channels.clear(),
];

fn cut_channel(channel: &mut ChannelDescription, chars: usize) {
    cut(&mut channel.name, chars);
    cut(&mut channel.unit, chars);
}

/// Keeps both ends of a text, which distinguish channels.
fn cut(text: &mut String, chars_max: usize) {
    let chars = text.chars().count();
    if chars > chars_max {
        let head = text.chars().take(chars_max / 2);
        let tail = text.chars().skip(chars - (chars_max - chars_max / 2 - 1));
        *text = head.chain(['…']).chain(tail).collect();
    }
}

/// Removes the last ones, as many as needed.
fn leave_out_annotations(description: &mut Description, bytes_max: usize) {
    let mut excess_bytes = description.text_bytes().saturating_sub(bytes_max);
    while excess_bytes > 0
        && let Some(last) = description.annotations.pop()
    {
        excess_bytes = excess_bytes.saturating_sub(StreamAnnotation::text_bytes(&last) + 1);
    }
}

/// Longer than most names.
const NAME_CHARS: usize = 64;
const TEXT_CHARS: usize = 1_024;
