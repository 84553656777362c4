//! The pairs of tussah: a thread for each side.

use std::io;
use std::sync::atomic::Ordering;

use ::tussah::pipe::{Reader, Writer};

use super::{ACTIVE, BLOCK, Ends, WAITING, blocks, check, idle, sends, settle, sides, stamp};
use crate::cli::Options;
use crate::runtimes;

pub(super) fn exchange(options: &Options) {
    let runtime = runtimes::tussah_with(options, options.workers_or(1));
    let open = |(side, ends): (usize, Ends)| {
        // The pipes belong to the runtime in which they are opened.
        runtime.block_on(async {
            let from = Reader::from_fd(ends.from.into()).expect("the runtime takes a pipe");
            let to = Writer::from_fd(ends.to.into()).expect("the runtime takes a pipe");
            (side, from, to)
        })
    };
    let active: Vec<_> = sides(ACTIVE, 0, 1).map(open).collect();
    for (_, from, to) in sides(idle(options), 0, 1).map(open) {
        drop(runtime.spawn(async move {
            WAITING.fetch_add(1, Ordering::Relaxed);
            let read = from.read(&mut [0; 64]).await;
            unreachable!("an idle pipe {to:?} gave {read:?}");
        }));
    }
    settle(options);
    let blocks = blocks(options);
    let threads = active.into_iter();
    let threads = threads.map(|(side, from, to)| runtime.spawn(run(side, blocks, from, to)));
    for thread in threads.collect::<Vec<_>>() {
        let exchanged = runtime.block_on(thread).expect("no thread panics");
        exchanged.expect("no pipe fails");
    }
}

async fn run(side: usize, blocks: usize, from: Reader, to: Writer) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    for number in 0..blocks {
        if sends(side, number) {
            stamp(&mut block, number);
            to.write_all(&block).await?;
        } else {
            from.read_exact(&mut block).await?;
            check(&block, number);
        }
    }
    Ok(())
}
