#![no_main]

use std::sync::Arc;

use grebe_shm::Policy;
use grebe_shm::lane::{Borrower, Descriptor, Lender, Shape};
use grebe_shm::sync::{Ordering, Words};
use libfuzzer_sys::fuzz_target;

const CHUNKS: usize = 8;

// What a consumer does and writes into its own lane, step by step. The producer must neither panic nor lose a chunk.
fuzz_target!(|input: (u8, Vec<(u8, u16, u64)>)| {
    let (policy, steps) = input;
    let policy = [Policy::Block, Policy::DropOldest, Policy::DropLatest][usize::from(policy) % 3];
    let shape = Shape::new(4, 4);
    let words = Words::alone(shape.words()).expect("a page of memory");
    let mut lender = Lender::new(words.clone(), shape, policy, 4, CHUNKS as u32);
    let mut borrower = Borrower::new(words.clone(), shape, policy);
    let mut tokens: Vec<Arc<()>> = (0..CHUNKS).map(|_| Arc::new(())).collect();
    for (step, at, word) in steps {
        let result = match step % 6 {
            0 | 1 => {
                // As a pool does: only what nobody holds is offered.
                let Some(chunk) = tokens.iter().position(|token| Arc::strong_count(token) == 1) else { break };
                let what = Descriptor { chunk: chunk as u32, frames: 1, first: 0, stride: 64 };
                lender.offer(tokens[chunk].clone(), what).map(drop)
            }
            2 => lender.reap(drop).map(drop),
            3 => {
                let _ = borrower.pop();
                Ok(())
            }
            4 => {
                borrower.returns().give_back(word as u32);
                Ok(())
            }
            _ => {
                words.at(usize::from(at) % words.len()).store(word, Ordering::Relaxed);
                Ok(())
            }
        };
        assert!(lender.out() <= 4);
        lender.arm();
        lender.must_wake();
        if result.is_err() {
            break;
        }
    }
    drop(lender);
    assert!(tokens.iter_mut().all(|token| Arc::get_mut(token).is_some()));
});
