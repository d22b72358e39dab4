//! Changes to the source by viewers with `Right::Control`: its generator, its receiver, saved ranges, annotations.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grebe_frame::{AnnotationEdit, StreamAnnotation};
use serde::{Deserialize, Serialize};

use crate::model::generator::{GeneratorRemote, GeneratorWish};
use crate::model::keeper::{Annotator, KeptStretch, StretchKeeper};
use crate::model::receiver::{ReceiverRemote, Tuned};

/// Rights of a viewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// May view the stream.
    Look,
    /// May also control the source and save ranges of it.
    Control,
}

/// Controls of a source.
#[derive(Default)]
pub struct SourceControls {
    /// Its generator, if it accepts changes.
    pub generator: Option<GeneratorRemote>,
    /// Its receiver, if it can be tuned.
    pub receiver: Option<ReceiverRemote>,
    /// Saves ranges of its stream, if something records it.
    pub keeper: Option<StretchKeeper>,
    /// Takes changes to its annotations, if it has a place for them.
    pub annotator: Option<Annotator>,
}

/// Controls that all viewers of a server share. Clones share one state.
#[derive(Clone, Default)]
pub struct SharedControls(Arc<Mutex<SourceControls>>);

/// A viewer's request to change the source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wish {
    /// Samples per second and channel of the generator.
    Rate(f64),
    /// Pauses the generator, or resumes it.
    Pause,
    Wave(String),
    Tune(Tuned),
    Keep(RemoteStretch),
    Annotate(Box<RemoteEdit>),
}

/// A change to the annotations. The answer carries its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RemoteEdit {
    pub(crate) number: u64,
    edit: AnnotationEdit,
}

/// A range to save. The answer carries its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RemoteStretch {
    pub(crate) number: u64,
    /// `None`: the newest samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    samples: Option<(u64, u64)>,
    #[serde(default)]
    rate_hz: f64,
}

/// The controls that a source offers, as the welcome message states them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Offered {
    /// Waveforms of the generator.
    pub(crate) waves: Option<Vec<String>>,
    /// The receiver's present tuning.
    pub(crate) tuned: Option<Tuned>,
    /// Length that `keep` saves, in words.
    pub(crate) keeps: Option<String>,
    /// Destination of changed annotations, in words.
    pub(crate) annotates: Option<String>,
}

impl SharedControls {
    /// Wraps the controls of a source.
    pub fn new(controls: SourceControls) -> SharedControls {
        SharedControls(Arc::new(Mutex::new(controls)))
    }

    pub(super) fn offered(&self) -> Offered {
        let controls = self.lock();
        Offered {
            waves: controls.generator.as_ref().map(|it| it.waves.clone()),
            tuned: controls.receiver.as_ref().map(|it| (it.tuned)()),
            keeps: controls.keeper.as_ref().map(|it| it.last.clone()),
            annotates: controls.annotator.as_ref().map(|it| it.place.clone()),
        }
    }

    pub(super) fn tuned(&self) -> Option<Tuned> {
        self.lock().receiver.as_ref().map(|it| (it.tuned)())
    }

