//! A site: a directory in which the server looks up files and their metadata by path.
//!
//! Unless a [`Site`] follows all symbolic links ([`Symlinks::All`]), it opens files only beneath
//! its directory: `..`, symbolic links and renames cannot lead out of the directory. The functions
//! of this module block only on the file system, and [`Site::try_look_up`] never waits for a disk.
//!
//! ```
//! # let root = tempfile::tempdir()?;
//! use tussah_services::web::site::{Codings, Found, Missing, Site, SiteOptions};
//!
//! std::fs::write(root.path().join("index.html"), "<p>Hello")?;
//! let site = Site::open(root.path(), SiteOptions::default())?;
//! let Ok(Found::File(index)) = site.look_up(b"/", Codings::NONE) else { panic!("not a file") };
//! assert_eq!(&*index.meta.media_type, "text/html; charset=utf-8");
//! assert_eq!(index.meta.len, 8);
//! assert!(matches!(site.look_up(b"/nobody", Codings::NONE), Err(Missing::NotFound)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entity_tag;
mod found;
mod listing;
mod media_type;
mod options;
mod path;
mod root;
mod rules;
#[cfg(test)]
mod tests;
mod walk;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, Stat, fcntl_setfl, fstat};

pub use entity_tag::EntityTag;
pub(crate) use found::is_exhausted;
pub use found::{Found, Meta, Missing, Opened};
pub use listing::LISTING_TYPE;
pub use options::{Dotfiles, SiteOptions, Symlinks};
pub(crate) use path::percent_encode;
pub use root::Beneath;
pub use rules::{FieldRule, FieldRuleError};
pub use tussah_wire::http::encoding::{Coding, Codings};

use media_type::MediaTypes;
use path::SitePath;
use root::{Root, Wait};

/// A directory of files to serve.
#[derive(Debug)]
pub struct Site {
    root: Root,
    options: SiteOptions,
    types: MediaTypes,
    redirects_to_scripts: bool,
}

impl Site {
    /// Opens a directory, and detects the best method that the kernel supports for opening files
    /// beneath the directory.
    ///
    /// # Errors
    /// Returns an error if the directory does not exist, or if the fallback or an error page is not
    /// a readable file.
    pub fn open(path: &Path, options: SiteOptions) -> Result<Self, SiteError> {
        let failed = |problem| SiteError {
            root: path.into(),
            problem,
        };
        let root = Root::open(path, options.symlinks)
            .map_err(|error| failed(Problem::Root(error.into())))?;
        let types = MediaTypes::new(&options.types);
        let files = options.index.iter().chain(&options.fallback);
        let redirects_to_scripts = files
            .into_iter()
            .any(|file| options.is_script(file.as_bytes()));
        let site = Self {
            root,
            options,
            types,
            redirects_to_scripts,
        };
        let pages = site
            .options
            .error_pages
            .iter()
            .map(|(status, file)| (Some(*status), file));
        for (status, file) in pages.chain(site.options.fallback.iter().map(|file| (None, file))) {
            let opened = match status {
                Some(_) if site.options.is_script(relative(file)) => Err(Unopened::Script),
                _ => site.open_page(relative(file), Codings::NONE, Wait::Allowed),
            };
            if let Err(missing) = opened {
                return Err(failed(Problem::Page {
                    status,
                    file: file.clone(),
                    missing,
                }));
            }
        }
        Ok(site)
    }

    /// Creates a site without files, for servers that have none. It does not touch the file system.
    pub(crate) fn empty() -> Self {
        let options = SiteOptions::default();
        Self {
            root: Root::empty(),
            types: MediaTypes::new(&options.types),
            options,
            redirects_to_scripts: false,
        }
    }

    /// Returns the method by which the site opens files beneath the root.
    #[must_use]
    pub fn beneath(&self) -> Beneath {
        self.root.beneath()
    }

    /// Looks up a path. The lookup may block on disk I/O. The path must be decoded and normalized:
    /// it begins with a slash, and has neither dot segments nor NUL bytes. For any other path, the
    /// lookup fails with [`Missing::NotFound`].
    ///
    /// Compressed copies are files next to the original file. The lookup uses the first coding in
    /// `preferred` for which a copy exists. A copy that is older than the file is stale, so it is
    /// ignored. The comparison ignores fractions of a second, because a program that unpacks an
    /// archive may write both files within one second, in either order.
    ///
    /// # Errors
    /// Returns an error if nothing is found or a system call fails, but never returns `WouldBlock`.
    pub fn look_up(&self, path: &[u8], preferred: Codings) -> Result<Found, Missing> {
        self.find(path, preferred, Wait::Allowed)
    }

