//! Senders that wait for room in a stage's queue, and the order in which room is handed to them.
//!
//! Each has a number, and room is handed out in the order of the numbers: it is reserved, and the sender is called. What it was handed it uses for the event that it waits
//! with, or gives back when it is dropped. Who is kept out only by the bound of a class or a key holds up nobody else.
//!
//! Room comes in large pieces, since a servlet takes a batch at once. If whoever comes first could have all that is left after each sender was handed room for one
//! event, the same few would come first each time. So room is handed out in *rounds*: the next one begins when the senders of the last have used theirs and have
//! come again. A stage that has not enough to do for that waits for nobody: the next one then begins when one that came again has let others have some turns.

use std::collections::{BTreeMap, HashMap};
use std::task::Waker;

use super::event::CLASSES_MAX;
use super::sender::Why;

/// How often, for each sender of the last round, one that came again lets others have their turn before it no longer waits for those who have not come.
pub(super) const PATIENCE: usize = 4;
/// The same while the stage has enough to do, but does not compute: it might wait for what the sender does next.
pub(super) const PATIENCE_LONG: usize = 128;
/// Bound, in turns: the same for however many senders; a millisecond or two.
pub(super) const PATIENCE_MAX: usize = 8192;

/// What keeps a sender out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lacks {
    Room,
    /// Room for its class.
    Class,
    /// Room for its key.
    Key,
}

/// A sender that waits, or has been called.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) from: u32,
    pub(super) class: usize,
    pub(super) credits: u64,
    /// A hash of the key, in a stage by key.
    pub(super) key: Option<u64>,
    pub(super) lacks: Lacks,
    pub(super) waker: Option<Waker>,
    /// It has been told to wait, and not been called since.
    pub(super) sleeps: bool,
}

/// What a sender that waits is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// It has been called, and may send.
    Send,
    /// It will be called.
    Wait,
    /// There is room, and others are to have their turn first, so many times at most.
    LetOthers(usize),
}

/// What a sender waits with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) class: usize,
    pub(crate) credits: u64,
    pub(crate) key: Option<u64>,
    /// It finds room when any other does.
    pub(crate) is_like_others: bool,
}

/// The senders that wait for room.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    /// Those that wait and those that were called.
    pub(super) count: usize,
    /// The same by the number of the stage that they send for; 0 is for others. None of them has no senders.
    stages: Vec<(u32, usize)>,
    last: u64,
    pub(super) waiting: BTreeMap<u64, Waiter>,
    /// They have been handed room, which is reserved, and have not used it.
    pub(super) called: BTreeMap<u64, (Waiter, u64)>,
    /// Of those that wait, who lacks room for its class, and for its key.
    class_lacks: [usize; CLASSES_MAX],
    key_lacks: HashMap<u64, usize>,
    lack_else: usize,
    /// One of them may find no room where another would.
    pub(super) choosy: bool,
    /// Room is handed out until there is none.
    pub(super) filling: bool,
    /// How many were handed room in this round.
    pub(super) round: usize,
    /// Those that are there are not to wait for others any longer.
    pub(super) impatient: bool,
    /// Events that had been finished when there was no more room.
    pub(super) full_at: u64,
}

impl Senders {
    /// Whether nobody waits, and nobody has been called.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether that is so, and there is no round whose other senders might come again.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.count == 0 && self.round < 2
    }

    /// Whether somebody waits who has not been called.
    #[inline]
    pub(crate) fn any_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The numbers of the stages that wait; 0 for others.
    pub(crate) fn stages(&self) -> impl Iterator<Item = u32> {
        self.stages.iter().map(|(stage, _)| *stage)
    }

    /// Has a sender wait that was refused for this reason; gives its number.
    pub(crate) fn add(&mut self, from: u32, wanted: Wanted, lacks_class: bool, why: Why) -> u64 {
        self.count(from);
        self.choosy |= !wanted.is_like_others;
        self.last += 1;
        let lacks = match why {
            Why::KeyFull => Lacks::Key,
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

    pub(super) fn wait(&mut self, number: u64, waiter: Waiter) {
        match (waiter.lacks, waiter.key) {
            (Lacks::Room, _) => {}
            (Lacks::Key, Some(key)) => *self.key_lacks.entry(key).or_default() += 1,
            _ => self.class_lacks[waiter.class] += 1,
        }
        self.lack_else += usize::from(waiter.lacks != Lacks::Room);
        self.waiting.insert(number, waiter);
    }

    pub(super) fn wait_no_longer(&mut self, number: u64) -> Option<Waiter> {
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

    /// Forgets a sender, which sends or gives up; gives back the credits that were reserved for it.
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

    /// Whether a sender that has been called had waited for its key.
    pub(crate) fn lacked_key(&self, number: u64) -> bool {
        let called = self.called.get(&number);
        called.is_some_and(|(waiter, _)| waiter.lacks == Lacks::Key)
    }

    /// Takes what was reserved for a sender that was called; if it is then refused, it goes on by [`refused`](Self::refused).
    pub(crate) fn take_reserved(&mut self, number: u64) -> u64 {
        let called = self.called.get_mut(&number);
        called.map_or(0, |(_, reserved)| std::mem::take(reserved))
    }

    /// One that was called finds no room all the same: it waits again, where it was.
    pub(crate) fn refused(&mut self, number: u64, lacks_class: bool, why: Why) {
        let Some((mut waiter, _)) = self.called.remove(&number) else {
            return;
        };
        waiter.lacks = match why {
            Why::KeyFull => Lacks::Key,
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
        self.choosy &= self.count > 0;
    }

    /// Whether what room there is is promised to those that wait. One that `waits` itself lets those go first that have been called, too.
    pub(super) fn is_promised(&self, class: usize, key: Option<u64>, waits: bool) -> bool {
        waits && (!self.called.is_empty() || self.round > 1)
            || self.waiting.len() > self.lack_else
            || self.class_lacks[class] > 0
            || key.is_some_and(|key| self.key_lacks.contains_key(&key))
    }

    /// Whether a round is over, or there was none.
    pub(super) fn is_round_over(&self) -> bool {
        let came = self.waiting.len() - self.lack_else;
        self.impatient || self.called.is_empty() && came >= self.round
    }

    /// How many share what room there is.
    pub(crate) fn sharing(&self) -> usize {
        self.count + 1
    }

    pub(super) fn call(&mut self, number: u64, reserved: u64, wakers: &mut Vec<Waker>) {
        if let Some(mut waiter) = self.wait_no_longer(number) {
            wakers.extend(waiter.waker.take());
            self.called.insert(number, (waiter, reserved));
        }
    }
}
