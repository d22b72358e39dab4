//! Entry points of the fuzz targets: the parsers of foreign bytes.

use crate::{Answer, Found, Nonce, Request, SenderId, What, pieces};

/// A message and its attachment: its pieces lie in order within it.
pub fn message(attachment: &[u8], message: &[u8]) {
    let sender = SenderId::read(attachment);
    assert!(attachment.len() == 16 || sender == SenderId::default());
    let mut at = 0;
    for piece in pieces(message) {
        let Ok(piece) = piece else { break };
        assert!(piece.range.start == at && piece.range.end > at && piece.range.end <= message.len());
        at = piece.range.end;
    }
}

/// An announcement: an accepted one is printable, and writing and reading again gives the same.
pub fn announcement(key: &str, json: &[u8]) {
    let Ok(found) = Found::parse(key, json) else { return };
    let texts = [&found.what.host, &found.what.command, &found.what.format];
    assert!(texts.into_iter().chain(&found.what.routes).all(|text| !text.contains(char::is_control)));
    let again = What::parse(found.what.to_json().as_bytes());
    assert!(again.is_ok(), "{again:?}");
}

/// A reader's request: writing and reading again gives the same.
pub fn request(json: &[u8]) {
    let _ = (Answer::parse(json), Nonce::of_probe(json));
    let Ok(request) = Request::parse(json) else { return };
    assert_eq!(Request::parse(request.to_json().as_bytes()), Ok(request));
}
