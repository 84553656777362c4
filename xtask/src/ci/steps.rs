//! The commands of each step of CI.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::Context as _;
use toml::Value;

use super::toolchain::{NIGHTLY, Rustup};
use super::{Outcome, Step, command};
use crate::{api, clients, tidy};

/// The tests that run under Miri, as filters for the names of the unit tests of `tussah-core`.
///
/// Under Miri, code is several hundred times slower, so the list has only the modules with `unsafe`
/// code and those that they rely on. Every filter has to match at least one test. Two processes run
/// side by side, each with about half of the work, because Miri runs only one thread at a time.
const MIRI_TESTS: [&[&str]; 2] = [
    &["slab::", "time::wheel"],
    &[
        "queue::",
        "wait::",
        "per_worker::",
        "tiny_waker::",
        "quietly::",
    ],
];

/// The part that the name of every loom model contains, because it is the name of its module.
const LOOM_TESTS: &[&str] = &["loom"];

/// A choice: whether test programs report how long each test took.
enum Timed {
    Yes,
    No,
}

/// The state that all steps share.
pub(super) struct Context {
    root: PathBuf,
    target_dir: PathBuf,
    msrv: String,
    /// True if only the unit tests run.
    quick: bool,
    rustup: Rustup,
}

impl Context {
    /// # Errors
    ///
    /// Returns an error if the workspace's `Cargo.toml` cannot be read or has no `rust-version`.
    pub(super) fn new(root: &Path, may_install: bool, quick: bool) -> anyhow::Result<Self> {
        let manifest = root.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        let target_dir = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        Ok(Self {
            root: root.to_owned(),
            target_dir: root.join(target_dir),
            msrv: msrv(&text)?,
            quick,
            rustup: Rustup { may_install },
        })
    }

    /// Returns the headline of a step.
    pub(super) fn describe(&self, step: Step) -> String {
        match step {
            Step::Fmt => "cargo fmt --all --check".into(),
            Step::Tidy => "cargo xtask tidy".into(),
            Step::Clippy => {
                "cargo clippy, all targets, and tussah without its features, warnings denied".into()
            }
            Step::Doc => "cargo doc --workspace --no-deps, warnings denied".into(),
            Step::Api => "the public interface of the libraries, as in api/".into(),
            Step::Test if self.quick => "cargo test --workspace --lib --bins".into(),
            Step::Test => "cargo test --workspace".into(),
            Step::New => "cargo test in a project of `tussah new`".into(),
            Step::Msrv => {
                format!(
                    "cargo check of the command and all libraries, with Rust {}",
                    self.msrv
                )
            }
            Step::Loom => "the loom models of tussah-core".into(),
            Step::Miri => {
                let modules = MIRI_TESTS.concat();
                format!("the tests of tussah-core in {modules:?}, under Miri")
            }
            Step::Clients => "curl, wrk and a browser against `tussah web`".into(),
        }
    }

    /// # Errors
    ///
    /// Returns an error if a program cannot be started, or the tree cannot be read.
    pub(super) fn run(&self, step: Step) -> anyhow::Result<Outcome> {
        match step {
            Step::Fmt => self.fmt(),
            Step::Tidy => self.tidy(),
            Step::Clippy => self.clippy(),
            Step::Doc => self.doc(),
            Step::Api => self.api(),
            Step::Test => self.test(),
            Step::New => self.new_project(),
            Step::Msrv => self.msrv(),
            Step::Loom => self.loom(),
            Step::Miri => self.miri(),
            Step::Clients => self.clients(),
        }
    }

    fn fmt(&self) -> anyhow::Result<Outcome> {
        match self.rustup.subcommand("fmt", "rustfmt") {
            Ok(mut cargo) => self.run_command(cargo.args(["--all", "--check"])),
            Err(reason) => Ok(Outcome::Skipped(reason)),
        }
    }

    fn tidy(&self) -> anyhow::Result<Outcome> {
        let tidy = tidy::run(&self.root, false)?;
        Ok(if tidy {
            Outcome::Passed
        } else {
            Outcome::Failed("see the findings above".into())
        })
    }

