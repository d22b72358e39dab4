//! An attribute of an element of XML, of files whose few elements are known.

/// `NAME="value"`.
pub(crate) fn attribute<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(name).skip(1).find_map(|behind| behind.strip_prefix("=\"")?.split('"').next())
}