    /// Passes a request to the source without waiting. The outcome of a save arrives as one line.
    ///
    /// # Errors
    /// One line for a person.
    pub(super) fn obey(&self, wish: &Wish) -> Result<Option<Receiver<String>>, String> {
        let controls = self.lock();
        let tell = |wish: GeneratorWish| match &controls.generator {
            Some(generator) => (generator.tell)(wish),
            None => Err("this stream's generator takes no orders".into()),
        };
        match wish {
            Wish::Rate(rate_hz) if !(1.0..=RATE_HZ_MAX).contains(rate_hz) => {
                Err(format!("{rate_hz} is not a sample rate"))
            }
            Wish::Rate(rate_hz) => tell(GeneratorWish::Rate(*rate_hz)).map(|()| None),
            Wish::Pause => tell(GeneratorWish::TogglePause).map(|()| None),
            Wish::Wave(name) => {
                let waves = controls.generator.as_ref().map_or(&[][..], |it| &it.waves);
                match waves.iter().find(|it| *it == name) {
                    Some(wave) => tell(GeneratorWish::Wave(wave.clone())).map(|()| None),
                    None => {
                        Err(format!("the generator makes no {:?}", name.chars().take(40).collect::<String>()))
                    }
                }
            }
            Wish::Tune(tuned) => {
                let receiver = controls.receiver.as_ref();
                let receiver = receiver.ok_or("this stream has no receiver that can be tuned")?;
                if !tuned.is_possible() {
                    return Err("no receiver can be tuned so".into());
                }
                (receiver.tune)(*tuned).map(|()| None)
            }
            Wish::Keep(stretch) => {
                let keeper =
                    controls.keeper.as_ref().ok_or("nothing is kept there: grebe serve --ring DIR")?;
                let stretch = stretch.stretch().ok_or("no samples are in that stretch")?;
                Ok(Some((keeper.keep)(stretch)))
            }
            Wish::Annotate(wanted) => {
                let annotator = controls.annotator.as_ref().ok_or("annotations cannot be changed there")?;
                Ok(Some((annotator.edit)(bounded(&wanted.edit)?)))
            }
        }
    }

