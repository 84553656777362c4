//! The queue by flow, for modules that keep state for each flow: first in, first out, and one
//! servlet at a time for each flow.
//!
//! Events wait in a lane. A run opens a share of the lane: it takes events in their order, and each
//! of their flows is busy until the run is released. An event of a flow that is busy with another
//! run is set aside with its flow. When that run is released, the flow is ready, and one of the
//! next shares takes what was set aside. Later events of the flow are set aside behind it, so the
//! events of a flow keep their order.
//!
//! In [`Keyed`], a share stands for a key. It holds many flows, because the events of most flows
//! are few and short. A flow costs no look-up: the flow itself knows the place of its entry here.
//!
//! No event of a flow can be cancelled, because only modules send to other modules.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{KeyFull, Keyed, Lanes, pick};
use crate::stage::control::Order;
use crate::stage::event::{Chunk, Event};

/// Bound, in events: those that a share takes from one flow while events of other flows may wait
/// in the lane behind them. The others are set aside.
const FLOW_SHARE_MAX: usize = 32;

/// A queue by flow. `flow_of` returns the number of an event's flow, and the place in which the
/// queue remembers the flow's entry. Events without a flow have no such place; they are handled one
/// at a time, too.
pub(crate) struct ByFlow<E, F> {
    flow_of: F,
    /// True if a share holds one flow. Events of other flows that come before its events are set
    /// aside, and their flows are ready.
    of_one: bool,
    lane: Lanes<E>,
    entries: Vec<Entry<E>>,
    free_entries: Vec<usize>,
    /// The entry of events without a flow.
    none: usize,
    /// Flows with events that were set aside, and which are not busy.
    ready: VecDeque<usize>,
    /// The busy flows of each share.
    shares: Vec<Vec<usize>>,
    free_shares: Vec<usize>,
    /// The share that was opened last.
    opened: usize,
    /// The ready flow from which that share takes events first.
    taking: Option<usize>,
    /// True if the last share began with the ready flows; the next one begins with the lane then.
    began_ready: bool,
}

/// A flow that is busy, or of which events were set aside.
struct Entry<E> {
    /// The number of the flow. An entry that is not in use keeps its number, but has no events and
    /// no share.
    flow: u64,
    /// The share with which the flow is busy.
    share: Option<usize>,
    /// The number of events that the share has taken from the lane.
    taken: usize,
    /// Events that were set aside.
    aside: VecDeque<Event<E>>,
}

impl<E> Entry<E> {
    fn is_used(&self) -> bool {
        self.share.is_some() || !self.aside.is_empty()
    }
}

impl<E, F: Fn(&E) -> (u64, Option<&AtomicU32>)> ByFlow<E, F> {
    pub(crate) fn new(of_one: bool, flow_of: F) -> Self {
        Self {
            flow_of,
            of_one,
            lane: Lanes::new(1),
            entries: Vec::new(),
            free_entries: Vec::new(),
            none: 0,
            ready: VecDeque::new(),
            shares: Vec::new(),
            free_shares: Vec::new(),
            opened: 0,
            taking: None,
            began_ready: false,
        }
    }

    /// Returns the place of the entry of an event's flow, if the flow has one.
    ///
    /// The place that the flow remembers may be that of an entry which belongs to another flow now.
    /// The entry of a flow that has ended may be taken for that of a new flow with the same number.
    /// The new flow then waits for the share that handled the old one.
    fn place(&self, event: &Event<E>) -> Option<usize> {
        let (flow, remembered) = (self.flow_of)(event);
        // Relaxed: only the queue uses it, which is under the stage's lock.
        let place = remembered.map_or(self.none, |place| place.load(Ordering::Relaxed) as usize);
        let entry = self.entries.get(place)?;
        (entry.flow == flow && entry.is_used()).then_some(place)
    }

    /// Makes the flow of an event busy with a share. The flow has no entry.
    fn begin(&mut self, event: &Event<E>, share: usize) {
        let place = self.enlist(event);
        let entry = &mut self.entries[place];
        (entry.share, entry.taken) = (Some(share), 1);
        self.shares[share].push(place);
    }

