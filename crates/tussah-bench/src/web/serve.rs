//! The peers that are part of this program, each in its own process: `tussah-bench web-serve NAME`.
//!
//! They are what an expert on the library would write to serve files fast: all files are in memory,
//! in a map by path. hyper can also serve more files than fit: a cache then holds the popular
//! files, and the blocking pool reads the others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Parser;

mod actix;
mod hyper;

/// Bound, in connections: the maximum number that wait to be accepted. It is more than the clients
/// have in flight at the same time.
const BACKLOG_MAX: u32 = 4096;

/// Serve a folder with one of the peers, for the benchmark.
#[derive(Debug, Parser)]
#[command(name = "tussah-bench web-serve")]
struct Options {
    /// Server to run: hyper, hyper-shared or actix-web
    peer: String,
    /// Folder to serve
    folder: PathBuf,
    /// Port of the loopback
    #[arg(long)]
    port: u16,
    /// Number of workers
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Maximum memory for cached files, in MB (hyper)
    #[arg(long)]
    cache_megabytes: Option<u64>,
}

/// The files of the site.
struct Files {
    folder: PathBuf,
    /// All files by their path in a URL, if they are kept in memory.
    all: HashMap<String, Bytes>,
    /// The popular files, if not all are kept.
    some: Option<moka::sync::Cache<String, Bytes>>,
}

impl Files {
    /// Reads all files of a folder.
    fn all(folder: PathBuf) -> std::io::Result<Files> {
        let mut all = HashMap::new();
        read(&folder, "", &mut all)?;
        let some = None;
        Ok(Files { folder, all, some })
    }

    /// Creates a cache for the files of a folder.
    fn some(folder: PathBuf, megabytes: u64) -> Files {
        let cache = moka::sync::Cache::builder()
            .weigher(|_: &String, file: &Bytes| file.len() as u32)
            .max_capacity(megabytes * 1_000_000);
        let some = Some(cache.build());
        let all = HashMap::new();
        Files { folder, all, some }
    }
}

/// Serves until the process is ended.
pub fn main(arguments: impl Iterator<Item = String>) -> std::process::ExitCode {
    let options = Options::parse_from(std::iter::once("web-serve".to_owned()).chain(arguments));
    if let Err(error) = crate::descriptors::allow(super::config::CONNECTIONS_MAX) {
        eprintln!("{error}");
        return std::process::ExitCode::FAILURE;
    }
    let files = match options.cache_megabytes {
        Some(megabytes) => Ok(Files::some(options.folder, megabytes)),
        None => Files::all(options.folder),
    };
    let files: &'static Files = Box::leak(Box::new(files.expect("the files can be read")));
    let serve = match options.peer.as_str() {
        "hyper" => hyper::each,
        "hyper-shared" => hyper::shared,
        "actix-web" => actix::serve,
        other => panic!("expected hyper, hyper-shared or actix-web, not {other}"),
    };
    serve(options.port, options.workers, files).expect("the server runs");
    std::process::ExitCode::SUCCESS
}

/// Reads the files of `folder`, whose path is `path`.
fn read(folder: &Path, path: &str, files: &mut HashMap<String, Bytes>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{path}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read(&entry.path(), &path, files)?;
        } else {
            files.insert(path, std::fs::read(entry.path())?.into());
        }
    }
    Ok(())
}
