//! Tests against hostile peers. Each test plays one end byte by byte and checks the other one.

mod bounds;
mod offers;
mod receivers;

use std::fs;
use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use proptest::prelude::*;

use crate::delta::{ChunkSizes, Run};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::receive::{ReceiveTree, receive};
use crate::report::Report;
use crate::wire::{
    Answer, AnswerWriter, DataWriter, Entry, EntryKind, FinerRange, FrameWriter, Hello, Kind, Left,
    ListingWriter, Made, MadeWord, Role, SenderEnd, Shift, Summary, Want,
};

/// Records the stream to the hostile peer.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A destination, and a directory beside it that must stay untouched.
struct Ground {
    all: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let all = tempfile::tempdir().unwrap();
        fs::create_dir(all.path().join("outside")).unwrap();
        fs::write(all.path().join("outside/sentinel"), "untouched").unwrap();
        fs::create_dir(all.path().join("destination")).unwrap();
        // Not fresh, so that answers are requested.
        fs::write(all.path().join("destination/there"), "there").unwrap();
        Self { all }
    }

    fn destination(&self) -> std::path::PathBuf {
        self.all.path().join("destination")
    }

    /// Runs a receiver against the hostile sender's stream and returns its result.
    fn receive(&self, stream: Vec<u8>, options: Options) -> Result<Report> {
        let tree = ReceiveTree { destination: self.destination(), options: Some(options), is_fresh: false };
        let received = receive(
            Cursor::new(stream),
            Captured::default(),
            &tree,
            &Arc::default(),
            &crate::Cancel::default(),
        );
        self.assert_untouched();
        received
    }

    fn assert_untouched(&self) {
        let outside = self.all.path().join("outside");
        let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["sentinel"]);
        assert_eq!(fs::read(outside.join("sentinel")).unwrap(), b"untouched");
        let mut above: Vec<_> =
            fs::read_dir(self.all.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        above.sort();
        assert_eq!(above, ["destination", "outside"]);
        assert_eq!(fs::read(self.destination().join("there")).unwrap(), b"there");
    }
}

/// Builds the stream of a sender.
struct Liar {
    writer: FrameWriter<Vec<u8>>,
}

impl Liar {
    fn new() -> Self {
        let mut writer = FrameWriter::new(Vec::new());
        let hello = Hello { sources: 2, ..Hello::new(Role::Sender) };
        writer.write(Kind::Hello, &hello.encode()).unwrap();
        Self { writer }
    }

    fn list(mut self, directory: u32, first: u64, entries: &[Entry]) -> Self {
        let mut listing = ListingWriter::new(directory);
        entries.iter().zip(first..).for_each(|(entry, id)| listing.add(entry, id));
        self.writer.write(Kind::Listing, &listing.finish(true, false)).unwrap();
        self
    }

    fn data(mut self, fill: impl FnOnce(&mut DataWriter)) -> Self {
        let mut data = DataWriter::new(0);
        fill(&mut data);
        self.writer.write(Kind::Data, &data.finish()).unwrap();
        self
    }

    fn end(mut self) -> Vec<u8> {
        let end = SenderEnd { is_complete: true, ..SenderEnd::default() };
        self.writer.write(Kind::End, &end.encode()).unwrap();
        self.cut()
    }

    fn cut(self) -> Vec<u8> {
        self.writer.into_stream()
    }
}

fn entry(name: &[u8], kind: EntryKind) -> Entry {
    Entry { name: name.to_vec(), kind, modified_ns: 0, mode: 0o644, owner: None, attributes: Vec::new() }
}

fn file(name: &[u8], bytes: u64) -> Entry {
    entry(name, EntryKind::File { bytes, is_linked: false, touched: 0 })
}

fn symlink(name: &[u8], target: &Path) -> Entry {
    entry(name, EntryKind::Symlink { target: target.as_os_str().as_encoded_bytes().to_vec() })
}

fn archive() -> Options {
    Options { force: true, delete: true, ..Options::archive() }
}

#[test]
fn names_that_lead_out_are_left_out_and_the_others_arrive() {
    for bad in [&b".."[..], b".", b"../outside/x", b"/tmp/x", b"a/b", b"a\0", b".grebe-partial", b".Grebe-x"]
    {
        let ground = Ground::new();
        let liar = Liar::new()
            .list(0, 0, &[file(bad, 3), entry(bad, EntryKind::Directory), file(b"good", 4), file(bad, 0)])
            .list(1, 4, &[file(b"inside", 3)])
            .data(|data| {
                data.whole(0, b"bad", 0);
                data.whole(2, b"good", 0);
                data.whole(4, b"bad", 0);
            });
        let report = ground.receive(liar.end(), archive()).unwrap();
        assert_eq!((report.files_copied, report.left_out_count), (1, 3), "{bad:?}: {report:?}");
        assert_eq!(fs::read(ground.destination().join("good")).unwrap(), b"good");
        assert_eq!(fs::read_dir(ground.destination()).unwrap().count(), 2, "{bad:?}");
    }
}

