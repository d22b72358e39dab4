//! Names of other hosts.

use std::fmt;

use grebe_connection::{Address, RELAY_PORT};

use crate::error::{Error, Result};

/// A host as named to `ssh`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHost {
    /// The account there.
    pub user: Option<String>,
    /// Name, `ssh` alias, or address; an IPv6 address without brackets.
    pub host: String,
    /// Port of the ssh server.
    pub port: Option<u16>,
}

/// A host, and a port if it is not the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name or address; an IPv6 address without brackets.
    pub host: String,
    /// Port, if given.
    pub port: Option<u16>,
}

impl fmt::Display for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.user.iter().try_for_each(|user| write!(f, "{user}@"))?;
        f.write_str(&self.host)
    }
}

/// Parses `[USER@]HOST[:PORT]`.
///
/// # Errors
/// The reason.
pub fn ssh_host(text: &str) -> Result<SshHost, String> {
    let (user, rest) = match text.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, text),
    };
    let Place { host, port } = place(rest)?;
    // `ssh` would take it for an option.
    let odd = |name: &str| name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace);
    if odd(&host) || user.is_some_and(odd) {
        return Err("give ssh://[USER@]HOST[:PORT]".to_owned());
    }
    Ok(SshHost { user: user.map(str::to_owned), host, port })
}

/// Parses `HOST[:PORT]`. An IPv6 address may have brackets.
///
/// # Errors
/// The reason.
pub fn place(text: &str) -> Result<Place, String> {
    let number = |port: &str| match port.parse() {
        Ok(0) | Err(_) => Err(format!("the port `{port}` is not a number from 1 to 65535")),
        Ok(port) => Ok(port),
    };
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':').map(number).transpose()?),
        // Without brackets, several colons mean an IPv6 address.
        None => match text.split_once(':').filter(|(_, port)| !port.contains(':')) {
            Some((host, port)) => (host, Some(number(port)?)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    Ok(Place { host: host.to_owned(), port })
}

/// Parses the address of a relay: `HOST[:PORT]`.
///
/// # Errors
/// The reason.
pub fn relay(text: &str) -> Result<Address, String> {
    let Place { host, port } = place(text)?;
    Address::new(&host, port.unwrap_or(RELAY_PORT)).map_err(|error| error.to_string())
}

/// Relay of the option, or of `GREBE_RELAY`.
///
/// # Errors
/// [`Error::Usage`] if the variable is not an address.
pub fn relay_or_default(option: Option<&Address>) -> Result<Option<Address>> {
    if let Some(relay) = option {
        return Ok(Some(relay.clone()));
    }
    let Some(text) = std::env::var("GREBE_RELAY").ok().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    relay(&text).map(Some).map_err(|error| Error::Usage(format!("GREBE_RELAY={text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_may_have_a_port_of_its_own() {
        let place_of = |text| place(text).map(|place| (place.host, place.port));
        assert_eq!(place_of("lab.example.org:7"), Ok(("lab.example.org".to_owned(), Some(7))));
        assert_eq!(place_of("2001:db8::1"), Ok(("2001:db8::1".to_owned(), None)));
        assert!(place(":7").is_err() && place("[::1]:x").is_err());
    }
}
