//! Cuts large items into pieces that travel with pictures, and joins them again, so that no item delays a picture for long.

use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::items::{Item, LatestItems};

/// Parcels under way: at most one per item.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    under_way: Vec<Parcel>,
    turn: usize,
}

#[derive(Debug)]
struct Parcel {
    item: Item,
    bytes: Vec<u8>,
    /// Bytes sent so far; `None` before the first piece, because a parcel may be empty.
    sent: Option<usize>,
}

impl Pieces {
    /// Writes about `budget_bytes` of the parcels, in turns. Returns whether it wrote any.
    pub(crate) fn write(&mut self, stock: &mut LatestItems, budget_bytes: usize, out: &mut Writer) -> bool {
        let begun = out.bytes.len();
        for item in Item::ALL {
            if self.under_way.iter().all(|parcel| parcel.item != item)
                && let Some(bytes) = stock.parcel(item)
            {
                self.under_way.push(Parcel { item, bytes, sent: None });
            }
        }
        while !self.under_way.is_empty() && out.bytes.len() - begun < budget_bytes {
            self.turn = (self.turn + 1) % self.under_way.len();
            let parcel = &mut self.under_way[self.turn];
            let offset = parcel.sent.unwrap_or(0);
            let rest = &parcel.bytes[offset..];
            let room = budget_bytes.saturating_sub(out.bytes.len() - begun).max(PIECE_BYTES_MIN);
            let piece = &rest[..rest.len().min(room).min(PIECE_BYTES_MAX)];
            out.u8(parcel.item as u8);
            out.varint(parcel.bytes.len() as u64);
            out.varint(offset as u64);
            out.counted(piece);
            parcel.sent = Some(offset + piece.len());
            if offset + piece.len() == parcel.bytes.len() {
                self.under_way.remove(self.turn);
            }
        }
        out.bytes.len() > begun
    }

    /// Whether a parcel is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }
}

/// Pieces received so far, per item.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    parts: Vec<(Item, usize, Vec<u8>)>,
}

impl Joiner {
    /// Reads a piece. Returns the item if this piece completes it.
    pub(crate) fn read(&mut self, from: &mut Reader<'_>) -> Result<Option<(Item, Vec<u8>)>, Malformed> {
        let item = Item::of(from.u8()?).ok_or(Malformed("it has pieces of an unknown kind"))?;
        let total = from.count(ITEM_BYTES_MAX)?;
        let offset = from.count(total)?;
        let piece = from.counted()?;
        let place = self.parts.iter().position(|(it, ..)| *it == item);
        if offset == 0 {
            place.into_iter().for_each(|place| drop(self.parts.swap_remove(place)));
            self.parts.push((item, total, Vec::new()));
        }
        let place = self.parts.iter().position(|(it, ..)| *it == item).ok_or(OUT_OF_ORDER)?;
        let (_, expected, bytes) = &mut self.parts[place];
        if *expected != total || bytes.len() != offset || piece.len() > total - offset {
            return Err(OUT_OF_ORDER);
        }
        bytes.extend_from_slice(piece);
        if bytes.len() < total {
            return Ok(None);
        }
        let (_, _, bytes) = self.parts.swap_remove(place);
        Ok(Some((item, bytes)))
    }
}

/// Minimum size of a piece, so that its header stays small in comparison.
const PIECE_BYTES_MIN: usize = 64;
const PIECE_BYTES_MAX: usize = 1024;
const ITEM_BYTES_MAX: usize = 16 << 20;
const OUT_OF_ORDER: Malformed = Malformed("its pieces are out of order");

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::extract::Extract;
    use crate::data::overview::OverviewView;
    use crate::data::picture::Picture;

    #[test]
    fn pieces_go_by_turns_and_what_is_whole_is_what_was_cut() {
        let mut stock = LatestItems::default();
        let columns = (0..3000).map(|n: u32| grebe_scope::Column {
            min: (n.wrapping_mul(2_654_435_761) >> 20) as f32 * 0.1,
            max: 1e4,
            coverage: grebe_scope::Coverage::Complete,
        });
        let view = OverviewView {
            left_index: 0.0,
            span_samples: 1.0,
            lanes: vec![(crate::data::lane::LaneId::real(0), columns.collect())],
        };
        stock.take_in(&Picture { overview: Some(Arc::new(view)), ..Picture::default() }, 1);
        stock.put_samples(3, Extract { triggers: vec![1.0; 1000], ..Extract::default() });
        let (mut pieces, mut joiner) = (Pieces::default(), Joiner::default());
        let (mut messages, mut whole) = (0, Vec::new());
        loop {
            let mut out = Writer::default();
            if !pieces.write(&mut stock, 500, &mut out) {
                break;
            }
            assert!(out.bytes.len() < 600, "{}", out.bytes.len());
            messages += 1;
            let mut from = Reader::new(&out.bytes);
            while !from.is_empty() {
                whole.extend(joiner.read(&mut from).unwrap());
            }
        }
        assert!(!pieces.is_under_way() && messages > 10, "{messages}");
        let items: Vec<Item> = whole.iter().map(|(item, _)| *item).collect();
        assert!(items.contains(&Item::Samples) && items.contains(&Item::Overview), "{items:?}");
        let mut shelf = crate::remote::items::ReceivedItems::default();
        for (item, bytes) in whole {
            shelf.take_in(item, &bytes, &Default::default()).unwrap();
        }
        assert_eq!(shelf.samples.map(|(number, it)| (number, it.triggers.len())), Some((3, 1000)));
    }

    #[test]
    fn pieces_that_do_not_fit_together_are_refused() {
        let piece = |item: u8, total: u64, offset: u64, bytes: &[u8]| {
            let mut out = Writer::default();
            out.u8(item);
            out.varint(total);
            out.varint(offset);
            out.counted(bytes);
            out.bytes
        };
        let mut joiner = Joiner::default();
        let mut read = |bytes: Vec<u8>| joiner.read(&mut Reader::new(&bytes));
        assert!(read(piece(9, 1, 0, &[1])).is_err());
        assert!(read(piece(1, 10, 5, &[1])).is_err(), "nothing of it came");
        assert_eq!(read(piece(1, 3, 0, &[1])), Ok(None));
        assert!(read(piece(1, 3, 2, &[1])).is_err(), "a part of it is missing");
        assert!(read(piece(1, 4, 1, &[1])).is_err(), "it is another");
        assert_eq!(read(piece(1, 3, 1, &[2, 3])), Ok(Some((Item::Spectrum, vec![1, 2, 3]))));
        assert!(read(piece(1, 1 << 30, 0, &[])).is_err());
        assert_eq!(read(piece(2, 0, 0, &[])), Ok(Some((Item::Waterfall, vec![]))));
    }
}
