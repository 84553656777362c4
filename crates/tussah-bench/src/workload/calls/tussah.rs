//! Calls between stages of tussah, and the same handler called directly.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::time::Instant;

use ::tussah::stage::host::{ConcurrentHost, SerialHost};
use ::tussah::stage::{
    AnyCall, Batch, BuildError, Call, Edges, Handler, Network, SerialHandler, Stage,
};
use ::tussah::sync::oneshot;

use crate::cli::Options;
use crate::metric::Metric;
use crate::runtimes;

/// The callee.
#[derive(Default)]
struct Look {
    seen: usize,
}

impl Handler for Look {
    type Event = u64;

    async fn handle(&self, batch: &mut Batch<u64>) {
        black_box(self.seen + batch.len());
    }
}

impl SerialHandler for Look {
    type Event = u64;

    async fn handle(&mut self, batch: &mut Batch<u64>) {
        self.seen = black_box(self.seen + batch.len());
    }
}

/// A way to call the callee.
trait Way: Send + Sync + 'static {
    fn call(&self, batch: &mut Batch<u64>) -> impl Future<Output = ()> + Send;
}

impl Way for Look {
    #[inline]
    async fn call(&self, batch: &mut Batch<u64>) {
        Handler::handle(self, batch).await;
    }
}

/// A call through a boxed future, the minimum cost of any call by name.
struct Boxed(Callee, Look);

type Callee = Box<dyn Fn(&Look, &mut Batch<u64>) -> Called + Send + Sync>;
type Called = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Way for Boxed {
    async fn call(&self, batch: &mut Batch<u64>) {
        (self.0)(&self.1, batch).await;
    }
}

impl Way for Call<u64, ConcurrentHost<Look>> {
    #[inline]
    async fn call(&self, batch: &mut Batch<u64>) {
        Call::call(self, batch).await.expect("the stage is open");
    }
}

impl Way for Call<u64, SerialHost<Look>> {
    #[inline]
    async fn call(&self, batch: &mut Batch<u64>) {
        Call::call(self, batch).await.expect("the stage is open");
    }
}

impl Way for AnyCall<u64> {
    #[inline]
    async fn call(&self, batch: &mut Batch<u64>) {
        AnyCall::call(self, batch).await.expect("the stage is open");
    }
}

/// The caller, which makes the number of calls that its event holds.
struct Caller<W> {
    way: W,
    calls: usize,
    done: Option<oneshot::Sender<std::time::Duration>>,
}

impl<W: Way> SerialHandler for Caller<W> {
    type Event = ();

    async fn handle(&mut self, batch: &mut Batch<()>) {
        batch.next();
        let mut own = Batch::of([7]);
        let start = Instant::now();
        for _ in 0..self.calls {
            black_box(&self.way).call(black_box(&mut own)).await;
        }
        let done = self.done.take().expect("there is one start");
        done.send(start.elapsed())
            .expect("the benchmark waits for it");
    }
}

fn run<W: Way>(
    options: &Options,
    way: impl FnOnce(&Network, &Edges<'_>) -> Result<W, BuildError> + Send + 'static,
) -> Vec<Metric> {
    let calls = options.scaled(10_000_000);
    let elapsed = runtimes::tussah(options, async move {
        let network = Network::new("calls");
        let (done, elapsed) = oneshot::channel();
        let (mut done, mut way, known) = (Some(done), Some(way), network.clone());
        let caller = network.stage("caller").serial(move |edges| {
            let way = way.take().expect("it is made once")(&known, edges)?;
            let done = done.take();
            Ok(Caller { way, calls, done })
        });
        let caller = caller.expect("the stage is made");
        let started = caller.sender().try_send(());
        started.expect("the caller has room for its start");
        elapsed.await.expect("no stage panics")
    });
    vec![Metric::nanos_each("ns a call", calls, elapsed)]
}

/// Creates the stage of the callee.
fn callee(
    network: &Network,
) -> Result<Stage<u64, std::sync::Arc<ConcurrentHost<Look>>>, BuildError> {
    network.stage("callee").handler(|_| Ok(Look::default()))
}

/// Calls the handler itself.
pub(super) fn direct(options: &Options) -> Vec<Metric> {
    run(options, |_, _| Ok(Look::default()))
}

/// Calls the handler through a trait object.
pub(super) fn boxed(options: &Options) -> Vec<Metric> {
    run(options, |_, _| {
        let call = |look: &Look, batch: &mut Batch<u64>| {
            let seen = look.seen + batch.len();
            Box::pin(async move {
                black_box(seen);
            }) as Called
        };
        Ok(Boxed(Box::new(call), Look::default()))
    })
}

/// Calls through an edge to a stage whose handler's type is known.
pub(super) fn typed(options: &Options) -> Vec<Metric> {
    run(options, |network, edges| edges.to(&callee(network)?).call())
}

/// Calls through an edge to a stage found by name.
pub(super) fn named(options: &Options) -> Vec<Metric> {
    run(options, |network, edges| {
        callee(network)?;
        edges.named::<u64>("callee")?.call()
    })
}

/// Calls through an edge to a serial stage.
pub(super) fn serial(options: &Options) -> Vec<Metric> {
    run(options, |network, edges| {
        let callee = network.stage("callee").serial(|_| Ok(Look::default()))?;
        edges.to(&callee).call()
    })
}

/// Calls through an edge to a keyed stage.
pub(super) fn keyed(options: &Options) -> Vec<Metric> {
    run(options, |network, edges| {
        let builder = network.stage("callee").keyed_by(|event: &u64| *event);
        edges.to(&builder.handler(|_| Ok(Look::default()))?).call()
    })
}
