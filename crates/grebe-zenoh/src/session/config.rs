//! Zenoh's configuration from our options.

use zenoh::Config;

use super::failure::{failed, why};
use crate::error::Error;
use crate::options::SessionOptions;

/// # Errors
/// An invalid configuration file or address.
pub(super) fn of(options: &SessionOptions) -> Result<Config, Error> {
    if let Some(path) = &options.config {
        let config = Config::from_file(path);
        return config.map_err(|error| Error::Config { path: path.clone(), why: why(error) });
    }
    let endpoints = options.routers.iter().map(|router| SessionOptions::endpoint(router));
    let endpoints = endpoints.collect::<Result<Vec<String>, Error>>()?;
    let settings: Vec<(&str, String)> = if !endpoints.is_empty() {
        vec![
            ("mode", "\"client\"".to_owned()),
            ("connect/endpoints", json(&endpoints)),
            // Tries once: the caller repeats it, and knows the reason.
            ("connect/timeout_ms", "0".to_owned()),
            ("scouting/multicast/enabled", "false".to_owned()),
        ]
    } else {
        let (listens_at, interface) =
            if options.scouts { ("tcp/[::]:0", "auto") } else { ("tcp/127.0.0.1:0", "127.0.0.1") };
        vec![
            ("mode", "\"peer\"".to_owned()),
            ("listen/endpoints", json(&[listens_at])),
            ("scouting/multicast/enabled", "true".to_owned()),
            ("scouting/multicast/interface", format!("\"{interface}\"")),
        ]
    };
    let mut config = Config::default();
    let links = [
        ("transport/link/tx/lease", LEASE_MS.to_string()),
        ("transport/link/tx/keep_alive", KEEP_ALIVES.to_string()),
        ("transport/link/tx/queue/size/data", WAITING_BATCHES.to_string()),
    ];
    for (key, value) in settings.into_iter().chain(links) {
        config.insert_json5(key, &value).map_err(failed(&format!("set {key} of Zenoh to {value}")))?;
    }
    Ok(config)
}

fn json<T: AsRef<str>>(texts: &[T]) -> String {
    serde_json::Value::from(texts.iter().map(AsRef::as_ref).collect::<Vec<&str>>()).to_string()
}

/// Silence after which a host counts as gone. Its streams disappear within two seconds.
const LEASE_MS: u64 = 1_500;
/// Messages within that time.
const KEEP_ALIVES: u64 = 6;
/// Batches of up to 64 KiB that wait for a link before messages are dropped: Zenoh's maximum. Its default of 2
/// overflows at 4 MB/s if the sending thread pauses for 30 ms.
const WAITING_BATCHES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zenoh.json5");
        std::fs::write(&path, "{ mode: 'client', connect: { endpoints: ['tcp/lab:1'] } }").unwrap();
        let options =
            SessionOptions { config: Some(path.clone()), scouts: true, ..SessionOptions::default() };
        let config = of(&options).unwrap();
        assert_eq!(config.get_json("mode").unwrap(), "\"client\"");
        assert_eq!(config.get_json("transport/link/tx/lease").unwrap(), "10000", "Zenoh's own");
        assert_eq!(config.get_json("transport/link/tx/queue/size/data").unwrap(), "2", "Zenoh's own");
        std::fs::write(&path, "{ mode: 'king' }").unwrap();
        assert!(of(&options).unwrap_err().to_string().contains("zenoh.json5"));
        std::fs::remove_file(&path).unwrap();
        assert!(of(&options).is_err());
    }

    #[test]
    fn without_options_only_this_machine_is_searched() {
        let said = |options: &SessionOptions, key| of(options).unwrap().get_json(key).unwrap();
        let alone = SessionOptions::default();
        assert_eq!(said(&alone, "scouting/multicast/interface"), "\"127.0.0.1\"");
        assert!(said(&alone, "listen/endpoints").contains("tcp/127.0.0.1:0"));
        let router = SessionOptions { routers: vec!["lab:7447".to_owned()], ..alone.clone() };
        assert_eq!(said(&router, "scouting/multicast/enabled"), "false");
        assert!(said(&router, "connect/endpoints").contains("tcp/lab:7447"));
        assert_eq!(said(&router, "transport/link/tx/lease"), "1500");
        assert_eq!(said(&router, "transport/link/tx/queue/size/data"), "16");
        let scouting = SessionOptions { scouts: true, ..alone };
        assert_eq!(said(&scouting, "scouting/multicast/interface"), "\"auto\"");
    }
}
