//! A recording with its summary: an existing one, or one made in the background.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::builder::SummaryWriter;
use super::format::Kind;
use super::maker::{self, Change, Kept, REST, SMALL_BYTES, SummaryState};
use super::nodes::Lanes;
use super::place;
use super::reader::Summary;
use super::spectra::{SpectraWriter, SpectralSummary};
use crate::error::Error;
use crate::sample_file::SampleFile;

/// A recording of any size for viewing: its samples, and its [`Summary`].
///
/// It uses a summary beside the recording or in the user's cache, if that fits these samples. Otherwise a thread
/// reads the recording, at the rate of the disk, and stores one. A growing recording is followed.
///
/// ```no_run
/// use grebe_recording::{SummarizedFile, Summary};
///
/// let mut recording = SummarizedFile::open("week.sigmf-meta".as_ref())?;
/// while recording.known_samples() < recording.file().len_samples() {
///     std::thread::sleep(std::time::Duration::from_millis(100));
/// }
/// let (level, mut nodes) = (Summary::level(20).unwrap(), Vec::new());
/// let count = recording.file().len_samples().div_ceil(1 << level);
/// recording.extremes(0, level, 0..count, &mut nodes)?;
/// println!("highest: {}", nodes.iter().map(|node| node.max).fold(f32::MIN, f32::max));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SummarizedFile {
    path: PathBuf,
    file: SampleFile,
    /// Size of the data at the last check, of the file that opens them, and of the annotations beside it.
    size: Size,
    named: [Size; 2],
    extremes: Kept<SummaryWriter>,
    /// `None` until requested.
    spectra: Option<Kept<SpectraWriter>>,
    /// A recording of fewer bytes needs no summary.
    least_bytes: u64,
}

impl Summary {
    /// The summary of a recording, beside it or in the user's cache; `None` if none fits these samples. Makes none:
    /// [`SummarizedFile`] does that.
    pub fn find(path: &Path, file: &mut SampleFile) -> Option<Self> {
        Some(maker::find::<SummaryWriter>(path, file)?.0)
    }

    /// Path of a recording's summary that does not lie beside it, if it matches these samples.
    pub fn elsewhere(path: &Path, file: &mut SampleFile) -> Option<PathBuf> {
        let (_, found) = maker::find::<SummaryWriter>(path, file)?;
        (found != place::beside(path, Kind::Extremes)).then_some(found)
    }
}

impl SpectralSummary {
    /// The spectral summary of a recording, beside it or in the user's cache; `None` if none fits these samples.
    pub fn find(path: &Path, file: &mut SampleFile) -> Option<Self> {
        Some(maker::find::<SpectraWriter>(path, file)?.0)
    }
}

/// Cheap sign of changed data: bytes, and modification time.
type Size = (u64, Option<SystemTime>);

