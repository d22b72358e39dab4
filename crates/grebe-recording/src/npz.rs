//! NumPy's `.npz`: a zip of arrays, of which one is unpacked and read as a `.npy`.

use std::io::{self, BufReader, Read};
use std::path::Path;

use zip::ZipArchive;

use crate::arrays::{ArrayQuery, Listed};
use crate::error::Error;
use crate::npy;
use crate::sample_file::SampleFile;
use crate::unpacked::{self, unpacked};

/// Opens `x.npz`, or `x.npz?array=iq&rate=1M`.
pub(super) fn open(written: &Path) -> Result<SampleFile, Error> {
    let asked = ArrayQuery::parse(written)?;
    let path = &asked.path;
    let damaged =
        |why: String| Error::Content { path: path.clone(), what: format!("is not a .npz file: {why}") };
    let file = unpacked::open(path)?;
    let mut zip = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(error.to_string()))?;
    let (mut members, mut arrays) = (Vec::new(), Vec::new());
    for number in 0..zip.len().min(MEMBERS_MAX) {
        let mut member = zip.by_index(number).map_err(|error| damaged(error.to_string()))?;
        let name = member.name().map_err(|error| damaged(error.to_string()))?.into_owned();
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        let mut begin = Vec::new();
        let read = member.by_ref().take(npy::HEADER_BYTES_MAX).read_to_end(&mut begin);
        read.map_err(|error| damaged(error.to_string()))?;
        let Some((shape, scalar)) = npy::outline(&begin) else { continue };
        members.push(number);
        arrays.push(Listed { name, shape, number: scalar });
    }
    let chosen = asked.choose(written, &arrays)?;
    let file = unpacked(path, |out| {
        let mut member = zip.by_index(members[chosen.number]).map_err(io::Error::from)?;
        io::copy(&mut member, out).map(drop)
    })?;
    npy::read(path, file, chosen.rate_hz, chosen.notes)
}

const MEMBERS_MAX: usize = 10_000;
