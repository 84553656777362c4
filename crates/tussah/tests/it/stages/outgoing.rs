//! The time at which events that a handler sends are handed over.

use tussah::stage::{Batch, BuildError, Event, Network};
use tussah::yield_now;

use super::support::{Door, Noted, adds_up, by};
use crate::runtime;

/// The receiver is busy, so that what is sent is collected. Somebody may wait for the callback of
/// an event, or its deadline may pass; a plain one is handed over when the poll of the handler
/// ends.
#[test]
fn events_with_extra_data_are_handed_over_at_once() -> Result<(), BuildError> {
    runtime(1).block_on_spawned(async {
        let network = Network::new("outgoing");
        let (door, seen) = (Door::new(), Noted::default());
        let at = door.clone();
        let last = network.stage("last").servlets(1).manual();
        let last = last.handler(move |_| {
            Ok(by(move |batch: &mut Batch<u32>| {
                let at = at.clone();
                Box::pin(async move {
                    batch.drain().for_each(drop);
                    at.pass().await;
                })
            }))
        })?;
        last.sender().try_send(0).expect("there is room");
        door.until(1).await;
        let (look, note) = (last.clone(), seen.clone());
        let first = network.stage("first").handler(|edges| {
            let to = edges.to(&last).queue(1)?;
            Ok(by(move |batch: &mut Batch<u32>| {
                let (to, look, note) = (to.clone(), look.clone(), note.clone());
                Box::pin(async move {
                    batch.next();
                    let told = Event::new(2).on_drop(|_| ());
                    for event in [Event::new(1), told, Event::new(3)] {
                        to.try_send(event).expect("there is room");
                        note.add(look.stats().queued);
                    }
                    yield_now().await;
                    note.add(look.stats().queued);
                })
            }))
        })?;
        first.sender().try_send(0).expect("there is room");
        seen.until(4).await;
        assert_eq!(seen.take(), [0, 2, 2, 3]);
        door.let_through(10);
        network.drain().await;
        adds_up(&last);
        Ok(())
    })
}