    /// Controls for the model of one viewer. `changed` receives a line about each change.
    pub(crate) fn for_viewer(&self, right: Right, changed: &Arc<Mutex<Option<String>>>) -> SourceControls {
        let Offered { waves, tuned, keeps, annotates } = self.offered();
        let obey = || {
            let (controls, changed) = (self.clone(), Arc::clone(changed));
            move |wish: Wish| {
                if right == Right::Look {
                    return Err(MAY_NOT.to_owned());
                }
                let done = controls.obey(&wish)?;
                *changed.lock().unwrap_or_else(PoisonError::into_inner) = Some(wish.words());
                Ok(done)
            }
        };
        SourceControls {
            generator: waves.map(|waves| {
                let obey = obey();
                GeneratorRemote { waves, tell: Box::new(move |wish| obey(Wish::of(wish)).map(drop)) }
            }),
            receiver: tuned.map(|first| {
                let (obey, controls) = (obey(), self.clone());
                ReceiverRemote {
                    tuned: Box::new(move || {
                        let now = controls.lock().receiver.as_ref().map(|it| (it.tuned)());
                        now.unwrap_or(first)
                    }),
                    tune: Box::new(move |tuned| obey(Wish::Tune(tuned)).map(drop)),
                }
            }),
            keeper: keeps.map(|last| {
                let obey = obey();
                let keep = move |stretch| match obey(Wish::Keep(RemoteStretch::new(0, stretch))) {
                    Ok(Some(told)) => told,
                    done => {
                        let why = done.err().unwrap_or_else(|| "this stream has no keeper".into());
                        said(format!("not kept: {why}"))
                    }
                };
                StretchKeeper { last, keep: Box::new(keep) }
            }),
            annotator: annotates.map(|place| {
                let obey = obey();
                let edit = move |edit| match obey(Wish::Annotate(Box::new(RemoteEdit { number: 0, edit }))) {
                    Ok(Some(told)) => told,
                    done => said(format!("not changed: {}", done.err().unwrap_or_default())),
                };
                Annotator { place, edit: Box::new(edit) }
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SourceControls> {
        // Every change leaves it valid, so a panic elsewhere does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wish {
    fn of(wish: GeneratorWish) -> Wish {
        match wish {
            GeneratorWish::Rate(rate_hz) => Wish::Rate(rate_hz),
            GeneratorWish::TogglePause => Wish::Pause,
            GeneratorWish::Wave(name) => Wish::Wave(name),
        }
    }

    /// Describes a request, for the person at the server.
    pub(super) fn words(&self) -> String {
        match self {
            Wish::Rate(rate_hz) => format!("the generator at {rate_hz} samples a second"),
            Wish::Pause => "the generator paused, or going on".into(),
            Wish::Wave(name) => format!("the waveform {name}"),
            Wish::Tune(Tuned { frequency_hz, rate_hz, gain_db }) => {
                let gain = gain_db.map_or("its own gain".to_owned(), |db| format!("{db} dB"));
                format!("the receiver at {frequency_hz} Hz, {rate_hz} samples a second, {gain}")
            }
            Wish::Annotate(edit) => match &edit.edit {
                AnnotationEdit::Add(_) => "an annotation added".into(),
                AnnotationEdit::Replace { .. } => "an annotation changed".into(),
                AnnotationEdit::Remove(_) => "an annotation removed".into(),
            },
            Wish::Keep(RemoteStretch { samples: None, .. }) => "what came last kept".into(),
            Wish::Keep(RemoteStretch { samples: Some((from, to)), .. }) => {
                format!("samples {from} to {to} kept")
            }
        }
    }
}

/// Checks that a change's texts are within the limits for streams.
fn bounded(edit: &AnnotationEdit) -> Result<AnnotationEdit, String> {
    let is_long = |it: &StreamAnnotation| it.text_bytes() > TEXT_BYTES_MAX;
    let is_long = match edit {
        AnnotationEdit::Add(it) | AnnotationEdit::Remove(it) => is_long(it),
        AnnotationEdit::Replace { before, after } => is_long(before) || is_long(after),
    };
    if is_long { Err("its words are too long".into()) } else { Ok(edit.clone()) }
}

fn said(words: String) -> Receiver<String> {
    let (tell, told) = channel();
    // The receiver is still in scope, so the channel is open.
    let _ = tell.send(words);
    told
}

impl RemoteStretch {
    fn new(number: u64, stretch: KeptStretch) -> RemoteStretch {
        match stretch {
            KeptStretch::Last => RemoteStretch { number, samples: None, rate_hz: 0.0 },
            KeptStretch::Screen { samples, rate_hz } => {
                RemoteStretch { number, samples: Some((samples.start, samples.end)), rate_hz }
            }
        }
    }

    fn stretch(&self) -> Option<KeptStretch> {
        let Some((start, end)) = self.samples else { return Some(KeptStretch::Last) };
        let rate_hz = self.rate_hz;
        // The keeper counts in seconds.
        let is_good = start < end && rate_hz.is_finite() && ((end - start) as f64 / rate_hz) < SPAN_S_MAX;
        (is_good && rate_hz > 0.0).then_some(KeptStretch::Screen { samples: start..end, rate_hz })
    }
}

/// Requests from a viewer's front end that wait for its connection. Clones share one state.
#[derive(Clone)]
pub(super) struct Wishes {
    wanted: Arc<Mutex<Wanted>>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Wanted {
    may_control: bool,
    is_open: bool,
    offered: Offered,
    waiting: VecDeque<Wish>,
    /// Receivers that wait for the outcome of a save.
    kept: Vec<(u64, Sender<String>)>,
    number: u64,
}

impl Wishes {
    pub(super) fn new(wake: Arc<dyn Fn() + Send + Sync>) -> Wishes {
        Wishes { wanted: Arc::default(), wake }
    }

    /// Called when the server has let this viewer in.
    pub(super) fn open(&self, may_control: bool, offered: Offered) {
        let mut wanted = self.lock();
        (wanted.may_control, wanted.is_open, wanted.offered) = (may_control, true, offered);
    }

    /// Called when the connection is lost.
    pub(super) fn close(&self) {
        let mut wanted = self.lock();
        wanted.is_open = false;
        wanted.waiting.clear();
        for (_, said) in wanted.kept.drain(..) {
            // The receiver may be gone.
            let _ = said.send("the connection was cut: the outcome is unknown".into());
        }
    }

    pub(super) fn next(&self) -> Option<Wish> {
        self.lock().waiting.pop_front()
    }

    /// Stores the tuning that the server reports.
    pub(super) fn is_tuned(&self, tuned: Option<Tuned>) {
        self.lock().offered.tuned = tuned;
    }

    /// Stores the outcome of a save.
    pub(super) fn kept(&self, number: u64, words: String) {
        let mut wanted = self.lock();
        if let Some(place) = wanted.kept.iter().position(|(it, _)| *it == number) {
            let (_, said) = wanted.kept.swap_remove(place);
            let _ = said.send(words);
        }
    }

    /// The controls for a front end here. A viewer without the right gets an error when it uses one.
    pub(super) fn controls(&self) -> SourceControls {
        let Offered { waves, tuned, keeps, annotates } = self.lock().offered.clone();
        SourceControls {
            generator: waves.map(|waves| {
                let wishes = self.clone();
                let tell = move |wish| wishes.wish(Wish::of(wish));
                GeneratorRemote { waves, tell: Box::new(tell) }
            }),
            receiver: tuned.filter(Tuned::is_possible).map(|first| {
                let (now, wishes) = (self.clone(), self.clone());
                let tuned = move || now.lock().offered.tuned.filter(Tuned::is_possible).unwrap_or(first);
                let tune = move |tuned| wishes.wish(Wish::Tune(tuned));
                ReceiverRemote { tuned: Box::new(tuned), tune: Box::new(tune) }
            }),
            keeper: keeps.map(|last| {
                let wishes = self.clone();
                let keep = move |stretch| {
                    wishes.numbered("kept", |number| Wish::Keep(RemoteStretch::new(number, stretch)))
                };
                StretchKeeper { last, keep: Box::new(keep) }
            }),
            annotator: annotates.map(|place| {
                let wishes = self.clone();
                let edit = move |edit| {
                    wishes.numbered("changed", |number| Wish::Annotate(Box::new(RemoteEdit { number, edit })))
                };
                Annotator { place, edit: Box::new(edit) }
            }),
        }
    }

    /// Sends a request whose outcome arrives as a line. `done` names the deed for the message of a refusal.
    fn numbered(&self, done: &str, wish: impl FnOnce(u64) -> Wish) -> Receiver<String> {
        let (said, told) = channel();
        let number = {
            let mut wanted = self.lock();
            wanted.number += 1;
            if wanted.kept.len() == KEPT_MAX {
                wanted.kept.remove(0);
            }
            let number = wanted.number;
            wanted.kept.push((number, said));
            number
        };
        if let Err(why) = self.wish(wish(number)) {
            self.kept(number, format!("not {done}: {why}"));
        }
        told
    }

    fn wish(&self, wish: Wish) -> Result<(), String> {
        let mut wanted = self.lock();
        if !wanted.is_open {
            return Err("no connection to the server: nothing was changed".into());
        }
        if !wanted.may_control {
            return Err(MAY_NOT.into());
        }
        if wanted.waiting.len() == WISHES_MAX {
            return Err("the connection takes nothing in: nothing was changed".into());
        }
        if let Wish::Tune(tuned) = &wish {
            // Further relative changes count from the requested tuning.
            wanted.offered.tuned = Some(*tuned);
        }
        wanted.waiting.push_back(wish);
        drop(wanted);
        (self.wake)();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SharedControls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedControls").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SourceControls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceControls")
            .field("generator", &self.generator.is_some())
            .field("receiver", &self.receiver.is_some())
            .field("keeper", &self.keeper.is_some())
            .field("annotator", &self.annotator.is_some())
            .finish()
    }
}

impl std::fmt::Debug for Wishes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wishes").finish_non_exhaustive()
    }
}

/// Error for a viewer without the right to control.
pub(super) const MAY_NOT: &str =
    "your link allows viewing only: the person who started grebe serve has another one, with --control";
const RATE_HZ_MAX: f64 = 10e9;
/// Above any range that a keeper can hold.
const SPAN_S_MAX: f64 = 1e9;
const WISHES_MAX: usize = 64;
const TEXT_BYTES_MAX: usize = 1 << 10;
const KEPT_MAX: usize = 16;
