//! Disks of a known rate: loop devices with file systems, whose reads a control group limits.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Options;

/// The folder of the disks, in that for temporary files.
pub(super) const FOLDER: &str = "videos";

/// The number of videos on each disk.
const VIDEOS: u64 = 2;

/// The part of a disk that its file system may need for itself, in MB.
const OVERHEAD_MB: u64 = 32;

/// The disks, mounted in one folder. Dropping them unmounts and removes them.
pub(super) struct Disks {
    folder: PathBuf,
    disks: Vec<Disk>,
    video_bytes: u64,
    rate: u64,
}

struct Disk {
    device: String,
    mount: PathBuf,
    is_mounted: bool,
}

/// Returns the name of a disk's folder.
pub(super) fn name(disk: u32) -> String {
    format!("disk{disk}")
}

impl Disks {
    /// Makes the disks, and writes their videos.
    ///
    /// # Errors
    ///
    /// Returns an error unless the user is root, or if a command fails.
    pub(super) fn new(scratch: &Path, options: &Options) -> Result<Disks, String> {
        let folder = scratch.join(FOLDER);
        let disk_mb = u64::from(options.disk_mb);
        let mut disks = Disks {
            folder: folder.clone(),
            disks: Vec::new(),
            video_bytes: disk_mb * 1_000_000 / VIDEOS,
            rate: options.disk_rate(),
        };
        for disk in 0..options.disks {
            let image = scratch.join(name(disk)).with_extension("img");
            let failed = |error: std::io::Error| format!("{}: {error}", image.display());
            let file = File::create(&image).map_err(failed)?;
            file.set_len((disk_mb + OVERHEAD_MB) * 1_000_000)
                .map_err(failed)?;
            let image = image.to_str().ok_or("expected a path of UTF-8")?;
            let device = output("losetup", &["--find", "--show", image])?;
            let mount = folder.join(name(disk));
            disks.disks.push(Disk {
                device: device.clone(),
                mount: mount.clone(),
                is_mounted: false,
            });
            // The default of most disks, in sectors.
            output("blockdev", &["--setra", "256", &device])?;
            output("mkfs.ext4", &["-q", "-O", "^has_journal", &device])?;
            fs::create_dir_all(&mount).map_err(|error| error.to_string())?;
            let path = mount.to_str().ok_or("expected a path of UTF-8")?;
            output("mount", &["-o", "noatime", &device, path])?;
            disks.disks.last_mut().expect("it was pushed").is_mounted = true;
            // The device goes with the mount, even if this program is interrupted.
            output("losetup", &["--detach", &device])?;
            disks.write(disk)?;
            eprint!("\rdisk {} of {} is ready", disk + 1, options.disks);
        }
        eprintln!();
        Ok(disks)
    }

    fn write(&self, disk: u32) -> Result<(), String> {
        let block = vec![b'v'; 1_000_000];
        for video in 0..VIDEOS {
            let path = self.folder.join(&self.path(disk, video)[1..]);
            let failed = |error: std::io::Error| format!("{}: {error}", path.display());
            let mut file = File::create(&path).map_err(failed)?;
            for _ in 0..self.video_bytes / 1_000_000 {
                file.write_all(&block).map_err(failed)?;
            }
            file.sync_all().map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the path of a video in a URL, and in the folder.
    fn path(&self, disk: u32, video: u64) -> String {
        format!("/{}/{video}.ts", name(disk))
    }

    /// Returns the path of a random video of a disk, and a place in it that has `len` bytes after
    /// it.
    pub(super) fn any(&self, stream: usize, len: u64, random: &mut fastrand::Rng) -> (String, u64) {
        let disk = (stream % self.disks.len()) as u32;
        let path = self.path(disk, random.u64(..VIDEOS));
        (path, random.u64(..=self.video_bytes.saturating_sub(len)))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the size of all videos.
    pub(super) fn bytes(&self) -> u64 {
        self.video_bytes * VIDEOS * self.disks.len() as u64
    }

    /// Returns each device with its rate, in bytes per second.
    pub(super) fn rates(&self) -> impl Iterator<Item = (&str, u64)> {
        let devices = self.disks.iter().map(|disk| &*disk.device);
        devices.map(|device| (device, self.rate))
    }

    /// Makes the system forget the contents of all files.
    ///
    /// # Errors
    ///
    /// Returns an error unless the user is root.
    pub(super) fn forget(&self) -> Result<(), String> {
        for disk in &self.disks {
            // The image of the disk stays in memory, so that it is never the bottleneck.
            output("blockdev", &["--flushbufs", &disk.device])?;
            for video in 0..VIDEOS {
                let file = File::open(disk.mount.join(format!("{video}.ts")));
                let file = file.map_err(|error| error.to_string())?;
                rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                    .map_err(|error| format!("fadvise: {error}"))?;
            }
        }
        Ok(())
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        for disk in self.disks.iter().filter(|disk| !disk.is_mounted) {
            if let Err(error) = output("losetup", &["--detach", &disk.device]) {
                eprintln!("{error}");
            }
        }
        unmount(&self.folder);
    }
}

/// Unmounts all disks in the folder for videos, if there are any.
pub(super) fn unmount(folder: &Path) {
    for disk in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = disk.path();
        // A server that is ending may still use the disk. Whatever remains is named.
        if let Err(error) = output("umount", &["--lazy", &path.to_string_lossy()]) {
            eprintln!("{error}");
        }
    }
}

/// Runs a command, and returns its output.
fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let shown = || format!("{program} {}", arguments.join(" "));
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|error| format!("{}: {error}", shown()))?;
    if !done.status.success() {
        let why = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{} failed: {}; run as root", shown(), why.trim()));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