impl SummarizedFile {
    /// Opens a recording as [`SampleFile::open`] does, with its summary, which is made if it is missing.
    ///
    /// # Errors
    /// Those of [`SampleFile::open`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::with_least(path, SMALL_BYTES)
    }

    /// As [`open`](Self::open), with a summary of few samples too, because the recording is a part of a longer one.
    ///
    /// # Errors
    /// Those of [`SampleFile::open`].
    pub fn open_part(path: &Path) -> Result<Self, Error> {
        Self::with_least(path, 1)
    }

    fn with_least(path: &Path, least_bytes: u64) -> Result<Self, Error> {
        let file = SampleFile::open(path)?;
        let mut opened = Self {
            path: path.to_owned(),
            size: file.data_size(),
            named: named(path),
            file,
            extremes: Kept::default(),
            spectra: None,
            least_bytes,
        };
        opened.extremes.find_or_make(&opened.path, &mut opened.file, least_bytes, false);
        Ok(opened)
    }

    /// The recording, as of the last check.
    pub fn file(&self) -> &SampleFile {
        &self.file
    }

    /// Bytes of its samples.
    pub fn data_bytes(&self) -> u64 {
        self.file.len_samples() * (self.file.format().bytes() * self.file.channels()) as u64
    }

    /// Whether its data changed within the last seconds.
    pub fn is_fresh(&self) -> bool {
        let age = self.size.1.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        age.is_some_and(|age| age < REST)
    }

    /// Path where its summary is made, if not beside it.
    pub fn other_place(&self) -> Option<PathBuf> {
        self.extremes.place().filter(|place| *place != place::beside(&self.path, Kind::Extremes))
    }

    /// Reads samples of all channels: the bytes of each channel in turn.
    ///
    /// # Errors
    /// Those of [`SampleFile::read`].
    pub fn read(&mut self, position: u64, length: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        self.file.read(position, length, out)
    }

    /// Samples per channel, from the first on, whose extremes and sums are known.
    pub fn known_samples(&self) -> u64 {
        self.extremes.known_samples().min(self.file.len_samples())
    }

    /// As [`Summary::extremes`]. Rebuilds a damaged summary.
    ///
    /// # Errors
    /// Those of [`Summary::extremes`], and a missing summary.
    pub fn extremes(
        &mut self,
        lane: usize,
        log2: u32,
        nodes: std::ops::Range<u64>,
        out: &mut Vec<super::Extremes>,
    ) -> io::Result<()> {
        let summary = self.summary().ok_or(io::ErrorKind::NotFound)?;
        let read = summary.extremes(lane, log2, nodes, out);
        if read.is_err() && self.state() == SummaryState::Whole {
            self.extremes.make(&self.path, false);
        }
        read
    }

    /// Extremes of a lane from the start of a node to `end` within that node, from shorter nodes and the last samples.
    ///
    /// # Errors
    /// Those of [`extremes`](Self::extremes) and [`read`](Self::read).
    pub fn extremes_up_to(
        &mut self,
        lane: usize,
        log2: u32,
        node: u64,
        end: u64,
    ) -> io::Result<super::Extremes> {
        let mut found = Vec::new();
        let (mut at, mut longest) = (node << log2, log2);
        while let Some(level) = longest.checked_sub(1).and_then(Summary::level) {
            let whole = end >> level;
            self.extremes(lane, level, at >> level..whole, &mut found)?;
            (at, longest) = (whole << level, level);
        }
        let mut bytes = Vec::new();
        self.read(at, end.saturating_sub(at) as usize, &mut bytes).map_err(io::Error::other)?;
        let lanes = Lanes::new(self.file.format(), self.file.channels());
        let channel_bytes = bytes.len() / self.file.channels();
        let own = &bytes[lane / lanes.of_channel * channel_bytes..][..channel_bytes];
        lanes.measure(lane, own, |extremes, _| found.push(extremes));
        Ok(found.into_iter().fold(super::Extremes::NONE, |mut all, one| {
            all.merge(one);
            all
        }))
    }

    /// The available part of the summary.
    pub fn summary(&self) -> Option<Arc<Summary>> {
        self.extremes.summary()
    }

    /// How far the summary is.
    pub fn state(&self) -> SummaryState {
        self.extremes.state()
    }

    /// Looks whether the recording changed, or what it says of its samples; whether it did. Cheap enough for twice a second.
    pub fn refresh(&mut self) -> bool {
        let named = named(&self.path);
        if (self.file.data_size(), named) == (self.size, self.named) {
            return false;
        }
        // While the metadata are being replaced, the previous ones apply.
        let Ok(file) = SampleFile::open(&self.path) else { return false };
        self.named = named;
        let size = file.data_size();
        let is_closed = self.file.is_being_recorded() && file.is_whole();
        let is_as_whole = file.is_whole() == self.file.is_whole();
        let has_same_samples = size == self.size && file.len_samples() == self.file.len_samples();
        let is_same = file.format() == self.file.format() && file.channels() == self.file.channels();
        let grows = is_same && file.len_samples() >= self.file.len_samples() && size.0 >= self.size.0;
        (self.file, self.size) = (file, size);
        // Otherwise only its metadata changed.
        if !has_same_samples || !is_as_whole {
            let change = Change { grows, is_closed };
            self.extremes.follow(&self.path, &mut self.file, self.least_bytes, change);
            if let Some(spectra) = &mut self.spectra {
                spectra.follow(&self.path, &mut self.file, self.least_bytes, change);
            }
        }
        true
    }

    /// The available part of the spectral summary, which is made from the first call on where it is missing.
    pub fn spectra(&mut self) -> Option<Arc<SpectralSummary>> {
        let (path, file, least_bytes) = (&self.path, &mut self.file, self.least_bytes);
        let spectra = self.spectra.get_or_insert_with(|| {
            let mut spectra = Kept::default();
            spectra.find_or_make(path, file, least_bytes, false);
            spectra
        });
        spectra.summary()
    }

    /// Progress of the spectral summary; complete if nobody requested one.
    pub fn spectra_state(&self) -> SummaryState {
        self.spectra.as_ref().map_or(SummaryState::Whole, Kept::state)
    }

    /// Makes the spectral summary again, because it is damaged.
    pub fn remake_spectra(&mut self) {
        if let Some(spectra) = &mut self.spectra
            && spectra.state() == SummaryState::Whole
        {
            spectra.make(&self.path, false);
        }
    }
}

fn named(path: &Path) -> [Size; 2] {
    let size = |path: &Path| fs::metadata(path).map_or((0, None), |file| (file.len(), file.modified().ok()));
    [size(path), size(&crate::sigmf::annotations_beside(path))]
}
