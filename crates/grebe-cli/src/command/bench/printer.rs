//! Results of a bench: rows on standard error as they come, then a table or JSON.

use anyhow::Result;
use grebe_bench::{Error, Progress, Row, markdown};
use indicatif::ProgressBar;

use crate::cli::Results;
use crate::ending::{Ending, Usage};
use crate::output::{self, note};

/// Runs a bench and prints its progress and results.
pub(super) fn show(
    results: &Results,
    bench: impl FnOnce(&mut dyn FnMut(Progress<'_>)) -> Result<(), Error>,
) -> Result<Ending> {
    let bar = output::bar(None);
    // The template is a constant and valid.
    if let Some(style) = output::bar_style("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    let mut printer = Printer { title: String::new(), rows: Vec::new(), bar };
    let ended = bench(&mut |progress| match progress {
        Progress::Doing(what) => printer.doing(what),
        Progress::Row(row) => printer.row(row),
    });
    printer.bar.finish_and_clear();
    // Print the rows measured before a failure or an interruption, too.
    if results.table && !printer.rows.is_empty() {
        output::text(&(markdown(&printer.rows) + "\n"))?;
    }
    if results.json {
        output::json(&serde_json::to_string_pretty(&printer.rows)?)?;
    }
    match ended {
        Ok(()) => Ok(Ending::Good),
        Err(Error::Usage(what)) => Err(Usage(what).into()),
        Err(error) => Err(error.into()),
    }
}

/// Prints each row under the title of its table and, on a terminal, the current measurement below.
struct Printer {
    title: String,
    rows: Vec<Row>,
    bar: ProgressBar,
}

impl Printer {
    fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.enable_steady_tick(std::time::Duration::from_millis(100));
    }

    fn row(&mut self, row: &Row) {
        let is_first = self.rows.is_empty();
        let is_new = !row.title().is_empty() && row.title() != self.title;
        self.bar.suspend(|| {
            if is_new {
                output::say_lines(&format!("{}{}", if is_first { "" } else { "\n" }, row.title()));
            }
            note!("{}", row.line());
        });
        if is_new {
            self.title = row.title().to_owned();
        }
        self.rows.push(row.clone());
    }
}
