//! Tests `tussah web` with curl, wrk and a browser, over real sockets and with the example site,
//! and compares it with nginx. Tests the guest book and `tussah video` with a browser, and the
//! playlists of `tussah video` with ffmpeg.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Context as _;

mod browser;
mod curl;
mod guestbook;
mod hls;
mod packages;
mod server;
mod video;
mod wrk;

use packages::Packages;
use server::Place;

/// The results of the clients.
pub(crate) struct Report {
    /// The failures, one line each.
    pub(crate) failures: Vec<String>,
    /// The missing clients, each with the reason.
    pub(crate) skipped: Vec<String>,
}

/// A client: its name, its programs and the package that contains them, and its check.
struct Client {
    name: &'static str,
    /// Any one of the programs is enough.
    programs: &'static [&'static str],
    package: &'static str,
    check: fn(&Place, &str) -> anyhow::Result<Vec<String>>,
}

const CLIENTS: [Client; 6] = [
    Client {
        name: "curl",
        programs: &["curl"],
        package: "curl",
        check: curl::check,
    },
    Client {
        name: "wrk",
        programs: &["wrk"],
        package: "wrk",
        check: wrk::check,
    },
    Client {
        name: "browser",
        programs: BROWSERS,
        package: "chromium",
        check: browser::check,
    },
    Client {
        name: "guest book",
        programs: BROWSERS,
        package: "chromium",
        check: guestbook::check,
    },
    Client {
        name: "video",
        programs: BROWSERS,
        package: "chromium",
        check: video::check,
    },
    Client {
        name: "hls",
        programs: &["ffmpeg"],
        package: "ffmpeg",
        check: hls::check,
    },
];

const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Builds the server, and runs every client that is installed or that may be installed.
///
/// # Errors
///
/// Returns an error if a program cannot be started, or a file cannot be written.
pub(crate) fn run(root: &Path, target: &Path, may_install: bool) -> anyhow::Result<Report> {
    // With `--examples`, the features are the same as for the tests, so that cargo reuses that
    // build.
    let mut cargo = crate::ci::cargo();
    cargo.args(["build", "--quiet", "--workspace", "--bins", "--examples"]);
    let built = cargo
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    anyhow::ensure!(built.success(), "the server does not build");
    let mut packages = Packages::new(may_install);
    let mut report = Report {
        failures: Vec::new(),
        skipped: Vec::new(),
    };
    if let Err(reason) = packages.program(&["openssl"], "openssl") {
        report.skipped.push(format!("https: {reason}"));
    }
    if let Err(reason) = packages.program(guestbook::PHP, "php-fpm") {
        report.skipped.push(format!("guest book: {reason}"));
    }
    let place = Place::new(root, target)?;
    for client in &CLIENTS {
        match packages.program(client.programs, client.package) {
            Ok(program) => {
                let begun = Instant::now();
                let failures = (client.check)(&place, &program)?;
                println!(
                    "    {}: {} failures, {:.1} s",
                    client.name,
                    failures.len(),
                    begun.elapsed().as_secs_f64()
                );
                let named = failures
                    .into_iter()
                    .map(|failure| format!("{}: {failure}", client.name));
                report.failures.extend(named);
            }
            Err(reason) => report.skipped.push(format!("{}: {reason}", client.name)),
        }
    }
    corpus(root, target, &mut report)?;
    Ok(report)
}

/// Sends the corpus of requests to nginx as well. A difference that `docs/http.md` does not explain
/// is a failure.
fn corpus(root: &Path, target: &Path, report: &mut Report) -> anyhow::Result<()> {
    if packages::found(&["nginx"]).is_none() {
        let reason = "corpus: nginx is not installed; try `scripts/peers`";
        report.skipped.push(reason.into());
        return Ok(());
    }
    let mut bench = Command::new(target.join("debug/tussah-bench"));
    bench.args(["web", "corpus", "--peers", "nginx,tussah"]);
    let ran = bench.current_dir(root).output();
    let ran = ran.context("cannot start tussah-bench")?;
    if !ran.status.success() {
        let text = String::from_utf8_lossy(&ran.stderr);
        report.failures.push(format!("corpus: {text}"));
    }
    Ok(())
}

/// The output of a program, with its two streams separate.
struct Printed {
    out: Vec<u8>,
    errors: String,
}

/// Runs a program until it ends.
///
/// # Errors
///
/// Returns an error if the program cannot be started.
fn output(command: &mut Command) -> anyhow::Result<Printed> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    Ok(Printed {
        out: output.stdout,
        errors: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
