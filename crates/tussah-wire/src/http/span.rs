//! A part of a buffer, given by offsets.

/// A part of the buffer that holds a message's head.
///
/// Offsets have 16 bits, since a head has at most [`HEAD_BYTES_MAX`](super::head::HEAD_BYTES_MAX)
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u16,
    end: u16,
}

impl Span {
    #[inline(always)]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= usize::from(u16::MAX));
        Self {
            start: start as u16,
            end: end as u16,
        }
    }

    #[inline(always)]
    pub(crate) fn start(self) -> usize {
        self.start.into()
    }

    #[inline(always)]
    pub(crate) fn end(self) -> usize {
        self.end.into()
    }

    /// Returns whether the span stands for a missing part. No existing part starts at 0.
    #[inline(always)]
    pub(crate) fn is_absent(self) -> bool {
        self.start == 0
    }

    /// Returns the bytes of this part.
    #[inline(always)]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start()..self.end()]
    }
}
