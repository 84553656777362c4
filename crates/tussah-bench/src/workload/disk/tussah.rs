//! The threads of tussah, which share an open file.

use ::tussah::fs::{AlignedBuf, OpenOptions};

use super::file::{BLOCK, BlockFile, check, offset};
use super::{numbers, tasks};
use crate::cli::Options;
use crate::runtimes;

pub(super) fn read(options: &Options, file: &'static BlockFile) {
    let runtime = runtimes::tussah_with(options, options.workers_or(1));
    let mut opening = OpenOptions::new();
    opening.read(true).custom_flags(file.flags);
    let opened = runtime.block_on(opening.open(&file.path));
    let opened = opened.expect("it was opened before");
    let thread = |task| {
        let (numbers, opened) = (numbers(options, file, task), opened.clone());
        runtime.spawn(async move {
            let mut block = AlignedBuf::zeroed(BLOCK, BLOCK);
            for number in numbers {
                let (read, same) = opened.read_at(block, offset(number)).await;
                assert_eq!(read.expect("the file can be read"), BLOCK);
                block = same;
                let bytes = block.first_chunk().expect("a whole block was read");
                check(bytes, number);
            }
        })
    };
    let threads: Vec<_> = (0..tasks(options)).map(thread).collect();
    for thread in threads {
        runtime.block_on(thread).expect("no thread panics");
    }
}
