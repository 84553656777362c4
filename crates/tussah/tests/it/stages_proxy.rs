//! Proxies between stages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tussah::stage::host::ConcurrentHost;
use tussah::stage::observe::{Edge, EdgeKind};
use tussah::stage::{AnyCall, Batch, BuildError, Call, Handler, Network, Sender, Stage, TrySender};

use crate::runtime;

/// Keeps what it is sent, in its order.
struct Keep(Arc<Mutex<Vec<u64>>>);

impl Handler for Keep {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        let mut kept = self.0.lock();
        kept.extend(batch.drain());
    }
}

/// Sends on what it is sent, and counts it.
struct Spy {
    next: Sender<u64>,
    seen: Arc<AtomicU64>,
}

impl Handler for Spy {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        while let Some(event) = batch.next_event() {
            self.seen.fetch_add(1, Ordering::Relaxed);
            self.next.send(event).await.expect("it is open");
        }
    }
}

type Kept = Arc<Mutex<Vec<u64>>>;

fn keep(
    network: &Network,
    name: &str,
    queue: u64,
) -> (Stage<u64, Arc<ConcurrentHost<Keep>>>, Kept) {
    let kept = Kept::default();
    let keep = Keep(Arc::clone(&kept));
    let stage = network.stage(name).manual().servlets(1).queue(queue);
    (stage.handler(|_| Ok(keep)).expect("a stage"), kept)
}

/// A stage that sends on to another.
fn spy<C: Clone>(
    network: &Network,
    name: &str,
    next: &Stage<u64, C>,
) -> (Stage<u64>, Arc<AtomicU64>) {
    let seen = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&seen);
    let stage = network.stage::<u64>(name).manual().servlets(1).queue(4);
    let made = stage.handler(|edges| {
        let next = edges.to(next).queue(4)?;
        Ok(Spy {
            next,
            seen: counted,
        })
    });
    made.expect("a stage");
    (network.find(name).expect("it is there"), seen)
}

fn edge(from: &str, to: &str, proxy: Option<&str>) -> Edge {
    Edge {
        from: from.into(),
        to: to.into(),
        kind: EdgeKind::Queue,
        proxy: proxy.map(Into::into),
    }
}

/// Proxies come and go while events pass: none is lost, and none overtakes another.
#[test]
fn a_proxy_comes_and_goes_while_events_pass() {
    const EVENTS: u64 = 20_000;
    let runtime = runtime(2);
    runtime.block_on(async {
        let network = Network::new("n");
        let (last, kept) = keep(&network, "last", 4);
        let (first, _) = spy(&network, "first", &last);
        let (proxy, seen) = spy(&network, "proxy", &last);
        let (other, seen_too) = spy(&network, "other", &last);
        let sender = first.sender();
        let sends = tussah::spawn(async move {
            for event in 0..EVENTS {
                sender.send(event).await.expect("it is open");
            }
        });
        let mut rounds = 0;
        while first.stats().finished < EVENTS {
            let between = proxy.between("first", &last).expect("an edge");
            let chained = other.between("proxy", &last).expect("an edge");
            tussah::yield_now().await;
            chained.remove().await;
            between.remove().await;
            tussah::yield_now().await;
            rounds += 1;
        }
        sends.await.expect("no panic");
        for stage in [&first, &proxy, &other] {
            stage.drain().await;
        }
        last.drain().await;
        let kept = kept.lock();
        assert_eq!(kept.len() as u64, EVENTS);
        assert!(kept.is_sorted(), "after {rounds} rounds");
        assert!(seen_too.load(Ordering::Relaxed) <= seen.load(Ordering::Relaxed));
    });
}

#[test]
fn all_events_take_the_way_through_the_proxy() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let (last, kept) = keep(&network, "last", 4);
        let (first, _) = spy(&network, "first", &last);
        let (proxy, seen) = spy(&network, "proxy", &last);
        let plain = [edge("first", "last", None), edge("proxy", "last", None)];
        assert_eq!(network.edges(), plain);
        let between = proxy.between("first", &last).expect("an edge");
        let proxied = [
            edge("first", "last", Some("proxy")),
            edge("proxy", "last", None),
            edge("first", "proxy", None),
        ];
        assert_eq!(network.edges(), proxied);
        assert!(network.graph().to_dot().contains("queue by proxy"));
        for event in 0..100 {
            first.sender().send(event).await.expect("it is open");
        }
        first.settled().await;
        between.remove().await;
        assert_eq!(network.edges(), plain);
        assert_eq!(seen.load(Ordering::Relaxed), 100);
        last.sender().send(100).await.expect("it is open");
        first.sender().send(101).await.expect("it is open");
        first.drain().await;
        last.drain().await;
        assert_eq!(seen.load(Ordering::Relaxed), 100);
        assert_eq!(*kept.lock(), (0..102).collect::<Vec<_>>());
    });
}

/// The proxy waits for room where senders wait for the proxy to go.
#[test]
fn waiting_for_a_proxy_to_go_does_not_delay_it() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let (last, kept) = keep(&network, "last", 4);
        let (first, _) = spy(&network, "first", &last);
        let (proxy, _) = spy(&network, "proxy", &last);
        let between = proxy.between("first", &last).expect("an edge");
        last.pause();
        let sender = first.sender();
        let sends = tussah::spawn(async move {
            for event in 0..100 {
                sender.send(event).await.expect("it is open");
            }
        });
        while proxy.stats().waiting + first.stats().waiting < 2 {
            tussah::yield_now().await;
        }
        let removal = tussah::spawn(between.remove());
        tussah::yield_now().await;
        last.resume();
        removal.await.expect("no panic");
        sends.await.expect("no panic");
        first.drain().await;
        last.drain().await;
        assert_eq!(*kept.lock(), (0..100).collect::<Vec<_>>());
    });
}

