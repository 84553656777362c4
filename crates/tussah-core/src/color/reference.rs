//! A reference to a color, which avoids look-ups in the table.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use super::ColorName;
use super::cell::ColorCell;
use crate::runtime::Shared;

/// A handle to a color of a runtime.
///
/// An event posted through a `ColorRef` needs no look-up of its color. While a `ColorRef` exists,
/// the runtime does not forget the color. Cloning a `ColorRef` is cheap.
///
/// The runtime can forget a color that is identified by a number, is idle, and has no references. A
/// forgotten color loses its priority and depth limit. A runtime keeps up to 4,096 unused colors;
/// if it has more, it forgets an idle color when the color's last reference is dropped. As the
/// program looks up colors, the runtime also searches step by step for other unused colors to
/// forget. If a color stays idle while the program names about as many new colors as the runtime
/// remembers, the runtime forgets the idle color.
pub struct ColorRef {
    cell: NonNull<ColorCell>,
    /// Declared after the cell's pointer and released after its handle, because the cell uses its
    /// runtime until the end.
    shared: Arc<Shared>,
}

// SAFETY: the cell's rules allow use and release from any OS thread.
unsafe impl Send for ColorRef {}
// SAFETY: as above.
unsafe impl Sync for ColorRef {}

impl ColorRef {
    /// Turns a handle into a reference.
    ///
    /// # Safety
    /// The caller must give up one handle.
    pub(crate) unsafe fn from_cell(cell: NonNull<ColorCell>, shared: Arc<Shared>) -> Self {
        Self { cell, shared }
    }

    pub(crate) fn cell(&self) -> NonNull<ColorCell> {
        self.cell
    }

    pub(crate) fn get(&self) -> &ColorCell {
        // SAFETY: the reference owns a handle.
        unsafe { self.cell.as_ref() }
    }

    /// Sets the color's priority; see [`Policy`](crate::Policy).
    ///
    /// A priority influences the order among colors, but never reorders the events within a color.
    pub fn set_priority(&self, priority: i8) {
        self.get().set_priority(priority);
    }

    /// Sets the maximum number of posted events that may be queued in the color. Further posts
    /// fail.
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
        // SAFETY: this gives up the reference's own handle.
        let left = unsafe { ColorCell::release(self.cell) };
        // One handle left means that only the table's remains.
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
