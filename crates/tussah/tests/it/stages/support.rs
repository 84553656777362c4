//! Helpers for the tests of stages: handlers made of closures, their notes, and a door that holds
//! them up.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tussah::stage::{Batch, Handler, SerialHandler, Stage};
use tussah::sync::{Notify, Semaphore};
use tussah::yield_now;

/// A wait that takes longer than this never ends. It is shorter than the time limit of
/// `cargo xtask mutants`, so that a break fails the test.
const HANG: Duration = Duration::from_secs(30);

/// Waits until `done` returns true, and panics if the wait hangs.
pub async fn comes(done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < HANG, "what is waited for never comes");
        yield_now().await;
    }
}

/// The future of a handler made of a closure.
pub type Work<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A handler made of a closure.
pub struct By<E, F>(F, PhantomData<fn(E)>);

pub fn by<E, F>(f: F) -> By<E, F>
where
    F: for<'a> Fn(&'a mut Batch<E>) -> Work<'a> + Send + Sync + 'static,
{
    By(f, PhantomData)
}

impl<E, F> Handler for By<E, F>
where
    E: Send + 'static,
    F: for<'a> Fn(&'a mut Batch<E>) -> Work<'a> + Send + Sync + 'static,
{
    type Event = E;
    fn handle(&self, batch: &mut Batch<E>) -> impl Future<Output = ()> + Send {
        (self.0)(batch)
    }
}

/// A serial handler made of a closure.
pub struct One<E, F>(F, PhantomData<fn(E)>);

pub fn one<E, F>(f: F) -> One<E, F>
where
    F: for<'a> FnMut(&'a mut Batch<E>) -> Work<'a> + Send + 'static,
{
    One(f, PhantomData)
}

impl<E, F> SerialHandler for One<E, F>
where
    E: Send + 'static,
    F: for<'a> FnMut(&'a mut Batch<E>) -> Work<'a> + Send + 'static,
{
    type Event = E;
    fn handle(&mut self, batch: &mut Batch<E>) -> impl Future<Output = ()> + Send {
        (self.0)(batch)
    }
}

/// A handler that calls a closure with each event, and never waits.
pub struct Each<E, F>(F, PhantomData<fn(E)>);

pub fn each<E, F: Fn(E) + Send + Sync + 'static>(f: F) -> Each<E, F> {
    Each(f, PhantomData)
}

impl<E: Send + 'static, F: Fn(E) + Send + Sync + 'static> Handler for Each<E, F> {
    type Event = E;
    async fn handle(&self, batch: &mut Batch<E>) {
        batch.drain().for_each(&self.0);
    }
}

impl<E: Send + 'static, F: Fn(E) + Send + Sync + 'static> SerialHandler for Each<E, F> {
    type Event = E;
    async fn handle(&mut self, batch: &mut Batch<E>) {
        batch.drain().for_each(&self.0);
    }
}

/// A list of observations, in order.
pub struct Noted<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Noted<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Noted<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Noted<T> {
    pub fn add(&self, what: T) {
        self.0.lock().push(what);
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Waits until the list has N entries.
    pub async fn until(&self, count: usize) {
        comes(|| self.len() >= count).await;
    }

    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A door that handlers wait at until the test lets some through.
#[derive(Clone)]
pub struct Door(Arc<Inside>);

struct Inside {
    permits: Semaphore,
    came: Mutex<usize>,
    changed: Notify,
}

impl Door {
    pub fn new() -> Self {
        Self(Arc::new(Inside {
            permits: Semaphore::new(0),
            came: Mutex::new(0),
            changed: Notify::new(),
        }))
    }

    /// Waits to be let through.
    pub async fn pass(&self) {
        *self.0.came.lock() += 1;
        self.0.changed.notify_waiters();
        self.0.permits.acquire().await.forget();
    }

    /// How many have come to it.
    pub fn came(&self) -> usize {
        *self.0.came.lock()
    }

    /// Waits until N have arrived.
    pub async fn until(&self, count: usize) {
        loop {
            let changed = self.0.changed.notified();
            if self.came() >= count {
                return;
            }
            changed.await;
        }
    }

    /// Lets N through, now or when they arrive.
    pub fn let_through(&self, count: usize) {
        self.0.permits.add_permits(count);
    }
}

/// A closure that handlers are made of.
pub fn works<F>(f: F) -> F
where
    F: for<'a> Fn(&'a mut Batch<u32>) -> Work<'a> + Clone + Send + Sync + 'static,
{
    f
}

/// Notes each event, and waits at the door after 0.
pub fn notes(
    came: &Noted<u32>,
    door: &Door,
) -> impl for<'a> Fn(&'a mut Batch<u32>) -> Work<'a> + Clone + Send + Sync + 'static {
    let (came, door) = (came.clone(), door.clone());
    move |batch| {
        let (came, door) = (came.clone(), door.clone());
        Box::pin(async move {
            while let Some(n) = batch.next() {
                came.add(n);
                if n == 0 {
                    door.pass().await;
                }
            }
        })
    }
}

/// Waits until a stage is as wanted.
pub async fn until<E: Send + 'static, C>(
    stage: &Stage<E, C>,
    wanted: impl Fn(&tussah::stage::observe::StageStats) -> bool,
) {
    comes(|| wanted(&stage.stats())).await;
}

/// Checks that each event that arrived has had one end or is still in the stage.
#[track_caller]
pub fn adds_up<E: Send + 'static, C>(stage: &Stage<E, C>) {
    let stats = stage.stats();
    let ends = [
        stats.finished,
        stats.refused,
        stats.shed,
        stats.expired,
        stats.cancelled,
        stats.shut_down,
    ];
    let ends = ends.iter().sum::<u64>();
    assert_eq!(
        stats.arrived,
        ends + stats.queued + stats.in_service,
        "{stats:?}"
    );
    assert_eq!(
        stats.queued_by_class.iter().sum::<u64>(),
        stats.queued,
        "{stats:?}"
    );
}
