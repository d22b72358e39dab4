//! Several recordings as one, with the channels of all: those samples that every one of them has.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use grebe_frame::{Description, MAX_CHANNELS};
use serde_json::Value;

use super::drift::Fitted;
use super::piece::Piece;
use super::timeline::same_rate;
use super::{Alignment, Annotation, RawFile, SampleFile, Segment, Timeline, axis, drift};
use crate::error::{Error, ProcessError};

impl SampleFile {
    /// Joins recordings of one rate and format. Its channels are those of the first, then those of the
    /// second, and so on. `alignment` determines, to the sample, which samples belong together.
    ///
    /// Contains the common range only, from the latest begin to the earliest end; a gap in one is a gap in
    /// all. A note states how much of each is excluded. Indices, times and the stream's metadata come from
    /// the first. Unnamed channels get the name of their file.
    ///
    /// # Errors
    /// [`Error::Field`] if their rates or formats differ, or their times are unknown (see [`Alignment`]) or do not overlap;
    /// [`Error::Process`] for more than 255 channels.
    pub fn side_by_side(files: Vec<Self>, alignment: Alignment) -> Result<Self, Error> {
        let Stretches { timelines, pieces, fitted, len_samples } = Stretches::of(&files, alignment)?;
        let segment = |piece: &Piece| {
            let segment = files[0].segment_at(piece.from);
            let recorded = files.iter().zip(&pieces).find_map(|(file, own)| {
                let from = own[own.partition_point(|own| own.at <= piece.at) - 1].from;
                Some((file.time_at(from)?, file.segment_at(from).recorded_error_ns, file.axis_at(from)))
            });
            Segment {
                position: piece.at,
                length_samples: piece.length,
                first_sample_index: segment.first_sample_index + (piece.from - segment.position),
                recorded_at: recorded.map(|it| it.0),
                recorded_error_ns: recorded.and_then(|it| it.1),
                recorded_axis: recorded.and_then(|it| it.2),
            }
        };
        // Another stream after the first one continues here on the same line with rising indices.
        let mut segments: Vec<Segment> = pieces[0].iter().map(segment).collect();
        let first = segments[0].first_sample_index;
        let origin = timelines[0].of_position(&files[0], pieces[0][0].from);
        for (segment, piece) in segments.iter_mut().zip(&pieces[0]) {
            segment.first_sample_index = first + (timelines[0].of_position(&files[0], piece.from) - origin);
        }
        let descriptions = describe(&files, &pieces);
        let mut annotations: Vec<Annotation> =
            files.iter().zip(&pieces).flat_map(|(file, pieces)| annotate(file, pieces)).collect();
        annotations.sort_by_key(|annotation| annotation.position);
        let annotations = without_repeats(annotations);
        let mut notes: Vec<String> = files.iter().flat_map(|file| file.notes().to_vec()).collect();
        for (number, ((file, own), timeline)) in files.iter().zip(&pieces).zip(&timelines).enumerate() {
            let fitted = fitted.get(number);
            notes.extend(left_out(file, own, fitted.map_or(0, |fitted| fitted.left_out)));
            notes.extend(fitted.and_then(|fitted| fitted.words(file, &files[0])));
            notes.extend(timeline.steps_back.then(|| stepped_back(file.name())));
        }
        if alignment == Alignment::Time {
            let last = |number: usize| {
                let position = pieces[number].last().map_or(0, |last| last.from + last.length - 1);
                (&files[number], position)
            };
            notes.extend((1..files.len()).filter_map(|number| axis::apart_words(last(0), last(number))));
        }
        notes.extend(other_frequencies(&files, &pieces));
        let (rate_hz, is_whole) = (files[0].sample_rate_hz, files.iter().all(Self::is_whole));
        let mut sources = Vec::new();
        for (file, pieces) in files.into_iter().zip(&pieces) {
            sources.extend(file.sources.into_iter().map(|source| source.pick(pieces)));
        }
        let file = Self::new(sources, rate_hz, len_samples, segments, notes).whole(is_whole);
        Ok(file.described(descriptions).annotated(annotations).reopen())
    }
}

/// Ranges of several recordings that stand side by side.
struct Stretches {
    timelines: Vec<Timeline>,
    /// Pieces of each file.
    pieces: Vec<Vec<Piece>>,
    /// How they were fitted, where their clocks run apart.
    fitted: Vec<Fitted>,
    len_samples: u64,
}

