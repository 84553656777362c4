//! The file that `disk` reads: blocks that carry their number, made once and kept.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::cli::Options;

/// Bytes of a block.
pub const BLOCK: usize = 4096;

/// Bytes that are read or written at once to make the file, or to bring it into the page cache.
const CHUNK: usize = 1 << 20;

/// A block in memory, aligned as direct I/O asks for.
#[derive(Debug)]
#[repr(align(4096))]
pub struct Block(pub [u8; BLOCK]);

impl Block {
    /// A block of zeros.
    pub fn new() -> Box<Block> {
        Box::new(Block([0; BLOCK]))
    }
}

/// The file, open for reading.
#[derive(Debug)]
pub struct BlockFile {
    /// Where it is.
    pub path: PathBuf,
    /// The number of its blocks.
    pub blocks: usize,
    /// What it is opened with beside reading: `O_DIRECT`, or nothing.
    #[cfg_attr(
        not(any(feature = "compio", feature = "tussah")),
        expect(dead_code, reason = "who opens it itself reads it")
    )]
    pub flags: i32,
    file: File,
}

impl BlockFile {
    /// Opens the file, which is made if it is not there; all of it is in the page cache if that is what the user measures.
    ///
    /// # Panics
    ///
    /// When the folder cannot be used, with a message that says what to do.
    pub fn prepare(options: &Options) -> BlockFile {
        let blocks = (options.scaled(1 << 30) / BLOCK).max(1);
        let folder = options.dir.clone().unwrap_or_else(|| {
            let program = std::env::current_exe().expect("this program has a file");
            let folder = program.parent().expect("a file is in a folder");
            folder.to_owned()
        });
        let path = folder.join(format!("disk-{blocks}.blocks"));
        let length = (blocks * BLOCK) as u64;
        if std::fs::metadata(&path).map_or(0, |metadata| metadata.len()) != length {
            make(&path, blocks).unwrap_or_else(|error| {
                panic!(
                    "{} cannot be made: {error}; --dir chooses another folder",
                    path.display()
                )
            });
        }
        let flags = match options.direct {
            true => rustix::fs::OFlags::DIRECT.bits() as i32,
            false => 0,
        };
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&path);
        let file = file.unwrap_or_else(|error| {
            panic!(
                "{} cannot be opened: {error}; --dir chooses another folder",
                path.display()
            )
        });
        if !options.direct {
            warm(&file).expect("the file can be read");
        }
        BlockFile {
            path,
            blocks,
            flags,
            file,
        }
    }

    /// Reads a block with a call that blocks, and checks that it is that block.
    pub fn read(&self, block: &mut Block, number: usize) {
        let read = self.file.read_exact_at(&mut block.0, offset(number));
        read.expect("the file can be read");
        check(&block.0, number);
    }
}

/// Where a block begins.
pub fn offset(number: usize) -> u64 {
    (number * BLOCK) as u64
}

/// Checks that a block is the one with this number.
pub fn check(block: &[u8; BLOCK], number: usize) {
    let bytes = number.to_ne_bytes();
    let whole = block[..8] == bytes && block[BLOCK - 8..] == bytes;
    assert!(whole, "the block {number} is another one");
}

/// Writes the file beside its place and moves it there, so that what is there is always whole.
fn make(path: &Path, blocks: usize) -> std::io::Result<()> {
    let part = path.with_extension(format!("part-{}", std::process::id()));
    let mut file = File::create(&part)?;
    let mut chunk = Vec::with_capacity(CHUNK);
    for number in 0..blocks {
        let mut block = [0; BLOCK];
        block[..8].copy_from_slice(&number.to_ne_bytes());
        block[BLOCK - 8..].copy_from_slice(&number.to_ne_bytes());
        chunk.extend_from_slice(&block);
        if chunk.len() >= CHUNK || number + 1 == blocks {
            file.write_all(&chunk)?;
            chunk.clear();
        }
    }
    file.sync_all()?;
    std::fs::rename(part, path)
}

/// Reads all of the file once.
fn warm(mut file: &File) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    while file.read(&mut chunk)? > 0 {}
    Ok(())
}
