//! Names of sound devices without blanks: `microphone-usb-audio`.

/// The name of each device, from its description: letters and digits, with a dash between. Names that two have end in
/// a number.
pub(super) fn names(descriptions: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for description in descriptions {
        let name = name(description);
        let same = |number: usize| if number == 1 { name.clone() } else { format!("{name}-{number}") };
        let free = (1..).map(same).find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

/// The device with this name, or the only one that has it in its name.
///
/// # Errors
/// There is none, or several; as a sentence.
pub(super) fn find(names: &[String], wanted: &str) -> Result<usize, String> {
    let wanted = name(wanted);
    if let Some(at) = names.iter().position(|name| *name == wanted) {
        return Ok(at);
    }
    let found: Vec<usize> =
        (0..names.len()).filter(|&at| !wanted.is_empty() && names[at].contains(&wanted)).collect();
    match found[..] {
        [at] => Ok(at),
        [] => Err("no sound device has that name".to_owned()),
        _ => {
            let found: Vec<&str> = found.iter().map(|&at| names[at].as_str()).collect();
            Err(format!("several sound devices have that in their names: {}", found.join(", ")))
        }
    }
}

fn name(description: &str) -> String {
    let lower = description.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_a_part_of_its_name() {
        let descriptions =
            ["Microphone (USB Audio)", "Mikrofon (Realtek(R) Audio)", "Line", "Line", "Line 2"];
        let names = names(&descriptions.map(str::to_owned));
        let expected = ["microphone-usb-audio", "mikrofon-realtek-r-audio", "line", "line-2", "line-2-2"];
        assert_eq!(names, expected);
        for (wanted, at) in
            [("usb", 0), ("Realtek(R)", 1), ("line", 2), ("line-2", 3), ("microphone-usb-audio", 0)]
        {
            assert_eq!(find(&names, wanted), Ok(at), "{wanted}");
        }
        assert_eq!(find(&names, "hw:1,0").unwrap_err(), "no sound device has that name");
        assert_eq!(find(&names, "-").unwrap_err(), "no sound device has that name");
        assert!(
            find(&names, "audio").unwrap_err().ends_with(": microphone-usb-audio, mikrofon-realtek-r-audio")
        );
    }
}
