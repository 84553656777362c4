//! The queue by flow, for modules that keep state for each flow: first in, first out, and one
//! servlet at a time for each flow.
//!
//! Events wait in a lane. A run opens a share of the lane: it takes events in their order, and each
//! of their flows is busy until the run is released. An event of a flow that is busy with another
//! run is set aside with its flow. When that run is released, the flow is ready, and one of the
//! next shares takes the events that were set aside. Later events of the flow are set aside behind
//! it, so the events of a flow keep their order.
//!
//! In [`Keyed`], a share stands for a key. It holds many flows, because the events of most flows
//! are few and short. A flow costs no look-up: the flow itself remembers the share with which it is
//! busy, or the place of its entry here. Only a flow with events that were set aside has an entry.
//! When a share closes, its generation changes, which frees its flows without an access to them.
//!
//! No event of a flow can be cancelled, because only modules send to other modules.

mod mark;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use self::mark::{Entry, MARKED_SHARES_MAX, Mark, Share};
use super::{KeyFull, Keyed, Lanes, pick};
use crate::stage::control::Order;
use crate::stage::event::{Chunk, Classes, Event};

/// The maximum number of events that a share takes from one flow while events of other flows may
/// wait in the lane behind them. Further events of the flow are set aside.
const FLOW_SHARE_MAX: usize = 32;

/// A queue by flow. `flow_of` returns the number of an event's flow, and the place in which the
/// queue remembers the flow's [`Mark`]. Events without a flow have no such place; they are handled
/// one at a time, too.
pub(crate) struct ByFlow<E, F> {
    flow_of: F,
    /// True if a share holds one flow. Events of other flows that come before its events are set
    /// aside, and their flows are ready.
    of_one: bool,
    lane: Lanes<E>,
    entries: Vec<Entry<E>>,
    free_entries: Vec<usize>,
    /// The mark of events without a flow.
    none: AtomicU32,
    /// Flows with events that were set aside, and which are not busy.
    ready: VecDeque<usize>,
    shares: Vec<Share>,
    free_shares: Vec<usize>,
    /// The share that was opened last.
    opened: usize,
    /// The ready flow from which that share takes events first.
    taking: Option<usize>,
    /// True if the last share began with the ready flows; the next one begins with the lane then.
    began_ready: bool,
}

/// The place of a flow in the queue.
enum At {
    Free,
    /// The flow is busy with a share, which has taken a number of its events, and has no entry.
    Busy(usize, usize),
    Entry(usize),
}

impl<E, F: Fn(&E) -> (u64, Option<&AtomicU32>)> ByFlow<E, F> {
    pub(crate) fn new(of_one: bool, flow_of: F) -> Self {
        Self {
            flow_of,
            of_one,
            lane: Lanes::new(Classes::by_priority(1)),
            entries: Vec::new(),
            free_entries: Vec::new(),
            none: AtomicU32::default(),
            ready: VecDeque::new(),
            shares: Vec::new(),
            free_shares: Vec::new(),
            opened: 0,
            taking: None,
            began_ready: false,
        }
    }

    /// Returns the place of an event's flow.
    #[inline]
    fn at(&self, event: &Event<E>) -> At {
        let (flow, remembered) = (self.flow_of)(event);
        // Relaxed: only the queue uses it, which is under the stage's lock.
        match Mark::of(remembered.unwrap_or(&self.none).load(Ordering::Relaxed)) {
            Mark::Share(share, generation, taken) => match self.shares.get(share) {
                Some(it) if it.is_open(generation) => At::Busy(share, taken),
                _ => At::Free,
            },
            Mark::Entry(place) => match self.entries.get(place) {
                Some(entry) if entry.flow == flow && entry.is_used() => At::Entry(place),
                _ => At::Free,
            },
        }
    }

    /// Sets what the flow of an event remembers.
    #[inline]
    fn mark(&self, event: &Event<E>, mark: Mark) {
        let (_, remembered) = (self.flow_of)(event);
        let place = remembered.unwrap_or(&self.none);
        place.store(mark.bits(), Ordering::Relaxed);
    }