    fn clippy(&self) -> anyhow::Result<Outcome> {
        for scope in [
            &["--workspace", "--all-targets"][..],
            &["--package", "tussah", "--no-default-features"],
        ] {
            let mut cargo = match self.rustup.subcommand("clippy", "clippy") {
                Ok(cargo) => cargo,
                Err(reason) => return Ok(Outcome::Skipped(reason)),
            };
            cargo.arg("--quiet").args(scope);
            cargo.args(["--", "-D", "warnings"]);
            let outcome = self.run_command(&mut cargo)?;
            if outcome != Outcome::Passed {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Passed)
    }

    fn doc(&self) -> anyhow::Result<Outcome> {
        let flags = with_flags(std::env::var("RUSTDOCFLAGS").ok(), "-D warnings");
        let mut cargo = cargo();
        cargo
            .args(["doc", "--quiet", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", flags);
        self.run_command(&mut cargo)
    }

    fn api(&self) -> anyhow::Result<Outcome> {
        let cargo = match self.rustup.cargo(api::NIGHTLY, &[]) {
            Ok(cargo) => cargo,
            Err(reason) => return Ok(Outcome::Skipped(reason)),
        };
        Ok(
            if api::compare(&self.root, &self.target_dir, cargo, false)? {
                Outcome::Passed
            } else {
                Outcome::Failed("see the changes above".into())
            },
        )
    }

    fn test(&self) -> anyhow::Result<Outcome> {
        let units = ["--workspace", "--lib", "--bins"];
        let mut runs = vec![self.tests(&units, Timed::Yes)];
        if !self.quick {
            // The variable of timed runs would make tests that call cargo build everything again,
            // and rustdoc does not support times.
            let timed = ["--workspace", "--exclude=tussah-ui"];
            // Tests run the examples, so this builds the examples with the features of the tests.
            let mut examples = cargo();
            examples
                .args(["build", "--quiet", "--examples"])
                .args(timed);
            let built = self.run_command(&mut examples)?;
            if built != Outcome::Passed {
                return Ok(built);
            }
            let all = [&timed[..], &["--lib", "--bins", "--tests"]].concat();
            runs = vec![
                self.tests(&all, Timed::Yes),
                self.tests(&["--workspace", "--test=ui"], Timed::No),
                self.tests(&["--workspace", "--doc"], Timed::No),
            ];
        }
        command::run_all_tests(&mut runs)
    }

    fn tests(&self, selected: &[&str], timed: Timed) -> Command {
        let mut cargo = cargo();
        cargo.args(["test", "--no-fail-fast"]).args(selected);
        cargo.current_dir(&self.root);
        // Many tests wait longer than they compute.
        if std::env::var_os("RUST_TEST_THREADS").is_none() {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            cargo.env("RUST_TEST_THREADS", (2 * cpus).to_string());
        }
        if matches!(timed, Timed::Yes) {
            // Only a nightly reports times, or a stable compiler that is told to be a nightly.
            cargo.args([
                "--config",
                "target.'cfg(all())'.runner = ['env', 'RUSTC_BOOTSTRAP=1']",
            ]);
            cargo.args(["--", "-Zunstable-options", "--report-time"]);
        }
        cargo
    }

    /// Makes a project outside of the workspace, with the workspace's versions of all dependencies.
    fn new_project(&self) -> anyhow::Result<Outcome> {
        let directory = std::env::temp_dir().join(format!("tussah-new-{}", std::process::id()));
        std::fs::create_dir(&directory)?;
        let outcome = self.test_new_project(&directory);
        std::fs::remove_dir_all(&directory)?;
        outcome
    }

    fn test_new_project(&self, directory: &Path) -> anyhow::Result<Outcome> {
        let manifest = self.root.join("Cargo.toml");
        let mut create = cargo();
        create
            .args([
                "run",
                "--quiet",
                "--package=tussah-services",
                "--bin=tussah",
            ])
            .arg("--manifest-path")
            .arg(manifest)
            .args(["--", "new", "squares"]);
        let created = command::run(create.current_dir(directory))?;
        if created != Outcome::Passed {
            return Ok(created);
        }
        let project = directory.join("squares");
        std::fs::copy(self.root.join("Cargo.lock"), project.join("Cargo.lock"))?;
        for arguments in [&["test"][..], &["run", "--", "run", "graph.weave"]] {
            let mut cargo = cargo();
            cargo
                .args(arguments)
                .env("CARGO_NET_OFFLINE", "true")
                .env("CARGO_TARGET_DIR", self.target_dir.join("new"));
            let outcome = command::run(cargo.current_dir(&project))?;
            if outcome != Outcome::Passed {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Passed)
    }

    fn msrv(&self) -> anyhow::Result<Outcome> {
        match self.rustup.cargo(&self.msrv, &[]) {
            // The command depends on all libraries. The benchmarks and checks may need more.
            Ok(mut cargo) => {
                self.run_command(cargo.args(["check", "--quiet", "--package", "tussah-services"]))
            }
            Err(reason) => Ok(Outcome::Skipped(reason)),
        }
    }

    fn loom(&self) -> anyhow::Result<Outcome> {
        let mut cargo = cargo();
        cargo.args([
            "test",
            "--package",
            "tussah-core",
            "--profile",
            "loom",
            "--lib",
        ]);
        // The flag also applies to dependencies, so a shared directory would be rebuilt each time.
        cargo.arg("--target-dir").arg(self.target_dir.join("loom"));
        cargo.env(
            "RUSTFLAGS",
            with_flags(std::env::var("RUSTFLAGS").ok(), "--cfg loom"),
        );
        // A backtrace overflows the stack of a model's thread, and the program then hangs.
        cargo.env("RUST_BACKTRACE", "0");
        // Each model sets its own bound on preemptions, which LOOM_MAX_PREEMPTIONS overrides.
        command::run_tests(cargo.current_dir(&self.root), LOOM_TESTS)
    }

    fn miri(&self) -> anyhow::Result<Outcome> {
        let mut commands = Vec::new();
        for filters in MIRI_TESTS {
            let mut cargo = match self.rustup.cargo(NIGHTLY, &["miri", "rust-src"]) {
                Ok(cargo) => cargo,
                Err(reason) => return Ok(Outcome::Skipped(reason)),
            };
            cargo.args(["miri", "test", "--package", "tussah-core", "--lib"]);
            cargo.current_dir(&self.root);
            commands.push((cargo, filters));
        }
        thread::scope(|scope| {
            let running: Vec<_> = commands
                .iter_mut()
                .map(|(cargo, filters)| scope.spawn(|| command::run_tests(cargo, filters)))
                .collect();
            let mut worst = Outcome::Passed;
            for run in running {
                let outcome = run.join().expect("running a program does not panic")?;
                if outcome != Outcome::Passed {
                    worst = outcome;
                }
            }
            Ok(worst)
        })
    }

    fn clients(&self) -> anyhow::Result<Outcome> {
        let report = clients::run(&self.root, &self.target_dir, self.rustup.may_install)?;
        for failure in &report.failures {
            println!("{failure}");
        }
        Ok(match (report.failures.len(), report.skipped.join("; ")) {
            (0, skipped) if skipped.is_empty() => Outcome::Passed,
            (0, skipped) => Outcome::Skipped(format!("{skipped}; the others passed")),
            (failures, skipped) if skipped.is_empty() => {
                Outcome::Failed(format!("{failures} checks"))
            }
            (failures, skipped) => {
                Outcome::Failed(format!("{failures} checks; skipped: {skipped}"))
            }
        })
    }

    fn run_command(&self, command: &mut Command) -> anyhow::Result<Outcome> {
        command::run(command.current_dir(&self.root))
    }
}

/// Returns the cargo that runs xtask.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// Appends our flags to those of the caller.
fn with_flags(flags: Option<String>, ours: &str) -> String {
    flags.map_or_else(
        || ours.to_owned(),
        |flags| format!("{flags} {ours}").trim().to_owned(),
    )
}

/// Returns the `rust-version` of the workspace.
fn msrv(manifest: &str) -> anyhow::Result<String> {
    let manifest: toml::Table = manifest.parse().context("Cargo.toml does not parse")?;
    let package = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package"));
    let version = package
        .and_then(|package| package.get("rust-version"))
        .and_then(Value::as_str);
    version
        .map(str::to_owned)
        .context("Cargo.toml has no workspace.package.rust-version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_rust_is_that_of_the_manifest() {
        let manifest = "[workspace.package]\nrust-version = \"1.88\"\n";
        assert_eq!(msrv(manifest).unwrap(), "1.88");
        let error = msrv("[workspace]\n").unwrap_err();
        assert!(error.to_string().contains("rust-version"), "{error}");
    }

    #[test]
    fn flags_of_the_caller_are_kept() {
        assert_eq!(with_flags(None, "--cfg loom"), "--cfg loom");
        assert_eq!(with_flags(Some("-g".into()), "--cfg loom"), "-g --cfg loom");
        assert_eq!(with_flags(Some(String::new()), "--cfg loom"), "--cfg loom");
    }
}
