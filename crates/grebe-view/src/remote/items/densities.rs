//! Densities: how often a trace or a point passed each cell. Most cells are empty, and neighbours are not alike.

use crate::data::persistence::{LaneDensity, PersistenceView};
use crate::data::viewport::XySettings;
use crate::data::xy::XyView;
use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::picture::{read_lane_id, write_lane_id};
use crate::remote::residuals::{BitReader, BitWriter, Context};

pub(super) fn write_persistence(view: &PersistenceView, out: &mut Writer) {
    out.varint(view.number);
    out.varint(view.records);
    out.f64(view.fraction);
    out.varint(view.lanes.len() as u64);
    for density in &view.lanes {
        write_lane_id(density.lane, out);
        let width = density.width.max(1);
        out.varint(width as u64);
        out.varint((density.cells.len() / width) as u64);
        write_cells(&density.cells, out);
    }
}

pub(super) fn read_persistence(from: &mut Reader<'_>, number: u64) -> Result<PersistenceView, Malformed> {
    let _number = from.varint()?;
    let (records, fraction) = (from.varint()?, from.f64()?);
    let mut lanes = Vec::new();
    for _ in 0..from.count(LANES_MAX)? {
        let lane = read_lane_id(from)?;
        let (width, height) = (from.count(SIDE_MAX)?, from.count(SIDE_MAX)?);
        lanes.push(LaneDensity { lane, width: width.max(1), cells: read_cells(from, width * height)? });
    }
    Ok(PersistenceView { lanes, records, fraction, number })
}

pub(super) fn write_xy(view: &XyView, viewport: u64, out: &mut Writer) {
    out.varint(viewport);
    out.varint(view.number);
    out.varint(view.points);
    let (width, height) = view.settings.size;
    out.varint(width as u64);
    out.varint(height as u64);
    write_cells(&view.cells, out);
}

/// `settings` are those of the viewport; `None` if they are no longer known.
pub(super) fn read_xy(
    from: &mut Reader<'_>,
    settings: impl Fn(u64) -> Option<XySettings>,
    number: u64,
) -> Result<Option<XyView>, Malformed> {
    let settings = settings(from.varint()?);
    let _number = from.varint()?;
    let points = from.varint()?;
    let size = (from.count(SIDE_MAX)?, from.count(SIDE_MAX)?);
    let cells = read_cells(from, size.0 * size.1)?;
    Ok(settings.map(|settings| XyView { settings: XySettings { size, ..settings }, cells, points, number }))
}

fn write_cells(cells: &[u8], out: &mut Writer) {
    let (mut zeros, mut values, mut bits) = (Context::default(), Context::default(), BitWriter::default());
    let mut empty = 0;
    for &cell in cells {
        if cell == 0 {
            empty += 1;
            continue;
        }
        zeros.write(std::mem::take(&mut empty), &mut bits);
        values.write(u32::from(cell) - 1, &mut bits);
    }
    if empty > 0 {
        zeros.write(empty, &mut bits);
    }
    out.counted(&bits.finish());
}

fn read_cells(from: &mut Reader<'_>, count: usize) -> Result<Vec<u8>, Malformed> {
    let mut bits = BitReader::new(from.counted()?);
    let (mut zeros, mut values) = (Context::default(), Context::default());
    let mut cells = Vec::new();
    while cells.len() < count {
        let empty = zeros.read(&mut bits)? as usize;
        if empty > count - cells.len() {
            return Err(Malformed("its cells do not add up"));
        }
        cells.resize(cells.len() + empty, 0);
        if cells.len() < count {
            let value = values.read(&mut bits)?.checked_add(1).and_then(|value| u8::try_from(value).ok());
            cells.push(value.ok_or(Malformed("a cell is brighter than white"))?);
        }
    }
    Ok(cells)
}

const LANES_MAX: usize = 64;
const SIDE_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::lane::LaneId;

    proptest! {
        #[test]
        fn cells_are_the_same_again(cells in prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>()], 0..500)) {
            let mut out = Writer::default();
            write_cells(&cells, &mut out);
            let mut from = Reader::new(&out.bytes);
            prop_assert_eq!(read_cells(&mut from, cells.len()), Ok(cells));
            prop_assert_eq!(from.end(), Ok(()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, count in 0..100_000usize) {
            let mut out = Writer::default();
            out.counted(&bytes);
            if let Ok(cells) = read_cells(&mut Reader::new(&out.bytes), count) {
                prop_assert_eq!(cells.len(), count);
            }
        }
    }

    #[test]
    fn views_are_the_same_again() {
        let cells: Vec<u8> = (0..200).map(|n| if n % 9 == 0 { n as u8 } else { 0 }).collect();
        let lanes = vec![LaneDensity { lane: LaneId::real(3), width: 20, cells: cells.clone() }];
        let view = PersistenceView { lanes, records: 77, fraction: 0.5, number: 9 };
        let mut out = Writer::default();
        write_persistence(&view, &mut out);
        assert_eq!(read_persistence(&mut Reader::new(&out.bytes), 9), Ok(view));
        let settings = XySettings {
            x: LaneId::real(0),
            y: LaneId::real(1),
            x_range: (0.0, 1.0),
            y_range: (0.0, 1.0),
            size: (20, 10),
            every: None,
        };
        let view = XyView { settings, cells, points: 5, number: 2 };
        let mut out = Writer::default();
        write_xy(&view, 8, &mut out);
        let read = |known: Option<XySettings>| read_xy(&mut Reader::new(&out.bytes), |_| known, 2);
        assert_eq!((read(Some(settings)), read(None)), (Ok(Some(view)), Ok(None)));
    }
}
