//! A file that is being copied in blocks, as somebody sees it who looks at it before it is whole.
//!
//! ```text
//!  receiver --> .grebe-p...  the file, of its full length, with holes where nothing has come
//!           --> .grebe-m...  which blocks have come            --> viewer
//!           <-- .grebe-w...  which stretches are to come next  <-- viewer
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

/// A file of a [progressive](crate::Options::progressive) copy that has not all come.
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
    /// The copy of the file that will have this path; `None` where none has left anything. It is looked for in the partial folders of
    /// all directories above.
    ///
    /// # Errors
    /// What the system says of what was found.
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

    /// Whether something is being copied into a directory above, so that the file may begin to come.
    pub fn may_begin(path: &Path) -> bool {
        let path = std::path::absolute(path).unwrap_or_default();
        path.ancestors().skip(1).any(|root| root.join(own(PARTIAL)).is_dir())
    }

    fn open(path: &Path, folder: &Path, beside: &Path, names: &PartNames) -> io::Result<Option<Self>> {
        let map_file = File::open(folder.join(own(&names.map)))?;
        // On another file system a part lies beside its own place.
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

    /// The path that it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it lies until then, of its full length; what has not come reads as zeros.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Its length when it is whole.
    pub fn bytes(&self) -> u64 {
        self.map.blocks.bytes
    }

    /// When it was changed at its source.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }

    /// How many bytes of it have come.
    pub fn come_bytes(&self) -> u64 {
        self.map.come_bytes()
    }

    /// Whether the copy is over: it has its name.
    pub fn is_over(&self) -> bool {
        !self.part.exists() && self.path.exists()
    }

    /// Looks what has come; whether anything has.
    ///
    /// # Errors
    /// What the system says.
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

    /// Whether all of a stretch has come.
    pub fn is_here(&self, stretch: &Range<u64>) -> bool {
        stretch.is_empty() || self.map.first_here(stretch) == *stretch
    }

    /// How many bytes of a stretch have come, by whole blocks.
    pub fn come_of(&self, stretch: &Range<u64>) -> u64 {
        self.map.come_of(stretch)
    }

    /// The first part of a stretch of which all has come; empty where nothing has.
    pub fn first_here(&self, stretch: &Range<u64>) -> Range<u64> {
        self.map.first_here(stretch)
    }

    /// Says which stretches are to come next, in place of those that were wanted before; at most 64 count.
    ///
    /// # Errors
    /// What the system says.
    pub fn want(&mut self, stretches: &[Range<u64>]) -> io::Result<()> {
        let missing = |stretch: &&Range<u64>| !self.is_here(stretch);
        let wanted: Vec<Range<u64>> = stretches.iter().filter(missing).take(STRETCHES_MAX).cloned().collect();
        if wanted == self.asked {
            return Ok(());
        }
        let mut bytes = WANTED_MAGIC.to_vec();
        bytes.extend(encode_stretches(&wanted));
        // In one step: it is read at any time.
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
            // Nobody looks any more.
            let _ = fs::remove_file(&self.wanted);
        }
    }
}

/// What a map begins with.
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

/// What a viewer left; `None` where that is nothing of ours.
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

/// A name of ours is text on every system.
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
    fn what_is_no_map_is_not_believed() {
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
        fn whatever_a_viewer_left_nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode_wanted(&bytes);
            let _ = decode_wanted(&[WANTED_MAGIC, &bytes].concat());
        }
    }
}
