//! Search results since the last parcel, and the progress of the search.

use crate::data::finding::{FindingNews, FoundEvent};
use crate::remote::bytes::{Malformed, Reader, Writer};
use crate::remote::picture::{read_lane_id, write_lane_id};

/// Results that wait to be sent. A parcel holds a limited number of events, so that a slow path shows the first
/// events early.
#[derive(Debug, Default)]
pub(super) struct FoundItems {
    number: u64,
    news: FindingNews,
    is_new: bool,
}

impl FoundItems {
    /// Takes results of a search. Another number starts another search.
    pub(super) fn put(&mut self, number: u64, news: FindingNews) {
        if number != self.number {
            *self = FoundItems { number, ..FoundItems::default() };
        }
        let mut events = std::mem::take(&mut self.news.events);
        events.extend_from_slice(&news.events);
        self.news = FindingNews { events, ..news };
        self.is_new = true;
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Writes the waiting results, or the first part of them.
    pub(super) fn write(&mut self, out: &mut Writer) {
        let rest = self.news.events.split_off(self.news.events.len().min(EVENTS_AT_ONCE));
        let events = std::mem::replace(&mut self.news.events, rest);
        self.is_new = !self.news.events.is_empty();
        // The end is sent with the last events.
        let ended = self.news.ended.as_ref().filter(|_| !self.is_new);
        out.varint(self.number);
        out.u8(u8::from(ended.is_some()));
        out.varint(self.news.found);
        out.varint(self.news.searched_samples);
        out.varint(self.news.all_samples);
        out.counted(ended.map_or(&[], |words| words.as_bytes()));
        out.varint(events.len() as u64);
        let mut before = 0u64;
        for event in events {
            out.zigzag(event.index.wrapping_sub(before) as i64);
            before = event.index;
            out.varint(event.length_samples);
            out.u8(u8::from(event.lane.is_some()));
            event.lane.into_iter().for_each(|lane| write_lane_id(lane, out));
        }
    }
}

/// Reads a search's number and its new results.
pub(super) fn read(from: &mut Reader<'_>) -> Result<(u64, FindingNews), Malformed> {
    let number = from.varint()?;
    let is_over = from.u8()? != 0;
    let (found, searched_samples, all_samples) = (from.varint()?, from.varint()?, from.varint()?);
    let words = String::from_utf8_lossy(from.counted()?);
    let words: String = words.chars().filter(|letter| !letter.is_control()).take(WORDS_MAX).collect();
    let (mut events, mut index) = (Vec::new(), 0u64);
    for _ in 0..from.count(EVENTS_AT_ONCE)? {
        index = index.wrapping_add(from.zigzag()? as u64);
        let length_samples = from.varint()?;
        let lane = if from.u8()? == 0 { None } else { Some(read_lane_id(from)?) };
        events.push(FoundEvent { index, length_samples, lane });
    }
    let ended = is_over.then_some(words);
    Ok((number, FindingNews { events, found, searched_samples, all_samples, ended }))
}

/// Events per parcel: about two kilobytes.
const EVENTS_AT_ONCE: usize = 512;
const WORDS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::lane::{LaneId, Part};

    fn read_all(stock: &mut FoundItems) -> Vec<(u64, FindingNews)> {
        let mut all = Vec::new();
        while stock.is_new() {
            let mut out = Writer::default();
            stock.write(&mut out);
            let mut from = Reader::new(&out.bytes);
            all.push(read(&mut from).unwrap());
            from.end().unwrap();
        }
        all
    }

    #[test]
    fn events_are_the_same_again_some_at_a_time_and_the_end_comes_behind_the_last() {
        let event = |n: u64| FoundEvent {
            index: (n * 7919) % 100_003,
            length_samples: n % 3,
            lane: (!n.is_multiple_of(4)).then_some(LaneId { channel: n as usize % 5, part: Part::Magnitude }),
        };
        let events: Vec<FoundEvent> =
            (0..1200).map(event).chain([FoundEvent { index: u64::MAX, ..event(1) }]).collect();
        let mut stock = FoundItems::default();
        let half = FindingNews {
            events: events[..700].to_vec(),
            found: 700,
            searched_samples: 5,
            all_samples: 9,
            ended: None,
        };
        stock.put(3, half);
        let rest = FindingNews {
            events: events[700..].to_vec(),
            found: 1201,
            searched_samples: 9,
            all_samples: 9,
            ended: Some("done".into()),
        };
        stock.put(3, rest);
        let all = read_all(&mut stock);
        assert_eq!(all.len(), 3);
        assert!(all[..2].iter().all(|(_, news)| news.ended.is_none() && news.found == 1201));
        assert_eq!(all[2].1.ended.as_deref(), Some("done"));
        assert!(all.iter().all(|(number, news)| *number == 3 && news.searched_samples == 9));
        let came: Vec<FoundEvent> = all.into_iter().flat_map(|(_, news)| news.events).collect();
        assert_eq!(came, events);
        // A new search discards the unsent results of the old one.
        stock.put(3, FindingNews { events: events.clone(), ..FindingNews::default() });
        stock.put(4, FindingNews { found: 1, ..FindingNews::default() });
        assert_eq!(read_all(&mut stock), [(4, FindingNews { found: 1, ..FindingNews::default() })]);
    }
}
