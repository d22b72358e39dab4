//! `grebe find`: lists the events of a recording.

mod event;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Result;
use grebe_frame::Component;
use grebe_recording::{Annotation, AnnotationEdit, SampleFile};
use grebe_view::LaneId;

use self::event::{Event, Form};
use crate::cli::{EventKind, Find};
use crate::ending::{Ending, Usage};
use crate::interrupt;
use crate::output::{self, note};
use crate::search::{Hit, Search, Signal, Wanted, annotation_fields};
use crate::units::{counted, grouped};

/// Prints events as they are found, and writes annotations at the end.
pub(crate) fn run(options: &Find) -> Result<Ending> {
    let whole = SampleFile::open(&options.file)?;
    whole.notes().iter().for_each(|line| note!("grebe: {line}"));
    if options.annotate {
        // Before an hour of searching.
        SampleFile::annotation_place(&options.file)?;
    }
    interrupt::catch();
    let first_index = whole.segments()[0].first_sample_index;
    let (start, duration) = options.range.times(|| Ok(SampleFile::open(&options.file)?))?;
    let file = whole.stretch(start, duration)?;
    note_counts(&file, options);
    let mut telling = Printer::new(options, first_index);
    output::text(&telling.form.head(options.trigger))?;
    let (ending, searched_samples) = match options.trigger {
        EventKind::Gap => (telling.gaps(&file)?, file.len_samples()),
        _ => telling.lanes(file, options)?,
    };
    note!("found {} in {} per channel", counted(telling.told, "event"), counted(searched_samples, "sample"));
    if telling.told > EVENTS_USUAL && options.max.is_none() && options.trigger != EventKind::Gap {
        note!(
            "grebe: one in {} samples is an event: if the level is right, --holdoff 10ms leaves out those that follow one closely, \
             and --max 100 takes the first 100",
            grouped(searched_samples / telling.told)
        );
    }
    if options.annotate && ending == Ending::Good {
        annotate(&options.file, telling.annotations)?;
    }
    Ok(ending)
}

/// Writes annotations into a recording; of channels with files of their own, each into its file.
fn annotate(path: &Path, annotations: Vec<(Option<usize>, Annotation)>) -> Result<()> {
    let channels = SampleFile::channel_recordings(path)?;
    let mut edits: BTreeMap<&Path, Vec<AnnotationEdit<Annotation>>> = BTreeMap::from([(path, Vec::new())]);
    let all = annotations.len();
    for (channel, annotation) in annotations {
        let own = channel.and_then(|channel| channels.get(channel)).map_or(path, PathBuf::as_path);
        edits.entry(own).or_default().push(AnnotationEdit::Add(annotation));
    }
    let (mut added, mut places) = (0, Vec::new());
    for (own, edits) in edits.iter().filter(|(_, edits)| !edits.is_empty()) {
        let edited = SampleFile::edit_annotations(own, edits)?;
        added += edited.added;
        places.extend(edited.places);
    }
    let existed = match all - added {
        0 => String::new(),
        existed => format!(", {} existed already", grouped(existed as u64)),
    };
    let place = match &places[..] {
        [place] => place.display().to_string(),
        [] => path.display().to_string(),
        places => format!("{} files of {}", places.len(), path.display()),
    };
    note!("wrote {} into {place}{existed}", counted(added as u64, "annotation"));
    Ok(())
}

/// Reports that levels are in counts, if the recording states no unit.
fn note_counts(file: &SampleFile, options: &Find) {
    let conditions = &options.conditions;
    let has_level = conditions.level.or(conditions.low).or(conditions.high).is_some();
    let is_in_db = matches!(options.trigger, EventKind::Power | EventKind::Silence);
    let is_real = matches!(file.format().component(), Component::F32 | Component::F64);
    let channels = file.description(0).map_or(&[][..], |description| &description.channels);
    if has_level && !is_in_db && !is_real && channels.iter().all(|channel| channel.unit.is_empty()) {
        note!("grebe: the recording states no unit: levels are in counts of {}", file.format());
    }
}

/// Printer of events.
struct Printer<'a> {
    options: &'a Find,
    form: Form,
    /// Index of the recording's first sample.
    first_index: u64,
    told: u64,
    /// By channel.
    annotations: Vec<(Option<usize>, Annotation)>,
    lines: String,
}

impl<'a> Printer<'a> {
    fn new(options: &'a Find, first_index: u64) -> Self {
        let form = match options {
            Find { json: true, .. } => Form::Json,
            Find { csv: true, .. } => Form::Csv,
            _ => Form::Text,
        };
        Self { options, form, first_index, told: 0, annotations: Vec::new(), lines: String::new() }
    }

    /// Lists gaps, without reading samples.
    fn gaps(&mut self, file: &SampleFile) -> Result<Ending> {
        let gaps = file.gaps().map(|gap| Event {
            kind: EventKind::Gap,
            lane: None,
            position: gap.position,
            length_samples: gap.length_samples,
            clock_s: None,
            burst: None,
        });
        let by_clock = file.clock_gaps().map(|gap| Event {
            kind: EventKind::Gap,
            lane: None,
            position: gap.position,
            length_samples: 0,
            clock_s: Some(gap.seconds),
            burst: None,
        });
        let mut events: Vec<Event> = gaps.chain(by_clock).collect();
        self.print(&mut events, file)?;
        Ok(Ending::Good)
    }

