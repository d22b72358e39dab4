#![no_main]

use grebe_view::{ScopeMessage, RemoteScope, Finding, Sought};
use libfuzzer_sys::fuzz_target;

// Messages of a server to a viewer, each with a byte of length and type before it.
fuzz_target!(|bytes: &[u8]| {
    let (mut scope, link) = RemoteScope::new("grebe fuzz", "there", || {});
    scope.connected("", 1, 60.0);
    let (finder, mut finding) = (scope.finder(), None);
    let mut rest = bytes;
    while let Some((&head, after)) = rest.split_first() {
        let length = (usize::from(head >> 1) * 8 + 1).min(after.len());
        let (message, after) = after.split_at(length);
        rest = after;
        let message = match head & 1 {
            0 => ScopeMessage::Binary(message.to_vec()),
            _ => ScopeMessage::Text(String::from_utf8_lossy(message).into_owned()),
        };
        let _ = scope.take(&message, 1);
        while scope.next(2).is_some() {}
        // A search begins as soon as the server lets that be.
        let news = finding.as_ref().and_then(|finding: &Finding| finding.take_news());
        if finding.is_none() || news.is_some_and(|news| news.ended.is_some()) {
            finding = Some(finder.find(Sought { words: "gap".into(), ..Sought::default() }));
        }
        if let Some(picture) = link.take() {
            for lane in &picture.lanes {
                assert!(lane.line.as_ref().is_none_or(|line| line.spans.len() == lane.columns.len()));
            }
        }
    }
});
