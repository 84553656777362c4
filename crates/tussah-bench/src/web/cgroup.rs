//! Bounds the memory of a server, page cache included, by a control group of the first or second
//! version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Bound, in seconds: the time for the processes of a group to disappear after their end.
const GONE_SECONDS_MAX: u64 = 5;

/// A control group of this program; dropping it removes it.
#[derive(Debug)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a group whose processes together may use `bytes` bytes of memory.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no such groups, or if only root may create one.
    pub fn new(name: &str, bytes: u64) -> Result<Cgroup, String> {
        let own = format!("tussah-bench-{}-{name}", std::process::id());
        let (first, second) = (
            Path::new("/sys/fs/cgroup/memory"),
            Path::new("/sys/fs/cgroup"),
        );
        let (folder, file) = match first.join("memory.limit_in_bytes").exists() {
            true => (first, "memory.limit_in_bytes"),
            false => (second, "memory.max"),
        };
        let path = folder.join(own);
        let failed = |error: std::io::Error| {
            format!(
                "cannot create the control group {}: {error}; run as root",
                path.display()
            )
        };
        fs::create_dir(&path).map_err(failed)?;
        let group = Cgroup(path.clone());
        fs::write(path.join(file), bytes.to_string()).map_err(failed)?;
        Ok(group)
    }

    /// Returns the peak memory use, in bytes.
    pub fn peak_bytes(&self) -> Option<f64> {
        let files = ["memory.max_usage_in_bytes", "memory.peak"].into_iter();
        let mut texts = files.filter_map(|file| fs::read_to_string(self.0.join(file)).ok());
        texts.next()?.trim().parse().ok()
    }

    /// Returns the command, changed so that its process joins the group before it starts.
    pub fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("sh");
        let join = "echo $$ > \"$0\" && exec \"$@\"";
        wrapped.args(["-c", join]).arg(self.0.join("cgroup.procs"));
        wrapped.arg(command.get_program()).args(command.get_args());
        wrapped.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        wrapped
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(GONE_SECONDS_MAX);
        // The group stays busy until the kernel has removed its processes.
        while fs::remove_dir(&self.0).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
