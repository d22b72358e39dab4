//! Saves ranges of the ring that records the stream of a scope.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use grebe_process::Error as ProcessError;
use grebe_recording::{Error, RingStretch, save_ring};
use grebe_ring::Cancel;
use grebe_scope::Engineering;
use grebe_stages::Uri;
use grebe_view::{KeptStretch, StretchKeeper};

use crate::interrupt;
use crate::output::note;
use crate::saved_range::SavedRange;
use crate::show::rings;

/// Ring with its running saves. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct RingSaver {
    ring: Ring,
    last: Duration,
    saves: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

/// Location of the ring.
#[derive(Debug, Clone)]
enum Ring {
    In(PathBuf),
    /// Found through the recorder of this stream at the first save; the viewer may be remote.
    Of {
        stream: String,
        here: &'static str,
    },
}

impl RingSaver {
    /// For the ring in a folder, which may be the shown one, or the ring that a recorder on this machine keeps of a stream, found
    /// on demand. `None` for a stream that no other process can read. `last` is the length of a save, 20 s by default.
    pub(crate) fn of_stream(stream: &Uri, folder: Option<&Path>, last: Option<Duration>) -> Option<Self> {
        let is_shared = stream.traits().is_shared;
        let folder = folder.or(match stream {
            Uri::File(ring) if ring.is_dir() => Some(ring),
            _ => None,
        });
        let found = || Ring::Of { stream: stream.to_string(), here: "here" };
        let ring = folder.map(|folder| Ring::In(folder.to_owned())).or_else(|| is_shared.then(found))?;
        Some(Self { ring, last: last.unwrap_or(LAST), saves: Arc::default() })
    }

    /// The same for remote viewers.
    pub(crate) fn for_others(mut self) -> Self {
        if let Ring::Of { here, .. } = &mut self.ring {
            *here = "there";
        }
        self
    }

    /// The save function for a scope.
    pub(crate) fn for_scope(&self) -> StretchKeeper {
        let keeper = self.clone();
        StretchKeeper {
            last: format!("the last {}", Engineering::new(self.last.as_secs_f64(), "s")),
            keep: Box::new(move |stretch| keeper.keep(stretch)),
        }
    }

    /// The folder of the ring, if found now; the search takes as long as for a save.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.ring.clone().folder().ok()
    }

    /// Saves in a thread, because a scope must not wait.
    fn keep(&self, stretch: KeptStretch) -> Receiver<String> {
        let (said, told) = channel();
        let (ring, stretch) = (self.ring.clone(), self.stretch(stretch));
        let save = std::thread::Builder::new().name("grebe-save".into());
        let mut saves = self.saves.lock().unwrap_or_else(PoisonError::into_inner);
        saves.retain(|save| !save.is_finished());
        match save.spawn({
            let said = said.clone();
            move || report(ring.folder().and_then(|folder| save_in(&folder, &stretch)), &said)
        }) {
            Ok(save) => saves.push(save),
            Err(error) => report(Err(format!("not saved: {error}")), &said),
        }
        told
    }

    fn stretch(&self, stretch: KeptStretch) -> RingStretch {
        match stretch {
            KeptStretch::Last => RingStretch { before: self.last, ..RingStretch::default() },
            KeptStretch::Screen { samples: Range { start, end }, rate_hz } => {
                let time = |samples: u64| Duration::from_secs_f64(samples as f64 / rate_hz);
                // The last visible sample has arrived; the next one may never arrive.
                let at = end.saturating_sub(1);
                RingStretch {
                    at: Some(at),
                    before: time(at.saturating_sub(start)),
                    after: time(1),
                    ..RingStretch::default()
                }
            }
        }
    }

    /// Waits for running saves, after the scope has ended.
    pub(crate) fn finish(&self) {
        let saves = std::mem::take(&mut *self.saves.lock().unwrap_or_else(PoisonError::into_inner));
        if saves.iter().any(|save| !save.is_finished()) {
            note!("grebe: waiting for a save");
        }
        for save in saves {
            // A panic was reported already.
            let _ = save.join();
        }
    }
}

impl Ring {
    fn folder(self) -> Result<PathBuf, String> {
        match self {
            Self::In(folder) => Ok(folder),
            Self::Of { stream, here } => rings::of_stream(&stream, here),
        }
    }
}

fn save_in(folder: &Path, stretch: &RingStretch) -> Result<String, String> {
    // An interruption ends the wait for new samples; available ones are saved.
    let cancel: Cancel = interrupt::cancel();
    let saved = save_ring(folder, None, stretch, &cancel).map_err(|error| refused(folder, &error))?;
    let kept = SavedRange::of(saved).map_err(|error| format!("not saved: {error:#}"))?;
    let missing = kept.missing().map_or(String::new(), |missing| format!("; {missing}"));
    Ok(format!("{}{missing}", kept.short_words()))
}

