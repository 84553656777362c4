//! Drivers: what a worker waits on.

pub mod file;
mod report;

use std::io;
use std::sync::Arc;

use file::Ring;
pub use report::DriverReport;

use crate::runtime::Shared;

/// Has the worker of a place wait for a ring's completions too.
fn watch(_shared: &Arc<Shared>, _place: usize, ring: &Arc<Ring>) -> io::Result<()> {
    let weak = Arc::downgrade(ring);
    std::thread::spawn(move || {
        while let Some(ring) = weak.upgrade() {
            let limit = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            };
            let _ = rustix::event::poll(
                &mut [rustix::event::PollFd::new(
                    &ring,
                    rustix::event::PollFlags::IN,
                )],
                Some(&limit),
            );
            ring.flush();
            ring.reap();
        }
    });
    Ok(())
}
