//! Patterns of paths: `*` and `?` within a name, `**` for any directories, `[a-z]`, `{a,b}`, and `\` before a plain
//! character.

/// A pattern without braces.
#[derive(Debug)]
pub(crate) struct Glob(Vec<Name>);

/// Pattern of one name of a path.
#[derive(Debug, PartialEq)]
enum Name {
    /// `**`: any number of names.
    Any,
    One(Vec<Letter>),
}

#[derive(Debug, PartialEq)]
enum Letter {
    /// `*`: any number of characters.
    Any,
    /// `?`
    One,
    This(char),
    /// `[a-z]`, `[!a-z]`: the ranges, and whether they are excluded.
    Of(Vec<(char, char)>, bool),
}

impl Glob {
    /// Patterns for a text: several if it has braces.
    ///
    /// # Errors
    /// The fault, for the user.
    pub(crate) fn parse(text: &str) -> Result<Vec<Self>, String> {
        if text.matches('{').count() > GROUPS_MAX {
            return Err(format!("more than {GROUPS_MAX} braces"));
        }
        let mut texts = Vec::new();
        expand(String::new(), text, &mut texts)?;
        texts.iter().map(|text| Self::without_braces(text)).collect()
    }

    fn without_braces(text: &str) -> Result<Self, String> {
        let mut names = text.split('/').map(Name::parse).collect::<Result<Vec<_>, _>>()?;
        // `a/**` are the things in `a`, and not `a`.
        if names.last() == Some(&Name::Any) {
            names.push(Name::One(vec![Letter::Any]));
        }
        Ok(Self(names))
    }

    /// Whether a path, with `/` between its names, matches as a whole.
    pub(crate) fn matches(&self, path: &str) -> bool {
        fits(&self.0, path.split('/'), &Name::Any, Name::matches)
    }
}

impl Name {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "**" {
            return Ok(Self::Any);
        }
        let (mut letters, mut rest) = (Vec::new(), text.chars());
        while let Some(letter) = rest.next() {
            letters.push(match letter {
                '*' => Letter::Any,
                '?' => Letter::One,
                '[' => Letter::class(&mut rest)?,
                '\\' => Letter::This(rest.next().ok_or("nothing follows the last backslash")?),
                plain => Letter::This(plain),
            });
        }
        Ok(Self::One(letters))
    }

    fn matches(&self, name: &str) -> bool {
        matches!(self, Self::One(letters) if fits(letters, name.chars(), &Letter::Any, Letter::matches))
    }
}

impl Letter {
    /// Reads a class after its `[`.
    fn class(rest: &mut std::str::Chars<'_>) -> Result<Self, String> {
        let is_excluded = rest.as_str().starts_with(['!', '^']);
        if is_excluded {
            rest.next();
        }
        let mut ranges = Vec::new();
        loop {
            let first = rest.next().ok_or("a [ without its ]")?;
            if first == ']' && !ranges.is_empty() {
                return Ok(Self::Of(ranges, is_excluded));
            }
            let mut ahead = rest.clone();
            let last = match (ahead.next(), ahead.next()) {
                (Some('-'), Some(last)) if last != ']' => {
                    *rest = ahead;
                    last
                }
                _ => first,
            };
            if first > last {
                return Err(format!("the range {first}-{last} runs backwards"));
            }
            ranges.push((first, last));
        }
    }

    fn matches(&self, letter: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::This(this) => *this == letter,
            Self::Of(ranges, is_excluded) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter)) != *is_excluded
            }
        }
    }
}

/// Whether items match a pattern in which `any` stands for any number of them. Only the last `any` has to be tried
/// with more items, because an earlier one could not reach further than it.
fn fits<P: PartialEq, I: Iterator<Item: Copy> + Clone>(
    pattern: &[P],
    items: I,
    any: &P,
    is: impl Fn(&P, I::Item) -> bool,
) -> bool {
    let (mut left, mut items, mut last_any) = (pattern, items, None);
    loop {
        let mut ahead = items.clone();
        match (left.split_first(), ahead.next()) {
            (Some((part, rest)), _) if part == any => {
                left = rest;
                last_any = Some((rest, items.clone()));
            }
            (Some((part, rest)), Some(item)) if is(part, item) => (left, items) = (rest, ahead),
            (None, None) => return true,
            _ => {
                let Some((rest, from)) = &mut last_any else { return false };
                if from.next().is_none() {
                    return false;
                }
                (left, items) = (rest, from.clone());
            }
        }
    }
}

