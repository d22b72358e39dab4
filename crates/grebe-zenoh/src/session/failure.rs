//! Zenoh's refusals, as messages for users.

use crate::error::Error;

/// Converts an error of Zenoh.
pub(super) fn failed(action: &str) -> impl Fn(zenoh::Error) -> Error + use<> {
    let action = action.to_owned();
    move |error| Error::Zenoh { action: action.clone(), why: why(error) }
}

/// Zenoh's error text, without positions in its source.
pub(super) fn why(error: zenoh::Error) -> String {
    without_places(&error.to_string())
}

pub(super) fn without_places(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for part in text.split(" at ") {
        // `...: cannot connect at /path/to/link.rs:77. - Caused by ...`
        let is_place = part.split_once(".rs:").filter(|(path, _)| !path.contains(' '));
        let part = is_place
            .map_or(part, |(_, rest)| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
        words.push(part.trim());
    }
    words.retain(|part| !part.is_empty());
    words.join(" ").trim().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_locations_of_zenoh_are_not_shown() {
        let text = "Can not create a new TCP link bound to 127.0.0.1:1: refused (os error 111) at /x/y-1.10/src/unicast.rs:354.";
        assert_eq!(
            why(text.into()),
            "Can not create a new TCP link bound to 127.0.0.1:1: refused (os error 111)"
        );
        assert_eq!(why("look at this".into()), "look this");
    }
}
