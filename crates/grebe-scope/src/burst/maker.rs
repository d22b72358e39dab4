//! Makes rows of samples, on several threads where there are many at once.
//!
//! ```text
//!   samples   |--piece 0--|--piece 1--|--piece 2--|       read and transformed by the thread that is free
//!   rows      0 1 2 3 ...                             ->  taken in order by the calling thread, which makes some itself
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use crate::spectrum::PowerTransform;

/// Samples of one channel, which several threads read.
pub trait SampleSource: Sync {
    /// How many samples there are.
    fn len_samples(&self) -> usize;

    /// Reads some of them as numbers, I and Q of complex samples in turn.
    fn read(&self, samples: Range<usize>, numbers: &mut [f32]);
}

/// Real samples, or I and Q.
impl SampleSource for (&[f32], &[f32]) {
    fn len_samples(&self) -> usize {
        self.0.len()
    }

    fn read(&self, samples: Range<usize>, numbers: &mut [f32]) {
        let first = &self.0[samples.clone()];
        if numbers.len() == first.len() {
            return numbers.copy_from_slice(first);
        }
        let Some(q) = self.1.get(samples) else { return numbers.fill(f32::NAN) };
        let pairs = numbers.as_chunks_mut::<2>().0;
        pairs.iter_mut().zip(first.iter().zip(q)).for_each(|(pair, (&i, &q))| *pair = [i, q]);
    }
}

/// Makes rows: one transform each, half over the one before.
#[derive(Debug, Default)]
pub(super) struct RowMaker {
    workers: Vec<Worker>,
    /// Numbers per sample.
    components: usize,
    /// The sample that stands for nothing.
    pub(super) zero: f32,
    /// Numbers of the samples that wait for a transform.
    pending: Vec<f32>,
    made: Vec<Made>,
}

/// What a thread needs.
#[derive(Debug)]
struct Worker {
    transform: PowerTransform,
    numbers: Vec<f32>,
}

/// A row.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) power: Vec<f32>,
    /// Whether it was made: not of samples that are infinite or not a number.
    pub(super) is_finite: bool,
}

/// Samples that wait, and those after them.
struct Input<'a, S> {
    pending: &'a [f32],
    source: &'a S,
    components: usize,
    zero: f32,
}

impl RowMaker {
    /// Makes rows with these transforms, one a thread.
    pub(super) fn new(transforms: Vec<PowerTransform>, is_complex: bool) -> Self {
        let worker = |transform| Worker { transform, numbers: Vec::new() };
        let workers = transforms.into_iter().map(worker).collect();
        Self { workers, components: 1 + usize::from(is_complex), ..Self::default() }
    }

    pub(super) fn transform(&self) -> &PowerTransform {
        &self.workers[0].transform
    }

    /// Forgets the samples that wait: a gap.
    pub(super) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Makes rows of the next samples, and hands them over in order.
    pub(super) fn append<S: SampleSource>(&mut self, source: &S, take: impl FnMut(&mut Made)) {
        let size = self.transform().size();
        let Self { workers, components, zero, pending, made } = self;
        let input = Input { pending, source, components: *components, zero: *zero };
        let samples = input.len_samples();
        let rows = if samples < size { 0 } else { (samples - size) / (size / 2) + 1 };
        make(workers, &input, rows, made, take);
        let rest = &mut workers[0].numbers;
        input.read(rows * (size / 2)..samples, rest);
        std::mem::swap(pending, rest);
    }

    /// Makes rows of samples that stand alone, up to a limit.
    pub(super) fn alone<S: SampleSource>(&mut self, source: &S, most: usize) -> Vec<Vec<f32>> {
        let input = Input { pending: &[], source, components: self.components, zero: self.zero };
        let count = (source.len_samples() / (self.transform().size() / 2)).saturating_sub(1).min(most);
        let mut rows = Vec::with_capacity(count);
        make(&mut self.workers, &input, count, &mut self.made, |made| {
            let row = if made.is_finite { made.power.clone() } else { vec![0.0; made.power.len()] };
            rows.push(row);
        });
        rows
    }
}

