//! A reference to a color that skips the table.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use super::ColorName;
use super::cell::ColorCell;
use crate::runtime::Shared;

/// A color of one runtime, found once.
///
/// Posting through it costs no look-up. It keeps the color remembered; cloning is cheap.
///
/// A color that was given by number, is idle, and has no references left may be forgotten, and its priority and its limit with
/// it. A runtime remembers up to 4,096 such colors. It forgets further ones as their last reference is dropped, or, if they had
/// events then, in small steps as other colors are named: all of them by the time that about as many new ones are.
pub struct ColorRef {
    cell: NonNull<ColorCell>,
    /// Declared behind the cell's pointer, and given back after its handle: the cell may use its runtime up to the end.
    shared: Arc<Shared>,
}

// SAFETY: a cell may be used and released from any OS thread, by its own rules.
unsafe impl Send for ColorRef {}
// SAFETY: as above.
unsafe impl Sync for ColorRef {}

impl ColorRef {
    /// # Safety
    /// The caller passes one handle on.
    pub(crate) unsafe fn from_cell(cell: NonNull<ColorCell>, shared: Arc<Shared>) -> Self {
        Self { cell, shared }
    }

    pub(crate) fn cell(&self) -> NonNull<ColorCell> {
        self.cell
    }

    pub(crate) fn get(&self) -> &ColorCell {
        // SAFETY: the reference has a handle.
        unsafe { self.cell.as_ref() }
    }

    /// Sets the priority of the color; see [`Policy`](crate::Policy). A hint: it orders colors, never events within one.
    pub fn set_priority(&self, priority: i8) {
        self.get().set_priority(priority);
    }

    /// Sets how many posted events may be queued in the color before posts are refused.
    pub fn set_depth_max(&self, events: u32) {
        self.get().set_depth_max(events);
    }
}

impl Clone for ColorRef {
    fn clone(&self) -> Self {
        self.get().retain();
        Self {
            cell: self.cell,
            shared: self.shared.clone(),
        }
    }
}

impl Drop for ColorRef {
    fn drop(&mut self) {
        let cell = self.get();
        let idle_number = match cell.name {
            ColorName::Number(color) if cell.is_idle() => Some(color),
            _ => None,
        };
        // SAFETY: the reference's handle ends here.
        let left = unsafe { ColorCell::release(self.cell) };
        // The table's handle is the last one.
        if let (Some(color), 1) = (idle_number, left) {
            self.shared.table.forget(color);
        }
    }
}

impl PartialEq for ColorRef {
    fn eq(&self, other: &Self) -> bool {
        self.cell == other.cell
    }
}

impl Eq for ColorRef {}

impl fmt::Debug for ColorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ColorRef").field(&self.cell).finish()
    }
}
