//! Lists devices, and the library with its modules.

use super::sys;
use crate::error::Error;

/// A device that SoapySDR finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoapyDevice {
    /// The URI that opens it: `soapy:driver=rtlsdr,serial=00000001`.
    pub uri: String,
    /// The driver's name for it.
    pub label: String,
}

/// SoapySDR on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoapyLibrary {
    /// Its version.
    pub version: String,
    /// Names of its modules, one per kind of device: `rtlsdr`, `remote`.
    pub modules: Vec<String>,
}

/// Lists the devices that SoapySDR finds. Takes up to seconds, because some drivers search the network or probe the
/// bus.
///
/// # Errors
/// [`Error::Library`] if SoapySDR is not installed.
pub fn soapy_devices() -> Result<Vec<SoapyDevice>, Error> {
    let found = sys::enumerate("")?;
    // A dummy driver that comes with the library.
    Ok(found.iter().map(|args| device(args)).filter(|it| it.uri != "soapy:driver=null").collect())
}

/// The SoapySDR library of this machine. Does not search for devices.
///
/// # Errors
/// [`Error::Library`] if it is not installed.
pub fn soapy_library() -> Result<SoapyLibrary, Error> {
    let sys::Version { library, modules } = sys::version()?;
    Ok(SoapyLibrary {
        version: library,
        modules: modules.iter().map(|file| module(file).to_owned()).collect(),
    })
}

/// A device from its enumeration arguments.
fn device(args: &str) -> SoapyDevice {
    let pairs: Vec<(&str, &str)> = args
        .split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let of = |key: &str| pairs.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    let driver = of("driver").unwrap_or_default();
    let serial = of("serial").filter(|serial| !serial.is_empty() && driver != "remote");
    // A serial number identifies the device. Without one, all arguments except descriptive ones do.
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
    fn a_device_is_named_by_its_stable_identity() {
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
