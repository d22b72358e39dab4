//! Bytes of one end of a copy of trees.

const DATA: u8 = 3;
const KINDS: u8 = 18;

/// The first message of an end; `options` as bits.
pub fn hello(receives: bool, options: Option<u32>) -> Vec<u8> {
    // All options except flushing to disk, which is slow and reads nothing.
    const OPTIONS: u32 = 0x1_67ff;
    let mut body = b"grebe tree\x01".to_vec();
    body.push(u8::from(receives) | u8::from(options.is_some()) << 1);
    body.push(1);
    if let Some(options) = options {
        let options = options & OPTIONS;
        body.extend([options as u8 | 0x80, (options >> 7) as u8 | 0x80, (options >> 14) as u8, 0, 0]);
    }
    frame(1, &body)
}

/// The first messages of a sender without a login: its offer.
pub fn offer(files: u8, bytes: u16, names: &[Vec<u8>]) -> Vec<u8> {
    const IS_OFFER: u8 = 1 << 5;
    let mut body = b"grebe tree\x01".to_vec();
    body.extend([IS_OFFER, 1]);
    let mut stream = frame(1, &body);
    let mut offer = vec![files & 0x7f, bytes as u8 | 0x80, (bytes >> 7) as u8 & 0x7f];
    for name in names.iter().filter(|name| name.len() < 0x80) {
        offer.push(name.len() as u8);
        offer.extend_from_slice(name);
    }
    stream.extend(frame(16, &offer));
    stream
}

/// A stream and the messages after it, with a valid end. Content has its hash, because a wrong one ends the stream.
pub fn frames(mut stream: Vec<u8>, said: &[(u8, Vec<u8>)]) -> Vec<u8> {
    for (kind, body) in said {
        let kind = kind % KINDS;
        let hash = blake3::hash(body);
        let hash = if kind == DATA { &hash.as_bytes()[..16] } else { &[] };
        stream.extend(frame(kind, &[hash, body].concat()));
    }
    stream.extend(frame(7, &[1, 0, 0, 0]));
    stream
}

fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    let mut length = body.len();
    while length >= 0x80 {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(body);
    bytes
}
