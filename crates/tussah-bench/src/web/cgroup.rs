//! A bound on the memory of a server, what the kernel keeps of its files included: a control group of the first or second version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Bound, in seconds: how long the processes of a group may take to be gone after their end.
const GONE_SECONDS_MAX: u64 = 5;

/// A control group of this program; dropping it removes it.
#[derive(Debug)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// A group whose processes have so many bytes of memory.
    ///
    /// # Errors
    ///
    /// There are no such groups, or only root may make one.
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
                "no control group {}: {error}; it takes root",
                path.display()
            )
        };
        fs::create_dir(&path).map_err(failed)?;
        let group = Cgroup(path.clone());
        fs::write(path.join(file), bytes.to_string()).map_err(failed)?;
        Ok(group)
    }

    /// The most memory that it ever had, in bytes.
    pub fn peak_bytes(&self) -> Option<f64> {
        let files = ["memory.max_usage_in_bytes", "memory.peak"].into_iter();
        let mut texts = files.filter_map(|file| fs::read_to_string(self.0.join(file)).ok());
        texts.next()?.trim().parse().ok()
    }

    /// The same command, whose process joins the group before it begins.
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
        // It stays busy until the kernel has done with its processes.
        while fs::remove_dir(&self.0).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
