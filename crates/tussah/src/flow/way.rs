//! Routes for the items that plain calls send: along the edges, or by static calls into the next
//! modules of a fused chain. The compiler can inline the static calls.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::marker::PhantomData;

use tussah_core::caught;
pub use tussah_weave::port_number;

use super::call::{Called, Calls};
use super::flows::Flow;
use super::module::{Module, Never, Ports};
use super::outbox::{Held, Outbox};
use super::outlet::Outs;

/// The route of the items that a plain `fn` sends.
pub trait Way: Send + Sync + 'static {
    /// True if some items bypass the edges.
    const IS_FUSED: bool;

    /// The instances that can be called directly during a run of calls. A run never waits. The
    /// default value contains no instances, so all items take the edges.
    type Open<'a>: Default;

    /// Begins a run of calls to a module with these ports.
    fn open<O: Outs>(outs: &O) -> Self::Open<'_>;

    /// Sends an item in a flow.
    fn send<'a, T: Send + 'static>(outbox: &Outbox<'a, '_, T, Self>, flow: &Flow, item: T)
    where
        Self: Sized;
}

/// The route along the edges.
pub struct Along;

impl Way for Along {
    const IS_FUSED: bool = false;

    type Open<'a> = ();

    fn open<O: Outs>(_outs: &O) {}

    #[inline(always)]
    fn send<'a, T: Send + 'static>(outbox: &Outbox<'a, '_, T, Self>, flow: &Flow, item: T) {
        outbox.put(flow, item);
    }
}

/// A route that passes the items of one port to the module `M` by direct calls, and sends all other
/// items along the edges. The items that `M` sends take the route `W`. `Head` is the first module
/// of a fused chain, or [`Each`] for an edge `via call`.
///
/// The type only predicts that the port's edge is a call to an instance of `M`. If the edge is not
/// a call to an instance of `M`, all items of a run of calls take the edge. Items also take the
/// edge if the edge is tapped, or if the instance has a proxy, has been swapped, or is closed. A
/// wrong prediction therefore costs time, but does not change the result.
pub struct Fuse<const PORT: u64, Head, M, W>(PhantomData<fn(Head, M, W)>);

/// The start of a chain of calls in which each call enters its instance by itself.
pub struct Each;

/// The start of a chain.
pub trait Head: 'static {
    /// True if each call must enter its instance by itself. Otherwise a run of calls enters the
    /// instance once, and the servlets of a head that handles several items at a time would wait
    /// for each other.
    const ENTERS_EACH: bool;
}

impl<M: Module> Head for M {
    const ENTERS_EACH: bool = !M::IS_ALONE;
}

/// Other senders, and the queue of the instance, can then use it between two calls.
impl Head for Each {
    const ENTERS_EACH: bool = true;
}

impl<const PORT: u64, H: Head, M: Module, W: Way> Fuse<PORT, H, M, W> {
    /// True if each call enters the instance by itself. A tick that came while a call waits for
    /// room could overtake what the call has sent.
    const ENTERS_EACH: bool = H::ENTERS_EACH || M::TICK.is_some();
}

impl<const PORT: u64, H: Head, M: Module, W: Way> Way for Fuse<PORT, H, M, W> {
    const IS_FUSED: bool = true;

    type Open<'a> = Next<'a, M, W>;

    fn open<O: Outs>(outs: &O) -> Next<'_, M, W> {
        Next::find(outs.callee(PORT), Self::ENTERS_EACH).unwrap_or_default()
    }

    #[inline(always)]
    fn send<'a, T: Send + 'static>(outbox: &Outbox<'a, '_, T, Self>, flow: &Flow, item: T) {
        // A module with several ports has items of another type.
        let is_only = TypeId::of::<Ports<T, Never>>() == TypeId::of::<M::Item>();
        let Some(way) = outbox.way.filter(|_| outbox.port == PORT && is_only) else {
            return outbox.put(flow, item);
        };
        // A chain has an end, so no call borrows this twice.
        let next = &mut **way.borrow_mut();
        let mut entered;
        let place = match Self::ENTERS_EACH {
            true => {
                entered = next.enter(outbox.held);
                &mut entered
            }
            false => &mut next.guard,
        };
        let Some(guard) = place else {
            return outbox.put(flow, item);
        };
        let mut item = Some(Ports::<T, Never>::This(item));
        let item = (&mut item as &mut dyn Any).downcast_mut::<Option<M::Item>>();
        let item = item.and_then(Option::take);
        let item = item.expect("the types are the same");
        next.count += 1;
        let call = || M::Call::handle::<W>(guard, item, flow, outbox.held, Some(&mut next.way));
        let is_whole = caught(call).is_some();
        if !is_whole || !outbox.held.is_empty() {
            let sent = (outbox.held, outbox.flow);
            leave::<M>(next.callee, place, is_whole, Self::ENTERS_EACH, sent);
        }
    }
}

