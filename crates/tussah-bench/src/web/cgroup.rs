//! Bounds the memory of a server, page cache included, and the rates at which it reads disks, by
//! control groups of the first or second version.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::{major, minor};

/// Bound, in seconds: the maximum time for the processes of a group to disappear after their end.
const GONE_SECONDS_MAX: u64 = 5;

/// The version of control groups.
enum Version {
    First,
    Second,
}

/// The control groups of a server, one for each controller in the first version; dropping them
/// removes them.
#[derive(Debug)]
pub struct Cgroup {
    name: String,
    folders: Vec<PathBuf>,
}

impl Cgroup {
    /// Creates a group whose processes together may use `bytes` bytes of memory.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no such groups, or if only root may create one.
    pub fn memory(name: &str, bytes: u64) -> Result<Cgroup, String> {
        let mut group = Cgroup {
            name: format!("tussah-bench-{}-{name}", std::process::id()),
            folders: Vec::new(),
        };
        group.set("memory", "memory.limit_in_bytes", "memory.max", |_| {
            bytes.to_string()
        })?;
        Ok(group)
    }

    /// Limits the rates at which the processes together read devices, in bytes per second.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no such groups, if only root may create one, or if a device
    /// does not exist.
    pub fn with_read_rates<'a>(
        mut self,
        devices: impl Iterator<Item = (&'a str, u64)>,
    ) -> Result<Cgroup, String> {
        for (device, rate) in devices {
            let known = fs::metadata(device).map_err(|error| format!("{device}: {error}"))?;
            let (major, minor) = (major(known.rdev()), minor(known.rdev()));
            let first = "blkio.throttle.read_bps_device";
            self.set("blkio", first, "io.max", |version| match version {
                Version::First => format!("{major}:{minor} {rate}"),
                Version::Second => format!("{major}:{minor} rbps={rate}"),
            })?;
        }
        Ok(self)
    }

    /// Writes a limit to the file that it has in this version of control groups.
    fn set(
        &mut self,
        controller: &str,
        first: &str,
        second: &str,
        value: impl FnOnce(Version) -> String,
    ) -> Result<(), String> {
        let root = Path::new("/sys/fs/cgroup");
        let own = root.join(controller);
        let (folder, file, value) = match own.join("cgroup.procs").exists() {
            true => (own, first, value(Version::First)),
            false => (root.to_owned(), second, value(Version::Second)),
        };
        let folder = folder.join(&self.name);
        let failed = |error: std::io::Error| {
            let path = folder.display();
            format!("cannot set {file} of the control group {path}: {error}; run as root")
        };
        if !self.folders.contains(&folder) {
            fs::create_dir(&folder).map_err(failed)?;
            self.folders.push(folder.clone());
        }
        fs::write(folder.join(file), value).map_err(failed)
    }

    /// Returns the peak memory use, in bytes.
    pub fn peak_bytes(&self) -> Option<f64> {
        let files = ["memory.max_usage_in_bytes", "memory.peak"].into_iter();
        let folder = self.folders.first()?;
        let mut texts = files.filter_map(|file| fs::read_to_string(folder.join(file)).ok());
        texts.next()?.trim().parse().ok()
    }

    /// Returns the command, changed so that its process joins the group before it starts.
    pub fn wrap(&self, command: &Command) -> Command {
        let mut wrapped = Command::new("sh");
        let join = "while [ \"$1\" != -- ]; do echo $$ > \"$1\"/cgroup.procs || exit; shift; done; shift; exec \"$@\"";
        wrapped.args(["-c", join, "sh"]).args(&self.folders);
        wrapped
            .arg("--")
            .arg(command.get_program())
            .args(command.get_args());
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
        for folder in &self.folders {
            // The group stays busy until the kernel has removed its processes.
            while fs::remove_dir(folder).is_err() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}
