//! Starts and checks the servers of a scenario, and runs the rounds in which they take turns.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::cgroup::Cgroup;
use super::config::Setting;
use super::figures::Series;
use super::peer::{self, Peer, Peers};
use super::process::{self, Process};
use super::site::Site;
use super::{Common, check};
use crate::metric::Metric;
use crate::runtimes;

/// The CPUs of the servers and of the clients.
#[derive(Clone, Debug)]
pub struct Cpus {
    /// The CPUs of the servers.
    pub server: Vec<usize>,
    /// The CPUs of the clients.
    pub clients: Vec<usize>,
}

impl Cpus {
    /// Assigns CPUs. A single worker gets the first CPU and the clients the last one; several
    /// workers and the clients share all CPUs.
    ///
    /// # Errors
    ///
    /// Returns an error if there is only one CPU.
    pub fn of(workers: usize) -> Result<Cpus, String> {
        // The CPUs of this program before it pinned itself to some of them.
        static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
        let allowed = ALLOWED.get_or_init(runtimes::allowed_cpus).clone();
        let [first, .., last] = allowed[..] else {
            return Err("two CPUs are needed, one for the server and one for its clients".into());
        };
        Ok(match workers {
            1 => Cpus {
                server: vec![first],
                clients: vec![last],
            },
            _ => Cpus {
                server: allowed.clone(),
                clients: allowed,
            },
        })
    }
}

