//! The cost of a large transfer, in the budget of a poll.

use crate::worker::Worker;

/// A transfer of this many bytes uses as much of a poll's budget as one small operation.
const BYTES_PER_OPERATION: usize = 16 * 1024;

/// Charges the bytes of a large transfer to the current poll's budget, in addition to the charge
/// for the operation itself. Without this charge, a descriptor that is always ready could starve
/// other descriptors.
#[inline]
pub fn spend_bytes(bytes: usize) {
    if bytes >= BYTES_PER_OPERATION {
        spend_many(bytes);
    }
}

#[cold]
fn spend_many(bytes: usize) {
    Worker::with(|worker| {
        if let Some(worker) = worker {
            worker.spend_more((bytes / BYTES_PER_OPERATION) as u32);
        }
    });
}
