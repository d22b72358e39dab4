//! `grebe devices`: lists devices and streams of this machine as URIs. Each bridge has a file, and gives a reason for
//! an empty list.

mod bridge;
mod radios;
mod serial;
mod shared_memory;
mod sound;

use anyhow::Result;
use bridge::{Bridge, Device};

use crate::cli::Devices;
use crate::ending::Ending;
use crate::output;

pub(crate) fn run(options: &Devices) -> Result<Ending> {
    let bridges = [radios::list(), serial::list(), sound::list(), shared_memory::list()];
    if options.json {
        output::json(&serde_json::to_string_pretty(&bridges)?)?;
    } else {
        output::text(&table(&bridges))?;
    }
    Ok(Ending::Good)
}

fn table(bridges: &[Bridge]) -> String {
    let width = bridges.iter().flat_map(|it| &it.devices).map(|device| device.uri.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Bridge { bridge, devices, note } in bridges {
        text += &format!("{}{bridge}\n", if text.is_empty() { "" } else { "\n" });
        for Device { uri, about } in devices {
            // Quoted for a shell.
            let quoted = format!("'{uri}'");
            text += format!("  {quoted:<width$}  {about}", width = width + 2).trim_end();
            text.push('\n');
        }
        match note {
            Some(note) => text += &format!("  {note}\n"),
            None if devices.is_empty() => text += "  none\n",
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_form_a_column_and_devices_without_one_say_why() {
        let device = |uri: &str, about: &str| Device { uri: uri.to_owned(), about: about.to_owned() };
        let bridges = [
            Bridge::of("radios", Ok(vec![device("soapy:driver=x", "A"), device("soapy:driver=xyz", "")])),
            Bridge::of("streams", Ok(Vec::new())),
            Bridge::of("others", Err("no library".to_owned())),
        ];
        assert_eq!(
            table(&bridges),
            "radios\n  'soapy:driver=x'    A\n  'soapy:driver=xyz'\n\nstreams\n  none\n\nothers\n  no library\n"
        );
    }
}
