//! What threads wait for each other with, where a color is not what is wanted.
//!
//! Shared state is best kept in a [`Colored`](crate::Colored) value. What is here serves where a thread has to keep
//! something over an `await`, to count, or to hand values on. Everything works across runtimes and on OS threads that
//! belong to none.
//!
//! | | what | order of those who wait | dropping a waiting future |
//! |---|---|---|---|
//! | [`Mutex`], [`RwLock`] | a value, locked over awaits | soon fair; writers first | gives up the place |
//! | [`Semaphore`] | so many at a time | woken in order, may be overtaken | gives up the place |
//! | [`Barrier`] | until so many have come | all at once | still counts as come |
//! | [`OnceCell`] | a value that is made once | the first makes it | the next one makes it |
//! | [`Notify`] | an event without a value | in order | passes its notification on |
//! | [`oneshot`] | one value, once | | the value is dropped |
//! | [`mpsc`], [`mpmc`] | a bounded queue | values in order | a send is withdrawn; a receive takes nothing |
//! | [`watch`] | the latest value | all at once | nothing is lost |
//!
//! All of them can deadlock in the ways in which locks and queues always can: tussah's freedom from deadlock is that of
//! colors. Do not hold a guard of [`std::sync`] over an `await`; the compiler refuses that in [`spawn`](crate::spawn).
//! The calls of foreign types that block their OS thread, such as `lock_blocking` and `recv_blocking`, are not refused inside an event or a closure of
//! [`with`](crate::Colored::with), as [`block_on`](crate::Handle::block_on) is: do not wait by them there.

pub mod mpmc;
pub mod mpsc;
pub mod oneshot;
pub mod watch;

/// Waiting until so many threads have come, again and again; of `async-lock`.
///
/// The one who comes last is the leader. A barrier of 0 or 1 lets everybody through.
///
/// # Cancellation
///
/// A `wait` that has been polled and is then dropped still counts as come, so that the others are let through one too
/// few.
///
/// ```
/// # futures_lite::future::block_on(async {
/// let barrier = tussah::sync::Barrier::new(2);
/// let (a, b) = futures_lite::future::zip(barrier.wait(), barrier.wait()).await;
/// assert!(!a.is_leader() && b.is_leader());
/// # });
/// ```
#[doc(inline)]
pub use async_lock::Barrier;
#[doc(inline)]
pub use async_lock::BarrierWaitResult;

/// Mutual exclusion over awaits; of `async-lock`.
///
/// Prefer a [`Colored`](crate::Colored) value, which needs no guard, or [`std::sync::Mutex`], which is cheaper, unless
/// the guard has to live over an `await`.
///
/// A thread that comes may overtake those who wait; once one has waited for half a millisecond the lock goes around in
/// order. A panic while the guard is held unlocks and does not poison. Dropping the waiting future gives up its place.
///
/// ```
/// # futures_lite::future::block_on(async {
/// let log = tussah::sync::Mutex::new(Vec::new());
/// let mut guard = log.lock().await;
/// futures_lite::future::yield_now().await; // still held
/// guard.push(1);
/// drop(guard);
/// assert_eq!(log.into_inner(), [1]);
/// # });
/// ```
#[doc(inline)]
pub use async_lock::Mutex;
#[doc(inline)]
pub use async_lock::{MutexGuard, MutexGuardArc};

/// A value that is made once, by the first who needs it; of `async-lock`.
///
/// The others wait for it. If the future that makes the value is dropped, fails or panics, the next one begins anew.
///
/// ```
/// # futures_lite::future::block_on(async {
/// let cell = tussah::sync::OnceCell::new();
/// assert_eq!(*cell.get_or_init(|| async { 1 }).await, 1);
/// assert_eq!(*cell.get_or_init(|| async { 2 }).await, 1);
/// # });
/// ```
#[doc(inline)]
pub use async_lock::OnceCell;

/// One writer or many readers, over awaits; of `async-lock`.
///
/// A writer that waits keeps new readers out, so that readers do not starve it; a thread that holds a read guard and
/// asks for another can therefore deadlock. A panic unlocks and does not poison. Dropping a waiting future gives up its
/// place.
///
/// ```
/// # futures_lite::future::block_on(async {
/// let table = tussah::sync::RwLock::new(1);
/// {
///     let (a, b) = (table.read().await, table.read().await);
///     assert_eq!(*a + *b, 2);
/// }
/// *table.write().await += 1;
/// assert_eq!(table.into_inner(), 2);
/// # });
/// ```
#[doc(inline)]
pub use async_lock::RwLock;
#[doc(inline)]
pub use async_lock::{
    RwLockReadGuard, RwLockReadGuardArc, RwLockUpgradableReadGuard, RwLockUpgradableReadGuardArc,
    RwLockWriteGuard, RwLockWriteGuardArc,
};

/// So many at a time; of `async-lock`.
///
/// Permits come one by one. Those who wait are woken in order, but one who comes just then may take the permit before
/// the woken one does; under constant pressure a thread can wait long. Dropping the waiting future gives up its place;
/// dropping the guard gives the permit back, a panic included.
///
/// ```
/// # futures_lite::future::block_on(async {
/// let limit = tussah::sync::Semaphore::new(1);
/// let permit = limit.acquire().await;
/// assert!(limit.try_acquire().is_none());
/// drop(permit);
/// assert!(limit.try_acquire().is_some());
/// # });
/// ```
#[doc(inline)]
pub use async_lock::Semaphore;
#[doc(inline)]
pub use async_lock::{SemaphoreGuard, SemaphoreGuardArc};

#[doc(inline)]
pub use tussah_core::{Notified, Notify};
