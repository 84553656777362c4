//! The part of several buffers that one attempt moves.

use std::ops::Range;

use super::{BUFFERS_MAX, TRANSFER_MAX};

/// Returns the range of buffers that one attempt moves. It starts at the first nonempty buffer, and
/// covers as many as the system accepts within `bytes_max` bytes. The first buffer is always
/// included; if it is too long, it is the only one.
pub(super) fn run(lens: impl Iterator<Item = usize>, bytes_max: usize) -> Range<usize> {
    let bytes_max = bytes_max.min(TRANSFER_MAX);
    let mut lens = lens.enumerate().skip_while(|&(_, len)| len == 0);
    let Some((first, mut bytes)) = lens.next() else {
        return 0..0;
    };
    let fits = |&(_, len): &(usize, usize)| {
        bytes = bytes.saturating_add(len);
        bytes <= bytes_max
    };
    let more = lens.take(BUFFERS_MAX - 1).take_while(fits).count();
    first..first + 1 + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_buffers() {
        let check = |lens: &[usize], bytes_max: usize, expected: Range<usize>| {
            assert_eq!(run(lens.iter().copied(), bytes_max), expected);
        };
        check(&[], 10, 0..0);
        check(&[0, 0], 10, 0..0);
        check(&[0, 0, 5, 0, 5, 1], 10, 2..5);
        check(&[11, 1], 10, 0..1);
        check(&[10, 0, 1], 10, 0..2);
        check(&[TRANSFER_MAX, 1], usize::MAX, 0..1);
        check(&[1, usize::MAX], usize::MAX, 0..1);
        check(&[1; 2000], usize::MAX, 0..BUFFERS_MAX);
    }
}
