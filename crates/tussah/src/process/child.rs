//! A child process that runs, or has ended and was not waited for.

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Output};

use futures_util::future::try_join3;
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, kill_process, pidfd_open, pidfd_send_signal, waitid,
};
use tussah_core::io::{Direction, Source};
use tussah_core::{BlockingHandle, Handle};

use super::command::{ended, refused};
use super::reaper;
use crate::io_error::context;
use crate::pipe::{Reader, Writer};
use crate::signal::Signal;

/// The end of a pipe that a child reads from.
pub type ChildStdin = Writer;
/// The end of a pipe that a child writes to.
pub type ChildStdout = Reader;
/// The end of a pipe that a child writes errors to.
pub type ChildStderr = Reader;

/// A child process, started by [`Command::spawn`](super::Command::spawn).
///
/// A child that is dropped before it was waited for goes on, unless
/// [`kill_on_drop`](super::Command::kill_on_drop) is set, and is reaped when it ends: see [the module](super).
pub struct Child {
    /// What the child reads, if that is [piped](super::Stdio::piped).
    pub stdin: Option<ChildStdin>,
    /// What the child writes, if that is [piped](super::Stdio::piped).
    pub stdout: Option<ChildStdout>,
    /// The errors that the child writes, if they are [piped](super::Stdio::piped).
    pub stderr: Option<ChildStderr>,
    /// Always there, until the drop.
    child: Option<std::process::Child>,
    /// Readable when the child has ended; `None` where the system gives none.
    pidfd: Option<Source>,
    /// Waits for the child's end where there is no pidfd, or nothing that would report on it.
    waiting: Option<BlockingHandle<()>>,
    handle: Handle,
    program: String,
    kill_on_drop: bool,
    output_max: usize,
}

impl Child {
    pub(super) fn new(
        handle: Handle,
        mut child: std::process::Child,
        program: String,
        kill_on_drop: bool,
        output_max: usize,
    ) -> io::Result<Self> {
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        // First of all, so that the child is looked after whatever fails.
        let mut this = Self {
            stdin: None,
            stdout: None,
            stderr: None,
            pidfd: open_pidfd(&handle, &child),
            child: Some(child),
            waiting: None,
            handle,
            program,
            kill_on_drop,
            output_max,
        };
        if let Some(fd) = stdin {
            let writer = Writer::from_fd_in(&this.handle, fd.into(), "the child's stdin")?;
            this.stdin = Some(writer);
        }
        if let Some(fd) = stdout {
            let reader = Reader::from_fd_in(&this.handle, fd.into(), "the child's stdout")?;
            this.stdout = Some(reader);
        }
        if let Some(fd) = stderr {
            let reader = Reader::from_fd_in(&this.handle, fd.into(), "the child's stderr")?;
            this.stderr = Some(reader);
        }
        Ok(this)
    }

