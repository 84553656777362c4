//! The output ports of an ordered module, which send when the handled item has its turn.

use std::future::Future;

use parking_lot::Mutex;

use super::flows::{Flow, Key};
use super::keepers::Sends;
use super::out::{AsyncOut, Out};
use super::outbox::Held;
use super::outlet::Outlet;

impl<T: Send + 'static> Outlet<T> {
    /// Opens the port for a plain call of an ordered module.
    pub fn later<'a, 'c>(&'a self, flow: &'c Flow, held: &'c Held<'a>) -> Later<'a, 'c, T> {
        Later {
            outlet: self,
            flow,
            held,
        }
    }

    /// Opens the port for an async call of an ordered module. `turn` holds the item's ticket.
    pub fn in_turn<'a>(
        &'a self,
        flow: &'a Flow,
        turn: &'a Flow,
        sends: &'a Sends,
    ) -> InTurn<'a, T> {
        InTurn {
            outlet: self,
            flow,
            turn,
            sends,
            closed: Mutex::default(),
        }
    }
}

/// An output port during a plain call of an ordered module. It sends when the instance flushes the
/// held items.
pub struct Later<'a, 'c, T> {
    outlet: &'a Outlet<T>,
    flow: &'c Flow,
    held: &'c Held<'a>,
}

impl<'a, T: Send + 'static> Later<'a, '_, T> {
    fn push(&self, send: impl Future<Output = ()> + Send + 'a) {
        self.held.push(self.flow, Box::pin(send));
    }
}

impl<T: Send + 'static> Out<T> for Later<'_, '_, T> {
    fn send(&self, item: T) {
        let (outlet, flow) = (self.outlet, self.flow.clone());
        self.push(async move { outlet.deliver(&flow, item).await });
    }

    fn to(&self, flow: impl Into<Key>, item: T) {
        let (outlet, key, flow) = (self.outlet, flow.into(), self.flow.clone());
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
        let (outlet, flow) = (self.outlet, self.flow.clone());
        self.push(async move {
            for flow in outlet.flows(&flow) {
                let copy = item.clone();
                outlet.deliver(&flow, copy).await;
            }
        });
    }
}

/// An output port during an async call of an ordered module. Sending waits for the item's turn.
pub struct InTurn<'a, T: Send + 'static> {
    outlet: &'a Outlet<T>,
    flow: &'a Flow,
    turn: &'a Flow,
    sends: &'a Sends,
    /// The names of the flows to close when the item has its turn.
    closed: Mutex<Vec<Key>>,
}

impl<T: Send + 'static> InTurn<'_, T> {
    /// Waits for the item's turn if there are flows to close, and closes them.
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
        self.outlet.port(self.flow, self.sends).send(item).await;
    }

    async fn to(&self, flow: impl Into<Key> + Send, item: T) {
        let key = flow.into();
        self.turn().await;
        self.outlet.port(self.flow, self.sends).to(key, item).await;
    }

    fn close(&self, flow: impl Into<Key>) {
        self.closed.lock().push(flow.into());
    }

    async fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        self.turn().await;
        for flow in self.outlet.flows(self.flow) {
            self.outlet.port(&flow, self.sends).send(item.clone()).await;
        }
    }
}
