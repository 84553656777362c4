//! The options of a site.

use std::collections::BTreeMap;

use super::rules::FieldRule;
use tussah_wire::http::encoding::Codings;

/// The symbolic links to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// None on the path of a request.
    None,
    /// Those that stay beneath the root. An absolute link does if its target begins with the path
    /// of the root, either as given or with links resolved.
    #[default]
    Inside,
    /// All, wherever they lead, except for the kernel's magic links (`/proc/PID/fd/N`).
    All,
}

/// The treatment of names that begin with a dot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dotfiles {
    /// They do not exist, except `.well-known`.
    #[default]
    Hidden,
    /// They are ordinary files.
    Served,
}

/// The options of the served files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteOptions {
    /// The index files of a directory, in order of preference; paths relative to the directory.
    pub index: Vec<String>,
    /// True to list directories without an index file. Otherwise they are not found.
    pub listing: bool,
    /// The symbolic links to follow.
    pub symlinks: Symlinks,
    /// The treatment of names that begin with a dot.
    pub dotfiles: Dotfiles,
    /// The codings of compressed copies beside a file. Of codings that a client prefers equally,
    /// the first is used.
    pub precompressed: Codings,
    /// The file to serve where nothing is found and the last segment of the path has no dot, for
    /// applications that do their own routing. Relative to the root.
    pub fallback: Option<String>,
    /// The pages of errors, by status code. Relative to the root.
    pub error_pages: BTreeMap<u16, String>,
    /// Media types by extension without the dot, which override the known ones.
    pub types: BTreeMap<String, String>,
    /// `Cache-Control` of every page for which no rule sets it.
    pub cache_control: Option<String>,
    /// The header fields to add by path. Later rules override earlier ones.
    pub rules: Vec<FieldRule>,
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            index: vec!["index.html".into()],
            listing: false,
            symlinks: Symlinks::default(),
            dotfiles: Dotfiles::default(),
            precompressed: Codings::ALL,
            fallback: None,
            error_pages: BTreeMap::new(),
            types: BTreeMap::new(),
            cache_control: None,
            rules: Vec::new(),
        }
    }
}
