//! `cargo xtask guide`: the book of the documents, which mdbook builds into `target/book`.
//!
//! mdbook turns each link to `NAME.md` into a link to `NAME.html`. However, files outside of `docs`
//! have no such page, and a `README.md` becomes `index.html`. The links in the finished pages are
//! therefore corrected here.

use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

#[derive(Args)]
pub(crate) struct Options {}

/// The directory into which mdbook writes the book, as set in `docs/book.toml`.
const BOOK: &str = "target/book";
const MISSING: &str =
    "cannot run mdbook; `cargo install mdbook --version 0.5.4 --locked` installs it";

/// Builds the book.
///
/// # Errors
///
/// Returns an error if mdbook is missing, or a file cannot be read or written.
pub(crate) fn run(root: &Path, _options: &Options) -> anyhow::Result<bool> {
    let mut mdbook = Command::new("mdbook");
    let status = mdbook.args(["build", "docs"]).current_dir(root).status();
    if !status.context(MISSING)?.success() {
        return Ok(false);
    }
    let book = root.join(BOOK);
    let mut directories = vec![book.clone()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "html")
            {
                mend_file(root, &book, &path)?;
            }
        }
    }
    let start = book.join("index.html");
    ensure!(start.is_file(), "mdbook made no {}", start.display());
    println!("built {}", start.display());
    Ok(true)
}

fn mend_file(root: &Path, book: &Path, path: &Path) -> anyhow::Result<()> {
    let page = path.strip_prefix(book).expect("the page is in the book");
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mended = mend(page, &text, |file| root.join(file).is_file());
    if mended != text {
        std::fs::write(path, mended).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Returns the page with its links corrected.
///
/// `page` is its path in the book; `exists` is called with paths that are relative to the root.
fn mend(page: &Path, text: &str, exists: impl Fn(&Path) -> bool) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("href=\"") {
        let (link, after) = after.split_once('"').unwrap_or((after, ""));
        mended.push_str(before);
        mended.push_str("href=\"");
        mended.push_str(&mend_link(page, link, &exists).unwrap_or_else(|| link.to_owned()));
        mended.push('"');
        rest = after;
    }
    mended + rest
}

/// Returns the correct link if the given one is wrong.
fn mend_link(page: &Path, link: &str, exists: impl Fn(&Path) -> bool) -> Option<String> {
    if link.contains(':') || link.starts_with(['#', '/']) {
        return None;
    }
    let (path, fragment) = link.find('#').map_or((link, ""), |at| link.split_at(at));
    let directory = page.parent().unwrap_or(Path::new(""));
    let target = normal(&Path::new("docs").join(directory).join(path))?;
    if target.starts_with("docs") {
        let start = path.strip_suffix("README.html")?;
        return Some(format!("{start}index.html{fragment}"));
    }
    let source = target.with_extension("md");
    let target = if exists(&source) { source } else { target };
    let depth = page.components().count() - 1 + Path::new(BOOK).components().count();
    Some(format!(
        "{}{}{fragment}",
        "../".repeat(depth),
        target.display()
    ))
}

/// Returns the path without `..`, or `None` if it leaves the root.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => normal.pop().then_some(())?,
            other => normal.push(other),
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_table() {
        let check = |page: &str, link: &str, expected: &str| {
            let exists = |path: &Path| path == Path::new("record/README.md");
            let text = mend(
                Path::new(page),
                &format!("<a href=\"{link}\">x</a>"),
                exists,
            );
            assert_eq!(
                text,
                format!("<a href=\"{expected}\">x</a>"),
                "{page}: {link}"
            );
        };
        check("a.html", "guide/tour.html#top", "guide/tour.html#top");
        check("a.html", "#top", "#top");
        check(
            "a.html",
            "https://example.org/README.html",
            "https://example.org/README.html",
        );
        check("a.html", "decisions/README.html", "decisions/index.html");
        check(
            "guide/a.html",
            "../README.html#guide",
            "../index.html#guide",
        );
        check(
            "a.html",
            "../record/README.html#x",
            "../../record/README.md#x",
        );
        check("a.html", "../record/soak.txt", "../../record/soak.txt");
        check(
            "guide/a.html",
            "../../examples/site.toml",
            "../../../examples/site.toml",
        );
        check("a.html", "../../elsewhere", "../../elsewhere");
    }
}
