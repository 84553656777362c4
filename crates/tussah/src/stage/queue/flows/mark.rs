//! The memory of a flow about its place in a queue, and the shares and entries that it refers to.

use std::collections::VecDeque;

use crate::stage::event::Event;

/// The number of shares that a [`Mark`] can name. A flow that is busy with another share has an
/// entry.
pub(super) const MARKED_SHARES_MAX: usize = 1 << 10;

/// The busy flows of a run.
#[derive(Default)]
pub(super) struct Share {
    /// Odd while the share is open.
    pub(super) generation: u32,
    /// The number of flows that have only a mark.
    pub(super) marked: usize,
    /// The flows that have an entry.
    pub(super) places: Vec<usize>,
}

/// The memory of a flow. It may be out of date: that of a share which has closed, or of an entry
/// which is no longer in use or belongs to another flow. A mark of 2^14 shares ago may be taken for
/// that of an open share. The flow then belongs to that share, as if the share had taken it.
pub(super) enum Mark {
    /// The flow is busy with a share: its number, its generation, and the number of events that it
    /// has taken from the flow.
    Share(usize, u32, usize),
    /// The flow has an entry.
    Entry(usize),
}

impl Mark {
    const ENTRY: u32 = 1 << 31;
    const GENERATION: u32 = (1 << 15) - 1;
    const TAKEN: u32 = (1 << 6) - 1;

    #[inline]
    pub(super) fn of(bits: u32) -> Self {
        match bits & Self::ENTRY {
            0 => {
                let share = (bits >> 6) as usize % MARKED_SHARES_MAX;
                Self::Share(share, bits >> 16, (bits & Self::TAKEN) as usize)
            }
            _ => Self::Entry((bits & !Self::ENTRY) as usize),
        }
    }

    #[inline]
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Share(share, generation, taken) => {
                generation << 16 | (share as u32) << 6 | (taken as u32).min(Self::TAKEN)
            }
            // 2^31 entries would take more than 100 GiB.
            Self::Entry(place) => Self::ENTRY | u32::try_from(place).expect("few flows wait"),
        }
    }
}

impl Share {
    /// Returns whether this generation is the present one, and the share is open.
    #[inline]
    pub(super) fn is_open(&self, generation: u32) -> bool {
        self.generation == generation && generation % 2 == 1
    }

    /// Returns whether the share has no flow.
    pub(super) fn is_empty(&self) -> bool {
        self.marked == 0 && self.places.is_empty()
    }

    /// Opens or closes the share.
    pub(super) fn turn(&mut self) {
        self.generation = (self.generation + 1) & Mark::GENERATION;
    }
}

/// A flow of which events were set aside.
pub(super) struct Entry<E> {
    /// The number of the flow. An entry that is not in use keeps its number, but has no events and
    /// no share.
    pub(super) flow: u64,
    /// The share with which the flow is busy.
    pub(super) share: Option<usize>,
    /// The number of events that the share has taken from the lane.
    pub(super) taken: usize,
    /// Events that were set aside.
    pub(super) aside: VecDeque<Event<E>>,
}

impl<E> Entry<E> {
    pub(super) fn is_used(&self) -> bool {
        self.share.is_some() || !self.aside.is_empty()
    }
}
