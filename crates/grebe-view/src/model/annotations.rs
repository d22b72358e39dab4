//! Annotations made by people: time ranges, and boxes in time and frequency, with their texts.

use grebe_frame::{AnnotationEdit, StreamAnnotation};
use grebe_scope::Engineering;

use super::action::{Action, AnnotatedPart, Question};
use super::annotation_words::{TEXT_CHARS_MAX, annotation_color, color_of, label_words, worded};
use super::fields::Field;
use super::open::Entry;
use super::view_model::ViewModel;
use super::widget::Rgb;
use crate::data::annotations::{AnnotationList, AnnotationQuery};

/// An annotation on the plot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnnotationMark {
    /// Start and end: 0.0 left edge, 1.0 right edge.
    pub(crate) parts: [f64; 2],
    pub(crate) words: String,
    pub(crate) color: Option<Rgb>,
    pub(crate) is_chosen: bool,
}

/// An annotation on the waterfall.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WaterfallMark {
    /// Upper and lower edge: 0.0 upper edge of the waterfall, 1.0 lower edge.
    pub(crate) rows: [f64; 2],
    /// Left and right edge, within 0.0 and 1.0.
    pub(crate) parts: [f64; 2],
    pub(crate) words: String,
    pub(crate) color: Option<Rgb>,
    pub(crate) is_chosen: bool,
}

/// First sample, end, and lower and upper frequency of a range that was drawn.
type DrawnPart = (u64, u64, Option<(f64, f64)>);

impl ViewModel {
    /// The query for the list of annotations, while it is open.
    pub(super) fn annotation_query(&self) -> Option<AnnotationQuery> {
        let open = &self.open.annotations;
        let is_listed = open.is_open
            || self.open.list.is_some_and(|list| list.setting == super::setting::Setting::Annotations);
        is_listed.then(|| AnnotationQuery {
            words: open.filter.clone(),
            around: match (&open.chosen, self.controls.time.held_at()) {
                (Some(chosen), _) => chosen.first_sample_index,
                (None, Some(right)) => right.max(0.0) as u64,
                (None, None) => u64::MAX,
            },
        })
    }

    pub(crate) fn annotation_list(&self) -> Option<&AnnotationList> {
        self.seen.picture.listed.as_deref()
    }

    /// Destination of changes, in words.
    pub(crate) fn annotation_place(&self) -> &str {
        self.options.annotator.as_ref().map_or("kept in this session; R saves them", |it| &it.place)
    }

    /// Annotates the range between the cursors, or without cursors the box on the waterfall.
    pub(super) fn annotate_between_cursors(&mut self) {
        match self.between_cursors() {
            Some([from, to]) => self.begin_annotation(from, to, None),
            None if self.annotate_box() => {}
            None => {
                self.act(Action::Cursors);
                self.say("move the cursors to both ends of it (, . x), then annotate again (F2)".into());
            }
        }
    }

    /// The sample indices of the time cursors, in order.
    pub(super) fn between_cursors(&self) -> Option<[u64; 2]> {
        let times = self.controls.cursors.times?;
        let picture = &self.seen.picture;
        let reference = self.controls.time.reference(picture);
        let index = |time: f64| (reference + time * picture.rate_or_one()).round().max(0.0) as u64;
        let [a, b] = times.map(index);
        Some([a.min(b), a.max(b)])
    }

    /// Annotates a range that was drawn with the pointer.
    pub(super) fn annotate_part(&mut self, part: AnnotatedPart) {
        if let Some((from, to, band)) = self.part_of_signal(part) {
            self.begin_annotation(from, to, band);
        }
    }

    /// The samples and the frequencies of a range that was drawn with the pointer.
    pub(super) fn part_of_signal(&self, part: AnnotatedPart) -> Option<DrawnPart> {
        let AnnotatedPart { times: [a, b], frequencies } = part;
        let picture = &self.seen.picture;
        let (left, span) = match frequencies {
            None => (picture.left_index, picture.span_samples),
            Some(_) => self.waterfall_indices().map(|(bottom, top)| (bottom, top - bottom))?,
        };
        let index = |part: f64| (left + part.clamp(0.0, 1.0) * span).round().max(0.0) as u64;
        let band = frequencies.map(|[a, b]| {
            let (from, to, ..) = self.spectrum_axis(2);
            // Rounds to a thousandth of the visible range, or better: the resolution of a pointer.
            let step = 10f64.powf(((to - from) / 1e3).log10().floor());
            let hz = |part: f64| ((from + part.clamp(0.0, 1.0) * (to - from)) / step).round() * step;
            (hz(a.min(b)), hz(a.max(b)))
        });
        Some((index(a.min(b)), index(a.max(b)), band))
    }