#[test]
#[cfg(unix)]
fn a_link_that_leads_out_is_not_gone_through() {
    let ground = Ground::new();
    let outside = ground.all.path().join("outside");
    // First the link, then the same name as a directory with files below it.
    for second in [entry(b"way", EntryKind::Directory), file(b"way", 3), symlink(b"way", Path::new("there"))]
    {
        let liar = Liar::new()
            .list(0, 0, &[symlink(b"way", &outside), second.clone(), entry(b"way", EntryKind::Directory)])
            .list(1, 3, &[file(b"sentinel", 3), file(b"new", 3), symlink(b"link", Path::new("/"))])
            .data(|data| [1, 3, 4].into_iter().for_each(|id| data.whole(id, b"bad", 0)));
        let _ = ground.receive(liar.end(), Options::archive());
        let _ = fs::remove_file(ground.destination().join("way"));
        let _ = fs::remove_dir_all(ground.destination().join("way"));
    }
    // A link that existed before.
    std::os::unix::fs::symlink(&outside, ground.destination().join("way")).unwrap();
    let liar = || {
        Liar::new()
            .list(0, 0, &[entry(b"way", EntryKind::Directory)])
            .list(1, 1, &[file(b"sentinel", 3), file(b"new", 3)])
            .data(|data| [1, 2].into_iter().for_each(|id| data.whole(id, b"bad", 0)))
            .end()
    };
    let report = ground.receive(liar(), Options::archive()).unwrap();
    assert_eq!((report.files_copied, report.left_out_count), (0, 1));
    assert_eq!(fs::read_link(ground.destination().join("way")).unwrap(), outside);
    // With `force` the link is removed, but not its target.
    let report = ground.receive(liar(), Options { force: true, ..Options::archive() }).unwrap();
    assert_eq!((report.files_copied, report.left_out_count), (2, 0));
    assert!(ground.destination().join("way").symlink_metadata().unwrap().is_dir());
}

#[test]
#[cfg(unix)]
fn hard_links_are_made_to_files_of_this_copy_alone() {
    let ground = Ground::new();
    let linked = |name: &[u8]| entry(name, EntryKind::File { bytes: 3, is_linked: true, touched: 0 });
    std::os::unix::fs::symlink(ground.all.path().join("outside/sentinel"), ground.destination().join("sly"))
        .unwrap();
    let liar = Liar::new()
        .list(
            0,
            0,
            &[
                linked(b"good"),
                entry(b"other", EntryKind::HardLink { to: 0 }),
                symlink(b"link", &ground.all.path().join("outside/sentinel")),
                entry(b"to link", EntryKind::HardLink { to: 2 }),
                linked(b"never sent"),
                entry(b"to nothing", EntryKind::HardLink { to: 4 }),
            ],
        )
        .data(|data| {
            data.whole(0, b"one", 0);
            data.failed(4, false);
        });
    let report = ground.receive(liar.end(), Options::archive()).unwrap();
    assert_eq!((report.files_copied, report.links_made, report.left_out_count), (1, 2, 2), "{report:?}");
    assert_eq!(fs::read(ground.destination().join("other")).unwrap(), b"one");
    for none in ["to link", "to nothing", "never sent"] {
        assert!(fs::symlink_metadata(ground.destination().join(none)).is_err(), "{none}");
    }
}

#[test]
fn a_claim_of_early_content_counts_only_if_the_content_is_there() {
    let ground = Ground::new();
    let early = |data: &mut DataWriter| {
        data.early(0, 0, &[7; 1_000]);
        data.early(9, 1 << 60, &[7; 1_000]);
        data.laid(0, 0, 1_000, &[0; 16]);
        data.end(0, 1_000, 0);
    };
    let listed = Liar::new().list(0, 0, &[file(b"x", 5_000_000)]).data(early);
    // The range is requested again and does not arrive.
    assert!(matches!(ground.receive(listed.end(), archive()), Err(Error::Closed)));
    assert!(!ground.destination().join("x").exists());
    let not_listed = Liar::new().list(0, 0, &[]).data(|data| data.laid(0, 0, 1_000, &[0; 16]));
    assert!(matches!(ground.receive(not_listed.end(), archive()), Err(Error::Malformed { .. })));
    // Messages about files without a comparison are ignored.
    let mut liar = Liar::new().list(0, 0, &[]);
    let look = FinerRange { id: 7, sizes: ChunkSizes::from_byte(11).unwrap(), first: 0, chunks: u32::MAX };
    liar.writer.write(Kind::FinerRange, &look.encode()).unwrap();
    liar.writer.write(Kind::Shift, &Shift { id: 7, bytes: i64::MIN }.encode()).unwrap();
    ground.receive(liar.end(), Options { delete: false, ..archive() }).unwrap();
}

