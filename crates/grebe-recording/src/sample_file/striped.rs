//! Recordings that took turns in recording one stream, as one recording: that stream.

use std::sync::Arc;

use super::{Annotation, Piece, RawFile, SampleFile, Segment};
use crate::error::Error;

/// A recording that took turns with others.
#[derive(Debug)]
pub(crate) struct StripeMember {
    pub(crate) file: SampleFile,
    /// Begin of each of its stripes: in its file, and in the whole.
    pub(crate) stripes: Vec<(u64, u64)>,
}

/// A stripe of one of the recordings.
#[derive(Debug, Clone, Copy)]
struct Stripe {
    member: usize,
    /// Its begin in the whole as recorded: a lost stripe leaves a hole.
    start: u64,
    /// Its position in the file, and in the remaining whole.
    piece: Piece,
}

impl SampleFile {
    /// Joins recordings of one rate, format and number of channels. A missing part is a gap.
    ///
    /// Annotation lengths in the stream (`grebe:stream_samples`) apply across the stripes.
    ///
    /// # Errors
    /// [`Error::Empty`] where none of them has a sample; [`Error::Content`] where one is striped itself.
    pub(crate) fn striped(members: Vec<StripeMember>, notes: Vec<String>) -> Result<Self, Error> {
        let stripes = stripes(&members);
        if stripes.is_empty() {
            return Err(Error::Empty { path: members[0].file.name().into() });
        }
        let mut segments: Vec<Segment> = Vec::new();
        let mut descriptions: Vec<(u64, _)> = Vec::new();
        let mut annotations = Vec::new();
        let mut end = 0;
        for stripe in &stripes {
            let (file, piece) = (&members[stripe.member].file, stripe.piece);
            let segment = file.segment_at(piece.from);
            let first_sample_index = segment.first_sample_index + (piece.from - segment.position);
            let behind = |last: &Segment| last.first_sample_index + last.length_samples;
            match segments.last_mut() {
                // The next disk continues with the next sample.
                Some(last) if stripe.start == end && behind(last) == first_sample_index => {
                    last.length_samples += piece.length;
                }
                _ => segments.push(Segment {
                    position: piece.at,
                    length_samples: piece.length,
                    first_sample_index,
                    recorded_at: file.time_at(piece.from),
                    recorded_axis: file.axis_at(piece.from),
                    ..*segment
                }),
            }
            end = stripe.start.saturating_add(piece.length);
            let here = file.descriptions.iter().filter(|(from, _)| piece.holds(*from) && *from > piece.from);
            let first = file.description(piece.from).map(|first| (piece.from, first));
            for (from, description) in first.into_iter().chain(here.map(|(from, it)| (*from, it))) {
                if descriptions.last().is_none_or(|(_, last)| *last != description) {
                    descriptions.push((piece.at + (from - piece.from), description));
                }
            }
        }
        for stripe in &stripes {
            let file = &members[stripe.member].file;
            let within = file.annotations.iter().filter(|it| stripe.piece.holds(it.position));
            annotations.extend(within.map(|annotation| placed(annotation, stripe.piece, &segments)));
        }
        annotations.sort_by_key(|annotation| annotation.position);
        let descriptions = descriptions.into_iter().map(|(at, it)| (at, Arc::clone(it))).collect();
        let pieces: Vec<(usize, Piece)> =
            stripes.iter().map(|stripe| (stripe.member, stripe.piece)).collect();
        let len_samples = pieces.last().map_or(0, |(_, last)| last.at + last.length);
        let rate_hz = members[0].file.sample_rate_hz;
        let is_whole = members.iter().all(|member| member.file.is_whole);
        let mut sources: Vec<Vec<RawFile>> = Vec::new();
        for member in members {
            for (channel, source) in member.file.sources.into_iter().enumerate() {
                match sources.get_mut(channel) {
                    Some(files) => files.push(source),
                    None => sources.push(vec![source]),
                }
            }
        }
        let sources = sources.into_iter().map(|files| RawFile::striped(files, &pieces));
        let file = Self::new(sources.collect::<Result<_, _>>()?, rate_hz, len_samples, segments, notes);
        Ok(file.whole(is_whole).described(descriptions).annotated(annotations))
    }
}

impl Piece {
    /// Whether it has this sample of its file.
    fn holds(&self, from: u64) -> bool {
        (self.from..self.from + self.length).contains(&from)
    }
}

/// All stripes in order, without the holes between them. A recorder that was cut off may not know the end of
/// a stripe.
fn stripes(members: &[StripeMember]) -> Vec<Stripe> {
    let mut stripes = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let ends = member.stripes.iter().skip(1).map(|&(from, _)| from).chain([member.file.len_samples]);
        for (&(from, start), end) in member.stripes.iter().zip(ends) {
            let length = end.min(member.file.len_samples).saturating_sub(from);
            if length > 0 {
                stripes.push(Stripe { member: number, start, piece: Piece { at: 0, from, length } });
            }
        }
    }
    stripes.sort_by_key(|stripe| stripe.start);
    let mut at = 0;
    for stripe in &mut stripes {
        stripe.piece.at = at;
        at += stripe.piece.length;
    }
    stripes
}

/// An annotation that begins in this stripe, at its position in the whole.
fn placed(annotation: &Annotation, piece: Piece, segments: &[Segment]) -> Annotation {
    let position = piece.at + (annotation.position - piece.from);
    let mut fields = annotation.fields.clone();
    let stated = fields.remove(STREAM_SAMPLES).and_then(|samples| samples.as_u64());
    let length_samples = stated.map_or_else(
        || annotation.length_samples.min(piece.from + piece.length - annotation.position),
        |samples| length_of(position, samples, segments),
    );
    Annotation { position, length_samples, fields }
}

/// Samples of the whole that `stream_samples` of the stream cover, without those in gaps.
fn length_of(position: u64, stream_samples: u64, segments: &[Segment]) -> u64 {
    let first = segments.partition_point(|segment| segment.position <= position).saturating_sub(1);
    let begin = &segments[first];
    let end_index = (begin.first_sample_index + (position - begin.position)).saturating_add(stream_samples);
    let (mut end, mut index) = (position, begin.first_sample_index);
    for segment in &segments[first..] {
        // Another stream, or a later segment.
        if segment.first_sample_index < index || segment.first_sample_index >= end_index {
            break;
        }
        let length = segment.length_samples.min(end_index - segment.first_sample_index);
        end = segment.position + length;
        index = segment.first_sample_index + segment.length_samples;
    }
    end.saturating_sub(position)
}

/// Length in the stream of an annotation in one of several alternating recordings.
pub(crate) const STREAM_SAMPLES: &str = "grebe:stream_samples";
