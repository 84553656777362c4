//! Senders that wait for room in a stage's queue, and the order in which they receive it.
//!
//! Each sender has a number, and room is handed out in the order of these numbers: it is reserved,
//! and the sender is woken. The sender uses the room for its event, or returns it when dropped. A
//! sender that waits only for its class or its key holds up no other sender.
//!
//! Room becomes free in large pieces, because a servlet takes a whole batch. Suppose that each
//! sender got room for one event, and that the first sender to return could have all of the
//! remaining room. Then the same few senders would be first every time. So room is handed out in
//! *rounds*: the next round begins when the senders of the last round have used their room and have
//! come back. A stage that is running out of events does not wait for all of them. The next round
//! then begins when a sender that has come back has yielded a number of times.

use std::collections::{BTreeMap, HashMap};
use std::task::Waker;

use crate::stage::event::{CLASSES_MAX, NotTaken, Refusal};

/// The number of times that a sender that has come back yields, for each sender of the last round,
/// before it stops waiting for the missing senders.
pub(crate) const PATIENCE: usize = 4;
/// Replaces [`PATIENCE`] while the stage has enough to do but does not compute, because the stage
/// may be waiting for the sender's next action.
pub(crate) const PATIENCE_LONG: usize = 128;
/// The maximum number of yields for any number of senders, which take a millisecond or two.
pub(crate) const PATIENCE_MAX: usize = 8192;

/// The kind of room that a sender waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lacks {
    Room,
    /// Room for its class.
    Class,
    /// Room for its key.
    Key,
}

/// A sender that waits or has been woken.
#[derive(Debug)]
pub(crate) struct Waiter {
    pub(crate) from: u32,
    pub(crate) class: usize,
    pub(crate) credits: u64,
    /// A hash of the key, in a keyed stage.
    pub(crate) key: Option<u64>,
    pub(crate) lacks: Lacks,
    pub(crate) waker: Option<Waker>,
    /// True if it was told to wait and has not been woken since then.
    pub(crate) sleeps: bool,
}

/// The next action of a waiting sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Send: the sender was woken.
    Send,
    /// Wait to be woken.
    Wait,
    /// Yield to other senders first, at most this many times; there is room.
    LetOthers(usize),
}

/// The room that a sender waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) class: usize,
    pub(crate) credits: u64,
    pub(crate) key: Option<u64>,
    /// True if the sender finds room whenever any other sender does.
    pub(crate) is_like_others: bool,
}

/// The senders that wait for room.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    /// The number of senders that wait or were woken.
    pub(crate) count: usize,
    /// The number of senders that wait or were woken, by sending stage; 0 stands for other senders.
    /// Stages without senders have no entry.
    stages: Vec<(u32, usize)>,
    last: u64,
    pub(crate) waiting: BTreeMap<u64, Waiter>,
    /// Senders that have reserved room but have not used it yet.
    pub(crate) called: BTreeMap<u64, (Waiter, u64)>,
    /// The number of waiting senders that lack room for their class, and for their key.
    class_lacks: [usize; CLASSES_MAX],
    key_lacks: HashMap<u64, usize>,
    lack_else: usize,
    /// True if a sender may find no room where another sender would.
    pub(crate) any_unlike: bool,
    /// True if room is handed out until there is none left.
    pub(crate) filling: bool,
    /// The number of senders that got room in this round.
    pub(crate) round: usize,
    /// True if the present senders stop waiting for the missing ones.
    pub(crate) impatient: bool,
    /// The number of finished events when the queue last had no more room.
    pub(crate) full_at: u64,
}