/// Makes rows, and hands them over in order.
fn make<S: SampleSource>(
    workers: &mut [Worker],
    input: &Input<'_, S>,
    count: usize,
    made: &mut Vec<Made>,
    mut take: impl FnMut(&mut Made),
) {
    let Some((own, others)) = workers.split_first_mut() else { return };
    let (lines, hop) = (own.transform.lines(), own.transform.size() / 2);
    let of_piece = (PIECE_SAMPLES / hop).max(1);
    let at_once = if others.is_empty() { of_piece } else { of_piece * PIECES_AT_ONCE };
    for first in (0..count).step_by(at_once) {
        let rows = at_once.min(count - first);
        made.resize_with(made.len().max(rows), || Made { power: vec![0.0; lines], is_finite: false });
        let pieces = made[..rows].chunks_mut(of_piece).enumerate();
        let fill = |worker: &mut Worker, piece: usize, rows: &mut [Made]| {
            worker.fill(input, first + piece * of_piece, rows);
        };
        let helpers = others.len().min(pieces.len() / PIECES_PER_THREAD);
        if helpers > 0 {
            share(own, &mut others[..helpers], pieces, &fill, &mut take);
            continue;
        }
        for (piece, rows) in pieces {
            fill(own, piece, rows);
            rows.iter_mut().for_each(&mut take);
        }
    }
}

/// Several threads make the pieces. This one takes those that are ready, and helps in between.
fn share<'a>(
    own: &mut Worker,
    others: &mut [Worker],
    pieces: impl ExactSizeIterator<Item = (usize, &'a mut [Made])> + Send,
    fill: &(impl Fn(&mut Worker, usize, &mut [Made]) + Sync),
    take: &mut impl FnMut(&mut Made),
) {
    let count = pieces.len();
    let pieces = Mutex::new(pieces);
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (to_own, from_others) = mpsc::channel();
    thread::scope(|scope| {
        for worker in others {
            let (to_own, next) = (to_own.clone(), &next);
            let work = move || {
                while let Some((piece, rows)) = next() {
                    fill(worker, piece, rows);
                    // The receiver lives until all pieces are taken.
                    let _ = to_own.send((piece, rows));
                }
            };
            // Where the system gives no thread, there is one fewer.
            let _ = thread::Builder::new().name("transforms".to_owned()).spawn_scoped(scope, work);
        }
        drop(to_own);
        let (mut ready, mut taken) = (BTreeMap::new(), 0);
        while taken < count {
            ready.extend(from_others.try_iter());
            if let Some(rows) = ready.remove(&taken) {
                rows.iter_mut().for_each(&mut *take);
                taken += 1;
            } else if let Some((piece, rows)) = next() {
                fill(own, piece, rows);
                ready.insert(piece, rows);
            } else {
                // An error is a panic of a thread, which goes on at the end of the scope.
                let Ok((piece, rows)) = from_others.recv() else { break };
                ready.insert(piece, rows);
            }
        }
    });
}

impl Worker {
    /// Fills rows, of which `first` is the number of the first one.
    fn fill<S: SampleSource>(&mut self, input: &Input<'_, S>, first: usize, rows: &mut [Made]) {
        let (size, hop) = (self.transform.size(), self.transform.size() / 2);
        let begin = first * hop;
        input.read(begin..begin + (rows.len() - 1) * hop + size, &mut self.numbers);
        for (number, row) in rows.iter_mut().enumerate() {
            let from = number * hop * input.components;
            let own = &self.numbers[from..from + size * input.components];
            row.is_finite = self.transform.power_of_numbers(own, input.zero, &mut row.power);
        }
    }
}

impl<S: SampleSource> Input<'_, S> {
    fn len_samples(&self) -> usize {
        self.pending.len() / self.components + self.source.len_samples()
    }

    fn read(&self, samples: Range<usize>, numbers: &mut Vec<f32>) {
        let pending = self.pending.len() / self.components;
        numbers.resize(samples.len() * self.components, 0.0);
        let own = samples.start.min(pending)..samples.end.min(pending);
        let (of_pending, of_source) = numbers.split_at_mut(own.len() * self.components);
        of_pending.copy_from_slice(&self.pending[own.start * self.components..own.end * self.components]);
        if !of_source.is_empty() {
            self.source.read(samples.start.max(pending) - pending..samples.end - pending, of_source);
        }
    }
}

/// Samples of a piece: it and its rows fit a second-level cache.
const PIECE_SAMPLES: usize = 1 << 14;
/// Maximum pieces whose rows are in memory.
const PIECES_AT_ONCE: usize = 32;
/// A thread is worth its start for these.
const PIECES_PER_THREAD: usize = 4;
