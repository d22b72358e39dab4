//! Hostile receivers.

use super::*;
use crate::send::{SendTree, send};

#[test]
fn a_dishonest_receiver_gets_only_the_named_files() {
    let from = tempfile::tempdir().unwrap();
    fs::write(from.path().join("named"), vec![1; 3_000_000]).unwrap();
    let say = |fill: &dyn Fn(&mut FrameWriter<Vec<u8>>)| {
        let mut writer = FrameWriter::new(Vec::new());
        let hello = Hello::new(Role::Receiver);
        writer.write(Kind::Hello, &hello.encode()).unwrap();
        fill(&mut writer);
        writer.into_stream()
    };
    let answer = |writer: &mut FrameWriter<Vec<u8>>, answers: &[Answer]| {
        let mut body = AnswerWriter::default();
        answers.iter().for_each(|answer| body.add(*answer));
        writer.write(Kind::Answers, &body.take()).unwrap();
    };
    let lies: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", say(&|_| ())),
        ("an answer too many", say(&|writer| answer(writer, &[Answer::Whole, Answer::Whole]))),
        ("beyond the end", say(&|writer| answer(writer, &[Answer::From(3_000_001)]))),
        ("an early end", say(&|writer| writer.write(Kind::End, &Summary::default().encode()).unwrap())),
        ("a listing", say(&|writer| writer.write(Kind::Listing, &[0, 0]).unwrap())),
        ("a second hello", say(&|writer| writer.write(Kind::Hello, &[]).unwrap())),
        ("stretches of a file that was not compared", {
            let made = Made { id: 0, word: MadeWord::Without(vec![0..1, 5..u64::MAX]) };
            say(&|writer| writer.write(Kind::Made, &made.encode()).unwrap())
        }),
        ("two receivers' words", b"\x01\x03abc".to_vec()),
        ("that it looks, where nobody can", say(&|writer| writer.write(Kind::Want, &[0, 0]).unwrap())),
    ];
    for (lie, stream) in lies {
        let tree = SendTree {
            sources: vec![from.path().join("named")],
            options: Some(Options::default()),
            is_fresh: false,
        };
        // Also if it announced an empty destination.
        for tree in [tree.clone(), SendTree { is_fresh: true, ..tree }] {
            let (heard, stream) = (Captured::default(), Cursor::new(stream.clone()));
            let sent = send(stream, heard, &tree, &Arc::default(), &crate::Cancel::default());
            assert!(matches!(sent, Err(Error::Malformed { .. } | Error::Closed)), "{lie}: {sent:?}");
        }
    }
}

#[test]
fn a_request_for_an_empty_range_gets_the_existing_data() {
    let from = tempfile::tempdir().unwrap();
    fs::write(from.path().join("x.sigmf-data"), vec![1; 3_000_000]).unwrap();
    let left = |bits: &[u8]| Left { id: 0, bits: bits.to_vec() }.encode();
    let want = |id, stretches: &[std::ops::Range<u64>]| Want { id, stretches: stretches.to_vec() }.encode();
    for (what, kind, body, is_refused) in [
        ("another file", Kind::Want, want(7, std::slice::from_ref(&(0..10))), false),
        ("beyond the end", Kind::Want, want(0, &[2_999_999..1 << 50, 1 << 60..1 << 61, 5..5]), false),
        ("too many bits", Kind::Left, left(&[0xff; 100]), false),
        ("all of it, and more", Kind::Left, left(&[0xff, 0xff]), false),
        ("half a message", Kind::Want, vec![0, 1, 5], true),
        ("bits without an end", Kind::Left, vec![0, 100, 1], true),
    ] {
        let mut writer = FrameWriter::new(Vec::new());
        let hello = Hello::new(Role::Receiver);
        writer.write(Kind::Hello, &hello.encode()).unwrap();
        writer.write(kind, &body).unwrap();
        let options = Options { progressive: true, ..Options::default() };
        let tree = SendTree {
            sources: vec![from.path().join("x.sigmf-data")],
            options: Some(options),
            is_fresh: false,
        };
        let stream = Cursor::new(writer.into_stream());
        let sent = send(stream, Captured::default(), &tree, &Arc::default(), &crate::Cancel::default());
        let is_told = matches!(sent, Err(Error::Malformed { .. }));
        assert!(sent.is_err() && is_told == is_refused, "{what}: {sent:?}");
    }
}