impl Senders {
    /// Returns whether no sender waits or has been woken.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns whether no sender waits or has been woken, and no round has senders that might come
    /// back.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.count == 0 && self.round < 2
    }

    /// Returns whether a sender waits that has not been woken.
    #[inline]
    pub(crate) fn any_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the numbers of the waiting stages; 0 stands for other senders.
    pub(crate) fn stages(&self) -> impl Iterator<Item = u32> {
        self.stages.iter().map(|(stage, _)| *stage)
    }

    /// Queues a sender that was refused for this reason, and returns its number.
    pub(crate) fn add(
        &mut self,
        from: u32,
        wanted: Wanted,
        lacks_class: bool,
        why: NotTaken,
    ) -> u64 {
        self.count(from);
        self.any_unlike |= !wanted.is_like_others;
        self.last += 1;
        let lacks = match why {
            NotTaken::Refused(Refusal::KeyFull) => Lacks::Key,
            _ if lacks_class => Lacks::Class,
            _ => Lacks::Room,
        };
        let waiter = Waiter {
            from,
            class: wanted.class,
            credits: wanted.credits,
            key: wanted.key,
            lacks,
            waker: None,
            sleeps: false,
        };
        self.wait(self.last, waiter);
        self.last
    }

    pub(crate) fn wait(&mut self, number: u64, waiter: Waiter) {
        match (waiter.lacks, waiter.key) {
            (Lacks::Room, _) => {}
            (Lacks::Key, Some(key)) => *self.key_lacks.entry(key).or_default() += 1,
            _ => self.class_lacks[waiter.class] += 1,
        }
        self.lack_else += usize::from(waiter.lacks != Lacks::Room);
        self.waiting.insert(number, waiter);
    }

    pub(crate) fn wait_no_longer(&mut self, number: u64) -> Option<Waiter> {
        let waiter = self.waiting.remove(&number)?;
        match (waiter.lacks, waiter.key) {
            (Lacks::Room, _) => {}
            (Lacks::Key, Some(key)) => {
                let count = self.key_lacks.get_mut(&key).expect("it was added");
                *count -= 1;
                if *count == 0 {
                    self.key_lacks.remove(&key);
                }
            }
            _ => self.class_lacks[waiter.class] -= 1,
        }
        self.lack_else -= usize::from(waiter.lacks != Lacks::Room);
        Some(waiter)
    }

    /// Removes a sender that sends or gives up. Returns the credits reserved for it.
    pub(crate) fn remove(&mut self, number: u64) -> u64 {
        let (waiter, reserved) = match self.called.remove(&number) {
            Some(called) => called,
            None => match self.wait_no_longer(number) {
                Some(waiter) => (waiter, 0),
                None => return 0,
            },
        };
        self.uncount(waiter.from);
        reserved
    }

    /// Returns whether a woken sender had waited for its key.
    pub(crate) fn lacked_key(&self, number: u64) -> bool {
        let called = self.called.get(&number);
        called.is_some_and(|(waiter, _)| waiter.lacks == Lacks::Key)
    }

    /// Takes the room that was reserved for a woken sender. If the sender is then refused, it
    /// continues in [`refused`](Self::refused).
    pub(crate) fn take_reserved(&mut self, number: u64) -> u64 {
        let called = self.called.get_mut(&number);
        called.map_or(0, |(_, reserved)| std::mem::take(reserved))
    }

    /// Queues a woken sender again, in its old place, because it found no room after all. Its event
    /// may cost more `credits` than before, if the queue has grown.
    pub(crate) fn refused(&mut self, number: u64, credits: u64, lacks_class: bool, why: NotTaken) {
        let Some((mut waiter, _)) = self.called.remove(&number) else {
            return;
        };
        waiter.credits = credits;
        waiter.lacks = match why {
            NotTaken::Refused(Refusal::KeyFull) => Lacks::Key,
            _ if lacks_class => Lacks::Class,
            _ => Lacks::Room,
        };
        self.wait(number, waiter);
    }

    fn count(&mut self, from: u32) {
        self.count += 1;
        match self.stages.iter_mut().find(|(stage, _)| *stage == from) {
            Some((_, count)) => *count += 1,
            None => self.stages.push((from, 1)),
        }
    }

    fn uncount(&mut self, from: u32) {
        self.count -= 1;
        let place = self.stages.iter().position(|(stage, _)| *stage == from);
        let place = place.expect("it was counted");
        self.stages[place].1 -= 1;
        if self.stages[place].1 == 0 {
            self.stages.swap_remove(place);
        }
        self.any_unlike &= self.count > 0;
    }

    /// Returns whether the free room is promised to waiting senders. An event whose sender `waits`
    /// also lets woken senders go first.
    pub(crate) fn is_promised(&self, class: usize, key: Option<u64>, waits: bool) -> bool {
        waits && (!self.called.is_empty() || self.round > 1)
            || self.waiting.len() > self.lack_else
            || self.class_lacks[class] > 0
            || self.waits_for_key(key)
    }

    /// Returns whether a sender waits for this key.
    pub(crate) fn waits_for_key(&self, key: Option<u64>) -> bool {
        key.is_some_and(|key| self.key_lacks.contains_key(&key))
    }

    /// Returns whether a round is over, or there was none.
    pub(crate) fn is_round_over(&self) -> bool {
        let came = self.waiting.len() - self.lack_else;
        self.impatient || self.called.is_empty() && came >= self.round
    }

    /// Returns the number of senders that share the free room.
    pub(crate) fn sharing(&self) -> usize {
        self.count + 1
    }

    pub(crate) fn call(&mut self, number: u64, reserved: u64, wakers: &mut Vec<Waker>) {
        if let Some(mut waiter) = self.wait_no_longer(number) {
            wakers.extend(waiter.waker.take());
            self.called.insert(number, (waiter, reserved));
        }
    }
}
