//! The output ports of an ordered module, which send when the handled item has its turn.

use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures_util::FutureExt as _;
use parking_lot::Mutex;

use super::batch::Current;
use super::flows::{Flow, Key};
use super::keepers::Sends;
use super::out::{AsyncOut, Out};
use super::outbox::Held;
use super::outlet::Outlet;
use crate::stage::hand_over;

/// Sends the output of a call to a plain `fn` once the module has finished all earlier items.
pub async fn flush_in_turn(turn: &Flow, held: &mut Held<'_>) {
    if held.is_empty() {
        return;
    }
    turn.turn().await;
    held.flush().await;
    // What the worker has collected has to arrive before that of the next item.
    hand_over();
}

/// Awaits a call, and then delivers the items that the call has sent, including those sent before a
/// panic.
pub async fn handed_over<T>(call: impl Future<Output = T>) -> T {
    let result = AssertUnwindSafe(call).catch_unwind().await;
    hand_over();
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// The flow to which the output of a call belongs.
#[derive(Clone, Copy)]
enum Of<'a> {
    Item(&'a Flow),
    /// The flow of the item that the call took last out of its batch.
    Last(&'a Current),
}

impl Of<'_> {
    fn flow(self) -> Flow {
        match self {
            Self::Item(flow) => flow.clone(),
            Self::Last(current) => current.lock().clone(),
        }
    }
}

impl<T: Send + 'static> Outlet<T> {
    /// Returns this port of an ordered module for use in one call to a plain `fn`.
    pub fn later<'a, 'c>(&'a self, flow: &'c Flow, held: &'c Held<'a>) -> Later<'a, 'c, T> {
        Later {
            outlet: self,
            of: Of::Item(flow),
            held,
        }
    }

    /// Returns this port of an ordered module for use in one call to a plain `fn` that takes a
    /// batch.
    pub fn later_of<'a, 'c>(
        &'a self,
        current: &'c Current,
        held: &'c Held<'a>,
    ) -> Later<'a, 'c, T> {
        Later {
            outlet: self,
            of: Of::Last(current),
            held,
        }
    }

    /// Returns this port of an ordered module for use in one call to an `async fn`. `turn` holds
    /// the item's ticket.
    pub fn in_turn<'a>(
        &'a self,
        flow: &'a Flow,
        turn: &'a Flow,
        sends: &'a Sends,
    ) -> InTurn<'a, T> {
        self.open_in_turn(Of::Item(flow), turn, sends)
    }

    /// Returns this port of an ordered module for use in one call to an `async fn` that takes a
    /// batch. `turn` holds the ticket of the first item.
    pub fn in_turn_of<'a>(
        &'a self,
        current: &'a Current,
        turn: &'a Flow,
        sends: &'a Sends,
    ) -> InTurn<'a, T> {
        self.open_in_turn(Of::Last(current), turn, sends)
    }

    fn open_in_turn<'a>(&'a self, of: Of<'a>, turn: &'a Flow, sends: &'a Sends) -> InTurn<'a, T> {
        InTurn {
            outlet: self,
            of,
            turn,
            sends,
            closed: Mutex::default(),
        }
    }
}

/// An output port of an ordered module during a call to a plain `fn`. The port holds the items sent
/// to it until the instance flushes them.
pub struct Later<'a, 'c, T> {
    outlet: &'a Outlet<T>,
    of: Of<'c>,
    held: &'c Held<'a>,
}

impl<'a, T: Send + 'static> Later<'a, '_, T> {
    fn push(&self, send: impl Future<Output = ()> + Send + 'a) {
        self.held.push(&self.of.flow(), Box::pin(send));
    }
}

impl<T: Send + 'static> Out<T> for Later<'_, '_, T> {
    fn send(&self, item: T) {
        let (outlet, flow) = (self.outlet, self.of.flow());
        self.push(async move { outlet.deliver(&flow, item).await });
    }

    fn to(&self, flow: impl Into<Key>, item: T) {
        let (outlet, key, flow) = (self.outlet, flow.into(), self.of.flow());
        self.push(async move { outlet.deliver(&outlet.flow(key, &flow), item).await });
    }

    fn close(&self, flow: impl Into<Key>) {
        let (outlet, key) = (self.outlet, flow.into());
        self.push(async move { outlet.close(&key) });
    }

    fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        // In its turn: earlier items open and close flows, too.
        let (outlet, flow) = (self.outlet, self.of.flow());
        self.push(async move {
            for flow in outlet.flows(&flow) {
                let copy = item.clone();
                outlet.deliver(&flow, copy).await;
            }
        });
    }
}

/// An output port of an ordered module during a call to an `async fn`. Each send waits until the
/// module has finished all earlier items.
pub struct InTurn<'a, T: Send + 'static> {
    outlet: &'a Outlet<T>,
    of: Of<'a>,
    turn: &'a Flow,
    sends: &'a Sends,
    /// The names of the flows to close when the item has its turn.
    closed: Mutex<Vec<Key>>,
}

impl<T: Send + 'static> InTurn<'_, T> {
    /// Closes the flows that the call has marked for closing, once the module has finished all
    /// earlier items.
    pub async fn end(&self) {
        if !self.closed.lock().is_empty() {
            self.turn().await;
        }
    }

    /// Waits for the item's turn, and does what had to wait for it.
    async fn turn(&self) {
        self.turn.turn().await;
        self.close_all();
    }

    fn close_all(&self) {
        let closed = std::mem::take(&mut *self.closed.lock());
        closed.iter().for_each(|key| self.outlet.close(key));
    }
}

impl<T: Send + 'static> Drop for InTurn<'_, T> {
    /// Closes the flows even if the call does not complete.
    fn drop(&mut self) {
        self.close_all();
    }
}

impl<T: Send + 'static> AsyncOut<T> for InTurn<'_, T> {
    async fn send(&self, item: T) {
        self.turn().await;
        self.outlet
            .port(&self.of.flow(), self.sends)
            .send(item)
            .await;
    }

    async fn to(&self, flow: impl Into<Key> + Send, item: T) {
        let key = flow.into();
        self.turn().await;
        self.outlet
            .port(&self.of.flow(), self.sends)
            .to(key, item)
            .await;
    }

    fn close(&self, flow: impl Into<Key>) {
        self.closed.lock().push(flow.into());
    }

    async fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        self.turn().await;
        for flow in self.outlet.flows(&self.of.flow()) {
            self.outlet.port(&flow, self.sends).send(item.clone()).await;
        }
    }
}
