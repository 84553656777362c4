//! Runs a program with a time limit. Ctrl-C ends the program together with everything that it
//! started.

use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGINT, SIGTERM};

/// The interval for checking on a running program.
const LOOK: Duration = Duration::from_millis(50);
/// The time that a program has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A flag that is set once the user has asked this program to end.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles SIGINT and SIGTERM. The second signal ends the process immediately.
    ///
    /// # Errors
    ///
    /// Returns an error if the handlers cannot be installed.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM] {
            let flag = || Arc::clone(&interrupt.0);
            // The order matters: at the first signal, this handler must find the flag unset.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, flag())
                .and_then(|_| signal_hook::flag::register(signal, flag()))
                .context("cannot install a signal handler")?;
        }
        Ok(interrupt)
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The way in which a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(ExitStatus),
    /// The program was still running at its time limit and was killed.
    TimedOut,
    /// The user interrupted the command, and the program was ended.
    Interrupted,
    /// The caller's `tick` or `show` stopped the program.
    Stopped,
}

impl End {
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }
}

/// Runs a program without input, until it ends, its time is up, or the user interrupts it.
///
/// The program gets a process group of its own. On a timeout or an interrupt, the whole group is
/// asked to end, and killed if that takes too long. `tick` is called repeatedly with the time since
/// the start, so that it can show progress. If it returns a break, the program is ended as well.
///
/// # Errors
///
/// Returns an error if the program cannot be started or waited for.
pub(crate) fn run(
    command: &mut Command,
    limit: Option<Duration>,
    interrupt: &Interrupt,
    mut tick: impl FnMut(Duration) -> ControlFlow<()>,
) -> anyhow::Result<End> {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a program")? {
            return Ok(End::Exited(status));
        }
        let end = if interrupt.is_set() {
            End::Interrupted
        } else if limit.is_some_and(|limit| start.elapsed() >= limit) {
            End::TimedOut
        } else if tick(start.elapsed()).is_break() {
            End::Stopped
        } else {
            std::thread::sleep(LOOK);
            continue;
        };
        end_group(&mut child)?;
        return Ok(end);
    }
}

/// Does the same as [`run`], but also writes the program's output to a file, and returns it at the
/// end. `show` is called with the new output.
///
/// # Errors
///
/// Returns the errors of [`run`], and an error if the file cannot be read or written.
pub(crate) fn run_logged(
    command: &mut Command,
    log: &Path,
    limit: Option<Duration>,
    interrupt: &Interrupt,
    mut show: impl FnMut(&str) -> ControlFlow<()>,
) -> anyhow::Result<(End, String)> {
    let file = || format!("cannot write {}", log.display());
    if let Some(folder) = log.parent() {
        std::fs::create_dir_all(folder).with_context(file)?;
    }
    let output = File::create(log).with_context(file)?;
    let errors = output.try_clone().with_context(file)?;
    let mut reader = File::open(log).with_context(file)?;
    let mut text = String::new();
    let mut news = move |text: &mut String| {
        let mut bytes = Vec::new();
        // Output that cannot be read now will be read the next time.
        let _ = reader.read_to_end(&mut bytes);
        let from = text.len();
        text.push_str(&String::from_utf8_lossy(&bytes));
        match &text[from..] {
            "" => ControlFlow::Continue(()),
            news => show(news),
        }
    };
    command.stdout(output).stderr(errors);
    let end = run(command, limit, interrupt, |_| news(&mut text))?;
    let _ = news(&mut text);
    Ok((end, text))
}

/// Prints output and continues, for use with [`run_logged`].
pub(crate) fn print(news: &str) -> ControlFlow<()> {
    print!("{news}");
    ControlFlow::Continue(())
}

/// Ends a child and its process group, first with SIGTERM and then with SIGKILL.
fn end_group(child: &mut Child) -> anyhow::Result<()> {
    let group = Pid::from_child(child);
    // If the group has no processes, it has already ended.
    let _ = kill_process_group(group, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        if child
            .try_wait()
            .context("cannot wait for a program")?
            .is_some()
        {
            break;
        }
        std::thread::sleep(LOOK);
    }
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().context("cannot wait for a program")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_for(script: &str, limit: Option<Duration>, interrupt: &Interrupt) -> End {
        run(&mut shell(script), limit, interrupt, |_| {
            ControlFlow::Continue(())
        })
        .unwrap()
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_that_ends_gives_its_status() {
        let end = run_for("exit 3", None, &Interrupt::default());
        assert!(matches!(end, End::Exited(status) if status.code() == Some(3)));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_its_children() {
        let limit = Some(Duration::ZERO);
        let end = run_for(
            "cat /dev/zero | cat > /dev/null",
            limit,
            &Interrupt::default(),
        );
        assert_eq!(end, End::TimedOut);
    }

    #[test]
    fn output_is_shown_and_kept() {
        let log = std::env::temp_dir().join(format!("xtask-process-{}", std::process::id()));
        let mut shown = String::new();
        let mut command = shell("echo one; echo two >&2");
        let ran = run_logged(&mut command, &log, None, &Interrupt::default(), |text| {
            shown.push_str(text);
            ControlFlow::Continue(())
        });
        let (end, text) = ran.unwrap();
        assert!(end.is_success());
        assert_eq!(
            (text.as_str(), shown.as_str()),
            ("one\ntwo\n", "one\ntwo\n")
        );
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_satisfied_reader_ends_the_program() {
        let mut command = shell("cat /dev/zero > /dev/null");
        let end = run(&mut command, None, &Interrupt::default(), |_| {
            ControlFlow::Break(())
        });
        assert_eq!(end.unwrap(), End::Stopped);
    }

    #[test]
    fn an_interrupt_ends_the_program() {
        let interrupt = Interrupt::default();
        interrupt.0.store(true, Ordering::Relaxed);
        let end = run_for("cat /dev/zero > /dev/null", None, &interrupt);
        assert_eq!(end, End::Interrupted);
    }
}