    /// Looks up a path as [`look_up`](Self::look_up) does, but never waits for a disk.
    ///
    /// # Errors
    /// Returns the same errors as [`look_up`](Self::look_up). Also returns [`Missing::WouldBlock`]
    /// for a listing, for a name that is not in the kernel's cache, and for a link that is absolute
    /// or leads out of the root. If the kernel does not support lookups without waiting, this
    /// function returns `WouldBlock` for every path.
    pub fn try_look_up(&self, path: &[u8], preferred: Codings) -> Result<Found, Missing> {
        self.find(path, preferred, Wait::Never)
    }

    /// Returns the error page that the operator set for a status code, if any. The function may
    /// block on disk I/O.
    ///
    /// # Errors
    /// Returns an error if the page can no longer be opened.
    pub fn error_page(&self, status: u16) -> Result<Option<Opened>, Missing> {
        let Some(file) = self.options.error_pages.get(&status) else {
            return Ok(None);
        };
        Ok(Some(self.open_file(
            relative(file),
            Codings::NONE,
            Wait::Allowed,
        )?))
    }

    /// Returns the header fields that the operator's rules add to the response for a path. An error
    /// response gets all returned fields except `Cache-Control`.
    #[must_use]
    pub fn fields(&self, path: &[u8]) -> Vec<(&str, &str)> {
        rules::fields(
            self.options.cache_control.as_deref(),
            &self.options.rules,
            path,
        )
    }

    /// Returns whether a path that is not that of a script may lead to one: an index file or the
    /// fallback is a script.
    #[inline]
    pub(crate) fn redirects_to_scripts(&self) -> bool {
        self.redirects_to_scripts
    }

    fn find(&self, path: &[u8], preferred: Codings, wait: Wait) -> Result<Found, Missing> {
        let path = SitePath::new(path).ok_or(Missing::NotFound)?;
        if path.is_hidden() && self.options.dotfiles == Dotfiles::Hidden {
            return Err(Missing::NotFound);
        }
        let found = if path.is_directory() {
            self.find_in(path, preferred, wait)
        } else {
            match self.open_page(path.relative(), preferred, wait) {
                Err(Unopened::Directory) => Ok(Found::Redirect {
                    location: path.location(),
                }),
                opened => opened.map_err(Missing::from),
            }
        };
        match (&self.options.fallback, found) {
            (Some(file), Err(Missing::NotFound))
                if path.lacks_extension() || self.options.is_script(relative(file)) =>
            {
                Ok(self.open_page(relative(file), preferred, wait)?)
            }
            (_, found) => found,
        }
    }

    /// Returns the index of a directory, or its listing.
    fn find_in(
        &self,
        path: SitePath<'_>,
        preferred: Codings,
        wait: Wait,
    ) -> Result<Found, Missing> {
        for index in &self.options.index {
            match self
                .open_page(&path.child(index), preferred, wait)
                .map_err(Missing::from)
            {
                Err(Missing::NotFound) => {}
                result => return result,
            }
        }
        match (self.options.listing, wait) {
            (false, _) => Err(Missing::NotFound),
            (true, Wait::Never) => Err(Missing::WouldBlock),
            (true, Wait::Allowed) => {
                let dotfiles = self.options.dotfiles == Dotfiles::Served;
                Ok(Found::Listing(listing::listing(
                    &self.root, path, dotfiles,
                )?))
            }
        }
    }

    /// Opens a file to serve it, or finds a script.
    fn open_page(&self, path: &[u8], preferred: Codings, wait: Wait) -> Result<Found, Unopened> {
        if self.options.is_script(path) {
            self.open_regular(path, wait)?;
            let path = [b"/", path].concat();
            return Ok(Found::Script { path });
        }
        self.open_file(path, preferred, wait).map(Found::File)
    }

