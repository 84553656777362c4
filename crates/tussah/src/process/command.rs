//! A builder for child processes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Output};
use std::task::{Context, Poll, ready};

use tussah_core::{BlockingHandle, Handle, JoinError, SubmitError};

use super::child::Child;
use super::reaper;
use super::stdio::Stdio;
use crate::io_error::context;

/// Bound, in bytes: the default of `Command::output_max`. More output from one stream is an error.
const OUTPUT_MAX: usize = 64 * 1024 * 1024;

/// A description of the process to start: program, arguments, environment, directory and standard
/// streams. It works like [`std::process::Command`].
///
/// A command can be spawned several times.
///
/// # Examples
/// ```
/// use tussah::process::Command;
/// # let runtime = tussah::Runtime::builder().workers(1).build()?;
/// # runtime.block_on(runtime.spawn(async move {
/// let output = Command::new("sh").args(["-c", "echo $GREETING"]).env("GREETING", "hello").output().await?;
/// assert!(output.status.success());
/// assert_eq!(output.stdout, b"hello\n");
///
/// let error = Command::new("/no/such/program").spawn().await.expect_err("it does not exist");
/// assert_eq!(error.to_string(), "spawn /no/such/program: No such file or directory (os error 2)");
/// # std::io::Result::Ok(())
/// # })).expect("no panic")?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    program: OsString,
    name: Option<OsString>,
    arguments: Vec<OsString>,
    /// True if the environment of this process is not inherited.
    only_changes: bool,
    /// Variables to set or remove, in this order.
    changes: Vec<(OsString, Option<OsString>)>,
    directory: Option<PathBuf>,
    streams: [Option<Stdio>; 3],
    ids: Ids,
    kill_on_drop: bool,
    output_max: usize,
}

#[derive(Clone, Copy, Default, Debug)]
struct Ids {
    user: Option<u32>,
    group: Option<u32>,
    process_group: Option<i32>,
}

