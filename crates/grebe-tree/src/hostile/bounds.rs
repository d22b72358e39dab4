//! Peers that make this end hold ever more.

use super::*;
use crate::receive::{Reception, receive_offer};
use crate::wire::{Note, OfferedNames};

/// A stream of messages that are made as they are read. Half a minute of notes follows, within which the other
/// end has to refuse it.
struct Made<I> {
    messages: I,
    notes: u32,
    now: Cursor<Vec<u8>>,
}

impl<I: Iterator<Item = Vec<u8>>> io::Read for Made<I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.now.read(into)?;
            if read > 0 {
                return Ok(read);
            }
            if self.notes > 3_000 {
                return Ok(0);
            }
            self.now = Cursor::new(self.messages.next().unwrap_or_else(|| {
                self.notes += 1;
                std::thread::sleep(std::time::Duration::from_millis(10));
                message(|mut liar| {
                    let note = Note { name: b"x".to_vec(), words: String::new() };
                    liar.writer.write(Kind::LeftOut, &note.encode()).unwrap();
                    liar
                })
            }));
        }
    }
}

fn message(fill: impl FnOnce(Liar) -> Liar) -> Vec<u8> {
    fill(Liar { writer: FrameWriter::new(Vec::new()) }).cut()
}

/// The refusal of a sender that offers a directory, lists it, and then sends `messages`.
fn refusal(messages: impl Iterator<Item = Vec<u8>> + Send + 'static) -> &'static str {
    let ground = Ground::new();
    // In an existing directory, a name that is too long for the system costs no file.
    fs::create_dir(ground.destination().join("d")).unwrap();
    let hello = Hello { sources: 1, is_offer: true, ..Hello::new(Role::Sender) };
    let offer = OfferedNames { tops: vec![Box::from(&b"d"[..])], files: u64::MAX, bytes: 1 << 30 };
    let begun = message(|mut liar| {
        liar.writer.write(Kind::Hello, &hello.encode()).unwrap();
        liar.writer.write(Kind::Offer, &offer.encode()).unwrap();
        liar.list(0, 0, &[entry(b"d", EntryKind::Directory)])
    });
    let reader = Made { messages, notes: 0, now: Cursor::new(begun) };
    let reception =
        Reception { directory: ground.destination(), overwrite: true, accept: None, sender_waits: false };
    let cancel = crate::Cancel::default();
    let received = receive_offer(reader, io::sink(), &reception, &[], &Arc::default(), &cancel);
    ground.assert_untouched();
    match received {
        Err(Error::Malformed { what }) => what,
        other => panic!("{other:?}"),
    }
}

/// Listings of the directory with far more names than are taken, of 1,024 bytes each. All but the last eight
/// are a few bytes on the wire.
fn names(letter: u8, kind: EntryKind) -> impl Iterator<Item = Vec<u8>> + Send {
    const NAMES: u64 = 4_000;
    (0..100).map(move |round| {
        let named = |number: u64| {
            let name = [&[letter; 1_016][..], format!("{number:08}").as_bytes()].concat();
            entry(&name, kind.clone())
        };
        let first = 1 + round * NAMES;
        let entries: Vec<_> = (first..first + NAMES).map(named).collect();
        message(|liar| liar.list(1, first, &entries))
    })
}

#[test]
fn names_take_so_much_memory_and_no_more() {
    let empty = EntryKind::File { bytes: 0, is_linked: true, touched: 0 };
    assert_eq!(refusal(names(b'A', empty)), "more names of one directory than are taken");
    assert_eq!(refusal(names(b'a', EntryKind::Directory)), "more directories than are taken");
}

#[test]
fn the_names_in_a_message_are_limited() {
    let named = |number: u64| file(&[&[b'a'; 1_016][..], format!("{number:08}").as_bytes()].concat(), 0);
    let entries: Vec<_> = (0..5_000).map(named).collect();
    let long = message(|liar| liar.list(1, 1, &entries));
    assert!(long.len() < 100_000, "{}: few bytes on the wire", long.len());
    assert_eq!(refusal(std::iter::once(long)), "more names than a message has");
}

#[test]
fn the_files_without_content_are_limited() {
    let listings = (0..401_u64).map(|round| {
        let first = 1 + round * 1_000;
        let entries: Vec<_> =
            (first..first + 1_000).map(|number| file(format!("{number}").as_bytes(), 1)).collect();
        message(|liar| liar.list(1, first, &entries))
    });
    assert_eq!(refusal(listings), "more names than it sends content for");
}

#[test]
fn the_large_files_at_a_time_are_limited() {
    let entries: Vec<_> = (1..=257).map(|number| file(format!("{number}").as_bytes(), 300_000)).collect();
    let begun = message(|liar| {
        let listed = liar.list(1, 1, &entries);
        listed.data(|data| (1..=257).for_each(|id| data.piece(id, 0, b"begun")))
    });
    assert_eq!(refusal(std::iter::once(begun)), "too many files at once");
}
