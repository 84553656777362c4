//! Edges: the way of an item from an output port to the queue of the next instance.

mod to;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub(super) use self::to::To;
use self::to::{Evicts, Offers};
use super::call::{Calls, Place};
use super::delay::Delayed;
use super::dropped::reason;
use super::fields::HashField;
use super::flows::{Flow, Parcel};
use super::keepers::Keepers;
use super::limit::cross;
use super::module::{Never, Ports};
use super::proxy::{Detour, Interpose, Interposed, ends_at, interpose};
use super::shards::{By, join};
use super::tap::Taps;
use super::via::{Via, WhenFull};
use crate::stage::{BuildError, Edges, NotTaken, Reason, Sender, Stage};
use crate::sync::Limit;

/// The wait for the room that an item needs.
pub(crate) type Wait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A function for the items of an instance that ended without being handled. Returns a wait if the
/// receiver of the port `dropped` has no room.
pub(crate) type Ends<I> = Arc<dyn Fn(Parcel<I>, Reason) -> Option<Wait<'static>> + Send + Sync>;

/// An edge. Its parts are in one cache line, so that a look for taps costs no access to memory.
#[repr(align(64))]
pub(crate) struct Edge<T> {
    /// The queue of the receiver, if items can be put there unchanged. This saves an indirect call
    /// for each item.
    direct: Option<Sender<Parcel<Only<T>>>>,
    any: Arc<dyn Push<T>>,
    pub(crate) taps: Taps<T>,
}

/// The items of an instance with one input port, and nothing else that it handles.
type Only<T> = Ports<T, Never>;

impl<T: Send + 'static> Edge<T> {
    /// Sends an item as [`Push::push`] does.
    #[inline(always)]
    pub(crate) fn push(&self, flow: &Flow, item: T) -> Option<Wait<'_>> {
        if self.taps.are_any() {
            return self.push_tapped(flow, item);
        }
        self.push_untapped(flow, item)
    }

    // The item is not borrowed on the usual way, so that it needs no place in memory there.
    #[cold]
    #[inline(never)]
    fn push_tapped(&self, flow: &Flow, item: T) -> Option<Wait<'_>> {
        self.taps.show(flow, &item);
        self.push_untapped(flow, item)
    }

    #[inline(always)]
    fn push_untapped(&self, flow: &Flow, item: T) -> Option<Wait<'_>> {
        let Some(direct) = &self.direct else {
            return self.any.push(flow.clone(), item);
        };
        let make = || Parcel {
            item: Ports::This(item),
            flow: flow.clone(),
        };
        match direct.send_made(make) {
            Ok(()) => None,
            Err((event, why)) => self.not_sent(event.into_inner(), why),
        }
    }

    #[cold]
    #[inline(never)]
    fn not_sent(&self, Parcel { flow, item }: Parcel<Only<T>>, why: NotTaken) -> Option<Wait<'_>> {
        let Ports::This(item) = item;
        if why.can_wait() {
            return self.any.push(flow, item);
        }
        self.any.end(flow, item, reason(why.refusal()))
    }

    /// Returns the [`Calls`] of the edge, if it is a call.
    pub(crate) fn callee(&self) -> Option<&dyn Any> {
        self.any.callee()
    }

    /// Returns the edge without its shortcut.
    pub(crate) fn into_any(self) -> Arc<dyn Push<T>> {
        self.any
    }

    /// Sends an item as [`Push::offer`] does.
    pub(crate) fn offer(&self, flow: Flow, item: T) -> bool {
        if self.taps.are_any() {
            self.taps.show(&flow, &item);
        }
        self.any.offer(flow, item)
    }

    fn new(direct: Option<Sender<Parcel<Only<T>>>>, any: Arc<dyn Push<T>>) -> Self {
        Self {
            direct,
            any,
            taps: Taps::default(),
        }
    }
}

impl<T: Send + 'static> From<Arc<dyn Push<T>>> for Edge<T> {
    fn from(any: Arc<dyn Push<T>>) -> Self {
        Self::new(None, any)
    }
}

/// The sending end of an edge. The type of its receiver is erased.
pub(crate) trait Push<T>: Send + Sync {
    /// Sends an item. If there is no room, returns a future that waits for it. The sender awaits it
    /// before it handles another item.
    fn push(&self, flow: Flow, item: T) -> Option<Wait<'_>>;

    /// Sends an item without waiting. An item without room is dropped, and the receiver counts it
    /// as refused. Returns false in this case.
    #[must_use]
    fn offer(&self, flow: Flow, item: T) -> bool;

    /// Ends an item that cannot take the edge. If the receiver of the port `dropped` has no room,
    /// returns a future that waits for it. The item is lost if the future is dropped.
    fn end(&self, flow: Flow, item: T, why: Reason) -> Option<Wait<'static>>;

    /// Returns the [`Calls`], if this is a call.
    fn callee(&self) -> Option<&dyn Any> {
        None
    }
}

/// An input port with a known item type and an unknown instance type.
pub(crate) trait Inlet<T>: Send + Sync {
    /// Makes an edge to this port.
    fn connect(
        &self,
        edges: &Edges<'_>,
        via: &Via,
        keepers: &Arc<Keepers>,
    ) -> Result<Edge<T>, BuildError>;

    /// Makes an edge from outside of the graph to this port.
    fn outside(&self) -> Arc<dyn Push<T>>;

