//! Consumer that writes garbage into its own lane, for the property test and the fuzz target.

use std::sync::Arc;

use grebe_ring::Policy;

use super::{Borrower, Descriptor, Lender, Shape};
use crate::sync::{Ordering, Words};

/// Drives a lane through `steps` (action, word, value). Panics if the producer panics, if more chunks are out
/// than the quota, or if a lease is not returned when the consumer is cut off.
pub(crate) fn harms_nobody(policy: Policy, steps: impl IntoIterator<Item = (u8, usize, u64)>) {
    let shape = Shape::new(QUOTA, QUOTA);
    let words = Words::alone(shape.words()).expect("a page of memory");
    let mut lender = Lender::new(words.clone(), shape, policy, QUOTA, CHUNKS);
    let mut borrower = Borrower::new(words.clone(), shape, policy);
    let mut tokens: Vec<Arc<()>> = (0..CHUNKS).map(|_| Arc::new(())).collect();
    for (step, at, word) in steps {
        let result = match step % 6 {
            0 | 1 => {
                // Like a pool, offers only free chunks.
                let Some(chunk) = tokens.iter().position(|token| Arc::strong_count(token) == 1) else {
                    break;
                };
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
                words.at(at % words.len()).store(word, Ordering::Relaxed);
                Ok(())
            }
        };
        assert!(lender.out() <= QUOTA);
        lender.arm();
        lender.must_wake();
        if result.is_err() {
            break;
        }
    }
    let _ = borrower.pop();
    drop(lender);
    assert!(tokens.iter_mut().all(|token| Arc::get_mut(token).is_some()), "every lease came home");
}

const QUOTA: u32 = 4;
const CHUNKS: u32 = 12;
