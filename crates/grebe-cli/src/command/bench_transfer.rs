//! `grebe bench --transfer`: files over long distances, simulated, emulated, and between two processes on this machine.

use anyhow::Result;
use grebe_bench::Error;
use grebe_bench::transfer::{self, Link, Part, Plan, Row, Told};
use indicatif::{ProgressBar, ProgressStyle};

use super::{Ending, Usage};
use crate::cli::Bench;
use crate::transfer::cancel_on_interrupt;

pub fn run(options: &Bench) -> Result<Ending> {
    if options.peer {
        transfer::peer_main()?;
        return Ok(Ending::Good);
    }
    let plan = plan(options)?;
    let (mut rows, mut printer) = (Vec::new(), Printer::new());
    let ended = transfer::run(&plan, |told| match told {
        Told::Doing(what) => printer.doing(what),
        Told::Row(row) => {
            printer.row(row);
            rows.push(row.clone());
        }
    });
    drop(printer);
    // What was measured before it ended is a result, too.
    if options.table && !rows.is_empty() {
        println!("{}", transfer::markdown(&rows));
    }
    super::bench::write_json(options, &rows)?;
    match ended {
        Ok(_) => Ok(Ending::Good),
        Err(Error::Cancelled) => Ok(Ending::Interrupted),
        Err(error) => Err(error.into()),
    }
}

/// The first option that is given and means something to this bench only.
pub fn own_option(options: &Bench) -> Option<&'static str> {
    let given = [
        ("--only", !options.only.is_empty()),
        ("--links", options.links.is_some()),
        ("--seed", options.seed.is_some()),
        ("--size", options.size.is_some()),
        ("--dir", options.dir.is_some()),
        ("--wanlink", options.wanlink.is_some()),
    ];
    given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
}

fn plan(options: &Bench) -> Result<Plan> {
    let usage = |error: Error| anyhow::Error::from(Usage(error.to_string()));
    let parts = match options.transfer.as_slice() {
        [all] if all == "all" => Part::ALL.to_vec(),
        _ if options.wanlink.is_some() => {
            return Err(
                Usage("--wanlink stands instead of the parts: give --transfer without names".into()).into()
            );
        }
        named => named.iter().map(|name| Part::by_name(name)).collect::<Result<_, _>>().map_err(usage)?,
    };
    if options.size == Some(0) {
        return Err(Usage("--size 0: give at least a byte".into()).into());
    }
    let plan = Plan::new(super::bench::peer("--transfer"));
    Ok(Plan {
        parts,
        links: match options.only.as_slice() {
            [] => plan.links,
            names => Link::choose(names).map_err(usage)?,
        },
        drawn: options.links.map_or(plan.drawn, usize::from),
        seed: options.seed.unwrap_or(plan.seed),
        repeats: usize::from(options.repeats),
        size_bytes: options.size.map_or(plan.size_bytes, |bytes| bytes as u64),
        directory: options.dir.clone(),
        emulator: options.wanlink.clone(),
        cancel: cancel_on_interrupt(),
        ..plan
    })
}

/// Rows on standard error under the title of their kind, and below them, where a person looks on, what is being measured.
struct Printer {
    title: Option<String>,
    bar: ProgressBar,
}

impl Printer {
    fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        // A template that cannot fail: it is a constant.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        Self { title: None, bar }
    }

    fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.enable_steady_tick(std::time::Duration::from_millis(100));
    }

    fn row(&mut self, row: &Row) {
        let title = row.title();
        let is_new = title.is_some() && title != self.title;
        let is_first = self.title.is_none();
        self.bar.suspend(|| {
            if let Some(title) = title.as_ref().filter(|_| is_new) {
                eprintln!("{}{title}", if is_first { "" } else { "\n" });
            }
            eprintln!("{}", row.line());
        });
        if is_new {
            self.title = title;
        }
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
