//! Proxies: stages that are inserted between two running stages, and removed again.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Weak};

use tussah_core::Notify;

use super::outgoing;
use super::sender::Sender;
use crate::stage::error::BuildError;
use crate::stage::event::{Batch, Event, NotTaken, Refusal};
use crate::stage::network::{ErasedHost, Stage};
use crate::stage::run::{Gone, Inner, Shared};
use crate::stage::state::How;

/// The detour through a proxy that events from one stage take.
pub(crate) struct Route<E> {
    pub(crate) from: u32,
    /// The proxy's number.
    pub(crate) by: u32,
    /// Weak, because the proxy's handler sends to the stage that owns this route.
    proxy: Weak<Shared<E>>,
    /// The number of sends and calls that are taking this route.
    passing: usize,
    /// Set while the proxy is being removed: senders that can wait do so until this is notified.
    held: Option<Arc<Notify>>,
    /// Notified when no event takes the route any longer.
    passed: Arc<Notify>,
}

/// A proxy between two stages. Dropping this value leaves the proxy in place.
#[must_use = "the proxy is taken away by `remove`"]
pub struct Between<E> {
    proxy: Stage<E>,
    from: u32,
    from_name: Arc<str>,
    to: Stage<E>,
    /// The number that holds the edges to the proxy.
    holder: u32,
}

impl<E: Send + 'static, C> Stage<E, C> {
    /// Inserts this stage as a proxy between two running stages: events that `from` sends to `to`,
    /// or passes to it in a call, go to this stage instead. This stage's handler can inspect,
    /// change and drop these events, and sends the rest to `to` over an edge of this stage. No
    /// event is lost, and each sender's events stay in order. But after the proxy is removed, calls
    /// to `to` can overtake events that the proxy queued there. A proxy gets events one by one. A
    /// proxy can serve several pairs of stages, and stand between another proxy and its target.
    ///
    /// # Errors
    /// Returns an error if `to` is in another network, if `from` has no edge to `to`, or if this
    /// edge already has a proxy. Also returns an error if a cycle would form, or if the proxy's
    /// handler blocks and `from` has a call edge to `to`.
    ///
    /// # Examples
    /// ```
    /// use tussah::stage::{Batch, Handler, Network, Sender};
    ///
    /// /// Prints each event, and sends it on.
    /// struct Spy(Sender<u32>);
    ///
    /// impl Handler for Spy {
    ///     type Event = u32;
    ///     async fn handle(&self, batch: &mut Batch<u32>) {
    ///         while let Some(event) = batch.next_event() {
    ///             println!("{}", *event);
    ///             self.0.send(event).await.expect("the next stage is open");
    ///         }
    ///     }
    /// }
    ///
    /// # struct End;
    /// # impl Handler for End {
    /// #     type Event = u32;
    /// #     async fn handle(&self, batch: &mut Batch<u32>) {
    /// #         batch.drain().for_each(drop);
    /// #     }
    /// # }
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(async {
    /// # let network = Network::new("n");
    /// # let log = network.stage("log").handler(|_| Ok(End))?;
    /// # let parse = network.stage("parse").handler(|edges| Ok(Spy(edges.to(&log).queue(10)?)))?;
    /// let spy = network.stage("spy").handler(|edges| Ok(Spy(edges.to(&log).queue(10)?)))?;
    /// let between = spy.between("parse", &log)?;
    /// parse.sender().send(7).await.expect("it is open");
    /// # parse.settled().await;
    /// between.remove().await;
    /// assert_eq!(spy.stats().finished, 1);
    /// # Ok::<(), tussah::stage::BuildError>(())
    /// # }).expect("no error");
    /// # std::io::Result::Ok(())
    /// ```
    pub fn between<D>(&self, from: &str, to: &Stage<E, D>) -> Result<Between<E>, BuildError> {
        let (proxy, target) = (&self.shared, &to.shared);
        self.network.check_own(&target.name, &to.network)?;
        let (from_name, from, holder) =
            self.network
                .interpose(from, &target.name, &proxy.name, proxy.blocks())?;
        target.lock().proxies.push(Route {
            from,
            by: self.id,
            proxy: Arc::downgrade(proxy),
            passing: 0,
            held: None,
            passed: Arc::default(),
        });
        target.look_again();
        Ok(Between {
            proxy: self.untyped(),
            from,
            from_name,
            to: to.untyped(),
            holder,
        })
    }

    fn untyped(&self) -> Stage<E> {
        Stage {
            shared: Arc::clone(&self.shared),
            host: ErasedHost,
            network: self.network.clone(),
            id: self.id,
        }
    }
}

impl<E: Send + 'static> Between<E> {
    /// Removes the proxy once it holds no events. Until then, senders that can wait are held back,
    /// so their events stay in order. The proxy stays while senders that cannot wait keep it busy.
    ///
    /// # Cancellation
    /// The proxy stays if the future is dropped. [`Stage::destroy`] ends it but can reorder events.
    pub async fn remove(self) {
        let target = &self.to.shared;
        let Some((holding, passed)) = self.hold() else {
            // The proxy was destroyed.
            return self.forget();
        };
        loop {
            let mut nothing_passes = pin!(passed.notified());
            nothing_passes.as_mut().enable();
            match target.take_away(self.from, &self.proxy.shared) {
                Found::Gone => break,
                Found::Passing => nothing_passes.await,
                Found::Busy => self.proxy.settled().await,
                Found::Contended => tussah_core::yield_now().await,
            }
        }
        drop(holding);
        self.forget();
    }

    /// Holds senders back, and returns the notification that the route is unused.
    fn hold(&self) -> Option<(Holding<'_, E>, Arc<Notify>)> {
        let mut inner = self.to.shared.lock();
        let route = inner.route_by(self.from, &self.proxy.shared)?;
        let held = Arc::clone(route.held.get_or_insert_default());
        let passed = Arc::clone(&route.passed);
        Some((Holding(self, held), passed))
    }

    fn forget(&self) {
        let (from, to) = (&self.from_name, &self.to.shared.name);
        let proxy = &self.proxy.shared.name;
        self.to.network.withdraw(from, to, proxy, self.holder);
        self.to.shared.look_again();
    }
}