/// A folder for a scenario's files, which is deleted when this value is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the folder.
    pub fn new() -> Result<Scratch, String> {
        let path = Scratch::folder();
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    /// Returns the path of this program's folder, whether or not it exists.
    pub fn folder() -> PathBuf {
        std::env::temp_dir().join(format!("tussah-web-{}", std::process::id()))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftover files remain in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The length in bytes up to which one `read` and one `write` are cheaper than `sendfile`.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// The peer to which it belongs.
    pub peer: &'static Peer,
    /// Its processes.
    pub process: Process,
    /// The time from the start to the end of the first response, if the site is one page.
    pub first_answer: Duration,
}

/// The means to start the servers of a scenario.
#[derive(Debug)]
pub struct Bench {
    /// The site to serve.
    pub site: Arc<Site>,
    /// The CPUs on which to run.
    pub cpus: Cpus,
    /// Servers that are missing, with the reason.
    pub missing: Vec<String>,
    /// The number of workers of the servers that start next.
    pub workers: usize,
    /// The bound on the file cache of these servers, if there is one.
    pub cache_megabytes: Option<usize>,
    /// The address of the FastCGI application of these servers, and its number of processes.
    pub fastcgi: Option<(SocketAddr, usize)>,
    /// The locations of the programs.
    pub peers: Peers,
    /// The servers to compare.
    pub chosen: Vec<&'static Peer>,
    scratch: PathBuf,
    /// Keeps the clients' CPU awake.
    _spinner: Option<Spinner>,
}

impl Bench {
    /// Creates a bench for servers with `workers` workers.
    ///
    /// # Errors
    ///
    /// Returns an error if a requested server is unknown, or if the machine is too small.
    pub fn new(
        common: &Common,
        scratch: &Scratch,
        site: Site,
        workers: usize,
    ) -> Result<Bench, String> {
        let cpus = Cpus::of(workers)?;
        let spinner = match cpus.clients[..] {
            [cpu] => Some(Spinner::start(cpu)?),
            _ => None,
        };
        Ok(Bench {
            site: Arc::new(site),
            cpus,
            missing: Vec::new(),
            workers,
            cache_megabytes: None,
            fastcgi: None,
            peers: common.programs(scratch.path()),
            chosen: common.chosen()?,
            scratch: scratch.path().to_owned(),
            _spinner: spinner,
        })
    }

    /// Starts and checks every requested server. Unavailable servers are listed as missing.
    ///
    /// # Errors
    ///
    /// Returns an error if a server fails its check.
    pub fn start(&mut self) -> Result<Vec<Server>, String> {
        let mut servers = Vec::new();
        for peer in self.chosen.clone() {
            servers.extend(self.start_one(peer, Ok)?);
        }
        if servers.is_empty() {
            return Err("no server is available".into());
        }
        Ok(servers)
    }

    /// Leaves servers out, for a reason that the report states.
    pub fn leave_out(&mut self, names: &[&str], reason: &str) {
        let chosen = std::mem::take(&mut self.chosen);
        for peer in chosen {
            match names.contains(&peer.name) {
                true => self.missing.push(format!("{}: {reason}", peer.name)),
                false => self.chosen.push(peer),
            }
        }
    }

    /// Returns a line for each requested server, with its availability.
    pub fn list(&mut self) -> Result<String, String> {
        let mut lines = String::new();
        for peer in self.chosen.clone() {
            let there = match self.start_one(peer, Ok)? {
                Some(_) => "there",
                None => "missing",
            };
            lines.push_str(&format!("{:<12}  {there:<7}  {}\n", peer.name, peer.about));
        }
        Ok(lines)
    }

    /// Starts one server with a bound on its memory, the page cache included. No file of the site
    /// is in memory then: the reads of one server would serve the next one, without being charged
    /// to it. The control group has to live as long as the server.
    ///
    /// # Errors
    ///
    /// Returns errors as [`start`](Self::start) does, or if only root may create the group.
    pub fn start_in(
        &mut self,
        peer: &'static Peer,
        memory_bytes: u64,
    ) -> Result<Option<(Cgroup, Server)>, String> {
        self.site.forget().map_err(|error| error.to_string())?;
        let group = Cgroup::memory(peer.name, memory_bytes)?;
        let server = self.start_one(peer, |command| Ok(group.wrap(&command)))?;
        Ok(server.map(|server| (group, server)))
    }

    /// Starts one server. `wrap` puts its command into another command, such as that of a debugger.
    ///
    /// # Errors
    ///
    /// Returns errors as [`start`](Self::start) does.
    pub fn start_one(
        &mut self,
        peer: &'static Peer,
        wrap: impl FnOnce(Command) -> Result<Command, String>,
    ) -> Result<Option<Server>, String> {
        let named = |error: String| format!("{}: {error}", peer.name);
        let port = process::free_port();
        let scratch = self.scratch.join(format!("{}-{port}", peer.name));
        fs::create_dir_all(&scratch).map_err(|error| error.to_string())?;
        let setting = Setting {
            site: &self.site.folder,
            scratch: &scratch,
            port,
            workers: self.workers,
            cache_megabytes: self.cache_megabytes,
            is_large: matches!(&self.site.pages[..], [page] if page.len > SMALL_BYTES_MAX),
            fastcgi: self.fastcgi,
        };
        let command = match self.peers.command(peer, &setting) {
            Ok(command) => command,
            Err(reason) => {
                let missing = named(reason);
                if !self.missing.contains(&missing) {
                    eprintln!("missing: {missing}");
                    self.missing.push(missing);
                }
                return Ok(None);
            }
        };
        let command = wrap(command).map_err(named)?;
        let log = scratch.join("output");
        let begin = Instant::now();
        let process = Process::start(command, port, &self.cpus.server, &log).map_err(named)?;
        check::answers(process.address, &self.site).map_err(named)?;
        let first_answer = begin.elapsed();
        check::log_is_off(&scratch).map_err(named)?;
        Ok(Some(Server {
            peer,
            process,
            first_answer,
        }))
    }
}

/// Measures all servers in each of `count` rounds, in an order that changes from round to round.
///
/// # Errors
///
/// Returns an error if the base failed. If another server fails, it is left out from then on, and
/// the report names it.
pub fn rounds(
    servers: &[Server],
    common: &Common,
    count: u32,
    mut measure: impl FnMut(&Server, u64) -> Result<Vec<Metric>, String>,
) -> Result<Vec<Series>, String> {
    let names: Vec<_> = servers.iter().map(|server| server.peer.name).collect();
    turns(&names, common, count, |at, seed| {
        measure(&servers[at], seed).map(Some)
    })
}

/// Does the same with servers that `measure` starts again each time. `measure` returns `None` for
/// an unavailable server.
///
/// # Errors
///
/// Returns an error if the base failed. If another server fails, it is left out from then on, and
/// the report names it.
pub fn rounds_anew(
    bench: &mut Bench,
    common: &Common,
    count: u32,
    mut measure: impl FnMut(&mut Bench, &'static Peer, u64) -> Result<Option<Vec<Metric>>, String>,
) -> Result<Vec<Series>, String> {
    let peers = bench.chosen.clone();
    let names: Vec<_> = peers.iter().map(|peer| peer.name).collect();
    let mut all = turns(&names, common, count, |at, seed| {
        measure(bench, peers[at], seed)
    })?;
    all.retain(|series| !series.rounds.is_empty() || series.failed.is_some());
    Ok(all)
}

/// Does the same for any list of names. `measure` gets the index of the next name, and a seed that
/// is the same for all names in a round.
///
/// # Errors
///
/// Returns an error if the base failed. If another name fails, it is left out from then on, and the
/// report names it.
pub fn turns(
    names: &[&str],
    common: &Common,
    count: u32,
    mut measure: impl FnMut(usize, u64) -> Result<Option<Vec<Metric>>, String>,
) -> Result<Vec<Series>, String> {
    let series = |name: &&str| Series {
        name: (*name).to_owned(),
        rounds: Vec::new(),
        failed: None,
    };
    let mut all: Vec<Series> = names.iter().map(series).collect();
    let mut random = Rng::with_seed(common.seed);
    for round in 0..count {
        let mut order: Vec<usize> = (0..names.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, random.usize(..at + 1));
        }
        let seed = random.u64(..);
        for at in order {
            if all[at].failed.is_some() {
                continue;
            }
            eprint!("\rround {} of {count}: {:<12}", round + 1, names[at]);
            match measure(at, seed) {
                Ok(metrics) => all[at].rounds.extend(metrics),
                // The other names continue without it.
                Err(error) if names[at] != common.base && names.len() > 1 => {
                    eprintln!("\nfailed: {}: {error}", names[at]);
                    all[at].failed = Some(error);
                }
                Err(error) => return Err(format!("{}: {error}", names[at])),
            }
        }
    }
    eprintln!();
    Ok(all)
}

/// A low-priority process that uses the rest of a CPU, so that the CPU never sleeps. Dropping it
/// ends the process.
#[derive(Debug)]
struct Spinner(Child);

impl Spinner {
    fn start(cpu: usize) -> Result<Spinner, String> {
        let mut command = peer::installed("chrt", "util-linux")?;
        command.args(["-i", "0", "taskset", "-c", &cpu.to_string()]);
        // The process ends with this program in any case.
        let spin =
            "while kill -0 $PPID; do i=0; while [ $i -lt 99999 ]; do i=$((i + 1)); done; done";
        command
            .args(["sh", "-c", spin])
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("chrt: {error}"))?;
        Ok(Spinner(child))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        // The process only waits for this signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
