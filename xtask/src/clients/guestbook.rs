//! A test of the example `guestbook` with php-fpm and headless Chromium: the browser fills in the
//! form, and the page has the new entry.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::browser::run_page;
use super::packages::found;
use super::server::Place;

/// The names of php-fpm, which contain its version on Debian.
pub(super) const PHP: &[&str] = &[
    "php-fpm8.2",
    "php-fpm8.3",
    "php-fpm8.4",
    "php-fpm8.5",
    "php-fpm",
];

/// The folder of the copy of the example.
pub(super) const FOLDER: &str = "guestbook";

/// The page that fills in the form. It prints `guestbook: passed` or `guestbook: failed` on its
/// console.
const PAGE: &str = include_str!("guestbook/sign.html");

/// Bound, in time: how long php-fpm may take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// Signs the guest book, which begins without entries. The example's own configuration file
/// specifies the server; only the socket and the folder for the entries are replaced.
pub(super) fn check(place: &Place, program: &str) -> anyhow::Result<Vec<String>> {
    let Some(php) = found(PHP) else {
        return Ok(Vec::new()); // reported as skipped
    };
    let folder = place.folder.join(FOLDER);
    fs::write(folder.join("public/sign.html"), PAGE)?;
    let file = folder.join("guestbook.toml");
    let mut config = fs::read_to_string(&file)?;
    let (socket, data) = (folder.join("php.sock"), folder.join("data"));
    for (path, here) in [
        ("/run/php/php-fpm.sock", &socket),
        ("/var/lib/guestbook", &data),
    ] {
        anyhow::ensure!(config.contains(path), "expected {path} in guestbook.toml");
        config = config.replace(path, &here.display().to_string());
    }
    fs::write(&file, config)?;
    let _php = Php::start(&php, &folder, &socket)?;
    let server = place.serve_configured(&file)?;
    let url = format!("{}/sign.html", server.url);
    let failure = run_page(place, program, "guestbook", &url)?;
    let served = server.end()?;
    let failure = failure.map(|failure| format!("{failure}; the server printed {served:?}"));
    Ok(failure.into_iter().collect())
}

/// A running php-fpm, until it is dropped.
struct Php(Child);

impl Php {
    /// # Errors
    ///
    /// Returns an error if php-fpm does not start.
    fn start(program: &str, folder: &Path, socket: &Path) -> anyhow::Result<Self> {
        let id = Command::new("id").arg("-u").output()?;
        let is_root = id.stdout == b"0\n";
        let user = if is_root {
            "user = root\ngroup = root\n"
        } else {
            ""
        };
        let config = format!(
            "[global]\nerror_log = {}\n[www]\n{user}listen = {}\npm = static\n\
             pm.max_children = 2\n",
            folder.join("php.log").display(),
            socket.display()
        );
        let file = folder.join("fpm.conf");
        fs::write(&file, config)?;
        let mut command = Command::new(program);
        command.args(is_root.then_some("--allow-to-run-as-root"));
        command.args(["--nodaemonize", "--no-php-ini", "--fpm-config"]);
        command.arg(file).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn();
        let php = Self(child.context("cannot start php-fpm")?);
        let begun = Instant::now();
        while UnixStream::connect(socket).is_err() {
            let log = folder.join("php.log");
            anyhow::ensure!(
                begun.elapsed() < PATIENCE,
                "php-fpm does not start; see {}",
                log.display()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(php)
    }
}

impl Drop for Php {
    fn drop(&mut self) {
        // SIGTERM ends its children, too.
        let pid = self.0.id().to_string();
        let _ = Command::new("sh")
            .args(["-c", "kill -TERM $0", &pid])
            .status();
        let _ = self.0.wait();
    }
}