    /// Puts a stage between an instance and that of this port: it passes the items of this port to
    /// `to`, and all others on.
    fn interpose(&self, detour: &Detour<'_>, to: &dyn Inlet<T>) -> Result<Interposed, BuildError>;
}

/// The input ports of an instance, by name.
pub struct Entry<I> {
    stage: Stage<Parcel<I>>,
    ends: Ends<I>,
    place: Place<I>,
    pub(crate) ports: Vec<InPort>,
}

/// An input port whose item type is erased.
pub(crate) struct InPort {
    pub(crate) name: &'static str,
    pub(crate) item: &'static str,
    /// An `Arc<dyn Inlet<T>>`.
    pub(crate) inlet: Box<Erased>,
    /// Combines this port of several shards into one port.
    pub(crate) join: Join,
    /// Makes a port for edges that cross the border of a set of instances with a limit.
    pub(crate) cross: fn(&Erased, Option<&Limit>) -> Box<Erased>,
    /// The port for items from outside of the graph, if they cross such a border.
    pub(crate) entry: Option<Box<Erased>>,
    /// Interposes a stage that sends to another port; `None` if that port takes other items.
    pub(crate) interpose: fn(&Erased, &Detour<'_>, &Erased) -> Interpose,
    /// Makes the port for what a proxy before this port drops.
    pub(crate) ends: fn(&Erased) -> Box<Erased>,
}

impl InPort {
    /// Erases the type of a port. `hash` chooses the shard of an item by a field.
    pub(crate) fn new<T: Send + 'static>(
        name: &'static str,
        inlet: Arc<dyn Inlet<T>>,
        hash: Option<HashField<T>>,
    ) -> Self {
        Self {
            name,
            item: std::any::type_name::<T>(),
            inlet: Box::new(inlet),
            join: Arc::new(move |inlets, by| join(inlets, by, hash)),
            cross: cross::<T>,
            entry: None,
            interpose: interpose::<T>,
            ends: ends_at::<T>,
        }
    }
}

/// A function that combines several input ports into one.
type Join = Arc<dyn Fn(&[&Erased], &By) -> Result<Box<Erased>, String> + Send + Sync>;

/// An input port whose type is erased.
pub(crate) type Erased = dyn Any + Send + Sync;

impl<I: Send + 'static> Entry<I> {
    pub(crate) fn new(stage: Stage<Parcel<I>>, ends: Ends<I>, place: Place<I>) -> Self {
        Self {
            stage,
            ends,
            place,
            ports: Vec::new(),
        }
    }

    /// Adds a port. `wrap` converts an item of the port into an item of the stage, and `hash`
    /// hashes a field of the port's item.
    pub fn port<T: Send + 'static>(
        &mut self,
        name: &'static str,
        wrap: impl Fn(T) -> I + Copy + Send + Sync + 'static,
        unwrap: fn(I) -> Result<T, I>,
        hash: Option<HashField<T>>,
    ) {
        let inlet: Arc<dyn Inlet<T>> = Arc::new(Typed {
            stage: self.stage.clone(),
            ends: Arc::clone(&self.ends),
            place: Arc::clone(&self.place),
            wrap,
            unwrap,
        });
        self.ports.push(InPort::new(name, inlet, hash));
    }
}

/// An input port with all of its types.
struct Typed<T, I, W> {
    stage: Stage<Parcel<I>>,
    ends: Ends<I>,
    place: Place<I>,
    wrap: W,
    unwrap: fn(I) -> Result<T, I>,
}

/// A function that makes a stage's item from a port's item.
pub(super) trait Wrap<T, I>: Fn(T) -> I + Copy + Send + Sync + 'static {}
impl<T, I, W: Fn(T) -> I + Copy + Send + Sync + 'static> Wrap<T, I> for W {}

impl<T, I, W: Copy> Typed<T, I, W> {
    fn edge<S>(&self, to: S) -> To<S, I, W> {
        To {
            to,
            ends: Arc::clone(&self.ends),
            wrap: self.wrap,
        }
    }
}

impl<T: Send + 'static, I: Send + 'static, W: Wrap<T, I>> Inlet<T> for Typed<T, I, W> {
    fn connect(
        &self,
        edges: &Edges<'_>,
        via: &Via,
        keepers: &Arc<Keepers>,
    ) -> Result<Edge<T>, BuildError> {
        let to = edges.to(&self.stage);
        let mut direct = None;
        let mut any: Arc<dyn Push<T>> = match via.when_full {
            _ if via.is_call => {
                let calls = Calls::new(to.call()?, self.stage.sender(), &self.place);
                Arc::new(self.edge(calls))
            }
            WhenFull::Wait => {
                let queue = to.queue(via.room)?;
                direct = (&queue as &dyn Any).downcast_ref().cloned();
                Arc::new(self.edge(queue))
            }
            WhenFull::Shed => Arc::new(self.edge(Offers(to.offer(via.room)?.0))),
            WhenFull::DropOldest => Arc::new(self.edge(Evicts(to.offer(via.room)?.0))),
        };
        if !via.after.is_zero() {
            direct = None;
            any = Arc::new(Delayed::new(any, via, keepers, self.stage.network.handle()));
        }
        Ok(Edge::new(direct, any))
    }

    fn outside(&self) -> Arc<dyn Push<T>> {
        Arc::new(self.edge(self.stage.sender()))
    }

    fn interpose(&self, detour: &Detour<'_>, to: &dyn Inlet<T>) -> Result<Interposed, BuildError> {
        // A function pointer, since a closure would have a new type at each level of `Typed`.
        let wrap: fn(I) -> I = std::convert::identity;
        let rest = Typed {
            stage: self.stage.clone(),
            ends: Arc::clone(&self.ends),
            place: Arc::clone(&self.place),
            wrap,
            unwrap: Ok,
        };
        detour.interpose((&self.stage, &self.ends), (to, self.unwrap), &rest)
    }
}
