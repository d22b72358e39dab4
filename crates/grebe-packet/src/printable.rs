//! Names of files as a peer gave them, for people.

/// A name for people: what is no letter, or would move a terminal's cursor, is shown as an escape sequence.
pub fn printable(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() || is_invisible(letter) {
                text.extend(letter.escape_default());
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Letters that turn the direction of text around or are not seen: with them a name looks like another one.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_moves_no_cursor_and_hides_nothing() {
        assert_eq!(printable(b"a\x1b[2J\n\xff\xe2\x80\xaeb"), "a\\u{1b}[2J\\n\\xff\\u{202e}b");
        assert_eq!(printable("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
    }
}
