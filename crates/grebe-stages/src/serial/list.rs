//! Lists serial ports.

#[cfg(any(not(windows), test))]
use std::path::Path;

/// A device that can be opened now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its URI: `serial:///dev/ttyACM0`.
    pub uri: String,
    /// Its own description, possibly empty.
    pub what: String,
}

/// The serial ports of this machine, USB first.
pub fn serial_ports() -> Vec<Device> {
    #[cfg(windows)]
    return ports_of(
        super::registry::serial_ports().iter().map(|(port, device)| com_port(port, device)).collect(),
    );
    #[cfg(target_os = "macos")]
    return ports_of(callout_ports(Path::new("/dev")));
    #[cfg(not(any(windows, target_os = "macos")))]
    return ports_in(Path::new("/sys/class/tty"));
}

/// A port, and whether it is on USB.
type Found = (bool, Device);

fn ports_of(mut ports: Vec<Found>) -> Vec<Device> {
    // COM9 before COM10.
    ports.sort_by(|(_, one), (_, other)| (one.uri.len(), &one.uri).cmp(&(other.uri.len(), &other.uri)));
    ports.sort_by_key(|(is_usb, _)| !is_usb);
    ports.into_iter().map(|(_, device)| device).collect()
}

/// The ports of macOS that do not wait for a modem: `cu.usbmodem1101`.
#[cfg(any(target_os = "macos", test))]
fn callout_ports(folder: &Path) -> Vec<Found> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let ports = names.filter_map(|name| {
        let port = name.strip_prefix("cu.")?;
        // The system's own, which carry nothing.
        let is_port = !["Bluetooth-Incoming-Port", "debug-console", "wlan-debug"].contains(&port);
        let device = Device { uri: format!("serial:///dev/{name}"), what: String::new() };
        is_port.then(|| (port.to_ascii_lowercase().contains("usb"), device))
    });
    ports.collect()
}

/// A port of Windows, `COM3`, and its name in the system: `\Device\USBSER000`.
#[cfg(any(windows, test))]
fn com_port(port: &str, device: &str) -> Found {
    let what = device.rsplit('\\').next().unwrap_or_default();
    // The drivers of Windows, of FTDI, of Silicon Labs and of Prolific. Ports of the board are `Serial0`.
    let is_usb = ["USB", "VCP", "SILABSER", "PROLIFIC"].iter().any(|it| what.to_uppercase().contains(it));
    (is_usb, Device { uri: format!("serial://{port}"), what: what.to_owned() })
}

#[cfg(any(not(any(windows, target_os = "macos")), all(test, unix)))]
fn ports_in(class: &Path) -> Vec<Device> {
    let Ok(entries) = std::fs::read_dir(class) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    ports_of(names.filter_map(|name| port(class, &name)).collect())
}

/// A port of Linux. `None`: a terminal without hardware.
#[cfg(any(not(any(windows, target_os = "macos")), all(test, unix)))]
fn port(class: &Path, name: &str) -> Option<Found> {
    let entry = class.join(name);
    let device = entry.join("device").canonicalize().ok()?;
    // The kernel lists ports that the machine does not have, with type 0.
    if line_of(&entry.join("type")).is_some_and(|kind| kind == "0") {
        return None;
    }
    // The USB device stands above its interface.
    let usb = device.ancestors().find(|at| at.join("idVendor").exists());
    let words = usb.map(|usb| {
        let said = ["manufacturer", "product"].map(|file| line_of(&usb.join(file)).unwrap_or_default());
        let [maker, product] = &said;
        if product.starts_with(maker.as_str()) { product.clone() } else { format!("{maker} {product}") }
    });
    let what = words.clone().unwrap_or_default().trim().to_owned();
    Some((words.is_some(), Device { uri: format!("serial:///dev/{name}"), what }))
}

#[cfg(any(not(any(windows, target_os = "macos")), all(test, unix)))]
fn line_of(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn ports_with_hardware_are_listed_by_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        };
        write("usb/1-2/idVendor", "2341\n");
        write("usb/1-2/manufacturer", "Arduino (www.arduino.cc)\n");
        write("usb/1-2/product", "Arduino Uno\n");
        write("usb/1-2/1-2:1.0/bInterfaceNumber", "00\n");
        write("platform/serial8250/x", "");
        write("tty/ttyS0/type", "4\n");
        write("tty/ttyS1/type", "0\n");
        write("tty/ttyACM0/dev", "166:0\n");
        write("tty/tty1/dev", "4:1\n");
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(at(to), at(from)).unwrap();
        link("tty/ttyACM0/device", "usb/1-2/1-2:1.0");
        link("tty/ttyS0/device", "platform/serial8250");
        link("tty/ttyS1/device", "platform/serial8250");
        let found: Vec<(String, String)> =
            ports_in(&at("tty")).into_iter().map(|port| (port.uri, port.what)).collect();
        let expected =
            [("serial:///dev/ttyACM0", "Arduino (www.arduino.cc) Arduino Uno"), ("serial:///dev/ttyS0", "")];
        assert_eq!(found, expected.map(|(uri, what)| (uri.to_owned(), what.to_owned())));
        assert_eq!(ports_in(&at("nowhere")), []);
    }

    #[test]
    fn ports_of_macos_are_the_callout_names() {
        let folder = tempfile::tempdir().unwrap();
        let names =
            ["cu.Bluetooth-Incoming-Port", "cu.Plotter", "cu.usbserial-10", "tty.usbserial-10", "null"];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found: Vec<String> =
            ports_of(callout_ports(folder.path())).into_iter().map(|port| port.uri).collect();
        assert_eq!(found, ["serial:///dev/cu.usbserial-10", "serial:///dev/cu.Plotter"]);
    }

    #[test]
    fn ports_of_windows_are_sorted_by_number_and_usb_comes_first() {
        let ports = [
            (r"\Device\Serial0", "COM1"),
            (r"\Device\VCP0", "COM10"),
            (r"\Device\Silabser0", "COM4"),
            (r"\Device\USBSER000", "COM9"),
        ];
        let found = ports_of(ports.map(|(device, port)| com_port(port, device)).into());
        let found: Vec<(&str, &str)> =
            found.iter().map(|port| (port.uri.as_str(), port.what.as_str())).collect();
        let expected = [
            ("serial://COM4", "Silabser0"),
            ("serial://COM9", "USBSER000"),
            ("serial://COM10", "VCP0"),
            ("serial://COM1", "Serial0"),
        ];
        assert_eq!(found, expected);
    }
}
