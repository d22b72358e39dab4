//! Options with numbers as values.

/// Accepts negative numbers as values, so that the parser of each option reports why they are invalid.
pub(super) fn with_numbers(command: clap::Command) -> clap::Command {
    let is_number = |arg: &clap::Arg| {
        arg.get_value_names().is_some_and(|names| names.iter().any(|name| NUMBERS.contains(&name.as_str())))
    };
    let command = command.mut_args(|arg| if is_number(&arg) { arg.allow_hyphen_values(true) } else { arg });
    command.mut_subcommands(with_numbers)
}

/// Value names of numbers.
const NUMBERS: [&str; 11] =
    ["RATE", "HZ", "DEG", "NUMBER", "VALUE", "TIME", "BYTES", "N", "FACTOR", "0..1", "SEED"];
