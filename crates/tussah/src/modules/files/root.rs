//! The directory below which a module uses files.

use std::path::{Component, Path, PathBuf};

/// The directory below which a module uses files, or none, for a module that uses all files.
pub(in crate::modules) struct Root(Option<PathBuf>);

impl Root {
    /// Checks that the directory can be read.
    pub(in crate::modules) fn new(root: Option<PathBuf>) -> Result<Self, String> {
        if let Some(root) = &root {
            let listed = std::fs::read_dir(root);
            listed.map_err(|error| format!("cannot read {}: {error}", root.display()))?;
        }
        Ok(Self(root))
    }

    /// Returns the whole path of a file, unless the path leads out of the directory.
    pub(in crate::modules) fn join(&self, path: &Path) -> Result<PathBuf, String> {
        let is_below = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        match &self.0 {
            None => Ok(path.to_owned()),
            Some(root) if path.components().all(is_below) => Ok(root.join(path)),
            Some(root) => {
                let (path, root) = (path.display(), root.display());
                Err(format!("{path} leads out of {root}"))
            }
        }
    }
}
