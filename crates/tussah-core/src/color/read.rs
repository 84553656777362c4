//! Shared entry to a color for reading.

use std::ptr::NonNull;

use super::cell::{ColorCell, HELD, READER, READERS, READERS_MAX, bits, readers};
use crate::loom::atomic::Ordering;

/// One reader's share of a color; dropping it, also by unwinding, gives the share up.
pub(crate) struct Part(NonNull<ColorCell>);

impl Part {
    /// Takes ownership of a share.
    ///
    /// # Safety
    /// The caller must own the share and give it up.
    pub(crate) unsafe fn new(cell: NonNull<ColorCell>) -> Self {
        Self(cell)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: this value owns the share, which ends here.
        unsafe { ColorCell::exit_read(self.0) }
    }
}

impl ColorCell {
    /// Enters as a reader if the color has no writer and nothing is queued.
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

    /// Turns the token into a reader's share so that others can read, too. Fails if anything is
    /// queued.
    pub(crate) fn try_share(&self) -> bool {
        // SAFETY: the caller holds the token, which covers the FIFO.
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

    /// Gives up a reader's share. The last reader schedules the cell if an event waits. After this
    /// call, the cell may already have been freed.
    ///
    /// # Safety
    /// The caller must own a reader's share.
    #[inline]
    pub(crate) unsafe fn exit_read(cell: NonNull<Self>) {
        // SAFETY: a cell with readers is alive.
        let this = unsafe { cell.as_ref() };
        let mut state = this.state.load(Ordering::Relaxed);
        loop {
            let next = state.map_addr(|addr| addr - READER);
            // Release: reads end before the next write (Acquire in `try_enter`). Acquire: the last
            // reader passes the token on with the other readers' effects.
            match this
                .state
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if readers(next) == 0 && next.addr() & HELD != 0 => {
                    // SAFETY: by rule 4 this call holds the token.
                    return unsafe { Self::schedule(cell) };
                }
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }
}
