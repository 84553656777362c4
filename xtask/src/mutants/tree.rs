//! A copy of the sources, in which mutants are applied.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Copies the files that git tracks, or would add. An unchanged file keeps its modification
    /// time, so that cargo rebuilds little.
    ///
    /// # Errors
    ///
    /// Returns an error if git or the file system fails.
    pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<Self> {
        let list = [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ];
        let listed = Command::new("git").current_dir(from).args(list).output();
        let listed = listed.context("cannot start git")?;
        if !listed.status.success() {
            bail!(
                "git does not list the files: {}",
                String::from_utf8_lossy(&listed.stderr)
            );
        }
        let tree = Self {
            root: to.to_owned(),
        };
        for file in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
            // The list includes files whose deletion is not committed.
            let Ok(new) = std::fs::read(from.join(file)) else {
                continue;
            };
            if std::fs::read(to.join(file)).ok().as_ref() != Some(&new) {
                tree.write_bytes(file, &new)?;
            }
        }
        Ok(tree)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(super) fn read(&self, file: &str) -> anyhow::Result<String> {
        std::fs::read_to_string(self.root.join(file)).with_context(|| format!("cannot read {file}"))
    }

    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub(super) fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        self.write_bytes(file, text.as_bytes())
    }

    fn write_bytes(&self, file: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.root.join(file);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder of {file}"))?;
        }
        std::fs::write(path, bytes).with_context(|| format!("cannot write the copy of {file}"))
    }
}