    /// Makes the flow of an event busy with a share. The flow has no entry.
    #[inline]
    fn begin(&mut self, event: &Event<E>, share: usize) {
        // A mark that is out of date may name an open share; an entry names its flow, too.
        if share < MARKED_SHARES_MAX && !self.of_one {
            self.shares[share].marked += 1;
            return self.note(event, share, 1);
        }
        self.add_entry(event, Some(share), 1);
    }

    /// Notes the number of events that a share has taken from a flow without an entry.
    #[inline]
    fn note(&self, event: &Event<E>, share: usize, taken: usize) {
        let generation = self.shares[share].generation;
        self.mark(event, Mark::Share(share, generation, taken));
    }

    /// Makes an entry for the flow of an event, which may be busy with a share.
    fn add_entry(&mut self, event: &Event<E>, share: Option<usize>, taken: usize) -> usize {
        let entry = Entry {
            flow: (self.flow_of)(event).0,
            share,
            taken,
            aside: VecDeque::new(),
        };
        let place = match self.free_entries.pop() {
            Some(place) => {
                // The room for events stays.
                let aside = std::mem::take(&mut self.entries[place].aside);
                self.entries[place] = Entry { aside, ..entry };
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        if let Some(share) = share {
            self.shares[share].places.push(place);
        }
        self.mark(event, Mark::Entry(place));
        place
    }

    /// Opens a share without events.
    fn open_share(&mut self) -> usize {
        let share = self.free_shares.pop().unwrap_or_else(|| {
            self.shares.push(Share::default());
            self.shares.len() - 1
        });
        self.shares[share].turn();
        share
    }

    /// Ends the busy time of a share's flows. Those with events are `listed` among the ready ones.
    fn close_share(&mut self, share: usize, listed: fn(&mut VecDeque<usize>, usize)) {
        let closed = &mut self.shares[share];
        closed.turn();
        closed.marked = 0;
        for place in closed.places.drain(..) {
            let entry = &mut self.entries[place];
            entry.share = None;
            match entry.aside.is_empty() {
                true => self.free_entries.push(place),
                false => listed(&mut self.ready, place),
            }
        }
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
        self.shares[self.opened].places.push(place);
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
            match self.at(&event) {
                At::Free if self.is_whole() => {
                    let place = self.add_entry(&event, None, 0);
                    self.entries[place].aside.push_back(event);
                    self.ready.push_back(place);
                }
                At::Free => {
                    self.begin(&event, self.opened);
                    return Some(event);
                }
                At::Busy(share, taken) if self.may_take(Some(share), taken) => {
                    self.note(&event, share, taken + 1);
                    return Some(event);
                }
                At::Busy(share, taken) => {
                    self.shares[share].marked = self.shares[share].marked.saturating_sub(1);
                    let place = self.add_entry(&event, Some(share), taken);
                    self.entries[place].aside.push_back(event);
                }
                At::Entry(place) => {
                    let entry = &self.entries[place];
                    let may_take = self.may_take(entry.share, entry.taken);
                    let entry = &mut self.entries[place];
                    if may_take {
                        entry.taken += 1;
                        return Some(event);
                    }
                    entry.aside.push_back(event);
                }
            }
        }
    }

    /// Returns whether the opened share may take one more event of a flow that is busy with a
    /// share, which has taken a number of them.
    fn may_take(&self, share: Option<usize>, taken: usize) -> bool {
        share == Some(self.opened) && (self.of_one || taken < FLOW_SHARE_MAX)
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
        match self.at(&event) {
            At::Entry(place) if !self.entries[place].aside.is_empty() => {
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
        let At::Free = self.at(event) else {
            return None;
        };
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
        let marked: usize = self.shares.iter().map(|share| share.marked).sum();
        self.entries.len() - self.free_entries.len() + marked
    }
}

#[cfg(test)]
mod tests;
