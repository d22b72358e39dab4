//! Exclude patterns.

use crate::error::{Error, Result};
use crate::glob::Glob;

/// Decides whether a name is excluded.
#[derive(Debug, Default)]
pub(crate) struct Exclude {
    any: Vec<Glob>,
    directories: Vec<Glob>,
}

impl Exclude {
    pub(crate) fn new(patterns: &[String]) -> Result<Self> {
        let mut exclude = Self::default();
        for pattern in patterns {
            let (globs, body) = match pattern.strip_suffix('/') {
                Some(body) => (&mut exclude.directories, body),
                None => (&mut exclude.any, &**pattern),
            };
            let from_top = body.strip_prefix('/');
            let wrong = |why: String| Error::Pattern { pattern: pattern.clone(), why };
            if from_top.unwrap_or(body).is_empty() {
                return Err(wrong("it is empty; a pattern is a name, perhaps with * and ? in it".to_owned()));
            }
            let anywhere = format!("**/{body}");
            globs.extend(Glob::parse(from_top.unwrap_or(&anywhere)).map_err(wrong)?);
        }
        Ok(exclude)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.directories.is_empty()
    }

    /// `path` begins at the top of the copy, with `/` between directories.
    pub(crate) fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        // Patterns are text: they match other bytes by * and ? alone.
        let path = String::from_utf8_lossy(path);
        let is_in = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(&path));
        is_in(&self.any) || is_directory && is_in(&self.directories)
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
