//! A running program of the sweep: its start, its steps, and its end.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::client;
use super::outcome::{Seen, Step};
use super::program::{Program, log_path, renamed};
use super::servent;

/// The time limit for a program to start, to respond and to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval for checking whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);
/// Bound, in tries: the maximum number of requests to a program after its calls no longer fail,
/// because each of its OS threads may encounter the error once.
const ANSWERS_MAX: usize = 6;
/// The part of the log line in which `lines.weave` reports its address.
pub(super) const LISTENING: &str = "label=\"listening\"";
/// The number of rounds that the example `exercise` does.
const ROUNDS: usize = 4;

/// A running program. If it is dropped, the program is ended.
pub(super) struct Running {
    child: Child,
    /// The strace that was attached to it.
    tracer: Option<Child>,
    stdin: Option<ChildStdin>,
    pub(super) lines: Receiver<String>,
}

impl Running {
    /// Starts a program with this command line.
    pub(super) fn start(
        program: Program,
        line: &[String],
        folder: &Path,
        strace: &[String],
        trace: &Path,
    ) -> anyhow::Result<Self> {
        let mut command = if strace.is_empty() {
            Command::new(&line[0])
        } else {
            // With `-D`, the program is our child and strace is a child of the program, so that we
            // get the program's exit status.
            let mut command = tracer(strace, trace);
            command.args(["-D", "-qq", "--"]).arg(&line[0]);
            command
        };
        command.args(&line[1..]).env("RUST_BACKTRACE", "0");
        command.current_dir(folder).env("TMPDIR", folder);
        if program == Program::Pool {
            command.env("TUSSAH_FILES", "pool");
        }
        let errors = File::create(trace.with_extension("err"))?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", line[0]))?;
        let stdout = BufReader::new(child.stdout.take().expect("it was piped above"));
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            stdin: child.stdin.take(),
            child,
            tracer: None,
            lines,
        })
    }

    /// Attaches strace, and waits until it traces all OS threads of the program.
    pub(super) fn attach(&mut self, strace: &[String], trace: &Path) -> anyhow::Result<()> {
        let mut command = tracer(strace, trace);
        command.arg("-p").arg(self.child.id().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut tracer = command.stderr(Stdio::piped()).spawn()?;
        let mut messages = BufReader::new(tracer.stderr.take().expect("it was piped above"));
        self.tracer = Some(tracer);
        let mut message = String::new();
        messages.read_line(&mut message)?;
        ensure!(message.contains(" attached"), "strace fails: {message}");
        // strace must never wait for a reader.
        std::thread::spawn(move || std::io::copy(&mut messages, &mut std::io::sink()));
        Ok(())
    }

    /// Waits until the program is ready, and returns its address, or the line with its addresses.
    pub(super) fn ready(&self, program: Program, trace: &Path) -> Option<String> {
        let line = match program {
            Program::Load => return Some(String::new()),
            Program::Run => self.logged(trace)?,
            _ => self.lines.recv_timeout(PATIENCE).ok()?,
        };
        if matches!(
            program,
            Program::Core | Program::Pool | Program::Net | Program::Gnutella
        ) {
            return Some(line);
        }
        let address = line.split_whitespace().find_map(|word| {
            let at = word.find("127.0.0.1:")?;
            Some(word[at..].trim_end_matches('/'))
        });
        Some(address.unwrap_or_default().to_owned())
    }

    /// Waits until the program has logged the address at which it listens, and returns that line.
    fn logged(&self, trace: &Path) -> Option<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            // The program prints nothing, so its output closes when it ends.
            let output = self.lines.recv_timeout(LOOK);
            let said = fs::read_to_string(trace.with_extension("err")).ok()?;
            if let Some(line) = said.lines().find(|line| line.contains(LISTENING)) {
                return Some(line.to_owned());
            }
            if output != Err(RecvTimeoutError::Timeout) || Instant::now() > end {
                return None;
            }
        }
    }

    pub(super) fn work(&mut self, program: Program, address: &str, trace: &Path, seen: &mut Seen) {
        match program {
            Program::Load => {}
            Program::Core | Program::Pool | Program::Net => {
                for _ in 0..ROUNDS {
                    seen.steps.push(self.round());
                    if matches!(seen.steps.last(), Some(Step::Wrong(_))) {
                        return;
                    }
                }
                seen.answers = (0..ANSWERS_MAX).any(|_| self.round() == Step::Right);
            }
            Program::Web | Program::WebTls | Program::WebPhp => {
                let get = |path| client::get(program == Program::WebTls, address, path);
                let paths = match program {
                    Program::WebPhp => client::PHP_PATHS,
                    _ => client::PATHS,
                };
                seen.steps.extend(paths.iter().map(|path| get(path)));
                match program {
                    Program::Web => seen.steps.push(client::pair(address)),
                    Program::WebPhp => seen.steps.push(client::post(address)),
                    _ => {}
                }
                seen.answered = seen.right();
                seen.steps.push(self.rotate(trace));
                seen.answers = (0..ANSWERS_MAX).any(|_| get(paths[0]) == Step::Right);
                seen.answered += usize::from(seen.answers);
            }
            Program::Video | Program::SmallWeb => {
                let get = |path| client::get(false, address, path);
                let paths = match program {
                    Program::Video => client::VIDEO_PATHS,
                    _ => client::SMALL_WEB_PATHS,
                };
                seen.steps.extend(paths.iter().map(|path| get(path)));
                seen.answers = (0..ANSWERS_MAX).any(|_| get(paths[0]) == Step::Right);
            }
            Program::Gnutella => {
                let (address, http) = servent::addresses(address);
                let paths = client::SHARED_PATHS.iter();
                seen.steps
                    .extend(paths.map(|path| client::get(false, http, path)));
                seen.steps
                    .extend((0..ROUNDS).map(|_| servent::ask(address)));
                seen.steps.push(servent::search(http));
                seen.answers = (0..ANSWERS_MAX).any(|_| servent::ask(address) == Step::Right);
            }
            // The program has reported that it does not know its address.
            Program::Echo if address.is_empty() => {
                seen.steps.push(Step::Refused("no address".to_owned()));
                seen.answers = true;
            }
            Program::Echo | Program::Run => {
                let expected = match program {
                    Program::Echo => "1: line\n",
                    _ => "line\n",
                };
                let echo = |_| client::echo(address, expected);
                seen.steps.extend((0..ROUNDS).map(echo));
                seen.answers = (0..ANSWERS_MAX).map(echo).any(|step| step == Step::Right);
                seen.answered = seen.right() + usize::from(seen.answers);
            }
        }
    }

    /// Runs one round of the exercise.
    fn round(&mut self) -> Step {
        let Some(stdin) = &mut self.stdin else {
            return Step::Cut("no input".to_owned());
        };
        if let Err(error) = stdin.write_all(b"\n") {
            return Step::Cut(error.to_string());
        }
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) if line == "ok" => Step::Right,
            Ok(line) if line.starts_with("error: ") => Step::Refused(line),
            Ok(line) => Step::Wrong(line),
            Err(error) => Step::Wrong(format!("no answer: {error}")),
        }
    }

    /// Renames the access log, and lets the server reload its configuration and open a new log.
    fn rotate(&self, trace: &Path) -> Step {
        let log = log_path(trace);
        let said = || fs::metadata(trace.with_extension("err")).map_or(0, |file| file.len());
        let said_before = said();
        if let Err(error) = fs::rename(&log, renamed(&log)) {
            return Step::Wrong(format!("there is no access log: {error}"));
        }
        // The server may have ended by itself, which `has_ended` detects.
        let _ = kill_process(Pid::from_child(&self.child), Signal::HUP);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if log.exists() {
                return Step::Right;
            }
            if said() > said_before {
                return Step::Refused("the reload was refused".to_owned());
            }
            std::thread::sleep(LOOK);
        }
        Step::Wrong("the access log is not reopened".to_owned())
    }

    pub(super) fn has_ended(&mut self) -> bool {
        // It takes a moment for a program to abort.
        std::thread::sleep(LOOK);
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    pub(super) fn ask_to_end(&mut self, program: Program) {
        let signal = match program {
            Program::Core | Program::Pool | Program::Net => return drop(self.stdin.take()),
            Program::Load => return,
            Program::Echo => Signal::INT,
            _ => Signal::TERM,
        };
        // The program may already have ended, which the next line detects.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Waits for the program to end. Returns `None` if the program had to be killed.
    pub(super) fn wait(&mut self) -> Option<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                if let Some(tracer) = &mut self.tracer {
                    // It ends with the last OS thread that it traces.
                    let _ = tracer.wait();
                }
                return Some(status);
            }
            std::thread::sleep(LOOK);
        }
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program has already ended unless it hangs.
        for child in [Some(&mut self.child), self.tracer.as_mut()] {
            let Some(child) = child else { continue };
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns strace with arguments. It traces the OS threads of a program, and its children until
/// they execute other programs.
fn tracer(strace: &[String], trace: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-b", "execve", "-e", "signal=none", "-o"]);
    command.arg(trace).args(strace);
    command
}