impl Stretches {
    fn of(files: &[SampleFile], alignment: Alignment) -> Result<Self, Error> {
        check(files)?;
        let timelines = Timeline::of(files, alignment)?;
        let mut pieces = common(files, &timelines);
        let clock = axis::common_clock(files).filter(|_| alignment == Alignment::Time);
        let fitted = clock.and_then(|clock| drift::fit(files, &pieces, clock)).unwrap_or_default();
        for (own, fitted) in pieces.iter_mut().zip(&fitted) {
            own.clone_from(&fitted.pieces);
        }
        let Some(len_samples) = pieces[0].last().map(|last| last.at + last.length) else {
            let others = files.iter().skip(1).map(|file| file.name().display().to_string());
            let others = others.collect::<Vec<_>>().join(" and ");
            let what = format!("has no samples at the times of {others}: nothing can be played side by side");
            return Err(Error::Field { path: files[0].name().into(), what });
        };
        Ok(Self { timelines, pieces, fitted, len_samples })
    }
}

/// Pieces of each file for [side by side](SampleFile::side_by_side) by time.
pub(crate) fn pieces_by_time(files: &[SampleFile]) -> Result<Vec<Vec<Piece>>, Error> {
    Ok(Stretches::of(files, Alignment::Time)?.pieces)
}

impl Annotation {
    /// Converts an annotation of the joined samples to positions in the file of these pieces.
    pub(crate) fn read_from(&self, pieces: &[Piece]) -> Self {
        let position = position_of(self.position, pieces);
        let last = self.length_samples.checked_sub(1).map(|last| self.position.saturating_add(last));
        let length_samples =
            last.map_or(0, |last| position_of(last, pieces).saturating_sub(position).saturating_add(1));
        Self { position, length_samples, fields: self.fields.clone() }
    }
}

/// Message about a file whose times step back.
pub(crate) fn stepped_back(name: &Path) -> String {
    format!("{}: its times step back; later samples are played without delay", name.display())
}

fn check(files: &[SampleFile]) -> Result<(), Error> {
    let channels: usize = files.iter().map(SampleFile::channels).sum();
    if channels == 0 || channels > MAX_CHANNELS as usize {
        let what = "channels side by side";
        return Err(ProcessError::Shape { what, got: channels as u64, expected: MAX_CHANNELS.into() }.into());
    }
    let format = files[0].format();
    for file in files {
        let what = if file.format() != format {
            let first = files[0].name().display();
            format!("its samples are {}, but {first} has {format}", file.format())
        } else if file.converted.is_some() {
            "its samples are converted: put files side by side as they are, and convert all of them then"
                .to_owned()
        } else {
            continue;
        };
        return Err(Error::Field { path: file.name().into(), what });
    }
    same_rate(files)
}

/// For each file the same stretches: those that all of them have.
fn common(files: &[SampleFile], timelines: &[Timeline]) -> Vec<Vec<Piece>> {
    let mut pieces: Vec<Vec<Piece>> = vec![Vec::new(); files.len()];
    let (mut numbers, mut at) = (vec![0usize; files.len()], 0);
    let end_of = |file: usize, number: usize| {
        timelines[file].begins[number] + files[file].segments()[number].length_samples
    };
    while numbers.iter().zip(files).all(|(&number, file)| number < file.segments().len()) {
        let present = || numbers.iter().copied().enumerate();
        let begin = present().map(|(file, number)| timelines[file].begins[number]).max().unwrap_or(0);
        let end = present().map(|(file, number)| end_of(file, number)).min().unwrap_or(0);
        if begin < end {
            for (file, number) in present() {
                let into = begin - timelines[file].begins[number];
                let from = files[file].segments()[number].position + into;
                pieces[file].push(Piece { at, from, length: end - begin });
            }
            at += end - begin;
        }
        for (file, number) in numbers.iter_mut().enumerate() {
            *number += usize::from(end_of(file, *number) == end);
        }
    }
    pieces
}

/// Position where a sample of the file is read, or the first later one that is.
fn place_of(position: u64, pieces: &[Piece]) -> Option<u64> {
    let piece = pieces[pieces.partition_point(|piece| piece.from + piece.length <= position)..].first()?;
    Some(piece.at + position.saturating_sub(piece.from))
}

/// The sample of the file that is read there.
fn position_of(at: u64, pieces: &[Piece]) -> u64 {
    let piece = pieces[pieces.partition_point(|piece| piece.at <= at) - 1];
    piece.from.saturating_add(at - piece.at)
}

