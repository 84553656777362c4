//! Pinning a worker to a CPU.

use crate::quietly::quietly;

/// Pins this OS thread to one of the CPUs that the process may use, by the index modulo their
/// number. Does nothing if the system refuses, because pinning only affects speed.
pub(super) fn pin_to_cpu(index: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let cpus: Vec<_> = (0..CpuSet::MAX_CPU)
        .filter(|&cpu| allowed.is_set(cpu))
        .collect();
    if cpus.is_empty() {
        return;
    }
    let mut one = CpuSet::new();
    one.set(cpus[index % cpus.len()]);
    if let Err(error) = sched_setaffinity(None, &one) {
        quietly(|| {
            tracing::warn!(target: "tussah", %error, "a worker could not be pinned to a CPU");
        });
    }
}
