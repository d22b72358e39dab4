//! The text format of Prometheus, version 0.0.4.

use std::fmt::{self, Display, Write};

/// Names and values that distinguish the rows of a family.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

/// Metrics by name, each with its rows. `Display` writes the text format of Prometheus.
///
/// Invalid characters in names become `_`; letters, digits and `_` are valid. Label values may be anything.
///
/// ```
/// let mut families = grebe_metrics::Families::default();
/// families.gauge("tank_fill_ratio", "How full it is, 0 to 1.", &[("tank", "a \"b\"")], 0.25);
/// let lines: Vec<String> = families.to_string().lines().map(str::to_owned).collect();
/// assert_eq!(lines[0], "# HELP tank_fill_ratio How full it is, 0 to 1.");
/// assert_eq!(lines[1], "# TYPE tank_fill_ratio gauge");
/// assert_eq!(lines[2], r#"tank_fill_ratio{tank="a \"b\""} 0.25"#);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Families(Vec<Family>);

#[derive(Debug, Clone)]
struct Family {
    name: String,
    kind: &'static str,
    help: String,
    rows: String,
}

/// Distribution: counts per bucket, each with its upper bound, and a count above all bounds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// Upper bounds, ascending.
    pub bounds: Vec<f64>,
    /// Count of each bucket, not cumulative; the last one counts values above all bounds.
    pub counts: Vec<u64>,
    /// Sum of all values.
    pub sum: f64,
}

impl Families {
    /// Adds a row of a counter, which only grows until the process restarts. The name should end in `_total`.
    pub fn counter(&mut self, name: &str, help: &str, labels: Labels<'_>, value: impl Display) {
        self.row(name, "counter", help, |name, rows| row(rows, name, "", labels, None, value));
    }

    /// Adds a row of a gauge, which may rise and fall.
    pub fn gauge(&mut self, name: &str, help: &str, labels: Labels<'_>, value: impl Display) {
        self.row(name, "gauge", help, |name, rows| row(rows, name, "", labels, None, value));
    }

    /// Adds a row of a distribution. Expects one count more than bounds, and ignores surplus ones.
    pub fn histogram(&mut self, name: &str, help: &str, labels: Labels<'_>, value: &Histogram) {
        self.row(name, "histogram", help, |name, rows| {
            let mut count = 0;
            for (bound, more) in value.bounds.iter().zip(&value.counts) {
                count += more;
                row(rows, name, "_bucket", labels, Some(&bound.to_string()), count);
            }
            let count: u64 = value.counts.iter().take(value.bounds.len() + 1).sum();
            row(rows, name, "_bucket", labels, Some("+Inf"), count);
            row(rows, name, "_sum", labels, None, value.sum);
            row(rows, name, "_count", labels, None, count);
        });
    }

    /// Adds a row to its family, whatever the order of calls. The first call sets the family's help and type.
    fn row(&mut self, name: &str, kind: &'static str, help: &str, write: impl FnOnce(&str, &mut String)) {
        let name = valid(name);
        let family = match self.0.iter_mut().position(|family| family.name == name) {
            Some(at) => &mut self.0[at],
            None => {
                self.0.push(Family { name, kind, help: help.to_owned(), rows: String::new() });
                // It was just pushed.
                let Some(family) = self.0.last_mut() else { return };
                family
            }
        };
        // Rows of two types under one name would make the whole page unreadable.
        if family.kind == kind {
            write(&family.name, &mut family.rows);
        }
    }
}

impl Display for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Family { name, kind, help, rows } in &self.0 {
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            write!(f, "# HELP {name} {help}\n# TYPE {name} {kind}\n{rows}")?;
        }
        Ok(())
    }
}

