//! A module that pairs the items of two inputs.

use std::collections::VecDeque;
use std::marker::PhantomData;

use crate::flow::{Out, module};

/// Combines the items of two inputs into pairs. In each flow, the module pairs the first item of
/// each input, then the second item of each, and so on.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `room` | count from 1 to 1,024, default 1,024 | the maximum number of items in a flow that wait for a partner |
///
/// | port | items | meaning |
/// |---|---|---|
/// | input `run` | `A` | the first items of the pairs |
/// | input `other` | `B` | the second items of the pairs |
/// | output `out` | `(A, B)` | the pairs |
/// | outputs `alone` and `other_alone`, optional | `A` and `B` | the items without a partner |
///
/// An item remains without a partner if its flow ends before a partner arrives. If more than `room`
/// items of one input wait in a flow, the oldest of them also remains without a partner. The module
/// handles the items of a flow one at a time.
#[module]
pub struct Join<A, B> {
    room: usize,
    of: PhantomData<fn(A, B)>,
}

/// The items of one flow that wait for partners in a [`Join`].
pub struct Waiting<A, B> {
    these: VecDeque<A>,
    others: VecDeque<B>,
}

impl<A, B> Default for Waiting<A, B> {
    fn default() -> Self {
        let (these, others) = (VecDeque::new(), VecDeque::new());
        Self { these, others }
    }
}

/// Bound, in items: the maximum number of items in a flow that wait for a partner. All of these
/// items fit into an outbox when the flow ends.
const ROOM_MAX: usize = 1024;

#[module]
impl<A: Clone + Send + 'static, B: Clone + Send + 'static> Join<A, B> {
    fn init(room: Option<usize>) -> Result<Self, String> {
        let room = room.unwrap_or(ROOM_MAX);
        if !(1..=ROOM_MAX).contains(&room) {
            return Err(format!("`room` is {room}: expected 1 to {ROOM_MAX}"));
        }
        let of = PhantomData;
        Ok(Self { room, of })
    }

    fn run(
        &self,
        item: A,
        waiting: &mut Waiting<A, B>,
        out: &impl Out<(A, B)>,
        alone: Option<&impl Out<A>>,
    ) {
        if let Some(other) = waiting.others.pop_front() {
            return out.send((item, other));
        }
        waiting.these.push_back(item);
        if waiting.these.len() > self.room {
            leave(waiting.these.pop_front(), alone);
        }
    }

    #[port]
    fn other(
        &self,
        item: B,
        waiting: &mut Waiting<A, B>,
        out: &impl Out<(A, B)>,
        other_alone: Option<&impl Out<B>>,
    ) {
        if let Some(this) = waiting.these.pop_front() {
            return out.send((this, item));
        }
        waiting.others.push_back(item);
        if waiting.others.len() > self.room {
            leave(waiting.others.pop_front(), other_alone);
        }
    }

    fn end(
        &self,
        waiting: Waiting<A, B>,
        alone: Option<&impl Out<A>>,
        other_alone: Option<&impl Out<B>>,
    ) {
        leave(waiting.these, alone);
        leave(waiting.others, other_alone);
    }
}

fn leave<T>(items: impl IntoIterator<Item = T>, alone: Option<&impl Out<T>>) {
    let Some(alone) = alone else { return };
    for item in items {
        alone.send(item);
    }
}
