//! Safe display of foreign text: file names, messages of peers, text in files.

/// Shows text on one line. Escapes invalid bytes, control characters, invisible characters, and characters
/// that change the direction of others.
pub fn printable(words: &[u8]) -> String {
    let mut text = String::new();
    for chunk in words.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if is_printable(letter) { text.push(letter) } else { text.extend(letter.escape_default()) }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Whether a character is visible, and affects neither a terminal nor its neighbours. Excludes control
/// characters, line and paragraph separators, format characters (except visible Arabic and hieroglyphic
/// ones), and characters ignored by default (Unicode 16: `Cf`, `Default_Ignorable_Code_Point`).
pub fn is_printable(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_has_no_control_characters_and_hides_nothing() {
        assert_eq!(printable(b"a\x1b[2J\n\xff\xe2\x80\xaeb"), "a\\u{1b}[2J\\n\\xff\\u{202e}b");
        assert_eq!(
            printable("gr\u{fc}n \u{1d11e} \u{2212}5 \u{b5}s".as_bytes()),
            "gr\u{fc}n \u{1d11e} \u{2212}5 \u{b5}s"
        );
        for hidden in
            ['\u{9b}', '\u{7f}', '\u{2066}', '\u{200b}', '\u{ad}', '\u{fe0f}', '\u{e0041}', '\u{3164}']
        {
            let shown = printable(format!("a{hidden}b").as_bytes());
            assert_eq!(shown, format!("a\\u{{{:x}}}b", u32::from(hidden)));
            assert_eq!(printable(shown.as_bytes()), shown, "once is enough");
        }
    }
}
