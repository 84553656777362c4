//! The output of plain calls: ports that never wait, and the items without room.

use std::cell::{OnceCell, RefCell};

use super::edge::Wait;
use super::flows::{Flow, Key};
use super::out::Out;
use super::outlet::Outlet;
use super::way::{Along, Lent, Way};

/// Bound, in items: the maximum number in an outbox, which holds the items for which there was no
/// room. A call that sends more of them panics, and should await its sends instead.
const OUTBOX_MAX: usize = 1024;

/// The items that calls to a plain `fn` have sent and that receivers have not yet accepted. After
/// the calls, the instance waits until the receivers have accepted these items. An empty `Held`
/// occupies one word of memory.
#[derive(Default)]
pub struct Held<'a>(OnceCell<Box<RefCell<Waiting<'a>>>>);

#[derive(Default)]
struct Waiting<'a> {
    items: Vec<Wait<'a>>,
    /// The flow of the item for which the last one was sent. Its permit of a limit is not free
    /// before the instance has sent everything.
    flow: Flow,
}

impl<'a> Held<'a> {
    /// Returns whether there was room for everything that was sent.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// Returns the wait until all that was sent has room, if something has none.
    #[inline(always)]
    pub(crate) fn into_wait(mut self) -> Option<Wait<'a>> {
        match self.is_empty() {
            true => None,
            false => Some(Box::pin(async move { self.flush().await })),
        }
    }

    /// Waits until all of the sent items have been accepted.
    pub async fn flush(&mut self) {
        let waiting = self.0.take().unwrap_or_default().into_inner();
        for wait in waiting.items {
            wait.await;
        }
    }

    /// Adds the wait of an item.
    #[cold]
    pub(super) fn push(&self, flow: &Flow, wait: Wait<'a>) {
        let before = self.0.get().map_or(0, |it| it.borrow().items.len());
        // The item that has no room was sent before the panic, so it arrives, too.
        if before <= OUTBOX_MAX {
            self.add(flow, wait);
        }
        assert!(
            before < OUTBOX_MAX,
            "one call sent more than {OUTBOX_MAX} items for which there was no room; \
             expected an `async fn` that awaits each send"
        );
    }

    /// Adds a wait that is not the wait of an item.
    #[cold]
    pub(super) fn add(&self, flow: &Flow, wait: Wait<'a>) {
        let mut waiting = self.0.get_or_init(Box::default).borrow_mut();
        waiting.items.push(wait);
        waiting.flow = flow.clone();
    }
}

impl<T: Send + 'static> Outlet<T> {
    /// Returns this port for use in one call to a plain `fn` that handles an item of this flow.
    #[inline]
    pub fn outbox<'a, 'c>(&'a self, flow: &'c Flow, held: &'c Held<'a>) -> Outbox<'a, 'c, T> {
        self.outbox_by(flow, held, None, 0)
    }

    /// Returns this port for use in one call to a plain `fn`. `W` is the route by which the items
    /// leave the port; without `way`, they take the edges. `port` identifies the port in the types
    /// that macros generate.
    #[inline(always)]
    pub fn outbox_by<'a, 'c, W: Way>(
        &'a self,
        flow: &'c Flow,
        held: &'c Held<'a>,
        way: Lent<'c, W::Open<'a>>,
        port: u64,
    ) -> Outbox<'a, 'c, T, W> {
        Outbox {
            outlet: self,
            flow,
            held,
            way,
            port,
        }
    }
}

/// An output port during a call to a plain `fn`.
pub struct Outbox<'a, 'c, T, W: Way = Along> {
    pub(super) outlet: &'a Outlet<T>,
    pub(super) flow: &'c Flow,
    pub(super) held: &'c Held<'a>,
    pub(super) way: Lent<'c, W::Open<'a>>,
    pub(super) port: u64,
}

impl<'a, 'c, T: Send + 'static, W: Way> Outbox<'a, 'c, T, W> {
    /// Returns this port with a different route.
    #[inline(always)]
    pub(super) fn by<'d, V: Way>(&self, way: Lent<'d, V::Open<'a>>) -> Outbox<'a, 'd, T, V>
    where
        'c: 'd,
    {
        let Self {
            outlet,
            flow,
            held,
            port,
            ..
        } = *self;
        outlet.outbox_by(flow, held, way, port)
    }

    /// Sends an item along the edges.
    #[inline(always)]
    pub(super) fn put(&self, flow: &Flow, item: T) {
        let held = |wait| self.held.push(self.flow, wait);
        self.outlet.put(flow, item, held);
    }
}

impl<T: Send + 'static, W: Way> Out<T> for Outbox<'_, '_, T, W> {
    #[inline(always)]
    fn send(&self, item: T) {
        W::send(self, self.flow, item);
    }

    fn to(&self, flow: impl Into<Key>, item: T) {
        W::send(self, &self.outlet.flow(flow.into(), self.flow), item);
    }

    fn close(&self, flow: impl Into<Key>) {
        self.outlet.close(&flow.into());
    }

    fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        for flow in self.outlet.flows(self.flow) {
            W::send(self, &flow, item.clone());
        }
    }
}
