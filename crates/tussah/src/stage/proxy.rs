//! Proxies: stages that are put between two others while these run, and taken away again.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Weak};

use tussah_core::Notify;

use super::batch::Batch;
use super::error::BuildError;
use super::event::Event;
use super::handle::{Any, Stage};
use super::host::Gone;
use super::outgoing;
use super::sender::{Sender, Why};
use super::shared::{Inner, Shared};
use super::state::How;

/// Where events from one stage go in place of the stage that they are sent to.
pub(crate) struct Route<E> {
    pub(crate) from: u32,
    /// The proxy's number.
    pub(crate) by: u32,
    /// Weak, as the proxy's handler sends to the stage that has this.
    proxy: Weak<Shared<E>>,
    /// Sends and calls that have found this way, and are not at its end.
    passing: usize,
    /// The proxy is being taken away: senders that can wait do, until this is called.
    held: Option<Arc<Notify>>,
    /// Called when nothing passes any more.
    passed: Arc<Notify>,
}

/// A proxy that is between two stages. It stays there when this is dropped.
#[must_use = "the proxy is taken away by `remove`"]
pub struct Between<E> {
    proxy: Stage<E>,
    from: u32,
    from_name: Arc<str>,
    to: Stage<E>,
    /// Holds the edges to the proxy.
    holder: u32,
}

impl<E: Send + 'static, C> Stage<E, C> {
    /// Puts this stage between two others while they run: what `from` sends to `to`, or calls it with, goes to this stage instead. Its handler sees,
    /// counts, changes or drops the events, and sends them to `to` by an edge of its own.
    ///
    /// No event is lost, and none overtakes another of its sender, but for calls after it was taken away: these do not wait for what it has queued. A proxy may be between several stages, and between another proxy and its target. While there is one before
    /// a stage, events are sent to that stage one by one, by whomever.
    ///
    /// # Errors
    /// If `to` is of another network; if the network has no stage `from`, or no edge from it to `to`; if there is a proxy already; if a way through this stage would close a cycle; if there is a
    /// call edge, and this stage blocks.
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
            host: Any,
            network: self.network.clone(),
            id: self.id,
        }
    }
}

impl<E: Send + 'static> Between<E> {
    /// Takes the proxy away, when what is on its way through it has reached its end; senders that can wait are held up until then, so that nothing is overtaken.
    /// Others go on through the proxy: as long as these alone keep it busy, it stays.
    ///
    /// # Cancellation
    /// The proxy stays if the future is dropped, and [`Stage::destroy`] of the proxy takes it away without any order.
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

    /// Has senders wait; gives what is called when nothing passes.
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

/// Lets senders go on when dropped.
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

/// The way of what one stage sends to another.
enum Way<'a, E> {
    Direct,
    Proxy(Passing<'a, E>),
    /// For now, those who can wait wait to be called.
    Held(Arc<Notify>),
}

/// What was found when a proxy was to be taken away.
enum Found {
    /// It is no longer there.
    Gone,
    Passing,
    Busy,
    /// Somebody else has its lock.
    Contended,
}

/// A way through a proxy, while an event takes it.
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

    /// Where the route by this very proxy is: another may have come after it.
    fn place_of(&self, from: u32, proxy: *const Shared<E>) -> Option<usize> {
        let mut routes = self.proxies.iter();
        routes.position(|route| route.from == from && route.proxy.as_ptr() == proxy)
    }

    fn route_by(&mut self, from: u32, proxy: &Arc<Shared<E>>) -> Option<&mut Route<E>> {
        let place = self.place_of(from, Arc::as_ptr(proxy))?;
        Some(&mut self.proxies[place])
    }

    /// Whether events from this stage go to a proxy.
    pub(crate) fn is_proxied(&self, from: u32) -> bool {
        self.proxies.iter().any(|route| route.from == from)
    }
}

impl<E: Send + 'static> Shared<E> {
    /// The way that events from this stage take.
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

    /// Sends an event by way of the proxy; to this stage if the proxy is gone.
    #[cold]
    pub(crate) fn offer_by_proxy(
        self: &Arc<Self>,
        from: u32,
        event: Event<E>,
        how: How,
    ) -> Result<(), (Event<E>, Why)> {
        let passing = match self.way(from, how.waits) {
            Way::Direct => return self.offer(from, event, how),
            Way::Held(_) => return Err((event, Why::Proxied)),
            Way::Proxy(passing) => passing,
        };
        let proxy = &passing.proxy;
        match outgoing::send(proxy, event, how.waits) {
            // Who waits comes by `send_by_proxy`.
            Err((event, why)) if how.waits && why.is_full() => Err((event, Why::Proxied)),
            Err((event, Why::Closed)) => {
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

    /// Calls the proxy that calls from this stage go to, if there is one.
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

    /// Goes by the proxy no longer, which is gone.
    fn forget_proxy(&self, from: u32, proxy: *const Self) {
        self.forget(|route| route.from == from && route.proxy.as_ptr() == proxy);
    }

    /// Forgets routes. Who waits for his way to be free, or for a proxy to be taken away, is called.
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

    /// Takes the proxy away if nothing is on its way through it.
    fn take_away(&self, from: u32, proxy: &Arc<Self>) -> Found {
        let mut inner = self.lock();
        let Some(place) = inner.place_of(from, Arc::as_ptr(proxy)) else {
            return Found::Gone;
        };
        if inner.proxies[place].passing > 0 {
            return Found::Passing;
        }
        // Two stages may be each other's proxies, and so their locks have no order.
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
    /// Sends the event in `place` by way of the proxy, and waits there for room; to the stage if the proxy is gone.
    pub(crate) async fn send_by_proxy(&self, place: &mut Option<Event<E>>) -> Result<(), Why> {
        loop {
            let passing = match self.stage.way(self.from, true) {
                Way::Direct => return self.send_from(place).await,
                Way::Proxy(passing) => passing,
                Way::Held(held) => {
                    let mut goes_on = pin!(held.notified());
                    goes_on.as_mut().enable();
                    // From here on no call is missed.
                    if self.stage.is_held(self.from) {
                        goes_on.await;
                    }
                    continue;
                }
            };
            match passing.proxy.send_from(place).await {
                Err(Why::Closed) => {
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

    use super::super::{Batch, Handler, Network, Sender};

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
    fn what_is_destroyed_leaves_no_route() {
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
