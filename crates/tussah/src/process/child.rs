//! A child process that is running, or has exited but has not been waited for.

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

/// The writing end of the pipe to a child's standard input.
pub type ChildStdin = Writer;
/// The reading end of the pipe from a child's standard output.
pub type ChildStdout = Reader;
/// The reading end of the pipe from a child's standard error.
pub type ChildStderr = Reader;

/// A child process, started by [`Command::spawn`](super::Command::spawn).
///
/// If a `Child` is dropped before it has been waited for, the process continues to run, unless
/// [`kill_on_drop`](super::Command::kill_on_drop) is set. The process is reaped when it exits; see
/// the [module documentation](super).
pub struct Child {
    /// The child's standard input, if [piped](super::Stdio::piped).
    pub stdin: Option<ChildStdin>,
    /// The child's standard output, if [piped](super::Stdio::piped).
    pub stdout: Option<ChildStdout>,
    /// The child's standard error, if [piped](super::Stdio::piped).
    pub stderr: Option<ChildStderr>,
    /// This is always `Some` until `drop`.
    child: Option<std::process::Child>,
    /// Readable when the child has exited. `None` where the system provides no pidfd.
    pidfd: Option<Source>,
    /// Waits for the child's exit where there is no pidfd, or epoll has no room for it.
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
        // This comes first, so that the child is reaped whatever fails below.
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

    /// Returns the PID. The system may reuse the PID once the child has been waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, std::process::Child::id)
    }

    /// Closes `stdin`, unless it has been taken, and waits until the child exits.
    ///
    /// A child that writes to a full pipe blocks until someone reads from the pipe. To read the
    /// outputs while waiting, use [`wait_with_output`](Self::wait_with_output).
    ///
    /// # Errors
    /// Returns the system's error, for example if other code has waited for the child. Returns
    /// `Other` if the runtime ends.
    ///
    /// # Cancellation
    /// If the future is dropped, `stdin` stays closed. Call `wait` again to get the status.
    ///
    /// # Examples
    /// ```
    /// use tussah::process::Command;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let mut child = Command::new("true").spawn().await?;
    /// assert!(child.wait().await?.success());
    /// assert!(child.wait().await?.success()); // the status is kept
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
            // A descriptor may be available now. The PID is still the child's, since nobody has
            // waited for it.
            self.pidfd = open_pidfd(&self.handle, self.child.as_ref().expect("it is there"));
        }
        let waited = match &self.pidfd {
            Some(pidfd) => {
                let child = self.child.as_mut().expect("it is there until the drop");
                let ended = pidfd.io(Direction::Read, |_| {
                    try_wait(child)?.ok_or(io::ErrorKind::WouldBlock.into())
                });
                match ended.await {
                    // epoll has no room for the pidfd. An error about the child itself will occur
                    // again.
                    Err(error) if error.raw_os_error().is_some() => self.wait_without_pidfd().await,
                    ended => ended,
                }
            }
            None => self.wait_without_pidfd().await,
        };
        waited.map_err(|error| context(error, "wait for", &self.program))
    }

    /// Waits on an OS thread of the blocking pool. That thread leaves the status in place, so it
    /// does no harm if nobody needs the result.
    async fn wait_without_pidfd(&mut self) -> io::Result<ExitStatus> {
        loop {
            let child = self.child.as_mut().expect("it is there until the drop");
            if let Some(status) = try_wait(child)? {
                return Ok(status);
            }
            let pid = Pid::from_child(child);
            if self.waiting.is_none() {
                let wait = move || {
                    // This fails only if the child no longer exists, and `try_wait` then reports
                    // why.
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

    /// Returns the exit status, or `None` if the child has not exited.
    ///
    /// # Errors
    /// Same as [`wait`](Self::wait).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let child = self.child.as_mut().expect("it is there until the drop");
        try_wait(child).map_err(|error| context(error, "wait for", &self.program))
    }

    /// Closes `stdin`, reads the piped outputs to end-of-file, and waits for the child.
    ///
    /// # Errors
    /// Returns `QuotaExceeded` if the child writes more to one output than
    /// [`output_max`](super::Command::output_max) allows, or any error from [`wait`](Self::wait)
    /// and [`Reader::read`]. After an error, the `Child` is dropped.
    ///
    /// # Cancellation
    /// Dropping the future drops the `Child`.
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

    /// Kills the child and waits for its exit.
    ///
    /// # Errors
    /// Returns any error from [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
    ///
    /// # Cancellation
    /// The first poll of the future kills the child. Otherwise same as [`wait`](Self::wait).
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

    /// Kills the child with `SIGKILL`. Does nothing if the child has already been waited for.
    ///
    /// # Errors
    /// Returns the system's error, for example if the child now runs as another user.
    pub fn start_kill(&mut self) -> io::Result<()> {
        let child = self.child.as_mut().expect("it is there until the drop");
        let killed = child.kill();
        killed.map_err(|error| context(error, "kill", &self.program))
    }

    /// Sends a signal to the child.
    ///
    /// # Errors
    /// Returns `NotFound` if the child has exited, or any error from
    /// [`start_kill`](Self::start_kill).
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
            // Nobody has waited for the child, so the PID is still its own.
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

/// Opens a pidfd for the child, if the system supports and permits it and a descriptor is free.
/// Returns the status of a child that has exited. An interrupted call is repeated.
pub(super) fn try_wait(child: &mut std::process::Child) -> io::Result<Option<ExitStatus>> {
    loop {
        match child.try_wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            ended => return ended,
        }
    }
}

fn open_pidfd(handle: &Handle, child: &std::process::Child) -> Option<Source> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()?;
    Some(Source::new_in(handle, pidfd))
}

/// Reads the pipe to its end, if there is one.
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
            // This fails only for a child that is no longer ours.
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