    pub(super) fn begin_annotation(&mut self, from: u64, to: u64, band: Option<(f64, f64)>) {
        self.open.annotations.draft = Some(StreamAnnotation {
            first_sample_index: from,
            length_samples: to.saturating_sub(from),
            lower_edge_hz: band.map(|(low, _)| low),
            upper_edge_hz: band.map(|(_, high)| high),
            generator: Some("grebe view".into()),
            ..StreamAnnotation::default()
        });
        self.ask(Question::Annotation);
    }

    pub(super) fn finish_annotation(&mut self, text: &str) -> Result<(), String> {
        let Some(draft) = self.open.annotations.draft.clone() else { return Ok(()) };
        let annotation = worded(draft, text)?;
        self.open.annotations.draft = None;
        self.open.annotations.chosen = Some(annotation.clone());
        self.change(AnnotationEdit::Add(annotation));
        Ok(())
    }

    /// The text of the selected annotation, as typed.
    pub(super) fn annotation_words(&self) -> Option<String> {
        let chosen = self.open.annotations.chosen.as_ref()?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let behind: Vec<String> =
            [text(&chosen.comment), text(&chosen.color)].into_iter().filter(|it| !it.is_empty()).collect();
        let label = text(&chosen.label);
        Some(if behind.is_empty() { label } else { format!("{label}; {}", behind.join(" ")) })
    }

    pub(super) fn reword_annotation(&mut self, text: &str) -> Result<(), String> {
        let Some(chosen) = self.open.annotations.chosen.clone() else { return Ok(()) };
        let after = worded(chosen, text)?;
        self.replace_chosen(after);
        Ok(())
    }

    /// Moves the selected annotation to the range between the cursors.
    pub(super) fn move_annotation(&mut self) {
        let (Some(chosen), Some([from, to])) = (self.open.annotations.chosen.clone(), self.between_cursors())
        else {
            return self.say("choose an annotation (F4), and set the cursors to its ends (c)".into());
        };
        let length_samples = to - from;
        self.replace_chosen(StreamAnnotation { first_sample_index: from, length_samples, ..chosen });
    }

    fn replace_chosen(&mut self, after: StreamAnnotation) {
        let Some(before) = self.open.annotations.chosen.replace(after.clone()) else { return };
        if before != after {
            self.change(AnnotationEdit::Replace { before, after });
        }
    }

    pub(super) fn delete_annotation(&mut self) {
        match self.open.annotations.chosen.take() {
            Some(chosen) => {
                self.change(AnnotationEdit::Remove(chosen));
                self.say("deleted; F9 brings it back".into());
            }
            None => self.say("no annotation is chosen: take one from the table first (F4)".into()),
        }
    }

    pub(super) fn undo_annotation(&mut self) {
        let Some(last) = self.open.annotations.done.pop() else {
            return self.say("no annotation was changed here".into());
        };
        let undone = last.undone();
        self.open.annotations.chosen = match &undone {
            AnnotationEdit::Add(it) | AnnotationEdit::Replace { after: it, .. } => Some(it.clone()),
            AnnotationEdit::Remove(_) => None,
        };
        self.pass_on(undone);
    }

    fn change(&mut self, edit: AnnotationEdit) {
        let done = &mut self.open.annotations.done;
        if done.len() == UNDO_MAX {
            done.remove(0);
        }
        done.push(edit.clone());
        self.pass_on(edit);
    }

    fn pass_on(&mut self, edit: AnnotationEdit) {
        match &self.options.annotator {
            Some(annotator) => self.open.keeping.push((annotator.edit)(edit)),
            None => self.link.annotate(edit),
        }
        self.seen.hud_made_ns = 0;
    }

    /// Shows an annotation of the list, and selects it.
    pub(super) fn show_annotation(&mut self, place: usize) {
        let row = self.annotation_list().and_then(|list| list.rows.get(place)).cloned();
        let Some(annotation) = row else { return };
        let (first, length) = (annotation.first_sample_index as f64, annotation.length_samples as f64);
        let picture = &self.seen.picture;
        if length > picture.span_samples {
            // A little wider than the annotation.
            let samples = length * 1.25;
            self.controls.time.show_stretch(picture, first + length / 2.0 + samples / 2.0, samples);
        } else {
            self.controls.time.show_at(picture, first + length / 2.0);
        }
        if let (Some(low), Some(high)) = (annotation.lower_edge_hz, annotation.upper_edge_hz) {
            self.show_band(low, high);
        }
        self.open.annotations.chosen = Some(annotation);
        self.seen.hud_made_ns = 0;
    }

