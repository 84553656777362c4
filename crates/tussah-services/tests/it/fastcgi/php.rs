//! A php-fpm of the test's own, on a Unix socket in a directory of its own.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tussah_services::fastcgi::{Address, Backend, Options};

/// Bound: how long a test waits for what has to come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The processes of php-fpm that serve requests.
pub const CHILDREN: usize = 3;

/// Waits until something is there.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::yield_now();
    }
}

/// A running php-fpm, until it is dropped.
pub struct Php {
    pub directory: TempDir,
    child: Child,
}

impl Php {
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let child = spawn(directory.path());
        Self { directory, child }
    }

    /// Adds a script, and returns its path.
    pub fn script(&self, name: &str, code: &str) -> String {
        let path = self.directory.path().join(name);
        fs::write(&path, format!("<?php {code}")).expect("a script");
        path.to_str().expect("it is UTF-8").to_owned()
    }

    pub fn address(&self) -> Address {
        Address::Unix(socket(self.directory.path()))
    }

    pub fn backend(&self) -> Backend {
        let connections = CHILDREN;
        let options = Options {
            connections,
            ..Options::default()
        };
        Backend::new(self.address(), options)
    }

    /// Kills it with all of its children.
    pub fn kill(&mut self) {
        let group = -(self.child.id() as i32);
        // SIGKILL to the leader alone would leave its children behind.
        let killed = Command::new("kill")
            .args(["-KILL", "--", &group.to_string()])
            .status();
        assert!(killed.is_ok_and(|status| status.success()));
        self.child.wait().expect("it has been killed");
    }

    pub fn restart(&mut self) {
        self.child = spawn(self.directory.path());
    }
}

impl Drop for Php {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

fn socket(directory: &Path) -> PathBuf {
    directory.join("php.sock")
}

fn spawn(directory: &Path) -> Child {
    use std::os::unix::process::CommandExt as _;
    let socket = socket(directory);
    let _ = fs::remove_file(&socket); // there is none at the first start
    let (path, log) = (socket.display(), directory.join("log"));
    let is_root = rustix::process::geteuid().is_root();
    let user = if is_root {
        "user = root\ngroup = root\n"
    } else {
        ""
    };
    let config = format!(
        "[global]\nerror_log = {}\ndaemonize = no\n[www]\n{user}listen = {path}\n\
         pm = static\npm.max_children = {CHILDREN}\nphp_admin_value[upload_max_filesize] = 2G\n\
         php_admin_value[post_max_size] = 2G\n",
        log.display()
    );
    let file = directory.join("fpm.conf");
    fs::write(&file, config).expect("a file");
    let child = Command::new(program())
        .args(is_root.then_some("--allow-to-run-as-root"))
        .args(["--nodaemonize", "--no-php-ini", "--fpm-config"])
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("php-fpm starts");
    wait_for("the socket of php-fpm", || {
        UnixStream::connect(&socket).ok()
    });
    child
}

/// Finds php-fpm: its name contains its version on Debian.
fn program() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let files = folders.flat_map(fs::read_dir).flatten().flatten();
    let name = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        name.starts_with("php-fpm").then_some(())
    };
    let found = files
        .map(|file| file.path())
        .find(|path| name(path).is_some());
    found.expect("php-fpm is not installed; on Debian: apt-get install php-fpm")
}
