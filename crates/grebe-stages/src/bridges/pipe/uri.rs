//! `pipe:?wire=gfh2`

use grebe_process::query::{Pairs, Query};

use grebe_link::wire::Wire;

/// Frames back to back on standard input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeStream {
    /// Version of the frames that a sink writes.
    pub wire: Wire,
}

impl PipeStream {
    /// Parses a name. `None`: it belongs to another scheme, or its query is that of a stream without frames.
    pub(super) fn parse(name: &str) -> Option<Result<Self, String>> {
        let (name, query) = name.split_once('?').unwrap_or((name, ""));
        let is_ours = |pair: &str| matches!(pair.split('=').next(), Some("" | "wire"));
        (matches!(name, "pipe:" | "-") && query.split('&').all(is_ours)).then(|| {
            let mut query = Query::new(query)?;
            let wire = query.choice("wire", Wire::WORDS)?.unwrap_or_default();
            query.end()?;
            Ok(Self { wire })
        })
    }

    /// The pairs of the name.
    pub(super) fn pairs(&self) -> Pairs {
        Pairs::default().choice("wire", Wire::WORDS, self.wire, None)
    }
}
