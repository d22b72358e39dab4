//! Viewer's side of a progressive copy: reads a file before all of it has arrived.
//!
//! ```text
//!  receiver --> .grebe-p...  the file at its full length, with holes for missing blocks
//!           --> .grebe-m...  map of the blocks that arrived   --> viewer
//!           <-- .grebe-w...  ranges to send next              <-- viewer
//! ```

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use grebe_packet::Reader;

use crate::blocks::{BlockMap, Blocks};
use crate::name::{PARTIAL, PartNames, bytes_of, join, os_name};
use crate::system::read_at;
use crate::wire::{STRETCHES_MAX, decode_stretches, encode_stretches};

/// An incomplete file of a [progressive](crate::Options::progressive) copy.
///
/// ```
/// use grebe_tree::Arriving;
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("run7.sigmf-data");
/// if let Some(mut arriving) = Arriving::find(&path)? {
///     arriving.want(&[0..1 << 20])?;
///     while !arriving.is_here(&(0..1 << 20)) && !arriving.is_over() {
///         std::thread::sleep(std::time::Duration::from_millis(100));
///         arriving.refresh()?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Arriving {
    path: PathBuf,
    part: PathBuf,
    wanted: PathBuf,
    map_file: File,
    modified: SystemTime,
    map: BlockMap,
    asked: Vec<Range<u64>>,
    has_asked: bool,
}

impl Arriving {
    /// Finds the copy in progress of the file with this final path; `None` if there is none. Searches the
    /// partial folders of all directories above.
    ///
    /// # Errors
    /// System errors on the files that were found.
    pub fn find(path: &Path) -> io::Result<Option<Self>> {
        let path = std::path::absolute(path)?;
        let Some(beside) = path.parent() else { return Ok(None) };
        let mut below: Vec<u8> = path.file_name().map(|name| bytes_of(name).into_owned()).unwrap_or_default();
        for root in beside.ancestors() {
            let folder = root.join(own(PARTIAL));
            if folder.is_dir() {
                let names = PartNames::of(&below);
                match Self::open(&path, &folder, beside, &names) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    found => return found,
                }
            }
            let Some(name) = root.file_name() else { break };
            below = join(&bytes_of(name), &below);
        }
        Ok(None)
    }

    /// Whether a copy into a directory above is in progress, so that the file may appear.
    pub fn may_begin(path: &Path) -> bool {
        let path = std::path::absolute(path).unwrap_or_default();
        path.ancestors().skip(1).any(|root| root.join(own(PARTIAL)).is_dir())
    }

    fn open(path: &Path, folder: &Path, beside: &Path, names: &PartNames) -> io::Result<Option<Self>> {
        let map_file = File::open(folder.join(own(&names.map)))?;
        // For a destination on another file system, the part lies beside its final place.
        let part = [folder, beside].map(|folder| folder.join(own(&names.part)));
        let Some(part) = part.into_iter().find(|part| part.is_file()) else { return Ok(None) };
        let mut head = [0; MAP_HEAD_BYTES];
        if read_all(&map_file, &mut head, 0)? < head.len() {
            return Ok(None);
        }
        let Some((bytes, modified)) = read_head(&head) else { return Ok(None) };
        let mut arriving = Self {
            path: path.to_path_buf(),
            part,
            wanted: folder.join(own(&names.wanted)),
            map_file,
            modified,
            map: BlockMap::none(Blocks::of(bytes)),
            asked: Vec::new(),
            has_asked: false,
        };
        arriving.refresh()?;
        Ok(Some(arriving))
    }

    /// Final path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the part until then, at its full length. Missing bytes read as zeros.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Length of the complete file in bytes.
    pub fn bytes(&self) -> u64 {
        self.map.blocks.bytes
    }

    /// Modification time at the source.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }

    /// Number of bytes that have arrived.
    pub fn come_bytes(&self) -> u64 {
        self.map.come_bytes()
    }

    /// Whether the copy is over and the file has its final name.
    pub fn is_over(&self) -> bool {
        !self.part.exists() && self.path.exists()
    }

    /// Reloads the map of blocks. Returns whether any block arrived.
    ///
    /// # Errors
    /// System errors.
    pub fn refresh(&mut self) -> io::Result<bool> {
        if self.map.is_whole() {
            return Ok(false);
        }
        let mut bits = vec![0; self.map.bits().len()];
        if read_all(&self.map_file, &mut bits, MAP_HEAD_BYTES as u64)? < bits.len() {
            return Ok(false);
        }
        let Some(map) = BlockMap::from_bits(self.map.blocks, &bits) else { return Ok(false) };
        let is_more = map != self.map;
        self.map = map;
        Ok(is_more)
    }

    /// Whether the whole range has arrived.
    pub fn is_here(&self, stretch: &Range<u64>) -> bool {
        stretch.is_empty() || self.map.first_here(stretch) == *stretch
    }

    /// Number of bytes of the range that have arrived, in whole blocks.
    pub fn come_of(&self, stretch: &Range<u64>) -> u64 {
        self.map.come_of(stretch)
    }

    /// First contiguous part of the range that has arrived; empty if there is none.
    pub fn first_here(&self, stretch: &Range<u64>) -> Range<u64> {
        self.map.first_here(stretch)
    }

    /// Sets the ranges to send next, in place of the earlier ones. At most 64 count.
    ///
    /// # Errors
    /// System errors.
    pub fn want(&mut self, stretches: &[Range<u64>]) -> io::Result<()> {
        let missing = |stretch: &&Range<u64>| !self.is_here(stretch);
        let wanted: Vec<Range<u64>> = stretches.iter().filter(missing).take(STRETCHES_MAX).cloned().collect();
        if wanted == self.asked {
            return Ok(());
        }
        let mut bytes = WANTED_MAGIC.to_vec();
        bytes.extend(encode_stretches(&wanted));
        // Replaced in one step, because the receiver may read it at any time.
        let mut temporary = self.wanted.clone().into_os_string();
        temporary.push(format!("-{}", std::process::id()));
        let mut file = File::create(&temporary)?;
        file.write_all(&bytes)?;
        drop(file);
        fs::rename(&temporary, &self.wanted)?;
        (self.asked, self.has_asked) = (wanted, true);
        Ok(())
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if self.has_asked {
            // This viewer no longer wants anything.
            let _ = fs::remove_file(&self.wanted);
        }
    }
}

