use super::*;
use crate::column::{Column, ColumnGrid, Coverage};
use crate::line::{Interpolation, SampleLine};

/// Colours of the plot's pixel column `x`, from the top.
fn pixels_at(image: &Image, x: usize) -> Vec<Color> {
    let x = x + MARGIN_LEFT as usize;
    let width = image.width() as usize;
    image.rgba().chunks_exact(4).skip(x).step_by(width).map(|p| Color::rgb(p[0], p[1], p[2])).collect()
}

fn column(min: i16, max: i16) -> Column {
    Column { min, max, coverage: Coverage::Complete }
}

fn picture<'a>(lanes: &'a [Lane<'a>]) -> Picture<'a> {
    Picture { lanes, ..Picture::new(400, 240, Theme::dark()) }
}

#[test]
fn a_column_is_drawn_where_its_values_are() {
    let columns: Vec<Column> =
        (0..plot_columns(400)).map(|i| column(i as i16 * 10, i as i16 * 10 + 10)).collect();
    let lanes = [Lane::new("", Trace::Columns(&columns), 0.0, 3200.0)];
    let image = picture(&lanes).draw().unwrap();
    let trace = Theme::dark().trace(0);
    let middle_of = |x| {
        let rows: Vec<usize> = (0..240).filter(|&y| pixels_at(&image, x)[y] == trace).collect();
        assert!(!rows.is_empty() && rows.len() <= 3, "{x}: {rows:?}");
        rows[rows.len() / 2]
    };
    let (plot_top, plot_height) = (8.0, 240.0 - 8.0 - 22.0 - 3.0);
    for x in [0, 7, 150, 311] {
        let expected = plot_top + plot_height * (1.0 - (x as f64 * 10.0 + 5.0) / 3200.0);
        assert!((middle_of(x) as f64 - expected).abs() <= 1.5, "{x}");
    }
}

#[test]
fn labels_have_the_room_that_they_need() {
    let columns = vec![column(0, 1); plot_columns(400)];
    let lane = Lane { unit: "dBFS", ..Lane::new("", Trace::Columns(&columns), -1.938_6, -1.937_8) };
    let edge = |picture: Picture| {
        let image = picture.draw().unwrap();
        let width = image.width() as usize;
        let left = image.rgba().chunks_exact(4).enumerate().filter(|(at, _)| at % width < 2);
        let background = Theme::dark().background;
        left.filter(|(_, p)| Color::rgb(p[0], p[1], p[2]) != background).count()
    };
    // `-1.9386 dBFS` is longer than the room that most labels need: it was cut off at the edge.
    assert_eq!(edge(picture(&[lane])), 0);
    assert!(
        plot_columns_beside(400, 12) < plot_columns(400) && plot_columns_beside(400, 9) == plot_columns(400)
    );
}

#[test]
fn lanes_that_are_lower_than_a_line_of_text_are_drawn() {
    let columns: Vec<Column> = (0..plot_columns(160)).map(|_| column(-10, 10)).collect();
    let lanes: Vec<Lane> = (0..40).map(|_| Lane::new("x", Trace::Columns(&columns), -20.0, 20.0)).collect();
    let image = Picture { lanes: &lanes, ..Picture::new(160, 120, Theme::dark()) }.draw();
    // Too many for it, or all of them: no reason to panic.
    assert!(image.map_or(true, |image| (image.width(), image.height()) == (160, 120)));
}

#[test]
fn a_gap_is_marked_and_no_line_crosses_it() {
    let mut columns = vec![column(-100, 100); plot_columns(400)];
    let lost = Column { coverage: Coverage::Gap, ..Column::OUTSIDE };
    columns[100..110].fill(lost);
    columns[200] = Column { coverage: Coverage::Gap, ..column(-100, 100) };
    let lanes = [Lane::new("", Trace::Columns(&columns), -1000.0, 1000.0)];
    let image = picture(&lanes).draw().unwrap();
    let (trace, gap) = (Theme::dark().trace(0), Theme::dark().gap);
    for x in 100..110 {
        let pixels = pixels_at(&image, x);
        assert!(!pixels.contains(&trace) && pixels.contains(&gap), "{x}");
    }
    assert!(pixels_at(&image, 200).contains(&trace) && pixels_at(&image, 200).contains(&gap));
    assert!(!pixels_at(&image, 50).contains(&gap));
}

#[test]
fn between_samples_the_line_stands_between_counts_and_each_sample_has_a_dot() {
    let columns = vec![column(0, 1); plot_columns(400)];
    let mut line = SampleLine::new(columns.len());
    let samples: Vec<i16> = (0..13).map(|at| at % 2).collect();
    line.add(ColumnGrid::new(1.0 / 26.0), 0, 0, &samples, Interpolation::Linear);
    let lanes = [Lane::new("", Trace::Line(&columns, &line), -10.0, 11.0)];
    let image = picture(&lanes).draw().unwrap();
    let trace = Theme::dark().trace(0);
    let rows_at = |x: usize| (0..240usize).filter(|&y| pixels_at(&image, x)[y] == trace).collect::<Vec<_>>();
    let y_of = |value: f64| 8.0 + 206.0 * (11.0 - value) / 21.0;
    for (x, value) in [(13, 0.5), (26 + 13, 0.5), (6, 0.25), (26 + 6, 0.75)] {
        let rows = rows_at(x);
        assert!(!rows.is_empty() && rows.len() <= 2, "{x}: {rows:?}");
        assert!((rows[0] as f64 - y_of(value)).abs() <= 1.5, "{x}: {rows:?}, not {}", y_of(value));
    }
    for (x, value) in [(26, 1.0), (52, 0.0)] {
        let rows = rows_at(x);
        assert!(rows.len() >= 5 && (rows[rows.len() / 2] as f64 - y_of(value)).abs() <= 1.5, "{x}: {rows:?}");
    }
}

#[test]
fn every_kind_of_trace_and_an_empty_picture_draw() {
    let cells = vec![0.7f32; 12];
    let lanes = [
        Lane::<i16>::new("cells", Trace::Intensity { width: 4, cells: &cells }, 0.0, 1.0),
        Lane::new("nothing", Trace::Columns(&[]), 0.0, 0.0),
        Lane::new("no width", Trace::Intensity { width: 0, cells: &cells }, f64::NAN, 1.0),
    ];
    for theme in [Theme::dark(), Theme::light()] {
        let picture = Picture {
            header: &["a source with a name", "1 GS/s", "0 lost", "a long piece that needs a row of its own"],
            lanes: &lanes,
            cursors: &[Cursor { at: 0.99, label: "B" }, Cursor { at: 7.0, label: "outside" }],
            ..Picture::new(200, 150, theme)
        };
        assert!(picture.draw().unwrap().rgba().chunks_exact(4).all(|p| p[3] == 255));
    }
    assert!(Picture::<i16>::new(200, 150, Theme::dark()).draw().is_ok());
    assert!(matches!(
        Picture::<i16>::new(10, 150, Theme::dark()).draw(),
        Err(Error::Setting { what: "width", .. })
    ));
    assert!(Picture::<i16>::new(200, 99_999, Theme::dark()).draw().is_err());
}

#[test]
fn the_same_picture_has_the_same_bytes() {
    let columns: Vec<Column> =
        (0..312i16).map(|i| column((i * 37) % 500 - 600, (i * 37) % 500 + 100)).collect();
    let lanes = [Lane::new("one", Trace::Columns(&columns), -1000.0, 1000.0)];
    let one = picture(&lanes).draw().unwrap().to_png().unwrap();
    assert_eq!(one, picture(&lanes).draw().unwrap().to_png().unwrap());
    assert_eq!(&one[..8], b"\x89PNG\r\n\x1a\n");
}

#[test]
fn layers_share_a_lane_and_pictures_stack() {
    let flat =
        |value: i16| vec![Column { min: value, max: value, coverage: Coverage::Complete }; plot_columns(200)];
    let (low, high) = (flat(-50), flat(50));
    let theme = Theme::dark();
    let layers = [
        Layer { color: theme.trace(0), columns: &low, line: None, scale: 1.0, offset: 0.0 },
        Layer { color: theme.trace(1), columns: &high, line: None, scale: 0.5, offset: 25.0 },
    ];
    let lanes = [Lane::new("", Trace::Layers(&layers), -100.0, 100.0)];
    let image = Picture { lanes: &lanes, ..Picture::new(200, 150, theme.clone()) }.draw().unwrap();
    let count = |color: Color| {
        let pixels = image.rgba().chunks_exact(4);
        pixels.filter(|pixel| pixel[..3] == [color.r, color.g, color.b]).count()
    };
    assert_eq!((count(theme.trace(0)), count(theme.trace(1))), (plot_columns(200), plot_columns(200)));
    let stacked = Image::stack(&[image.clone(), image.clone()]).unwrap();
    assert_eq!((stacked.width(), stacked.height()), (200, 300));
    assert_eq!(stacked.rgba()[..image.rgba().len()], *image.rgba());
    assert_eq!(stacked.rgba()[image.rgba().len()..], *image.rgba());
    assert!(Image::stack(&[]).is_err());
}

#[test]
fn columns_of_reals_are_drawn_where_their_values_are_and_infinity_is_clipped() {
    let real = |min: f32, max: f32| Column { min, max, coverage: Coverage::Complete };
    let mut reals = vec![real(0.25e-6, 0.5e-6); plot_columns(400)];
    let counts: Vec<Column> = reals.iter().map(|_| column(250, 500)).collect();
    let draw_counts = {
        let lane = Lane::new("", Trace::Columns(&counts), 0.0, 1e-6);
        picture(&[Lane { scale: 1e-9, ..lane }]).draw().unwrap()
    };
    let draw = |columns: &[Column<f32>]| {
        let lanes = [Lane::new("", Trace::Columns(columns), 0.0, 1e-6)];
        Picture { lanes: &lanes, ..Picture::new(400, 240, Theme::dark()) }.draw().unwrap()
    };
    assert_eq!(draw(&reals).rgba(), draw_counts.rgba());
    reals[100].max = f32::INFINITY;
    reals[200] = Column { coverage: Coverage::Complete, ..Column::OUTSIDE };
    let image = draw(&reals);
    let trace = Theme::dark().trace(0);
    let rows = |x| (0..240).filter(|&y| pixels_at(&image, x)[y] == trace).count();
    let whole = rows(50);
    assert!(rows(100) > 2 * whole && pixels_at(&image, 100)[9] == trace, "up to the edge of the lane");
    assert_eq!((rows(200), rows(201)), (0, whole));
    assert!(!pixels_at(&image, 200).contains(&Theme::dark().gap), "nothing was lost");
}

#[test]
fn the_bar_of_received_data_is_brighter_where_more_has_arrived() {
    let arrived = [([0.0, 0.5], 1.0), ([0.5, 0.75], 0.3), ([0.75, 1.0], 0.0)];
    let image = Picture { arrived: Some(&arrived), ..picture(&[]) }.draw().unwrap();
    let plain = picture(&[]).draw().unwrap();
    let (cursor, grid) = (Theme::dark().cursor, Theme::dark().grid);
    let at = |part: f64| (part * plot_columns(400) as f64) as usize;
    let rows = |x: usize, color: Color| pixels_at(&image, x).into_iter().filter(|&it| it == color).count();
    assert_eq!(rows(at(0.25), cursor), 4);
    assert_eq!((rows(at(0.6), cursor), rows(at(0.9), cursor)), (0, 0));
    assert!(rows(at(0.9), grid) >= 4 && pixels_at(&image, at(0.6)) != pixels_at(&image, at(0.9)));
    assert!(image.rgba() != plain.rgba());
}
