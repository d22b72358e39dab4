//! The links that transfers are measured on.

use rand_mt::Mt;
use serde::{Deserialize, Serialize};

use crate::error::{Result, choose};

/// A link whose bottleneck has a queue of one round trip, and its load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Link {
    /// Its name.
    pub name: String,
    /// The bottleneck, in megabits per second.
    pub rate_mbit: f64,
    /// The round trip without a queue.
    pub rtt_ms: f64,
    /// The share of packets lost from the sender to the receiver, 0 to 1.
    pub loss: f64,
    /// The same for the other direction.
    pub loss_back: f64,
    /// How many packets in a row are lost at a time.
    pub burst: u32,
    /// Each packet is late by up to this much: packets overtake each other.
    pub jitter_ms: f64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// How long it may take, with the handshake.
    pub goal_s: f64,
}

/// The links that long-distance tools are measured on, A to E.
fn named() -> Vec<Link> {
    [
        ("A", 100.0, 250.0, 0.01, 0.0, 5.5),
        ("B", 200.0, 50.0, 0.001, 0.0, 2.5),
        ("C", 50.0, 160.0, 0.02, 0.02, 9.7),
        ("D", 100.0, 250.0, 0.0, 0.0, 5.2),
        ("E", 20.0, 400.0, 0.1, 0.0, 27.0),
    ]
    .map(|(name, rate_mbit, rtt_ms, loss, loss_back, goal_s)| Link {
        name: name.to_owned(),
        rate_mbit,
        rtt_ms,
        loss,
        loss_back,
        burst: 1,
        jitter_ms: 0.0,
        file_bytes: FILE_BYTES,
        goal_s,
    })
    .to_vec()
}

/// Those of A to E with these names, in the order of the alphabet; without names all of them.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Link>> {
    choose(&named(), |link| &link.name, "link", names)
}

/// Random links: rate from 10 to 300 Mbit/s and round trip from 5 to 400 ms, both log-uniform. Loss is 0 for one in
/// five, otherwise up to 10 %. Three in ten have loss in runs of ten, three in ten a jitter of 1 to 20 ms. The file has
/// 50 MB, or the bytes that the link carries in 10 s. The same seed gives the same links.
pub(super) fn drawn(count: usize, seed: u64) -> Vec<Link> {
    // As Python seeds: by as many words as the number has.
    let words = if seed >> 32 == 0 { &[seed as u32][..] } else { &[seed as u32, (seed >> 32) as u32] };
    let mut random = Mt::new_with_key(words.iter().copied());
    let mut draw = || draw(&mut random);
    (1..=count)
        .map(|number| {
            let rate_mbit = (10.0 * 30_f64.powf(draw())).round();
            let rtt_ms = (5.0 * 80_f64.powf(draw())).round();
            let loss = if draw() < 0.2 { 0.0 } else { (100.0 * draw()).round() / 1e3 };
            let burst = if draw() < 0.3 { 10 } else { 1 };
            let jitter_ms = if draw() < 0.3 { (1.0 + 19.0 * draw()).round() } else { 0.0 };
            let file_bytes = FILE_BYTES.min(1_000_000 * (1.25 * rate_mbit).round_ties_even() as u64);
            let (name, loss_back, goal_s) = (number.to_string(), 0.0, 0.0);
            let link =
                Link { name, rate_mbit, rtt_ms, loss, loss_back, burst, jitter_ms, file_bytes, goal_s };
            Link { goal_s: link.goal_by_formula_s(), ..link }
        })
        .collect()
}

impl Link {
    /// How long the wire alone takes: 1.047 times the file, for headers, divided by the share that is not lost.
    pub(super) fn wire_s(&self) -> f64 {
        1.047 * self.file_bytes as f64 * 8.0 / (self.rate_mbit * 1e6) / (1.0 - self.loss)
    }

    /// The goals of A to E put into one formula, which is within about 3 % of each.
    fn goal_by_formula_s(&self) -> f64 {
        1.10 * self.wire_s() + 3.0 * self.rtt_ms / 1e3
    }

    /// How many bytes may go over the wire for each of the file.
    pub(super) fn wire_bytes_goal(&self) -> f64 {
        1.05 + self.loss
    }