impl<E> fmt::Debug for Between<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Between")
            .field("from", &self.from_name)
            .field("proxy", &self.proxy)
            .field("to", &self.to)
            .finish()
    }
}

/// Lets senders continue when dropped.
struct Holding<'a, E>(&'a Between<E>, Arc<Notify>);

impl<E> Drop for Holding<'_, E> {
    fn drop(&mut self) {
        let Self(between, held) = self;
        let mut inner = between.to.shared.lock();
        if let Some(route) = inner.route_by(between.from, &between.proxy.shared) {
            route.held = None;
        }
        drop(inner);
        held.notify_waiters();
    }
}

/// The route of events from one stage to another.
enum Way<'a, E> {
    Direct,
    Proxy(Passing<'a, E>),
    /// Senders that can wait do so until this is notified.
    Held(Arc<Notify>),
}

/// The state of a proxy that is to be removed.
enum Found {
    /// The proxy no longer exists.
    Gone,
    Passing,
    Busy,
    /// Another thread holds the proxy's lock.
    Contended,
}

/// A route through a proxy, while an event takes it.
pub(crate) struct Passing<'a, E> {
    target: &'a Arc<Shared<E>>,
    proxy: Sender<E>,
}

impl<E> Drop for Passing<'_, E> {
    fn drop(&mut self) {
        let mut inner = self.target.lock();
        let Some(route) = inner.route_by(self.proxy.from, &self.proxy.stage) else {
            return;
        };
        route.passing -= 1;
        if route.passing == 0 {
            let passed = Arc::clone(&route.passed);
            drop(inner);
            passed.notify_waiters();
        }
    }
}

impl<E> Inner<E> {
    fn route(&mut self, from: u32) -> Option<&mut Route<E>> {
        self.proxies.iter_mut().find(|route| route.from == from)
    }

    /// Returns the place of the route by this proxy, unless another proxy has replaced it.
    fn place_of(&self, from: u32, proxy: *const Shared<E>) -> Option<usize> {
        let mut routes = self.proxies.iter();
        routes.position(|route| route.from == from && route.proxy.as_ptr() == proxy)
    }

    fn route_by(&mut self, from: u32, proxy: &Arc<Shared<E>>) -> Option<&mut Route<E>> {
        let place = self.place_of(from, Arc::as_ptr(proxy))?;
        Some(&mut self.proxies[place])
    }

    /// Returns whether events from this stage go to a proxy.
    pub(crate) fn is_proxied(&self, from: u32) -> bool {
        self.proxies.iter().any(|route| route.from == from)
    }
}