/// Events for a destroyed proxy go to its target again.
#[test]
fn a_destroyed_proxy_loses_nothing() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let network = Network::new("n");
        let (last, kept) = keep(&network, "last", 4);
        let (first, _) = spy(&network, "first", &last);
        let (proxy, _) = spy(&network, "proxy", &last);
        let between = proxy.between("first", &last).expect("an edge");
        let sender = first.sender();
        let sends = tussah::spawn(async move {
            for event in 0..1000 {
                sender.send(event).await.expect("it is open");
            }
        });
        while kept.lock().len() < 10 {
            tussah::yield_now().await;
        }
        assert_eq!(proxy.destroy(Duration::from_secs(3600)).await, 0);
        assert_eq!(network.edges(), [edge("first", "last", None)]);
        sends.await.expect("no panic");
        first.settled().await;
        between.remove().await;
        last.settled().await;
        let mut kept = kept.lock().clone();
        kept.sort_unstable();
        assert_eq!(kept, (0..1000).collect::<Vec<_>>());
    });
}

/// Senders that wait at a proxy, or for it to go, go on when it is destroyed.
#[test]
fn a_proxy_may_be_destroyed_while_it_is_taken_away() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let (last, kept) = keep(&network, "last", 4);
        let (first, _) = spy(&network, "first", &last);
        let (other, _) = spy(&network, "other", &last);
        let (proxy, _) = spy(&network, "proxy", &last);
        let between = proxy.between("first", &last).expect("an edge");
        drop(proxy.between("other", &last).expect("an edge"));
        proxy.pause();
        for event in 0..5 {
            first.sender().send(event).await.expect("it is open");
        }
        while first.stats().waiting == 0 {
            tussah::yield_now().await;
        }
        let removal = tussah::spawn(between.remove());
        for _ in 0..10 {
            tussah::yield_now().await;
        }
        assert_eq!(proxy.destroy(Duration::ZERO).await, 4);
        let second = Duration::from_secs(10);
        let removed = tussah::time::timeout(second, removal).await;
        removed.expect("it is gone").expect("no panic");
        // The next proxy has the place of the one that is gone.
        let (next, seen) = spy(&network, "next", &last);
        drop(next.between("other", &last).expect("an edge"));
        other.sender().send(5).await.expect("it is open");
        other.drain().await;
        first.drain().await;
        next.drain().await;
        last.drain().await;
        assert_eq!(seen.load(Ordering::Relaxed), 1);
        assert_eq!(*kept.lock(), [4, 5]);
    });
}

/// Calls and offers what it is sent.
struct Both {
    call: Call<u64, ConcurrentHost<Keep>>,
    any: AnyCall<u64>,
    offer: TrySender<u64>,
}

impl Handler for Both {
    type Event = u64;
    async fn handle(&self, batch: &mut Batch<u64>) {
        while let Some(event) = batch.next() {
            self.call.send(event).await.expect("it is open");
            self.any.send(event).await.expect("it is open");
            self.offer.try_send(event).expect("there is room");
        }
    }
}

#[test]
fn calls_and_offers_go_through_the_proxy() {
    let runtime = runtime(1);
    runtime.block_on(async {
        let network = Network::new("n");
        let (last, kept) = keep(&network, "last", 100);
        let first = network
            .stage::<u64>("first")
            .handler(|edges| {
                Ok(Both {
                    call: edges.to(&last).call()?,
                    any: edges.named("last")?.call()?,
                    offer: edges.to(&last).offer(100)?,
                })
            })
            .expect("a stage");
        let (proxy, seen) = spy(&network, "proxy", &last);
        let sender = first.sender();
        for proxied in [false, true, false] {
            let between = proxied.then(|| proxy.between("first", &last).expect("edges"));
            sender.send(1).await.expect("it is open");
            first.settled().await;
            if let Some(between) = between {
                between.remove().await;
            }
        }
        last.settled().await;
        assert_eq!(*kept.lock(), [1; 9]);
        assert_eq!(seen.load(Ordering::Relaxed), 3);
        assert_eq!((last.stats().called, proxy.stats().called), (4, 2));
        assert_eq!(network.edges().len(), 3);
    });
}

#[test]
fn a_proxy_is_refused_where_it_can_not_be() -> Result<(), BuildError> {
    let runtime = runtime(1);
    let network = Network::on(runtime.handle(), "n");
    let (last, _) = keep(&network, "last", 4);
    let (first, _) = spy(&network, "first", &last);
    let (proxy, _) = spy(&network, "proxy", &last);
    let (other, _) = spy(&network, "other", &first);
    let why =
        |refused: Result<_, BuildError>| refused.map(drop).expect_err("it is refused").to_string();
    assert_eq!(
        why(proxy.between("second", &last).map(drop)),
        "there is no stage `second`: expected one of `last`, `first`, `proxy`, `other`"
    );
    assert_eq!(
        why(proxy.between("other", &last).map(drop)),
        "there is no edge from `other` to `last` that a proxy could be put in"
    );
    let refused = other.between("first", &last);
    assert!(
        matches!(refused, Err(BuildError::Cycle { .. })),
        "{refused:?}"
    );
    let refused = first.between("first", &last);
    assert!(
        matches!(refused, Err(BuildError::Cycle { .. })),
        "{refused:?}"
    );
    let _between = proxy.between("first", &last)?;
    let refused = last.between("first", &proxy);
    assert!(
        matches!(refused, Err(BuildError::Cycle { .. })),
        "{refused:?}"
    );
    assert_eq!(
        why(other.between("first", &last).map(drop)),
        "the proxy `proxy` is between `first` and `last` already: expected another place, before or behind it"
    );
    Ok(())
}