    /// Makes an entry for the flow of an event.
    fn enlist(&mut self, event: &Event<E>) -> usize {
        let place = self.free_entries.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                flow: 0,
                share: None,
                taken: 0,
                aside: VecDeque::new(),
            });
            self.entries.len() - 1
        });
        let (flow, remembered) = (self.flow_of)(event);
        match remembered {
            Some(remembered) => {
                // 2^32 entries would take more than 200 GiB.
                let place = u32::try_from(place).expect("fewer than 2^32 flows are busy");
                remembered.store(place, Ordering::Relaxed);
            }
            None => self.none = place,
        }
        self.entries[place].flow = flow;
        place
    }

    /// Opens a share without events.
    fn open_share(&mut self) -> usize {
        self.free_shares.pop().unwrap_or_else(|| {
            self.shares.push(Vec::new());
            self.shares.len() - 1
        })
    }

    /// Ends the busy time of a share's flows. Those with events are `listed` among the ready ones.
    fn close_share(&mut self, share: usize, listed: fn(&mut VecDeque<usize>, usize)) {
        let mut flows = std::mem::take(&mut self.shares[share]);
        for place in flows.drain(..) {
            let entry = &mut self.entries[place];
            entry.share = None;
            match entry.aside.is_empty() {
                true => self.free_entries.push(place),
                false => listed(&mut self.ready, place),
            }
        }
        self.shares[share] = flows;
        self.free_shares.push(share);
        self.taking = None;
    }

    /// Takes the next event that was set aside from the flow that the share takes from.
    fn take_aside(&mut self) -> Option<Event<E>> {
        let event = self.entries[self.taking?].aside.pop_front();
        if event.is_none() {
            self.taking = None;
        }
        event
    }

    /// Makes the next ready flow busy with the opened share, which takes its events next.
    fn begin_ready(&mut self) -> bool {
        let Some(place) = self.ready.pop_front() else {
            return false;
        };
        let entry = &mut self.entries[place];
        (entry.share, entry.taken) = (Some(self.opened), 0);
        self.shares[self.opened].push(place);
        self.taking = Some(place);
        true
    }

    /// Takes the first event that was set aside from the next ready flow.
    fn take_ready(&mut self) -> Option<Event<E>> {
        while !self.is_whole() && self.begin_ready() {
            if let Some(event) = self.take_aside() {
                return Some(event);
            }
        }
        None
    }

    /// Takes the next event of the lane whose flow is not busy with another share, and sets aside
    /// those before it.
    fn take_from_lane(&mut self) -> Option<Event<E>> {
        loop {
            let event = self.lane.take_first()?;
            let Some(place) = self.place(&event) else {
                if self.is_whole() {
                    let place = self.enlist(&event);
                    self.entries[place].aside.push_back(event);
                    self.ready.push_back(place);
                    continue;
                }
                self.begin(&event, self.opened);
                return Some(event);
            };
            let entry = &mut self.entries[place];
            if entry.share == Some(self.opened) && (self.of_one || entry.taken < FLOW_SHARE_MAX) {
                entry.taken += 1;
                return Some(event);
            }
            entry.aside.push_back(event);
        }
    }

    /// Returns whether the opened share takes no further flow.
    fn is_whole(&self) -> bool {
        self.of_one && !self.shares[self.opened].is_empty()
    }

    /// Forgets the ready flows that have no events any more.
    fn forget_idle(&mut self) {
        let (entries, free) = (&self.entries, &mut self.free_entries);
        self.ready.retain(|&place| {
            let is_used = entries[place].is_used();
            if !is_used {
                free.push(place);
            }
            is_used
        });
    }
}

impl<E, F> Keyed<E> for ByFlow<E, F>
where
    E: Send,
    F: Fn(&E) -> (u64, Option<&AtomicU32>) + Send,
{
    fn is_plain(&self) -> bool {
        true
    }

    fn look_at(&mut self, _event: &Event<E>) {}

    fn hash(&self) -> Option<u64> {
        None
    }

    fn push(&mut self, event: Event<E>) -> Result<usize, KeyFull<E>> {
        Ok(self.lane.push(event))
    }

    fn push_chunk(&mut self, chunk: &mut Chunk<E>) {
        self.lane.push_chunk(chunk);
    }

    fn spare(&mut self) -> Chunk<E> {
        self.lane.spare()
    }

    fn is_full(&self) -> bool {
        false
    }

    fn push_front(&mut self, event: Event<E>, _taken_from: Option<usize>) -> usize {
        match self.place(&event) {
            Some(place) if !self.entries[place].aside.is_empty() => {
                self.entries[place].aside.push_front(event);
                0
            }
            _ => self.lane.push_front(event),
        }
    }

    fn is_ready(&self) -> bool {
        !self.lane.is_empty() || !self.ready.is_empty()
    }

    fn open(&mut self, _order: Order) -> Option<usize> {
        if !self.is_ready() {
            return None;
        }
        self.opened = self.open_share();
        self.taking = None;
        self.began_ready = !self.began_ready && self.begin_ready();
        Some(self.opened)
    }

    #[inline]
    fn take_one(&mut self) -> Option<Event<E>> {
        if self.taking.is_some()
            && let Some(event) = self.take_aside()
        {
            return Some(event);
        }
        if self.began_ready
            && let Some(event) = self.take_ready()
        {
            return Some(event);
        }
        self.take_from_lane().or_else(|| self.take_ready())
    }

    fn release(&mut self, share: usize) {
        self.close_share(share, VecDeque::push_back);
    }

    fn unopen(&mut self, share: usize, _order: Order) {
        self.close_share(share, VecDeque::push_front);
    }

    fn enter(&mut self, event: &Event<E>) -> Option<usize> {
        if self.place(event).is_some() {
            return None;
        }
        let share = self.open_share();
        self.begin(event, share);
        Some(share)
    }

    fn take_out(&mut self) -> Option<Event<E>> {
        if let Some(&place) = self.ready.front() {
            let event = self.entries[place].aside.pop_front();
            if !self.entries[place].is_used() {
                self.ready.pop_front();
                self.free_entries.push(place);
            }
            return event;
        }
        let aside = |entry: &mut Entry<E>| entry.aside.pop_front();
        let event = self.lane.take_first();
        event.or_else(|| self.entries.iter_mut().find_map(aside))
    }

    fn take_late(&mut self, is_late: &mut dyn FnMut(&Event<E>) -> bool) -> Vec<Event<E>> {
        let mut late = self.lane.take_late(is_late);
        for entry in &mut self.entries {
            pick(&mut entry.aside, is_late, &mut late);
        }
        self.forget_idle();
        late
    }

    fn buried(&mut self, _part: usize) -> Option<&mut usize> {
        None
    }

    fn sweep(&mut self, _part: usize) -> Vec<Event<E>> {
        Vec::new()
    }

    fn same(&self, one: &Event<E>, other: &Event<E>) -> bool {
        (self.flow_of)(one).0 == (self.flow_of)(other).0
    }

    fn keys(&self) -> usize {
        self.entries.len() - self.free_entries.len()
    }
}

#[cfg(test)]
mod tests;
