//! Child processes: starting them, communicating with them and waiting for them.
//!
//! A [`Command`] describes what to run, [`spawn`](Command::spawn) starts it, and a [`Child`] is the
//! running process.
//!
//! Starting a process may take long, because the program is read from disk and the system may have
//! to copy the process. The blocking pool therefore does this work. Waiting for the exit of a child
//! uses readiness of its pidfd (pidfd_open(2)). On systems without pidfds, one OS thread of the
//! blocking pool waits for each child.
//!
//! # No zombies
//!
//! A child that has exited stays in the process table until it is waited for. A [`Child`] that is
//! dropped before that is handed to the *reaper*, an OS thread that exists only while there are
//! such children and depends on no runtime. The reaper polls children without a pidfd ten times per
//! second. It polls all children while the process has no descriptors with which to wait. If the
//! reaper's OS thread cannot be started, starting or dropping the next child tries again.
//!
//! Code that waits for *any* child (`waitpid(-1)`) or ignores `SIGCHLD` consumes the exit status.
//! Waiting for the [`Child`] then returns an error.

mod child;
mod command;
mod reaper;
mod stdio;

pub use child::{Child, ChildStderr, ChildStdin, ChildStdout};
pub use command::Command;
pub use std::process::{ExitStatus, Output};
pub use stdio::Stdio;