impl<E: Send + 'static> Shared<E> {
    /// Returns the route of events from this stage.
    fn way(self: &Arc<Self>, from: u32, waits: bool) -> Way<'_, E> {
        let mut inner = self.lock();
        let Some(route) = inner.route(from) else {
            return Way::Direct;
        };
        let Some(stage) = route.proxy.upgrade() else {
            let proxy = route.proxy.as_ptr();
            drop(inner);
            self.forget_proxy(from, proxy);
            return self.way(from, waits);
        };
        if let (true, Some(held)) = (waits, &route.held) {
            return Way::Held(Arc::clone(held));
        }
        route.passing += 1;
        let proxy = Sender {
            stage,
            from,
            offers: false,
        };
        Way::Proxy(Passing {
            target: self,
            proxy,
        })
    }

    /// Sends an event to the proxy, or to this stage if the proxy no longer exists.
    #[cold]
    pub(crate) fn offer_by_proxy(
        self: &Arc<Self>,
        from: u32,
        event: Event<E>,
        how: How,
    ) -> Result<(), (Event<E>, NotTaken)> {
        let passing = match self.way(from, how.waits) {
            Way::Direct => return self.offer(from, event, how),
            Way::Held(_) => return Err((event, NotTaken::Proxied)),
            Way::Proxy(passing) => passing,
        };
        let proxy = &passing.proxy;
        match outgoing::send(proxy, event, how.waits) {
            // A sender that waits continues in `send_by_proxy`.
            Err((event, why)) if how.waits && why.is_full() => Err((event, NotTaken::Proxied)),
            Err((event, NotTaken::Refused(Refusal::Closed))) => {
                self.forget_proxy(from, Arc::as_ptr(&proxy.stage));
                self.offer(from, event, how)
            }
            other => other,
        }
    }

    fn is_held(&self, from: u32) -> bool {
        let mut inner = self.lock();
        inner.route(from).is_some_and(|route| route.held.is_some())
    }

    /// Calls the proxy for calls from this stage, if there is one.
    pub(crate) async fn call_by_proxy(
        self: &Arc<Self>,
        batch: &mut Batch<E>,
        from: u32,
    ) -> Option<()> {
        let Way::Proxy(passing) = self.way(from, false) else {
            return None;
        };
        let called = Box::pin(passing.proxy.stage.call_any(batch, from)).await;
        if called == Err(Gone) {
            self.forget_proxy(from, Arc::as_ptr(&passing.proxy.stage));
        }
        called.ok()
    }

    /// Forgets a proxy that no longer exists.
    fn forget_proxy(&self, from: u32, proxy: *const Self) {
        self.forget(|route| route.from == from && route.proxy.as_ptr() == proxy);
    }

    /// Forgets routes, and wakes the senders and removals that wait for them.
    pub(crate) fn forget(&self, is_gone: impl Fn(&Route<E>) -> bool) {
        let gone = |route: &mut Route<E>| is_gone(route);
        let gone: Vec<_> = self.lock().proxies.extract_if(.., gone).collect();
        if !gone.is_empty() {
            self.look_again();
        }
        for route in gone {
            route.passed.notify_waiters();
            if let Some(held) = route.held {
                held.notify_waiters();
            }
        }
    }

    /// Removes the proxy if no event is on its way through it.
    fn take_away(&self, from: u32, proxy: &Arc<Self>) -> Found {
        let mut inner = self.lock();
        let Some(place) = inner.place_of(from, Arc::as_ptr(proxy)) else {
            return Found::Gone;
        };
        if inner.proxies[place].passing > 0 {
            return Found::Passing;
        }
        // Two stages may be each other's proxies, so their locks have no order.
        let Some(proxy) = proxy.try_lock() else {
            return Found::Contended;
        };
        if !proxy.state.is_empty() {
            return Found::Busy;
        }
        inner.proxies.remove(place);
        Found::Gone
    }
}

impl<E: Send + 'static> Sender<E> {
    /// Sends the event in `place` as [`send_from`](Self::send_from) does, to the proxy if any.
    pub(crate) async fn send_by_proxy(&self, place: &mut Option<Event<E>>) -> Result<(), Refusal> {
        loop {
            let passing = match self.stage.way(self.from, true) {
                Way::Direct => return self.send_from(place).await,
                Way::Proxy(passing) => passing,
                Way::Held(held) => {
                    let mut goes_on = pin!(held.notified());
                    goes_on.as_mut().enable();
                    // From here on, no notification is missed.
                    if self.stage.is_held(self.from) {
                        goes_on.await;
                    }
                    continue;
                }
            };
            match passing.proxy.send_from(place).await {
                Err(Refusal::Closed) => {
                    let proxy = Arc::as_ptr(&passing.proxy.stage);
                    self.stage.forget_proxy(self.from, proxy);
                }
                sent => return sent,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::stage::event::Batch;
    use crate::stage::network::Network;
    use crate::stage::run::Handler;
    use crate::stage::send::sender::Sender;

    struct Pass(Option<Sender<u32>>);

    impl Handler for Pass {
        type Event = u32;
        async fn handle(&self, batch: &mut Batch<u32>) {
            while let (Some(next), Some(event)) = (&self.0, batch.next_event()) {
                next.send(event).await.expect("it is open");
            }
        }
    }

    #[test]
    fn a_destroyed_stage_leaves_no_route() {
        let runtime = crate::Runtime::builder().workers(1).build();
        let runtime = runtime.expect("a runtime");
        for gone in ["first", "proxy"] {
            let network = Network::on(runtime.handle(), "n");
            let last = network.stage("last").handler(|_| Ok(Pass(None)));
            let last = last.expect("a stage");
            for name in ["first", "proxy"] {
                let stage = network.stage(name);
                let made = stage.handler(|edges| Ok(Pass(Some(edges.to(&last).queue(4)?))));
                made.expect("a stage");
            }
            let proxy = network.find::<u32>("proxy").expect("it is there");
            let between = proxy.between("first", &last).expect("an edge");
            assert!(last.shared.is_special());
            let gone = network.find::<u32>(gone).expect("it is there");
            runtime.block_on(gone.destroy(Duration::ZERO));
            assert!(last.shared.lock().proxies.is_empty());
            assert!(!last.shared.is_special());
            runtime.block_on(between.remove());
        }
    }
}