/// A route by which the items of the port `PORT` take the route `A`, and all other items take the
/// route `B`.
pub struct Fork<const PORT: u64, A, B>(PhantomData<fn(A, B)>);

impl<const PORT: u64, A: Way, B: Way> Way for Fork<PORT, A, B> {
    const IS_FUSED: bool = A::IS_FUSED || B::IS_FUSED;

    type Open<'a> = (A::Open<'a>, B::Open<'a>);

    fn open<O: Outs>(outs: &O) -> Self::Open<'_> {
        (A::open(outs), B::open(outs))
    }

    #[inline(always)]
    fn send<'a, T: Send + 'static>(outbox: &Outbox<'a, '_, T, Self>, flow: &Flow, item: T) {
        let mut open = outbox.way.map(RefCell::borrow_mut);
        let open = open.as_mut();
        match outbox.port == PORT {
            true => {
                let way = open.map(|open| RefCell::new(&mut open.0));
                A::send(&outbox.by(way.as_ref()), flow, item);
            }
            false => {
                let way = open.map(|open| RefCell::new(&mut open.1));
                B::send(&outbox.by(way.as_ref()), flow, item);
            }
        }
    }
}

/// The open part of a route that a call borrows; `None` if all items take the edges.
pub(super) type Lent<'c, O> = Option<&'c RefCell<&'c mut O>>;

/// The right to use the instance of a module.
type Guard<'a, M> = <<M as Module>::Call as Called<M>>::Guard<'a>;

/// The next instance of a fused chain, during a run of calls.
pub struct Next<'a, M: Module, W: Way> {
    /// The right to call the instance, if the run has entered it.
    guard: Option<Guard<'a, M>>,
    callee: Option<Callee<'a, M>>,
    way: W::Open<'a>,
    /// The number of calls that the statistics of the instance lack.
    count: u64,
}

/// The instance at the end of an edge that is a call.
type Callee<'a, M> = (&'a Calls<<M as Module>::Item>, &'a <M as Module>::Call);

impl<M: Module, W: Way> Default for Next<'_, M, W> {
    fn default() -> Self {
        Self {
            guard: None,
            callee: None,
            way: W::Open::default(),
            count: 0,
        }
    }
}

impl<'a, M: Module, W: Way> Next<'a, M, W> {
    /// Returns the instance at the end of an edge that is a call.
    fn find(callee: Option<&'a dyn Any>, enters_each: bool) -> Option<Self> {
        let calls: &Calls<M::Item> = callee?.downcast_ref()?;
        let instance: &M::Call = calls.instance().filter(|_| calls.is_free())?;
        let guard = match enters_each {
            true => None,
            false => Some(instance.enter()?),
        };
        Some(Self {
            guard,
            callee: Some((calls, instance)),
            way: W::open(instance.outs()),
            count: 0,
        })
    }

    /// Enters the instance for one call, unless something that was sent before waits for room.
    #[inline(always)]
    fn enter(&self, held: &Held<'a>) -> Option<Guard<'a, M>> {
        let (_, instance) = self.callee.filter(|_| held.is_empty())?;
        instance.enter()
    }
}

/// Ends a call that panicked, or that has sent something that waits for room. In the second case,
/// the following items wait for it.
#[cold]
#[inline(never)]
fn leave<'a, M: Module>(
    callee: Option<Callee<'a, M>>,
    place: &mut Option<Guard<'a, M>>,
    is_whole: bool,
    enters_each: bool,
    (held, flow): (&Held<'a>, &Flow),
) {
    let (calls, instance) = callee.expect("the instance was called");
    if let (false, Some(guard)) = (is_whole, &mut *place) {
        instance.broke(guard);
    }
    if !held.is_empty() {
        // The instance handles nothing else before what it sent has arrived.
        let guard = place.take().filter(|_| enters_each);
        let entered = Box::pin(async move { drop(guard) });
        held.add(flow, calls.waiting(entered));
    } else if !calls.is_free() {
        *place = None;
    }
}

impl<M: Module, W: Way> Drop for Next<'_, M, W> {
    fn drop(&mut self) {
        if let Some((calls, _)) = self.callee {
            calls.count(self.count);
        }
    }
}
