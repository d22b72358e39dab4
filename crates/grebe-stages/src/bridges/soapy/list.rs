//! What can be opened: devices, and the library with its modules.

use super::sys;
use crate::error::Error;

/// A device that SoapySDR finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoapyDevice {
    /// What opens it: `soapy:driver=rtlsdr,serial=00000001`.
    pub uri: String,
    /// What its driver calls it.
    pub label: String,
}

/// SoapySDR on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoapyLibrary {
    /// Its version.
    pub version: String,
    /// The names of its modules, each of which knows one kind of devices: `rtlsdr`, `remote`.
    pub modules: Vec<String>,
}

/// The devices that SoapySDR finds now. Some drivers look for them over the network or try each on the bus: it takes up to seconds.
///
/// # Errors
/// [`Error::Library`] where SoapySDR is not on this machine.
pub fn soapy_devices() -> Result<Vec<SoapyDevice>, Error> {
    let found = sys::enumerate("")?;
    // It comes with the library itself, and is no device.
    Ok(found.iter().map(|args| device(args)).filter(|it| it.uri != "soapy:driver=null").collect())
}

/// SoapySDR as it is found on this machine; no device is looked for.
///
/// # Errors
/// [`Error::Library`] where it is not there.
pub fn soapy_library() -> Result<SoapyLibrary, Error> {
    let sys::Version { library, modules } = sys::version()?;
    Ok(SoapyLibrary {
        version: library,
        modules: modules.iter().map(|file| module(file).to_owned()).collect(),
    })
}

/// A device by the arguments that it was found with.
fn device(args: &str) -> SoapyDevice {
    let pairs: Vec<(&str, &str)> = args
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let of = |key: &str| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    let driver = of("driver").unwrap_or_default();
    let serial = of("serial").filter(|serial| !serial.is_empty() && driver != "remote");
    // A serial number is enough to find it again; else it takes all that does not only describe it.
    let needed: Vec<String> = pairs
        .iter()
        .filter(|(key, _)| match serial {
            Some(_) => matches!(*key, "driver" | "serial"),
            None => !DESCRIBES.contains(key),
        })
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let label = of("label").or_else(|| of("product")).unwrap_or(driver);
    SoapyDevice { uri: format!("soapy:{}", needed.join(",")), label: label.to_owned() }
}

/// `rtlsdr` of `/usr/lib/.../modules0.8/librtlsdrSupport.so`.
fn module(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let name = name.split('.').next().unwrap_or(name);
    let name = name.strip_prefix("lib").unwrap_or(name);
    name.strip_suffix("Support").unwrap_or(name)
}

const DESCRIBES: [&str; 5] = ["label", "manufacturer", "product", "tuner", "version"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_by_what_finds_it_again() {
        for (args, uri, label) in [
            (
                "driver=rtlsdr, label=Generic RTL2832U :: 77, manufacturer=Realtek, product=RTL2838, serial=77, tuner=R820T",
                "soapy:driver=rtlsdr,serial=77",
                "Generic RTL2832U :: 77",
            ),
            (
                "device=HackRF One, driver=hackrf, serial=",
                "soapy:device=HackRF One,driver=hackrf,serial=",
                "hackrf",
            ),
            (
                "driver=remote, label=x, remote=tcp://10.0.0.2:55132, remote:driver=lime, serial=5",
                "soapy:driver=remote,remote=tcp://10.0.0.2:55132,remote:driver=lime,serial=5",
                "x",
            ),
        ] {
            assert_eq!(device(args), SoapyDevice { uri: uri.to_owned(), label: label.to_owned() });
        }
    }

    #[test]
    fn a_module_is_known_by_its_file() {
        assert_eq!(module("/usr/lib/x86_64-linux-gnu/SoapySDR/modules0.8/librtlsdrSupport.so"), "rtlsdr");
        assert_eq!(module("C:\\modules0.8\\uhdSupport.dll"), "uhd");
    }
}
