//! What a scope shows, as it is named.

use std::fmt;

use grebe_remote::{SshHost, ssh_host};
use grebe_serve::FarAddress;
use grebe_stages::Uri;

use crate::units;

/// What a scope shows: a stream or a file of this machine, or what is served elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shown {
    Here(Uri),
    /// A server that runs.
    Served(FarAddress),
    /// A server that the user's own ssh starts there.
    Ssh {
        host: SshHost,
        uri: String,
    },
}

impl fmt::Display for Shown {
    /// Without what lets anybody in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Here(uri) => uri.fmt(f),
            Shown::Served(address) if address.source() > 1 => {
                write!(f, "serve://{}?source={}", address.place(), address.source())
            }
            Shown::Served(address) => write!(f, "serve://{}", address.place()),
            Shown::Ssh { host, uri } => write!(f, "ssh://{host}/{uri}"),
        }
    }
}

/// Reads what a scope is to show.
pub(crate) fn shown(text: &str) -> Result<Shown, String> {
    if text.starts_with("serve://") {
        return text.parse().map(Shown::Served);
    }
    let Some(rest) = text.strip_prefix("ssh://") else { return units::uri(text).map(Shown::Here) };
    let (host, uri) = rest.split_once('/').filter(|(_, uri)| !uri.is_empty()).ok_or(
        "say what to look at there: ssh://[USER@]HOST[:PORT]/udp://:5000, or ssh://HOST//data/x.sigmf-meta",
    )?;
    if uri.starts_with("serve://") || uri.starts_with("ssh://") {
        return Err("what is looked at there has to be of that machine".into());
    }
    Ok(Shown::Ssh { host: ssh_host(host)?, uri: uri.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_may_be_elsewhere() {
        assert!(matches!(shown("udp://:5000"), Ok(Shown::Here(_))));
        assert!(matches!(shown("night.sigmf-meta"), Ok(Shown::Here(_))));
        assert_eq!(shown("serve://mast:4780?token=secret").unwrap().to_string(), "serve://mast:4780");
        let Ok(Shown::Ssh { host, uri }) = shown("ssh://me@mast:2222/udp://:5000") else { panic!() };
        assert_eq!(
            (host.to_string().as_str(), host.port, uri.as_str()),
            ("me@mast", Some(2222), "udp://:5000")
        );
        let Ok(Shown::Ssh { uri, .. }) = shown("ssh://mast//data/x.sigmf-meta") else { panic!() };
        assert_eq!(uri, "/data/x.sigmf-meta");
        for wrong in
            ["ssh://mast", "ssh://mast/", "ssh://-o/udp://:1", "ssh://mast/serve://a:1", "serve://mast"]
        {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }
}
