//! The benches of the runtime without the rest of grebe, which builds in a quarter of the time:
//! `cargo run --release -p grebe-bench --example flow -- [NAMES] [MILLISECONDS] [PAIRS]`

use std::time::Duration;

use grebe_bench::flow::{self, Bench, Plan};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut plan = Plan::default();
    if let Some(names) = arguments.next().filter(|names| names != "all") {
        plan.benches = names.split(',').map(Bench::by_name).collect::<Result<_, _>>()?;
    }
    if let Some(milliseconds) = arguments.next() {
        plan.duration = Duration::from_millis(milliseconds.parse()?);
    }
    if let Some(pairs) = arguments.next() {
        plan.repeats = pairs.parse()?;
    }
    let rows = flow::run(&plan, |row| eprintln!("{}", row.line()))?;
    println!("{}", flow::markdown(&rows));
    Ok(())
}
