//! Child processes: starting them, talking to them, waiting for them.
//!
//! A [`Command`] describes what to run, [`spawn`](Command::spawn) starts it, and a [`Child`] is what is running.
//! Starting may block for long (the program is read from a disk, the whole process is copied where the system knows no better
//! way), so it is done on the blocking pool. A child's end is waited for by readiness of its pidfd (pidfd_open(2)); where the
//! system has none, by one OS thread of the blocking pool for each child that is waited for.
//!
//! # No zombies
//!
//! A child that has ended stays in the table of processes until it is waited for. A [`Child`] that is dropped before that is
//! handed to the *reaper*: one OS thread for the whole process, which is there only while there are such children, and
//! does not depend on any runtime. Children that have no pidfd it asks ten times a second, and all of them while the process has no
//! descriptors to wait with. If the OS thread can't be
//! started, the next child that is started or dropped has it tried again.
//!
//! `wait` in other libraries for *any* child (`waitpid(-1)`), or ignoring `SIGCHLD`, takes the exit status away; waiting here
//! then gives an error.

mod child;
mod command;
mod reaper;
mod stdio;

pub use child::{Child, ChildStderr, ChildStdin, ChildStdout};
pub use command::Command;
pub use std::process::{ExitStatus, Output};
pub use stdio::Stdio;
