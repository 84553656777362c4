//! Callbacks for the exit of child processes.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use async_lock::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use tussah_core::Handle;
use tussah_core::io::{Direction, Source};

use super::registry::{Key, Registry};
use super::{Callback, handle_of};
use crate::io_error::context;
use crate::process::Child;
use crate::time;

/// Bound, in milliseconds: the polling interval for a child whose pidfd cannot be opened or
/// registered with epoll (`fs.epoll.max_user_watches`).
const LOOK_MS: u64 = 20;

/// A child process to wait for: a [`Child`], or the PID of a child that other code started.
#[derive(Debug)]
pub struct ChildId(Kind);

#[derive(Debug)]
enum Kind {
    Child(Box<Child>),
    Number(u32),
}

impl From<Child> for ChildId {
    fn from(child: Child) -> Self {
        Self(Kind::Child(Box::new(child)))
    }
}

impl From<u32> for ChildId {
    fn from(number: u32) -> Self {
        Self(Kind::Number(number))
    }
}

/// Calls a callback once with the exit status of a child, after the child has exited.
///
/// This function corresponds to libasync's `chldcb`. The registration reaps the child, so no zombie
/// remains. The callback is unregistered after it has been called.
///
/// The registration takes ownership of a [`Child`], so take the pipes that you need out of the
/// `Child` before you register it. To unregister the callback, pass the child's [PID](Child::id)
/// and `None`. Unregistering drops the `Child`; the documentation of [`Child`] describes the
/// effects. For a child started by other code, such as [`std::process::Command`], pass the PID, and
/// make sure that nothing else waits for the child.
///
/// Registering another callback for the same child replaces the previous one; passing `None`
/// unregisters the callback, as with [`on_readable`](super::on_readable). A registration that names
/// the child by its PID takes over the [`Child`] that the previous registration owned, if any.
///
/// A registration costs one descriptor (pidfd_open(2)), one thread and one table entry. Normally,
/// nothing runs until the child exits. If the descriptor cannot be opened, or cannot be registered
/// with epoll, the thread checks the child every 20 ms.
///
/// # Errors
/// The callback receives the errors of [`Child::wait`], such as an error from the operating system
/// if there is no child with this PID.
///
/// # Panics
/// Panics if called with `None` outside a runtime; use
/// [`HandleExt::on_child_exit`](super::HandleExt::on_child_exit) there.
///
/// # Examples
/// ```
/// use tussah::events::on_child_exit;
/// use tussah::process::Command;
/// use tussah::{Callback, Color};
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # let (done, wait) = std::sync::mpsc::channel();
/// # runtime.block_on(runtime.spawn(async move {
/// let child = Command::new("true").spawn().await?;
/// let ended = Callback::new(Color(7), move |status: std::io::Result<_>| {
/// #   done.send(status).expect("the example listens");
/// });
/// on_child_exit(child, ended);
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # assert!(wait.recv().expect("it is called")?.success());
/// # std::io::Result::Ok(())
/// ```
#[track_caller]
pub fn on_child_exit(
    child: impl Into<ChildId>,
    callback: impl Into<Option<Callback<io::Result<ExitStatus>>>>,
) {
    let callback = callback.into();
    register(&handle_of(&callback), child.into(), callback);
}

#[track_caller]
pub(super) fn register(
    handle: &Handle,
    child: ChildId,
    callback: Option<Callback<io::Result<ExitStatus>>>,
) {
    let registry = Registry::of(handle);
    let number = match &child.0 {
        Kind::Child(child) => child.id(),
        Kind::Number(number) => *number,
    };
    let key = Key::Child(number);
    let Some(callback) = callback else {
        return registry.unregister(key);
    };
    callback.announce();
    let color = callback.color().clone();
    let of = handle.clone();
    let child = match child.0 {
        Kind::Child(child) => Some(Arc::new(Mutex::new(*child))),
        // Keep the `Child` alive. Otherwise the reaper would collect its status.
        Kind::Number(_) => registry.child(key),
    };
    let its_own = child.clone();
    registry.register_child(key, handle, &color, its_own, |interest| async move {
        let ended = match child {
            Some(child) => child.lock().await.wait().await,
            None => wait(&of, number).await,
        };
        interest.call(&callback, ended);
    });
}

async fn wait(handle: &Handle, number: u32) -> io::Result<ExitStatus> {
    let failed = |error: io::Error| context(error, "wait for", format!("process {number}"));
    let pid = number.try_into().ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    loop {
        let waited = match by_pidfd(handle, pid).await {
            // No descriptor is available, or epoll has no room for it.
            Err(error) if is_exhausted(&error) => status(pid),
            waited => waited,
        };
        match waited {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                time::sleep(Duration::from_millis(LOOK_MS)).await;
            }
            waited => return waited.map_err(failed),
        }
    }
}

async fn by_pidfd(handle: &Handle, pid: Pid) -> io::Result<ExitStatus> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let source = Source::new_in(handle, pidfd);
    source.io(Direction::Read, |_| status(pid)).await
}

/// Returns the status of a child that has exited, or `WouldBlock`.
fn status(pid: Pid) -> io::Result<ExitStatus> {
    let status = waitpid(Some(pid), WaitOptions::NOHANG)?;
    let (_, status) = status.ok_or(io::ErrorKind::WouldBlock)?;
    Ok(ExitStatus::from_raw(status.as_raw()))
}

fn is_exhausted(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
        Some(Errno::MFILE | Errno::NFILE | Errno::NOSPC | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_errors_mean_exhaustion_table() {
        let check = |errno: Errno, expected| {
            assert_eq!(is_exhausted(&errno.into()), expected, "{errno}");
        };
        check(Errno::MFILE, true);
        check(Errno::NFILE, true);
        check(Errno::NOSPC, true);
        check(Errno::NOMEM, true);
        check(Errno::SRCH, false);
        check(Errno::CHILD, false);
        check(Errno::INVAL, false);
    }
}
