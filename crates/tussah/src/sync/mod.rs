//! Locks, channels and other synchronization primitives for threads.
//!
//! Keep shared state in a [`Colored`](crate::Colored) value where you can. Use this module to hold
//! a lock across an `await`, to limit concurrency, or to pass values between threads. All types of
//! this module work across runtimes, and on OS threads that belong to no runtime.
//!
//! | | purpose | order of waiters | dropping a waiting future |
//! |---|---|---|---|
//! | [`Mutex`], [`RwLock`] | a value, locked across awaits | eventually fair; writers first | gives up its place |
//! | [`Semaphore`] | a limited number of permits | woken in order, but may be overtaken | gives up its place |
//! | [`Limit`] | a limited number of permits, with a name and statistics | in order | gives up its place |
//! | [`Barrier`] | a meeting point for N threads | all at once | still counts as arrived |
//! | [`OnceCell`] | a value that is initialized once | the first waiter initializes it | the next waiter initializes it |
//! | [`Notify`] | a notification without a value | in order | passes its notification on |
//! | [`oneshot`] | one value, sent once | | drops the value |
//! | [`mpsc`], [`mpmc`] | a bounded queue | values in order | withdraws a send; a receive loses nothing |
//! | [`watch`] | the latest value | all at once | loses nothing |
//!
//! Unlike colors, all types of this module can cause deadlocks, as any lock or queue can. Do not
//! hold a guard of [`std::sync`] across an `await`: the compiler rejects such code in
//! [`spawn`](crate::spawn).
//!
//! Some re-exported types have methods that block the OS thread, such as `lock_blocking` and
//! `recv_blocking`. Do not call a blocking method in an event or in a closure passed to
//! [`with`](crate::Colored::with). Inside an event or such a closure,
//! [`block_on`](crate::Handle::block_on) panics, but these methods block the worker.

mod limit;
pub mod mpmc;
pub mod mpsc;
pub mod oneshot;
pub mod watch;

pub use self::limit::{Limit, LimitClassStats, LimitPermit, LimitStats};

/// A point at which N threads wait for each other, usable repeatedly; from `async-lock`.
///
/// The last thread to arrive is the leader. A barrier for 0 or 1 threads never waits.
///
/// # Cancellation
///
/// A `wait` that is dropped after its first poll still counts as arrived, so the barrier opens one
/// thread too early.
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

/// A mutex that can be held across awaits; from `async-lock`.
///
/// Unless the guard has to live across an `await`, prefer a [`Colored`](crate::Colored) value,
/// which needs no guard, or [`std::sync::Mutex`], which is cheaper.
///
/// A newly arriving thread may overtake waiters. Once a waiter has waited for half a millisecond,
/// the lock is handed over in order. A panic while the guard is held unlocks the mutex without
/// poisoning it. Dropping the waiting future gives up its place.
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

/// A value that is initialized once, by the first thread that needs it; from `async-lock`.
///
/// Other threads wait for the value. If the initializing future is dropped, fails or panics, the
/// next waiter starts again.
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

/// A lock for one writer or many readers that can be held across awaits; from `async-lock`.
///
/// A waiting writer blocks new readers, so readers cannot starve it. A thread that holds a read
/// guard and asks for a second one can therefore deadlock. A panic unlocks without poisoning.
/// Dropping a waiting future gives up its place.
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

/// A limited number of permits; from `async-lock`.
///
/// Permits are acquired one at a time. Waiters are woken in order, but a newly arriving thread may
/// take the permit before the woken waiter does. Under constant pressure a thread can wait for a
/// long time. Dropping the waiting future gives up its place. Dropping the guard returns the
/// permit, even during a panic. [`Limit`] is fair, and has statistics.
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