    /// Time, duration and text of an annotation.
    pub(crate) fn annotation_row(&self, annotation: &StreamAnnotation) -> String {
        let (rate, unit) = (self.seen.picture.rate_or_one(), self.seen.picture.axis_unit());
        let time = |samples: u64| Engineering::new(samples as f64 / rate, unit);
        let mut words = time(annotation.first_sample_index).digits(9).to_string();
        if annotation.length_samples > 0 {
            words += &format!(" +{}", time(annotation.length_samples).digits(4));
        }
        let label = annotation.label.as_ref().or(annotation.comment.as_ref());
        format!("{words}  {}", label.map_or("", String::as_str))
    }

    /// Number of listed annotations, and of all.
    pub(crate) fn annotations_counted(&self) -> String {
        let Some(list) = self.annotation_list() else { return String::new() };
        let AnnotationList { rows, before, matching, all } = list;
        match (*matching, *all) {
            (_, 0) => "none yet: F2 annotates the range between the cursors".into(),
            (matching, all) if matching as usize > rows.len() => {
                format!("{} \u{2026} {} of {matching}, {all} in all", before + 1, before + rows.len() as u64)
            }
            (matching, all) if matching < all => format!("{matching} of {all}"),
            (_, all) => format!("{all}"),
        }
    }

    /// The list for a front end without panels: commands first, then each annotation.
    pub(super) fn annotation_entries(&self) -> Vec<Entry> {
        let deeds = DEEDS.map(|(words, _)| Entry { text: words.into(), is_on: false });
        let chosen = self.open.annotations.chosen.as_ref();
        let rows = self.annotation_list().map_or(&[][..], |list| &list.rows);
        let rows =
            rows.iter().map(|row| Entry { text: self.annotation_row(row), is_on: Some(row) == chosen });
        deeds.into_iter().chain(rows).collect()
    }

    pub(super) fn choose_annotation(&mut self, place: usize) {
        match DEEDS.get(place) {
            Some((_, action)) => {
                self.open.list = None;
                self.act(*action);
            }
            None => self.show_annotation(place - DEEDS.len()),
        }
    }

    /// Annotations on the traces.
    pub(crate) fn annotation_marks(&self) -> Vec<AnnotationMark> {
        let picture = &self.seen.picture;
        let part = |index: u64| (index as f64 - picture.left_index) / picture.span_samples;
        let chosen = self.open.annotations.chosen.as_ref();
        let of = |it: &StreamAnnotation| AnnotationMark {
            parts: [part(it.first_sample_index), part(it.end_index())],
            words: label_words(it),
            color: color_of(it),
            is_chosen: Some(it) == chosen,
        };
        let marks = picture.annotations.iter().map(|annotation| of(annotation));
        let mut marks: Vec<_> = marks.filter(|mark| mark.parts[1] >= 0.0 && mark.parts[0] <= 1.0).collect();
        let uncertain = self.uncertain_stretch().map(|(parts, words)| AnnotationMark {
            parts,
            words,
            color: None,
            is_chosen: false,
        });
        let boxed = self.controls.boxed.map(|it| AnnotationMark {
            parts: it.samples.map(part),
            words: "box".into(),
            color: None,
            is_chosen: true,
        });
        marks.extend(uncertain.into_iter().chain(boxed));
        marks
    }

    /// The same on the waterfall, and the box there. Annotations without frequencies cover its whole width.
    pub(crate) fn waterfall_marks(&self) -> Vec<WaterfallMark> {
        let chosen = self.open.annotations.chosen.as_ref();
        let of = |it: &StreamAnnotation| {
            let samples = [it.first_sample_index, it.end_index()];
            let (rows, parts) = self.waterfall_place(samples, [it.lower_edge_hz, it.upper_edge_hz])?;
            Some(WaterfallMark {
                rows,
                parts,
                words: it.label.clone().or(it.comment.clone()).unwrap_or_default(),
                color: color_of(it),
                is_chosen: Some(it) == chosen,
            })
        };
        let mut boxed = self.box_mark();
        let annotations = self.seen.picture.annotations.iter().filter_map(|annotation| of(annotation));
        let mut marks: Vec<WaterfallMark> = annotations.collect();
        if let Some(boxed) = &mut boxed {
            // An annotated box has the annotation's words before its own, which would lie over them.
            let is_same = |mark: &WaterfallMark| (mark.rows, mark.parts) == (boxed.rows, boxed.parts);
            if let Some(place) = marks.iter().position(is_same) {
                let mark = marks.remove(place);
                (boxed.words, boxed.color) = (format!("{}: {}", mark.words, boxed.words), mark.color);
            }
        }
        marks.extend(boxed);
        marks
    }

