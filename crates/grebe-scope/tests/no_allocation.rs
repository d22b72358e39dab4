//! In steady state nothing allocates: no block, no question, no record, no transform.

use grebe_scope::{
    Acquisition, Averaging, Column, ColumnGrid, Condition, Density, Measurer, Pyramid, Scale, Slope,
    Spectrum, Trigger, TriggerFilter, Value, Window,
};
use grebe_testing::{CountingAllocator, Rng, allocations_of_this_thread};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn steady_state_allocates_nothing() {
    let edge = Condition::Edge { slope: Slope::Rising, level: 0, hysteresis: 500 };
    allocates_nothing(i16::MIN.into(), i16::MAX.into(), edge, |count| count);
}

#[test]
fn nor_with_reals() {
    let edge = Condition::Edge { slope: Slope::Rising, level: 0.0, hysteresis: 0.01 };
    allocates_nothing(-1.0, 1.0, edge, |count| f32::from(count) / 32768.0);
}

fn allocates_nothing<V: Value>(low: f64, high: f64, edge: Condition<V>, sample: impl Fn(i16) -> V) {
    const BLOCK: usize = 5000;
    let mut rng = Rng::with_seed(1);
    let a: Vec<V> = (0..BLOCK).map(|_| sample(rng.i16(..))).collect();
    let b: Vec<V> = (0..BLOCK).map(|_| sample(rng.i16(..) / 2)).collect();

    let edge = || Trigger::new(edge.clone(), 300).unwrap();
    let mut pyramid = Pyramid::new(2, 1 << 20).unwrap();
    let grid = ColumnGrid::new(777.7);
    let mut trigger = edge();
    let mut coupled = edge().with_filter(TriggerFilter::high_pass(1e-4).unwrap());
    let mut acquisition = Acquisition::new(2, &[0, 1], 0, edge(), 100, 1000).unwrap();
    let mut density = Density::new(1000, 256, low, high).unwrap();
    let mut spectrum = Spectrum::new(1024, Window::Hann, Averaging::Exponential(8)).unwrap();
    spectrum.set_peak_hold(true);
    let mut measurer = Measurer::new();
    let mut columns = vec![Column::OUTSIDE; 500];

    let (mut first, mut events) = (0u64, 0u64);
    let mut round = |number: u64| {
        let block: [&[V]; 2] = [&a, &b];
        pyramid.append(first, &block).unwrap();
        pyramid.columns(1, grid, grid.column_at(first.saturating_sub(300_000)), &mut columns);
        trigger.scan(first, &a, |_| events += 1);
        coupled.scan(first, &a, |_| events += 1);
        acquisition
            .append(first, &block, |record| {
                density.add(record.samples(0), record.trigger.fraction());
            })
            .unwrap();
        density.resolve(0.9);
        spectrum.append(first, &a, |_| {});
        measurer.measure(&block, 1e6, Scale::COUNTS);
        // Every seventh block follows a gap.
        first += (BLOCK + if number.is_multiple_of(7) { 1234 } else { 0 }) as u64;
    };
    (0..20).for_each(&mut round);
    let before = allocations_of_this_thread();
    (20..220).for_each(&mut round);
    assert_eq!(allocations_of_this_thread() - before, 0);
    assert!(events > 1000 && density.records() > 1000 && before > 20, "the test must have done something");
}
