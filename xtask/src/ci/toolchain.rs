//! The toolchains and components that steps need, installed through rustup when they are missing.

use std::process::{Command, Stdio};

/// The toolchain that contains Miri.
pub(crate) const NIGHTLY: &str = "nightly";

/// The permission to install missing toolchains.
pub(crate) struct Rustup {
    pub(crate) may_install: bool,
}

impl Rustup {
    /// Returns the `cargo` of the given toolchain; `Err` contains the reason why there is none.
    pub(crate) fn cargo(&self, toolchain: &str, components: &[&str]) -> Result<Command, String> {
        if !is_installed() {
            return Err(format!(
                "needs toolchain {toolchain}, and rustup is not installed"
            ));
        }
        self.ensure_toolchain(toolchain, components)?;
        for component in components {
            self.ensure_component(Some(toolchain), component)?;
        }
        let mut command = Command::new("rustup");
        command.args(["run", toolchain, "cargo"]);
        // Cargo points this at the libraries of the toolchain that runs xtask.
        command.env_remove("LD_LIBRARY_PATH");
        Ok(command)
    }

    /// Returns a subcommand of the cargo that runs xtask; `Err` contains the reason why there is
    /// none.
    pub(crate) fn subcommand(&self, subcommand: &str, component: &str) -> Result<Command, String> {
        let there = || succeeds(super::steps::cargo().args([subcommand, "--version"]));
        if !there() && is_installed() {
            self.ensure_component(None, component)?;
        }
        if !there() {
            return Err(format!(
                "needs `cargo {subcommand}`, which is not installed"
            ));
        }
        let mut command = super::steps::cargo();
        command.arg(subcommand);
        Ok(command)
    }

    /// Installs the toolchain with all its components in one command, so that rustup selects a
    /// nightly that has all of them.
    fn ensure_toolchain(&self, toolchain: &str, components: &[&str]) -> Result<(), String> {
        let listed = output(Command::new("rustup").args(["toolchain", "list"]));
        if has_toolchain(&listed, toolchain) {
            return Ok(());
        }
        let mut install = vec!["toolchain", "install", toolchain, "--profile", "minimal"];
        install.extend(
            components
                .iter()
                .flat_map(|component| ["--component", component]),
        );
        self.install(&install)
    }

    fn ensure_component(&self, toolchain: Option<&str>, component: &str) -> Result<(), String> {
        let mut command = Command::new("rustup");
        command.args(["component", "list", "--installed"]);
        let mut install = vec!["component", "add", component];
        if let Some(toolchain) = toolchain {
            command.args(["--toolchain", toolchain]);
            install.extend(["--toolchain", toolchain]);
        }
        if has_component(&output(&mut command), component) {
            return Ok(());
        }
        self.install(&install)
    }

    fn install(&self, arguments: &[&str]) -> Result<(), String> {
        let line = format!("rustup {}", arguments.join(" "));
        if !self.may_install {
            return Err(format!(
                "not installed, and --no-install was given; try `{line}`"
            ));
        }
        println!("    {line}");
        if succeeds(Command::new("rustup").args(arguments)) {
            return Ok(());
        }
        Err(format!("not installed, and `{line}` failed"))
    }
}

/// Returns whether rustup is installed.
fn is_installed() -> bool {
    succeeds(Command::new("rustup").arg("--version"))
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn output(command: &mut Command) -> String {
    let bytes = command
        .stderr(Stdio::null())
        .output()
        .map(|output| output.stdout);
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// Returns whether a line of `rustup toolchain list` names the toolchain, for any host.
fn has_toolchain(listed: &str, toolchain: &str) -> bool {
    let names = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names
        .filter_map(|name| name.strip_prefix(toolchain))
        .any(|rest| {
            // The name must end here or continue with the host, because a dated nightly is a
            // different toolchain.
            rest.is_empty()
                || rest
                    .strip_prefix('-')
                    .is_some_and(|rest| !rest.starts_with('2'))
        })
}

/// Returns whether a line of `rustup component list --installed` names the component, for any
/// target.
fn has_component(listed: &str, component: &str) -> bool {
    let mut rests = listed
        .lines()
        .filter_map(|line| line.strip_prefix(component));
    rests.any(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLCHAINS: &str = "stable-x86_64-unknown-linux-gnu (active, default)\n\
                              nightly-2026-01-02-x86_64-unknown-linux-gnu\n\
                              1.88-x86_64-unknown-linux-gnu\n\
                              1.95.0-x86_64-unknown-linux-gnu\n";

    #[test]
    fn a_toolchain_is_found_by_its_whole_name() {
        assert!(has_toolchain(TOOLCHAINS, "1.88"));
        assert!(has_toolchain(TOOLCHAINS, "stable"));
        assert!(has_toolchain(TOOLCHAINS, "nightly-2026-01-02"));
        assert!(!has_toolchain(TOOLCHAINS, "1.95"));
        assert!(!has_toolchain(TOOLCHAINS, "nightly"));
        assert!(!has_toolchain("", "1.88"));
    }

    #[test]
    fn a_component_is_found_with_or_without_its_target() {
        let listed = "miri-x86_64-unknown-linux-gnu\nrust-src\n";
        assert!(has_component(listed, "miri"));
        assert!(has_component(listed, "rust-src"));
        assert!(!has_component(listed, "rustfmt"));
    }

    #[test]
    fn packages_without_permission_to_install_are_named() {
        let rustup = Rustup { may_install: false };
        let reason = rustup.install(&["component", "add", "miri"]).unwrap_err();
        assert!(reason.contains("`rustup component add miri`"), "{reason}");
    }
}
