//! A server under test: its processes, their start, their CPUs, and their resource usage.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Bound, in seconds: the maximum time for a server to begin to accept connections. Valgrind slows
/// it down by a factor of about fifty.
const START_SECONDS_MAX: u64 = 60;

/// Bound, in seconds: the maximum time for a server to end before it is killed.
const END_SECONDS_MAX: u64 = 5;

/// The polling interval for a process that is starting or ending.
const LOOK: Duration = Duration::from_micros(200);

/// The running servers. Each leads its own process group, since some shut down by sending a signal
/// to their whole group.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A server with all of its processes; dropping it ends them.
#[derive(Debug)]
pub struct Process {
    /// The address of its listener.
    pub address: SocketAddr,
    child: Child,
}

/// User and system CPU time, in ticks of the kernel's clock, which is accurate enough only for
/// shares.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticks {
    /// The time in the server's own code.
    pub user: u64,
    /// The time in the kernel.
    pub system: u64,
}

impl Process {
    /// Starts `command` on `cpus` and waits until `port` accepts. Its output goes to `log`.
    ///
    /// # Errors
    ///
    /// Returns an error if the server could not be started, ended immediately, or does not accept
    /// connections within a minute.
    pub fn start(
        mut command: Command,
        port: u16,
        cpus: &[usize],
        log: &Path,
    ) -> Result<Process, String> {
        let out = fs::File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = out.try_clone().map_err(|error| error.to_string())?;
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        command.process_group(0);
        // A new process inherits the CPUs of the OS thread that starts it.
        let spawned = std::thread::scope(|scope| {
            let spawn = || {
                crate::runtimes::pin_to_cpus(cpus);
                command.spawn()
            };
            scope.spawn(spawn).join().expect("starting does not panic")
        });
        let child = spawned.map_err(|error| {
            let program = command.get_program().to_string_lossy().into_owned();
            format!("cannot start {program}: {error}")
        })?;
        let mut running = RUNNING.lock().expect("nothing panics meanwhile");
        running.push(Pid::from_raw(child.id() as i32));
        drop(running);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut process = Process { address, child };
        let told = |what: String| {
            let text = fs::read_to_string(log).unwrap_or_default();
            format!("{what}; it printed: {}", text.trim_end())
        };
        process.wait_until_it_accepts().map_err(told)?;
        Ok(process)
    }

    fn wait_until_it_accepts(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(START_SECONDS_MAX);
        while TcpStream::connect(self.address).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the server ended at once ({status})"));
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "the server does not accept connections after {START_SECONDS_MAX} s"
                ));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Returns the ID of the started process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the started process and all of its descendants.
    pub fn tree(&self) -> Vec<u32> {
        let mut tree = vec![self.pid()];
        let parents = parents();
        let mut at = 0;
        while at < tree.len() {
            let of = tree[at];
            let children = parents.iter().filter(|(_, parent)| *parent == of);
            tree.extend(children.map(|(child, _)| *child));
            at += 1;
        }
        tree
    }

    /// Returns the CPU time of all OS threads, including ended ones. It is accurate to the
    /// nanosecond while they sleep.
    pub fn cpu(&self) -> Duration {
        let of = |pid: u32| {
            let clock = nix::time::clock_getcpuclockid(Pid::from_raw(pid as i32)).ok()?;
            Some(Duration::from(nix::time::clock_gettime(clock).ok()?))
        };
        self.tree().into_iter().filter_map(of).sum()
    }

    /// Returns the CPU time, divided into user and system time.
    pub fn ticks(&self) -> Ticks {
        let mut sum = Ticks::default();
        for pid in self.tree() {
            let fields = stat(pid).unwrap_or_default();
            let field = |index: usize| fields.get(index).and_then(|field| field.parse().ok());
            sum.user += field(11).unwrap_or(0);
            sum.system += field(12).unwrap_or(0);
        }
        sum
    }

    /// Returns the resident anonymous memory in bytes. Memory that processes share counts once.
    pub fn anonymous_bytes(&self) -> f64 {
        let of = |pid: u32| {
            let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
            let line = |key: &str| {
                let line = rollup.lines().find_map(|line| line.strip_prefix(key))?;
                let kib = line.trim().strip_suffix("kB")?.trim();
                kib.parse::<f64>().ok()
            };
            Some((line("Pss_Anon:")? + line("Pss_Shmem:")?) * 1024.0)
        };
        self.tree().into_iter().filter_map(of).sum()
    }

    /// Asks the server to end, normally by SIGTERM, and waits. Returns whether it had to be killed.
    pub fn end(&mut self) -> bool {
        let group = Pid::from_raw(self.pid() as i32);
        // If the server has already ended, the signal is not needed.
        let _ = kill(group, Signal::SIGTERM);
        let deadline = Instant::now() + Duration::from_secs(END_SECONDS_MAX);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
        true
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let own = self.pid() as i32;
        let mut running = RUNNING.lock().expect("nothing panics meanwhile");
        running.retain(|pid| pid.as_raw() != own);
        drop(running);
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.end();
        }
    }
}

/// Ends all servers and removes their folder when the user ends this program.
///
/// # Panics
///
/// Panics if it is called twice.
pub fn end_with_this_program(folder: PathBuf) {
    let end = move || {
        let running = RUNNING.lock().expect("nothing panics meanwhile");
        for group in running.iter() {
            // No code waits for the processes any longer.
            let _ = killpg(*group, Signal::SIGKILL);
        }
        super::video::unmount(&folder);
        // Leftover files remain in the folder for temporary files.
        let _ = fs::remove_dir_all(&folder);
        std::process::exit(130);
    };
    ctrlc::set_handler(end).expect("there is no other handler");
}

/// Returns a port of the loopback on which no socket currently listens.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.expect("the loopback has a free port").port()
}

/// Returns all processes, each with its parent.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").expect("Linux has /proc");
    let pids = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some((pid, stat(pid)?.get(1)?.parse().ok()?)))
        .collect()
}

/// Returns the fields of `/proc/PID/stat` from the third, the state. The second field may contain
/// spaces.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = text.rsplit_once(')')?.1;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_parent() {
        let own = std::process::id();
        let parent = std::os::unix::process::parent_id();
        assert!(parents().contains(&(own, parent)));
    }
}
