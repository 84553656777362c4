//! The options of a site.

use std::collections::BTreeMap;

use super::rules::FieldRule;
use tussah_wire::http::encoding::Codings;

/// The symbolic links to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// No links.
    None,
    /// Links that stay beneath the root. The target of an absolute link must begin with the path of
    /// the root, either as given or with links resolved.
    #[default]
    Inside,
    /// All links, wherever they lead, except for the kernel's magic links (`/proc/PID/fd/N`).
    All,
}

/// The treatment of names that begin with a dot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dotfiles {
    /// Names that begin with a dot, except `.well-known`, are treated as missing.
    #[default]
    Hidden,
    /// Names that begin with a dot are treated like all other names.
    Served,
}

/// The options for serving files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteOptions {
    /// The index files of a directory, in order of preference; the paths are relative to the
    /// directory. Index files may be [scripts](Self::scripts).
    pub index: Vec<String>,
    /// True to list directories that have no index file. If false, a directory without an index
    /// file counts as missing.
    pub listing: bool,
    /// The symbolic links to follow.
    pub symlinks: Symlinks,
    /// The treatment of names that begin with a dot.
    pub dotfiles: Dotfiles,
    /// The codings of the compressed copies that the server looks for next to a file. Among codings
    /// that a client prefers equally, the server uses the one that comes first in this list.
    pub precompressed: Codings,
    /// The suffixes of script names, such as `.php`. The server runs scripts, and never serves
    /// their source.
    pub scripts: Vec<String>,
    /// The file to serve if nothing is found and the last segment of the path has no dot. Set a
    /// fallback for an application that does its own routing. If the fallback is a script, it also
    /// handles paths whose last segment has a dot, as with nginx's
    /// `try_files $uri $uri/ /index.php?$args`. The path of the fallback is relative to the root.
    pub fallback: Option<String>,
    /// The error pages, by status code. The paths are relative to the root. Error pages must not be
    /// scripts.
    pub error_pages: BTreeMap<u16, String>,
    /// Additional media types by file extension, without the dot. These types override the built-in
    /// types.
    pub types: BTreeMap<String, String>,
    /// The value of `Cache-Control` in responses for which no rule sets this field.
    pub cache_control: Option<String>,
    /// The rules that add header fields to the responses for certain paths. Later rules override
    /// earlier ones.
    pub rules: Vec<FieldRule>,
}

impl SiteOptions {
    /// Returns whether the file with this path is a script.
    pub(super) fn is_script(&self, path: &[u8]) -> bool {
        let mut ends = self.scripts.iter();
        ends.any(|end| path.ends_with(end.as_bytes()))
    }
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            index: vec!["index.html".into()],
            listing: false,
            symlinks: Symlinks::default(),
            dotfiles: Dotfiles::default(),
            precompressed: Codings::ALL,
            scripts: Vec::new(),
            fallback: None,
            error_pages: BTreeMap::new(),
            types: BTreeMap::new(),
            cache_control: None,
            rules: Vec::new(),
        }
    }
}
