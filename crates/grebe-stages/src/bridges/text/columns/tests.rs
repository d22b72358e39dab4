use proptest::prelude::*;

use super::*;

fn whatever_comes() -> Columns {
    Columns::new(SampleFormat::F64, None, None)
}

fn names(columns: &Columns) -> Vec<&str> {
    columns.channels().iter().map(|channel| channel.name.as_str()).collect()
}

/// The classification of each line, and the values after it.
fn taken(columns: &mut Columns, lines: &[&str]) -> Vec<(Line, Vec<f64>)> {
    lines.iter().map(|line| (columns.take(line.as_bytes()), columns.values().to_vec())).collect()
}

#[test]
fn the_first_line_says_how_many_columns_there_are_and_one_of_words_what_they_are_called() {
    let mut columns = whatever_comes();
    let lines =
        taken(&mut columns, &["# measured today", "a, \"b c\"", "", "1,2", "3,4", "a,\"b c\"", "5,6"]);
    let expected = [
        (Line::Nothing, vec![]),
        (Line::Words, vec![]),
        (Line::Nothing, vec![]),
        (Line::Changed, vec![1.0, 2.0]),
        (Line::Row, vec![3.0, 4.0]),
        (Line::Words, vec![3.0, 4.0]),
        (Line::Row, vec![5.0, 6.0]),
    ];
    assert_eq!(lines, expected);
    assert_eq!(names(&columns), ["a", "b c"]);
    // As a recorder of measurements writes them.
    let mut columns = whatever_comes();
    taken(&mut columns, &["# a b", "1.5e0 2.5e0"]);
    assert_eq!(names(&columns), ["a", "b"]);
}

#[test]
fn names_add_channels_where_they_appear_and_values_stay_until_they_are_said_again() {
    let mut columns = whatever_comes();
    let lines = taken(&mut columns, &["a:1,b:2", "b:3", "a: 4 V, c: 5 mA", "c=6 a=7 b=8"]);
    let expected = [
        (Line::Changed, vec![1.0, 2.0]),
        (Line::Row, vec![1.0, 3.0]),
        (Line::Added, vec![4.0, 3.0, 5.0]),
        (Line::Row, vec![7.0, 8.0, 6.0]),
    ];
    assert_eq!(lines, expected);
    assert_eq!(names(&columns), ["a", "b", "c"]);
    assert_eq!(columns.channels()[2].unit, "mA");
    assert_eq!(columns.drain_counts(), (2, 0));
}

#[test]
fn an_incomplete_line_changes_nothing() {
    let mut columns = whatever_comes();
    taken(&mut columns, &["1,2,3"]);
    for line in ["4,5", "4,x,6", "4,5,6,7", "a:1,b:2,c:3", "4 5:6 7", "\u{1}\u{2}", ",,", "ab\u{fffd}"] {
        assert_eq!(taken(&mut columns, &[line]), [(Line::Bad, vec![1.0, 2.0, 3.0])], "{line:?}");
    }
    assert_eq!(columns.take(b"\xff\xfe,\x00"), Line::Bad);
    for line in ["Setup done", "12:30:00,3:4"] {
        assert_eq!(taken(&mut columns, &[line]), [(Line::Words, vec![1.0, 2.0, 3.0])], "{line:?}");
    }
    assert_eq!(taken(&mut columns, &["4,,6"]), [(Line::Row, vec![4.0, 2.0, 6.0])]);
    let mut named = whatever_comes();
    taken(&mut named, &["a:1,b:2"]);
    for line in ["a:x,b:2", "a:3,b:", "c:1,d:x", "1,2", "a:1,2"] {
        assert_eq!(taken(&mut named, &[line]), [(Line::Bad, vec![1.0, 2.0])], "{line:?}");
    }
    assert_eq!(names(&named), ["a", "b"]);
}

