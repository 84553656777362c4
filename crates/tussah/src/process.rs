//! Child processes: starting them, communicating with them and waiting for them.
//!
//! A [`Command`] describes a program to run, [`spawn`](Command::spawn) starts it, and a [`Child`]
//! is the running process.
//!
//! Starting a process can take a long time, because the operating system reads the program from
//! disk, and may have to copy the page tables of this process. The runtime therefore starts
//! processes on the blocking pool. To wait for the exit of a child, the runtime waits until the
//! child's pidfd is readable (pidfd_open(2)). Without a pidfd, the runtime instead waits for the
//! child on an OS thread of the blocking pool.
//!
//! # No zombies
//!
//! After a child exits, it stays in the process table until the parent waits for it. If a [`Child`]
//! is dropped before it has been waited for, a *reaper* waits for the process instead. The reaper
//! is an OS thread that belongs to no runtime, and exists only while it has children to wait for.
//! If a child has no pidfd, the reaper polls it ten times per second. If this process has no
//! descriptors left for the reaper's epoll instance, the reaper polls all of its children. If the
//! reaper's OS thread cannot be started, tussah tries again when the program next starts or drops a
//! child.
//!
//! A child's exit status is lost if other code in this process ignores `SIGCHLD`, or calls
//! `waitpid(-1)`, which waits for an arbitrary child. [`Child::wait`] then returns an error.

mod child;
mod command;
mod reaper;
mod stdio;

pub use child::{Child, ChildStderr, ChildStdin, ChildStdout};
pub use command::Command;
pub use std::process::{ExitStatus, Output};
pub use stdio::Stdio;
