//! Draws in a locale without UTF-8 (`LANG=C`): each sign becomes its nearest ASCII character.

use ratatui::buffer::Buffer;

/// Whether the locale limits the terminal to ASCII: the first set variable of `LC_ALL`, `LC_CTYPE` and `LANG` names
/// another encoding than UTF-8. Without any of them, UTF-8 is assumed.
pub fn is_ascii_locale() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|locale| !locale.is_empty());
    ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).is_some_and(|locale| !is_utf8(&locale))
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The ASCII character for a sign that grebe draws or writes; letters of names stay.
pub fn ascii_of(sign: char) -> char {
    match sign {
        // Dots of a trace: high, low, or over the whole height.
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{28ff}' => match (sign as u32 & 0x1b != 0, sign as u32 & 0xe4 != 0) {
            (true, true) => '|',
            (true, false) => '\'',
            _ => '.',
        },
        '\u{2508}' | '\u{2500}' | '\u{2013}' => '-',
        '\u{2501}' => '=',
        '\u{2505}' => '~',
        '\u{250a}' => ':',
        '\u{2502}' | '\u{2503}' => '|',
        '\u{250c}' | '\u{2510}' | '\u{2514}' | '\u{2518}' => '+',
        '\u{25bc}' | '\u{2193}' => 'v',
        '\u{25b2}' | '\u{2191}' | '\u{21e7}' => '^',
        '\u{25c0}' | '\u{2190}' => '<',
        '\u{25b6}' | '\u{2192}' => '>',
        '\u{2591}' | '\u{2588}' => '#',
        // Two pixels: their colours stay.
        '\u{2580}' => '"',
        '\u{b7}' | '\u{2026}' => '.',
        '\u{b5}' | '\u{3bc}' => 'u',
        '\u{394}' => 'd',
        '\u{3c3}' => 's',
        '\u{b1}' => '~',
        '\u{d7}' => 'x',
        '\u{2212}' => '-',
        other => other,
    }
}

/// Replaces the known signs in all cells.
pub fn draw_in_ascii(buf: &mut Buffer) {
    for cell in &mut buf.content {
        let mut signs = cell.symbol().chars();
        if let (Some(sign), None) = (signs.next(), signs.next())
            && !sign.is_ascii()
        {
            cell.set_char(ascii_of(sign));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_names_its_encoding() {
        assert!(["C.UTF-8", "en_US.utf8", "ja_JP.UTF-8@x"].into_iter().all(is_utf8));
        assert!(!["C", "POSIX", "de_DE.ISO-8859-1"].into_iter().any(is_utf8));
    }

    #[test]
    fn dots_keep_their_height_and_names_their_letters() {
        assert_eq!(['\u{2801}', '\u{2840}', '\u{28ff}', '\u{2818}'].map(ascii_of), ['\'', '.', '|', '\'']);
        assert_eq!(['\u{5fc3}', '\u{e4}', 'a'].map(ascii_of), ['\u{5fc3}', '\u{e4}', 'a']);
    }
}