#[test]
fn a_breach_of_the_protocol_ends_the_copy_and_names_no_file() {
    let large = 3 << 20;
    let listed = || Liar::new().list(0, 0, &[file(b"large", large), file(b"small", 5)]);
    let lies: Vec<(&str, Vec<u8>)> = vec![
        ("a directory that was not listed", listed().list(7, 2, &[file(b"x", 1)]).end()),
        ("content that was not listed", listed().data(|data| data.whole(9, b"bad", 0)).end()),
        (
            "pieces that go back",
            listed()
                .data(|data| {
                    data.piece(0, 5_000, b"piece");
                    data.piece(0, 10, b"piece");
                    data.end(0, large, 0);
                })
                .end(),
        ),
        (
            "a file shorter than its pieces",
            listed()
                .data(|data| {
                    data.piece(0, 5_000, b"piece");
                    data.end(0, 10, 0);
                })
                .end(),
        ),
        ("a stream that ends", listed().data(|data| data.piece(0, 0, b"piece")).cut()),
        ("a file handed over", Liar::new().list(0, 0, &[file(b"x", 3)]).data(|data| data.local(0)).cut()),
        ("a piece beyond the end of any file", {
            listed().data(|data| data.piece(0, u64::MAX - 2, b"piece")).end()
        }),
        ("chunks of a file that was not told", {
            let run = Run { first: u32::MAX, chunks: u32::MAX, check: [0; 16] };
            listed().data(|data| data.copy(0, u64::MAX - 2, &run)).end()
        }),
        ("a hash without a request", listed().data(|data| data.compared(0, false)).end()),
        ("a hello in the middle", {
            let mut liar = listed();
            liar.writer.write(Kind::Hello, b"grebe tree").unwrap();
            liar.end()
        }),
        ("answers", {
            let mut liar = listed();
            liar.writer.write(Kind::Answers, &[8]).unwrap();
            liar.end()
        }),
        ("a wrong hash", {
            let mut liar = listed();
            let mut data = DataWriter::new(0);
            data.whole(1, b"small", 0);
            let mut body = data.finish();
            *body.last_mut().unwrap() ^= 1;
            liar.writer.write(Kind::Data, &body).unwrap();
            liar.end()
        }),
        ("the top described below it", {
            Liar::new()
                .list(0, 0, &[entry(b"d", EntryKind::Directory)])
                .list(1, 1, &[entry(b"", EntryKind::Itself)])
                .end()
        }),
    ];
    for (lie, stream) in lies {
        let ground = Ground::new();
        let received = ground.receive(stream, archive());
        assert!(matches!(received, Err(Error::Malformed { .. } | Error::Closed)), "{lie}: {received:?}");
        for none in ["large", "small", "x"] {
            assert!(!ground.destination().join(none).exists(), "{lie}");
        }
    }
}

#[test]
fn content_that_was_not_requested_is_refused() {
    let ground = Ground::new();
    fs::write(ground.destination().join("same"), "old").unwrap();
    let modified = fs::metadata(ground.destination().join("same")).unwrap().modified().unwrap();
    let modified_ns = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    let same = Entry { modified_ns, ..file(b"same", 3) };
    let liar = Liar::new().list(0, 0, &[same]).data(|data| data.whole(0, b"new", 0));
    let report = ground.receive(liar.end(), Options { recursive: true, ..Options::default() }).unwrap();
    assert_eq!((report.files_copied, report.files_same), (0, 1));
    assert_eq!(fs::read(ground.destination().join("same")).unwrap(), b"old");
}

