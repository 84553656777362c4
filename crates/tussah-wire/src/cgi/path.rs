//! The parts of a path that leads to a script.

/// Splits a decoded path into the name of a script and the rest of the path.
///
/// The function splits the path before the last slash that directly follows `extension`. At least
/// one byte must precede `extension`, and at least one must follow the slash. If the path has no
/// such slash, the whole path is the name of the script. nginx splits paths in the same way with
/// `fastcgi_split_path_info ^(.+\.php)(/.+)$`. Unlike this function, nginx may fail to split a path
/// that contains a line feed.
///
/// The function does not look for files: for `/photo.jpg/x.php`, the script is the whole path, even
/// if `/photo.jpg` is a file. A server must therefore check that the script is a file.
///
/// ```
/// use tussah_wire::cgi::split_path_info;
///
/// let parts = split_path_info(b"/shop.php/books/1", b".php");
/// assert_eq!(parts, (&b"/shop.php"[..], &b"/books/1"[..]));
/// assert_eq!(split_path_info(b"/shop.php", b".php"), (&b"/shop.php"[..], &b""[..]));
/// ```
pub fn split_path_info<'p>(path: &'p [u8], extension: &[u8]) -> (&'p [u8], &'p [u8]) {
    // A slash at the very end has no text after it.
    let slashes = (0..path.len().saturating_sub(1)).rev();
    slashes
        .filter(|&at| path[at] == b'/')
        .find(|&at| at > extension.len() && path[..at].ends_with(extension))
        .map_or((path, b""), |at| path.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of nginx with the pattern for `.php`.
    #[test]
    fn paths() {
        let check = |path: &str, script: &str, info: &str| {
            let parts = split_path_info(path.as_bytes(), b".php");
            assert_eq!(parts, (script.as_bytes(), info.as_bytes()), "{path}");
        };
        check("/a.php/b", "/a.php", "/b");
        check("/a.php/b/", "/a.php", "/b/");
        check("/a.php//", "/a.php", "//");
        check("/a.php", "/a.php", "");
        check("/a.php/", "/a.php/", "");
        check("/a.phpx/b", "/a.phpx/b", "");
        check("/a.php/b.php/c", "/a.php/b.php", "/c");
        check("/a.php/b.php", "/a.php", "/b.php");
        check("/a.php/b.php/", "/a.php", "/b.php/");
        check("/photo.jpg/x.php", "/photo.jpg/x.php", "");
        check("/.php/a", "/.php", "/a");
        check(".php/a", ".php/a", "");
        check(".php/a.php/b", ".php/a.php", "/b");
        check("/a.PHP/b", "/a.PHP/b", "");
        check("/a/b", "/a/b", "");
        check("/", "/", "");
        check("", "", "");
        check("/a.php/b\nc", "/a.php", "/b\nc");
    }
}
