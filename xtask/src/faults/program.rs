//! The programs of the sweep: how they start, what they do, and how they end.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};

use super::client;
use super::outcome::{Seen, Step};

/// The time limit for a program to start, to respond and to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval for checking whether a program has ended.
const LOOK: Duration = Duration::from_millis(10);
/// Bound, in tries: the requests to a program after its calls no longer fail, because each of its
/// OS threads may encounter the error once.
const ANSWERS_MAX: usize = 6;
/// The number of rounds that the example `exercise` does.
const ROUNDS: usize = 4;

/// A program with its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The example `exercise`: events, timers, the pool, files, pipes, sockets and children.
    Core,
    /// `tussah web` over TCP: small files, a large one, a part of it, and a computed response.
    Web,
    /// The same server over TLS, with curl.
    WebTls,
    /// `tussah load`, against a server without failures.
    Load,
    /// The example `echo_stages`.
    Echo,
}

impl Program {
    pub(super) const ALL: [Self; 5] = [Self::Core, Self::Web, Self::WebTls, Self::Load, Self::Echo];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Web => "web",
            Self::WebTls => "web-tls",
            Self::Load => "load",
            Self::Echo => "echo",
        }
    }
}

/// The locations of the programs and their files.
pub(super) struct Place {
    pub(super) target: PathBuf,
    /// The folder with the served files, the traces and the output of the programs.
    pub(super) folder: PathBuf,
    /// The address of the server for `tussah load`.
    pub(super) url: String,
}

impl Place {
    fn command(&self, program: Program) -> Vec<String> {
        let path = |name: &str| self.target.join("debug").join(name).display().to_string();
        let folder = self.folder.display();
        let mut line = match program {
            Program::Core => vec![path("examples/exercise")],
            Program::Echo => vec![path("examples/echo_stages"), "127.0.0.1:0".to_owned()],
            Program::Load => vec![path("tussah"), "load".to_owned(), self.url.clone()],
            Program::Web | Program::WebTls => {
                vec![path("tussah"), "web".to_owned(), format!("{folder}/site")]
            }
        };
        let more = match program {
            Program::Core | Program::Echo => String::new(),
            Program::Load => "-n 200 -c 4 -w 1".to_owned(),
            Program::Web => "--listen 127.0.0.1:0 --work --drain 1s".to_owned(),
            Program::WebTls => format!(
                "--listen 127.0.0.1:0 --work --drain 1s --tls-cert {folder}/cert.pem --tls-key {folder}/key.pem"
            ),
        };
        line.extend(more.split_whitespace().map(str::to_owned));
        line
    }

    /// Starts a program and lets it do its work. `strace` contains arguments for strace, which
    /// writes to `trace`; if it is empty, the program runs without strace.
    pub(super) fn run(
        &self,
        program: Program,
        strace: &[String],
        trace: &Path,
    ) -> anyhow::Result<Seen> {
        let mut running = Running::start(self, program, strace, trace)?;
        let mut seen = Seen::default();
        match running.ready(program) {
            Some(address) => {
                running.work(program, &address, &mut seen);
                seen.ended_early = program != Program::Load && running.has_ended();
                if !seen.ended_early {
                    running.ask_to_end(program);
                }
            }
            None => seen.ended_early = true,
        }
        seen.exit = running.wait();
        if program == Program::Load {
            seen.answers = seen.exit.is_some_and(|status| status.success());
            seen.ended_early = !seen.answers;
        }
        seen.said = fs::read_to_string(trace.with_extension("err"))?;
        if program == Program::Load && !seen.answers {
            // This program counts failures in its report.
            seen.said.extend(running.lines.try_iter());
        }
        Ok(seen)
    }

    /// Starts a server without failures.
    pub(super) fn serve(&self) -> anyhow::Result<(Running, String)> {
        let trace = self.folder.join("server");
        let running = Running::start(self, Program::Web, &[], &trace)?;
        let address = running
            .ready(Program::Web)
            .context("the server does not start")?;
        Ok((running, format!("http://{address}/small.txt")))
    }
}

/// A running program. If it is dropped, the program is ended.
pub(super) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Running {
    fn start(
        place: &Place,
        program: Program,
        strace: &[String],
        trace: &Path,
    ) -> anyhow::Result<Self> {
        let line = place.command(program);
        let mut command = if strace.is_empty() {
            Command::new(&line[0])
        } else {
            // With `-D`, the program is our child and strace is a child of the program, so that we
            // get the program's exit status.
            let mut command = Command::new("strace");
            command.args([
                "-D",
                "-f",
                "-qq",
                "--seccomp-bpf",
                "-e",
                "signal=none",
                "-o",
            ]);
            command.arg(trace).args(strace).arg("--").arg(&line[0]);
            command
        };
        command.args(&line[1..]).env("RUST_BACKTRACE", "0");
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
            lines,
        })
    }

    /// Waits until the program is ready, and returns its address.
    fn ready(&self, program: Program) -> Option<String> {
        if program == Program::Load {
            return Some(String::new());
        }
        let line = self.lines.recv_timeout(PATIENCE).ok()?;
        if program == Program::Core {
            return Some(line);
        }
        let word = line
            .split_whitespace()
            .find(|word| word.contains("127.0.0.1:"));
        let address = word.map(|word| word.split("//").last().unwrap_or(word).trim_matches('/'));
        Some(address.unwrap_or_default().to_owned())
    }

    fn work(&mut self, program: Program, address: &str, seen: &mut Seen) {
        match program {
            Program::Load => {}
            Program::Core => {
                for _ in 0..ROUNDS {
                    seen.steps.push(self.round());
                    if matches!(seen.steps.last(), Some(Step::Wrong(_))) {
                        return;
                    }
                }
                seen.answers = (0..ANSWERS_MAX).any(|_| self.round() == Step::Right);
            }
            Program::Web | Program::WebTls => {
                let get = |path| client::get(program == Program::WebTls, address, path);
                seen.steps
                    .extend(client::PATHS.iter().map(|path| get(path)));
                if program == Program::Web {
                    seen.steps.push(client::pair(address));
                }
                seen.answers = (0..ANSWERS_MAX).any(|_| get("/small.txt") == Step::Right);
            }
            // The program has reported that it does not know its address.
            Program::Echo if address.is_empty() => {
                seen.steps.push(Step::Refused("no address".to_owned()));
                seen.answers = true;
            }
            Program::Echo => {
                seen.steps
                    .extend((0..ROUNDS).map(|_| client::echo(address)));
                seen.answers = (0..ANSWERS_MAX).any(|_| client::echo(address) == Step::Right);
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

    fn has_ended(&mut self) -> bool {
        // It takes a moment for a program to abort.
        std::thread::sleep(LOOK);
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    fn ask_to_end(&mut self, program: Program) {
        let signal = match program {
            Program::Core => return drop(self.stdin.take()),
            Program::Load => return,
            Program::Echo => Signal::INT,
            Program::Web | Program::WebTls => Signal::TERM,
        };
        // The program may already have ended, which the next line detects.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Waits for the program to end. Returns `None` if the program had to be killed.
    fn wait(&mut self) -> Option<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
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
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
