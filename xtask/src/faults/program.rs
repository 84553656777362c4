//! The programs of the sweep: their command lines and their workloads.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::outcome::{Seen, Step};
use super::php::write_site;
use super::running::{LISTENING, Running};
use super::servent;
use crate::php::Php;

/// A program with its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The example `exercise`: events, timers, the pool, files, pipes, sockets and children.
    Core,
    /// The files and children of `exercise`, without io_uring and without pidfds, so that the
    /// blocking pool does the work.
    Pool,
    /// The datagrams, Unix sockets and name lookups of `exercise`.
    Net,
    /// `tussah web` over TCP: small files, a large one, a part of it, and a computed response.
    Web,
    /// `tussah web` over TLS, with curl.
    WebTls,
    /// `tussah web` with php-fpm: scripts, a request with a body, and files.
    WebPhp,
    /// The example `small_web`, a graph with the module `HttpListen`: files.
    SmallWeb,
    /// `tussah run` with the graph `lines.weave`: lines from TCP clients, which go to a file and
    /// back.
    Run,
    /// `tussah load`, against a server without failures.
    Load,
    /// The example `echo_stages`.
    Echo,
    /// `tussah video`: a video in two chunks, small files, and a listing.
    Video,
    /// `tussah gnutella`, with a peer that connects to it, and connected to a router without
    /// failures: queries, hits, and shared files.
    Gnutella,
}

impl Program {
    pub(super) const ALL: [Self; 12] = [
        Self::Core,
        Self::Pool,
        Self::Net,
        Self::Web,
        Self::WebTls,
        Self::WebPhp,
        Self::SmallWeb,
        Self::Run,
        Self::Load,
        Self::Echo,
        Self::Video,
        Self::Gnutella,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Pool => "pool",
            Self::Net => "net",
            Self::Web => "web",
            Self::WebTls => "web-tls",
            Self::WebPhp => "web-php",
            Self::SmallWeb => "small-web",
            Self::Run => "run",
            Self::Load => "load",
            Self::Echo => "echo",
            Self::Video => "video",
            Self::Gnutella => "gnutella",
        }
    }

    /// Returns the phases in which calls can fail. `tussah load` does not report when it is ready.
    pub(super) fn phases(self) -> &'static [Phase] {
        match self {
            Self::Load => &[Phase::Start],
            _ => &[Phase::Start, Phase::Ready],
        }
    }

    /// Returns whether the program writes an access log, or appends lines to a file.
    pub(super) fn has_log(self) -> bool {
        matches!(self, Self::Web | Self::WebTls | Self::WebPhp | Self::Run)
    }
}

/// The phase of a program from which its calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// From its start.
    Start,
    /// The phase that begins when the program is ready.
    Ready,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Start => "start",
            Self::Ready => "ready",
        })
    }
}

/// Returns the path of a program's access log, or of the file for its lines.
pub(super) fn log_path(trace: &Path) -> PathBuf {
    trace.with_extension("log")
}

/// The locations of the programs and their files.
pub(super) struct Place {
    /// The folder of the project.
    pub(super) root: PathBuf,
    pub(super) target: PathBuf,
    /// The folder with the served files, the traces and the output of the programs.
    pub(super) folder: PathBuf,
    /// The address of the server for `tussah load`.
    pub(super) url: String,
    /// The address of the router to which `tussah gnutella` connects.
    pub(super) router: String,
}

impl Place {
    pub(super) fn command(&self, program: Program, trace: &Path) -> Vec<String> {
        let path = |name: &str| self.path(name);
        let (root, folder) = (self.root.display(), self.folder.display());
        let log = log_path(trace);
        let log = log.display();
        let mut line = match program {
            Program::Core | Program::Pool | Program::Net => vec![path("examples/exercise")],
            Program::Echo => vec![path("examples/echo_stages"), "127.0.0.1:0".to_owned()],
            Program::Load => vec![path("tussah"), "load".to_owned(), self.url.clone()],
            Program::Web | Program::WebTls => {
                vec![path("tussah"), "web".to_owned(), format!("{folder}/site")]
            }
            // A relative path, because php-fpm has another working directory.
            Program::WebPhp => vec![path("tussah"), "web".to_owned(), "php".to_owned()],
            Program::SmallWeb => vec![path("examples/small_web"), "run".to_owned()],
            Program::Run => vec![path("tussah"), "run".to_owned()],
            Program::Video => vec![path("tussah"), "video".to_owned(), format!("{folder}/site")],
            Program::Gnutella => vec![path("tussah"), "gnutella".to_owned()],
        };
        let more = match program {
            Program::Core => "events pool files streams children".to_owned(),
            Program::Pool => "files children".to_owned(),
            Program::Net => "udp unix names".to_owned(),
            Program::Echo => String::new(),
            Program::Load => "-n 200 -c 4 -w 1".to_owned(),
            Program::Web => {
                format!("--listen 127.0.0.1:0 --work --listing --drain 1s --log-file {log}")
            }
            Program::WebTls => format!(
                "--listen 127.0.0.1:0 --work --listing --drain 1s --log-file {log} \
                 --tls-cert {folder}/cert.pem --tls-key {folder}/key.pem"
            ),
            Program::WebPhp => format!(
                "--listen 127.0.0.1:0 --drain 1s --log-file {log} --config {folder}/php.toml"
            ),
            Program::SmallWeb => format!(
                "{root}/crates/tussah-services/examples/small_web/small_web.weave \
                 --listen 127.0.0.1:0 --root {folder}/site"
            ),
            Program::Run => format!("{root}/xtask/src/faults/lines.weave --file {log}"),
            Program::Video => "--listen 127.0.0.1:0 --ahead 2500ms --chunk 500ms \
                               --drain 1s"
                .to_owned(),
            // It needs no further peers, so it does not connect to routers of other trials.
            Program::Gnutella => format!(
                "--listen 127.0.0.1:0 --http 127.0.0.1:0 --share {folder}/site --drain 1s \
                 --peer {} --keep 1",
                self.router
            ),
        };
        line.extend(more.split_whitespace().map(str::to_owned));
        line
    }

