//! Programs that are there, or are installed with apt-get where that may be done.

use std::process::{Command, Stdio};

pub(super) struct Packages {
    may_install: bool,
    /// The lists of packages are read again once.
    updated: bool,
}

impl Packages {
    pub(super) fn new(may_install: bool) -> Self {
        Self {
            may_install,
            updated: false,
        }
    }

    /// The first of the programs that is there; `Err` is the reason why there is none.
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

/// The first of the programs that is there.
pub(super) fn found(programs: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where servers are, and not on the path of every user.
    let folders: Vec<_> = std::env::split_paths(&path)
        .chain(["/usr/sbin".into()])
        .collect();
    let there = |program: &&&str| folders.iter().any(|folder| folder.join(program).is_file());
    programs
        .iter()
        .find(there)
        .map(|program| (*program).to_owned())
}

/// Runs a command as root, with sudo if that asks for no password.
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
    fn what_is_there_is_not_installed() {
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
