//! Tests that count the sweeps of cancelled events.

use std::sync::Weak;

use super::{BURIED_PART, CancelHandle, Spot};
use crate::stage::event::{Classes, Event};
use crate::stage::queue::{ByKey, Lanes, Queue};
use crate::stage::run::Shared;

const EVENTS: usize = 10_000;

/// A queue with events, each with its part of the queue.
fn filled(mut queue: Queue<usize>) -> (Queue<usize>, Vec<(CancelHandle, usize)>) {
    let mut handles = Vec::new();
    for n in 0..EVENTS {
        let (event, handle) = Event::new(n).cancellable();
        queue.look_at(&event);
        let part = queue.push(event).ok().expect("there is room");
        let home: Weak<Shared<usize>> = Weak::new();
        let spot = Spot {
            home,
            part,
            class: 0,
            credits: 1,
        };
        let cancel = handle.0.as_ref().expect("it is not detached");
        assert!(cancel.cell.queued(spot).is_none());
        handles.push((handle, part));
    }
    (queue, handles)
}

/// Buries the events in an order, and returns the number of events that the sweeps checked.
fn looks(queue: Queue<usize>, order: impl Fn(usize) -> usize) -> usize {
    let (mut queue, handles) = filled(queue);
    let (mut looks, mut left) = (0, EVENTS);
    for n in 0..EVENTS {
        let (handle, part) = &handles[order(n)];
        let cancel = handle.0.as_ref().expect("it is not detached");
        assert!(handle.cancel() && cancel.cell.bury(1).is_some());
        queue.bury(*part);
        let before = left;
        for event in queue.sweep(*part) {
            left -= 1;
            assert!(event.is_buried());
            queue.removed_buried(*part);
        }
        if left < before {
            looks += before;
        }
    }
    assert_eq!(left, 0);
    looks
}

#[test]
fn each_cancelled_event_costs_a_few_looks() {
    let orders: [fn(usize) -> usize; 3] = [
        |n| n,
        |n| EVENTS - 1 - n,
        // Each event is buried once, as the factor has no divisor in common with their number.
        |n| n * 7919 % EVENTS,
    ];
    for order in orders {
        let lanes = Queue::Lanes(Lanes::new(Classes::by_priority(1)));
        assert!(looks(lanes, order) <= BURIED_PART * EVENTS);
        let one_key = ByKey::new(|_: &usize| (), Some(EVENTS), Classes::by_priority(1));
        assert!(looks(Queue::Keyed(Box::new(one_key)), order) <= BURIED_PART * EVENTS);
    }
}
