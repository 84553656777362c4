//! `cargo xtask idle`: counts how often the servers wake up when they have nothing to do.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::record;

/// The time for which the wake-ups are counted.
const WATCHED: Duration = Duration::from_secs(10);
/// The time that a program has to finish its first work.
const SETTLES: Duration = Duration::from_secs(2);
/// Bound, in wake-ups of all OS threads during `WATCHED`: one a second costs nothing, and a timer
/// that always runs costs far more.
const WAKES_MAX: u64 = 10;

/// Bound, in the same unit, for the Gnutella router: it looks for hosts five times a second, and
/// each look wakes several OS threads.
const ROUTER_WAKES_MAX: u64 = 600;

/// A server: its command line, and its first work.
struct Program {
    name: &'static str,
    arguments: &'static [&'static str],
    request: &'static str,
    wakes_max: u64,
}

const HTTP: &str = "GET / HTTP/1.1\r\nHost: idle\r\nConnection: close\r\n\r\n";
/// The proxies answer without an origin: nothing listens on this port.
const PROXIED: &str = "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: idle\r\nConnection: close\r\n\r\n";

const PROGRAMS: [Program; 10] = [
    program("tussah", &["web", "examples/site", "--listen", ANY], HTTP),
    program(
        "tussah",
        &["web", "examples/site", "--listen", ANY, "--work"],
        HTTP,
    ),
    program("examples/echo_stages", &[ANY], "a line\n"),
    program("examples/proxy", &["--listen", ANY], PROXIED),
    program("examples/proxy_callbacks", &["--listen", ANY], PROXIED),
    program(
        "examples/proxy_callbacks_colored",
        &["--listen", ANY],
        PROXIED,
    ),
    program("tussah", &["video", "examples/site", "--listen", ANY], HTTP),
    Program {
        name: "tussah",
        arguments: &["gnutella", "--listen", ANY, "--http", ANY],
        request: "GNUTELLA CONNECT/0.6\r\n\r\n",
        wakes_max: ROUTER_WAKES_MAX,
    },
    program(
        "examples/chat",
        &[
            "run",
            "crates/tussah/examples/chat/chat.weave",
            "--listen",
            ANY,
        ],
        "a line\n",
    ),
    program(
        "examples/small_web",
        &["run", SMALL_WEB, "--root", "examples/site", "--listen", ANY],
        HTTP,
    ),
];

const SMALL_WEB: &str = "crates/tussah-services/examples/small_web/small_web.weave";

const ANY: &str = "127.0.0.1:0";

const fn program(
    name: &'static str,
    arguments: &'static [&'static str],
    request: &'static str,
) -> Program {
    Program {
        name,
        arguments,
        request,
        wakes_max: WAKES_MAX,
    }
}

/// Counts the wake-ups of each server, and returns whether none wakes up too often. A busy machine
/// does not raise the counts.
///
/// # Errors
///
/// Returns an error if a program does not build, start or answer, or if the record cannot be
/// written.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let mut cargo = crate::ci::cargo();
    cargo.args(["build", "--quiet", "--workspace", "--bins", "--examples"]);
    let built = cargo.current_dir(root).status();
    ensure!(
        built.context("cannot start cargo")?.success(),
        "the programs do not build"
    );
    let seconds = WATCHED.as_secs();
    let mut text = format!(
        "voluntary context switches of all OS threads in {seconds} s, {} s after the first answer; \
         at most {WAKES_MAX}, and {ROUTER_WAKES_MAX} for the Gnutella router\n",
        SETTLES.as_secs()
    );
    let mut is_idle = true;
    for program in &PROGRAMS {
        let wakes = program.wakes(root).with_context(|| program.line())?;
        is_idle &= wakes <= program.wakes_max;
        let row = format!("\n{wakes:>6}  {}", program.line());
        println!("{}", row.trim_start_matches('\n'));
        text.push_str(&row);
    }
    record::write(root, "idle", "cargo xtask idle", &text)?;
    Ok(is_idle)
}

/// A running server, which ends when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let _ = self.0.wait();
    }
}

impl Program {
    fn line(&self) -> String {
        format!("{} {}", self.name, self.arguments.join(" "))
    }

    /// Starts the server, lets it work once, and counts its wake-ups from then on.
    fn wakes(&self, root: &Path) -> anyhow::Result<u64> {
        let mut command = Command::new(root.join("target/debug").join(self.name));
        command.args(self.arguments).current_dir(root);
        let server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut server = Running(server.context("it does not start")?);
        let mut line = String::new();
        let output = server.0.stdout.take().expect("it was piped above");
        let mut output = BufReader::new(output);
        output.read_line(&mut line)?;
        let address = line.split(|c: char| c.is_whitespace() || c == '/');
        let mut address = address.filter(|word| word.starts_with("127.0.0.1:"));
        let address = address.next().context("it does not say its address")?;
        let mut client = TcpStream::connect(address)?;
        client.write_all(self.request.as_bytes())?;
        // An HTTP server may drop the request of a client that has finished sending.
        if !self.request.contains("Connection: close") {
            client.shutdown(Shutdown::Write)?;
        }
        let mut answer = String::new();
        client.read_to_string(&mut answer)?;
        ensure!(!answer.is_empty(), "it does not answer");
        std::thread::sleep(SETTLES);
        let before = switches(server.0.id())?;
        std::thread::sleep(WATCHED);
        Ok(switches(server.0.id())?.saturating_sub(before))
    }
}

/// Returns how often the OS threads of a process have waited so far.
fn switches(pid: u32) -> anyhow::Result<u64> {
    let mut all = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        // An OS thread may end meanwhile.
        let status = fs::read_to_string(entry?.path().join("status")).unwrap_or_default();
        all += voluntary(&status).unwrap_or(0);
    }
    Ok(all)
}

fn voluntary(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(voluntary(status), Some(150));
        assert_eq!(voluntary("Name:\tx\n"), None);
        assert!(switches(std::process::id()).is_ok());
    }
}
