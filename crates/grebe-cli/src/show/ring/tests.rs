use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use grebe_view::{Recording, RecordingPower, Stretch};

use super::RingOnDisk;
use crate::show::recording::span_samples;

/// Samples of parts, none a multiple of a node.
const LENGTHS: [usize; 4] = [50_001, 70_123, 33_333, 60_000];
/// Samples lost between two parts.
const LOST: u64 = 5_000;
const FIRST_INDEX: u64 = 777;

fn sample(index: u64) -> i16 {
    ((index.wrapping_mul(2_654_435_761) >> 7) % 60_001) as i16 / 2
}

/// Writes a part of `i16` whose first sample has this index.
fn write_part(folder: &Path, number: u64, index: u64, length: usize) {
    let base = folder.join(format!("ring_{number:06}"));
    let data: Vec<u8> =
        (index..index + length as u64).flat_map(|index| sample(index).to_le_bytes()).collect();
    fs::write(base.with_extension("sigmf-data"), data).unwrap();
    let meta = format!(
        r#"{{"global":{{"core:datatype":"ri16_le","core:sample_rate":1000000,"core:version":"1.2.0"}},
            "captures":[{{"core:sample_start":0,"core:global_index":{index}}}],"annotations":[]}}"#
    );
    fs::write(base.with_extension("sigmf-meta"), meta).unwrap();
}

/// Index of the first sample of each part: all but the second follow without a loss.
fn indices() -> Vec<u64> {
    let mut next = FIRST_INDEX;
    let index_of = |(at, &length): (usize, &usize)| {
        let index = next + if at == 1 { LOST } else { 0 };
        next = index + length as u64;
        index
    };
    LENGTHS.iter().enumerate().map(index_of).collect()
}

fn len_samples(ring: &RingOnDisk) -> u64 {
    ring.outline().stretches.iter().map(|stretch| stretch.length_samples).sum()
}

fn wait_until_known(ring: &mut RingOnDisk) {
    let end = ring.parts.back().unwrap().end();
    let began = Instant::now();
    while ring.known_samples() < end || ring.known_power_samples().is_none_or(|known| known < end) {
        assert!(began.elapsed() < Duration::from_secs(60), "{ring:?}");
        std::thread::sleep(Duration::from_millis(20));
        ring.refresh();
    }
}

/// The samples of a node or a row by brute force.
fn samples_of(ring: &RingOnDisk, log2: u32, number: u64) -> Vec<i16> {
    let positions = number << log2..(number + 1) << log2;
    let of = |&stretch: &Stretch| {
        let start = positions.start.clamp(stretch.position, stretch.position + stretch.length_samples);
        let end = positions.end.clamp(stretch.position, stretch.position + stretch.length_samples);
        let index = move |position: u64| stretch.first_sample_index + (position - stretch.position);
        (start..end).map(move |position| sample(index(position))).collect::<Vec<i16>>()
    };
    ring.outline().stretches.iter().flat_map(of).collect()
}

fn check_nodes(ring: &mut RingOnDisk) {
    let end = ring.parts.back().unwrap().end();
    for log2 in [8, 12, ring.align_log2] {
        let log2 = ring.level(log2).unwrap();
        let count = end.div_ceil(1 << log2);
        let mut nodes = Vec::new();
        // Begins and ends anywhere, between two parts too.
        for nodes_of in [0..count, 1..count, count / 3..count / 3 + 1, count / 2..count - 1] {
            nodes.clear();
            ring.extremes(0, log2, nodes_of.clone(), &mut nodes).unwrap();
            assert_eq!(nodes.len() as u64, nodes_of.end - nodes_of.start);
            for (number, &(min, max)) in nodes_of.zip(&nodes) {
                let own = samples_of(ring, log2, number);
                match own.iter().min().zip(own.iter().max()) {
                    Some((&least, &most)) => assert_eq!((min, max), (least.into(), most.into())),
                    None => assert!(min > max, "a node between two parts"),
                }
            }
        }
    }
}

