//! Exit statuses, in the help of each command.

/// Adds the line of exit statuses to the help of each command.
pub(super) fn with_statuses(command: clap::Command) -> clap::Command {
    STATUSES.into_iter().fold(command, |command, (name, statuses)| {
        command.mut_subcommand(name, |it| {
            let help = it.get_after_help().map(ToString::to_string).unwrap_or_default();
            // A list of examples ends with an empty line.
            let gap = if help.lines().last().is_some_and(|line| line.starts_with(' ')) { "\n" } else { "" };
            it.after_help(format!("{help}\n{gap}Exit status: {statuses}."))
        })
    })
}

/// Of grebe as a whole, and so of the demonstration.
pub(super) const ALL: &str = "Exit status: 0 success, 1 failed, 2 wrong usage, 3 the other side was silent or is gone, \
    4 incomplete (a recording that is truncated or changed, files skipped), 5 the disk is full or the file at its size limit, \
    130 interrupted. A closed pipe, as of head, is not an error.";

const STATUSES: [(&str, &str); 25] = [
    ("sg", "0 sent, 1 failed, 2 wrong usage, 3 the radio is gone, 5 the disk is full, 130 interrupted"),
    ("view", "0 shown, 1 failed, 2 wrong usage, 3 the sender was silent or is gone, 130 interrupted"),
    ("serve", "1 failed, 2 wrong usage, 130 ended by Ctrl-C"),
    (
        "run",
        "0 ran to its end, 1 failed, 2 wrong usage or an error in the file, 3 another host or a sender is gone, 5 the disk is full, \
         130 interrupted",
    ),
    ("demo", "0 shown, 1 failed, 2 wrong usage, 130 interrupted"),
    (
        "record",
        "0 recorded, 1 failed, 2 wrong usage, 3 the sender was silent (--idle-timeout) or is gone (shm://, pipe:), 4 samples were \
         lost with one of several disks, 5 the disk is full or the file at its size limit (the recording is valid up to there), \
         130 interrupted",
    ),
    ("play", "0 sent, 1 failed, 2 wrong usage, 3 the radio is gone, 5 the disk is full, 130 interrupted"),
    (
        "save",
        "0 saved, 1 failed, 2 wrong usage, 4 the ring had only a part of the range, 5 the disk is full, 130 interrupted",
    ),
    (
        "info",
        "0 all are whole, 1 one cannot be read, 2 wrong usage, 4 one is truncated, being recorded, or differs from its checksum, \
         130 interrupted",
    ),
    ("find", "0 searched to the end or to --max, 1 failed, 2 wrong usage, 130 interrupted"),
    ("annotate", "0 done, 1 failed (nothing changed), 2 wrong usage"),
    ("convert", "0 written, 1 failed, 2 wrong usage, 5 the disk is full, 130 interrupted"),
    (
        "repair",
        "0 all are whole now, 1 one cannot be repaired or is still being recorded, 2 wrong usage, 5 the disk is full",
    ),
    (
        "cp",
        "0 complete, 1 failed, 2 wrong usage, 3 the other side was silent or is gone, 4 some files were skipped (they are named), \
         5 the disk is full, 130 interrupted",
    ),
    ("send", TICKET),
    ("recv", TICKET),
    ("relay", "0 ended by Ctrl-C, 1 failed, 2 wrong usage"),
    ("probe", "0 measured, 1 failed, 2 wrong usage, 3 the other side was silent or is gone, 130 interrupted"),
    ("ls", "0 listed (the list may be empty), 1 the lab cannot be joined, 2 wrong usage, 130 interrupted"),
    ("top", "0 shown (also if nothing runs), 1 failed, 2 wrong usage, 130 interrupted"),
    ("devices", "0 listed (the list may be empty), 1 failed, 2 wrong usage"),
    ("doctor", "0 checked (also if it advises a fix), 1 failed, 2 wrong usage, 130 interrupted"),
    ("bench", "0 measured, 1 failed, 2 wrong usage, 130 interrupted"),
    ("completions", PRINTED),
    ("man", PRINTED),
];

const TICKET: &str = "0 complete, 1 failed, 2 wrong usage or an invalid ticket, 3 the other side was silent or is gone, \
    4 some files were skipped (they are named), 5 the disk is full, 130 interrupted";
const PRINTED: &str = "0 printed, 1 failed, 2 wrong usage";

#[cfg(test)]
mod tests {
    #[test]
    fn the_help_of_every_command_ends_with_its_exit_statuses() {
        for command in crate::cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let last = help.lines().last().unwrap_or_default();
            assert!(last.starts_with("Exit status: "), "{}: {last}", command.get_name());
            assert_eq!(help.matches("Exit status").count(), 1, "{}", command.get_name());
            let listed = last["Exit status: ".len()..].split(", ");
            let numbers: Vec<u8> = listed.filter_map(|it| it.split_once(' ')?.0.parse::<u8>().ok()).collect();
            assert!(numbers.is_sorted() && numbers.contains(&1) && numbers.contains(&2), "{last}");
        }
    }
}