/// Head of a map.
pub(crate) fn map_head(bytes: u64, modified_ns: i64) -> [u8; MAP_HEAD_BYTES] {
    let mut head = [0; MAP_HEAD_BYTES];
    head[..8].copy_from_slice(MAP_MAGIC);
    head[8..16].copy_from_slice(&bytes.to_be_bytes());
    head[16..].copy_from_slice(&modified_ns.to_be_bytes());
    head
}

fn read_head(head: &[u8; MAP_HEAD_BYTES]) -> Option<(u64, SystemTime)> {
    let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|place| head[at + place]));
    let (bytes, modified_ns) = (number(8), number(16) as i64);
    let since = Duration::from_nanos(modified_ns.unsigned_abs());
    let modified = match modified_ns < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(since),
        false => SystemTime::UNIX_EPOCH.checked_add(since),
    };
    (head[..8] == *MAP_MAGIC && bytes <= i64::MAX as u64).then_some((bytes, modified?))
}

/// Reads a viewer's request; `None` if the format is unknown.
pub(crate) fn decode_wanted(bytes: &[u8]) -> Option<Vec<Range<u64>>> {
    decode_stretches(Reader::new(bytes.strip_prefix(WANTED_MAGIC)?)).ok()
}

fn read_all(file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match read_at(file, &mut bytes[got..], at + got as u64)? {
            0 => break,
            read => got += read,
        }
    }
    Ok(got)
}

/// Our own names are valid text on every system.
fn own(name: &[u8]) -> OsString {
    os_name(name).map(OsString::from).unwrap_or_default()
}

pub(crate) const MAP_HEAD_BYTES: usize = 24;
pub(crate) const WANTED_BYTES_MAX: u64 = 4 << 10;
const MAP_MAGIC: &[u8; 8] = b"grebe m1";
const WANTED_MAGIC: &[u8] = b"grebe w1";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plant(root: &Path, below: &str, bytes: u64) -> (PathBuf, PartNames) {
        let folder = root.join(".grebe-partial");
        fs::create_dir_all(&folder).unwrap();
        let names = PartNames::of(below.as_bytes());
        File::create(folder.join(own(&names.part))).unwrap().set_len(bytes).unwrap();
        let mut map = map_head(bytes, -5).to_vec();
        map.extend(BlockMap::none(Blocks::of(bytes)).bits());
        fs::write(folder.join(own(&names.map)), map).unwrap();
        (folder, names)
    }

    #[test]
    fn a_part_is_found_by_the_name_that_the_file_will_have() {
        let root = tempfile::tempdir().unwrap();
        let (folder, names) = plant(root.path(), "a/run7.sigmf-data", 9 << 18);
        fs::create_dir(root.path().join("a")).unwrap();
        assert!(Arriving::find(&root.path().join("run7.sigmf-data")).unwrap().is_none());
        let mut arriving = Arriving::find(&root.path().join("a/run7.sigmf-data")).unwrap().unwrap();
        assert_eq!((arriving.bytes(), arriving.come_bytes()), (9 << 18, 0));
        assert!(arriving.modified() < SystemTime::UNIX_EPOCH);
        assert!(!arriving.refresh().unwrap() && !arriving.is_here(&(0..1)));

        let map = folder.join(own(&names.map));
        let mut bytes = fs::read(&map).unwrap();
        bytes[MAP_HEAD_BYTES] = 0b110;
        fs::write(&map, &bytes).unwrap();
        assert!(arriving.refresh().unwrap() && !arriving.refresh().unwrap());
        assert_eq!(arriving.first_here(&(5..4 << 18)), 1 << 18..3 << 18);
        assert!(arriving.is_here(&(1 << 18..3 << 18)) && !arriving.is_here(&((1 << 18) - 1..3 << 18)));

        arriving.want(&[0..10, 1 << 18..2 << 18, 5 << 18..6 << 18]).unwrap();
        let wanted = folder.join(own(&names.wanted));
        assert_eq!(
            decode_wanted(&fs::read(&wanted).unwrap()),
            Some(vec![0..10, 5 << 18..6 << 18]),
            "what is here is not wanted"
        );
        drop(arriving);
        assert!(!wanted.exists());
    }

    #[test]
    fn an_invalid_map_is_ignored() {
        let root = tempfile::tempdir().unwrap();
        let (folder, names) = plant(root.path(), "x", 9 << 18);
        let map = folder.join(own(&names.map));
        let good = fs::read(&map).unwrap();
        for bad in [&good[..10], b"another thing of some length", &[]] {
            fs::write(&map, bad).unwrap();
            assert!(Arriving::find(&root.path().join("x")).unwrap().is_none());
        }
        fs::write(&map, &good).unwrap();
        fs::remove_file(folder.join(own(&names.part))).unwrap();
        assert!(Arriving::find(&root.path().join("x")).unwrap().is_none());
    }

    proptest! {
        #[test]
        fn no_leftover_of_a_viewer_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode_wanted(&bytes);
            let _ = decode_wanted(&[WANTED_MAGIC, &bytes].concat());
        }
    }
}