    /// Searches lanes: the ending, and the number of searched samples.
    fn lanes(&mut self, mut file: SampleFile, options: &Find) -> Result<(Ending, u64)> {
        Signal::check_band_of(&file, "--band", options.conditions.band)?;
        let mut searches = searches(&Signal::of(&file), options)?;
        learn(&mut searches, &mut file, 0)?;
        let mut centre_hz = Signal::of(&file).centre_hz();
        let block_samples =
            if options.trigger == EventKind::Burst { BURST_BLOCK_SAMPLES } else { BLOCK_SAMPLES };
        let progress = output::bar(Some(file.len_samples()));
        let (mut hits, mut events) = (Vec::new(), Vec::new());
        // Missing samples so far, so that indices grow across gaps; and the start of another stream.
        let (mut missing, mut end_index) = (0u64, None);
        for segment in file.segments().to_vec() {
            let gap = end_index.map_or(Some(0), |end| segment.first_sample_index.checked_sub(end));
            if gap != Some(0) {
                end_all(&mut searches, missing, &mut hits, &mut events, options.trigger);
                self.print(&mut events, &file)?;
                missing = missing.saturating_add(gap.unwrap_or(0).max(1));
            }
            end_index = Some(segment.first_sample_index + segment.length_samples);
            let mut position = segment.position;
            let end = segment.position + segment.length_samples;
            while position < end {
                if interrupt::is_pending() || self.is_enough() {
                    progress.finish_and_clear();
                    let is_enough = self.is_enough();
                    return Ok((if is_enough { Ending::Good } else { Ending::Interrupted }, position));
                }
                let signal = Signal::at(&file, position);
                if options.trigger == EventKind::Burst && signal.centre_hz() != centre_hz {
                    // Tuned to other frequencies.
                    end_all(&mut searches, missing, &mut hits, &mut events, options.trigger);
                    centre_hz = signal.centre_hz();
                    searches = self::searches(&signal, options)?;
                    learn(&mut searches, &mut file, position)?;
                }
                let length = block_samples.min(end - position).min(file.described_samples(position));
                let block = file.block(position, length as usize)?;
                for (lane, search) in &mut searches {
                    search.scan(position + missing, &block, &mut hits)?;
                    take(&mut hits, *lane, missing, &mut events, options.trigger);
                }
                self.print(&mut events, &file)?;
                position += length;
                progress.set_position(position);
            }
        }
        end_all(&mut searches, missing, &mut hits, &mut events, options.trigger);
        self.print(&mut events, &file)?;
        progress.finish_and_clear();
        Ok((Ending::Good, file.len_samples()))
    }

    fn is_enough(&self) -> bool {
        self.options.max.is_some_and(|max| self.told >= max)
    }

    /// Prints events, and keeps them for annotations.
    fn print(&mut self, events: &mut Vec<Event>, file: &SampleFile) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        events.sort_by_key(|event| event.position);
        for event in events.drain(..) {
            if self.is_enough() {
                break;
            }
            self.told += 1;
            self.form.write(&event, file, self.first_index, &mut self.lines);
            if self.options.annotate {
                if self.annotations.len() == ANNOTATIONS_MAX {
                    let what = "a recording has a million annotations at most, and there are more events: raise the level or --holdoff, or give --max";
                    return Err(Usage(what.to_owned()).into());
                }
                let channel = event.lane.map(|lane| lane.channel);
                self.annotations.push((channel, self.annotation(&event, file)));
            }
        }
        output::text(&self.lines)?;
        self.lines.clear();
        Ok(())
    }

    fn annotation(&self, event: &Event, file: &SampleFile) -> Annotation {
        let label = self.options.label.as_deref().unwrap_or(event.kind.name());
        let fields = annotation_fields(label, "grebe find", event.lane, event.burst.as_ref());
        // Missing samples have no place in the file.
        let length_samples = if event.kind == EventKind::Gap { 0 } else { event.length_samples };
        Annotation { position: event.position + file.skipped_samples(), length_samples, fields }
    }
}

/// The search of each lane.
fn searches(signal: &Signal, options: &Find) -> Result<Vec<(LaneId, Box<dyn Search>)>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let search = |lane| {
        let wanted = Wanted::of("--trigger", options.trigger, &options.conditions, lane, signal)?;
        Ok((lane, wanted.with_threads(threads).search(lane, signal)?))
    };
    signal.lanes(&options.conditions.lanes())?.into_iter().map(search).collect()
}

/// Learns the noise of the samples that are described as those at a position.
fn learn(searches: &mut [(LaneId, Box<dyn Search>)], file: &mut SampleFile, position: u64) -> Result<()> {
    let samples = file.described_samples(position).min(file.len_samples() - position);
    for (_, search) in searches {
        for Range { start, end } in search.pieces(samples) {
            search.learn(&file.block(position + start, (end - start) as usize)?)?;
        }
    }
    Ok(())
}

/// Ends lasting events at the end of the file.
fn end_all(
    searches: &mut [(LaneId, Box<dyn Search>)],
    missing: u64,
    hits: &mut Vec<Hit>,
    events: &mut Vec<Event>,
    kind: EventKind,
) {
    for (lane, search) in searches {
        search.end(hits);
        take(hits, *lane, missing, events, kind);
    }
}

fn take(hits: &mut Vec<Hit>, lane: LaneId, missing: u64, events: &mut Vec<Event>, kind: EventKind) {
    let event = |hit: Hit| Event {
        kind,
        lane: Some(hit.lane(lane)),
        position: hit.index - missing,
        length_samples: hit.length_samples,
        clock_s: None,
        burst: hit.burst,
    };
    events.extend(hits.drain(..).map(event));
}

/// For one channel of 16 bits, the share of a second-level cache.
const BLOCK_SAMPLES: u64 = 64 << 10;
/// More are hardly what somebody looks for.
const EVENTS_USUAL: u64 = 10_000;
/// For one channel of complex floats, enough transforms for several threads.
const BURST_BLOCK_SAMPLES: u64 = 256 << 10;
/// Maximum of a recording.
const ANNOTATIONS_MAX: usize = 1 << 20;
