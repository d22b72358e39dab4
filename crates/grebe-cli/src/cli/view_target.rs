//! Targets of `grebe view`: local streams and files, or remote ones.

use std::fmt;

use grebe_remote::{SshHost, ssh_host};
use grebe_serve::ServerAddress;
use grebe_stages::Uri;

use crate::units;

/// Stream or file to show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ViewTarget {
    Local(Uri),
    /// Source of a running `grebe serve`.
    Served(ServerAddress),
    /// Source of a server that `ssh` starts.
    Ssh {
        host: SshHost,
        uri: String,
    },
}

impl fmt::Display for ViewTarget {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewTarget::Local(uri) => uri.fmt(f),
            ViewTarget::Served(address) if address.source() > 1 => {
                write!(f, "serve://{}?source={}", address.place(), address.source())
            }
            ViewTarget::Served(address) => write!(f, "serve://{}", address.place()),
            ViewTarget::Ssh { host, uri } => write!(f, "ssh://{host}/{uri}"),
        }
    }
}

/// Parses a view target.
pub(crate) fn view_target(text: &str) -> Result<ViewTarget, String> {
    if ["serve://", "http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
        return text.parse().map(ViewTarget::Served);
    }
    let Some(rest) = text.strip_prefix("ssh://") else { return units::uri(text).map(ViewTarget::Local) };
    let (host, uri) = rest.split_once('/').filter(|(_, uri)| !uri.is_empty()).ok_or(
        "no stream after the host: give ssh://[USER@]HOST[:PORT]/udp://:5000, or ssh://HOST//data/x.sigmf-meta",
    )?;
    if uri.starts_with("serve://") || uri.starts_with("ssh://") {
        return Err("a stream of another machine cannot be shown through ssh://".into());
    }
    Ok(ViewTarget::Ssh { host: ssh_host(host)?, uri: uri.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_local_served_or_started_by_ssh() {
        assert!(matches!(view_target("udp://:5000"), Ok(ViewTarget::Local(_))));
        assert!(matches!(view_target("night.sigmf-meta"), Ok(ViewTarget::Local(_))));
        assert_eq!(view_target("serve://mast:4780?token=secret").unwrap().to_string(), "serve://mast:4780");
        // The link of its page, as it is copied from a browser.
        assert_eq!(view_target("http://mast:4780/#token=secret").unwrap().to_string(), "serve://mast:4780");
        let Ok(ViewTarget::Ssh { host, uri }) = view_target("ssh://me@mast:2222/udp://:5000") else {
            panic!()
        };
        assert_eq!(
            (host.to_string().as_str(), host.port, uri.as_str()),
            ("me@mast", Some(2222), "udp://:5000")
        );
        let Ok(ViewTarget::Ssh { uri, .. }) = view_target("ssh://mast//data/x.sigmf-meta") else { panic!() };
        assert_eq!(uri, "/data/x.sigmf-meta");
        for wrong in
            ["ssh://mast", "ssh://mast/", "ssh://-o/udp://:1", "ssh://mast/serve://a:1", "serve://mast"]
        {
            assert!(view_target(wrong).is_err(), "{wrong}");
        }
    }
}