    /// Opens a file, or a compressed copy in a preferred coding.
    fn open_file(&self, path: &[u8], preferred: Codings, wait: Wait) -> Result<Opened, Unopened> {
        let (file, stat) = self.open_regular(path, wait)?;
        let name = path::name(path);
        let mut opened = Opened {
            file,
            meta: Meta::new(&stat, self.types.of(name)),
        };
        if Codings::ALL
            .iter()
            .any(|coding| name.ends_with(suffix(coding)))
        {
            return Ok(opened);
        }
        // For other codings, it only matters whether any copy exists.
        let looked_for = self.options.precompressed;
        let wanted = preferred
            .iter()
            .filter(|&coding| looked_for.contains(coding));
        let others = looked_for
            .iter()
            .filter(|&coding| !preferred.contains(coding));
        for coding in wanted.chain(others) {
            let sibling = [path, suffix(coding)].concat();
            match self.open_regular(&sibling, wait) {
                Ok((file, sibling)) if sibling.st_mtime >= stat.st_mtime => {
                    if preferred.contains(coding) {
                        let media_type = opened.meta.media_type.clone();
                        opened = Opened {
                            file,
                            meta: Meta::new(&sibling, media_type),
                        };
                        opened.meta.coding = Some(coding);
                    }
                    opened.meta.vary = true;
                    break;
                }
                Err(Unopened::Missing(missing @ (Missing::WouldBlock | Missing::Io(_)))) => {
                    return Err(missing.into());
                }
                _ => {}
            }
        }
        Ok(opened)
    }

    fn open_regular(&self, path: &[u8], wait: Wait) -> Result<(File, Stat), Unopened> {
        // Otherwise, opening a pipe would wait for its writer, and a terminal would become the
        // controlling terminal.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self
            .root
            .open_at(path, flags, wait)
            .map_err(Missing::from)?;
        let stat = fstat(&file).map_err(Missing::from)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                // If the flag stayed on, io_uring on some file systems would fail with EAGAIN
                // instead of waiting.
                // The file is there, so a failure is never a 404.
                fcntl_setfl(&file, OFlags::empty()).map_err(|error| Missing::Io(error.into()))?;
                Ok((file.into(), stat))
            }
            FileType::Directory => Err(Unopened::Directory),
            _ => Err(Missing::NotAFile.into()),
        }
    }
}

/// Returns the suffix of a file in a coding.
fn suffix(coding: Coding) -> &'static [u8] {
    match coding {
        Coding::Identity => b"",
        Coding::Gzip => b".gz",
        Coding::Brotli => b".br",
        Coding::Zstd => b".zst",
    }
}

/// Returns the path of a file that the operator names.
fn relative(file: &str) -> &[u8] {
    file.trim_start_matches('/').as_bytes()
}

/// The reason why a file was not opened.
#[derive(Debug)]
enum Unopened {
    Directory,
    /// A script in the place of an error page.
    Script,
    Missing(Missing),
}

impl From<Missing> for Unopened {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}

impl From<Unopened> for Missing {
    fn from(unopened: Unopened) -> Self {
        match unopened {
            Unopened::Directory | Unopened::Script => Self::NotFound,
            Unopened::Missing(missing) => missing,
        }
    }
}

/// The reason why a directory cannot be served.
#[derive(Debug)]
pub struct SiteError {
    root: PathBuf,
    problem: Problem,
}

#[derive(Debug)]
enum Problem {
    Root(io::Error),
    /// An error page, or the fallback, cannot be opened.
    Page {
        status: Option<u16>,
        file: String,
        missing: Unopened,
    },
}

impl fmt::Display for SiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self.root.display();
        match &self.problem {
            Problem::Root(error) => write!(f, "cannot open the directory {root}: {error}"),
            Problem::Page {
                status,
                file,
                missing,
            } => {
                write!(f, "cannot open {file:?} in {root}, ")?;
                match status {
                    Some(status) => write!(f, "the page for {status}: ")?,
                    None => f.write_str("the fallback: ")?,
                }
                match missing {
                    Unopened::Directory => f.write_str("it is a directory"),
                    Unopened::Script => f.write_str("it is a script"),
                    Unopened::Missing(Missing::NotFound) => f.write_str("no such file"),
                    Unopened::Missing(Missing::Forbidden) => f.write_str("permission denied"),
                    Unopened::Missing(Missing::Io(error)) => error.fmt(f),
                    Unopened::Missing(_) => f.write_str("it is not a regular file"),
                }
            }
        }
    }
}

impl std::error::Error for SiteError {}