#[test]
fn lines_of_another_kind_are_accepted_if_they_continue() {
    let mut columns = whatever_comes();
    taken(&mut columns, &["1,2,3"]);
    let lines = taken(&mut columns, &["1,2", "1,2,3", "1,2", "1,2", "4,5", "6,7"]);
    let kinds: Vec<Line> = lines.iter().map(|(line, _)| *line).collect();
    assert_eq!(kinds, [Line::Bad, Line::Row, Line::Bad, Line::Bad, Line::Changed, Line::Row]);
    assert_eq!(columns.values(), [6.0, 7.0]);
    let lines = taken(&mut columns, &["x,y,z", "1,2,3", "1,2,3", "1,2,3"]);
    assert_eq!((lines[3].0, names(&columns)), (Line::Changed, vec!["x", "y", "z"]));
    // Words before lines of the same kind are a message.
    assert_eq!(taken(&mut columns, &["battery is low", "1,2,3"])[1].0, Line::Row);
    let lines = taken(&mut columns, &["a:1", "a:2", "a:3,b:4"]);
    assert_eq!(lines[2].0, Line::Changed);
    assert_eq!((names(&columns), columns.values()), (vec!["a", "b"], &[3.0, 4.0][..]));
}

#[test]
fn a_column_may_be_the_time() {
    let mut columns = whatever_comes();
    taken(&mut columns, &["time_ms,a", "1500,2", "3000,2"]);
    assert_eq!((columns.time_s(), names(&columns), columns.values()), (Some(1.5), vec!["a"], &[2.0][..]));
    let second = Some(TimeColumn::Number(1, Some(TimeUnit::Us)));
    let mut columns = Columns::new(SampleFormat::I16, None, second);
    // The time is not a sample.
    taken(&mut columns, &["7,2000000", "7,4000000"]);
    assert_eq!((columns.time_s(), columns.values()), (Some(2.0), &[7.0][..]));
    assert_eq!(columns.take(b"7,nan"), Line::Bad);
    let mut columns =
        Columns::new(SampleFormat::F64, None, Some(TimeColumn::Name("t".into(), Some(TimeUnit::S))));
    assert_eq!(columns.take(b"1,2"), Line::Bad, "which one is t is not known");
    taken(&mut columns, &["t:3,a:5", "t:4,a:5"]);
    assert_eq!((columns.time_s(), names(&columns)), (Some(1.0), vec!["a"]));
    assert_eq!(columns.take(b"t:4"), Line::Row);
    for heading in ["t,a", "Time (s),a", "# timestamp,a", "in s,a"] {
        let mut columns = whatever_comes();
        taken(&mut columns, &[heading, "3,1", "4,2"]);
        assert_eq!((columns.time_s(), names(&columns)), (Some(1.0), vec!["a"]), "{heading}");
    }
    let mut columns = whatever_comes();
    taken(&mut columns, &["time,a", "2026-01-01T10:00:00.25Z,1", "2026-01-01T10:00:01Z,2"]);
    assert_eq!((columns.time_s(), columns.values()), (Some(0.75), &[2.0][..]));
    let mut columns = Columns::new(SampleFormat::F64, None, Some(TimeColumn::None));
    taken(&mut columns, &["time,a", "3,1"]);
    assert_eq!((columns.time_s(), names(&columns)), (None, vec!["time", "a"]));
    // Times alone do not start another kind of stream.
    let mut columns = whatever_comes();
    let lines = taken(&mut columns, &["1,2", "time:1", "time:2", "time:3", "3,4"]);
    assert_eq!((lines[3].0, lines[4].clone()), (Line::Bad, (Line::Row, vec![3.0, 4.0])));
}

#[test]
fn units_may_stand_in_names_and_right_behind_numbers() {
    let mut columns = whatever_comes();
    taken(&mut columns, &["W.AvgPow(W):0.02,W.State:0.49W", "W.AvgPow(W):0.12,W.State:0.50W"]);
    let named: Vec<(&str, &str)> =
        columns.channels().iter().map(|it| (it.name.as_str(), it.unit.as_str())).collect();
    assert_eq!((named, columns.values()), (vec![("W.AvgPow", "W"), ("W.State", "W")], &[0.12, 0.5][..]));
    // In another unit it is another number.
    assert_eq!(columns.take(b"W.AvgPow(W):0.02,W.State:490mW"), Line::Bad);
    let mut columns = whatever_comes();
    taken(&mut columns, &["temp,hum", "24.00°C,40%"]);
    let named: Vec<(&str, &str)> =
        columns.channels().iter().map(|it| (it.name.as_str(), it.unit.as_str())).collect();
    assert_eq!((named, columns.values()), (vec![("temp", "°C"), ("hum", "%")], &[24.0, 40.0][..]));
    // Names such as these are not numbers.
    let mut columns = whatever_comes();
    taken(&mut columns, &["input,5V,3V3", "1,2,3"]);
    assert_eq!(names(&columns), ["input", "5V", "3V3"]);
}