fn row(rows: &mut String, name: &str, end: &str, labels: Labels<'_>, le: Option<&str>, value: impl Display) {
    rows.push_str(name);
    rows.push_str(end);
    let all = labels.iter().copied().chain(le.map(|bound| ("le", bound)));
    for (number, (label, text)) in all.enumerate() {
        rows.push(if number == 0 { '{' } else { ',' });
        rows.push_str(&valid(label));
        rows.push_str("=\"");
        for letter in text.chars() {
            match letter {
                '\\' => rows.push_str("\\\\"),
                '"' => rows.push_str("\\\""),
                '\n' => rows.push_str("\\n"),
                _ => rows.push(letter),
            }
        }
        rows.push('"');
    }
    let end = if labels.is_empty() && le.is_none() { "" } else { "}" };
    // Writing to a string cannot fail.
    let _ = writeln!(rows, "{end} {value}");
}

fn valid(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = name.chars().map(letter).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) || name.is_empty() {
        return format!("_{name}");
    }
    name
}

#[cfg(test)]
mod tests {
    use prometheus_parse::{Scrape, Value};
    use proptest::prelude::*;

    use super::*;

    fn parsed(families: &Families) -> Scrape {
        Scrape::parse(families.to_string().lines().map(|line| Ok(line.to_owned()))).unwrap()
    }

    #[test]
    fn rows_of_a_family_stand_together_and_the_buckets_of_a_histogram_add_up() {
        let mut families = Families::default();
        let histogram = Histogram { bounds: vec![0.001, 0.5], counts: vec![3, 0, 2], sum: 7.25 };
        for stage in ["a", "b"] {
            families.counter("frames_total", "Frames.", &[("stage", stage)], u64::MAX);
            families.histogram("took_seconds", "How long\nit took.", &[("stage", stage)], &histogram);
        }
        let text = families.to_string();
        assert_eq!(text.matches("# TYPE").count(), 2, "{text}");
        assert_eq!(text.lines().nth(2), Some("frames_total{stage=\"a\"} 18446744073709551615"));
        assert!(text.contains("# HELP took_seconds How long\\nit took.\n"), "{text}");
        assert!(text.contains("took_seconds_bucket{stage=\"b\",le=\"0.001\"} 3\n"), "{text}");
        assert!(
            text.contains("took_seconds_sum{stage=\"b\"} 7.25\ntook_seconds_count{stage=\"b\"} 5\n"),
            "{text}"
        );
        let parsed = parsed(&families);
        let of_b = parsed
            .samples
            .iter()
            .find(|it| it.metric == "took_seconds" && it.labels.get("stage") == Some("b"));
        let Some(Value::Histogram(buckets)) = of_b.map(|it| &it.value) else { panic!("{parsed:?}") };
        assert_eq!(buckets.iter().map(|it| it.count).collect::<Vec<_>>(), [3.0, 3.0, 5.0]);
    }

    #[test]
    fn one_name_has_one_kind() {
        let mut families = Families::default();
        families.gauge("x", "First.", &[], 1);
        families.counter("x", "Second.", &[], 2);
        assert_eq!(families.to_string(), "# HELP x First.\n# TYPE x gauge\nx 1\n");
    }

    proptest! {
        #[test]
        fn any_label_value_keeps_a_row_one_line(name in ".*", help in ".*", label in "[a-z]{1,5}", text in "(?s).*") {
            let mut families = Families::default();
            families.gauge(&name, &help, &[(&label, &text)], 1.5);
            let written = families.to_string();
            let lines: Vec<&str> = written.split_terminator('\n').collect();
            prop_assert_eq!(lines.len(), 3, "{}", written);
            // Unescaped label value: each escape is one character.
            let (_, quoted) = lines[2].split_once("=\"").unwrap();
            let quoted = quoted.strip_suffix("\"} 1.5").unwrap();
            let (mut read, mut letters) = (String::new(), quoted.chars());
            while let Some(letter) = letters.next() {
                prop_assert_ne!(letter, '"');
                read.push(match letter {
                    '\\' if letters.next() == Some('n') => '\n',
                    '\\' => quoted.chars().nth(quoted.chars().count() - letters.as_str().chars().count() - 1).unwrap(),
                    letter => letter,
                });
            }
            prop_assert_eq!(read, text);
        }
    }
}
