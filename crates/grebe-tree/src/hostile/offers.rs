//! Senders that offer one thing and send another.

use super::*;
use crate::receive::{Reception, receive_offer};
use crate::wire::OfferedNames;

/// Builds the stream of a sender that offers two files and 10 bytes.
fn offering(names: &[&[u8]]) -> Liar {
    let mut writer = FrameWriter::new(Vec::new());
    let hello = Hello { sources: 2, is_offer: true, ..Hello::new(Role::Sender) };
    writer.write(Kind::Hello, &hello.encode()).unwrap();
    let tops = names.iter().map(|name| Box::from(*name)).collect();
    writer.write(Kind::Offer, &OfferedNames { tops, files: 2, bytes: 10 }.encode()).unwrap();
    Liar { writer }
}

fn take(ground: &Ground, stream: Vec<u8>) -> Result<Report> {
    let reception =
        Reception { directory: ground.destination(), overwrite: true, accept: None, sender_waits: false };
    let cancel = crate::Cancel::default();
    receive_offer(Cursor::new(stream), Captured::default(), &reception, &[], &Arc::default(), &cancel)
}

#[test]
fn a_sender_is_held_to_what_it_has_offered() {
    let content = |data: &mut DataWriter| data.whole(0, b"12345", 0);
    let names: &[&[u8]] = &[b"a", b"b", b".grebe-x", b"../up", b"l", b"h"];
    for (what, stream) in [
        ("another name", offering(names).list(0, 0, &[file(b"c", 5)]).data(content).end()),
        ("our own", offering(names).list(0, 0, &[file(b".grebe-x", 5)]).data(content).end()),
        ("a name above", offering(names).list(0, 0, &[file(b"../up", 5)]).data(content).end()),
        ("a link", offering(names).list(0, 0, &[symlink(b"l", Path::new("/etc/passwd"))]).end()),
        (
            "a further name",
            offering(names).list(0, 0, &[file(b"c", 5), entry(b"h", EntryKind::HardLink { to: 0 })]).end(),
        ),
    ] {
        let ground = Ground::new();
        let report = take(&ground, stream).unwrap();
        assert!(report.left_out_count >= 1, "{what}: {report:?}");
        assert_eq!(report.paths, Vec::<std::path::PathBuf>::new(), "{what}");
        ground.assert_untouched();
        assert_eq!(fs::read_dir(ground.destination()).unwrap().count(), 1, "{what}");
    }
    let many = [file(b"a", 5), file(b"b", 5), file(b"a", 0)];
    for (what, stream) in [
        ("more bytes", offering(names).list(0, 0, &[file(b"a", 11)]).end()),
        ("more files", offering(names).list(0, 0, &many).end()),
        ("contents", offering(names).list(0, 0, &[entry(b"", EntryKind::Itself)]).end()),
    ] {
        let ground = Ground::new();
        let received = take(&ground, stream);
        assert!(matches!(received, Err(Error::Malformed { .. })), "{what}: {received:?}");
        ground.assert_untouched();
    }
    let piece = |data: &mut DataWriter| data.piece(0, 4, b"12");
    let longer = |data: &mut DataWriter| {
        data.piece(0, 0, b"12345");
        data.end(0, 1 << 40, 0);
    };
    for (what, stream) in [
        ("a longer file", offering(names).list(0, 0, &[file(b"a", 3)]).data(content).end()),
        ("a piece behind its end", offering(names).list(0, 0, &[file(b"a", 5)]).data(piece).end()),
        ("a later end", offering(names).list(0, 0, &[file(b"a", 5)]).data(longer).end()),
    ] {
        let ground = Ground::new();
        let report = take(&ground, stream).unwrap();
        assert!(report.left_out[0].why.contains("larger than the offer"), "{what}: {report:?}");
        assert!(!ground.destination().join("a").exists(), "{what}");
    }
}

#[test]
#[cfg(unix)]
fn owners_attributes_and_modes_that_a_sender_names_do_not_count() {
    use crate::system::{attributes, metadata, user};
    use crate::wire::{Attribute, Owner};
    let ground = Ground::new();
    let mark = Attribute { name: b"user.grebe".to_vec(), value: b"theirs".to_vec() };
    let owner = Some(Owner { user: 12_345, group: 12_345 });
    let named = Entry { mode: 0o6777, owner, attributes: vec![mark], ..file(b"a", 5) };
    let liar = offering(&[b"a"]).list(0, 0, &[named]).data(|data| data.whole(0, b"12345", 0));
    assert_eq!(take(&ground, liar.end()).unwrap().files_copied, 1);
    let open = |name: &str| fs::File::open(ground.destination().join(name)).unwrap();
    let (found, own) = (metadata(&open("a")).unwrap(), metadata(&open("there")).unwrap());
    assert_eq!((found.owner.user, found.mode & 0o7666), (user(), own.mode & 0o666));
    assert!(attributes(&open("a")).unwrap().is_empty());
}

#[test]
fn a_sender_brings_no_options() {
    for hello in [
        Hello { options: Some(archive()), is_offer: true, ..Hello::new(Role::Sender) },
        Hello { is_contents: true, is_offer: true, ..Hello::new(Role::Sender) },
        Hello { options: Some(archive()), ..Hello::new(Role::Sender) },
    ] {
        let ground = Ground::new();
        let mut writer = FrameWriter::new(Vec::new());
        writer.write(Kind::Hello, &hello.encode()).unwrap();
        let taken = take(&ground, Liar { writer }.list(0, 0, &[]).end());
        assert!(matches!(taken, Err(Error::Roles { .. })), "{taken:?}");
        ground.assert_untouched();
    }
}
