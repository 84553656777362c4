//! The ways of what plain calls send: along the edges, or into static calls of the next modules of
//! a fused chain, which the compiler can inline.

use std::any::{Any, TypeId};
use std::cell::{Cell, OnceCell, RefCell};
use std::marker::PhantomData;

use super::call::{Called, Calls};
use super::flows::Flow;
use super::module::{Module, Never, Ports};
use super::outbox::Outbox;
use super::outlet::Outlet;

/// The way of what a plain call sends.
pub trait Way: Send + Sync + 'static {
    /// The callees during a run of calls, which never waits.
    type Open<'a>;

    /// Begins a run of calls. `is_alone` is true if the instance handles nothing else meanwhile.
    fn open<'a>(is_alone: bool) -> Self::Open<'a>;

    /// Sends an item in a flow.
    fn send<'a, T: Send + 'static>(outbox: &Outbox<'a, '_, T, Self>, flow: &Flow, item: T)
    where
        Self: Sized;
}

/// The way along the edges.
pub struct Along;

impl Way for Along {
    type Open<'a> = ();

    fn open<'a>(_is_alone: bool) -> Self::Open<'a> {}

    #[inline(always)]
    fn send<'a, T: Send + 'static>(outbox: &Outbox<'a, '_, T, Self>, flow: &Flow, item: T) {
        outbox.put(flow, item);
    }
}

/// The way into a call of the module `M` for the items of one port, which has a number, and along
/// the edges for all other items. What `M` sends takes the way `W`.
///
/// This is only a guess about the graph. An item takes the edge if the edge is not a call of such
/// an instance. It also does so during a trace or a tap, and if the instance has a proxy, was
/// swapped or is closed. A wrong guess therefore costs time, but the result is the same.
pub struct Fuse<const PORT: u64, M, W>(PhantomData<fn() -> (M, W)>);

impl<const PORT: u64, M: Module, W: Way> Way for Fuse<PORT, M, W> {
    type Open<'a> = Next<'a, M, W>;

    fn open<'a>(is_alone: bool) -> Next<'a, M, W> {
        Next {
            is_alone,
            link: OnceCell::new(),
        }
    }

    #[inline(always)]
    fn send<'a, T: Send + 'static>(outbox: &Outbox<'a, '_, T, Self>, flow: &Flow, item: T) {
        match outbox.way.link(outbox.outlet) {
            Some(link) if outbox.port == PORT && link.is_usual(outbox.outlet) => {
                link.send(outbox, flow, item);
            }
            _ => outbox.put(flow, item),
        }
    }
}

/// The next instance of a fused chain, during a run of calls.
pub struct Next<'a, M: Module, W: Way> {
    is_alone: bool,
    link: OnceCell<Option<Link<'a, M, W>>>,
}

impl<'a, M: Module, W: Way> Next<'a, M, W> {
    #[inline(always)]
    fn link<T: Send + 'static>(&self, outlet: &'a Outlet<T>) -> Option<&Link<'a, M, W>> {
        let find = || Link::find(outlet, self.is_alone);
        self.link.get_or_init(find).as_ref()
    }
}

/// An instance that was found, and may be called.
struct Link<'a, M: Module, W: Way> {
    calls: &'a Calls<M::Item>,
    instance: &'a M::Call,
    guard: RefCell<<M::Call as Called<M>>::Guard<'a>>,
    way: W::Open<'a>,
    /// The number of calls that the statistics of the instance lack.
    count: Cell<u64>,
}

impl<'a, M: Module, W: Way> Link<'a, M, W> {
    /// Finds the instance at the end of the only edge of a port.
    #[cold]
    fn find<T: Send + 'static>(outlet: &'a Outlet<T>, is_alone: bool) -> Option<Self> {
        // A module with several ports has items of another type.
        if TypeId::of::<Ports<T, Never>>() != TypeId::of::<M::Item>() {
            return None;
        }
        let calls: &Calls<M::Item> = outlet.edge()?.callee()?.downcast_ref()?;
        let instance: &M::Call = calls.instance()?;
        Some(Self {
            calls,
            instance,
            guard: RefCell::new(instance.enter(is_alone)?),
            way: W::open(is_alone),
            count: Cell::new(0),
        })
    }

    /// Returns whether the instance can be called now, and nothing taps the edge.
    #[inline(always)]
    fn is_usual<T: Send + 'static>(&self, outlet: &Outlet<T>) -> bool {
        self.calls.is_usual() && outlet.edge().is_some_and(|edge| !edge.taps.are_any())
    }

    #[inline(always)]
    fn send<T: Send + 'static, V: Way>(&self, outbox: &Outbox<'a, '_, T, V>, flow: &Flow, item: T) {
        let mut item = Some(Ports::<T, Never>::This(item));
        let item = (&mut item as &mut dyn Any).downcast_mut::<Option<M::Item>>();
        let item = item.and_then(Option::take);
        let item = item.expect("`find` has compared the types");
        self.count.set(self.count.get() + 1);
        let guard = &mut *self.guard.borrow_mut();
        if let Some(wait) = self.instance.handle::<W>(guard, item, flow, &self.way) {
            outbox.held.push(outbox.flow, self.calls.waiting(wait));
        }
    }
}

impl<M: Module, W: Way> Drop for Link<'_, M, W> {
    fn drop(&mut self) {
        self.calls.count(self.count.get());
    }
}