/// Adds the texts that `done` and then `text` stand for, one for each choice in braces.
fn expand(mut done: String, text: &str, texts: &mut Vec<String>) -> Result<(), String> {
    // The place of the open group's choice, and of the first letter of the open class.
    let (mut depth, mut choices, mut choice, mut class) = (0, Vec::new(), 0, None);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        let rest = &text[at + letter.len_utf8()..];
        match (letter, class) {
            (']', Some(first)) if at > first => class = None,
            (_, Some(_)) => {}
            ('[', None) => class = Some(at + 1 + usize::from(rest.starts_with(['!', '^']))),
            ('\\', None) => {
                let escaped = letters.next().map(|(_, escaped)| escaped);
                if depth == 0 {
                    done.push(letter);
                    done.extend(escaped);
                }
                continue;
            }
            ('{', None) => {
                depth += 1;
                if depth == 1 {
                    choice = at + 1;
                }
            }
            (',', None) if depth == 1 => {
                choices.push(&text[choice..at]);
                choice = at + 1;
            }
            ('}', None) if depth == 1 => {
                choices.push(&text[choice..at]);
                return choices
                    .into_iter()
                    .try_for_each(|choice| expand(done.clone(), &[choice, rest].concat(), texts));
            }
            ('}', None) if depth == 0 => return Err("a } without its {".to_owned()),
            ('}', None) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            done.push(letter);
        }
    }
    if depth > 0 {
        return Err("a { without its }".to_owned());
    }
    if texts.len() == CHOICES_MAX {
        return Err(format!("braces with more than {CHOICES_MAX} choices"));
    }
    texts.push(done);
    Ok(())
}

/// Maximum groups of braces, because each is a recursion.
const GROUPS_MAX: usize = 100;
const CHOICES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_as_a_shell_says() {
        for (pattern, matching, others) in [
            ("a*b*c", &["abc", "axbxbxc", "abbc"][..], &["ab", "acb", "abcd", "a/b/c"][..]),
            ("**", &["a", "a/b"], &[]),
            ("a/**", &["a/b", "a/b/c"], &["a", "b/a"]),
            ("a/**/z", &["a/z", "a/b/z", "a/z/z", "a/b/c/z"], &["a", "az", "a/b", "a/z/y"]),
            ("**/a/**/b/*.o", &["a/b/x.o", "q/a/b/a/b/b/x.o"], &["a/b/c/x.o", "a/x.o"]),
            ("a**b", &["ab", "axyb"], &["a/b"]),
            ("[]-]", &["]", "-"], &["a", ""]),
            ("[!a-c]x", &["dx", "\u{e4}x"], &["bx", "x", "/x"]),
            ("[^\u{e0}-\u{e9}]", &["a", "\u{ea}"], &["\u{e4}"]),
            ("?", &["\u{6e2c}"], &["", "ab", "/"]),
            ("*.{png,j{pg,peg}}", &["a.png", "a.jpg", "a.jpeg"], &["a.p", "a.jpng", "a.{png"]),
            ("x{,.bak}", &["x", "x.bak"], &["x.", "x,"]),
            ("{a,b/c}/d", &["a/d", "b/c/d"], &["b/d", "a,b/c/d"]),
            ("[[]x[]]", &["[x]"], &["x", "[[]x[]]"]),
            (r"\{a\}[{,}]", &["{a}{", "{a},"], &["a}", "{a}"]),
            ("a,b", &["a,b"], &["a", "b"]),
        ] {
            let globs = Glob::parse(pattern).unwrap();
            let is = |path: &&&str| globs.iter().any(|glob| glob.matches(path));
            assert_eq!(matching.iter().find(|path| !is(path)), None, "{pattern}");
            assert_eq!(others.iter().find(is), None, "{pattern}");
        }
    }

    #[test]
    fn faults_are_named_and_nothing_takes_long() {
        for (bad, words) in [
            ("a[b", "["),
            ("[z-a]", "z-a"),
            ("a\\", "backslash"),
            ("{a,b", "{"),
            ("a}", "}"),
            (&*"{a,b}".repeat(10), "1000"),
            (&*"{a".repeat(50_000), "100 braces"),
        ] {
            let why = Glob::parse(bad).map(drop).unwrap_err();
            assert!(why.contains(words), "{bad}: {why}");
        }
        let globs =
            Glob::parse(&("**/".to_owned() + &"*a".repeat(50) + "b/" + &"**/a*/".repeat(50) + "z")).unwrap();
        assert!(!globs[0].matches(&["a".repeat(200).as_str(); 200].join("/")));
    }
}