    /// The number of the process. It may be another's once the child was waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, std::process::Child::id)
    }

    /// Closes `stdin`, unless it was taken, and waits until the child has ended.
    ///
    /// A child that fills a pipe that nobody reads does not end: see [`wait_with_output`](Self::wait_with_output).
    ///
    /// # Errors
    /// What the system said: somebody else has waited for the child. `Other` when the runtime ends.
    ///
    /// # Cancellation
    /// Dropping the future has no effect but that `stdin` is closed; waiting again gives the status.
    ///
    /// # Examples
    /// ```
    /// use tussah::process::Command;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let mut child = Command::new("true").spawn().await?;
    /// assert!(child.wait().await?.success());
    /// assert!(child.wait().await?.success()); // it is kept
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        if let Some(status) = self.try_wait()? {
            return Ok(status);
        }
        if self.pidfd.is_none() {
            // There may be descriptors now. The number is still the child's, which was not waited for.
            self.pidfd = open_pidfd(&self.handle, self.child.as_ref().expect("it is there"));
        }
        let waited = match &self.pidfd {
            Some(pidfd) => {
                let child = self.child.as_mut().expect("it is there until the drop");
                let ended = pidfd.io(Direction::Read, |_| {
                    child.try_wait()?.ok_or(io::ErrorKind::WouldBlock.into())
                });
                match ended.await {
                    // The system has no room to report on it. What it said of the child it says again.
                    Err(error) if error.raw_os_error().is_some() => self.wait_without_pidfd().await,
                    ended => ended,
                }
            }
            None => self.wait_without_pidfd().await,
        };
        waited.map_err(|error| context(error, "wait for", &self.program))
    }

    /// Has an OS thread of the blocking pool wait. It leaves the status, so that it does no harm if it waits in vain.
    async fn wait_without_pidfd(&mut self) -> io::Result<ExitStatus> {
        loop {
            let child = self.child.as_mut().expect("it is there until the drop");
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let pid = Pid::from_child(child);
            if self.waiting.is_none() {
                let wait = move || {
                    // It can only fail if there is no such child any more, and then `try_wait` says why.
                    let _ = waitid(
                        WaitId::Pid(pid),
                        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
                    );
                };
                let job = self.handle.blocking().submit(wait).map_err(refused)?;
                self.waiting = Some(job);
            }
            if let Some(waiting) = &mut self.waiting {
                let result = Pin::new(waiting).await;
                self.waiting = None;
                result.map_err(ended)?;
            }
        }
    }

    /// The status of the child if it has ended.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let child = self.child.as_mut().expect("it is there until the drop");
        let ended = child.try_wait();
        ended.map_err(|error| context(error, "wait for", &self.program))
    }

    /// Closes `stdin`, reads the child's outputs to their ends, as far as they are there, and waits for it.
    ///
    /// # Errors
    /// `QuotaExceeded` if the child writes more to one of them than
    /// [`output_max`](super::Command::output_max) allows; else as [`wait`](Self::wait) and [`Reader::read`]. The child is
    /// dropped then.
    ///
    /// # Cancellation
    /// Dropping the future drops the child.
    ///
    /// # Examples
    /// ```
    /// use tussah::process::{Command, Stdio};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn().await?;
    /// let output = child.wait_with_output().await?;
    /// assert_eq!((output.stdout, output.stderr), (b"hello\n".to_vec(), Vec::new()));
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        let len_max = self.output_max;
        let stdout = read_all(self.stdout.take(), len_max);
        let stderr = read_all(self.stderr.take(), len_max);
        let (stdout, stderr, status) = try_join3(stdout, stderr, self.wait()).await?;
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }

    /// Has the kernel end the child, and waits for that.
    ///
    /// # Errors
    /// As [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
    ///
    /// # Cancellation
    /// As [`wait`](Self::wait), once it was polled: the child ends.
    ///
    /// # Examples
    /// ```
    /// use std::os::unix::process::ExitStatusExt;
    /// use tussah::process::Command;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let mut child = Command::new("sleep").arg("1000").spawn().await?;
    /// assert_eq!(child.kill().await?.signal(), Some(9));
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.start_kill()?;
        self.wait().await
    }

    /// Has the kernel end the child (`KILL`); nothing happens to one that was waited for.
    ///
    /// # Errors
    /// What the system said: the child is another user's by now.
    pub fn start_kill(&mut self) -> io::Result<()> {
        let child = self.child.as_mut().expect("it is there until the drop");
        let killed = child.kill();
        killed.map_err(|error| context(error, "kill", &self.program))
    }

    /// Sends a signal to the child.
    ///
    /// # Errors
    /// `NotFound` if the child has ended; else as [`start_kill`](Self::start_kill).
    ///
    /// # Examples
    /// ```
    /// use std::os::unix::process::ExitStatusExt;
    /// use tussah::{process::Command, signal::Signal};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let mut child = Command::new("sleep").arg("1000").spawn().await?;
    /// child.signal(Signal::TERM)?;
    /// assert_eq!(child.wait().await?.signal(), Some(Signal::TERM.as_raw()));
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        let send = |this: &mut Self| {
            if this.try_wait()?.is_some() {
                return Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    "the child has ended",
                ));
            }
            // It was not waited for, so the number is its own.
            let child = this.child.as_ref().expect("it is there until the drop");
            match &this.pidfd {
                Some(pidfd) => pidfd_send_signal(pidfd, signal.number())?,
                None => kill_process(Pid::from_child(child), signal.number())?,
            }
            Ok(())
        };
        send(self).map_err(|error| context(error, "send a signal to", &self.program))
    }
}

/// A descriptor of the child's end, if the system has such, permits it, and has one left.
fn open_pidfd(handle: &Handle, child: &std::process::Child) -> Option<Source> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()?;
    Some(Source::new_in(handle, pidfd))
}

/// Reads what there is, if there is a pipe.
async fn read_all(reader: Option<Reader>, len_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(reader) = reader {
        reader.read_to_limit(&mut bytes, len_max).await?;
    }
    if bytes.len() > len_max {
        let text = format!("expected {len_max} bytes at most");
        let error = io::Error::new(io::ErrorKind::QuotaExceeded, text);
        return Err(context(error, "read", "the child's output"));
    }
    Ok(bytes)
}

impl Drop for Child {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        if self.kill_on_drop {
            // It can only fail for a child that is not ours any more.
            let _ = child.kill();
        }
        reaper::hand_over(child, self.pidfd.take().map(Source::into_fd));
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("program", &self.program)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
