//! Scopes: threads that do not outlive the code that started them.
//!
//! # Choosing a scope
//! Ideally, a scope would run its children in parallel, would let them borrow from the parent, and
//! could be awaited. Each kind of scope offers two of these three properties:
//!
//! | | parallel | borrows | awaited |
//! |---|---|---|---|
//! | [`scope`] | yes | no: children are `'static` | yes |
//! | [`Nursery`] | no: children run inside the parent | yes | yes |
//! | [`std::thread::scope`] with [`Handle::block_on`] | yes, one OS thread per child | yes | no: it blocks, so use it outside the workers |
//!
//! A scope with all three properties would be unsound. Since the parent is a future, a program
//! could leak it with `mem::forget`, and then free the values that the running children borrow. For
//! a blocking scope, use the standard library:
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

/// Runs `body`, which can start child threads, and waits for all of these threads.
///
/// However the body ends, the scope waits for all of its children before it returns. If the body or
/// a child fails, the scope drops the body, aborts the other children, and returns the first error.
/// If a child panics, the scope also drops the body and aborts the other children, and then resumes
/// the panic.
///
/// Children run in parallel, and must therefore be `'static`. If the children have to borrow from
/// the parent, use another kind of scope from the table in [the module documentation](self).
///
/// # Cancellation
/// Dropping the scope's future drops the body and aborts all children. The next event of each
/// child, which runs in the child's color, drops the child at an await point. Only after such a
/// cancellation can a child run slightly longer than its scope.
///
/// # Errors
/// Returns the first error that the body or a child returns.
///
/// # Panics
/// Panics if called outside a runtime (see [`scope_in`]), if the body or a child panics, or if the
/// runtime shuts down while children are running.
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
///     scope.spawn(std::future::pending::<Result<(), _>>()); // will be aborted
///     let a = scope.spawn(async { "forty".parse::<u64>() });
///     Ok(a.await) // does not return: the scope fails first
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

/// Works like [`scope`], except that the children run in the runtime of `handle`. Use this function
/// in futures that another executor polls, for example in a tokio program.
///
/// # Errors
/// Same as [`scope`].
///
/// # Panics
/// Same as [`scope`], except that `scope_in` also works outside a runtime.
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
            panic!("the runtime shut down while a scope had running children")
        }
        (None, Some(value)) => Ok(value),
        (None, None) => unreachable!("a body without a value is a failure"),
    }
}

/// Polls the body until it returns or panics (`Some`) or a child fails (`None`), then drops it.
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

/// A handle for starting children of a [`scope`]. `E` is the error type of the children and the
/// body.
///
/// Clones belong to the same scope, so a child that holds a clone can start more children.
pub struct Scope<E> {
    handle: Handle,
    children: Arc<Children<E>>,
}

impl<E: Send + 'static> Scope<E> {
    /// Starts a child, like [`Handle::spawn`].
    ///
    /// # Panics
    /// Panics if the runtime is shut down or the scope has ended.
    #[track_caller]
    pub fn spawn<T, F>(&self, future: F) -> ScopedJoinHandle<T, E>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.start(future, |handle, running| handle.spawn(running))
    }

    /// Starts a child in the given color, like [`Handle::spawn_in`].
    ///
    /// # Panics
    /// Panics if the runtime is shut down, if the scope has ended, or if the color belongs to
    /// another runtime.
    #[track_caller]
    pub fn spawn_in<T, F>(&self, color: impl AsColor, future: F) -> ScopedJoinHandle<T, E>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.start(future, |handle, running| handle.spawn_in(color, running))
    }

    /// Returns the number of children that have not ended.
    #[must_use]
    pub fn children(&self) -> usize {
        self.children.len()
    }

    #[track_caller]
    fn start<T, F>(
        &self,
        future: F,
        spawn: impl FnOnce(&Handle, Running<F, E>) -> JoinHandle<Option<T>>,
    ) -> ScopedJoinHandle<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let (running, key) = Children::enter(&self.children, future);
        let thread = spawn(&self.handle, running);
        self.children.started(key, thread.abort_handle());
        ScopedJoinHandle {
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

/// A future that waits for a child of a scope, and yields the child's value.
///
/// If the child returns `Ok`, the future yields the value inside. If a child fails, the scope fails
/// as well, drops its body, and aborts the other children. A handle that is awaited inside the
/// scope therefore never yields an error. Dropping a handle does not detach the child: the scope
/// still waits for it.
///
/// # Panics
/// Panics if the future is awaited outside the scope and the child fails or is aborted.
pub struct ScopedJoinHandle<T, E> {
    thread: JoinHandle<Option<T>>,
    children: Arc<Children<E>>,
    /// True if the child ended without a result.
    is_lost: bool,
}

impl<T, E> ScopedJoinHandle<T, E> {
    /// Returns whether the child has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

impl<T, E> Future for ScopedJoinHandle<T, E> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if !self.is_lost {
            match Pin::new(&mut self.thread).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Some(value))) => return Poll::Ready(value),
                Poll::Ready(Ok(None) | Err(_)) => self.is_lost = true,
            }
        }
        // Inside the scope, the scope now drops the future that waits here. Elsewhere, wait for its
        // end.
        ready!(self.children.poll_over(context));
        panic!("a scope's child was awaited outside the scope after it failed or was aborted");
    }
}

impl<T, E> fmt::Debug for ScopedJoinHandle<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// The reason why a scope has no value.
enum Failure<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
    /// A child was dropped, but not by its scope.
    ShutDown,
}

struct AbortOnDrop<'a, E>(&'a Children<E>);

impl<E> Drop for AbortOnDrop<'_, E> {
    fn drop(&mut self) {
        self.0.close();
    }
}
