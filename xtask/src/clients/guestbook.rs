//! A test of the example `guestbook` with php-fpm and headless Chromium: the browser fills in the
//! form, and the page has the new entry.

use std::fs;

use super::browser::run_page;
use super::packages::found;
use super::server::Place;
use crate::php::{self, Php};

/// The names of php-fpm, which contain its version on Debian.
pub(super) const PHP: &[&str] = &[
    "php-fpm8.2",
    "php-fpm8.3",
    "php-fpm8.4",
    "php-fpm8.5",
    "php-fpm",
];

/// The folder of the copy of the example.
pub(super) const FOLDER: &str = "guestbook";

/// The page that fills in the form. It prints `guestbook: passed` or `guestbook: failed` on its
/// console.
const PAGE: &str = include_str!("guestbook/sign.html");

/// Signs the guest book, which begins without entries. The example's own configuration file
/// specifies the server; only the socket and the folder for the entries are replaced.
pub(super) fn check(place: &Place, program: &str) -> anyhow::Result<Vec<String>> {
    if found(PHP).is_none() {
        return Ok(Vec::new()); // reported as skipped
    }
    let folder = place.folder.join(FOLDER);
    fs::write(folder.join("public/sign.html"), PAGE)?;
    let file = folder.join("guestbook.toml");
    let mut config = fs::read_to_string(&file)?;
    let (socket, data) = (php::socket(&folder), folder.join("data"));
    for (path, here) in [
        ("/run/php/php-fpm.sock", &socket),
        ("/var/lib/guestbook", &data),
    ] {
        anyhow::ensure!(config.contains(path), "expected {path} in guestbook.toml");
        config = config.replace(path, &here.display().to_string());
    }
    fs::write(&file, config)?;
    let _php = Php::start(&folder)?;
    let server = place.serve_configured(&file)?;
    let url = format!("{}/sign.html", server.url);
    let failure = run_page(place, program, "guestbook", &url)?;
    let served = server.end()?;
    let failure = failure.map(|failure| format!("{failure}; the server printed {served:?}"));
    Ok(failure.into_iter().collect())
}
