//! Tickets and the tokens of servers are secrets: no message quotes one, wherever a user has put it.

use std::ops::Range;

/// Text with a word instead of each ticket, also of a damaged one, and of each token of an address.
pub(crate) fn without_secrets(text: &str) -> String {
    let shown = replace(text, find_ticket, "(a ticket)");
    replace(&shown, find_token, "...")
}

fn replace(mut text: &str, find: impl Fn(&str) -> Option<Range<usize>>, word: &str) -> String {
    let mut shown = String::new();
    while let Some(secret) = find(text) {
        shown.push_str(&text[..secret.start]);
        shown.push_str(word);
        text = &text[secret.end..];
    }
    shown + text
}

/// Whether a text has a ticket, perhaps a damaged one.
pub(crate) fn is_in(text: &str) -> bool {
    find_ticket(text).is_some()
}

/// First place that may be a ticket: `grebe`, and at least 25 letters and digits.
fn find_ticket(text: &str) -> Option<Range<usize>> {
    const HEAD: &str = "grebe";
    let small = text.to_ascii_lowercase();
    small.match_indices(HEAD).find_map(|(start, _)| {
        let code = small[start + HEAD.len()..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        (code >= 25).then_some(start..start + HEAD.len() + code)
    })
}

/// The value of the first `token=` in an address.
fn find_token(text: &str) -> Option<Range<usize>> {
    const HEAD: &str = "token=";
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    text.match_indices(HEAD).find_map(|(start, _)| {
        let begin = start + HEAD.len();
        let length = text[begin..].bytes().take_while(is_part).count();
        let is_secret = length > 0 && &text[begin..begin + length] != "TOKEN";
        is_secret.then_some(begin..begin + length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_ticket_is_shown_whatever_stands_around_it() {
        let ticket = format!("grebe{}", "a2".repeat(40));
        for text in [
            ticket.clone(),
            format!("cannot open {ticket}, {}: no", ticket.to_uppercase()),
            format!("<{ticket}>"),
        ] {
            let shown = without_secrets(&text);
            assert!(shown.contains("(a ticket)") && !shown.to_lowercase().contains("a2a2"), "{shown}");
            assert!(is_in(&text));
        }
        for text in
            ["grebe", "grebe recv /data/grebe-recordings-of-2026-11-28-in-the-lab", "grün grebe is here"]
        {
            assert_eq!(without_secrets(text), text);
            assert!(!is_in(text));
        }
    }

    #[test]
    fn no_token_of_an_address_is_shown() {
        let shown =
            without_secrets("'serve://a:1?token=ab-_9&x' and http://a:1/#token=zz: no token=, token=TOKEN");
        assert_eq!(shown, "'serve://a:1?token=...&x' and http://a:1/#token=...: no token=, token=TOKEN");
    }
}
