//! In steady state nothing allocates: no block, no question, no record, no transform.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use grebe_scope::{
    Acquisition, Averaging, Column, ColumnGrid, Condition, Density, Envelope, Fir, LfReject, MathChannel,
    Measurer, Mode, Operation, Pyramid, Reduction, Scale, Slope, Spectrum, Trigger, Waterfall, Window, lttb,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged; counting touches no memory of its.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[test]
fn steady_state_allocates_nothing() {
    const BLOCK: usize = 5000;
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 48) as i16
    };
    let a: Vec<i16> = (0..BLOCK).map(|_| noise()).collect();
    let b: Vec<i16> = (0..BLOCK).map(|_| noise() / 2).collect();

    let edge =
        || Trigger::new(Condition::Edge { slope: Slope::Rising, level: 0, hysteresis: 500 }, 300).unwrap();
    let mut pyramid = Pyramid::new(2, 1 << 20).unwrap();
    let grid = ColumnGrid::new(777.7);
    let mut envelope = Envelope::new(2, grid, 500).unwrap();
    let mut trigger = edge();
    let mut coupled = edge().with_lf_reject(LfReject::new(1e-4).unwrap());
    let mut acquisition = Acquisition::new(2, 0, edge(), Mode::Normal, 100, 1000).unwrap();
    let mut density = Density::new(1000, 256, i16::MIN, i16::MAX).unwrap();
    let mut spectrum = Spectrum::new(1024, Window::Hann, Averaging::Exponential(8)).unwrap();
    spectrum.set_peak_hold(true);
    let mut waterfall = Waterfall::new(300, 100).unwrap();
    let mut filter = MathChannel::new(Operation::Filter(Fir::low_pass(0.1, 101).unwrap()));
    let mut product = MathChannel::new(Operation::Multiply);
    let mut measurer = Measurer::new();
    let (mut filtered, mut multiplied) = (Vec::new(), Vec::new());
    let mut columns = vec![Column::OUTSIDE; 500];
    let mut points = Vec::with_capacity(500);
    assert_eq!(Reduction::Lttb.at_rate(1e3).0, Reduction::Lttb);

    let (mut first, mut events) = (0u64, 0u64);
    let mut round = |number: u64| {
        let block: [&[i16]; 2] = [&a, &b];
        pyramid.append(first, &block).unwrap();
        pyramid.columns(1, grid, grid.column_at(first.saturating_sub(300_000)), &mut columns);
        envelope.append(first, &block).unwrap();
        trigger.scan(first, &a, |_| events += 1);
        coupled.scan(first, &a, |_| events += 1);
        acquisition
            .append(first, &block, |record| {
                density.add(record.samples(0), record.trigger.map_or(0.0, |t| t.fraction()));
            })
            .unwrap();
        density.resolve(0.9);
        spectrum.append(first, &a, |lines| waterfall.push(lines));
        filter.process(first, &a, &[], &mut filtered).unwrap();
        product.process(first, &a, &b, &mut multiplied).unwrap();
        measurer.measure(&block, 1e6, Scale::COUNTS);
        measurer.delay(&a, &b, 1e6);
        lttb(&a, first, 500, &mut points);
        // Every seventh block follows a gap.
        first += (BLOCK + if number.is_multiple_of(7) { 1234 } else { 0 }) as u64;
    };
    (0..20).for_each(&mut round);
    let before = allocations();
    (20..220).for_each(&mut round);
    assert_eq!(allocations() - before, 0);
    assert!(
        events > 1000 && density.records() > 1000 && allocations() > 20,
        "the test must have done something"
    );
}

/// Bounded, and said: the figures a status line shows.
#[test]
fn every_structure_says_its_memory() {
    let trigger =
        Trigger::new(Condition::Level { polarity: grebe_scope::Polarity::Positive, level: 0 }, 0).unwrap();
    for (what, bytes, at_most) in [
        ("pyramid of 64 MB, 4 channels", Pyramid::new(4, 64_000_000).unwrap().memory_bytes(), 64_000_000),
        (
            "envelope of 1920 columns, 4 channels",
            Envelope::new(4, ColumnGrid::new(1e6), 1920).unwrap().memory_bytes(),
            50_000,
        ),
        (
            "acquisition of 1000 samples, 2 channels",
            Acquisition::new(2, 0, trigger, Mode::Normal, 0, 1000).unwrap().memory_bytes(),
            40_000,
        ),
        ("density of 1000 x 256", Density::new(1000, 256, 0, 1).unwrap().memory_bytes(), 2_100_000),
        (
            "spectrum of 65536",
            Spectrum::new(65536, Window::Hann, Averaging::None).unwrap().memory_bytes(),
            1_600_000,
        ),
        ("waterfall of 1000 x 500", Waterfall::new(1000, 500).unwrap().memory_bytes(), 2_000_000),
        ("measurer", Measurer::new().memory_bytes(), 200_000),
    ] {
        println!("{what}: {bytes} bytes");
        assert!(bytes > 0 && bytes <= at_most, "{what}: {bytes}");
    }
}
