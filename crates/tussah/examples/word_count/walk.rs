//! Finds the files.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use tussah::spawn_blocking;
use tussah::sync::mpmc::Sender;

use super::Job;

/// The files, the directories and the problems at a path.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    bytes: u64,
    directories: Vec<PathBuf>,
    problems: Vec<(PathBuf, io::Error)>,
}

/// Sends every file below the paths, depth first.
pub(crate) async fn walk(job: &Job, paths: Vec<PathBuf>, files: Sender<PathBuf>) {
    for path in paths {
        let mut found = spawn_blocking(move || look_at(path)).await;
        let mut directories = Vec::new();
        loop {
            let Found {
                files: here,
                bytes,
                directories: below,
                problems,
            } = found.unwrap_or_else(|error| error.resume());
            job.progress.inc_length(bytes);
            for (path, error) in problems {
                job.problem(path, error).await;
            }
            for file in here {
                files
                    .send(file)
                    .await
                    .expect("the counting threads outlive the walker");
            }
            directories.extend(below);
            let Some(directory) = directories.pop() else {
                break;
            };
            found = spawn_blocking(move || list(directory)).await;
        }
    }
}

/// Examines a path given by the user: links are followed.
fn look_at(path: PathBuf) -> Found {
    let mut found = Found::default();
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => found.directories.push(path),
        Ok(metadata) if metadata.is_file() => {
            found.bytes = metadata.len();
            found.files.push(path);
        }
        Ok(_) => {
            let error = io::Error::other("expected a file or a directory, got something else");
            found.problems.push((path, error));
        }
        Err(error) => found.problems.push((path, error)),
    }
    found
}

/// Lists a directory. Links, devices and other special files in it are skipped, so that nothing is
/// counted twice.
fn list(directory: PathBuf) -> Found {
    let mut found = Found::default();
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) => {
            found.problems.push((directory, error));
            return found;
        }
    };
    for entry in entries {
        if let Err((path, error)) = add_entry(&mut found, &directory, entry) {
            found.problems.push((path, error));
        }
    }
    // The directories form a stack, so they are sorted in reverse.
    found.files.sort();
    found.directories.sort_by(|a, b| b.cmp(a));
    found
}

fn add_entry(
    found: &mut Found,
    directory: &Path,
    entry: io::Result<DirEntry>,
) -> Result<(), (PathBuf, io::Error)> {
    let entry = entry.map_err(|error| (directory.to_owned(), error))?;
    let path = entry.path();
    // This does not follow links.
    match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => found.directories.push(path),
        Ok(metadata) if metadata.is_file() => {
            found.bytes += metadata.len();
            found.files.push(path);
        }
        Ok(_) => {}
        Err(error) => return Err((path, error)),
    }
    Ok(())
}
