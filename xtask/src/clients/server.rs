//! The servers under test, and the site of the web server, which is a copy of the example.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, anyhow};

/// The size of a file that is too large for the cache, so that the server reads it from the disk
/// each time.
pub(super) const LARGE_BYTES: usize = 3_000_001;

/// A folder for the server and the clients.
pub(super) struct Place {
    tussah: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) site: PathBuf,
    /// True if there is a certificate.
    has_certificate: bool,
}

impl Place {
    /// # Errors
    ///
    /// Returns an error if a file cannot be written.
    pub(super) fn new(root: &Path, target: &Path) -> anyhow::Result<Self> {
        let folder = target.join("clients");
        let site = folder.join("site");
        if folder.exists() {
            fs::remove_dir_all(&folder).context("cannot clear the folder of the clients")?;
        }
        copy(&root.join("examples/site"), &site)?;
        copy(
            &root.join("examples/guestbook"),
            &folder.join(super::guestbook::FOLDER),
        )?;
        let large: Vec<u8> = (0..LARGE_BYTES).map(|n| (n % 251) as u8).collect();
        fs::write(site.join("large.bin"), large)?;
        let key = [
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ];
        let mut openssl = Command::new("openssl");
        openssl
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes"])
            .args(key);
        openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
        openssl.stdout(Stdio::null()).stderr(Stdio::null());
        let made = openssl.current_dir(&folder).status();
        Ok(Self {
            tussah: target.join("debug/tussah"),
            has_certificate: made.is_ok_and(|status| status.success()),
            folder,
            site,
        })
    }

    /// Starts the servers to test: one without TLS, and one with TLS if there is a certificate.
    pub(super) fn servers(&self) -> anyhow::Result<Vec<Server>> {
        let mut servers = vec![self.serve(false)?];
        if self.has_certificate {
            servers.push(self.serve(true)?);
        }
        Ok(servers)
    }

    fn serve(&self, tls: bool) -> anyhow::Result<Server> {
        let log = self.folder.join(if tls { "https.log" } else { "http.log" });
        // Each client should read only the lines that it caused.
        fs::write(&log, "")?;
        let mut command = Command::new(&self.tussah);
        command.arg("web").arg(&self.site);
        command
            .args(["--listen", "127.0.0.1:0", "--work", "--log-file"])
            .arg(&log);
        if tls {
            command.args(["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
        }
        let scheme = if tls { "https://" } else { "http://" };
        self.start(command, scheme, log)
    }

    /// Starts a video server for a folder, with more options. The log is what the server prints on
    /// standard error.
    pub(super) fn serve_videos(&self, videos: &Path, more: &[&str]) -> anyhow::Result<Server> {
        let log = self.folder.join("video.log");
        let mut command = Command::new(&self.tussah);
        command.arg("video").arg(videos).stderr(File::create(&log)?);
        command.args(["--listen", "127.0.0.1:0", "--disk", ".=1MB/s"]);
        command.args(more);
        self.start(command, "http://", log)
    }

    /// Starts a server with a configuration file. The log is what the server prints on standard
    /// error.
    pub(super) fn serve_configured(&self, config: &Path) -> anyhow::Result<Server> {
        let log = config.with_extension("log");
        let mut command = Command::new(&self.tussah);
        command.args(["web", "--listen", "127.0.0.1:0", "--config"]);
        command.arg(config).stderr(File::create(&log)?);
        self.start(command, "http://", log)
    }

    fn start(&self, mut command: Command, scheme: &str, log: PathBuf) -> anyhow::Result<Server> {
        command.current_dir(&self.folder).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the server")?;
        let mut out = BufReader::new(child.stdout.take().expect("it was piped above"));
        let mut line = String::new();
        out.read_line(&mut line)?;
        let url = line.split(' ').find(|word| word.starts_with(scheme));
        let url = url.ok_or_else(|| anyhow!("expected the server's address: {line}"))?;
        Ok(Server {
            url: url.trim_end_matches('/').to_owned(),
            log,
            child,
            out,
        })
    }
}

/// A running server.
pub(super) struct Server {
    /// The address without a trailing slash.
    pub(super) url: String,
    log: PathBuf,
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Server {
    pub(super) fn is_tls(&self) -> bool {
        self.url.starts_with("https")
    }

    /// Shuts the server down with SIGTERM and returns the lines of its log.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not shut down as it should.
    pub(super) fn end(mut self) -> anyhow::Result<Vec<String>> {
        let pid = self.child.id().to_string();
        let asked = Command::new("sh")
            .args(["-c", "kill -TERM $0", &pid])
            .status()?;
        let status = self.child.wait()?;
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.out, &mut said)?;
        anyhow::ensure!(
            asked.success() && status.success(),
            "the server ended with {status}: {said}"
        );
        let log = fs::read_to_string(&self.log)?;
        Ok(log.lines().map(str::to_owned).collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This is needed only after a failed check; otherwise, the server has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Copies a folder in the order of the names, so that no compressed file is older than its
/// original.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    let mut entries = fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
