//! Tickets are secrets: no message quotes one, wherever a user has put it.

use std::ops::Range;

/// Text with a word instead of each ticket, also of a damaged one.
pub(crate) fn without_tickets(mut text: &str) -> String {
    let mut shown = String::new();
    while let Some(ticket) = find_ticket(text) {
        shown.push_str(&text[..ticket.start]);
        shown.push_str("(a ticket)");
        text = &text[ticket.end..];
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
            let shown = without_tickets(&text);
            assert!(shown.contains("(a ticket)") && !shown.to_lowercase().contains("a2a2"), "{shown}");
            assert!(is_in(&text));
        }
        for text in
            ["grebe", "grebe recv /data/grebe-recordings-of-2026-11-28-in-the-lab", "grün grebe is here"]
        {
            assert_eq!(without_tickets(text), text);
            assert!(!is_in(text));
        }
    }
}
