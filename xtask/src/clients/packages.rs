//! Finds programs, or installs them with apt-get if that is permitted.

use std::process::{Command, Stdio};

pub(super) struct Packages {
    may_install: bool,
    /// True once the package lists have been updated.
    updated: bool,
}

impl Packages {
    pub(super) fn new(may_install: bool) -> Self {
        Self {
            may_install,
            updated: false,
        }
    }

    /// Returns the first available program; `Err` contains the reason why there is none.
    pub(super) fn program(&mut self, programs: &[&str], package: &str) -> Result<String, String> {
        if let Some(program) = found(programs) {
            return Ok(program);
        }
        let by_hand = format!("apt-get install {package}");
        if !self.may_install {
            return Err(format!(
                "not installed, and --no-install was given; try `{by_hand}`"
            ));
        }
        println!("    {by_hand}");
        if !self.updated {
            self.updated = as_root(&["apt-get", "update", "-qq"]);
        }
        as_root(&[
            "apt-get",
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
            package,
        ]);
        found(programs).ok_or(format!("not installed, and `{by_hand}` failed"))
    }
}

/// Returns the first installed program.
pub(super) fn found(programs: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // The folders of server programs are not on every user's path.
    let folders: Vec<_> = std::env::split_paths(&path)
        .chain(["/usr/sbin".into()])
        .collect();
    let there = |program: &&&str| folders.iter().any(|folder| folder.join(program).is_file());
    programs
        .iter()
        .find(there)
        .map(|program| (*program).to_owned())
}

/// Runs a command as root, with sudo if it needs no password.
fn as_root(command: &[&str]) -> bool {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout == b"0\n");
    let sudo: &[&str] = if is_root { &[] } else { &["sudo", "-n"] };
    let words = [sudo, &["env", "DEBIAN_FRONTEND=noninteractive"], command].concat();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_programs_are_not_installed() {
        let mut packages = Packages::new(false);
        assert_eq!(
            packages.program(&["no-such-program", "sh"], "dash"),
            Ok("sh".into())
        );
        let reason = packages
            .program(&["no-such-program"], "nothing")
            .unwrap_err();
        assert!(reason.contains("`apt-get install nothing`"), "{reason}");
    }
}
