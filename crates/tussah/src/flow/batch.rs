//! Batches: several items for one call of a method.

use std::future::Future;
use std::mem::take;

use parking_lot::Mutex;

use super::dropped::Dropped;
use super::flows::{Flow, Key, Parcel};
use super::keepers::Sends;
use super::module::Module;
use super::out::{AsyncOut, Out};
use super::outbox::Held;
use super::outlet::Outlet;
use crate::stage::{Batch as Events, Event, Reason};

/// Several items for one call to a method that takes `items: &mut Batch<T>` instead of a single
/// item.
///
/// A batch has at most 100 items. The items arrived at the method's port one after the other, with
/// no item for another port in between. If the method also takes the state of a flow, all items
/// belong to that flow.
///
/// The method can take any number of items out of the batch; the items that it leaves return to the
/// head of the queue. If the method takes no item out of the batch, it is called with the same
/// batch again. Items that the method sends belong to the flow of the item that it took last.
///
/// In an `ordered` module, the output of a call follows the output for all earlier items, and
/// precedes the output for the items that the call has left in its batch.
///
/// When the method returns, all items that it has taken count as handled or, if it returns an
/// error, as failed. If the method panics, the items that it has taken go to the `dropped` port.
///
/// # Examples
/// ```
/// use tussah::flow::{Batch, Out, module};
///
/// /// Adds up to ten numbers.
/// #[derive(Default)]
/// struct Sum;
///
/// #[module]
/// impl Sum {
///     fn run(&self, numbers: &mut Batch<u64>, out: &impl Out<u64>) {
///         out.send(numbers.take(10).sum());
///     }
/// }
/// ```
pub struct Batch<'a, T: Send + 'static> {
    items: &'a mut dyn Items<T>,
    /// The flow of the item that was taken last.
    current: &'a Current,
    dropped: &'a Outlet<Dropped<T>>,
    clone: Option<fn(&T) -> T>,
    /// The items that were taken. The flows keep their permits of limits.
    taken: Vec<(Flow, Option<T>)>,
}

/// The items of one port that a batch begins with.
trait Items<T>: Send {
    /// Takes the next item.
    fn next(&mut self) -> Option<Parcel<T>>;

    /// Returns whether there is another item.
    fn has_next(&self) -> bool;

    /// Returns the number of items.
    fn len(&self) -> usize;

    /// Ends the last `taken` items.
    fn end(&mut self, taken: u64, is_handled: bool);
}

/// The items of one port at the head of a batch of events.
pub struct Of<'a, I, T> {
    events: &'a mut Events<Parcel<I>>,
    /// Returns whether an event is an item of the port.
    is: fn(&I) -> bool,
    take: fn(I) -> Option<T>,
}

/// Returns the number of the next item's port, if the method of that port takes a batch.
#[must_use]
pub fn port_of<M: Module>(events: &Events<Parcel<M::Item>>) -> Option<usize> {
    M::port(&events.iter().next()?.item)
}

/// Returns the flow of the next item. In an ordered module, this flow holds the item's ticket.
#[must_use]
pub fn turn_of<I>(events: &Events<Parcel<I>>) -> Flow {
    let next = events.iter().next();
    next.map_or_else(Flow::default, |next| next.flow.clone())
}

/// Takes the next item, if the method of its port takes single items.
pub fn single<M: Module>(events: &mut Events<Parcel<M::Item>>) -> Option<(M::Item, Flow)> {
    let next = events.next_if(|next| M::port(&next.item).is_none());
    next.map(|Parcel { item, flow }| (item, flow))
}

impl<'a, I, T> Of<'a, I, T> {
    /// Creates a sequence of the items at the head of the batch. The sequence ends before the first
    /// item for which `is` returns false; `take` unwraps each item.
    pub fn new(
        events: &'a mut Events<Parcel<I>>,
        is: fn(&I) -> bool,
        take: fn(I) -> Option<T>,
    ) -> Self {
        Self { events, is, take }
    }
}

impl<I: Send, T> Items<T> for Of<'_, I, T> {
    fn next(&mut self) -> Option<Parcel<T>> {
        let Parcel { item, flow } = self.events.next_if(|next| (self.is)(&next.item))?;
        let item = (self.take)(item)?;
        Some(Parcel { item, flow })
    }

    fn has_next(&self) -> bool {
        let next = self.events.iter().next();
        next.is_some_and(|next| (self.is)(&next.item))
    }

    fn len(&self) -> usize {
        let of_port = |event: &&Event<Parcel<I>>| (self.is)(&event.item);
        self.events.iter().take_while(of_port).count()
    }

    fn end(&mut self, taken: u64, is_handled: bool) {
        if !is_handled {
            self.events.fail(taken);
        }
        self.events.settle();
    }
}