    /// The link in a few words.
    pub(super) fn words(&self) -> String {
        let mut words = format!("{} Mbit/s, {} ms, ", self.rate_mbit, self.rtt_ms);
        words += &if self.loss > 0.0 { percent(self.loss) } else { "no loss".to_owned() };
        if self.loss_back > 0.0 {
            words += " both ways";
        }
        if self.burst > 1 && self.loss > 0.0 {
            words += &format!(" in runs of {}", self.burst);
        }
        if self.jitter_ms > 0.0 {
            words += &format!(", jitter {} ms", self.jitter_ms);
        }
        words
    }
}

/// A share as a percentage, with as many digits as it has.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e5).round() / 1e3)
}

const FILE_BYTES: u64 = 50_000_000;

/// Evenly distributed from 0 to below 1, as Python's `random.random()` by which the links of the documentation were drawn.
fn draw(random: &mut Mt) -> f64 {
    let (high, low) = (random.next_u32() >> 5, random.next_u32() >> 6);
    (f64::from(high) * f64::from(1 << 26) + f64::from(low)) / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_of_the_documentation_are_drawn_by_its_seed() {
        let links = drawn(10, 20_261_121);
        let numbers: Vec<_> = links
            .iter()
            .map(|link| {
                let megabytes = link.file_bytes / 1_000_000;
                (link.rate_mbit, link.rtt_ms, link.loss, link.burst, link.jitter_ms, megabytes)
            })
            .collect();
        let expected = [
            (243.0, 11.0, 0.061, 1, 4.0, 50),
            (34.0, 11.0, 0.039, 1, 0.0, 42),
            (23.0, 279.0, 0.033, 10, 0.0, 29),
            (35.0, 269.0, 0.086, 1, 5.0, 44),
            (81.0, 9.0, 0.084, 1, 0.0, 50),
            (44.0, 64.0, 0.043, 1, 14.0, 50),
            (23.0, 39.0, 0.04, 1, 0.0, 29),
            (55.0, 129.0, 0.069, 1, 0.0, 50),
            (292.0, 380.0, 0.0, 1, 0.0, 50),
            (25.0, 63.0, 0.081, 1, 19.0, 31),
        ];
        assert_eq!(numbers, expected);
        let times: Vec<_> =
            links.iter().map(|link| format!("{:.2} {:.2}", link.wire_s(), link.goal_s)).collect();
        let expected = [
            "1.84 2.05",
            "10.77 11.88",
            "10.92 12.85",
            "11.52 13.48",
            "5.64 6.24",
            "9.95 11.13",
            "11.00 12.22",
            "8.18 9.38",
            "1.43 2.72",
            "11.30 12.62",
        ];
        assert_eq!(times, expected);
    }

    #[test]
    fn another_seed_draws_others_and_more_begin_with_the_same() {
        assert_eq!(drawn(3, 7), drawn(5, 7)[..3]);
        assert_ne!(drawn(3, 7), drawn(3, 8));
        assert_ne!(drawn(3, 7), drawn(3, 7 + (1 << 32)));
        for link in drawn(1_000, 1) {
            assert!((10.0..=300.0).contains(&link.rate_mbit) && (5.0..=400.0).contains(&link.rtt_ms));
            assert!((0.0..=0.1).contains(&link.loss) && link.file_bytes >= 12_000_000, "{link:?}");
        }
    }

    #[test]
    fn the_formula_is_close_to_each_goal() {
        for link in named() {
            let formula_s = link.goal_by_formula_s();
            assert!((formula_s / link.goal_s - 1.0).abs() < 0.032, "{}: {formula_s}", link.name);
        }
    }

    #[test]
    fn links_are_chosen_by_name() {
        let names = |of: &[&str]| -> Vec<String> { of.iter().map(|&name| name.to_owned()).collect() };
        let links = chosen(&names(&["D", "A"])).unwrap();
        assert_eq!(links.iter().map(|link| link.name.as_str()).collect::<String>(), "AD");
        let error = chosen(&names(&["A", "Q"])).unwrap_err().to_string();
        assert!(error.contains('Q') && error.contains("A, B, C, D, E"), "{error}");
        assert_eq!(links[0].words(), "100 Mbit/s, 250 ms, 1 %");
        assert_eq!(drawn(3, 20_261_121)[2].words(), "23 Mbit/s, 279 ms, 3.3 % in runs of 10");
    }
}
