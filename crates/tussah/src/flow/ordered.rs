//! The output ports of an ordered module, which send when the handled item has its turn.

use std::future::Future;

use super::flows::{Flow, Key};
use super::out::{AsyncOut, Out};
use super::outlet::{Held, Outlet};

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
    pub fn in_turn<'a>(&'a self, flow: &'a Flow, turn: &'a Flow) -> InTurn<'a, T> {
        InTurn {
            outlet: self,
            flow,
            turn,
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
        self.push(async move { outlet.port(&flow).send(item).await });
    }

    fn to(&self, flow: impl Into<Key>, item: T) {
        let (outlet, key) = (self.outlet, flow.into());
        self.push(async move { outlet.port(&Flow::default()).to(key, item).await });
    }

    fn close(&self, flow: impl Into<Key>) {
        let (outlet, key) = (self.outlet, flow.into());
        self.push(async move { outlet.port(&Flow::default()).close(key) });
    }

    fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        let copies = std::iter::repeat_with(move || item.clone());
        for (flow, item) in self.outlet.flows().into_iter().zip(copies) {
            let outlet = self.outlet;
            self.push(async move { outlet.port(&flow).send(item).await });
        }
    }
}

/// An output port during an async call of an ordered module. Sending waits for the item's turn.
pub struct InTurn<'a, T> {
    outlet: &'a Outlet<T>,
    flow: &'a Flow,
    turn: &'a Flow,
}

impl<T: Send + 'static> AsyncOut<T> for InTurn<'_, T> {
    async fn send(&self, item: T) {
        self.turn.turn().await;
        self.outlet.port(self.flow).send(item).await;
    }

    async fn to(&self, flow: impl Into<Key> + Send, item: T) {
        let key = flow.into();
        self.turn.turn().await;
        self.outlet.port(self.flow).to(key, item).await;
    }

    fn close(&self, flow: impl Into<Key>) {
        self.outlet.port(self.flow).close(flow);
    }

    async fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        self.turn.turn().await;
        for flow in self.outlet.flows() {
            self.outlet.port(&flow).send(item.clone()).await;
        }
    }
}
