//! Exclude patterns.

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Error, Result};

/// Decides whether a name is excluded.
#[derive(Debug, Default)]
pub(crate) struct Exclude {
    any: GlobSet,
    directories: GlobSet,
}

impl Exclude {
    pub(crate) fn new(patterns: &[String]) -> Result<Self> {
        let (mut any, mut directories) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let (only_directories, body) = match pattern.strip_suffix('/') {
                Some(body) => (true, body),
                None => (false, &**pattern),
            };
            let from_top = body.strip_prefix('/');
            let body = from_top.unwrap_or(body);
            if body.is_empty() {
                let why = "it is empty; a pattern is a name, perhaps with * and ? in it".to_owned();
                return Err(Error::Pattern { pattern: pattern.clone(), why });
            }
            let anywhere = format!("**/{body}");
            let glob = GlobBuilder::new(if from_top.is_some() { body } else { &anywhere })
                .literal_separator(true)
                .backslash_escape(true)
                .build()
                .map_err(|error| Error::Pattern {
                    pattern: pattern.clone(),
                    why: error.kind().to_string(),
                })?;
            if only_directories {
                directories.add(glob)
            } else {
                any.add(glob)
            };
        }
        let built = |builder: GlobSetBuilder| {
            builder.build().map_err(|error| Error::Pattern {
                pattern: patterns.join(" "),
                why: error.kind().to_string(),
            })
        };
        Ok(Self { any: built(any)?, directories: built(directories)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.directories.is_empty()
    }

    /// `path` begins at the top of the copy, with `/` between directories.
    pub(crate) fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        let candidate = Candidate::from_bytes(path);
        self.any.is_match_candidate(&candidate)
            || is_directory && self.directories.is_match_candidate(&candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_those_of_rsync() {
        for (pattern, path, is_directory, expected) in [
            ("*.o", &b"run/a.o"[..], false, true),
            ("*.o", b"a.o", false, true),
            ("*.o", b"a.old", false, false),
            ("cache", b"run/cache", true, true),
            ("cache/", b"run/cache", true, true),
            ("cache/", b"run/cache", false, false),
            ("/run/cache", b"run/cache", true, true),
            ("/cache", b"run/cache", true, false),
            ("run/*.o", b"all/run/a.o", false, true),
            ("run/*.o", b"all/run/deep/a.o", false, false),
            ("run/**/*.o", b"all/run/deep/a.o", false, true),
            ("a?c", b"a/c", false, false),
            ("[ab].txt", b"x/b.txt", false, true),
            ("*", b"\xff\xfe", false, true),
            (r"\*", b"*", false, true),
            (r"\*", b"a", false, false),
        ] {
            let exclude = Exclude::new(&[pattern.to_owned()]).unwrap();
            assert_eq!(exclude.matches(path, is_directory), expected, "{pattern} {path:?}");
        }
    }

    #[test]
    fn an_invalid_pattern_is_named() {
        for bad in ["a[", "", "/"] {
            let error = Exclude::new(&[bad.to_owned()]).unwrap_err();
            assert!(error.to_string().contains(&format!("'{bad}'")), "{error}");
        }
        assert!(Exclude::new(&[]).unwrap().is_empty());
    }
}
