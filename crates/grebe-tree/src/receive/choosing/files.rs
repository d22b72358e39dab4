//! Whether and how a file is wanted.

use std::path::PathBuf;
use std::sync::Arc;

use super::{At, Choosing, EMPTY_ATTRIBUTE_BYTES, EMPTY_FILES, ListedFile};
use crate::blocks::{Blocks, comes_in_blocks};
use crate::error::Result;
use crate::progress::add;
use crate::receive::basis::ToSign;
use crate::receive::comparing::{chunk_sizes, hash, left_part, may_be_same_time, mend};
use crate::receive::pending::Pending;
use crate::receive::signing::queue;
use crate::receive::stranger::EXISTS;
use crate::system::{Kind, Metadata};
use crate::wire::{self, Answer, Entry, Left, bytes_of_attributes};

impl Choosing<'_> {
    pub(super) fn file(
        &mut self,
        at: &At,
        name: Box<[u8]>,
        entry: Entry,
        there: Option<Metadata>,
        listed: ListedFile,
    ) -> Result<()> {
        let receiving = self.receiving;
        let ListedFile { id, bytes, touched, is_linked } = listed;
        add(&receiving.progress.files_found, 1);
        add(&receiving.progress.bytes_found, bytes);
        if !self.make_room(at, &name, there, false) {
            return self.refuse(at, &name, &entry.kind);
        }
        if there.is_some_and(|there| !receiving.replaces() && !may_be_same(&there, bytes)) {
            receiving.leave_out(receiving.directories.path_of(at.place, &name), EXISTS.to_owned());
            return self.refuse(at, &name, &entry.kind);
        }
        let there = there.filter(|there| there.kind == Kind::File);
        let path = || receiving.directories.path_of(at.place, &name);
        let attributes = if receiving.options.attributes { entry.attributes } else { Vec::new() };
        let attributes = receiving.hold(attributes, path);
        let mut file = Pending {
            id,
            place: at.place,
            name,
            bytes,
            modified_ns: entry.modified_ns,
            mode: entry.mode,
            owner: entry.owner.filter(|_| receiving.keeps_owners),
            attributes,
            touched,
            is_linked,
            replaces: there.map(|there| there.mode),
            left_bytes: 0,
            left_blocks: None,
            adopted: None,
            is_hashed: false,
        };
        let is_same_size = there.is_some_and(|there| there.bytes == bytes);
        let is_dry_run = receiving.options.dry_run;
        let is_same_time = there.is_some_and(|there| {
            there.modified_ns == entry.modified_ns
                || is_dry_run && may_be_same_time(there.modified_ns, entry.modified_ns)
        });
        let (is_same_time, keeps_times) = match there {
            // A dry run creates no files and cannot know.
            Some(there) if is_same_size && bytes > 0 && !is_same_time && !is_dry_run => {
                let volume = receiving.volume(there.device, at.place);
                (volume.is_same_time(there.modified_ns, entry.modified_ns), volume.keeps_times())
            }
            _ => (is_same_time, true),
        };
        if let Some(there) = there
            && is_same_size
            && (is_same_time && !receiving.options.checksum || bytes == 0)
        {
            mend(receiving, at.directory.as_ref(), &file, &there);
            receiving.flushing.was_there(receiving, at.place, &file.name);
            receiving.same(&file);
            if bytes > 0 {
                self.answer(Answer::Have);
            }
            return Ok(());
        }
        if bytes == 0 {
            if receiving.options.dry_run {
                receiving.copied(&file, 0);
                return Ok(());
            }
            self.empty_attribute_bytes += bytes_of_attributes(&file.attributes);
            self.empty.push(file);
            if self.empty.len() >= EMPTY_FILES || self.empty_attribute_bytes > EMPTY_ATTRIBUTE_BYTES {
                self.make_empty();
            }
            return Ok(());
        }
        let by_content = receiving.options.checksum || !keeps_times || !receiving.replaces();
        let (answer, basis) = self.wanted(at, &mut file, there, by_content);
        let to_sign = match answer {
            Answer::Changed(sizes) => Some(ToSign {
                id,
                place: file.place,
                name: file.name.clone(),
                elsewhere: basis,
                bytes,
                mode: file.mode,
                sizes: Some(sizes),
            }),
            _ => None,
        };
        file.is_hashed = matches!(answer, Answer::Unless(_));
        if receiving.options.dry_run && !file.is_hashed {
            receiving.copied(&file, bytes);
        } else {
            receiving.pending.expect(file)?;
        }
        if to_sign.is_some() {
            receiving.bases.will_be_told(id);
        }
        self.answer(answer);
        if let Some(to_sign) = to_sign {
            // The sender must know the answer before the signature.
            self.send_answers();
            queue(&self.to_sign, to_sign)?;
        }
        Ok(())
    }

    /// How a file is wanted. With [`Answer::Changed`], also the basis if it has another name.
    fn wanted(
        &mut self,
        at: &At,
        file: &mut Pending,
        there: Option<Metadata>,
        by_content: bool,
    ) -> (Answer, Option<PathBuf>) {
        let receiving = self.receiving;
        if receiving.is_fresh {
            return (Answer::Whole, None);
        }
        if by_content
            && there.is_some_and(|there| there.bytes == file.bytes)
            && let Some(directory) = &at.directory
        {
            let hash = hash(receiving, directory, file);
            return (hash.map_or(Answer::Whole, Answer::Unless), None);
        }
        if let Some(left) = left_part(receiving, at.directory.as_ref(), file) {
            if receiving.options.progressive && comes_in_blocks(&file.name, file.bytes) {
                let map = left.into_blocks(Blocks::of(file.bytes));
                let said = Left { id: file.id, bits: map.bits().to_vec() };
                receiving.say(wire::Kind::Left, said.encode());
                file.left_blocks = Some(Arc::new(map));
                return (Answer::Whole, None);
            }
            // Blocks after the first missing one are sent again.
            file.left_bytes = left.prefix();
            if file.left_bytes > 0 {
                return (Answer::From(file.left_bytes), None);
            }
        }
        if let Some((hash, adopted)) = self.elsewhere.adopt(receiving, file) {
            file.adopted = Some(adopted);
            return (Answer::Unless(hash), None);
        }
        let (basis, there_bytes) = match there {
            Some(there) => (None, Some(there.bytes)),
            None => self.elsewhere.similar(file).unzip(),
        };
        match there_bytes.and_then(|there_bytes| chunk_sizes(receiving, there_bytes, file.bytes)) {
            Some(sizes) => (Answer::Changed(sizes), basis),
            None => (Answer::Whole, None),
        }
    }
}

/// Whether an existing file may equal one of this length.
fn may_be_same(there: &Metadata, bytes: u64) -> bool {
    there.kind == Kind::File && there.bytes == bytes
}