#[test]
fn a_ring_has_the_samples_nodes_sums_and_powers_of_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (&length, &index)) in (41..).zip(LENGTHS.iter().zip(&indices())) {
        write_part(folder.path(), number, index, length);
    }
    let mut ring = RingOnDisk::open(folder.path()).unwrap().expect("a ring");
    wait_until_known(&mut ring);
    let all: usize = LENGTHS.iter().sum();
    assert_eq!(len_samples(&ring), all as u64);
    assert_eq!(span_samples(ring.outline()), all as u64 + LOST);
    let began = Instant::now();
    while ring.progress().get().is_some() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", ring.progress());
        ring.refresh();
    }
    let indices_shown: Vec<u64> =
        ring.outline().stretches.iter().map(|stretch| stretch.first_sample_index).collect();
    assert_eq!(indices_shown, indices());
    check_nodes(&mut ring);

    let sums = ring.sums(0, 0..ring.parts.back().unwrap().end());
    let own = || samples_of(&ring, 40, 0).into_iter().map(f64::from);
    assert_eq!((sums.count, sums.sum), (all as u64, own().sum::<f64>()));
    assert_eq!(sums.sum_sq, own().map(|it| it * it).sum::<f64>());

    let log2 = ring.power_level(20).expect("rows shorter than a part");
    let mut power = RecordingPower::default();
    for number in 0..ring.parts.back().unwrap().end().div_ceil(1 << log2) {
        ring.power(0, log2, number, &mut power).unwrap();
        assert_eq!(power.highest.is_empty(), samples_of(&ring, log2, number).is_empty());
    }

    // The last of a part, and no run across parts.
    let (mut bytes, second) = (Vec::new(), ring.outline().stretches[1]);
    ring.read(second.position + second.length_samples - 1, 1, &mut bytes).unwrap();
    assert_eq!(bytes, sample(second.first_sample_index + second.length_samples - 1).to_le_bytes());
    assert!(ring.read(second.position + second.length_samples - 1, 2, &mut bytes).is_err());
}

#[test]
fn a_ring_follows_its_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let indices = indices();
    write_part(folder.path(), 1, indices[0], LENGTHS[0]);
    write_part(folder.path(), 2, indices[1], LENGTHS[1] / 2);
    let mut ring = RingOnDisk::open(folder.path()).unwrap().expect("a ring");
    // The newest grows, another begins, the oldest goes.
    write_part(folder.path(), 2, indices[1], LENGTHS[1]);
    write_part(folder.path(), 3, indices[2], LENGTHS[2]);
    for extension in ["sigmf-meta", "sigmf-data"] {
        fs::remove_file(folder.path().join("ring_000001").with_extension(extension)).unwrap();
    }
    assert!(ring.refresh());
    assert_eq!(len_samples(&ring), (LENGTHS[1] + LENGTHS[2]) as u64);
    wait_until_known(&mut ring);
    check_nodes(&mut ring);
    // Another stream in the same folder: only that one is shown.
    write_part(folder.path(), 4, 0, LENGTHS[3]);
    assert!(ring.refresh());
    assert_eq!((len_samples(&ring), ring.outline().stretches.len()), (LENGTHS[3] as u64, 1));
    // All parts were replaced by one that has no samples yet, as after a long sleep of the viewer.
    for file in fs::read_dir(folder.path()).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    fs::write(folder.path().join("ring_000009.sigmf-meta"), "{").unwrap();
    ring.refresh();
    assert!(ring.level(20).is_some() && len_samples(&ring) == LENGTHS[3] as u64);
}

#[test]
fn a_folder_without_parts_is_no_ring() {
    let folder = tempfile::tempdir().unwrap();
    assert!(RingOnDisk::open(folder.path()).unwrap().is_none());
    fs::write(folder.path().join("ring_000001.sigmf-meta"), "{").unwrap();
    assert!(RingOnDisk::open(folder.path()).is_err());
}