/// A block sender with one false statement. Earlier good data stays.
#[test]
fn blocks_that_cannot_be_end_the_copy_and_nothing_gets_its_name() {
    type Lie = fn(&mut DataWriter);
    const BYTES: u64 = (9 << 18) + 5;
    let lies: [(&str, Lie); 11] = [
        ("blocks of another length", |data| data.blocks(0, 19)),
        ("of a length that none has", |data| data.blocks(0, 255)),
        ("a block beyond the end", |data| begun(data).block(0, 10)),
        ("a block far beyond", |data| begun(data).block(0, u64::MAX)),
        ("a block twice", |data| {
            begun(data).block(0, 3);
            data.block(0, 3);
        }),
        ("a piece of a block that came", |data| {
            begun(data).block(0, 3);
            data.piece(0, 3 << 18, b"again");
        }),
        ("a piece over the end of a block", |data| begun(data).piece(0, (4 << 18) - 2, b"over")),
        ("a piece beyond the end of the file", |data| begun(data).piece(0, BYTES - 1, b"over")),
        ("a piece at the end of all files", |data| begun(data).piece(0, i64::MAX as u64 - 4, b"over")),
        ("an end before all came", |data| begun(data).end(0, BYTES, 0)),
        ("that it comes in blocks, after pieces", |data| {
            data.piece(0, 0, b"piece");
            data.blocks(0, 18);
        }),
    ];
    fn begun(data: &mut DataWriter) -> &mut DataWriter {
        data.blocks(0, 18);
        data
    }
    for (lie, fill) in lies {
        let ground = Ground::new();
        let liar = Liar::new().list(0, 0, &[file(b"x.sigmf-data", BYTES), file(b"good", 4)]);
        let liar = liar.data(|data| data.whole(1, b"good", 0)).data(fill);
        let options = Options { progressive: true, ..Options::archive() };
        let received = ground.receive(liar.end(), options);
        assert!(matches!(received, Err(Error::Malformed { .. })), "{lie}: {received:?}");
        assert!(!ground.destination().join("x.sigmf-data").exists(), "{lie}");
    }
    // Unsolicited blocks of a file that is not a recording are as good as pieces.
    let ground = Ground::new();
    let liar = Liar::new().list(0, 0, &[file(b"x", 300_000)]).data(|data| {
        begun(data).piece(0, 1 << 18, &[2; 300_000 - (1 << 18)]);
        data.block(0, 1);
        data.piece(0, 0, &[1; 1 << 18]);
        data.block(0, 0);
        data.end(0, 300_000, 0);
    });
    let report = ground.receive(liar.end(), Options::archive()).unwrap();
    assert_eq!(report.files_copied, 1);
    let content = fs::read(ground.destination().join("x")).unwrap();
    assert!(content.len() == 300_000 && content[0] == 1 && content[299_999] == 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Blocks and pieces in any order, of a file that a viewer may read.
    #[test]
    fn only_a_whole_file_gets_its_name_from_any_blocks(
        said in prop::collection::vec((0_u8..5, 0_u64..12, 0_u64..1 << 19), 0..40), log2 in prop_oneof![9 => Just(18_u32), 1 => 0_u32..256],
    ) {
        let ground = Ground::new();
        let liar = Liar::new().list(0, 0, &[file(b"x.sigmf-data", 9 << 18)]).data(|data| {
            data.blocks(0, log2);
            for (kind, block, offset) in said {
                match kind {
                    0 | 1 => data.block(0, block),
                    2 => data.piece(0, (block << 18) + offset, b"some"),
                    3 => data.end(0, 9 << 18, 0),
                    _ => data.restart(0),
                }
            }
        });
        let options = Options { progressive: true, ..Options::archive() };
        let received = ground.receive(liar.end(), options);
        let path = ground.destination().join("x.sigmf-data");
        if path.exists() {
            prop_assert_eq!(fs::metadata(path).unwrap().len(), 9 << 18, "{:?}", received);
        }
    }

    /// Frames of any kind in any order, with almost valid bodies.
    #[test]
    fn no_sender_touches_files_outside(
        frames in prop::collection::vec((2_u8..9, prop::collection::vec(any::<u8>(), 0..60), 0_u64..6), 0..12),
    ) {
        let ground = Ground::new();
        let mut liar = Liar::new().list(0, 0, &[
            entry(b"d", EntryKind::Directory), file(b"large", 2 << 20), file(b"small", 5), symlink(b"l", Path::new("..")),
        ]);
        for (kind, bytes, id) in frames {
            match kind {
                2 => liar = liar.list(id as u32 % 3, 4 + id, &[file(&bytes, id * 100_000), symlink(&bytes, Path::new("../outside"))]),
                3 if id < 4 => liar = liar.data(|data| {
                    data.piece(id, u64::from(bytes.len() as u32) * 1_000, &bytes);
                    data.whole(id + 1, &bytes, 0);
                }),
                3 => liar = liar.data(|data| { data.restart(id); data.end(id, 1 << 20, 0); data.compared(2, true); }),
                kind => {
                    let kinds = [Kind::Answers, Kind::LeftOut, Kind::Deleted, Kind::Failed, Kind::Listing, Kind::Data];
                    liar.writer.write(kinds[usize::from(kind) % kinds.len()], &bytes).unwrap();
                }
            }
        }
        let _ = ground.receive(liar.end(), archive());
    }
}
