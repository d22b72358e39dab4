//! What a browser gets.

/// The type and the bytes of a file of the page.
pub(crate) fn file(path: &str) -> Option<(&'static str, &'static [u8])> {
    (path == "/").then_some(("text/plain; charset=utf-8", b"grebe serve: open this with grebe view\n"))
}