#[test]
fn repeated_names_are_reported() {
    let mut columns = whatever_comes();
    taken(&mut columns, &["a:1,a:2"]);
    assert_eq!(columns.guesses(), ["a stands twice in a line"]);
    let mut columns = whatever_comes();
    taken(&mut columns, &["a,a", "1,2"]);
    assert_eq!(columns.guesses(), ["a stands twice in a line"]);
}

#[test]
fn requested_channels_stay() {
    let wanted = Some(Fixed::Names(vec!["b".into(), "a".into()]));
    let mut columns = Columns::new(SampleFormat::F64, wanted.clone(), None);
    assert_eq!(names(&columns), ["b", "a"]);
    let lines = taken(&mut columns, &["a:1,b:2,c:3", "c:1", "b:5"]);
    assert_eq!(lines[0], (Line::Changed, vec![2.0, 1.0]));
    assert_eq!(lines[2], (Line::Row, vec![5.0, 1.0]));
    assert_eq!(columns.drain_counts().1, 2);
    let mut columns = Columns::new(SampleFormat::F64, wanted, None);
    let lines = taken(&mut columns, &["a,x,b", "1,9,2"]);
    assert_eq!(lines[1], (Line::Changed, vec![2.0, 1.0]));
    let mut columns = Columns::new(SampleFormat::F64, Some(Fixed::Count(2)), None);
    let kinds: Vec<Line> = taken(&mut columns, &["1,2", "1", "1", "1", "1,2,3", "a:1,b:2", "3,4"])
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(kinds, [Line::Changed, Line::Bad, Line::Bad, Line::Bad, Line::Bad, Line::Bad, Line::Row]);
}

#[test]
fn integers_are_whole_and_within_their_range() {
    let mut columns = Columns::new(SampleFormat::I8, None, None);
    let kinds: Vec<Line> = taken(&mut columns, &["-128", "127", "128", "1.5", "nan", "2.0"])
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(kinds, [Line::Changed, Line::Row, Line::Bad, Line::Bad, Line::Bad, Line::Row]);
}

#[test]
fn columns_beyond_255_channels_are_refused() {
    let mut columns = whatever_comes();
    for number in 0..300 {
        let taken = columns.take(format!("c{number}:1").as_bytes());
        assert_eq!(taken == Line::Bad, number >= 255, "{number}");
    }
    let long: Vec<String> = (0..256).map(|number| number.to_string()).collect();
    assert_eq!(whatever_comes().take(long.join(",").as_bytes()), Line::Bad);
    assert_eq!(whatever_comes().take(long[1..].join(",").as_bytes()), Line::Changed);
}

proptest! {
    /// Every printed number is read back exactly, in both kinds of lines.
    #[test]
    fn numbers_come_back_as_they_were(
        rows in prop::collection::vec(prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::ZERO, 3), 1..20),
        separator in prop::sample::select(vec![",", "; ", "\t", " "]),
        is_named in any::<bool>(),
    ) {
        let mut columns = whatever_comes();
        for row in rows {
            let fields = row.iter().zip(["x", "y", "z"]);
            let fields: Vec<String> =
                fields.map(|(value, name)| if is_named { format!("{name}:{value}") } else { format!("{value:e}") }).collect();
            let taken = columns.take(fields.join(separator).as_bytes());
            prop_assert!(matches!(taken, Line::Row | Line::Changed));
            prop_assert_eq!(columns.values(), &row);
        }
    }

    /// Garbage of any kind is only counted.
    #[test]
    fn any_bytes_are_taken_or_left(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40)) {
        let mut columns = whatever_comes();
        for line in lines {
            let before = columns.values().to_vec();
            if matches!(columns.take(&line), Line::Bad | Line::Words | Line::Nothing) {
                prop_assert!(before.iter().zip(columns.values()).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
            prop_assert_eq!(columns.values().len(), columns.channels().len());
        }
    }
}
