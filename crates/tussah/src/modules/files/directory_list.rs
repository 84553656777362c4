//! A source of the files in a directory.

use std::path::PathBuf;

use crate::flow::{AsyncOut, module};
use crate::fs::read_dir;

/// Sends the path of each regular file in a directory, in no particular order, then ends.
///
/// | parameter | kind | meaning |
/// |---|---|---|
/// | `directory` | path | the directory; its subdirectories are not listed |
///
/// | port | items | meaning |
/// |---|---|---|
/// | output `out` | `PathBuf` | the path of a file, including `directory` |
/// | output `error`, optional | text | the reason why an entry is missing |
#[module]
pub struct DirectoryList {
    directory: PathBuf,
}

#[module]
impl DirectoryList {
    fn init(directory: PathBuf) -> Result<Self, String> {
        // The entries are read later; an error of the directory itself stops the graph now.
        match std::fs::read_dir(&directory) {
            Ok(_) => Ok(Self { directory }),
            Err(error) => Err(format!("cannot list {}: {error}", directory.display())),
        }
    }

    async fn start(&self, out: &impl AsyncOut<PathBuf>, error: Option<&impl AsyncOut<String>>) {
        let failed = async |why: std::io::Error| match error {
            Some(error) => error.send(why.to_string()).await,
            None => tracing::error!(target: "tussah::modules", "{why}"),
        };
        let mut entries = match read_dir(&self.directory).await {
            Ok(entries) => entries,
            Err(error) => return failed(error).await,
        };
        while let Some(entry) = entries.next().await {
            match entry {
                Ok(entry) if entry.file_type().is_file() => {
                    out.send(entry.path().to_owned()).await;
                }
                Ok(_) => {}
                Err(error) => failed(error).await,
            }
        }
    }
}
