//! Reading a color: a part of it that several may have at once.

use std::ptr::NonNull;

use super::cell::{ColorCell, HELD, READER, READERS, READERS_MAX, bits, readers};
use crate::loom::atomic::Ordering;

/// A reader's part in a color, which ends when this is dropped, unwinding included.
pub(crate) struct Part(NonNull<ColorCell>);

impl Part {
    /// # Safety
    /// The caller has the part, and gives it up.
    pub(crate) unsafe fn new(cell: NonNull<ColorCell>) -> Self {
        Self(cell)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: the part is this value's, and ends here.
        unsafe { ColorCell::exit_read(self.0) }
    }
}

impl ColorCell {
    /// Takes a reader's part in a color that nobody writes or waits for.
    #[inline]
    pub(crate) fn try_read(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state.addr() & !READERS != 0 || readers(state) == READERS_MAX * READER {
                return false;
            }
            let next = state.map_addr(|addr| addr + READER);
            // Acquire: as in `try_enter`.
            match self.state.compare_exchange_weak(
                state,
                next,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
    }

    /// Turns the token into a reader's part, so that others can read too; only if nothing is queued.
    pub(crate) fn try_share(&self) -> bool {
        // SAFETY: called with the token, which owns the FIFO.
        let empty = self.fifo.with_mut(|fifo| unsafe { (*fifo).is_empty() });
        // Release: as in `try_leave`.
        empty
            && self
                .state
                .compare_exchange(
                    bits(HELD),
                    bits(READER),
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Ends a reader's part. The last reader schedules the cell if somebody waits. The cell may be gone after.
    ///
    /// # Safety
    /// The caller has a reader's part.
    #[inline]
    pub(crate) unsafe fn exit_read(cell: NonNull<Self>) {
        // SAFETY: a cell that has readers is alive.
        let this = unsafe { cell.as_ref() };
        let mut state = this.state.load(Ordering::Relaxed);
        loop {
            let next = state.map_addr(|addr| addr - READER);
            // Release: reads end before the next write (Acquire in `try_enter`, or here, by the last reader, who passes
            // the token on).
            match this
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if readers(next) == 0 && next.addr() & HELD != 0 => {
                    // SAFETY: rule 4: the token is ours.
                    return unsafe { Self::schedule(cell) };
                }
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }
}
