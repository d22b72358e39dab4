//! All of the history, as columns of each lane.

use grebe_scope::ColumnGrid;

use crate::data::overview::OverviewView;
use crate::data::viewport::ALL_COLUMNS_MAX;
use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::columns::Placed;
use crate::remote::picture::{COLUMNS_MAX, LANES_MAX, WHOLE, read_lane_id, write_lane_id};

pub(super) fn write(view: &OverviewView, out: &mut Writer) {
    out.f64(view.left_index);
    out.f64(view.span_samples);
    out.varint(view.lanes.len() as u64);
    for (lane, columns) in &view.lanes {
        let placed = Placed::new(ColumnGrid::default(), 0, columns.clone());
        write_lane_id(*lane, out);
        out.u8(if placed.is_whole { WHOLE } else { 0 });
        out.varint(columns.len() as u64);
        placed.write(None, out);
    }
}

pub(super) fn read(from: &mut Reader<'_>) -> Result<OverviewView, Malformed> {
    let (left_index, span_samples) = (from.f64()?, from.f64()?);
    let (mut lanes, mut all) = (Vec::new(), 0);
    for _ in 0..from.count(LANES_MAX)? {
        let lane = read_lane_id(from)?;
        let is_whole = from.u8()? & WHOLE != 0;
        let columns = from.count(COLUMNS_MAX.min(ALL_COLUMNS_MAX - all))?;
        all += columns;
        let placed = Placed::read((ColumnGrid::default(), 0, columns), is_whole, None, from)?;
        lanes.push((lane, placed.columns));
    }
    Ok(OverviewView { left_index, span_samples, lanes })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::lane::LaneId;
    use crate::remote::columns::tests::{assert_same_bits, placed};

    proptest! {
        #[test]
        fn it_is_the_same_again(a in placed(), b in placed()) {
            let lanes = vec![(LaneId::real(0), a.columns), (LaneId::real(1), b.columns)];
            let view = OverviewView { left_index: 7.5, span_samples: 1e6, lanes };
            let mut out = Writer::default();
            write(&view, &mut out);
            let mut from = Reader::new(&out.bytes);
            let read = read(&mut from).unwrap();
            from.end().unwrap();
            for ((_, is), (_, was)) in read.lanes.iter().zip(&view.lanes) {
                assert_same_bits(is, was);
            }
            prop_assert_eq!((read.left_index, read.span_samples, read.lanes.len()), (7.5, 1e6, 2));
        }
    }
}
