//! Options that take numbers.

/// What takes a number takes a negative one as its value, and says itself what is wrong with it.
pub(super) fn with_numbers(command: clap::Command) -> clap::Command {
    let is_number = |arg: &clap::Arg| {
        arg.get_value_names().is_some_and(|names| names.iter().any(|name| NUMBERS.contains(&name.as_str())))
    };
    let command = command.mut_args(|arg| if is_number(&arg) { arg.allow_hyphen_values(true) } else { arg });
    command.mut_subcommands(with_numbers)
}

/// What the values of options are called that are numbers.
const NUMBERS: [&str; 11] =
    ["RATE", "HZ", "DEG", "NUMBER", "VALUE", "TIME", "BYTES", "N", "FACTOR", "0..1", "SEED"];