fn refused(folder: &Path, error: &Error) -> String {
    match error {
        Error::Process(ProcessError::Setting { what: "the sample to keep", .. }) => {
            format!(
                "not saved: the ring in {} does not reach back to the range on the screen",
                folder.display()
            )
        }
        error => format!("not saved: {error}"),
    }
}

/// Reports to the scope, or to the terminal once the scope is gone.
fn report(said: Result<String, String>, scope: &Sender<String>) {
    let (Ok(words) | Err(words)) = said;
    if let Err(unsaid) = scope.send(words) {
        note!("grebe: {}", unsaid.0);
    }
}

/// Default length of a save.
const LAST: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use grebe_recording::{SampleFile, SigmfSettings, SigmfWriter};

    use super::*;

    fn keeper_of(folder: &Path, last_ms: u64) -> RingSaver {
        let last = Some(Duration::from_millis(last_ms));
        RingSaver::of_stream(&"shm://adc".parse().unwrap(), Some(folder), last).unwrap()
    }

    /// A ring of two parts: samples 1,000 to 1,500 and, after a gap, 1,600 to 2,000, at 1 kS/s.
    fn ring(folder: &Path) -> RingSaver {
        for (part, samples) in [(1, 1_000..1_500), (2, 1_600..2_000)] {
            let settings = SigmfSettings { sample_rate_hz: 1e3, ..SigmfSettings::default() };
            let mut writer = SigmfWriter::create(&folder.join(format!("ring_{part:06}")), &settings).unwrap();
            let first: i16 = samples.start;
            writer.write(first as u64, &[&samples.collect::<Vec<i16>>()]).unwrap();
            writer.finish().unwrap();
        }
        keeper_of(folder, 300)
    }

    /// The report, and the samples of the recording that it names.
    fn kept(keeper: &RingSaver, stretch: KeptStretch) -> (String, Vec<i16>) {
        let said = keeper.keep(stretch).recv().unwrap();
        let path = said.split("; ").next().and_then(|kept| kept.rsplit_once(" in ")).map(|(_, path)| path);
        let samples = path.and_then(|path| SampleFile::open(path).ok()).map(|mut file| {
            let length = file.len_samples() as usize;
            file.block(0, length).unwrap().channel::<i16>(0).unwrap().into_owned()
        });
        (said, samples.unwrap_or_default())
    }

    #[test]
    fn the_last_seconds_and_the_shown_range_are_saved_to_the_sample() {
        let folder = tempfile::tempdir().unwrap();
        let keeper = ring(folder.path());
        let (said, samples) = kept(&keeper, KeptStretch::Last);
        assert_eq!(samples, (1_700..2_000).collect::<Vec<i16>>(), "{said}");
        let screen = |samples| KeptStretch::Screen { samples, rate_hz: 1e3 };
        let (said, samples) = kept(&keeper, screen(1_450..1_700));
        assert_eq!(samples, (1_450..1_500).chain(1_600..1_700).collect::<Vec<i16>>(), "{said}");
        assert!(said.contains("100 samples missing,"), "{said}");
        // Of a scope that shows the ring.
        let own = Uri::File(folder.path().to_owned());
        let (said, samples) = kept(&RingSaver::of_stream(&own, None, None).unwrap(), screen(1_100..1_200));
        assert_eq!(samples, (1_100..1_200).collect::<Vec<i16>>(), "{said}");
        assert!(RingSaver::of_stream(&Uri::File("x.wav".into()), None, None).is_none());
        // It ends within the gap.
        let (said, samples) = kept(&keeper, screen(1_400..1_550));
        assert_eq!(samples, (1_400..1_500).collect::<Vec<i16>>(), "{said}");
        let (said, samples) = kept(&keeper, screen(900..1_100));
        assert_eq!(samples, (1_000..1_100).collect::<Vec<i16>>(), "{said}");
        assert!(said.contains("the ring does not reach that far back"), "{said}");
        keeper.finish();
    }

    #[test]
    fn an_impossible_save_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let keeper = keeper_of(folder.path(), 1_000);
        let (said, _) = kept(&keeper, KeptStretch::Last);
        assert!(said.starts_with("not saved: ") && said.contains("holds no sample of a ring"), "{said}");
        let keeper = ring(folder.path());
        let (said, _) = kept(&keeper, KeptStretch::Screen { samples: 100..200, rate_hz: 1e3 });
        assert!(said.contains("does not reach back to the range on the screen"), "{said}");
    }
}
