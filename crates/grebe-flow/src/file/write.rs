//! Graph as text for further editing.

use std::fmt::Write;

use toml::Value;

use super::checked_edge::FileEdge;
use super::checked_host::FileHost;
use super::checked_stage::FileStage;
use crate::quantity::SizeBytes;
use crate::queue::QueueOptions;

pub(super) fn to_toml(stages: &[FileStage], edges: &[FileEdge], hosts: &[FileHost]) -> String {
    let mut out = String::new();
    for stage in stages {
        blank_line(&mut out);
        write_stage(&mut out, stage);
    }
    for edge in edges {
        blank_line(&mut out);
        write_edge(&mut out, edge);
    }
    for host in hosts {
        blank_line(&mut out);
        write_host(&mut out, host);
    }
    out
}

fn blank_line(out: &mut String) {
    if !out.is_empty() {
        out.push('\n');
    }
}

// Writing to a String cannot fail.

fn write_stage(out: &mut String, stage: &FileStage) {
    let _ = writeln!(out, "[[stage]]\nid = {}\nkind = {}", text(&stage.id), text(&stage.kind));
    if !stage.params.is_empty() {
        let _ = writeln!(out, "params = {}", table(&stage.params));
    }
    if let Some(cpu) = stage.cpu {
        let _ = writeln!(out, "cpu = {cpu}");
    }
    if let Some(host) = &stage.host {
        let _ = writeln!(out, "host = {}", text(host));
    }
}

fn write_edge(out: &mut String, edge: &FileEdge) {
    let end = |(id, port): &(String, String)| text(&format!("{id}.{port}"));
    let _ = writeln!(out, "[[edge]]\nfrom = {}\nto = {}", end(&edge.from), end(&edge.to));
    let _ = match edge.queue {
        None => writeln!(out, "fuse = true"),
        Some(QueueOptions { capacity_batches, capacity_bytes, policy }) => {
            let _ = writeln!(out, "capacity = {}", integer(capacity_batches as i64));
            if let Some(bytes) = capacity_bytes {
                let _ = writeln!(out, "capacity_bytes = {}", text(&SizeBytes(bytes).to_string()));
            }
            writeln!(out, "policy = {}", text(policy.name()))
        }
    };
}

fn write_host(out: &mut String, host: &FileHost) {
    let _ = writeln!(out, "[[host]]\nname = {}\nrestart = {}", text(&host.name), text(host.restart.name()));
}

fn value(of: &Value) -> String {
    match of {
        Value::Integer(number) => integer(*number),
        Value::Float(number) => float(*number),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(value).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Table(of) => table(of),
        Value::String(of) => text(of),
        Value::Boolean(_) | Value::Datetime(_) => of.to_string(),
    }
}

fn table(of: &toml::Table) -> String {
    if of.is_empty() {
        return "{}".to_owned();
    }
    let fields: Vec<String> = of.iter().map(|(name, of)| format!("{} = {}", key(name), value(of))).collect();
    format!("{{ {} }}", fields.join(", "))
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { text(name) }
}

/// On one line, whatever the text.
fn text(of: &str) -> String {
    let mut out = String::from('"');
    for c in of.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Groups thousands: `10_000_000`.
fn integer(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = if number < 0 { String::from("-") } else { String::new() };
    for (position, digit) in digits.chars().enumerate() {
        if digits.len() > 4 && position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    // Debug formatting, because it writes 1e300 in five characters, not in three hundred.
    let text = format!("{number:?}");
    match text.strip_suffix(".0").and_then(|whole| whole.parse::<i64>().ok()) {
        Some(whole) if whole != 0 => format!("{}.0", integer(whole)),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_readable() {
        let numbers = [0, -5, 9_999, 10_000, -1_234_567, i64::MIN].map(integer);
        assert_eq!(numbers[..5], ["0", "-5", "9999", "10_000", "-1_234_567"]);
        assert_eq!(numbers[5], "-9_223_372_036_854_775_808");
        let numbers = [0.5, 1e6, 1e300, f64::NEG_INFINITY, -0.0, 1e16].map(float);
        assert_eq!(numbers, ["0.5", "1_000_000.0", "1e300", "-inf", "-0.0", "1e16"]);
    }
}
