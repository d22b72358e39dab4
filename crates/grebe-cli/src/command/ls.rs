//! `grebe ls`: lists the streams that producers announce in the lab.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use grebe_scope::Engineering;
use grebe_zenoh::{Found, Lab};
use serde_json::{Value, json};

use crate::cli::Ls;
use crate::ending::Ending;
use crate::interrupt;
use crate::output::{self, note};
use crate::units::counted;

pub(crate) fn run(options: &Ls) -> Result<Ending> {
    options.lab.configure();
    let lab = Lab::shared()?;
    if options.watch {
        return watch(&lab, options);
    }
    let found = lab.list(&options.pattern, ANSWERS_WITHIN)?;
    if options.json {
        output::json(&format!("{:#}", found.iter().map(as_json).collect::<Value>()))?;
    } else {
        output::text(&table(&found))?;
    }
    if found.is_empty() {
        let what = match options.pattern.to_string() {
            pattern if pattern == "**" => "a stream".to_owned(),
            pattern => pattern,
        };
        note!("no producer announces {what} (searched {})", lab.looked_by());
    }
    Ok(Ending::Good)
}

/// Prints streams that appear and disappear, until Ctrl-C or a closed pipe.
fn watch(lab: &Lab, options: &Ls) -> Result<Ending> {
    interrupt::catch();
    let watch = lab.watch(&options.pattern)?;
    let mut known: BTreeMap<(String, String), Found> = BTreeMap::new();
    let mut changes = u64::MAX;
    if !options.json {
        note!("watching {} ({}); Ctrl-C ends it", options.pattern, lab.reach());
    }
    while !interrupt::is_pending() && !output::is_reader_gone() {
        // A producer knows its stream only with the first samples, so incomplete entries are queried again.
        let is_news = watch.wait(changes, LOOK_EVERY);
        let is_vague = known.values().any(|found| found.what.channels == 0);
        if !is_news && !is_vague {
            continue;
        }
        changes = watch.changes();
        let there = watch.streams();
        let gone: Vec<_> = known.keys().filter(|key| !there.contains(key)).cloned().collect();
        for found in gone.iter().filter_map(|key| known.remove(key)) {
            print_change("gone", &found, options.json)?;
        }
        for (session, name) in there {
            let key = (session, name);
            if known.get(&key).is_some_and(|found| found.what.channels > 0) {
                continue;
            }
            let Ok(name) = key.1.parse() else { continue };
            let Some(found) = lab.what(&key.0, &name, ANSWERS_WITHIN)? else { continue };
            if known.get(&key) != Some(&found) {
                print_change(if known.contains_key(&key) { "is" } else { "here" }, &found, options.json)?;
                known.insert(key, found);
            }
        }
    }
    Ok(Ending::Interrupted)
}

fn print_change(event: &str, found: &Found, is_json: bool) -> Result<()> {
    if is_json {
        let mut line = as_json(found);
        line["event"] = json!(event);
        return output::json(&line);
    }
    output::text(&output::in_locale(format!("{event:<4}  {}\n", row(found).join("  "))))
}

fn as_json(found: &Found) -> Value {
    let mut value = serde_json::to_value(&found.what).unwrap_or_default();
    value["name"] = json!(found.name.as_str());
    value["session"] = json!(found.session);
    value
}

fn table(found: &[Found]) -> String {
    let rows: Vec<[String; 4]> = found.iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let line = |row: &[String; 4]| {
        let [name, signal, host, ways] = row;
        format!("{name:<0$}  {signal:<1$}  {host:<2$}  {ways}\n", widths[0], widths[1], widths[2])
    };
    output::in_locale(rows.iter().map(line).collect())
}

/// Name, samples, host, routes.
fn row(found: &Found) -> [String; 4] {
    let what = &found.what;
    let channels = counted(what.channels.into(), "channel");
    let signal = match what.channels {
        0 => "no samples yet".to_owned(),
        _ if what.sample_rate_hz == 0.0 => format!("{channels} of {}", what.format),
        _ => format!("{channels} of {} at {}", what.format, Engineering::new(what.sample_rate_hz, "S/s")),
    };
    // The data route of Zenoh is common to all streams, and long.
    let own = format!("zenoh://grebe/data/{}/{}", found.session, found.name);
    let routes = what.shown_routes().into_iter().map(|route| if route == own { "zenoh" } else { route });
    [found.name.to_string(), signal, what.to_string(), routes.collect::<Vec<_>>().join(", ")]
}

/// Timeout for the slowest producer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use grebe_zenoh::What;

    use super::*;

    #[test]
    fn streams_are_in_columns_with_their_routes() {
        let what = |channels| What {
            host: "mast3".into(),
            pid: 7,
            command: "sg".into(),
            routes: vec!["shm://adc".into(), "zenoh://grebe/data/a1/lab/adc".into()],
            udp_on_request: true,
            format: "i16".into(),
            channels,
            sample_rate_hz: 1e6,
            ..What::default()
        };
        let found = |name: &str, channels| Found {
            session: "a1".into(),
            name: name.parse().unwrap(),
            what: what(channels),
        };
        let text = table(&[found("lab/adc", 2), found("lab/x", 0)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "lab/adc  2 channels of i16 at 1 MS/s  mast3 (sg, process 7)  shm://adc, udp on request, zenoh"
        );
        assert!(lines[1].starts_with("lab/x    no samples yet               mast3"), "{}", lines[1]);
    }
}
