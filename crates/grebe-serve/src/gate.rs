//! Access control: by the requested host, the requesting page, and a token.

use std::net::IpAddr;

use subtle::ConstantTimeEq;

/// A token that admits its holder. Only [`word`](Token::word) converts it to text.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    /// Makes a token of 192 random bits.
    pub(crate) fn new() -> std::io::Result<Token> {
        let mut bytes = [0u8; TOKEN_LETTERS];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Token(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte & 63)])).collect()))
    }

    pub(crate) fn word(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.0.as_bytes().ct_eq(word.as_bytes()).into()
    }
}

/// Additional hosts and pages with access.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate {
    /// Names of this machine, beside its addresses.
    pub(crate) hosts: Vec<String>,
    /// Other pages that may show this scope.
    pub(crate) origins: Vec<String>,
}

impl Gate {
    /// Whether a request names this machine. Another site's own name could resolve to it.
    pub(crate) fn lets_host(&self, host: Option<&str>) -> bool {
        let Some(host) = host else { return false };
        let name = name_of(host);
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|it| it.eq_ignore_ascii_case(name))
    }

    /// Whether the requesting page is this server's own, or an additional one. Programs have none.
    pub(crate) fn lets_origin(&self, origin: Option<&str>, host: Option<&str>) -> bool {
        let Some(origin) = origin else { return true };
        let of_host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        of_host.zip(host).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b)) || self.is_named(origin)
    }

    pub(crate) fn is_named(&self, origin: &str) -> bool {
        self.origins.iter().any(|it| it.eq_ignore_ascii_case(origin))
    }
}

/// The name in `NAME:PORT`, or the address in `[ADDRESS]:PORT`.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

const TOKEN_LETTERS: usize = 32;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_alone() {
        let (token, other) = (Token::new().unwrap(), Token::new().unwrap());
        assert!(token.is(token.word()) && !token.is(other.word()) && !token.is(""));
        assert_eq!(token.word().len(), TOKEN_LETTERS);
        assert!(!token.is(&token.word()[..31]));
    }

    #[test]
    fn addresses_and_names_that_were_given_are_this_machine() {
        let gate = Gate { hosts: vec!["mast.example".into()], origins: vec![] };
        for host in ["127.0.0.1:80", "[::1]:80", "localhost:1", "10.0.0.7", "MAST.example:80"] {
            assert!(gate.lets_host(Some(host)), "{host}");
        }
        for host in ["evil.example", "evil.example:80", "", "localhost.evil.example:80", "127.0.0.1.evil:80"]
        {
            assert!(!gate.lets_host(Some(host)), "{host}");
        }
        assert!(!gate.lets_host(None));
    }

    #[test]
    fn pages_of_others_stay_outside_unless_they_were_named() {
        let gate = Gate { hosts: vec![], origins: vec!["https://dash.example".into()] };
        let lets = |origin: &str| gate.lets_origin(Some(origin), Some("10.0.0.7:8080"));
        assert!(
            lets("http://10.0.0.7:8080") && lets("https://10.0.0.7:8080") && lets("https://dash.example")
        );
        for origin in
            ["null", "http://10.0.0.7:8081", "http://evil.example", "http://10.0.0.7:8080.evil.example", ""]
        {
            assert!(!lets(origin), "{origin}");
        }
        assert!(gate.lets_origin(None, Some("10.0.0.7:8080")), "a program");
    }
}