impl Command {
    /// Creates a command for a program, given by its path or by a name that is looked up in `PATH`.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            name: None,
            arguments: Vec::new(),
            only_changes: false,
            changes: Vec::new(),
            directory: None,
            streams: [None, None, None],
            ids: Ids::default(),
            kill_on_drop: false,
            output_max: OUTPUT_MAX,
        }
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    pub fn args<A: AsRef<OsStr>>(&mut self, arguments: impl IntoIterator<Item = A>) -> &mut Self {
        let arguments = arguments.into_iter();
        self.arguments
            .extend(arguments.map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets `argv[0]` of the program. Default: the name or path that was passed to
    /// [`new`](Self::new).
    pub fn arg0(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.name = Some(name.as_ref().to_owned());
        self
    }

    /// Sets an environment variable.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.change(key.as_ref(), Some(value.as_ref().to_owned()))
    }

    /// Sets several environment variables.
    pub fn envs<K: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> &mut Self {
        for (key, value) in variables {
            self.env(key, value);
        }
        self
    }

    /// Removes an environment variable.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.change(key.as_ref(), None)
    }

    /// Clears the child's environment. The child inherits no environment variables, and any
    /// variables that were set before this call are removed.
    pub fn env_clear(&mut self) -> &mut Self {
        self.only_changes = true;
        self.changes.clear();
        self
    }

    fn change(&mut self, key: &OsStr, value: Option<OsString>) -> &mut Self {
        self.changes.push((key.to_owned(), value));
        self
    }

    /// Sets the program's working directory. Default: the working directory of this process.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets the child's standard input. By default, the child inherits this process's standard
    /// input; [`output`](Self::output) uses `/dev/null` instead.
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Self {
        self.streams[0] = Some(stdin.into());
        self
    }

    /// Sets the child's standard output. By default, the child inherits this process's standard
    /// output; [`output`](Self::output) uses a pipe instead.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Self {
        self.streams[1] = Some(stdout.into());
        self
    }

    /// Sets the child's standard error. By default, the child inherits this process's standard
    /// error; [`output`](Self::output) uses a pipe instead.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Self {
        self.streams[2] = Some(stderr.into());
        self
    }

    /// Sets the child's user ID. This setting requires privileges.
    pub fn uid(&mut self, id: u32) -> &mut Self {
        self.ids.user = Some(id);
        self
    }

    /// Sets the child's group ID. This setting requires privileges.
    pub fn gid(&mut self, id: u32) -> &mut Self {
        self.ids.group = Some(id);
        self
    }

    /// Sets the child's process group. With 0, the child gets a new process group, so Ctrl-C in the
    /// terminal does not reach it.
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.ids.process_group = Some(group);
        self
    }

    /// Sets whether dropping the [`Child`] kills the process if it has not exited. Default: false.
    /// The setting also applies when a future returned by [`spawn`](Self::spawn),
    /// [`output`](Self::output) or [`status`](Self::status) is dropped.
    pub fn kill_on_drop(&mut self, kill: bool) -> &mut Self {
        self.kill_on_drop = kill;
        self
    }

    /// Sets the maximum number of bytes that [`output`](Self::output) and
    /// [`Child::wait_with_output`] accept from each stream. Default: 64 MiB.
    pub fn output_max(&mut self, bytes: usize) -> &mut Self {
        self.output_max = bytes;
        self
    }

    /// Starts the program as a child of this process.
    ///
    /// # Errors
    /// Returns the system's error, for example if the program or directory does not exist, or if
    /// the limit on descriptors or processes is reached. Returns `ResourceBusy` if the blocking
    /// pool is full, and `Other` if the runtime is shut down. After an error, no child process
    /// remains.
    ///
    /// # Panics
    /// The first poll panics outside a runtime.
    ///
    /// # Cancellation
    /// If the start has not begun, dropping the future cancels it. If the program is already being
    /// started, the resulting [`Child`] is dropped.
    ///
    /// # Examples
    /// ```
    /// use tussah::process::{Command, Stdio};
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().await?;
    /// let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    /// stdin.write_all(b"hello").await?;
    /// drop(stdin);
    /// let mut text = Vec::new();
    /// stdout.read_to_end(&mut text).await?;
    /// assert_eq!(text, b"hello");
    /// assert!(child.wait().await?.success());
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn spawn(&self) -> io::Result<Child> {
        self.spawn_with([Stdio::inherit(), Stdio::inherit(), Stdio::inherit()])
            .await
    }

    /// Runs the program until it exits, and returns its status and output.
    ///
    /// # Errors
    /// Returns any error from [`spawn`](Self::spawn) and [`Child::wait_with_output`].
    ///
    /// # Panics
    /// The first poll panics outside a runtime.
    ///
    /// # Cancellation
    /// Dropping the future drops the [`Child`]. Unless [`kill_on_drop`](Self::kill_on_drop) is set,
    /// the process continues to run, but nothing reads its output.
    ///
    /// # Examples
    /// See [`Command`].
    pub async fn output(&self) -> io::Result<Output> {
        let streams = [Stdio::null(), Stdio::piped(), Stdio::piped()];
        let child = self.spawn_with(streams).await?;
        child.wait_with_output().await
    }

    /// Runs the program until it exits, and returns its status.
    ///
    /// # Errors
    /// Returns any error from [`spawn`](Self::spawn) and [`Child::wait`].
    ///
    /// # Panics
    /// The first poll panics outside a runtime.
    ///
    /// # Cancellation
    /// Dropping the future drops the [`Child`]. The process continues to run, unless
    /// [`kill_on_drop`](Self::kill_on_drop) is set.
    ///
    /// # Examples
    /// ```
    /// use tussah::process::Command;
    /// # let runtime = tussah::Runtime::builder().workers(1).build()?;
    /// # runtime.block_on(runtime.spawn(async move {
    /// let status = Command::new("sh").args(["-c", "exit 7"]).status().await?;
    /// assert_eq!(status.code(), Some(7));
    /// # std::io::Result::Ok(())
    /// # })).expect("no panic")?;
    /// # std::io::Result::Ok(())
    /// ```
    pub async fn status(&self) -> io::Result<ExitStatus> {
        let mut child = self.spawn().await?;
        child.wait().await
    }

    async fn spawn_with(&self, defaults: [Stdio; 3]) -> io::Result<Child> {
        reaper::look_again();
        let spawned = match self.submit(defaults) {
            Ok(job) => Job(job).await.unwrap_or_else(|error| Err(ended(error))),
            Err(error) => Err(error),
        };
        spawned.map_err(|error| context(error, "spawn", self.object()))
    }

    /// Starts the program on the blocking pool.
    fn submit(&self, defaults: [Stdio; 3]) -> io::Result<BlockingHandle<io::Result<Child>>> {
        let handle = Handle::current();
        let mut command = self.to_std(defaults)?;
        let program = self.program.to_string_lossy().into_owned();
        let (kill_on_drop, output_max) = (self.kill_on_drop, self.output_max);
        let pool = handle.clone();
        let start = move || {
            let child = command.spawn()?;
            Child::new(handle, child, program, kill_on_drop, output_max)
        };
        pool.blocking().submit(start).map_err(refused)
    }

    fn to_std(&self, defaults: [Stdio; 3]) -> io::Result<std::process::Command> {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.arguments);
        if let Some(name) = &self.name {
            command.arg0(name);
        }
        if self.only_changes {
            command.env_clear();
        }
        for (key, value) in &self.changes {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some(id) = self.ids.user {
            command.uid(id);
        }
        if let Some(id) = self.ids.group {
            command.gid(id);
        }
        if let Some(group) = self.ids.process_group {
            command.process_group(group);
        }
        let of = |at: usize| self.streams[at].as_ref().unwrap_or(&defaults[at]).to_std();
        command.stdin(of(0)?).stdout(of(1)?).stderr(of(2)?);
        Ok(command)
    }

    /// Returns the description of the program for error messages.
    fn object(&self) -> String {
        let program = self.program.display();
        match &self.directory {
            Some(directory) => format!("{program} in {}", directory.display()),
            None => program.to_string(),
        }
    }
}

/// A job that is cancelled when its waiter is dropped.
struct Job<T>(BlockingHandle<T>);

impl<T> Future for Job<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(result)
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        // A job that has started is not affected; its result is dropped.
        self.0.abort();
    }
}

/// Returns the error for a job that the pool rejected.
pub(super) fn refused<F>(error: SubmitError<F>) -> io::Error {
    let kind = if error.is_full() {
        io::ErrorKind::ResourceBusy
    } else {
        io::ErrorKind::Other
    };
    io::Error::new(kind, error.to_string())
}

/// Returns the error for a job without a result.
pub(super) fn ended(error: JoinError) -> io::Error {
    io::Error::other(error.to_string())
}