    /// Rows and parts of a [`WaterfallMark`]; `None` outside of the waterfall.
    pub(super) fn waterfall_place(
        &self,
        [first, end]: [u64; 2],
        [low, high]: [Option<f64>; 2],
    ) -> Option<([f64; 2], [f64; 2])> {
        let (bottom, top) = self.waterfall_indices()?;
        let (from, to, ..) = self.spectrum_axis(2);
        let row = |index: u64| (top - index as f64) / (top - bottom);
        let part = |hz: Option<f64>, edge: f64| hz.map_or(edge, |hz| (hz - from) / (to - from));
        let (rows, parts) = ([row(end), row(first)], [part(low, 0.0), part(high, 1.0)]);
        let is_there = rows[1] >= 0.0 && rows[0] <= 1.0 && parts[1] >= 0.0 && parts[0] <= 1.0;
        is_there.then(|| (rows.map(|row| row.clamp(0.0, 1.0)), parts.map(|part| part.clamp(0.0, 1.0))))
    }

    /// The indices at the lower and the upper edge of the waterfall.
    fn waterfall_indices(&self) -> Option<(f64, f64)> {
        let times = self.waterfall_times()?;
        let picture = &self.seen.picture;
        let reference = self.controls.time.reference(picture);
        let index = |time: f64| reference + time * picture.rate_or_one();
        Some((index(times.bottom), index(times.top)))
    }

    pub(super) fn annotation_field(&self, field: Field) -> String {
        let open = &self.open.annotations;
        let text = |of: fn(&StreamAnnotation) -> &Option<String>| {
            open.chosen.as_ref().and_then(|chosen| of(chosen).clone()).unwrap_or_default()
        };
        let hertz = |of: fn(&StreamAnnotation) -> Option<f64>| {
            let hz = open.chosen.as_ref().and_then(of);
            hz.map_or(String::new(), |hz| Engineering::new(hz, "Hz").digits(9).to_string())
        };
        match field {
            Field::AnnotationLabel => text(|it| &it.label),
            Field::AnnotationComment => text(|it| &it.comment),
            Field::AnnotationColor => text(|it| &it.color),
            Field::AnnotationLow => hertz(|it| it.lower_edge_hz),
            Field::AnnotationHigh => hertz(|it| it.upper_edge_hz),
            _ => open.filter.clone(),
        }
    }

    pub(super) fn set_annotation_field(&mut self, field: Field, text: &str, hz: f64) -> Result<(), String> {
        let text: String = text.trim().chars().take(TEXT_CHARS_MAX).collect();
        let some = Some(text.clone()).filter(|text| !text.is_empty());
        if field == Field::AnnotationFilter {
            self.open.annotations.filter = text;
            return Ok(());
        }
        let Some(mut after) = self.open.annotations.chosen.clone() else { return Ok(()) };
        let hz = (!text.is_empty()).then_some(hz);
        match field {
            Field::AnnotationLabel => after.label = some,
            Field::AnnotationComment => after.comment = some,
            Field::AnnotationColor => after.color = annotation_color(&text)?,
            Field::AnnotationLow => after.lower_edge_hz = hz,
            _ => after.upper_edge_hz = hz,
        }
        self.replace_chosen(after);
        Ok(())
    }
}

/// Commands of the list.
const DEEDS: [(&str, Action); 5] = [
    ("new, between the cursors  (F2)", Action::Annotate),
    ("edit the chosen  (F8)", Action::EditAnnotation),
    ("delete the chosen  (del)", Action::DeleteAnnotation),
    ("undo  (F9)", Action::UndoAnnotation),
    ("those with some words \u{2026}", Action::Ask(Question::AnnotationFilter)),
];
const UNDO_MAX: usize = 200;

#[cfg(test)]
mod tests;
