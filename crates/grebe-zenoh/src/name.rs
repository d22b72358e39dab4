//! Names of streams, and patterns of names.

use std::fmt;
use std::str::FromStr;

/// The name of a stream in a lab: at least two words of letters, digits, `-`, `_` and `.`, with slashes between.
///
/// ```
/// use grebe_zenoh::StreamName;
///
/// assert_eq!("lab/mast3/adc".parse::<StreamName>().unwrap().to_string(), "lab/mast3/adc");
/// assert!("adc".parse::<StreamName>().is_err(), "one word is too short");
/// assert!("lab/../adc".parse::<StreamName>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(String);

impl StreamName {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StreamName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_good = text.contains('/') && text.split('/').all(is_word) && text.len() <= NAME_BYTES_MAX;
        if is_good { Ok(Self(text.to_owned())) } else { Err(NO_NAME) }
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pattern of names, with `*` for one word and `**` for any number of words.
///
/// A single word includes all names below it: `lab` is `lab/**`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// All names.
    pub fn all() -> Self {
        Self("**".to_owned())
    }

    /// In Zenoh's notation.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern includes a name.
    pub fn matches(&self, name: &StreamName) -> bool {
        fn matches(pattern: &[&str], words: &[&str]) -> bool {
            match pattern {
                [] => words.is_empty(),
                ["**", rest @ ..] => (0..=words.len()).any(|skipped| matches(rest, &words[skipped..])),
                [first, rest @ ..] => words
                    .split_first()
                    .is_some_and(|(word, words)| (*first == "*" || first == word) && matches(rest, words)),
            }
        }
        let (pattern, words): (Vec<_>, Vec<_>) = (self.0.split('/').collect(), name.0.split('/').collect());
        matches(&pattern, &words)
    }
}

impl From<&StreamName> for Pattern {
    fn from(name: &StreamName) -> Self {
        Self(name.0.clone())
    }
}

impl FromStr for Pattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let is_good = text.split('/').all(|word| matches!(word, "*" | "**") || is_word(word));
        if !is_good || text.len() > NAME_BYTES_MAX {
            return Err("is not a pattern of names: write lab/mast3/adc, lab/*/adc or lab/**");
        }
        if !text.contains(['/', '*']) {
            return Ok(Self(format!("{text}/**")));
        }
        // Zenoh accepts only the canonical form: `**` after `*`, and once.
        let mut words: Vec<&str> = Vec::new();
        for word in text.split('/') {
            match (words.last(), word) {
                (Some(&"**"), "**") => {}
                (Some(&"**"), "*") => words.insert(words.len() - 1, "*"),
                _ => words.push(word),
            }
        }
        Ok(Self(words.join("/")))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks that frames can be sent to this Zenoh key: it must not be a pattern, and not be below `@`, where Zenoh's own
/// keys are.
///
/// # Errors
/// The reason why not.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    let is_good = |word: &str| {
        !word.is_empty()
            && !word.starts_with('@')
            && !word.contains(|c: char| c.is_control() || c.is_whitespace() || "*$?#&=".contains(c))
    };
    if key.len() <= KEY_BYTES_MAX && key.split('/').all(is_good) {
        Ok(())
    } else {
        Err("is not a Zenoh key: write zenoh://WORD/WORD/..., without * $ ? # @ and spaces")
    }
}

fn is_word(word: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !matches!(word, "" | "." | "..") && word.chars().all(is_good)
}

const NO_NAME: &str = "is not a stream name: write words of letters, digits, '-', '_' and '.' with slashes between, such as lab/mast3/adc";
const NAME_BYTES_MAX: usize = 128;
const KEY_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_words_with_slashes() {
        for good in ["a/b", "lab/mast3/adc", "a.b/c-d_e/9"] {
            assert_eq!(good.parse::<StreamName>().unwrap().as_str(), good);
        }
        for bad in
            ["", "a", "/a", "a/", "a//b", "a/..", "./a", "a b/c", "a/*", "@/a", "ä/b", &"a/".repeat(80)]
        {
            assert!(bad.parse::<StreamName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pattern_means_what_it_says() {
        for (pattern, written, meant, not) in [
            ("**", "**", "a/b/c", ""),
            ("lab", "lab/**", "lab/x", "other/lab"),
            ("lab/*/adc", "lab/*/adc", "lab/mast3/adc", "lab/adc"),
            ("lab/**/adc", "lab/**/adc", "lab/adc", "lab/adc/x"),
            ("a/**/**/*", "a/*/**", "a/b", "b/a"),
            ("a/b", "a/b", "a/b", "a/b/c"),
        ] {
            let pattern: Pattern = pattern.parse().unwrap();
            assert_eq!(pattern.as_str(), written);
            assert!(pattern.matches(&meant.parse().unwrap()), "{pattern} {meant}");
            assert!(not.parse().map_or(true, |not| !pattern.matches(&not)), "{pattern} {not}");
        }
        for bad in ["", "a*/b", "/a", "a/$*", "a b"] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_no_patterns() {
        assert_eq!(check_key("adc"), Ok(()));
        assert_eq!(check_key("site/ä:1/adc"), Ok(()));
        for bad in ["", "/a", "a/", "a/**", "@/router", "a?b", "a b"] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_a_name_is_a_pattern_of_itself(text in ".{0,40}") {
            let _ = (text.parse::<Pattern>(), check_key(&text));
            if let Ok(name) = text.parse::<StreamName>() {
                prop_assert!(text.parse::<Pattern>().unwrap().matches(&name));
                prop_assert!(Pattern::from(&name).matches(&name));
            }
        }
    }
}
