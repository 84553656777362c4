//! The CPU time of processes.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// The CPU time of a process and its descendants at one moment.
///
/// The kernel counts it in nanoseconds (`clock_getcpuclockid`), unlike the ticks of 10 ms in /proc,
/// and includes threads that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::load) struct Usage {
    /// The times by process.
    times: BTreeMap<u32, Duration>,
}

/// The CPU time used between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) struct Used {
    pub(in crate::load) time: Duration,
    pub(in crate::load) processes: usize,
    /// Processes that ended in between; their last CPU time is unknown.
    pub(in crate::load) ended: usize,
}

impl Usage {
    /// Measures a process and its descendants.
    pub(in crate::load) fn of(pid: u32) -> Self {
        let family = family(pid, &parents());
        let times = family.into_iter().filter_map(|pid| Some((pid, time(pid)?)));
        Self {
            times: times.collect(),
        }
    }

    /// Returns the CPU time used since an earlier moment.
    pub(in crate::load) fn since(&self, before: &Self) -> Used {
        let earlier = |pid: &u32| before.times.get(pid).copied().unwrap_or_default();
        let used = self.times.iter();
        let used = used.map(|(pid, time)| time.saturating_sub(earlier(pid)));
        let ended = before.times.keys();
        Used {
            time: used.sum(),
            processes: self.times.len(),
            ended: ended.filter(|pid| !self.times.contains_key(pid)).count(),
        }
    }

    pub(in crate::load) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}

/// Returns the CPU time of one process.
pub(in crate::load) fn time(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into().ok()?)).ok()?;
    Some(clock_gettime(clock).ok()?.into())
}

/// Returns the parent of each process.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may contain any character.
        let (_, rest) = stat.rsplit_once(')')?;
        let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    };
    pids.filter_map(parent).collect()
}

/// Returns a process and its descendants.
fn family(pid: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(&member) = family.get(at) {
        let children = parents.iter().filter(|&&(_, parent)| parent == member);
        family.extend(children.map(|&(child, _)| child));
        at += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families() {
        let parents = [(2, 1), (3, 2), (4, 2), (5, 4), (6, 1)];
        assert_eq!(family(2, &parents), [2, 3, 4, 5]);
        assert_eq!(family(6, &parents), [6]);
        assert_eq!(family(9, &parents), [9]);
    }

    #[test]
    fn this_process_uses_time() {
        let pid = std::process::id();
        assert!(time(pid) > Some(Duration::ZERO));
        let before = Usage::of(pid);
        assert!(!before.is_empty());
        while time(pid) == before.times.get(&pid).copied() {}
        assert!(Usage::of(pid).since(&before).time > Duration::ZERO);
        assert!(Usage::of(u32::MAX).is_empty());
    }

    #[test]
    fn cpu_time_is_the_difference_of_two_readings() {
        let usage = |times: &[(u32, u64)]| Usage {
            times: times
                .iter()
                .map(|&(pid, s)| (pid, Duration::from_secs(s)))
                .collect(),
        };
        let used = usage(&[(1, 5), (3, 7)]).since(&usage(&[(1, 2), (2, 9)]));
        let expected = Used {
            time: Duration::from_secs(10),
            processes: 2,
            ended: 1,
        };
        assert_eq!(used, expected);
    }
}
