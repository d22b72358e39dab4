//! The stream as a sender needs it: groups ready to be sent, and parts of earlier groups that are to be sent again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::groups::{self, HASH_BYTES};
use super::reader::{Read, Reader};
use super::source::{Content, ContentReader, Source};
use crate::proto::ranges::RangeSet;

/// The groups between what was read and what was sent.
pub(in crate::io) struct Outgoing {
    reader: Reader,
    /// What was read and not sent yet, with its offset in the stream.
    groups: VecDeque<(u64, Vec<u8>)>,
    /// Hashes of groups that may have to be sent again, ascending.
    hashes: VecDeque<(u64, [u8; HASH_BYTES as usize])>,
    /// Groups that stay in memory, since they cannot be read again as they were.
    kept: Vec<(u64, Vec<u8>)>,
    repairs: ContentReader,
    pub(in crate::io) content: Arc<Content>,
    stream_bytes: u64,
    /// Everything below was read, or needs no reading.
    available: u64,
    /// What was read while the sender waited.
    unread: Option<Read>,
}

impl Outgoing {
    pub(in crate::io) fn start(source: &Arc<Source>) -> Self {
        let content = Arc::new(Content::new(source.clone()));
        Self {
            reader: Reader::start(content.clone()),
            groups: VecDeque::new(),
            hashes: VecDeque::new(),
            kept: Vec::new(),
            repairs: ContentReader::new(content.clone()),
            content,
            stream_bytes: source.stream_bytes(),
            available: 0,
            unread: None,
        }
    }

    /// Takes what was read meanwhile, and reads on where the packet at `fresh_from` needs it. Buffers below are free again, and
    /// nothing below `needed_from` will be sent again. Returns up to where the stream is available.
    pub(in crate::io) fn advance(&mut self, fresh_from: u64, needed_from: u64) -> u64 {
        loop {
            let urgent = self.available < fresh_from + READ_AHEAD_BYTES;
            match self.unread.take().or_else(|| self.reader.take(urgent)) {
                Some(Read::Group(start, bytes)) => {
                    self.available = start + bytes.len() as u64;
                    if let Some(hash) = bytes.last_chunk() {
                        self.hashes.push_back((groups::group_of(start), *hash));
                    }
                    self.groups.push_back((start, bytes));
                }
                Some(Read::UpTo(end)) => self.available = end,
                None => break,
            }
        }
        while let Some((start, bytes)) =
            self.groups.pop_front_if(|(start, bytes)| *start + bytes.len() as u64 <= fresh_from)
        {
            if self.content.is_read_once(groups::group_of(start)) {
                self.kept.push((start, bytes));
            } else {
                self.reader.give_back(bytes);
            }
        }
        let needed = groups::group_of(needed_from);
        while self.hashes.pop_front_if(|(group, _)| *group < needed).is_some() {}
        self.available
    }

    /// Waits until more was read, at most so long.
    pub(in crate::io) fn wait(&mut self, time: Duration) {
        if let Some(read) = self.reader.wait(time) {
            self.unread = Some(read);
        }
    }

    /// Groups that lie in these ranges need no reading.
    pub(in crate::io) fn skip(&mut self, held: RangeSet) {
        self.reader.skip(held);
    }

    /// Copies bytes of the stream: from the groups in memory, or from the disk where they were sent before.
    pub(in crate::io) fn fill(&mut self, offset: u64, mut place: &mut [u8]) {
        let mut at = offset;
        while !place.is_empty() {
            let group = groups::group_of(at);
            let range = groups::group_range(group, self.stream_bytes);
            let take = place.len().min((range.end - at) as usize);
            let (head, rest) = place.split_at_mut(take);
            match self.groups.iter().chain(&self.kept).find(|(start, _)| *start == range.start) {
                Some((start, bytes)) => {
                    let from = (at - start) as usize;
                    head.copy_from_slice(&bytes[from..from + take]);
                }
                None => {
                    let hash = self.hashes.binary_search_by_key(&group, |(group, _)| *group);
                    let hash = hash.map_or(&[0; HASH_BYTES as usize], |at| &self.hashes[at].1);
                    read_again(&mut self.repairs, head, at, hash, self.stream_bytes);
                }
            }
            (at, place) = (at + take as u64, rest);
        }
    }
}

/// Reads a part of one group from the disk again. The receiver notices a file that changed meanwhile: it no longer has its
/// hash.
fn read_again(files: &mut ContentReader, place: &mut [u8], at: u64, hash: &[u8], stream_bytes: u64) {
    let group = groups::group_of(at);
    let content = groups::content_range(group, stream_bytes);
    let within = at - groups::group_range(group, stream_bytes).start;
    let content_left = (content.end - content.start).saturating_sub(within);
    let (head, tail) = place.split_at_mut(place.len().min(content_left as usize));
    if !head.is_empty() {
        files.read_at(head, content.start + within);
    }
    if !tail.is_empty() {
        let from = (within + head.len() as u64 - (content.end - content.start)) as usize;
        tail.copy_from_slice(&hash[from..from + tail.len()]);
    }
}

/// What is read before the sender needs it: the longest packet.
const READ_AHEAD_BYTES: u64 = 64 << 10;