/// The flow of the item that was taken last, for use by the output ports. The lock is never
/// contended.
pub type Current = Mutex<Flow>;

impl<'a, T: Send + 'static> Batch<'a, T> {
    /// Creates a batch. If the call does not complete, the items that it has taken go to `dropped`,
    /// as copies made by `clone`.
    #[doc(hidden)]
    pub fn new<I: Send>(
        items: &'a mut Of<'_, I, T>,
        current: &'a Current,
        dropped: &'a Outlet<Dropped<T>>,
        clone: Option<fn(&T) -> T>,
    ) -> Self {
        Self {
            items,
            current,
            dropped,
            clone: clone.filter(|_| dropped.is_connected()),
            taken: Vec::new(),
        }
    }

    /// Returns the number of remaining items. Some of them may expire before the method takes them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether no items remain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.items.has_next()
    }

    /// Returns the flow of the item that was taken last.
    #[must_use]
    pub fn flow(&self) -> Flow {
        self.current.lock().clone()
    }

    /// Records the outcome of the items that were taken.
    #[doc(hidden)]
    pub fn end(mut self, is_handled: bool) {
        let taken = take(&mut self.taken).len() as u64;
        self.items.end(taken, is_handled);
    }
}

impl<T: Send + 'static> Iterator for Batch<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let Parcel { flow, item } = self.items.next()?;
        *self.current.lock() = flow.without_ticket();
        // If the clone panics, the item is reported without a copy.
        self.taken.push((flow, None));
        let copy = self.clone.map(|clone| clone(&item));
        if let Some((_, last)) = self.taken.last_mut() {
            *last = copy;
        }
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.len()))
    }
}

impl<T: Send + 'static> Drop for Batch<'_, T> {
    /// Drops the items that the call has taken and not handled.
    fn drop(&mut self) {
        let reason = match std::thread::panicking() {
            true => Reason::Panicked,
            false => Reason::ShutDown,
        };
        for (flow, item) in self.taken.drain(..) {
            let flow = flow.without_ticket();
            let dropped = Dropped {
                item,
                reason,
                flow: flow.clone(),
            };
            self.dropped.offer(&flow, dropped);
        }
    }
}

impl<T: Send + 'static> Outlet<T> {
    /// Returns this port for use in one call to a plain `fn` that takes a batch.
    pub fn outbox_of<'a, 'c>(
        &'a self,
        current: &'c Current,
        held: &'c Held<'a>,
    ) -> OutboxOf<'a, 'c, T> {
        OutboxOf {
            outlet: self,
            current,
            held,
        }
    }

    /// Returns this port for use in one call to an `async fn` that takes a batch.
    pub fn port_of<'a>(&'a self, current: &'a Current, sends: &'a Sends) -> PortOf<'a, T> {
        PortOf {
            outlet: self,
            current,
            sends,
        }
    }
}

/// An output port, as passed to a plain `fn` that takes a batch.
pub struct OutboxOf<'a, 'c, T> {
    outlet: &'a Outlet<T>,
    current: &'c Current,
    held: &'c Held<'a>,
}

impl<T: Send + 'static> Out<T> for OutboxOf<'_, '_, T> {
    fn send(&self, item: T) {
        let flow = self.current.lock().clone();
        self.outlet.outbox(&flow, self.held).send(item);
    }

    fn to(&self, flow: impl Into<Key>, item: T) {
        let current = self.current.lock().clone();
        self.outlet.outbox(&current, self.held).to(flow, item);
    }

    fn close(&self, flow: impl Into<Key>) {
        self.outlet.outbox(&Flow::default(), self.held).close(flow);
    }

    fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        let current = self.current.lock().clone();
        self.outlet.outbox(&current, self.held).each_flow(item);
    }
}

/// An output port, as passed to an `async fn` that takes a batch.
pub struct PortOf<'a, T> {
    outlet: &'a Outlet<T>,
    current: &'a Current,
    sends: &'a Sends,
}

impl<T: Send + 'static> AsyncOut<T> for PortOf<'_, T> {
    async fn send(&self, item: T) {
        let flow = self.current.lock().clone();
        self.outlet.port(&flow, self.sends).send(item).await;
    }

    fn to(&self, flow: impl Into<Key> + Send, item: T) -> impl Future<Output = ()> + Send {
        let (key, outlet, sends) = (flow.into(), self.outlet, self.sends);
        let current = self.current.lock().clone();
        async move { outlet.port(&current, sends).to(key, item).await }
    }

    fn close(&self, flow: impl Into<Key>) {
        self.outlet.close(&flow.into());
    }

    async fn each_flow(&self, item: T)
    where
        T: Clone,
    {
        let current = self.current.lock().clone();
        self.outlet.port(&current, self.sends).each_flow(item).await;
    }
}
