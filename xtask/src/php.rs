//! A php-fpm for the checks that run scripts.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// The time limit for php-fpm to listen.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bound, in processes: the maximum number that run scripts at the same time. A server keeps up to
/// five connections, and each of them occupies a process.
const CHILDREN_MAX: usize = 64;

/// A running php-fpm. If it is dropped, it is ended.
pub(crate) struct Php(Child);

impl Php {
    /// Writes a configuration into a folder, and starts php-fpm with its socket there.
    ///
    /// # Errors
    ///
    /// Returns an error if php-fpm is missing or does not start.
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        let is_root = geteuid().is_root();
        let user = if is_root {
            "user = root\ngroup = root\n"
        } else {
            ""
        };
        let (socket, log) = (socket(folder), folder.join("php-fpm.log"));
        let config = format!(
            "[global]\nerror_log = {}\n[www]\n{user}listen = {}\npm = ondemand\n\
             pm.max_children = {CHILDREN_MAX}\n",
            log.display(),
            socket.display()
        );
        let file = folder.join("php-fpm.conf");
        fs::write(&file, config)?;
        let mut command = Command::new(program()?);
        command.args(is_root.then_some("--allow-to-run-as-root"));
        command.args(["--nodaemonize", "--no-php-ini", "--fpm-config"]);
        command.arg(file).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let php = Self(command.spawn().context("cannot start php-fpm")?);
        let begun = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            let has_time = begun.elapsed() < PATIENCE;
            ensure!(has_time, "php-fpm does not listen; see {}", log.display());
            thread::sleep(Duration::from_millis(10));
        }
        Ok(php)
    }
}

impl Drop for Php {
    fn drop(&mut self) {
        // SIGKILL would leave its children behind.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Returns the path of the socket.
pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join("php.sock")
}

/// Finds php-fpm, whose name contains its version on Debian.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut files = folders.flat_map(fs::read_dir).flatten().flatten();
    let found = files.find(|file| file.file_name().to_string_lossy().starts_with("php-fpm"));
    let found = found.context("cannot find php-fpm; on Debian: apt-get install php-fpm")?;
    Ok(found.path())
}
