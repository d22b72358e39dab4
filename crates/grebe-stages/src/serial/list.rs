//! Lists serial ports.

use std::path::Path;

/// A device that can be opened now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its URI: `serial:///dev/ttyACM0`.
    pub uri: String,
    /// Its own description, possibly empty.
    pub what: String,
}

/// The serial ports of this machine, USB first. Empty except on Linux.
pub fn serial_ports() -> Vec<Device> {
    ports_in(Path::new("/sys/class/tty"))
}

fn ports_in(class: &Path) -> Vec<Device> {
    let Ok(entries) = std::fs::read_dir(class) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut ports: Vec<(bool, Device)> = names.filter_map(|name| port(class, &name)).collect();
    ports.sort_by(|(_, one), (_, other)| one.uri.cmp(&other.uri));
    ports.sort_by_key(|(is_usb, _)| !is_usb);
    ports.into_iter().map(|(_, device)| device).collect()
}

/// A port, and whether it is on USB. `None`: a terminal without hardware.
fn port(class: &Path, name: &str) -> Option<(bool, Device)> {
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

fn line_of(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

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
}