    /// Starts a program and lets it do its work. `strace` are arguments for strace, which writes to
    /// `trace`, and begins with the phase.
    pub(super) fn run(
        &self,
        program: Program,
        strace: &[String],
        phase: Phase,
        trace: &Path,
    ) -> anyhow::Result<Seen> {
        let mut strace = strace.to_vec();
        if program == Program::Pool {
            strace.extend(["-e".to_owned(), "inject=pidfd_open:error=ENOSYS".to_owned()]);
        }
        let from_start = if phase == Phase::Start {
            &strace[..]
        } else {
            &[]
        };
        let line = self.command(program, trace);
        let mut running = Running::start(program, &line, &self.folder, from_start, trace)?;
        let mut seen = Seen::default();
        match running.ready(program, trace) {
            Some(address) => {
                if phase == Phase::Ready {
                    running.attach(&strace, trace)?;
                }
                running.work(program, &address, trace, &mut seen);
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
        if program.has_log() {
            let missing = seen.answered.saturating_sub(take_log(trace));
            if missing > 0 && !seen.ended_early {
                let text = format!("the log lacks {missing} lines");
                seen.steps.push(Step::Cut(text));
            }
        }
        let said = fs::read_to_string(trace.with_extension("err"))?;
        let lines = said.lines().filter(|line| !is_usual(line));
        seen.said = lines.map(|line| format!("{line}\n")).collect();
        if program == Program::Load && !seen.answers {
            // This program counts failures in its report.
            seen.said.extend(running.lines.try_iter());
        }
        Ok(seen)
    }

    /// Starts the web server, the router and php-fpm without failures.
    pub(super) fn serve(&mut self) -> anyhow::Result<([Running; 2], Php)> {
        let trace = self.folder.join("server");
        let line = self.command(Program::Web, &trace);
        let server = Running::start(Program::Web, &line, &self.folder, &[], &trace)?;
        let address = server.ready(Program::Web, &trace);
        let address = address.context("the server does not start")?;
        self.url = format!("http://{address}/small.txt");
        let line = format!(
            "gnutella --listen 127.0.0.1:0 --http 127.0.0.1:0 --share {}/far --keep 0 \
             --limit-each 100",
            self.folder.display()
        );
        let mut line: Vec<_> = line.split(' ').map(str::to_owned).collect();
        line.insert(0, self.path("tussah"));
        let trace = self.folder.join("router");
        let router = Running::start(Program::Gnutella, &line, &self.folder, &[], &trace)?;
        let addresses = router.ready(Program::Gnutella, &trace);
        let addresses = addresses.context("the router does not start")?;
        let (router_address, _) = servent::addresses(&addresses);
        self.router = router_address.to_owned();
        write_site(&self.folder)?;
        Ok(([server, router], Php::start(&self.folder)?))
    }

    fn path(&self, name: &str) -> String {
        self.target.join("debug").join(name).display().to_string()
    }
}

/// Returns whether a message has another cause than a failed call: the watchdog's are due to a busy
/// machine, and the others are about the start and the end of a graph.
fn is_usual(line: &str) -> bool {
    let usual = [
        " in one event for ",
        " calling wakers for ",
        LISTENING,
        "shutting down: ",
    ];
    usual.iter().any(|part| line.contains(part))
}

/// Removes the files of a log, and returns the number of their lines.
fn take_log(trace: &Path) -> usize {
    let log = log_path(trace);
    let lines = [renamed(&log), log].map(|path| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        text.lines().count()
    });
    lines.iter().sum()
}

/// Returns the name of an access log after its rotation.
pub(super) fn renamed(log: &Path) -> PathBuf {
    log.with_extension("log.1")
}
