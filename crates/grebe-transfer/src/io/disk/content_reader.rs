//! Reads the content of a source: its index, then its files.

use std::fs::File;
use std::sync::Arc;

use super::positioned::read_exact_at;
use super::source::{Source, SourceFile};
use crate::error::{Error, Result};

/// Reads content from anywhere; the file read last stays open.
pub(super) struct ContentReader {
    source: Arc<Source>,
    open: Option<(usize, File)>,
}

impl ContentReader {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self { source, open: None }
    }

    pub(super) fn read_exact_at(&mut self, mut bytes: &mut [u8], mut at: u64) -> Result<()> {
        let index = &self.source.index;
        if at < index.len() as u64 {
            let from = at as usize;
            let (head, rest) = bytes.split_at_mut(bytes.len().min(index.len() - from));
            head.copy_from_slice(&index[from..from + head.len()]);
            (at, bytes) = (at + head.len() as u64, rest);
        }
        while !bytes.is_empty() {
            let number = self.source.files.partition_point(|file| file.start + file.bytes <= at);
            let SourceFile { path, start, bytes: file_bytes } = &self.source.files[number];
            let failed = |action| move |source| Error::File { action, path: path.clone(), source };
            if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
                self.open = Some((number, File::open(path).map_err(failed("open"))?));
            }
            let take = (start + file_bytes - at).min(bytes.len() as u64) as usize;
            let (head, rest) = bytes.split_at_mut(take);
            if let Some((_, file)) = &self.open {
                read_exact_at(file, head, at - start).map_err(failed("read"))?;
            }
            (at, bytes) = (at + take as u64, rest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::proto::index::Index;

    #[test]
    fn content_is_index_and_files_in_a_row() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("d/e")).unwrap();
        for (name, bytes) in [("d/a", &b"first"[..]), ("d/b", b""), ("d/e/c", b"second"), ("f", b"third")] {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let paths = [folder.path().join("d"), folder.path().join("f")];
        let source = Arc::new(Source::open(&paths).unwrap());
        assert_eq!(
            (source.names(), source.files(), source.file_bytes()),
            (&["d".into(), "f".into()][..], 4, 16)
        );
        let index_bytes = source.index_bytes();
        let mut content = vec![0; index_bytes as usize + 16];
        let mut reader = ContentReader::new(source.clone());
        for (at, byte) in content.iter_mut().enumerate() {
            reader.read_exact_at(std::slice::from_mut(byte), at as u64).unwrap();
        }
        assert_eq!(&content[index_bytes as usize..], b"firstsecondthird");
        let index = Index::decode(&content[..index_bytes as usize]).unwrap();
        let names: Vec<_> = index.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["d", "d/a", "d/b", "d/e", "d/e/c", "f"]);
        let mut whole = vec![0; content.len()];
        reader.read_exact_at(&mut whole, 0).unwrap();
        assert_eq!(whole, content);
    }
}
