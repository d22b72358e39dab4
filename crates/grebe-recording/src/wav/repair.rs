//! Closes a WAV whose recorder was cut off, or whose header cannot state its size. Writes the sizes in place;
//! no sample moves.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use super::chunks::Chunks;
use crate::error::Error;
use crate::repaired::Repaired;

/// Writes the file's actual sizes into its header. Cuts off a partial sample at its end.
pub(crate) fn repair(path: &Path) -> Result<Repaired, Error> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(Error::file("open", path))?;
    let mut chunks = Chunks::new(path, &file);
    let found = chunks.find()?;
    let extent = chunks.extent(&found)?;
    let frame_bytes = found.format.frame_bytes();
    let len_samples = extent.bytes / frame_bytes;
    let bytes = len_samples * frame_bytes;
    let end = found.offset_bytes + extent.bytes;
    let mut repaired = Repaired { path: path.into(), len_samples, is_changed: false, cut_bytes: 0 };
    let large = found.large.filter(|_| found.declared == u32::MAX);
    if large.unwrap_or(found.declared.into()) == bytes {
        return Ok(repaired);
    }
    if end < found.file_bytes {
        let what = "has other chunks behind its samples: it is not closed in place; grebe convert makes a new file of it";
        return Err(Error::Content { path: path.into(), what: what.to_owned() });
    }
    let padding = bytes % 2;
    let file_bytes = found.offset_bytes + bytes + padding;
    let (riff_bytes, data_at) = (file_bytes - 8, found.offset_bytes - 4);
    let sizes = match (found.ds64_at, u32::try_from(bytes), u32::try_from(riff_bytes)) {
        (None, Ok(bytes), Ok(riff_bytes)) => {
            vec![(4, riff_bytes.to_le_bytes().to_vec()), (data_at, bytes.to_le_bytes().to_vec())]
        }
        (None, ..) => {
            let what =
                "is longer than its kind of header can say: grebe convert makes an RF64 of it, which can";
            return Err(Error::Content { path: path.into(), what: what.to_owned() });
        }
        (Some(at), ..) => {
            let large = [riff_bytes, bytes, len_samples].map(u64::to_le_bytes).concat();
            vec![(at + 8, large), (4, vec![0xff; 4]), (data_at, vec![0xff; 4])]
        }
    };
    let write = || {
        file.set_len(file_bytes)?;
        for (at, bytes) in sizes {
            (&file).seek(SeekFrom::Start(at))?;
            (&file).write_all(&bytes)?;
        }
        file.sync_all()
    };
    write().map_err(Error::file("write", path))?;
    repaired.is_changed = true;
    repaired.cut_bytes = found.file_bytes.saturating_sub(file_bytes);
    Ok(repaired)
}
