//! Reads a summary: a complete one, or one that is still being made.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use super::block::{BlockLayout, COARSE, FINE, SUMS_LOG2, is_whole, merged};
use super::format::{Head, Kind, SUM_BYTES, block_at, block_log2};
use super::nodes::{Extremes, Lanes, LevelSums, NODE_SAMPLES};
use crate::sample_file::SampleFile;

/// Extremes and sums of the samples of a recording, by position in its file. Lanes are its channels, or alternately I
/// and Q.
///
/// A summary may still grow while it is read: [`known_samples`](Self::known_samples) is its current extent.
#[derive(Debug)]
pub struct Summary {
    lanes: Lanes,
    block_log2: u32,
    known_samples: AtomicU64,
    coarse: RwLock<Coarse>,
    blocks: Mutex<Blocks>,
}

/// The file, and which of its blocks were found whole.
#[derive(Debug)]
struct Blocks {
    file: File,
    is_checked: Vec<bool>,
    bytes: Vec<u8>,
}

/// Nodes kept in memory, by lane.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Coarse {
    /// By level, as in the file.
    pub(super) nodes: Vec<[Vec<u8>; COARSE.len()]>,
    pub(super) sums: Vec<Vec<LevelSums>>,
}

impl Summary {
    /// Opens a summary of any recording; `None` if it is damaged or missing.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        Self::open_if(path, |_| true)
    }

    /// Opens the summary of a recording while both are still being copied. It can compare only the length of
    /// the data files and the latest modification time. Its nodes are those that the sender states; a request
    /// for blocks that have not arrived is an error of [`extremes`](Self::extremes).
    ///
    /// # Errors
    /// The system's error.
    pub fn open_arriving(
        path: &Path,
        file: &SampleFile,
        data_bytes: u64,
        modified: SystemTime,
    ) -> io::Result<Option<Self>> {
        let lanes = Lanes::new(file.format(), file.channels());
        let modified = modified.max(SystemTime::UNIX_EPOCH);
        Self::open_if(path, |head| {
            // As a time of this system: those of Windows have 100 ns, so `modified` has lost the rest.
            let stamped = SystemTime::UNIX_EPOCH + Duration::from_nanos(head.stamp.modified_ns);
            (head.lanes(), head.samples) == (lanes, file.len_samples())
                && (head.stamp.bytes, stamped) == (data_bytes, modified)
        })
    }

    /// Whether its nodes disagree with these samples from `position` on: the bytes of each channel in turn.
    /// Nodes that have not arrived, or are not whole within the samples, do not contradict.
    pub fn contradicts(&self, position: u64, bytes: &[u8]) -> bool {
        let lanes = self.lanes;
        let channels = lanes.count / lanes.of_channel;
        let (channel_bytes, sample_bytes) = (bytes.len() / channels, lanes.format.bytes());
        let first = position.div_ceil(NODE_SAMPLES as u64);
        let skipped = ((first * NODE_SAMPLES as u64 - position) as usize * sample_bytes).min(channel_bytes);
        let count = (channel_bytes - skipped) / sample_bytes / NODE_SAMPLES;
        if count == 0 {
            return false;
        }
        let (mut said, mut seen) = (Vec::new(), Vec::new());
        (0..lanes.count).any(|lane| {
            let from = lane / lanes.of_channel * channel_bytes + skipped;
            let own = &bytes[from..from + count * NODE_SAMPLES * sample_bytes];
            said.clear();
            seen.clear();
            if self.extremes(lane, FINE[0], first..first + count as u64, &mut said).is_err() {
                return false;
            }
            lanes.measure(lane, own, |extremes, _| seen.push(extremes));
            said != seen
        })
    }

    /// Default path of a recording's summary, used unless that folder is read-only.
    pub fn place(path: &Path) -> PathBuf {
        super::place::beside(path, Kind::Extremes)
    }

    /// Byte range in the file of the nodes below level 16, of all lanes, for these samples: whole blocks.
    pub fn bytes_of(&self, samples: Range<u64>) -> Range<u64> {
        let known = self.known_samples();
        let block = 1 << self.block_log2;
        let last = samples.end.min(known).div_ceil(block);
        let end = match known - (last * block).min(known) {
            // The last one may be shorter.
            0 => {
                let rest = known - (last.max(1) - 1) * block;
                let layout = BlockLayout::new(self.lanes, rest);
                self.block_at(last.max(1) - 1) + layout.bytes() as u64
            }
            _ => self.block_at(last),
        };
        self.block_at((samples.start.min(known) / block).min(last))..end
    }

    pub(super) fn open_if(path: &Path, is_wanted: impl Fn(&Head) -> bool) -> io::Result<Option<Self>> {
        let Some((mut file, head)) = Head::open(path, Kind::Extremes, is_wanted)? else { return Ok(None) };
        if file.metadata()?.len() != head.coarse_at() + head.coarse_bytes() {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(head.coarse_at()))?;
        let mut bytes = vec![0; head.coarse_bytes() as usize];
        file.read_exact(&mut bytes)?;
        if crc32c::crc32c(&bytes) != head.coarse_checksum {
            return Ok(None);
        }
        let coarse = Coarse::decode(head.lanes(), head.samples, &bytes);
        Ok(Some(Self::new(head.lanes(), head.samples, coarse, file)))
    }

    /// A new summary without any samples.
    pub(super) fn begin(lanes: Lanes, file: File) -> Self {
        Self::new(lanes, 0, Coarse::new(lanes), file)
    }

    fn new(lanes: Lanes, known_samples: u64, coarse: Coarse, file: File) -> Self {
        Self {
            lanes,
            block_log2: block_log2(lanes),
            known_samples: AtomicU64::new(known_samples),
            coarse: RwLock::new(coarse),
            blocks: Mutex::new(Blocks { file, is_checked: Vec::new(), bytes: Vec::new() }),
        }
    }

    /// Samples per channel, from the first on, that it has nodes of.
    pub fn known_samples(&self) -> u64 {
        self.known_samples.load(Ordering::Acquire)
    }

    /// log2 of the samples of a node, in the coarsest level with nodes of at most `1 << log2`; `None` below the finest.
    pub fn level(log2: u32) -> Option<u32> {
        FINE.iter().chain(&COARSE).copied().take_while(|&level| level <= log2).last()
    }

    /// Appends nodes of a level (see [`level`](Self::level)) of a lane to `out`: node `n` is of the samples
    /// `n << log2 .. (n + 1) << log2`, as far as they are known.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for nodes, a lane or a level that do not exist; [`ErrorKind::InvalidData`]
    /// if the file is damaged; the system's error.
    pub fn extremes(
        &self,
        lane: usize,
        log2: u32,
        nodes: Range<u64>,
        out: &mut Vec<Extremes>,
    ) -> io::Result<()> {
        let known = self.known_samples();
        if lane >= self.lanes.count || nodes.start > nodes.end || nodes.end > known.div_ceil(1 << log2) {
            return Err(ErrorKind::InvalidInput.into());
        }
        if let Some(level) = COARSE.iter().position(|&level| level == log2) {
            let coarse = self.coarse.read().unwrap_or_else(PoisonError::into_inner);
            return coarse.extremes(self.lanes, lane, level, nodes, out);
        }
        let Some(level) = FINE.iter().position(|&level| level == log2) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let nodes_log2 = self.block_log2 - log2;
        let mut at = nodes.start;
        while at < nodes.end {
            let number = at >> nodes_log2;
            let end = nodes.end.min((number + 1) << nodes_log2);
            let first = number << nodes_log2;
            let samples = (known - (number << self.block_log2)).min(1 << self.block_log2);
            let layout = BlockLayout::new(self.lanes, samples);
            self.blocks().row(
                layout,
                self.block_at(number),
                number,
                level,
                lane,
                at - first..end - first,
                |row| {
                    self.lanes.decode(row, out);
                },
            )?;
            at = end;
        }
        Ok(())
    }

    /// The sums of a lane over the nodes of 2^18 samples that `samples` reaches into, and the samples that these are.
    pub fn sums(&self, lane: usize, samples: Range<u64>) -> (LevelSums, Range<u64>) {
        let coarse = self.coarse.read().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = coarse.sums.get(lane) else { return Default::default() };
        let last = samples.end.div_ceil(1 << SUMS_LOG2).min(all.len() as u64);
        let first = (samples.start >> SUMS_LOG2).min(last);
        let mut sum = LevelSums::default();
        all[first as usize..last as usize].iter().for_each(|&node| sum.merge(node));
        (sum, first << SUMS_LOG2..(last << SUMS_LOG2).min(self.known_samples()))
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        let coarse = self.coarse.read().unwrap_or_else(PoisonError::into_inner);
        let nodes: usize = coarse.nodes.iter().flatten().map(Vec::capacity).sum();
        nodes + coarse.sums.iter().map(|sums| sums.capacity() * size_of::<LevelSums>()).sum::<usize>()
    }

    /// Changes the nodes in memory, and sets the new known length.
    pub(super) fn learn(&self, known_samples: u64, change: impl FnOnce(&mut Coarse)) {
        change(&mut self.coarse.write().unwrap_or_else(PoisonError::into_inner));
        self.known_samples.store(known_samples, Ordering::Release);
    }

    pub(super) fn coarse(&self) -> Coarse {
        self.coarse.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn block_at(&self, number: u64) -> u64 {
        block_at(self.lanes, self.block_log2, number)
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blocks {
    /// Reads nodes of a lane. The first access to a block reads it whole and verifies it.
    #[expect(clippy::too_many_arguments, reason = "where the nodes stand, in the words of the layout")]
    fn row(
        &mut self,
        layout: BlockLayout,
        block_at: u64,
        number: u64,
        level: usize,
        lane: usize,
        nodes: Range<u64>,
        take: impl FnOnce(&[u8]),
    ) -> io::Result<()> {
        let row_at = layout.row_at(level, lane);
        let within = row_at + nodes.start as usize * layout.node_bytes()
            ..row_at + nodes.end as usize * layout.node_bytes();
        let number = number as usize;
        if self.is_checked.len() <= number {
            self.is_checked.resize(number + 1, false);
        }
        if self.is_checked[number] {
            self.bytes.resize(within.len(), 0);
            self.file.seek(SeekFrom::Start(block_at + within.start as u64))?;
            self.file.read_exact(&mut self.bytes)?;
            take(&self.bytes);
            return Ok(());
        }
        self.bytes.resize(layout.bytes(), 0);
        self.file.seek(SeekFrom::Start(block_at))?;
        self.file.read_exact(&mut self.bytes)?;
        if !is_whole(&self.bytes) {
            return Err(ErrorKind::InvalidData.into());
        }
        self.is_checked[number] = true;
        take(&self.bytes[within]);
        Ok(())
    }
}

impl Coarse {
    pub(super) fn new(lanes: Lanes) -> Self {
        Self { nodes: vec![Default::default(); lanes.count], sums: vec![Vec::new(); lanes.count] }
    }

    fn extremes(
        &self,
        lanes: Lanes,
        lane: usize,
        level: usize,
        nodes: Range<u64>,
        out: &mut Vec<Extremes>,
    ) -> io::Result<()> {
        let node_bytes = lanes.value_bytes() * 2;
        let range = nodes.start as usize * node_bytes..nodes.end as usize * node_bytes;
        let bytes = self.nodes[lane][level].get(range).ok_or(ErrorKind::InvalidInput)?;
        lanes.decode(bytes, out);
        Ok(())
    }

    /// Takes the nodes of the first level of a lane that follow those it has. All levels then have a node for each of
    /// its samples, the last ones as far as they are known.
    pub(super) fn append(&mut self, lanes: Lanes, lane: usize, nodes: &[Extremes]) {
        let node_bytes = lanes.value_bytes() * 2;
        let levels = &mut self.nodes[lane];
        let mut first = levels[0].len() / node_bytes;
        lanes.encode(nodes, &mut levels[0]);
        let mut below = Vec::new();
        for level in 1..COARSE.len() {
            // The last node was not whole, if the new ones begin within it.
            first /= 4;
            let [finer, own] = levels.get_disjoint_mut([level - 1, level]).expect("two levels");
            own.truncate(first * node_bytes);
            below.clear();
            lanes.decode(&finer[first * 4 * node_bytes..], &mut below);
            let nodes: Vec<Extremes> = below.chunks(4).map(merged).collect();
            lanes.encode(&nodes, own);
        }
    }

    /// Layout in the file: nodes by level, the coarsest first, then by lane; then sums by lane.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for level in (0..COARSE.len()).rev() {
            self.nodes.iter().for_each(|lane| bytes.extend_from_slice(&lane[level]));
        }
        for sum in self.sums.iter().flatten() {
            bytes.extend_from_slice(&sum.sum.to_le_bytes());
            bytes.extend_from_slice(&sum.sum_sq.to_le_bytes());
            bytes.extend_from_slice(&(sum.not_finite as u32).to_le_bytes());
        }
        bytes
    }

    /// Takes the number of bytes that the head implies.
    fn decode(lanes: Lanes, samples: u64, mut bytes: &[u8]) -> Self {
        let mut coarse = Self::new(lanes);
        let mut next = |length: usize| bytes.split_off(..length).unwrap_or_default();
        for (level, log2) in COARSE.iter().enumerate().rev() {
            for lane in &mut coarse.nodes {
                let nodes = samples.div_ceil(1 << log2) as usize;
                lane[level] = next(nodes * lanes.value_bytes() * 2).to_vec();
            }
        }
        for sums in &mut coarse.sums {
            let nodes = samples.div_ceil(1 << SUMS_LOG2);
            let (all, _) = next(nodes as usize * SUM_BYTES).as_chunks::<SUM_BYTES>();
            sums.extend(all.iter().zip(0..).map(|(bytes, node): (_, u64)| {
                let real = |at: usize| f64::from_le_bytes(std::array::from_fn(|place| bytes[at + place]));
                LevelSums {
                    sum: real(0),
                    sum_sq: real(8),
                    not_finite: u32::from_le_bytes(std::array::from_fn(|place| bytes[16 + place])).into(),
                    count: (samples - (node << SUMS_LOG2)).min(1 << SUMS_LOG2),
                }
            }));
        }
        coarse
    }
}
