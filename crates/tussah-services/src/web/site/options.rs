//! What can be set about a site.

use std::collections::BTreeMap;

use super::rules::FieldRule;
use tussah_wire::http::encoding::Codings;

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// None on the path of a request.
    None,
    /// Those that stay beneath the root. An absolute one does if its target begins with the path of the root, as that was
    /// given or without links.
    #[default]
    Inside,
    /// All, wherever they lead, but for the kernel's magic ones (`/proc/PID/fd/N`).
    All,
}

/// What happens to names that begin with a dot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dotfiles {
    /// They are not there, `.well-known` excepted.
    #[default]
    Hidden,
    /// They are files like any others.
    Served,
}

/// What is served of a directory, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteOptions {
    /// The files that stand for a directory, in order of preference; paths relative to it.
    pub index: Vec<String>,
    /// Whether directories without such a file are listed. Otherwise they are not found.
    pub listing: bool,
    /// Which symbolic links are followed.
    pub symlinks: Symlinks,
    /// What happens to names that begin with a dot.
    pub dotfiles: Dotfiles,
    /// The codings of precompressed files that are looked for beside a file. Of those that a client likes equally the first is given.
    pub precompressed: Codings,
    /// The file that is given, as if it had been asked for, where nothing is found and the last
    /// segment of the path has no dot: for applications that do their own routing. Relative to the root.
    pub fallback: Option<String>,
    /// The pages of errors, by status code. Relative to the root.
    pub error_pages: BTreeMap<u16, String>,
    /// Media types by extension without the dot, before those that are known.
    pub types: BTreeMap<String, String>,
    /// `Cache-Control` of every page for which no rule sets it.
    pub cache_control: Option<String>,
    /// Which header fields are added where. Later rules replace what earlier ones set.
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
