//! The file of `disk`: blocks that carry their number, created once and kept.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::cli::Options;

/// The size of a block, in bytes.
pub const BLOCK: usize = 4096;

/// The size of a read or write, in bytes, to create the file or to bring it into the page cache.
const CHUNK: usize = 1 << 20;

/// A block in memory, with the alignment for direct I/O.
#[derive(Debug)]
#[repr(align(4096))]
pub struct Block(pub [u8; BLOCK]);

impl Block {
    /// Returns a block of zeros.
    pub fn new() -> Box<Block> {
        Box::new(Block([0; BLOCK]))
    }
}

/// The file, open for reading.
#[derive(Debug)]
pub struct BlockFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The number of blocks.
    pub blocks: usize,
    /// The flags of `open` in addition to reading: `O_DIRECT`, or none.
    #[cfg_attr(
        not(any(feature = "compio", feature = "tussah")),
        expect(dead_code, reason = "who opens it itself reads it")
    )]
    pub flags: i32,
    file: File,
}

impl BlockFile {
    /// Opens the file, and creates it if it does not exist. Unless the reads are direct, the whole
    /// file is then in the page cache.
    ///
    /// # Panics
    ///
    /// Panics if the folder cannot be used, with a message that states what to do.
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
                    "cannot create {}: {error}; choose another folder with --dir",
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
                "cannot open {}: {error}; choose another folder with --dir",
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

    /// Reads a block with a blocking call and checks its number.
    pub fn read(&self, block: &mut Block, number: usize) {
        let read = self.file.read_exact_at(&mut block.0, offset(number));
        read.expect("the file can be read");
        check(&block.0, number);
    }
}

/// Returns the position of a block.
pub fn offset(number: usize) -> u64 {
    (number * BLOCK) as u64
}

/// Checks that a block is the block with this number.
pub fn check(block: &[u8; BLOCK], number: usize) {
    let bytes = number.to_ne_bytes();
    let whole = block[..8] == bytes && block[BLOCK - 8..] == bytes;
    assert!(whole, "the block {number} has another number");
}

/// Writes the file under another name and renames it, so that an existing file is always complete.
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

/// Reads the whole file once.
fn warm(mut file: &File) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    while file.read(&mut chunk)? > 0 {}
    Ok(())
}
