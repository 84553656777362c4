//! Scopes: threads that do not outlive the code that started them.
//!
//! # The rule
//! A scope can be parallel, borrow from its parent and be awaited, but only two of the three at once:
//!
//! | | parallel | borrows | awaited |
//! |---|---|---|---|
//! | [`scope`] | yes | no: its children are `'static` | yes |
//! | [`Nursery`] | no: its children run inside of their parent | yes | yes |
//! | [`std::thread::scope`] with [`Handle::block_on`] | yes, one OS thread a child | yes | no: it blocks, and so only outside of the workers |
//!
//! All three would be unsound: the parent is a future, and who leaks a future (`mem::forget`) frees its stack while the
//! children run on. The blocking one needs nothing of tussah's:
//!
//! ```
//! let runtime = tussah::Runtime::builder().workers(2).build()?;
//! let text = String::from("borrowed by both");
//! std::thread::scope(|scope| {
//!     let (handle, text) = (runtime.handle(), &text);
//!     let length = scope.spawn(move || handle.block_on(async { text.len() }));
//!     let words = scope.spawn(move || handle.block_on(async { text.split(' ').count() }));
//!     assert_eq!(length.join().expect("no panic"), 16);
//!     assert_eq!(words.join().expect("no panic"), 3);
//! });
//! # std::io::Result::Ok(())
//! ```

mod children;
mod nursery;

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tussah_core::{AsColor, Handle, JoinHandle};

use children::{Children, Running};
pub use nursery::Nursery;

/// Runs a body that may start threads, and waits for all of them.
///
/// No child outlives the scope: whichever way the body ends, the scope waits for the children before it returns. The
/// first error, of the body or of a child, aborts the rest and becomes the result. A panic of a child does the same and
/// is raised again here.
///
/// The children run in parallel and so are `'static`; see [the module](self) for scopes that borrow.
///
/// # Cancellation
/// Dropping the scope's future drops the body and aborts all children. They end at their next await, by events of their
/// own colors: this is the one case in which a child may run on for a moment.
///
/// # Errors
/// The first error of the body or of a child.
///
/// # Panics
/// Outside of a runtime; see [`scope_in`]. If the body or a child panics. If the runtime is shut down meanwhile.
///
/// # Examples
/// ```
/// # let runtime = tussah::Runtime::builder().workers(2).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let sum: Result<u64, std::num::ParseIntError> = tussah::scope(async |scope| {
///     let a = scope.spawn(async { "40".parse::<u64>() });
///     let b = scope.spawn(async { "2".parse::<u64>() });
///     Ok(a.await + b.await)
/// })
/// .await;
/// assert_eq!(sum, Ok(42));
///
/// let sum = tussah::scope(async |scope| {
///     scope.spawn(std::future::pending::<Result<(), _>>()); // is aborted
///     let a = scope.spawn(async { "forty".parse::<u64>() });
///     Ok(a.await) // never comes back: the scope fails first
/// })
/// .await;
/// assert!(sum.is_err());
/// # })).expect("no panic");
/// # std::io::Result::Ok(())
/// ```
pub async fn scope<T, E, F, B>(body: F) -> Result<T, E>
where
    E: Send + 'static,
    F: FnOnce(Scope<E>) -> B,
    B: Future<Output = Result<T, E>>,
{
    scope_in(&Handle::current(), body).await
}

/// As [`scope`], with children in the given runtime: for futures that run elsewhere, such as in a tokio program.
///
/// # Errors
/// As [`scope`].
///
/// # Panics
/// As [`scope`].
pub async fn scope_in<T, E, F, B>(handle: &Handle, body: F) -> Result<T, E>
where
    E: Send + 'static,
    F: FnOnce(Scope<E>) -> B,
    B: Future<Output = Result<T, E>>,
{
    let children = Arc::new(Children::new());
    let _abort = AbortOnDrop(&children);
    let scope = Scope {
        handle: handle.clone(),
        children: children.clone(),
    };
    let outcome = run_body(&children, async move { body(scope).await }).await;
    let value = match outcome {
        Some(Ok(Ok(value))) => Some(value),
        Some(Ok(Err(error))) => {
            children.fail(Failure::Error(error));
            None
        }
        Some(Err(payload)) => {
            children.fail(Failure::Panic(payload));
            None
        }
        None => None,
    };
    poll_fn(|context| children.poll_ended(context)).await;
    match (children.take_failure(), value) {
        (Some(Failure::Error(error)), _) => Err(error),
        (Some(Failure::Panic(payload)), _) => resume_unwind(payload),
        (Some(Failure::ShutDown), _) => {
            panic!("the runtime was shut down while a scope had children")
        }
        (None, Some(value)) => Ok(value),
        (None, None) => unreachable!("a body without a value is a failure"),
    }
}

