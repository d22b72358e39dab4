//! Byte order of numbers. VITA-49 is big-endian. FlexRadio's DAX-IQ and others send little-endian floats, which their
//! magnitudes reveal.

use grebe_frame::Component;
use grebe_recording::Order;

/// Byte order of floats, by their magnitudes. `None`: they are all zero, or too few to tell.
pub(super) fn seen(component: Component, payload: &[u8]) -> Option<Order> {
    let numbers = |order: Order| -> Vec<f64> {
        match component {
            Component::F32 => {
                payload.as_chunks::<4>().0.iter().map(|bytes| f64::from(single(*bytes, order))).collect()
            }
            Component::F64 => payload.as_chunks::<8>().0.iter().map(|bytes| double(*bytes, order)).collect(),
            Component::I8 | Component::U8 | Component::I16 | Component::I32 => Vec::new(),
        }
    };
    let plausible = |order: Order| {
        let numbers = numbers(order);
        let other: Vec<f64> = numbers.into_iter().filter(|number| *number != 0.0).collect();
        let within = other.iter().filter(|number| PLAUSIBLE.contains(&number.abs())).count();
        (other.len() >= NUMBERS_MIN).then(|| within as f64 / other.len() as f64)
    };
    let (big, little) = (plausible(Order::Big)?, plausible(Order::Little)?);
    let is_clear = |one: f64, other: f64| one >= CLEARLY && other <= one - MARGIN;
    match (is_clear(big, little), is_clear(little, big)) {
        (true, _) => Some(Order::Big),
        (_, true) => Some(Order::Little),
        _ => None,
    }
}

fn single(bytes: [u8; 4], order: Order) -> f32 {
    if order == Order::Big { f32::from_be_bytes(bytes) } else { f32::from_le_bytes(bytes) }
}

fn double(bytes: [u8; 8], order: Order) -> f64 {
    if order == Order::Big { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) }
}

/// From below the noise of any receiver to more than the counts of 32 bits.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1e-12..=1e11;
/// Minimum numbers to judge.
const NUMBERS_MIN: usize = 16;
/// Share that must be plausible, and margin by which the other order must have fewer.
const CLEARLY: f64 = 0.95;
const MARGIN: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_show_their_order_and_zeros_do_not() {
        let noise = |at: u32| (f64::from(at.wrapping_mul(2_654_435_761)) / 4_294_967_296.0 - 0.5) * 1e-3;
        for scale in [1.0, 1e-3, 32_768.0, 1e6] {
            let numbers: Vec<f64> = (1..200).map(|at| noise(at) * scale).collect();
            let singles = |bytes: fn(f32) -> [u8; 4]| {
                numbers.iter().flat_map(|&it| bytes(it as f32)).collect::<Vec<u8>>()
            };
            let doubles =
                |bytes: fn(f64) -> [u8; 8]| numbers.iter().flat_map(|&it| bytes(it)).collect::<Vec<u8>>();
            assert_eq!(seen(Component::F32, &singles(f32::to_be_bytes)), Some(Order::Big), "{scale}");
            assert_eq!(seen(Component::F32, &singles(f32::to_le_bytes)), Some(Order::Little), "{scale}");
            assert_eq!(seen(Component::F64, &doubles(f64::to_be_bytes)), Some(Order::Big), "{scale}");
            assert_eq!(seen(Component::F64, &doubles(f64::to_le_bytes)), Some(Order::Little), "{scale}");
        }
        assert_eq!(seen(Component::F32, &[0; 800]), None);
        assert_eq!(seen(Component::I16, &[1; 800]), None);
        assert_eq!(seen(Component::F32, &[7; 3]), None);
    }
}
