//! The php-fpm behind the web server of the sweep, and the scripts that it runs.

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

/// The scripts. They set the length of their output, so that a client can see that it is cut off.
const SCRIPTS: [(&str, &str); 3] = [
    (
        "page.php",
        "<?php header('Content-Length: 7'); echo \"a page\\n\";",
    ),
    (
        "large.php",
        "<?php header('Content-Length: ' . filesize('large.bin')); readfile('large.bin');",
    ),
    (
        "post.php",
        "<?php $body = file_get_contents('php://input');
        header('Content-Length: ' . strlen($body)); echo $body;",
    ),
];

/// A running php-fpm. If it is dropped, it is ended.
pub(super) struct Php(Child);

impl Php {
    /// Writes the scripts and a configuration, and starts php-fpm.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Self> {
        for (name, text) in SCRIPTS {
            fs::write(folder.join("php").join(name), text)?;
        }
        let is_root = geteuid().is_root();
        let user = if is_root {
            "user = root\ngroup = root\n"
        } else {
            ""
        };
        let socket = socket(folder);
        let config = format!(
            "[global]\nerror_log = {}\n[sweep]\n{user}listen = {}\npm = ondemand\n\
             pm.max_children = {CHILDREN_MAX}\n",
            folder.join("php-fpm.log").display(),
            socket.display()
        );
        let file = folder.join("php-fpm.conf");
        fs::write(&file, config)?;
        let mut command = Command::new(program()?);
        command.args(is_root.then_some("--allow-to-run-as-root"));
        command.args(["--nodaemonize", "--no-php-ini", "--fpm-config"]);
        command.arg(file).stdin(Stdio::null());
        let php = Self(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?,
        );
        let begun = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            ensure!(begun.elapsed() < PATIENCE, "php-fpm does not listen");
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
pub(super) fn socket(folder: &Path) -> PathBuf {
    folder.join("php.sock")
}

/// Finds php-fpm, whose name contains its version on Debian.
pub(super) fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut files = folders.flat_map(fs::read_dir).flatten().flatten();
    let found = files.find(|file| file.file_name().to_string_lossy().starts_with("php-fpm"));
    let found = found.context("cannot find php-fpm; on Debian: apt-get install php-fpm")?;
    Ok(found.path())
}
