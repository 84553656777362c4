//! The operations of a ring, by number. A generation keeps the number of an ended operation from
//! naming a later one.

use std::sync::Arc;

use super::operation::Operate;

/// The name of an operation in the kernel: the slot's generation in the upper half, its index in
/// the lower half. The upper half is never all ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key(pub(super) u64);

impl Key {
    fn new(generation: u32, index: usize) -> Self {
        Self(u64::from(generation) << 32 | index as u64)
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn index(self) -> usize {
        self.0 as u32 as usize
    }
}

/// The slots of the operations in flight. Slots are reused, so there are as many as the largest
/// number of operations that were ever in flight at once. That is one for each future, and those
/// whose future was dropped: cancelled operations that the kernel still has, at most
/// `IN_FLIGHT_MAX`; writes, one for each open file; closes and operations that change names, which
/// only their users limit.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    generation: u32,
    used: Option<Used>,
}

struct Used {
    operation: Arc<dyn Operate>,
    submitted: bool,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds an operation that waits.
    pub(super) fn insert(&mut self, operation: Arc<dyn Operate>) -> Key {
        let used = Some(Used {
            operation,
            submitted: false,
        });
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.used = used;
            return Key::new(slot.generation, index as usize);
        }
        self.slots.push(Slot {
            generation: 0,
            used,
        });
        Key::new(0, self.slots.len() - 1)
    }

    fn used(&mut self, key: Key) -> Option<&mut Used> {
        let slot = self.slots.get_mut(key.index())?;
        slot.used
            .as_mut()
            .filter(|_| slot.generation == key.generation())
    }

    /// Returns an operation that has not ended.
    pub(super) fn get(&mut self, key: Key) -> &dyn Operate {
        &*self.used(key).expect("it has not ended").operation
    }

    pub(super) fn set_submitted(&mut self, key: Key) {
        self.used(key).expect("it has not ended").submitted = true;
    }

    /// Returns whether the kernel has the operation; `None` if it has ended.
    pub(super) fn is_submitted(&mut self, key: Key) -> Option<bool> {
        self.used(key).map(|used| used.submitted)
    }

    /// Removes an operation.
    pub(super) fn remove(&mut self, key: Key) -> Option<Arc<dyn Operate>> {
        self.used(key)?;
        let slot = &mut self.slots[key.index()];
        let used = slot.used.take()?;
        slot.generation = (slot.generation + 1) % u32::MAX;
        self.free.push(key.index() as u32);
        Some(used.operation)
    }

    fn keys(&self, submitted: bool, all: bool) -> Vec<Key> {
        let used = self.slots.iter().enumerate().filter(|(_, slot)| {
            let used = slot
                .used
                .as_ref()
                .filter(|used| used.submitted == submitted);
            used.is_some_and(|used| all || !used.operation.is_carried_out())
        });
        used.map(|(index, slot)| Key::new(slot.generation, index))
            .collect()
    }

    /// Returns the keys of operations that the kernel has: all, or only those that may be given up.
    pub(super) fn submitted(&self, all: bool) -> Vec<Key> {
        self.keys(true, all)
    }

    /// Removes operations that the kernel has never had: all, or only those that may be given up.
    pub(super) fn take_waiting(&mut self, all: bool) -> Vec<Arc<dyn Operate>> {
        let keys = self.keys(false, all);
        keys.into_iter()
            .filter_map(|key| self.remove(key))
            .collect()
    }
}
