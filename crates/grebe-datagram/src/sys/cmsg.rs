//! Control messages, read and written as bytes in safe code, whatever a kernel wrote there.
//!
//! ```text
//!   | len | level | type | data ... | pad | len | level | type | ...
//! ```

use std::mem::size_of;

/// Linux: `size_t`; Windows: `SIZE_T`. Both align what follows to it.
type Len = usize;

const ALIGN: usize = size_of::<Len>();
const HEADER: usize = (size_of::<Len>() + 8).next_multiple_of(ALIGN);

/// Space of a control message with `data` bytes.
pub(super) const fn space(data: usize) -> usize {
    HEADER + data.next_multiple_of(ALIGN)
}

/// Writes one control message and returns its length in `into`; 0 if it does not fit.
#[inline]
pub(super) fn write<const N: usize>(into: &mut [u8], level: i32, kind: i32, data: [u8; N]) -> usize {
    let total = space(N);
    let Some(into) = into.get_mut(..total) else { return 0 };
    into.fill(0);
    into[..ALIGN].copy_from_slice(&(HEADER + N).to_ne_bytes());
    into[ALIGN..ALIGN + 4].copy_from_slice(&level.to_ne_bytes());
    into[ALIGN + 4..ALIGN + 8].copy_from_slice(&kind.to_ne_bytes());
    into[HEADER..HEADER + N].copy_from_slice(&data);
    total
}

/// Messages of a control buffer as (level, type, data). An impossible length ends the iteration.
#[cfg(any(not(windows), test))]
#[derive(Debug, Clone)]
pub(super) struct Messages<'a> {
    rest: &'a [u8],
}

#[cfg(any(not(windows), test))]
impl<'a> Messages<'a> {
    pub(crate) fn new(control: &'a [u8]) -> Self {
        Self { rest: control }
    }
}

#[cfg(any(not(windows), test))]
impl<'a> Iterator for Messages<'a> {
    type Item = (i32, i32, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (len, after) = self.rest.split_first_chunk::<ALIGN>()?;
        let (level, after) = after.split_first_chunk::<4>()?;
        let (kind, _) = after.split_first_chunk::<4>()?;
        let len = Len::from_ne_bytes(*len);
        let data = self.rest.get(HEADER..len)?;
        let next = len.next_multiple_of(ALIGN).min(self.rest.len());
        self.rest = &self.rest[next..];
        Some((i32::from_ne_bytes(*level), i32::from_ne_bytes(*kind), data))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_layout_is_the_systems() {
        for data in 0..40 {
            // SAFETY: pure arithmetic.
            assert_eq!(space(data), unsafe { libc::CMSG_SPACE(data as u32) } as usize);
        }
        // SAFETY: pure arithmetic.
        assert_eq!(HEADER, unsafe { libc::CMSG_LEN(0) } as usize);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(entries in prop::collection::vec((any::<i32>(), any::<i32>(), any::<[u8; 6]>()), 0..5)) {
            let mut buffer = [0_u8; 512];
            let mut used = 0;
            for (level, kind, data) in &entries {
                used += write(&mut buffer[used..], *level, *kind, *data);
            }
            let read: Vec<_> = Messages::new(&buffer[..used]).map(|(l, k, d)| (l, k, <[u8; 6]>::try_from(d).unwrap())).collect();
            prop_assert_eq!(read, entries);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic_and_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..40) {
            let mut bytes = bytes;
            // Often a plausible length, so that the iteration continues.
            if bytes.len() > 8 {
                bytes[1..8].fill(0);
                bytes[0] = cut as u8;
            }
            prop_assert!(Messages::new(&bytes).count() <= bytes.len() / ALIGN);
        }
    }
}