/// Merges a label that is in several of the files.
fn without_repeats(mut annotations: Vec<Annotation>) -> Vec<Annotation> {
    let mut there = HashSet::new();
    annotations.retain(|annotation| {
        let Annotation { position, length_samples, fields } = annotation;
        there.insert((*position, *length_samples, Value::from(fields.clone()).to_string()))
    });
    annotations
}

/// Combined descriptions, one for each position where any of them changes.
fn describe(files: &[SampleFile], pieces: &[Vec<Piece>]) -> Vec<(u64, Arc<Description>)> {
    let begins = files
        .iter()
        .zip(pieces)
        .flat_map(|(file, pieces)| file.descriptions.iter().filter_map(|&(from, _)| place_of(from, pieces)));
    let mut places: Vec<u64> = begins.chain([0]).collect();
    places.sort_unstable();
    places.dedup();
    let at = |place: u64| {
        let (mut whole, mut channels) = (None, Vec::new());
        for (file, pieces) in files.iter().zip(pieces) {
            let here = file.description(position_of(place, pieces));
            let said = here.map_or(&[][..], |here| &here.channels);
            let names = file.sources.iter().flat_map(names_of);
            channels.extend(names.enumerate().map(|(number, name)| {
                let mut channel = said.get(number).cloned().unwrap_or_default();
                if channel.name.is_empty() {
                    channel.name = name;
                }
                channel
            }));
            whole = whole.or_else(|| here.cloned());
        }
        let mut whole = whole.map(|whole| (*whole).clone()).unwrap_or_default();
        let frequency = |(file, own): (&SampleFile, &Vec<Piece>)| {
            file.description(position_of(place, own))?.centre_frequency_hz
        };
        whole.centre_frequency_hz = files.iter().zip(pieces).find_map(frequency);
        (place, Arc::new(Description { channels, ..whole }))
    };
    places.into_iter().map(at).collect()
}

/// Names for the unnamed channels of a file.
fn names_of(source: &RawFile) -> impl Iterator<Item = String> + '_ {
    let stem = source.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    (1..=source.channels())
        .map(move |channel| if source.channels() == 1 { stem.clone() } else { format!("{stem} {channel}") })
}

/// Annotations of the file, within the pieces.
fn annotate<'a>(file: &'a SampleFile, pieces: &'a [Piece]) -> impl Iterator<Item = Annotation> + 'a {
    file.annotations.iter().filter_map(move |annotation| {
        let position = place_of(annotation.position, pieces)?;
        let end = pieces.last().map_or(0, |last| last.at + last.length);
        let behind = place_of(annotation.position + annotation.length_samples, pieces).unwrap_or(end);
        let length_samples = behind - position;
        let is_point = annotation.length_samples == 0 && position_of(position, pieces) == annotation.position;
        (length_samples > 0 || is_point).then(|| Annotation {
            position,
            length_samples,
            fields: annotation.fields.clone(),
        })
    })
}

/// Excluded part of a file, apart from samples skipped to fit.
fn left_out(file: &SampleFile, pieces: &[Piece], fitted_samples: u64) -> Option<String> {
    let (first, last) = (pieces.first()?, pieces.last()?);
    let gaps = pieces.windows(2).map(|pair| pair[1].from.saturating_sub(pair[0].from + pair[0].length));
    let within = gaps.sum::<u64>() - fitted_samples;
    let behind = file.len_samples() - (last.from + last.length);
    let parts = [(first.from, "at its beginning"), (within, "within it"), (behind, "at its end")];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|&(samples, _)| samples > 0)
        .map(|(samples, place)| format!("{samples} {place}"))
        .collect();
    let name = file.name().display();
    (!parts.is_empty())
        .then(|| format!("{name}: samples that the others lack are ignored: {}", parts.join(", ")))
}

/// Centre frequencies that a stream's description cannot state for each channel.
fn other_frequencies(files: &[SampleFile], pieces: &[Vec<Piece>]) -> Option<String> {
    let frequency = |(file, pieces): (&SampleFile, &Vec<Piece>)| {
        file.description(pieces.first()?.from)?.centre_frequency_hz
    };
    let all: Vec<Option<f64>> = files.iter().zip(pieces).map(frequency).collect();
    let said = all.iter().flatten().next()?;
    let (other, hz) =
        all.iter().zip(files).find_map(|(hz, file)| Some((file, hz.filter(|hz| hz != said)?)))?;
    Some(format!(
        "a stream has one centre frequency: it says {said} Hz, and {} is of {hz} Hz",
        other.name().display()
    ))
}

#[cfg(test)]
mod tests;