/// Polls the body until it ends (`Some`, a panic included) or a child fails (`None`), and drops it.
async fn run_body<E, B: Future>(
    children: &Children<E>,
    body: B,
) -> Option<Result<B::Output, Box<dyn Any + Send>>> {
    let mut body = pin!(body);
    poll_fn(|context| {
        if children.poll_failed(context) {
            return Poll::Ready(None);
        }
        match catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Some(Ok(output))),
            Err(payload) => Poll::Ready(Some(Err(payload))),
        }
    })
    .await
}

/// Starts the children of a [`scope`]. `E` is the error that they and the body may fail with.
///
/// Clones belong to the same scope: a child that has one can start further children.
pub struct Scope<E> {
    handle: Handle,
    children: Arc<Children<E>>,
}

impl<E: Send + 'static> Scope<E> {
    /// Starts a child, as [`Handle::spawn`] does.
    ///
    /// # Panics
    /// If the runtime is shut down, or the scope has ended.
    #[track_caller]
    pub fn spawn<T, F>(&self, future: F) -> Child<T, E>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.start(future, |handle, running| handle.spawn(running))
    }

    /// Starts a child in a color, as [`Handle::spawn_in`] does.
    ///
    /// # Panics
    /// If the runtime is shut down, the scope has ended, or the color is of another runtime.
    #[track_caller]
    pub fn spawn_in<T, F>(&self, color: impl AsColor, future: F) -> Child<T, E>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.start(future, |handle, running| handle.spawn_in(color, running))
    }

    /// Children that have not ended yet.
    #[must_use]
    pub fn children(&self) -> usize {
        self.children.len()
    }

    #[track_caller]
    fn start<T, F>(
        &self,
        future: F,
        spawn: impl FnOnce(&Handle, Running<F, E>) -> JoinHandle<Option<T>>,
    ) -> Child<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let (running, key) = Children::enter(&self.children, future);
        let thread = spawn(&self.handle, running);
        self.children.started(key, thread.abort_handle());
        Child {
            thread,
            children: self.children.clone(),
            is_lost: false,
        }
    }
}

impl<E> fmt::Debug for Scope<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("children", &self.children.len())
            .finish_non_exhaustive()
    }
}

impl<E> Clone for Scope<E> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            children: self.children.clone(),
        }
    }
}

/// A child of a [`scope`]: a future of its result.
///
/// It gives what the child returned in `Ok`. If the child fails the scope does, and drops the body and the children, so that
/// none of them sees a child without a result. Dropping the `Child` detaches nothing: the scope waits all the same.
///
/// # Panics
/// If it is awaited outside of the scope, and the child has failed or was aborted.
pub struct Child<T, E> {
    thread: JoinHandle<Option<T>>,
    children: Arc<Children<E>>,
    /// The child has ended without a result.
    is_lost: bool,
}

impl<T, E> Child<T, E> {
    /// Whether the child has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

impl<T, E> Future for Child<T, E> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if !self.is_lost {
            match Pin::new(&mut self.thread).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(value))) => return Poll::Ready(value),
                Poll::Ready(Ok(None) | Err(_)) => self.is_lost = true,
            }
        }
        // The scope is about to drop whoever waits here; unless that is somebody else.
        ready!(self.children.poll_over(context));
        panic!("a child that has no result was awaited outside of its scope");
    }
}

impl<T, E> fmt::Debug for Child<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// Why a scope has no value.
enum Failure<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
    /// A child was dropped by somebody else than the scope.
    ShutDown,
}

struct AbortOnDrop<'a, E>(&'a Children<E>);

impl<E> Drop for AbortOnDrop<'_, E> {
    fn drop(&mut self) {
        self.0.close();
    }
}
