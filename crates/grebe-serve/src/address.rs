//! The address of a server: `serve://HOST:PORT?token=TOKEN`, or the link of its page, `http://HOST:PORT/#token=TOKEN`.

use std::fmt;
use std::str::FromStr;

/// A server's address, with its token and certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerAddress {
    host: String,
    port: u16,
    pub(crate) token: String,
    /// Expected SHA-256 of its certificate; `None`: without TLS.
    pub(crate) certificate: Option<[u8; 32]>,
    /// Number of its source, from 1.
    pub(crate) source: usize,
}

impl ServerAddress {
    /// A server without TLS, or one with a certificate of this SHA-256.
    pub fn new(host: &str, port: u16, token: &str, certificate: Option<[u8; 32]>) -> ServerAddress {
        ServerAddress { host: host.to_owned(), port, token: token.to_owned(), certificate, source: 1 }
    }

    /// Selects another source of the server, counted from 1.
    #[must_use]
    pub fn of_source(self, source: usize) -> ServerAddress {
        ServerAddress { source, ..self }
    }

    /// Number of the server's source, from 1.
    pub fn source(&self) -> usize {
        self.source
    }

    /// The link for a browser. The token is after the `#`, which browsers never send.
    pub fn page(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        let source = if self.source == 1 { String::new() } else { format!("&source={}", self.source) };
        format!("{scheme}://{}/#token={}{source}", self.place(), self.token)
    }

    /// Host and port, without the token.
    pub fn place(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

/// The whole address, for people who may look.
impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "serve://{}?token={}", self.place(), self.token)?;
        if let Some(certificate) = &self.certificate {
            f.write_str("&cert=")?;
            certificate.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        }
        if self.source != 1 {
            write!(f, "&source={}", self.source)?;
        }
        Ok(())
    }
}

/// Keeps the token out of logs.
impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerAddress({})", self.place())
    }
}

impl FromStr for ServerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerAddress, String> {
        let (place, query) = match (text.strip_prefix("serve://"), text.strip_prefix("http://")) {
            (Some(rest), _) => rest.split_once('?').unwrap_or((rest, "")),
            (_, Some(rest)) => rest.split_once('#').unwrap_or((rest, "")),
            _ if text.starts_with("https://") => {
                return Err(
                    "that page has a certificate: give the serve:// address that grebe serve prints".into()
                );
            }
            _ => return Err("it does not begin with serve://".into()),
        };
        let place = place.trim_end_matches('/');
        let (host, port) =
            place.rsplit_once(':').ok_or("the port is missing: serve://HOST:PORT?token=TOKEN")?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control() || "/@?#".contains(c))
        {
            return Err("the host is missing: serve://HOST:PORT?token=TOKEN".into());
        }
        let port = port.parse().map_err(|_| format!("invalid port {port:?}"))?;
        let (mut token, mut certificate, mut source) = (String::new(), None, 1);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("token", value)) => value.clone_into(&mut token),
                Some(("cert", value)) => {
                    let digest = digest_of(value)
                        .ok_or("cert= takes the 64 hexadecimal digits that grebe serve prints")?;
                    certificate = Some(digest);
                }
                Some(("source", value)) => {
                    let number = value.parse().ok().filter(|number| *number > 0);
                    source = number
                        .ok_or("source= takes the number of one, from 1, as grebe serve prints them")?;
                }
                _ => return Err(format!("{pair:?} is unknown: there are token=, cert= and source=")),
            }
        }
        Ok(ServerAddress { host: host.to_owned(), port, token, certificate, source })
    }
}

fn digest_of(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut digest = [0; 32];
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(place * 2..place * 2 + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for address in [
            ServerAddress::new("127.0.0.1", 8080, "abc_-123", None),
            ServerAddress::new("::1", 1, "x", Some([0xa5; 32])),
            ServerAddress::new("mast.example", 65535, "", None),
            ServerAddress::new("mast", 1, "x", Some([7; 32])).of_source(3),
        ] {
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        let page = ServerAddress::new("::1", 80, "x", Some([1; 32])).of_source(2).page();
        assert_eq!(page, "https://[::1]:80/#token=x&source=2");
        let page = ServerAddress::new("::1", 80, "x", None).of_source(2);
        assert_eq!(page.page().parse(), Ok(page));
        let short: ServerAddress = "serve://mast:80".parse().unwrap();
        assert_eq!((short.place().as_str(), short.token.as_str()), ("mast:80", ""));
        assert_eq!(format!("{short:?}"), "ServerAddress(mast:80)");
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        for (text, words) in [
            ("udp://a:1", "serve://"),
            ("https://a:1/#token=x", "serve://"),
            ("http://a/#token=x", "port is missing"),
            ("serve://a", "port is missing"),
            ("serve://:1", "host is missing"),
            ("serve://a:99999", "invalid port"),
            ("serve://a:1?cert=12", "64 hexadecimal"),
            ("serve://a:1?password=x", "unknown"),
            ("serve://a:1?source=0", "from 1"),
            ("serve://a:1?token=x&source=two", "from 1"),
            ("serve://me@a:1", "host is missing"),
        ] {
            let why = text.parse::<ServerAddress>().unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
