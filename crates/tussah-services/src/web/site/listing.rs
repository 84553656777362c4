//! The page that lists a directory.

use std::fmt::Write;

use jiff::Timestamp;
use rustix::fs::{Dir, FileType, OFlags, fstat};
use rustix::io::Errno;
use tussah_plot::Escaped;

use super::found::Missing;
use super::path::{SitePath, can_be_asked_for, is_hidden_name, percent_encode};
use super::root::{Root, Wait};
use crate::units::show_len;

/// The media type of a page that lists a directory.
pub const LISTING_TYPE: &str = "text/html; charset=utf-8";

/// Bound, in entries: the maximum number on one page, about 300 KB. Each entry costs a few system
/// calls. The page reports if there are more.
const ENTRIES_MAX: usize = 2000;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.25rem;overflow-wrap:anywhere}\
table{width:100%;border-collapse:collapse}\
td{padding:.2rem .5rem;border-top:1px solid #8884;overflow-wrap:anywhere;width:100%}\
td+td{width:auto;text-align:right;white-space:nowrap;color:GrayText;font-variant-numeric:tabular-nums}\
a{text-decoration:none}a:hover{text-decoration:underline}";

struct Entry {
    name: Vec<u8>,
    is_directory: bool,
    len: u64,
    modified: i64,
}

/// Lists a directory: directories first, then by name. It shows only entries that can be opened
/// under their names.
pub(super) fn listing(root: &Root, path: SitePath<'_>, dotfiles: bool) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory = Dir::new(root.open_at(path.relative(), flags, Wait::Allowed)?)?;
    let mut entries = Vec::new();
    let mut more = false;
    while let Some(entry) = directory.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let is_hidden = !dotfiles && is_hidden_name(name);
        if name == b"." || name == b".." || is_hidden || !can_be_asked_for(name) {
            continue;
        }
        more = entries.len() == ENTRIES_MAX;
        if more {
            break;
        }
        let at = [path.relative(), b"/", name].concat();
        entries.extend(look_at(root, &at, name)?);
    }
    entries.sort_by(|a, b| (!a.is_directory, &a.name).cmp(&(!b.is_directory, &b.name)));
    Ok(page(path, &entries, more).into_bytes())
}

/// Examines an entry. Returns `None` if it no longer exists, leads outside of the root, or is not a
/// file.
fn look_at(root: &Root, path: &[u8], name: &[u8]) -> Result<Option<Entry>, Errno> {
    let stat = match root.open_at(path, OFlags::PATH, Wait::Allowed) {
        Ok(there) => fstat(there)?,
        Err(error) if is_left_out(error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    let shown = matches!(kind, FileType::Directory | FileType::RegularFile);
    Ok(shown.then(|| Entry {
        name: name.into(),
        is_directory: kind == FileType::Directory,
        len: stat.st_size.cast_unsigned(),
        modified: stat.st_mtime,
    }))
}

/// Returns whether an error means that clients cannot open the entry. Any other error is a failure
/// of the system, which must not look like a shorter directory.
fn is_left_out(error: Errno) -> bool {
    !matches!(Missing::from(error), Missing::Io(_))
}

fn page(path: SitePath<'_>, entries: &[Entry], more: bool) -> String {
    let name = match path.relative() {
        b"." => "".into(),
        name => String::from_utf8_lossy(name),
    };
    let title = format!("/{}", Escaped(&name));
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1><table>\n"
    );
    if path.relative() != b"." {
        page.push_str("<tr><td><a href=\"../\">../</a><td><td>\n");
    }
    for entry in entries {
        row(entry, &mut page);
    }
    page.push_str("</table>\n");
    if more {
        let note = format!("<p>There is more: only {ENTRIES_MAX} entries are shown.\n");
        page.push_str(&note);
    }
    page
}

fn row(entry: &Entry, page: &mut String) {
    let slash = if entry.is_directory { "/" } else { "" };
    // Without `./`, a name with a colon would look like a scheme.
    page.push_str("<tr><td><a href=\"./");
    percent_encode(&entry.name, false, page);
    let name = String::from_utf8_lossy(&entry.name);
    let len = if entry.is_directory {
        String::new()
    } else {
        show_len(entry.len)
    };
    write!(page, "{slash}\">{}{slash}</a><td>{len}<td>", Escaped(&name))
        .expect("a string takes everything");
    // A file system can have times beyond the year 9999.
    if let Ok(date) = Timestamp::from_second(entry.modified) {
        write!(page, "{}", date.strftime("%Y-%m-%d %H:%M UTC")).expect("the format is valid");
    }
    page.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_left_out_for_errors_of_their_own_only() {
        let check = |error, expected| assert_eq!(is_left_out(error), expected, "{error}");
        check(Errno::NOENT, true);
        check(Errno::XDEV, true);
        check(Errno::LOOP, true);
        check(Errno::ACCESS, true);
        check(Errno::MFILE, false);
        check(Errno::NOMEM, false);
        check(Errno::IO, false);
        check(Errno::NOSYS, false);
    }

    #[test]
    fn names_are_escaped() {
        let entry = |name: &str, is_directory| Entry {
            name: name.into(),
            is_directory,
            len: 5,
            modified: 784_111_777,
        };
        let mut html = String::new();
        row(&entry("<b>&\"'.js", false), &mut html);
        row(&entry("javascript:x", true), &mut html);
        let expected = "<tr><td><a href=\"./%3Cb%3E%26%22%27.js\">&lt;b&gt;&amp;&quot;&#39;.js</a>\
            <td>5 B<td>1994-11-06 08:49 UTC\n\
            <tr><td><a href=\"./javascript%3Ax/\">javascript:x/</a><td><td>1994-11-06 08:49 UTC\n";
        assert_eq!(html, expected);
    }
}
